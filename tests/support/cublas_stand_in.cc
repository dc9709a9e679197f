// Stands in for cuBLASLt over the stand-in for the driver: products by loops in f64, in the order of the stream.
#include "tests/support/cublas_stand_in.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/cuda/cublas.h"
#include "runtime/cuda/driver.h"
#include "tests/support/cuda_stand_in.h"
#include "umbra/half.h"

using namespace umbra::cuda;  // NOLINT: the types of the library's interface

namespace {

constexpr BlasStatus kInvalid = 7;

struct Product {
  int compute, scale;
  std::int32_t ta = 0, tb = 0;
  std::uint32_t epilogue = 1;
  const void* bias = nullptr;
};
struct Layout {  // by columns
  int type;
  std::uint64_t rows, columns;
  std::int64_t lead;
  std::int32_t batch = 1;
  std::int64_t stride = 0;
};
struct Preference {
  std::uint64_t workspace = 0;
  std::uint32_t reductions = 7;
  std::map<int, std::uint32_t> alignment;
};

double At(int type, const void* data, std::int64_t index) {
  switch (type) {
    case kReal32: return static_cast<const float*>(data)[index];
    case kReal64: return static_cast<const double*>(data)[index];
    case kReal16: return static_cast<double>(static_cast<float>(static_cast<const umbra::half_t*>(data)[index]));
    default: return static_cast<double>(static_cast<float>(static_cast<const umbra::bf16_t*>(data)[index]));
  }
}
void Set(int type, void* data, std::int64_t index, double value) {
  switch (type) {
    case kReal32: static_cast<float*>(data)[index] = static_cast<float>(value); break;
    case kReal64: static_cast<double*>(data)[index] = value; break;
    case kReal16: static_cast<umbra::half_t*>(data)[index] = static_cast<float>(value); break;
    default: static_cast<umbra::bf16_t*>(data)[index] = static_cast<float>(value);
  }
}
// An operand of f32 as the tensor cores see it: 10 bits of mantissa.
double Tf32(double value) {
  auto single = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &single, 4);
  bits = (bits + 0x1000) & ~0x1fffu;
  std::memcpy(&single, &bits, 4);
  return single;
}
// NVIDIA's relu makes 0 of NaN.
double Finish(std::uint32_t epilogue, double x) {
  if ((epilogue & 2) != 0) return x > 0 ? x : 0;
  if ((epilogue & 32) != 0) return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  return x;
}

struct Asked {
  std::mutex mutex;
  std::vector<umbra::stand_in::Product> products;
  BlasStatus epilogues = 0, all = 0;
};
Asked& TheAsked() {
  static Asked asked;
  return asked;
}

}  // namespace

namespace umbra::stand_in {

std::vector<Product> TakeProducts() {
  const std::lock_guard lock(TheAsked().mutex);
  return std::exchange(TheAsked().products, {});
}
void RefuseEpilogues(int status) {
  const std::lock_guard lock(TheAsked().mutex);
  TheAsked().epilogues = status;
}
void RefuseAlgorithms(int status) {
  const std::lock_guard lock(TheAsked().mutex);
  TheAsked().all = status;
}

}  // namespace umbra::stand_in

