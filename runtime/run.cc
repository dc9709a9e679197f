#include <algorithm>
#include <memory>

#include "runtime/blas.h"
#include "runtime/cpu_info.h"
#include "runtime/launch.h"
#include "runtime/overlap.h"
#include "runtime/parallel.h"
#include "runtime/shape.h"
#include "umbra/error.h"
#include "umbra/function.h"

namespace umbra::runtime {

namespace {

// A matrix for BLAS: rows that lie `lead` apart, elements side by side; `transposed` if the memory
// holds the transpose. Memory of any other shape is copied into `copy`.
template <typename T>
struct Matrix {
  T* data = nullptr;
  index_t rows = 1, columns = 1, lead = 1;
  bool transposed = false;
  std::unique_ptr<T[]> copy;
};

template <typename T>
Matrix<T> AsMatrix(const TensorRef& tensor, bool transpose, bool vector_is_column) {
  Matrix<T> m;
  m.data = static_cast<T*>(tensor.data);
  index_t row_stride = 1, column_stride = 1;
  if (tensor.shape.size() == 2) {
    m.rows = tensor.shape[0];
    m.columns = tensor.shape[1];
    row_stride = tensor.stride[0];
    column_stride = tensor.stride[1];
  } else if (vector_is_column) {
    m.rows = tensor.shape[0];
    row_stride = tensor.stride[0];
  } else {
    m.columns = tensor.shape[0];
    column_stride = tensor.stride[0];
    row_stride = m.columns;
  }
  if (transpose) {
    std::swap(m.rows, m.columns);
    std::swap(row_stride, column_stride);
  }
  if (column_stride == 1 && row_stride >= std::max<index_t>(1, m.columns)) {
    m.lead = row_stride;
  } else if (row_stride == 1 && column_stride >= std::max<index_t>(1, m.rows)) {
    m.lead = column_stride;
    m.transposed = true;
  } else {
    m.copy.reset(new T[static_cast<std::size_t>(m.rows * m.columns)]);
    for (index_t i = 0; i < m.rows; ++i)
      for (index_t j = 0; j < m.columns; ++j)
        m.copy[i * m.columns + j] = m.data[i * row_stride + j * column_stride];
    m.data = m.copy.get();
    m.lead = std::max<index_t>(1, m.columns);
  }
  return m;
}

template <typename T>
void RunGemm(const GemmStep& step, const TensorRef& ta, const TensorRef& tb, const TensorRef& tc) {
  if (tc.shape.size() == 3) {
    for (index_t k = 0; k < tc.shape[0]; ++k) RunGemm<T>(step, ta.At(k), tb.At(k), tc.At(k));
    return;
  }
  const bool outer = ta.shape.size() == 1 && tb.shape.size() == 1;
  const Matrix<T> a = AsMatrix<T>(ta, step.transpose_a, outer);
  const Matrix<T> b = AsMatrix<T>(tb, step.transpose_b, !outer && tb.shape.size() == 1);
  Matrix<T> c = AsMatrix<T>(tc, false, false);
  T* result = c.copy ? c.copy.get() : static_cast<T*>(tc.data);
  const bool direct = !c.copy && !c.transposed;
  std::unique_ptr<T[]> packed;
  index_t lead = c.lead;
  if (!direct) {
    packed.reset(new T[static_cast<std::size_t>(c.rows * c.columns)]);
    result = packed.get();
    lead = std::max<index_t>(1, c.columns);
  }
  Gemm(a.transposed, b.transposed, a.rows, b.columns, a.columns, static_cast<T>(step.alpha), a.data,
       a.lead, b.data, b.lead, T(0), result, lead);
  if (direct) return;
  const index_t row = tc.shape.size() == 2 ? tc.stride[0] : 0;
  const index_t column = tc.stride.back();
  for (index_t i = 0; i < c.rows; ++i)
    for (index_t j = 0; j < c.columns; ++j)
      static_cast<T*>(tc.data)[i * row + j * column] = packed[i * lead + j];
}

void RunKernel(const KernelStep& step, const std::vector<TensorRef>& buffers,
               const std::vector<index_t>& symbols, const std::vector<umbra_scalar>& scalars,
               int threads) {
  const LaunchPlan plan = PrepareLaunch(step, buffers, symbols, threads);
  std::vector<void*> data;
  std::vector<std::size_t> element_size;
  for (const Access& access : step.signature.operands) {
    const TensorRef& tensor = buffers[static_cast<std::size_t>(access.buffer)];
    data.push_back(tensor.data);
    element_size.push_back(SizeOf(tensor.dtype));
  }
  std::vector<umbra_scalar> own;
  for (int index : step.signature.scalars) own.push_back(scalars[static_cast<std::size_t>(index)]);
  Launch(plan, data.data(), element_size, own.data());
}

// A kernel has nothing to do if everything that it stores is empty.
bool StoresNothing(const KernelStep& step, const std::vector<TensorRef>& buffers) {
  for (const Access& access : step.signature.operands) {
    if (!access.store) continue;
    const auto& shape = buffers[static_cast<std::size_t>(access.buffer)].shape;
    if (std::find(shape.begin(), shape.end(), 0) == shape.end()) return false;
  }
  return true;
}

// Memory of a program's temporaries, kept by the thread for its next call.
class Arena {
 public:
  char* Take(std::size_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    if (used_ == blocks_.size()) blocks_.emplace_back(nullptr, &std::free), sizes_.push_back(0);
    if (sizes_[used_] < bytes) {
      blocks_[used_].reset(static_cast<char*>(std::aligned_alloc(64, bytes)));
      sizes_[used_] = blocks_[used_] ? bytes : 0;
      Require(blocks_[used_] != nullptr, "out of memory: ", bytes, " bytes for a temporary");
    }
    return blocks_[used_++].get();
  }
  void Reset() { used_ = 0; }

