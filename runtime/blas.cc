#include "runtime/blas.h"
#include "runtime/cpu_info.h"
#include "runtime/environment.h"
#include "runtime/loop_gemm.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <type_traits>

namespace umbra::runtime {

namespace {

constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;  // as CBLAS numbers them

template <typename T>
using CblasGemm = void (*)(int, int, int, int, int, int, T, const T*, int, const T*, int, T, T*, int);

template <typename T>
using CblasGemv = void (*)(int, int, int, int, T, const T*, int, const T*, int, T, T*, int);

template <typename T>
struct Products {
  CblasGemm<T> gemm = nullptr;
  CblasGemv<T> gemv = nullptr;
};

struct Blas {
  std::string name, problem, core;
  Products<float> f32;
  Products<double> f64;
  void (*set_threads)(int) = nullptr;
  int (*get_threads)() = nullptr;
};

// The processor that OpenBLAS has chosen its kernels for; empty for another library.
std::string CoreOf(void* library) {
  const auto core = reinterpret_cast<char* (*)()>(dlsym(library, "openblas_get_corename"));
  return core == nullptr ? "" : core();
}

// OpenBLAS takes a processor that is newer than itself for one with SSE3, whose kernels are several times slower. Then
// it is opened again and told of one with the same instructions, unless the program had loaded it already or the user
// chose.
void* OpenForThisCpu(const char* name) {
  constexpr const char* kChoice = "OPENBLAS_CORETYPE";
  if (void* const loaded = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); loaded != nullptr) return loaded;
  void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr || CoreOf(library) != "Prescott" || !CpuRuns("avx2") || std::getenv(kChoice) != nullptr)
    return library;
  dlclose(library);
  setenv(kChoice, CpuRuns("avx512") ? "SkylakeX" : "Haswell", 1);
  void* const again = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  unsetenv(kChoice);
  return again;
}

// Makes `library` the BLAS; says why it cannot be, or nothing.
std::string Use(const char* name, Blas* blas) {
  void* library = OpenForThisCpu(name);
  if (library == nullptr) return dlerror();
  blas->f32 = {reinterpret_cast<CblasGemm<float>>(dlsym(library, "cblas_sgemm")),
               reinterpret_cast<CblasGemv<float>>(dlsym(library, "cblas_sgemv"))};
  blas->f64 = {reinterpret_cast<CblasGemm<double>>(dlsym(library, "cblas_dgemm")),
               reinterpret_cast<CblasGemv<double>>(dlsym(library, "cblas_dgemv"))};
  if (blas->f32.gemm == nullptr || blas->f64.gemm == nullptr) {
    blas->f32 = {};
    blas->f64 = {};
    dlclose(library);
    return "it has no cblas_sgemm and cblas_dgemm";
  }
  blas->set_threads = reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads"));
  blas->get_threads = reinterpret_cast<int (*)()>(dlsym(library, "openblas_get_num_threads"));
  blas->name = name;
  blas->core = CoreOf(library);
  return "";
}

[[gnu::cold]] Blas Open() {
  Blas blas;
  const std::string chosen = ReadEnvironment().blas;
  if (!chosen.empty()) {
    const std::string problem = Use(chosen.c_str(), &blas);
    if (problem.empty()) return blas;
    blas.problem = "UMBRA_BLAS=" + chosen + " cannot be used: " + problem;
  }
  for (const char* name : {"libopenblas.so.0", "libblis.so.4", "libmkl_rt.so.2", "libcblas.so.3", "libblas.so.3"})
    if (Use(name, &blas).empty()) break;
  return blas;
}

const Blas& TheBlas() {
  static const Blas blas = Open();
  return blas;
}

// The BLAS for a product. Who chose one that cannot be used hears it once.
const Blas& BlasForUse() {
  static const Blas& blas = []() -> const Blas& {
    const Blas& opened = TheBlas();
    if (!opened.problem.empty())
      std::fprintf(stderr, "umbra: warning: %s; %s is used; name another library, or unset UMBRA_BLAS\n",
                   opened.problem.c_str(), opened.name.empty() ? "a plain loop" : opened.name.c_str());
    return opened;
  }();
  return blas;
}

