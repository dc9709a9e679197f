#include "runtime/prepared.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <set>
#include <utility>

#include "runtime/blas.h"
#include "runtime/cpu_info.h"
#include "runtime/operands.h"
#include "runtime/overlap.h"
#include "runtime/parallel.h"
#include "runtime/run_gemm.h"
#include "runtime/shape.h"
#include "umbra/aligned_memory.h"
#include "umbra/error.h"

namespace umbra::runtime {

namespace {

// What a block of rows costs beside the arithmetic, in units of packing one byte of a matrix for BLAS, which
// every block does anew: starting the steps, on one thread and on several; and writing a byte and reading
// it again in the last-level cache and in memory.
constexpr double kStartBlock = 65536, kStartThreads = 131072, kFromCache = 0.5, kFromMemory = 4;
constexpr index_t kBlockMultiple = 96;  // rows that BLAS likes to work on together, a multiple of kTogether
// Multiplications that are worth a thread of their own.
constexpr double kGrainProducts = 1 << 20;
// Rows of a matrix that are worth packing the other one for them alone.
constexpr index_t kRowsOfPart = 256;
// Rows that OpenBLAS takes together, on some processors; what is left is summed in another order.
constexpr index_t kTogether = 12;

// Memory of a program's temporaries, kept by the thread for its next call.
class Arena {
 public:
  char* Take(std::size_t bytes) {
    if (size_ < bytes) {
      block_.reset();
      block_.reset(static_cast<char*>(AlignedMemory(bytes)));
      size_ = block_ ? bytes : 0;
      Require(block_ != nullptr, "out of memory: ", bytes, " bytes for temporaries");
    }
    return block_.get();
  }

 private:
  std::unique_ptr<char, decltype(&std::free)> block_{nullptr, &std::free};
  std::size_t size_ = 0;
};

// The thread's arena for one call: a call within a call, as a thread that waits may make, has another.
class Lease {
 public:
  Lease() : arena_(Spare() ? std::move(Spare()) : std::make_unique<Arena>()) {}
  ~Lease() { Spare() = std::move(arena_); }
  Arena* operator->() const { return arena_.get(); }

 private:
  static std::unique_ptr<Arena>& Spare() {
    thread_local std::unique_ptr<Arena> spare;
    return spare;
  }
  std::unique_ptr<Arena> arena_;
};

// A few elements without an allocation.
template <typename T>
class Elements {
 public:
  explicit Elements(std::size_t size) : size_(size) {
    if (size > few_.size()) many_.resize(size);
  }
  T* data() { return size_ > few_.size() ? many_.data() : few_.data(); }
  T& operator[](std::size_t k) { return data()[k]; }

