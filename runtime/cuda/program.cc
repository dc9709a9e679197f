#include "runtime/cuda/program.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "runtime/cuda/gemm.h"
#include "runtime/cuda/library.h"
#include "runtime/cuda_geometry.h"
#include "runtime/matrix.h"
#include "runtime/pieces.h"
#include "runtime/shape.h"
#include "umbra/error.h"

namespace umbra::runtime {

namespace {

// A matrix as cuda::Gemm wants it: rows that lie `lead` apart, of elements side by side, or the transpose of one.
struct Matrix {
  index_t rows = 1, columns = 1, lead = 1;
  bool transposed = false;
};

// Rows and columns of the tiles that products are made of, as far as cuBLASLt's are known.
constexpr index_t kTileRows = 128, kTileColumns = 256;

// Rows of the pieces in which a product is computed whose result has more bytes than a device's cache holds together
// with what is made of it; 0: all rows. Multiprocessors that have no tile while others have their last one are what
// pieces cost, so they are as large as may be of those that cost least, and all alike where some are.
index_t RowsOfPiece(index_t rows, index_t columns, std::size_t element, const cuda::DeviceProperties& device) {
  const index_t bytes = columns * static_cast<index_t>(element), room = static_cast<index_t>(device.l2_bytes / 16 * 9);
  if (rows * bytes <= room) return 0;
  const index_t bands = CeilDiv(rows, kTileRows), across = CeilDiv(columns, kTileColumns),
                at_once = std::max(device.multiprocessors, 1);
  index_t best = 0, least = 0;
  for (index_t k = Least(room / (kTileRows * bytes), bands - 1); k > 0; --k) {
    const index_t turns = bands / k * CeilDiv(k * across, at_once) + CeilDiv(bands % k * across, at_once);
    const bool even = bands % k == 0 && best > 0 && bands % best != 0;
    if (best == 0 || turns < least || (turns == least && even)) best = k, least = turns;
  }
  return best * kTileRows;
}

// The stride of one row, or of one column, is nobody's.
bool LiesByRows(const MatrixShape& m) {
  return (m.column_stride == 1 || m.columns <= 1) && (m.row_stride >= m.columns || m.rows <= 1);
}

Matrix ForCublas(const TensorRef& tensor, bool transpose, const std::string& what) {
  const MatrixShape matrix = AsMatrix(tensor, transpose);
  const auto [rows, columns, row_stride, column_stride] = matrix;
  const bool by_rows = LiesByRows(matrix), by_columns = LiesByRows({columns, rows, column_stride, row_stride});
  Require(
      by_rows || by_columns, what, ": shape ", ShapeText(tensor.shape), " with strides ", ShapeText(tensor.stride),
      " is no matrix that cuBLAS reads: along one of the last two dimensions elements must lie side by side, and what "
      "lies so must follow each other without overlapping; copy it to dense memory");
  const index_t lead = by_rows ? (rows <= 1 ? columns : row_stride) : (columns <= 1 ? rows : column_stride);
  return {rows, columns, std::max<index_t>(lead, 1), !by_rows};
}

cuda::LaunchShape ShapeOf(const CudaDims& grid, const CudaDims& block, std::size_t shared_bytes) {
  return {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, static_cast<unsigned>(shared_bytes)};
}

}  // namespace

CudaStep::CudaStep(const KernelStep& step, const std::vector<TensorRef>& buffers, const std::vector<index_t>& symbols,
                   const cuda::DeviceProperties& device)
    : CudaStep(step.signature, step.cuda, buffers, symbols, device) {}

CudaStep::CudaStep(const KernelSignature& signature, std::shared_ptr<const CudaKernel> kernel,
                   const std::vector<TensorRef>& buffers, const std::vector<index_t>& symbols,
                   const cuda::DeviceProperties& device)
    : kernel_(std::move(kernel)) {
  CudaLimits limits;
  limits.shared_bytes = std::max(limits.shared_bytes, device.shared_per_block_opt_in) - kCudaStaticShared;
  launch_ = PlanCudaLaunch(signature, kernel_->schedule, buffers, symbols, limits);
  const std::vector<Access>& operands = signature.operands;
  const std::vector<int>& scalars = signature.scalars;
  arguments_ =
      CudaArguments(launch_, std::vector<void*>(operands.size()), std::vector<umbra_scalar>(scalars.size()), nullptr);
  for (std::size_t k = 0; k < operands.size(); ++k) addresses_.push_back({k, operands[k].buffer});
  for (std::size_t k = 0; k < scalars.size(); ++k)
    scalars_.push_back({arguments_.size() - 1 - scalars.size() + k, scalars[k]});
}

std::string CudaStep::IdentityOfSeveral(bool many) const {
  CudaVariant several = launch_.variant;
  several.several = true;
  several.many = many;
  return kernel_->identity(several);
}

bool CudaStep::JoinsWith(const CudaStep& other) const {
  if (kernel_ == nullptr || other.kernel_ == nullptr || !CudaLaunchesJoin(launch_, other.launch_)) return false;
  const std::string identity = IdentityOfSeveral(false);
  return !identity.empty() && identity == other.IdentityOfSeveral(false);
}

CudaStep CudaStep::Join(const std::vector<const CudaStep*>& steps) {
  const CudaStep& first = *steps[0];
  if (steps.size() == 1) return first;
  std::vector<CudaLaunch> launches;
  for (const CudaStep* step : steps) launches.push_back(step->launch_);
  CudaStep all;
  all.kernel_ = first.kernel_;
  all.launch_ = JoinCudaLaunches(launches, first.arguments_.size(), &all.arguments_);
  const std::size_t places = all.arguments_.size() - 1;
  for (const CudaStep* step : steps) {
    const std::size_t begin = all.arguments_.size();
    for (const Word& word : step->addresses_) all.addresses_.push_back({begin + word.at, word.from, word.offset});
    for (const Word& word : step->scalars_) all.scalars_.push_back({begin + word.at, word.from});
    all.arguments_.insert(all.arguments_.end(), step->arguments_.begin(), step->arguments_.end());
  }
  all.arguments_.resize(places + 1 + places * first.arguments_.size());
  return all;
}

std::vector<CudaStep> CudaStep::Joined(const std::vector<CudaStep>& steps, const cuda::DeviceProperties& device) {
  std::vector<std::vector<const CudaStep*>> equal;
  for (const CudaStep& step : steps) {
    const auto found =
        std::find_if(equal.begin(), equal.end(), [&](const auto& others) { return step.JoinsWith(*others[0]); });
    if (found == equal.end()) equal.push_back({&step});
    else found->push_back(&step);
  }
  std::vector<CudaStep> joined;
  for (const std::vector<const CudaStep*>& all : equal) {
    const std::size_t words = all[0]->arguments_.size(), few = CudaMostLaunches(words, false);
    const bool may_be_many = all.size() > std::max<std::size_t>(few, 1) &&
                             device.argument_bytes >= kCudaManyArgumentBytes &&
                             !all[0]->IdentityOfSeveral(true).empty();
    const std::size_t most = std::max<std::size_t>(may_be_many ? CudaMostLaunches(words, true) : few, 1);
    // As many in each, so that they have one code.
    const std::size_t launches = (all.size() - 1) / most + 1, share = (all.size() - 1) / launches + 1;
    for (std::size_t begin = 0; begin < all.size(); begin += share)
      joined.push_back(Join({all.begin() + static_cast<std::ptrdiff_t>(begin),
                             all.begin() + static_cast<std::ptrdiff_t>(std::min(begin + share, all.size()))}));
  }
  return joined;
}

CudaStep::CudaStep(const GemmStep& step, const std::vector<TensorRef>& buffers, const std::string& program)
    : a_(step.a),
      b_(step.b),
      c_(step.c) {
  const TensorRef& ta = buffers[static_cast<std::size_t>(step.a)];
  const TensorRef& tb = buffers[static_cast<std::size_t>(step.b)];
  const TensorRef& tc = buffers[static_cast<std::size_t>(step.c)];
  const std::string what = "kernel '" + program + "', a matrix product, ";
  Matrix a = ForCublas(ta, step.transpose_a, what + "left operand");
  Matrix b = ForCublas(tb, step.transpose_b, what + "right operand");
  const Matrix c = ForCublas(tc, false, what + "result");
  const auto batch_stride = [](const TensorRef& t) { return t.shape.size() == 3 ? t.stride[0] : 0; };
  gemm_.dtype = tc.dtype;
  gemm_.factors = ta.dtype;
  gemm_.alpha = step.alpha;
  gemm_.m = a.rows;
  gemm_.n = b.columns;
  gemm_.k = a.columns;
  gemm_.batch = tc.shape.size() == 3 ? tc.shape[0] : 1;
  gemm_.stride_a = batch_stride(ta);
  gemm_.stride_b = batch_stride(tb);
  gemm_.stride_c = batch_stride(tc);
  if (c.transposed) {  // c is stored by columns: its transpose is op(b)^T . op(a)^T
    std::swap(a_, b_);
    std::swap(gemm_.m, gemm_.n);
    std::swap(gemm_.stride_a, gemm_.stride_b);
    std::swap(a, b);
    a.transposed = !a.transposed;
    b.transposed = !b.transposed;
  }
  gemm_.transpose_a = a.transposed;
  gemm_.transpose_b = b.transposed;
  gemm_.lda = a.lead;
  gemm_.ldb = b.lead;
  gemm_.ldc = c.lead;
}

std::optional<CudaStep> CudaStep::WithEpilogue(const GemmStep& step, const std::vector<TensorRef>& buffers,
                                               const std::string& program) {
  const auto buffer = [&](int id) -> const TensorRef& { return buffers[static_cast<std::size_t>(id)]; };
  const ProductEpilogue& epilogue = step.epilogue;
  if (!LiesByRows(AsMatrix(buffer(epilogue.result), false))) return std::nullopt;
  if (epilogue.bias >= 0 && buffer(epilogue.bias).stride[0] != 1 && buffer(epilogue.bias).shape[0] > 1)
    return std::nullopt;
  GemmStep whole = step;
  whole.c = epilogue.result;
  CudaStep made(whole, buffers, program);
  made.bias_ = epilogue.bias;
  made.scalar_ = epilogue.scalar;
  made.gemm_.alpha *= epilogue.scale;
  made.gemm_.epilogue = epilogue.kind;
  return made;
}

std::vector<CudaStep> CudaStep::InPieces(const GemmStep& product, bool is_whole, const KernelStep& kernel,
                                         const std::vector<TensorRef>& buffers, const std::vector<index_t>& symbols,
                                         const std::string& program, const cuda::DeviceProperties& device) {
  const KernelSignature& signature = kernel.signature;
  const int result = is_whole ? product.epilogue.result : product.c;
  const TensorRef& c = buffers[static_cast<std::size_t>(result)];
  const std::optional<std::map<int, int>> dimension = DimensionsAlongRows(signature, result);
  if (c.shape.size() != 2 || !dimension) return {};
  const index_t rows = c.shape[0], count = RowsOfPiece(rows, c.shape[1], SizeOf(c.dtype), device);
  if (count == 0 || !LiesByRows(AsMatrix(c, false))) return {};

  std::vector<CudaStep> steps;
  for (index_t begin = 0; begin < rows; begin += count) {
    KernelSignature piece = signature;
    piece.axes[0] = Extent::Static(Least(count, rows - begin));
    CudaStep part = is_whole ? *WithEpilogue(product, buffers, program) : CudaStep(product, buffers, program);
    part.gemm_.m = piece.axes[0].value;
    part.a_offset_ = static_cast<std::size_t>(begin * (part.gemm_.transpose_a ? 1 : part.gemm_.lda)) *
                     SizeOf(buffers[static_cast<std::size_t>(product.a)].dtype);
    part.c_offset_ = static_cast<std::size_t>(begin * part.gemm_.ldc) * SizeOf(c.dtype);
    part.goes_on_ = begin > 0;
    steps.push_back(std::move(part));

    std::vector<TensorRef> parts = buffers;
    const auto offset = [&](int buffer) {
      const int along = dimension->at(buffer);
      const TensorRef& whole = buffers[static_cast<std::size_t>(buffer)];
      return along < 0 ? std::size_t{0}
                       : static_cast<std::size_t>(begin * whole.stride[static_cast<std::size_t>(along)]) *
                             SizeOf(whole.dtype);
    };
    for (const auto& [buffer, along] : *dimension) {
      if (along < 0) continue;
      TensorRef& tensor = parts[static_cast<std::size_t>(buffer)];
      tensor.data = static_cast<char*>(tensor.data) + offset(buffer);
      tensor.shape[static_cast<std::size_t>(along)] = piece.axes[0].value;
    }
    CudaStep behind(piece, kernel.cuda, parts, symbols, device);
    for (Word& word : behind.addresses_) word.offset = offset(word.from);
    behind.aside_ = true;
    steps.push_back(std::move(behind));
  }
  return steps;
}

template <typename At>
cuda::Gemm CudaStep::ProductOf(const At& at) const {
  cuda::Gemm gemm = gemm_;
  gemm.a = static_cast<const char*>(at(a_)) + a_offset_;
  gemm.b = at(b_);
  gemm.c = static_cast<char*>(at(c_)) + c_offset_;
  if (bias_ >= 0) gemm.bias = at(bias_);
  return gemm;
}

std::optional<bool> CudaStep::IsThere(const std::vector<TensorRef>& buffers, cuda::StreamHandle stream) const {
  return cuda::HasGemm(ProductOf([&](int id) { return buffers[static_cast<std::size_t>(id)].data; }), stream);
}

void CudaStep::MakeCode(const cuda::DeviceProperties& device) {
  if (kernel_ != nullptr) passes_ = kernel_->code(launch_.variant, device.major, device.minor);
}

void CudaStep::Launch(void* const* data, const umbra_scalar* scalars, void* scratch, cuda::StreamHandle stream) const {
  if (kernel_ == nullptr) {
    cuda::Gemm gemm = ProductOf([data](int id) { return data[id]; });
    if (scalar_ >= 0)
      gemm.alpha *= gemm.dtype == DType::kFloat64 ? scalars[scalar_].f64 : static_cast<double>(scalars[scalar_].f32);
    cuda::library::Run(gemm, stream);
    return;
  }
  std::array<std::uint64_t, kCudaManyArgumentWords> words;
  const std::size_t room = launch_.variant.many ? words.size() : kCudaArgumentWords;
  Require(arguments_.size() <= room, "kernel '", passes_[0].name(), "' takes ", arguments_.size(),
          " words of arguments, and a launch has room for ", room, ": split the graph");
  std::copy(arguments_.begin(), arguments_.end(), words.begin());
  for (const Word& word : addresses_) words[word.at] = reinterpret_cast<std::uintptr_t>(data[word.from]) + word.offset;
  for (const Word& word : scalars_) std::memcpy(&words[word.at], &scalars[word.from], sizeof words[0]);
  words[arguments_.size() - 1] = reinterpret_cast<std::uintptr_t>(scratch);
  const std::size_t bytes = arguments_.size() * sizeof words[0];
  passes_[0].Launch(ShapeOf(launch_.grid, launch_.block, launch_.shared_bytes), words.data(), bytes, stream);
  if (launch_.finishes())
    passes_[1].Launch(ShapeOf(launch_.finish_grid, launch_.finish_block, 0), words.data(), bytes, stream);
}

}  // namespace umbra::runtime