template <typename T>
void AnyGemm(int ta, int tb, long long m, long long n, long long k, T alpha, const T* a, long long lda, const T* b,
             long long ldb, T beta, T* c, long long ldc) {
  if (m <= 0 || n <= 0) return;
  constexpr long long kMax = std::numeric_limits<int>::max();
  const Products<T>* products;
  if constexpr (std::is_same_v<T, float>) products = &BlasForUse().f32;
  else products = &BlasForUse().f64;
  const bool fits = std::max({m, n, k, lda, ldb, ldc}) <= kMax;
  if (products->gemm == nullptr || !fits || k <= 0) {
    LoopGemm(ta != 0, tb != 0, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    return;
  }
  // CBLAS wants leading dimensions of at least 1 and of the row length, even for one row.
  const auto lead = [](long long given, long long columns) {
    return static_cast<int>(std::max({given, columns, 1LL}));
  };
  // A product with a vector: GEMM would pack the matrix for one use of each element, and takes four times as long.
  const bool column = n == 1, row = m == 1;
  if (products->gemv != nullptr && (column || row)) {
    const bool transpose = column ? ta != 0 : tb == 0;
    const T *const matrix = column ? a : b, *const vector = column ? b : a;
    const long long rows = column ? (ta ? k : m) : (tb ? n : k), columns = column ? (ta ? m : k) : (tb ? k : n);
    const long long step = column ? (tb ? 1 : ldb) : (ta ? lda : 1), out = column ? ldc : 1;
    // Some BLAS scale by a beta of 0 what they should not read.
    if (beta == T(0))
      for (long long i = 0; i < (column ? m : n); ++i) c[i * std::max(out, 1LL)] = T(0);
    products->gemv(kRowMajor, transpose ? kTranspose : kNoTranspose, static_cast<int>(rows), static_cast<int>(columns),
                   alpha, matrix, lead(column ? lda : ldb, columns), vector, static_cast<int>(std::max(step, 1LL)),
                   beta == T(0) ? T(1) : beta, c, static_cast<int>(std::max(out, 1LL)));
    return;
  }
  products->gemm(kRowMajor, ta ? kTranspose : kNoTranspose, tb ? kTranspose : kNoTranspose, static_cast<int>(m),
                 static_cast<int>(n), static_cast<int>(k), alpha, a, lead(lda, ta ? m : k), b, lead(ldb, tb ? k : n),
                 beta, c, lead(ldc, n));
}

}  // namespace

const std::string& BlasName() { return TheBlas().name; }
const std::string& BlasProblem() { return TheBlas().problem; }
const std::string& BlasCore() { return TheBlas().core; }

bool BlasMayRunSideBySide() {
  const Blas& blas = TheBlas();
  return blas.f32.gemm == nullptr || (blas.set_threads != nullptr && blas.get_threads != nullptr);
}

BlasThreads::BlasThreads(int threads) {
  const Blas& blas = TheBlas();
  if (blas.set_threads == nullptr || blas.get_threads == nullptr || threads <= 0) return;
  const int now = blas.get_threads();
  if (now == threads) return;
  before_ = now;
  blas.set_threads(threads);
}

BlasThreads::~BlasThreads() {
  if (before_ > 0) TheBlas().set_threads(before_);
}

}  // namespace umbra::runtime

extern "C" {

__attribute__((visibility("default"))) void umbra_gemm_f32(int ta, int tb, long long m, long long n, long long k,
                                                           float alpha, const float* a, long long lda, const float* b,
                                                           long long ldb, float beta, float* c, long long ldc) {
  umbra::runtime::AnyGemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

__attribute__((visibility("default"))) void umbra_gemm_f64(int ta, int tb, long long m, long long n, long long k,
                                                           double alpha, const double* a, long long lda,
                                                           const double* b, long long ldb, double beta, double* c,
                                                           long long ldc) {
  umbra::runtime::AnyGemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

}  // extern "C"