 private:
  std::size_t size_;
  std::array<T, 16> few_;
  std::vector<T> many_;
};

std::size_t SizeInBytes(const TensorRef& tensor) {
  return static_cast<std::size_t>(CountElements(tensor.shape, SizeOf(tensor.dtype), "a temporary")) *
         SizeOf(tensor.dtype);
}

// The dimension of a product's operands that its rows move along, or -1.
struct RowDims {
  int a = -1, b = -1, c = -1;
};

// Of a part of a product's rows. Tiles of a BLAS begin where they do without parts: each row has the same bits.
index_t RowsOfPart(index_t rows, int parts) {
  const index_t share = (rows + parts - 1) / parts;
  return share < kRowsOfPart ? share : (share + kTogether - 1) / kTogether * kTogether;
}

RowDims RowDimsOf(const GemmStep& step, const std::vector<TensorRef>& buffers) {
  const auto rank = [&](int buffer) { return buffers[static_cast<std::size_t>(buffer)].shape.size(); };
  if (rank(step.c) == 1) return {};
  if (rank(step.c) == 3) return {0, 0, 0};
  return {rank(step.a) == 2 && step.transpose_a ? 1 : 0, -1, 0};
}

double Products(const GemmStep& step, const std::vector<TensorRef>& buffers) {
  const TensorRef &a = buffers[static_cast<std::size_t>(step.a)], &c = buffers[static_cast<std::size_t>(step.c)];
  double count = 1;
  for (const index_t extent : c.shape) count *= static_cast<double>(extent);
  if (a.shape.size() == 1) return c.shape.size() == 1 ? count * static_cast<double>(a.shape[0]) : count;
  return count * static_cast<double>(a.shape[a.shape.size() - (step.transpose_a ? 2 : 1)]);
}

}  // namespace

Program::Faster FasterFor(const Program& program, const std::vector<index_t>& symbols, const std::vector<TensorRef>& operands,
                          const OperandPairs& overlaps) {
  if (!program.for_extents) return {};
  Program::Faster faster = program.for_extents(symbols);
  if (faster.program != nullptr && !AllowsOverlaps(*faster.program, operands, overlaps)) faster.program = nullptr;
  return faster;
}

PreparedProgram::PreparedProgram(const Program& program, std::vector<TensorRef> operands,
                                 const std::vector<index_t>& symbols, bool shared, int threads)
    : program_(program), buffers_(std::move(operands)), operands_(buffers_.size()), threads_(threads) {
  AddTemporaries(symbols, shared);
  for (const StepGroup& group : program.groups) {
    if (group.kind == StepGroup::Kind::kRows) AddRows(group, symbols, shared);
    else AddIndependent(group, symbols);
  }
  PlaceTemporaries();
}

// ---- preparing ----------------------------------------------------------------------------------

void PreparedProgram::AddTemporaries(const std::vector<index_t>& symbols, bool shared) {
  for (std::size_t k = operands_; k < program_.buffers.size(); ++k) {
    const Buffer& buffer = program_.buffers[k];
    TensorRef tensor = TensorRef::Dense(nullptr, buffer.dtype, Resolve(buffer.shape, symbols));
    const TensorRef* place = buffer.place < 0 ? nullptr : &buffers_[static_cast<std::size_t>(buffer.place)];
    Temporary own;
    if (place != nullptr && !shared && (place->stride.back() == 1 || place->shape.back() == 1)) {
      tensor = *place;
      own.place = buffer.place;
    } else {
      own.bytes = SizeInBytes(tensor);
    }
    temporaries_.push_back(own);
    buffers_.push_back(std::move(tensor));
  }
}

// Gives each temporary a place that no other has at the same time: that of one which the step that makes it may write it
// over, else the lowest that is free from the step that uses it first to the one that uses it last. Those of a group are at
// the same time, but for temporaries of a block of its rows, if one block follows the other.
void PreparedProgram::PlaceTemporaries() {
  std::vector<Life> lives(temporaries_.size());
  for (const StepGroup& group : program_.groups) {
    for (int k = group.begin; k < group.end; ++k) {
      const auto use = [&](int buffer) {
        const auto at = static_cast<std::size_t>(buffer);
        if (at < operands_) return;
        // Of several parts each may be at another step.
        const bool of_block = temporaries_[at - operands_].block && temporaries_[at - operands_].copies == 1;
        Life& life = lives[at - operands_];
        const bool alone = of_block || group.end - group.begin == 1;
        if (life.first < 0) life.first = of_block ? k : group.begin, life.first_alone = alone;
        life.last = of_block ? k : group.end - 1;
        life.last_alone = alone;
      };
      const auto& step = program_.steps[static_cast<std::size_t>(k)];
      if (const auto* gemm = std::get_if<GemmStep>(&step)) {
        for (const int buffer : {gemm->a, gemm->b, gemm->c}) use(buffer);
      } else {
        for (const Access& access : std::get<KernelStep>(step).signature.operands) use(access.buffer);
      }
    }
  }
  std::vector<std::size_t> order;  // by first use
  for (std::size_t k = 0; k < temporaries_.size(); ++k)
    if (temporaries_[k].place < 0 && lives[k].first >= 0) order.push_back(k);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(lives[a].first, a) < std::pair(lives[b].first, b);
  });
  const auto size = [this](std::size_t k) {
    return (temporaries_[k].bytes * static_cast<std::size_t>(temporaries_[k].copies) + 63) / 64 * 64;
  };
  std::vector<std::size_t> held;  // temporaries that hold memory, by offset
  for (const std::size_t k : order) {
    const auto over = std::find_if(held.begin(), held.end(), [&](std::size_t other) { return MayTakeOver(k, other, lives); });
    if (over != held.end()) {
      temporaries_[k].offset = temporaries_[*over].offset;
      *over = k;
      continue;
    }
    held.erase(std::remove_if(held.begin(), held.end(), [&](std::size_t other) { return lives[other].last < lives[k].first; }), held.end());
    std::size_t offset = 0;
    auto next = held.begin();
    for (; next != held.end() && temporaries_[*next].offset < offset + size(k); ++next) offset = temporaries_[*next].offset + size(*next);
    temporaries_[k].offset = offset;
    held.insert(next, k);
    temporary_bytes_ = std::max(temporary_bytes_, offset + size(k));
  }
}

