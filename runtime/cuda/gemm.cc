#include "runtime/cuda/gemm.h"

#include <algorithm>
#include <array>
#include <map>

#include "runtime/cuda/cublas.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/stream.h"

namespace umbra::cuda {

namespace {

std::atomic<bool> tf32_allowed{false};

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // what NVIDIA advises for Hopper
constexpr std::size_t kBiasAlignment = 16;
constexpr std::size_t kMostPlans = 1024;

int RealOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return kReal32;
    case DType::kFloat64: return kReal64;
    case DType::kFloat16: return kReal16;
    case DType::kBFloat16: return kRealBf16;
    default:
      throw Error(detail::Concat("a matrix product on the GPU is of f32, f64, f16 or bf16, not of ", Name(dtype)));
  }
}

// cublasLtEpilogue_t.
int Number(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kBias: return 4;
    case Epilogue::kRelu: return 2;
    case Epilogue::kBiasRelu: return 6;
    case Epilogue::kGelu: return 32;
    case Epilogue::kBiasGelu: return 36;
    default: return 1;
  }
}
DType FactorType(const Gemm& g) { return g.factors.value_or(g.dtype); }
bool HasBias(const Gemm& g) { return (Number(g.epilogue) & 4) != 0; }

// The largest power of two up to kGemmAlignment that divides an address.
std::uint32_t AlignmentOf(const void* memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory) | kGemmAlignment;
  return static_cast<std::uint32_t>(address & (~address + 1));
}

// The rows of a matrix as they lie in memory, which are the columns of the transpose, and their length.
struct Stored {
  const void* data;
  DType dtype;
  index_t rows, length, lead, stride;
};
Stored A(const Gemm& g) {
  const index_t rows = g.transpose_a ? g.k : g.m, length = g.transpose_a ? g.m : g.k;
  return {g.a, FactorType(g), rows, length, std::max(g.lda, length), g.stride_a};
}
Stored B(const Gemm& g) {
  const index_t rows = g.transpose_b ? g.n : g.k, length = g.transpose_b ? g.k : g.n;
  return {g.b, FactorType(g), rows, length, std::max(g.ldb, length), g.stride_b};
}
Stored C(const Gemm& g) { return {g.c, g.dtype, g.m, g.n, std::max(g.ldc, g.n), g.stride_c}; }

void CheckMatrix(const Gemm& g, const Stored& s, index_t lead, int device, const char* what) {
  Require(s.rows <= 1 || lead >= s.length, "a matrix product on the GPU: the rows of ", what, " have ", s.length,
          " elements and begin ", lead, " apart");
  if (s.rows == 0 || s.length == 0) return;
  const index_t elements = (g.batch - 1) * s.stride + (s.rows - 1) * s.lead + s.length;
  library::CheckDeviceMemory(s.data, static_cast<std::size_t>(elements) * SizeOf(s.dtype), device, what);
}

// Calls a function that may take memory of the GPU, which is current.
template <typename Call>
BlasStatus UnderPressure(const Gpu& gpu, const Call& call) {
  return gpu.memory->UnderPressure(call, kBlasAllocationFailed);
}

// The library does not say whether it has an algorithm.
struct Unanswered : Error {
  using Error::Error;
};

template <typename E = Error>
void Check(BlasStatus status, const char* function, const Gpu& gpu, const Cublas& lib) {
  if (status != 0)
    throw E(detail::Concat("a matrix product on GPU ", gpu.ordinal, ": ", function, " of ", lib.name, " gives ",
                           lib.cublasLtGetStatusName(status), ": ", lib.cublasLtGetStatusString(status), " (", status,
                           ")"));
}

}  // namespace

// What tells products apart that may have algorithms of their own.
using ProductKey = std::array<std::int64_t, 20>;

// What the streams and graphs of a GPU share: the library's handle, as destroying one waits for the device and ends
// every capture, and the algorithms that it chose, as a library that is asked while a stream is captured may fail.
class SharedBlas {
 public:
  struct Choice {
    MatmulAlgorithm algorithm{};
    std::size_t workspace_bytes = 0;
    bool found = false;
  };

  static SharedBlas& Of(const Gpu& gpu) {
    static auto& all = *new std::array<SharedBlas, Gpu::kMost>;
    return all[static_cast<std::size_t>(gpu.ordinal)];
  }

