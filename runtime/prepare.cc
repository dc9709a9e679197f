#include <algorithm>
#include <set>
#include <utility>

#include "runtime/blas.h"
#include "runtime/cpu_info.h"
#include "runtime/operands.h"
#include "runtime/prepared.h"
#include "runtime/run_gemm.h"
#include "runtime/shape.h"

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

// Is the kernel's first axis that of a product's columns? Of a batch it is that of the matrices.
bool GoesByColumns(const KernelSignature& kernel) { return kernel.turned && kernel.axes.size() == 3; }

std::size_t SizeInBytes(const TensorRef& tensor) {
  return static_cast<std::size_t>(CountElements(tensor.shape, SizeOf(tensor.dtype), "a temporary")) *
         SizeOf(tensor.dtype);
}

// Of a part of a product's rows. Tiles of a BLAS begin where they do without parts: each row has the same bits.
index_t RowsOfPart(index_t rows, int parts) {
  const index_t share = (rows + parts - 1) / parts;
  return share < kRowsOfPart ? share : (share + kTogether - 1) / kTogether * kTogether;
}

double Products(const GemmStep& step, const std::vector<TensorRef>& buffers) {
  const TensorRef &a = buffers[static_cast<std::size_t>(step.a)], &c = buffers[static_cast<std::size_t>(step.c)];
  double count = 1;
  for (const index_t extent : c.shape) count *= static_cast<double>(extent);
  if (a.shape.size() == 1) return c.shape.size() == 1 ? count * static_cast<double>(a.shape[0]) : count;
  return count * static_cast<double>(a.shape[a.shape.size() - (step.transpose_a ? 2 : 1)]);
}

}  // namespace

Program::Faster FasterFor(const Program& program, const std::vector<index_t>& symbols,
                          const std::vector<TensorRef>& operands, const OperandPairs& overlaps) {
  if (!program.for_extents) return {};
  Program::Faster faster = program.for_extents(symbols);
  if (faster.program != nullptr && !AllowsOverlaps(*faster.program, operands, overlaps)) faster.program = nullptr;
  return faster;
}

PreparedProgram::PreparedProgram(const Program& program, std::vector<TensorRef> operands,
                                 const std::vector<index_t>& symbols, OperandPairs shared, int threads)
    : program_(program),
      buffers_(std::move(operands)),
      operands_(buffers_.size()),
      shared_(std::move(shared)),
      threads_(threads) {
  copies_ = DenseCopies(program.buffers, shared_, &buffers_);
  AddTemporaries(symbols);
  ChooseSteps(symbols);
  for (const StepGroup& group : program.groups) {
    if (group.kind == StepGroup::Kind::kRows) AddRows(group, symbols);
    else AddIndependent(group, symbols);
  }
  PlaceTemporaries();
}

void PreparedProgram::AddTemporaries(const std::vector<index_t>& symbols) {
  for (std::size_t k = operands_; k < program_.buffers.size(); ++k) {
    const Buffer& buffer = program_.buffers[k];
    TensorRef tensor = TensorRef::Dense(nullptr, buffer.dtype, Resolve(buffer.shape, symbols));
    const TensorRef* place = buffer.place < 0 ? nullptr : &buffers_[static_cast<std::size_t>(buffer.place)];
    Temporary own;
    if (buffer.kind == Buffer::Kind::kView) {
      PlaceView(buffer, *place, symbols, &tensor);
      own.place = buffer.place;
      own.offset = static_cast<std::size_t>(static_cast<char*>(tensor.data) - static_cast<char*>(place->data));
    } else if (place != nullptr && shared_.empty() && (place->stride.back() == 1 || place->shape.back() == 1)) {
      tensor = *place;
      own.place = buffer.place;
    } else {
      own.bytes = SizeInBytes(tensor);
    }
    temporaries_.push_back(own);
    buffers_.push_back(std::move(tensor));
  }
}