// May the step that makes temporary `made` write it over `read`, which nothing reads later?
bool PreparedProgram::MayTakeOver(std::size_t made, std::size_t read, const std::vector<Life>& lives) const {
  const Life &life = lives[made], &before = lives[read];
  const Temporary &own = temporaries_[made], &other = temporaries_[read];
  if (before.first == life.first || before.last != life.first || !life.first_alone || !before.last_alone || own.bytes != other.bytes || own.copies != other.copies) return false;
  const auto* kernel = std::get_if<KernelStep>(&program_.steps[static_cast<std::size_t>(life.first)]);
  if (kernel == nullptr) return false;
  const auto& operands = kernel->signature.operands;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (!operands[k].store || static_cast<std::size_t>(operands[k].buffer) != operands_ + made) continue;
    const auto& allowed = kernel->signature.in_place[k];
    for (std::size_t l = 0; l < operands.size(); ++l)
      if (!operands[l].store && static_cast<std::size_t>(operands[l].buffer) == operands_ + read &&
          std::find(allowed.begin(), allowed.end(), static_cast<int>(l)) == allowed.end())
        return false;
  }
  return true;
}

// The kernel that this launch runs instead of the product of matrices that step `gemm` is, or null.
const KernelStep* PreparedProgram::SumInstead(int gemm, int end, const std::vector<index_t>& symbols) const {
  const auto& product = std::get<GemmStep>(program_.steps[static_cast<std::size_t>(gemm)]);
  const auto* sum = gemm + 1 < end ? std::get_if<KernelStep>(&program_.steps[static_cast<std::size_t>(gemm) + 1]) : nullptr;
  if (sum == nullptr || !sum->signature.product) return nullptr;
  for (const int buffer : {product.b, product.c}) {
    const TensorRef& tensor = buffers_[static_cast<std::size_t>(buffer)];
    if (tensor.stride.back() != 1 && tensor.shape.back() != 1) return nullptr;
  }
  const std::vector<index_t> loops = Resolve(sum->signature.axes, symbols);
  const std::size_t rank = loops.size();
  const bool faster = SumIsFaster({loops[rank - 3], loops[rank - 2], loops[rank - 1], product.transpose_a, product.transpose_b,
                                   SizeOf(buffers_[static_cast<std::size_t>(product.c)].dtype)}, CpuRuns("avx512"));
  return faster ? sum : nullptr;
}

std::vector<PreparedProgram::Step> PreparedProgram::Prepare(const StepGroup& group,
                                                            const std::vector<index_t>& symbols, int threads,
                                                            index_t rows) const {
  std::vector<Step> steps;
  for (int k = group.begin; k < group.end; ++k) {
    const auto& step = program_.steps[static_cast<std::size_t>(k)];
    if (const auto* gemm = std::get_if<GemmStep>(&step)) {
      if (SumInstead(k, group.end, symbols) == nullptr) steps.emplace_back(gemm);
      continue;
    }
    const auto& kernel_step = std::get<KernelStep>(step);
    if (kernel_step.signature.product && SumInstead(k - 1, group.end, symbols) == nullptr) continue;
    if (StoresNothing(kernel_step, buffers_)) continue;
    Kernel kernel;
    kernel.plan = PrepareLaunch(kernel_step, buffers_, symbols, threads, rows);
    for (const Access& access : kernel_step.signature.operands) {
      const auto buffer = static_cast<std::size_t>(access.buffer);
      kernel.buffer.push_back(buffer);
      kernel.element_size.push_back(SizeOf(buffers_[buffer].dtype));
      kernel.row_dim.push_back(access.dim_of_axis[0]);
    }
    kernel.scalars = &kernel_step.signature.scalars;
    steps.emplace_back(std::move(kernel));
  }
  return steps;
}