  void* Handle(Gpu& gpu, const Cublas& lib) {
    const std::lock_guard lock(mutex_);
    if (handle_ != nullptr) return handle_;
    const Using use(gpu);
    void* made = nullptr;
    Check(UnderPressure(gpu, [&] { return lib.cublasLtCreate(&made); }), "cublasLtCreate", gpu, lib);
    return handle_ = made;
  }

  template <typename Ask>
  Choice Find(const ProductKey& key, Ask ask) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = chosen_.find(key); known != chosen_.end()) return known->second;
    }
    const Choice choice = ask();
    if (!choice.found) return choice;  // perhaps only now
    const std::lock_guard lock(mutex_);
    if (chosen_.size() >= kMost) chosen_.clear();
    chosen_[key] = choice;
    return choice;
  }

 private:
  static constexpr std::size_t kMost = 65536;
  std::mutex mutex_;
  void* handle_ = nullptr;
  std::map<ProductKey, Choice> chosen_;
};

// The products of one stream or graph so far, and the memory that they work in.
class BlasHandle {
 public:
  BlasHandle(Gpu& gpu, StreamHandle stream)
      : gpu_(gpu),
        stream_(stream),
        lib_(UseCublas()),
        shared_(SharedBlas::Of(gpu)),
        handle_(shared_.Handle(gpu, lib_)) {}
  ~BlasHandle() { library::Free(workspace_); }  // of a graph, too, which runs in any stream
  BlasHandle(const BlasHandle&) = delete;
  BlasHandle& operator=(const BlasHandle&) = delete;

  bool Fits(const Gemm& g) {
    const std::lock_guard lock(mutex_);
    return PlanFor(g).choice.found;
  }

  void Run(const Gemm& g) {
    const std::lock_guard lock(mutex_);
    Plan& plan = PlanFor(g);
    Require(plan.choice.found, "a matrix product on the GPU: ", lib_.name, " has none of ", g.m, " x ", g.k, " by ",
            g.k, " x ", g.n, " in ", Name(g.dtype),
            g.epilogue == Epilogue::kNone
                ? ""
                : " with this epilogue; ask CanRun, and launch a kernel of your own behind the plain product");
    if (plan.choice.workspace_bytes > 0 && workspace_ == nullptr)
      workspace_ = library::AllocateInOrder(kWorkspaceBytes, stream_);
    if (HasBias(g)) Set(plan.product.get(), kBiasPointer, g.bias);
    const float alpha = static_cast<float>(g.alpha), beta = static_cast<float>(g.beta);
    const bool wide = g.dtype == DType::kFloat64;
    const BlasStatus status = UnderPressure(gpu_, [&] {
      return lib_.cublasLtMatmul(handle_, plan.product.get(), wide ? static_cast<const void*>(&g.alpha) : &alpha, g.b,
                                 plan.b.get(), g.a, plan.a.get(), wide ? static_cast<const void*>(&g.beta) : &beta, g.c,
                                 plan.c.get(), g.c, plan.c.get(), &plan.choice.algorithm, workspace_,
                                 workspace_ == nullptr ? 0 : kWorkspaceBytes, stream_);
    });
    Check(status, "cublasLtMatmul");
  }

 private:
  using Object = std::unique_ptr<void, BlasStatus (*)(void*)>;
  struct Plan {
    Object product, a, b, c;
    SharedBlas::Choice choice{};
  };