// Gives each temporary a place that no other has at the same time: that of one which the step that makes it may write
// it over, else the lowest that is free from the step that uses it first to the one that uses it last. Those of a group
// are at the same time, but for temporaries of a block of its rows, if one block follows the other.
void PreparedProgram::PlaceTemporaries() {
  std::vector<Life> lives(temporaries_.size());
  for (const StepGroup& group : program_.groups) {
    for (int k = group.begin; k < group.end; ++k) {
      if (!runs_[static_cast<std::size_t>(k)]) continue;
      const auto use = [&](int buffer) {
        const auto at = static_cast<std::size_t>(Home(buffer));
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
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return std::pair(lives[a].first, a) < std::pair(lives[b].first, b); });
  const auto size = [this](std::size_t k) {
    return (temporaries_[k].bytes * static_cast<std::size_t>(temporaries_[k].copies) + 63) / 64 * 64;
  };
  std::vector<std::size_t> held;  // temporaries that hold memory, by offset
  for (const std::size_t k : order) {
    const auto over =
        std::find_if(held.begin(), held.end(), [&](std::size_t other) { return MayTakeOver(k, other, lives); });
    if (over != held.end()) {
      temporaries_[k].offset = temporaries_[*over].offset;
      *over = k;
      continue;
    }
    held.erase(
        std::remove_if(held.begin(), held.end(), [&](std::size_t other) { return lives[other].last < lives[k].first; }),
        held.end());
    std::size_t offset = 0;
    auto next = held.begin();
    for (; next != held.end() && temporaries_[*next].offset < offset + size(k); ++next)
      offset = temporaries_[*next].offset + size(*next);
    temporaries_[k].offset = offset;
    held.insert(next, k);
    temporary_bytes_ = std::max(temporary_bytes_, offset + size(k));
  }
}

// May the step that makes temporary `made` write it over `read`, which nothing reads later?
bool PreparedProgram::MayTakeOver(std::size_t made, std::size_t read, const std::vector<Life>& lives) const {
  const Life &life = lives[made], &before = lives[read];
  const Temporary &own = temporaries_[made], &other = temporaries_[read];
  if (before.first == life.first || before.last != life.first || !life.first_alone || !before.last_alone ||
      own.bytes != other.bytes || own.copies != other.copies)
    return false;
  const auto* kernel = std::get_if<KernelStep>(&program_.steps[static_cast<std::size_t>(life.first)]);
  if (kernel == nullptr) return false;
  const auto& operands = kernel->signature.operands;
  const auto is_in = [&](std::size_t k, std::size_t temporary) {
    return static_cast<std::size_t>(Home(operands[k].buffer)) == operands_ + temporary;
  };
  const auto lie_alike = [&](std::size_t k, std::size_t l) {
    const TensorRef &a = buffers_[static_cast<std::size_t>(operands[k].buffer)],
                    &b = buffers_[static_cast<std::size_t>(operands[l].buffer)];
    return a.stride == b.stride && SizeOf(a.dtype) == SizeOf(b.dtype);
  };
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (!operands[k].store || !is_in(k, made)) continue;
    const auto& allowed = kernel->signature.in_place[k];
    for (std::size_t l = 0; l < operands.size(); ++l)
      if (!operands[l].store && is_in(l, read) &&
          (std::ranges::find(allowed, static_cast<int>(l)) == allowed.end() || !lie_alike(k, l)))
        return false;
  }
  return true;
}

// Kernels that run instead of products, and of what is before and behind these, or the products.
void PreparedProgram::ChooseSteps(const std::vector<index_t>& symbols) {
  runs_.assign(program_.steps.size(), true);
  for (std::size_t k = 0; k < program_.steps.size(); ++k) {
    const auto* sum = std::get_if<KernelStep>(&program_.steps[k]);
    if (sum == nullptr || sum->signature.replaces.empty()) continue;
    runs_[k] = IsFaster(*sum, k, symbols);
    if (!runs_[k]) continue;
    for (const int step : sum->signature.replaces) runs_[static_cast<std::size_t>(step)] = false;
  }
}

// Is the kernel at a step, behind the product that it replaces, faster, and may it run?
bool PreparedProgram::IsFaster(const KernelStep& sum, std::size_t step, const std::vector<index_t>& symbols) const {
  const std::size_t at = ProductBefore(sum.signature, step);
  const auto& product = std::get<GemmStep>(program_.steps[at]);
  if (sum.signature.replaces.size() > 1) {
    const int first = sum.signature.replaces[0], end = static_cast<int>(at) + 1;
    for (const auto& [out, in] : shared_)
      if (!MayShare(program_, sum, static_cast<int>(out), static_cast<int>(in)) ||
          MeetLater(program_, sum, first, end, static_cast<int>(out), static_cast<int>(in)))
        return false;
  }
  for (const Access& access : sum.signature.operands) {
    const TensorRef& tensor = buffers_[static_cast<std::size_t>(access.buffer)];
    const bool moves = access.dim_of_axis[static_cast<std::size_t>(sum.signature.vector_axis)] >= 0;
    const auto last = static_cast<std::size_t>(access.LastDim());
    if (moves && tensor.stride[last] != 1 && tensor.shape[last] != 1) return false;
  }
  const ProductShape shape = ShapeOf(product, sum.signature, Resolve(sum.signature.axes, symbols),
                                     buffers_[static_cast<std::size_t>(product.c)].dtype);
  return RunsInstead(sum.signature, shape, program_.target);
}