void PreparedProgram::AddIndependent(const StepGroup& group, const std::vector<index_t>& symbols) {
  std::vector<Step> steps = Prepare(group, symbols, threads_, -1);
  if (steps.empty()) return;
  const bool conflict = Conflict(program_, group, buffers_);
  Group together{group.kind, {}, {}};
  for (Step& step : steps) {
    if (conflict || std::get<Kernel>(step).plan.phases > 0) {  // all threads work on it, in several regions
      groups_.push_back({group.kind, {}, {}});
      groups_.back().steps.push_back(std::move(step));
    } else {
      together.steps.push_back(std::move(step));
    }
  }
  if (!together.steps.empty()) groups_.push_back(std::move(together));
}

void PreparedProgram::AddRows(const StepGroup& group, const std::vector<index_t>& symbols, bool shared) {
  Group made;
  made.kind = group.kind;
  made.rows = Resolve({group.rows}, symbols)[0];
  if (made.rows == 0) return;
  made.block = shared ? made.rows : BlockRows(group, made.rows);
  double products = 0;
  for (int k = group.begin; k < group.end; ++k)
    if (const auto* gemm = std::get_if<GemmStep>(&program_.steps[static_cast<std::size_t>(k)])) products += Products(*gemm, buffers_);
  made.blas_threads = static_cast<int>(std::max(1.0, std::min(static_cast<double>(threads_), products / kGrainProducts)));
  if (SharesRowsOut(group, made.rows))
    (shared ? made.product_parts : made.parts) = std::exchange(made.blas_threads, 1);
  made.block = std::min(made.block, RowsOfPart(made.rows, made.parts));
  for (const int buffer : group.local) {
    const auto k = static_cast<std::size_t>(buffer);
    if (temporaries_[k - operands_].place >= 0) continue;
    buffers_[k].shape[0] = made.block;
    temporaries_[k - operands_] = {-1, (SizeInBytes(buffers_[k]) + 63) / 64 * 64, made.parts, true, 0};
  }
  const int threads = made.parts > 1 ? 1 : threads_;
  made.steps = Prepare(group, symbols, threads, made.block);
  if (const index_t rest = made.rows % made.block; rest != 0) made.last_steps = Prepare(group, symbols, threads, rest);
  groups_.push_back(std::move(made));
}

// Batches of matrices are shared out among the threads, and so are the rows of a matrix that has many for each; else BLAS
// has threads of its own for it.
bool PreparedProgram::SharesRowsOut(const StepGroup& group, index_t rows) const {
  for (int k = group.begin; k < group.end; ++k) {
    const auto* gemm = std::get_if<GemmStep>(&program_.steps[static_cast<std::size_t>(k)]);
    if (gemm == nullptr) continue;
    const bool batch = buffers_[static_cast<std::size_t>(gemm->c)].shape.size() == 3;
    const RowDims dims = RowDimsOf(*gemm, buffers_);
    if (!batch && (dims.a < 0 || dims.b >= 0 || rows < threads_ * kRowsOfPart)) return false;
  }
  return BlasMayRunSideBySide() && (rows % threads_ == 0 || rows >= 4 * threads_);
}

