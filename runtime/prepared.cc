#include "runtime/prepared.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <utility>

#include "runtime/blas.h"
#include "runtime/parallel.h"
#include "runtime/run_gemm.h"
#include "umbra/aligned_memory.h"
#include "umbra/error.h"

namespace umbra::runtime {

namespace {

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

}  // namespace

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
  char* const memory = temporary_bytes() > 0 ? arena->Take(temporary_bytes()) : nullptr;
  if (!copies_.empty()) copies_.Take(buffers_, memory + temporary_bytes_, data, all.data());
  for (std::size_t k = operands_; k < buffers_.size(); ++k) {
    const Temporary& own = temporaries_[k - operands_];
    char* const home = own.place < 0 ? memory : static_cast<char*>(all[static_cast<std::size_t>(own.place)]);
    all[k] = home + own.offset;
  }
  run(all.data());
  if (!copies_.empty()) copies_.Return(buffers_, memory + temporary_bytes_, data);
}

const PreparedProgram::Kernel* PreparedProgram::OnlyKernel() const {
  if (!copies_.empty() || groups_.size() != 1 || groups_[0].kind != StepGroup::Kind::kIndependent ||
      groups_[0].steps.size() != 1)
    return nullptr;
  const auto* kernel = std::get_if<Kernel>(&groups_[0].steps[0]);
  const auto is_operand = [this](std::size_t buffer) { return buffer < operands_; };
  return kernel != nullptr && std::all_of(kernel->buffer.begin(), kernel->buffer.end(), is_operand) ? kernel : nullptr;
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
      ParallelFor(group.product_parts, [&](int k) {
        const index_t first = k * group.product_rows, rows = std::min(group.product_rows, count - first);
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
    for (std::size_t k = 0; k < kernel.scalars->size(); ++k) own[k] = scalars[(*kernel.scalars)[k]];
    Launch(kernel.plan, pointers.data(), kernel.element_size, own.data());
  }
}

// The operand or temporary whose memory holds `buffer`.
int PreparedProgram::Home(int buffer) const {
  const auto k = static_cast<std::size_t>(buffer);
  const int place = k < operands_ ? -1 : temporaries_[k - operands_].place;
  return place < 0 ? buffer : Home(place);
}

// The buffer that lies where `buffer` does, and in no other.
int PreparedProgram::SameBase(int buffer) const {
  const auto k = static_cast<std::size_t>(buffer);
  const Temporary* own = k < operands_ ? nullptr : &temporaries_[k - operands_];
  return own == nullptr || own->place < 0 || own->offset != 0 ? buffer : SameBase(own->place);
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

TensorRef PreparedProgram::Rows(int buffer, int dim, index_t begin, index_t count, int part, void* const* data) const {
  const auto k = static_cast<std::size_t>(buffer);
  TensorRef rows = buffers_[k];
  rows.data = AtRow(k, dim, begin, part, data);
  if (dim >= 0) rows.shape[static_cast<std::size_t>(dim)] = count;
  return rows;
}

}  // namespace umbra::runtime