 private:
  std::vector<std::unique_ptr<char, decltype(&std::free)>> blocks_;
  std::vector<std::size_t> sizes_;
  std::size_t used_ = 0;
};

}  // namespace

void Run(const Program& program, const Arguments& arguments, const RunOptions& options) {
  RequireThreads(options.threads);
  const std::vector<index_t> symbols = CheckArguments(program, arguments);
  std::vector<TensorRef> buffers = arguments.inputs;
  buffers.insert(buffers.end(), arguments.outputs.begin(), arguments.outputs.end());
  CheckOverlaps(program, buffers);
  thread_local Arena arena;
  arena.Reset();
  for (std::size_t k = buffers.size(); k < program.buffers.size(); ++k) {
    const Buffer& buffer = program.buffers[k];
    std::vector<index_t> shape = Resolve(buffer.shape, symbols);
    const index_t count = CountElements(shape, SizeOf(buffer.dtype), buffer.name);
    buffers.push_back(TensorRef::Dense(
        arena.Take(static_cast<std::size_t>(count) * SizeOf(buffer.dtype)), buffer.dtype, shape));
  }
  const int threads = options.threads > 0 ? options.threads : NumProcessors();
  for (const auto& step : program.steps) {
    if (const auto* kernel = std::get_if<KernelStep>(&step)) {
      if (!StoresNothing(*kernel, buffers))
        RunKernel(*kernel, buffers, symbols, arguments.scalars, threads);
      continue;
    }
    const auto& gemm = std::get<GemmStep>(step);
    const BlasThreads scope(threads);
    const auto tensor = [&](int buffer) -> const TensorRef& { return buffers[static_cast<std::size_t>(buffer)]; };
    const auto run = tensor(gemm.c).dtype == DType::kFloat64 ? RunGemm<double> : RunGemm<float>;
    run(gemm, tensor(gemm.a), tensor(gemm.b), tensor(gemm.c));
  }
}

}  // namespace umbra::runtime