// How many rows to take at a time: many, since BLAS packs a matrix anew for every block of its partner's
// rows; or so few that what the steps hand on stays in a cache.
index_t PreparedProgram::BlockRows(const StepGroup& group, index_t rows) const {
  std::set<int> moved, written, handed_on;
  double packed = 0;
  const auto use = [&](int buffer, bool store) {
    if (!store && written.count(buffer) != 0) handed_on.insert(buffer);
    if (store) written.insert(buffer);
    moved.insert(Home(buffer));
  };
  for (int k = group.begin; k < group.end; ++k) {
    const auto& step = program_.steps[static_cast<std::size_t>(k)];
    if (const auto* gemm = std::get_if<GemmStep>(&step)) {
      const RowDims dims = RowDimsOf(*gemm, buffers_);
      if (dims.c < 0) return rows;
      use(gemm->a, false);
      if (dims.b >= 0) use(gemm->b, false);
      else packed += static_cast<double>(SizeInBytes(buffers_[static_cast<std::size_t>(gemm->b)]));
      use(gemm->c, true);
      continue;
    }
    for (const Access& access : std::get<KernelStep>(step).signature.operands)
      if (access.dim_of_axis[0] >= 0) use(access.buffer, access.store);
  }
  const auto row_bytes = [&](const std::set<int>& buffers) {
    double bytes = 0;
    for (const int buffer : buffers) bytes += static_cast<double>(SizeInBytes(buffers_[static_cast<std::size_t>(buffer)]));
    return bytes / static_cast<double>(rows);
  };
  if (handed_on.empty()) return rows;
  const double footprint = std::max(1.0, row_bytes(moved)), traffic = 2 * row_bytes(handed_on);
  const double near = static_cast<double>(SecondLevelCacheBytes()) / 2 * threads_;
  const double far = static_cast<double>(LastLevelCacheBytes()) / 4;  // others use it, too
  const auto cost = [&](index_t block) {
    const double start = kStartBlock + (threads_ > 1 ? kStartThreads : 0) + packed;
    const double bytes = static_cast<double>(block) * footprint;
    const double distance = bytes <= near ? 0 : bytes <= far ? kFromCache : kFromMemory;
    return start * static_cast<double>((rows + block - 1) / block) + distance * traffic * static_cast<double>(rows);
  };
  index_t best = rows;
  for (const double cache : {near, far / 2}) {
    index_t block = std::max<index_t>(1, static_cast<index_t>(cache / footprint));
    if (block > kBlockMultiple) block = block / kBlockMultiple * kBlockMultiple;
    if (block < rows && cost(block) < cost(best)) best = block;
  }
  return best;
}

// ---- running ------------------------------------------------------------------------------------

void PreparedProgram::Run(void* const* data, const umbra_scalar* scalars) const {
  const auto run = [&](void* const* all) {
    for (const Group& group : groups_) {
      if (group.kind == StepGroup::Kind::kRows) RunRows(group, all, scalars);
      else RunIndependent(group, all, scalars);
    }
  };
  if (temporaries_.empty()) return run(data);
  const Lease arena;
  Elements<void*> all(buffers_.size());
  for (std::size_t k = 0; k < operands_; ++k) all[k] = data[k];
  char* const memory = temporary_bytes_ > 0 ? arena->Take(temporary_bytes_) : nullptr;
  for (std::size_t k = operands_; k < buffers_.size(); ++k) {
    const Temporary& own = temporaries_[k - operands_];
    all[k] = own.place >= 0 ? data[own.place] : memory + own.offset;
  }
  run(all.data());
}

const PreparedProgram::Kernel* PreparedProgram::OnlyKernel() const {
  const bool one = temporaries_.empty() && groups_.size() == 1 && groups_[0].kind == StepGroup::Kind::kIndependent &&
                   groups_[0].steps.size() == 1;
  return one ? std::get_if<Kernel>(&groups_[0].steps[0]) : nullptr;
}

void PreparedProgram::RunIndependent(const Group& group, void* const* data, const umbra_scalar* scalars) const {
  std::size_t operands = 0, numbers = 0;
  for (const Step& step : group.steps) {
    operands += std::get<Kernel>(step).buffer.size();
    numbers += std::get<Kernel>(step).scalars->size();
  }
  Elements<void*> pointers(operands);
  Elements<umbra_scalar> own(numbers);
  void** pointer = pointers.data();
  umbra_scalar* number = own.data();
  std::vector<LaunchCall> calls;
  for (const Step& step : group.steps) {
    const Kernel& kernel = std::get<Kernel>(step);
    const LaunchCall call{&kernel.plan, pointer, &kernel.element_size, number};
    for (const std::size_t buffer : kernel.buffer) *pointer++ = data[buffer];
    for (const int scalar : *kernel.scalars) *number++ = scalars[scalar];
    if (group.steps.size() == 1) return Launch(kernel.plan, call.data, kernel.element_size, call.scalars);
    calls.push_back(call);
  }
  LaunchTogether(calls, threads_);
}