std::vector<PreparedProgram::Step> PreparedProgram::Prepare(const StepGroup& group, const std::vector<index_t>& symbols,
                                                            int threads, index_t rows) const {
  std::vector<Step> steps;
  for (int k = group.begin; k < group.end; ++k) {
    if (!runs_[static_cast<std::size_t>(k)]) continue;
    const auto& step = program_.steps[static_cast<std::size_t>(k)];
    if (const auto* gemm = std::get_if<GemmStep>(&step)) {
      steps.emplace_back(gemm);
      continue;
    }
    const auto& kernel_step = std::get<KernelStep>(step);
    if (StoresNothing(kernel_step, buffers_)) continue;
    Kernel kernel;
    kernel.plan = PrepareLaunch(kernel_step, buffers_, symbols, threads,
                                GoesByColumns(kernel_step.signature) ? -1 : rows, program_.target);
    for (const Access& access : kernel_step.signature.operands) {
      const auto buffer = static_cast<std::size_t>(access.buffer);
      kernel.buffer.push_back(static_cast<std::size_t>(rows < 0 ? SameBase(access.buffer) : access.buffer));
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

bool PreparedProgram::IsOneKernel(const StepGroup& group) const {
  const auto run = std::count(runs_.begin() + group.begin, runs_.begin() + group.end, true);
  const auto at = std::find(runs_.begin() + group.begin, runs_.begin() + group.end, true) - runs_.begin();
  return run == 1 && std::holds_alternative<KernelStep>(program_.steps[static_cast<std::size_t>(at)]);
}

// Does it run a kernel whose first axis is not that of the rows?
bool PreparedProgram::HasKernelByColumns(const StepGroup& group) const {
  for (int k = group.begin; k < group.end; ++k)
    if (const auto* kernel = std::get_if<KernelStep>(&program_.steps[static_cast<std::size_t>(k)]);
        kernel != nullptr && runs_[static_cast<std::size_t>(k)] && GoesByColumns(kernel->signature))
      return true;
  return false;
}

void PreparedProgram::AddRows(const StepGroup& group, const std::vector<index_t>& symbols) {
  // A kernel that does all that the steps do shares its rows out itself.
  if (IsOneKernel(group)) {
    if (std::vector<Step> steps = Prepare(group, symbols, threads_, -1); !steps.empty())
      groups_.push_back({StepGroup::Kind::kIndependent, std::move(steps), {}});
    return;
  }
  Group made;
  made.kind = group.kind;
  made.rows = Resolve({group.rows}, symbols)[0];
  if (made.rows == 0) return;
  const bool shared = !shared_.empty(), by_columns = HasKernelByColumns(group);
  made.block = shared || by_columns ? made.rows : BlockRows(group, made.rows);
  double products = 0;
  for (int k = group.begin; k < group.end; ++k)
    if (const auto* gemm = std::get_if<GemmStep>(&program_.steps[static_cast<std::size_t>(k)]))
      products += Products(*gemm, buffers_);
  made.blas_threads =
      static_cast<int>(std::max(1.0, std::min(static_cast<double>(threads_), products / kGrainProducts)));
  if (!by_columns && SharesRowsOut(group, made.rows))
    (shared ? made.product_parts : made.parts) = std::exchange(made.blas_threads, 1);
  made.block = std::min(made.block, RowsOfPart(made.rows, made.parts));
  made.product_rows = RowsOfPart(made.block, made.product_parts);
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

// Batches of matrices are shared out among the threads, and so are the rows of a matrix that has many for each; else
// BLAS has threads of its own for it.
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
    for (const int buffer : buffers)
      bytes += static_cast<double>(SizeInBytes(buffers_[static_cast<std::size_t>(buffer)]));
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

}  // namespace umbra::runtime