  void Check(BlasStatus status, const char* function) const { cuda::Check(status, function, gpu_, lib_); }
  template <typename T>
  void Set(void* product, MatmulAttribute attribute, const T& value) const {
    Check(lib_.cublasLtMatmulDescSetAttribute(product, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
  }

  Object Layout(const Gemm& g, const Stored& s) const {
    void* layout = nullptr;
    Check(lib_.cublasLtMatrixLayoutCreate(&layout, RealOf(s.dtype), static_cast<std::uint64_t>(s.length),
                                          static_cast<std::uint64_t>(s.rows), s.lead),
          "cublasLtMatrixLayoutCreate");
    Object object(layout, lib_.cublasLtMatrixLayoutDestroy);
    const auto batch = static_cast<std::int32_t>(g.batch);
    Check(lib_.cublasLtMatrixLayoutSetAttribute(layout, kBatchCount, &batch, sizeof batch),
          "cublasLtMatrixLayoutSetAttribute");
    Check(lib_.cublasLtMatrixLayoutSetAttribute(layout, kBatchStride, &s.stride, sizeof s.stride),
          "cublasLtMatrixLayoutSetAttribute");
    return object;
  }

  // The library's matrices are stored by columns: what it takes for a matrix is the transpose of ours, and the
  // transpose of the product is op(b)^T . op(a)^T.
  Plan& PlanFor(const Gemm& g) {
    const bool tf32 = g.dtype == DType::kFloat32 && Tf32Allowed();
    const auto bias_alignment = HasBias(g) ? AlignmentOf(g.bias) : 0;
    const ProductKey key = {static_cast<int>(g.dtype),
                            g.transpose_a,
                            g.transpose_b,
                            g.m,
                            g.n,
                            g.k,
                            g.lda,
                            g.ldb,
                            g.ldc,
                            g.batch,
                            g.stride_a,
                            g.stride_b,
                            g.stride_c,
                            static_cast<int>(g.epilogue),
                            tf32,
                            AlignmentOf(g.a),
                            AlignmentOf(g.b),
                            AlignmentOf(g.c),
                            bias_alignment,
                            static_cast<int>(FactorType(g))};
    const auto known = plans_.find(key);
    if (known != plans_.end()) return known->second;
    if (plans_.size() >= kMostPlans) plans_.clear();

    const bool wide = g.dtype == DType::kFloat64;
    void* product = nullptr;
    Check(lib_.cublasLtMatmulDescCreate(&product,
                                        wide   ? kCompute64
                                        : tf32 ? kCompute32Tf32
                                               : kCompute32,
                                        wide ? kReal64 : kReal32),
          "cublasLtMatmulDescCreate");
    Plan plan{Object(product, lib_.cublasLtMatmulDescDestroy), Layout(g, A(g)), Layout(g, B(g)), Layout(g, C(g))};
    Set(product, kTransposeA, static_cast<std::int32_t>(g.transpose_b));
    Set(product, kTransposeB, static_cast<std::int32_t>(g.transpose_a));
    Set(product, kEpilogue, static_cast<std::uint32_t>(Number(g.epilogue)));
    if (HasBias(g)) Set(product, kBiasPointer, g.bias);

    plan.choice = shared_.Find(key, [&] { return Choose(g, plan); });
    return plans_.emplace(key, std::move(plan)).first->second;
  }

  SharedBlas::Choice Choose(const Gemm& g, const Plan& plan) {
    void* preference = nullptr;
    Check(lib_.cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    const Object owner(preference, lib_.cublasLtMatmulPreferenceDestroy);
    const auto prefer = [&](PreferenceAttribute attribute, const auto& value) {
      Check(lib_.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
            "cublasLtMatmulPreferenceSetAttribute");
    };
    prefer(kMaxWorkspace, std::uint64_t{kWorkspaceBytes});
    prefer(kAlignmentA, AlignmentOf(g.b));
    prefer(kAlignmentB, AlignmentOf(g.a));
    prefer(kAlignmentC, AlignmentOf(g.c));
    prefer(kAlignmentD, AlignmentOf(g.c));
    // Parts of a sum are joined in f32, not in the 16 bits of the result.
    if (IsHalf(g.dtype)) prefer(kReductionSchemes, std::uint32_t{kReductionInComputeType});
    MatmulHeuristic best{};
    int count = 0;
    const BlasStatus status = UnderPressure(gpu_, [&] {
      return lib_.cublasLtMatmulAlgoGetHeuristic(handle_, plan.product.get(), plan.b.get(), plan.a.get(), plan.c.get(),
                                                 plan.c.get(), preference, 1, &best, &count);
    });
    // What a library does not know of epilogues, it may call invalid.
    const bool says_none =
        status == kBlasNotSupported || (status == kBlasInvalidValue && g.epilogue != Epilogue::kNone);
    if (!says_none) cuda::Check<Unanswered>(status, "cublasLtMatmulAlgoGetHeuristic", gpu_, lib_);
    const bool found =
        status == 0 && count > 0 && best.state == 0 && (!HasBias(g) || AlignmentOf(g.bias) >= kBiasAlignment);
    return {best.algorithm, best.workspace_bytes, found};
  }

  Gpu& gpu_;
  const StreamHandle stream_;
  const Cublas& lib_;
  SharedBlas& shared_;
  void* const handle_;  // the library's
  std::mutex mutex_;  // of what follows
  void* workspace_ = nullptr;
  std::map<ProductKey, Plan> plans_;
};

namespace {

// That of a stream; a graph has one of its own, whose memory nobody else works in.
std::shared_ptr<BlasHandle> BlasOf(StreamState& state) {
  const std::lock_guard lock(state.mutex);
  std::shared_ptr<BlasHandle>& handle = state.captured != nullptr ? state.captured->blas : state.blas;
  if (handle == nullptr) handle = std::make_shared<BlasHandle>(state.gpu, state.handle);
  return handle;
}

void CheckGemm(const Gemm& g, int device) {
  (void)RealOf(g.dtype);
  Require(FactorType(g) == g.dtype || (IsHalf(FactorType(g)) && g.dtype == DType::kFloat32),
          "a matrix product on the GPU of ", Name(FactorType(g)), " is of that dtype",
          IsHalf(FactorType(g)) ? " or f32" : "", ", not of ", Name(g.dtype));
  Require(g.m >= 0 && g.n >= 0 && g.k >= 0 && g.batch >= 0, "a matrix product on the GPU of extents ", g.m, ", ", g.n,
          ", ", g.k, ", ", g.batch);
  Require(g.batch < (index_t{1} << 31), "a batch of ", g.batch,
          " matrix products on the GPU; cuBLASLt takes fewer than 2^31");
  Require(g.batch <= 1 || g.stride_c != 0, "a batch of matrix products on the GPU that all store to the same matrix");
  CheckMatrix(g, A(g), g.lda, device, "the left matrix");
  CheckMatrix(g, B(g), g.ldb, device, "the right matrix");
  CheckMatrix(g, C(g), g.ldc, device, "the result");
  if (HasBias(g))
    library::CheckDeviceMemory(g.bias, static_cast<std::size_t>(g.n) * SizeOf(g.dtype), device, "the bias");
}

// A sum of nothing: 0, or beta * c for the two beta that need no arithmetic.
void WithoutTerms(const Gemm& g, Gpu& gpu, StreamHandle stream) {
  Require(g.epilogue == Epilogue::kNone && (g.beta == 0 || g.beta == 1),
          "a matrix product on the GPU of matrices with no column has no epilogue, and beta 0 or 1; beta ", g.beta,
          " was given");
  if (g.beta == 1) return;
  const std::size_t size = SizeOf(g.dtype), width = static_cast<std::size_t>(g.n) * size;
  for (index_t k = 0; k < g.batch; ++k)
    gpu.Check(gpu.driver.cuMemsetD2D8Async(
                  Address(static_cast<char*>(g.c) + static_cast<std::size_t>(k * g.stride_c) * size),
                  static_cast<std::size_t>(C(g).lead) * size, 0, width, static_cast<std::size_t>(g.m), stream),
              "cuMemsetD2D8Async", "a matrix product on the GPU of matrices with no column");
}

bool Fits(const Gemm& gemm, StreamState& state) {
  if (gemm.m == 0 || gemm.n == 0 || gemm.batch == 0) return true;
  if (gemm.k == 0) return gemm.epilogue == Epilogue::kNone && (gemm.beta == 0 || gemm.beta == 1);
  const Using use(state.gpu);
  return BlasOf(state)->Fits(gemm);
}

}  // namespace

bool library::CanRun(const Gemm& gemm, StreamHandle stream) {
  const auto state = StateOf(stream);
  CheckGemm(gemm, state->gpu.ordinal);
  return Fits(gemm, *state);
}

std::optional<bool> HasGemm(const Gemm& gemm, StreamHandle stream) {
  try {
    return Fits(gemm, *StateOf(stream));
  } catch (const Unanswered&) { return std::nullopt; }
}

void library::Run(const Gemm& gemm, StreamHandle stream) {
  const auto state = StateOf(stream);
  CheckGemm(gemm, state->gpu.ordinal);
  if (gemm.m == 0 || gemm.n == 0 || gemm.batch == 0) return;
  const Using use(state->gpu);
  static const std::string& product = *new std::string("a matrix product of cuBLASLt");
  state->gpu.last_kernel.store(&product, std::memory_order_relaxed);
  if (gemm.k == 0) WithoutTerms(gemm, state->gpu, stream);
  else BlasOf(*state)->Run(gemm);
  if (stream == nullptr) state->gpu.null_stream_used = true;
}

void library::AllowTf32(bool allow) noexcept { tf32_allowed = allow; }
bool Tf32Allowed() noexcept { return tf32_allowed.load(std::memory_order_relaxed); }

void library::CreateBlasHandle(StreamHandle stream) { (void)BlasOf(*StateOf(stream)); }
void library::DestroyBlasHandle(StreamHandle stream) {
  const auto state = StateOf(stream);
  std::shared_ptr<BlasHandle> dying;
  const std::lock_guard lock(state->mutex);
  dying.swap(state->blas);
}

}  // namespace umbra::cuda