void PreparedProgram::RunRows(const Group& group, void* const* data, const umbra_scalar* scalars) const {
  const BlasThreads scope(group.blas_threads);
  const index_t blocks = (group.rows + group.block - 1) / group.block;
  ParallelFor(group.parts, [&](int part) {
    for (index_t k = blocks * part / group.parts; k < blocks * (part + 1) / group.parts; ++k)
      RunBlock(group, k * group.block, part, data, scalars);
  });
}

void PreparedProgram::RunBlock(const Group& group, index_t begin, int part, void* const* data,
                               const umbra_scalar* scalars) const {
  const index_t count = std::min(group.block, group.rows - begin);
  for (const Step& step : count == group.block ? group.steps : group.last_steps) {
    if (const auto* const* gemm = std::get_if<const GemmStep*>(&step)) {
      const RowDims dims = RowDimsOf(**gemm, buffers_);
      const index_t share = RowsOfPart(count, group.product_parts);
      ParallelFor(group.product_parts, [&](int k) {
        const index_t first = k * share, rows = std::min(share, count - first);
        if (rows <= 0) return;
        const auto of_part = [&](int buffer, int dim) {
          TensorRef tensor = Rows(buffer, dim, begin, rows, part, data);
          if (dim >= 0 && first > 0)
            tensor.data = static_cast<char*>(tensor.data) + first * tensor.stride[static_cast<std::size_t>(dim)] *
                                                                static_cast<index_t>(SizeOf(tensor.dtype));
          return tensor;
        };
        RunGemm(**gemm, of_part((*gemm)->a, dims.a), of_part((*gemm)->b, dims.b), of_part((*gemm)->c, dims.c));
      });
      continue;
    }
    const Kernel& kernel = std::get<Kernel>(step);
    Elements<void*> pointers(kernel.buffer.size());
    for (std::size_t k = 0; k < kernel.buffer.size(); ++k)
      pointers[k] = AtRow(kernel.buffer[k], kernel.row_dim[k], begin, part, data);
    Elements<umbra_scalar> own(kernel.scalars->size());
    for (std::size_t k = 0; k < kernel.scalars->size(); ++k)
      own[k] = scalars[(*kernel.scalars)[k]];
    Launch(kernel.plan, pointers.data(), kernel.element_size, own.data());
  }
}

// The buffer whose memory holds `buffer`.
int PreparedProgram::Home(int buffer) const {
  const auto k = static_cast<std::size_t>(buffer);
  const int place = k < operands_ ? -1 : temporaries_[k - operands_].place;
  return place < 0 ? buffer : place;
}

// Where row `row` of a buffer is, or the copy that `part` has.
void* PreparedProgram::AtRow(std::size_t buffer, int dim, index_t row, int part, void* const* data) const {
  char* const base = static_cast<char*>(data[buffer]);
  if (buffer >= operands_)
    if (const Temporary& own = temporaries_[buffer - operands_]; own.block)
      return base + static_cast<std::size_t>(part) * own.bytes;
  if (dim < 0 || row == 0) return base;
  const TensorRef& tensor = buffers_[buffer];
  return base + row * tensor.stride[static_cast<std::size_t>(dim)] * static_cast<index_t>(SizeOf(tensor.dtype));
}

TensorRef PreparedProgram::Rows(int buffer, int dim, index_t begin, index_t count, int part,
                                void* const* data) const {
  const auto k = static_cast<std::size_t>(buffer);
  TensorRef rows = buffers_[k];
  rows.data = AtRow(k, dim, begin, part, data);
  if (dim >= 0) rows.shape[static_cast<std::size_t>(dim)] = count;
  return rows;
}

}  // namespace umbra::runtime