extern "C" {

BlasStatus cublasLtCreate(void** handle) {
  if (const int status = umbra::stand_in::Called("cublasLtCreate"); status != 0) return status;
  *handle = new int(0);
  return 0;
}
std::size_t cublasLtGetVersion() { return 130000; }
const char* cublasLtGetStatusName(BlasStatus) { return "CUBLAS_STATUS_EXECUTION_FAILED"; }
const char* cublasLtGetStatusString(BlasStatus) { return "the function failed to launch on the GPU"; }
BlasStatus cublasLtMatmulDescCreate(void** product, int compute, int scale) {
  *product = new Product{compute, scale};
  return 0;
}
BlasStatus cublasLtMatmulDescDestroy(void* product) {
  delete static_cast<Product*>(product);
  return 0;
}
BlasStatus cublasLtMatmulDescSetAttribute(void* product, int attribute, const void* value, std::size_t bytes) {
  auto* const p = static_cast<Product*>(product);
  const auto set = [&](auto* field) {
    if (bytes != sizeof *field) return kInvalid;
    std::memcpy(field, value, bytes);
    return 0;
  };
  switch (attribute) {
    case kTransposeA: return set(&p->ta);
    case kTransposeB: return set(&p->tb);
    case kEpilogue: return set(&p->epilogue);
    case kBiasPointer: return set(&p->bias);
    default: return kInvalid;
  }
}
BlasStatus cublasLtMatrixLayoutCreate(void** layout, int type, std::uint64_t rows, std::uint64_t columns,
                                      std::int64_t lead) {
  if (lead < static_cast<std::int64_t>(rows)) return kInvalid;
  *layout = new Layout{type, rows, columns, lead};
  return 0;
}
BlasStatus cublasLtMatrixLayoutDestroy(void* layout) {
  delete static_cast<Layout*>(layout);
  return 0;
}
BlasStatus cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* value, std::size_t bytes) {
  auto* const l = static_cast<Layout*>(layout);
  if (attribute == kBatchCount && bytes == 4) std::memcpy(&l->batch, value, 4);
  else if (attribute == kBatchStride && bytes == 8) std::memcpy(&l->stride, value, 8);
  else return kInvalid;
  return 0;
}
BlasStatus cublasLtMatmulPreferenceCreate(void** preference) {
  *preference = new Preference;
  return 0;
}
BlasStatus cublasLtMatmulPreferenceDestroy(void* preference) {
  delete static_cast<Preference*>(preference);
  return 0;
}
BlasStatus cublasLtMatmulPreferenceSetAttribute(void* preference, int attribute, const void* value, std::size_t bytes) {
  auto* const p = static_cast<Preference*>(preference);
  if (attribute == kMaxWorkspace && bytes == 8) std::memcpy(&p->workspace, value, 8);
  else if (attribute == kReductionSchemes && bytes == 4) std::memcpy(&p->reductions, value, 4);
  else if (attribute >= kAlignmentA && attribute <= kAlignmentD && bytes == 4)
    std::memcpy(&p->alignment[attribute], value, 4);
  else return kInvalid;
  return 0;
}
BlasStatus cublasLtMatmulAlgoGetHeuristic(void*, void* product, void* a, void* b, void* c, void* d, void* preference,
                                          int, MatmulHeuristic* best, int* count) {
  const auto* const p = static_cast<Product*>(product);
  const auto *const la = static_cast<Layout*>(a), *const lb = static_cast<Layout*>(b),
                    *const lc = static_cast<Layout*>(c);
  const auto* const wish = static_cast<Preference*>(preference);
  if (const int status = umbra::stand_in::Called("cublasLtMatmulAlgoGetHeuristic"); status != 0) return status;
  if (c != d || wish->alignment.size() != 4) return kInvalid;
  const std::uint64_t m = p->ta != 0 ? la->columns : la->rows, k = p->ta != 0 ? la->rows : la->columns;
  const std::uint64_t k2 = p->tb != 0 ? lb->columns : lb->rows, n = p->tb != 0 ? lb->rows : lb->columns;
  if (m != lc->rows || n != lc->columns || k != k2 || la->batch != lc->batch || lb->batch != lc->batch) return kInvalid;
  if (p->scale != (lc->type == kReal64 ? kReal64 : kReal32)) return kInvalid;
  *count = 0;
  if (lc->type == kReal64 && p->epilogue != 1) return kBlasNotSupported;
  const bool half = lc->type == kReal16 || lc->type == kRealBf16;
  if (half && (wish->reductions & ~kReductionInComputeType) != 0) return kInvalid;  // parts of sums would be rounded
  const std::lock_guard lock(TheAsked().mutex);
  if (TheAsked().all != 0) return TheAsked().all;
  if (p->epilogue != 1 && TheAsked().epilogues != 0) return TheAsked().epilogues;
  *best = {};
  best->algorithm.data[0] = 42;
  best->workspace_bytes = m * n * k > 1000 ? 4096 : 0;
  *count = 1;
  return 0;
}
BlasStatus cublasLtMatmul(void*, void* product, const void* alpha, const void* a, void* a_layout, const void* b,
                          void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                          const MatmulAlgorithm* algorithm, void* workspace, std::size_t workspace_bytes,
                          void* stream) {
  const Product p = *static_cast<Product*>(product);
  const Layout la = *static_cast<Layout*>(a_layout), lb = *static_cast<Layout*>(b_layout),
               lc = *static_cast<Layout*>(c_layout);
  if (const int status = umbra::stand_in::Called("cublasLtMatmul"); status != 0) return status;
  if (c != d || c_layout != d_layout || algorithm->data[0] != 42) return kInvalid;
  const double by = At(p.scale, alpha, 0), of_c = At(p.scale, beta, 0);
  const auto n = static_cast<std::int64_t>(lc.columns), m = static_cast<std::int64_t>(lc.rows);
  const auto k = static_cast<std::int64_t>(p.ta != 0 ? la.rows : la.columns);
  if (m * n * k > 1000 && (workspace == nullptr || workspace_bytes < 4096)) return kInvalid;
  {
    const std::lock_guard lock(TheAsked().mutex);
    TheAsked().products.push_back({p.epilogue, (p.epilogue & 4) != 0 ? p.bias : nullptr, d, lc.batch});
  }
  const int result = umbra::stand_in::Enqueue(stream, [=] {
    if (workspace != nullptr) std::memset(workspace, 0x55, workspace_bytes);
    for (std::int64_t batch = 0; batch < lc.batch; ++batch)
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < m; ++i) {
          double sum = 0;
          for (std::int64_t x = 0; x < k; ++x) {
            double left = At(la.type, a, batch * la.stride + (p.ta != 0 ? i * la.lead + x : x * la.lead + i));
            double right = At(lb.type, b, batch * lb.stride + (p.tb != 0 ? x * lb.lead + j : j * lb.lead + x));
            if (p.compute == kCompute32Tf32) left = Tf32(left), right = Tf32(right);
            sum += left * right;
          }
          const std::int64_t at = batch * lc.stride + j * lc.lead + i;
          double value = by * sum + (of_c == 0 ? 0 : of_c * At(lc.type, d, at));
          if ((p.epilogue & 4) != 0) value += At(lc.type, p.bias, i);
          Set(lc.type, d, at, Finish(p.epilogue, value));
        }
    return 0;
  });
  return result == 0 ? 0 : 13;
}

}  // extern "C"
