// Matrix products of a GPU, eager ones of the expressions among them, against stand-ins for the driver and cuBLASLt.
#include "umbra/cuda_gemm.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

#include "runtime/cuda/cublas.h"
#include "tests/support/cublas_stand_in.h"
#include "tests/support/cuda_stand_in.h"
#include "tests/support/testing.h"
#include "umbra/tensor.h"

namespace umbra {
namespace {

const int kChosen =
    setenv("UMBRA_CUDA_DRIVER", UMBRA_CUDA_STAND_IN, 1) + setenv("UMBRA_CUBLASLT", UMBRA_CUBLAS_STAND_IN, 1);

class CudaGemm : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(kChosen, 0);
    SetDevice<gpu>(0);
    cuda::DestroyBlasHandle(nullptr);
    stand_in::Defer(true);
  }
  void TearDown() override {
    cuda::DestroyBlasHandle(nullptr);
    cuda::AllowTf32(false);
    stand_in::Defer(false);
    EXPECT_EQ(stand_in::Allocations(), 0u);
  }
  std::mt19937 random_{7};

  template <int dim, typename DType>
  TensorContainer<cpu, dim, DType> Draw(const Shape<dim>& shape) {
    TensorContainer<cpu, dim, DType> t(shape);
    const Shape<2> flat = shape.FlatTo2D();
    for (index_t y = 0; y < flat[0]; ++y)
      for (index_t x = 0; x < flat[1]; ++x)
        t.dptr_[y * (dim == 1 ? 0 : t.stride_) + x] =
            static_cast<float>(std::uniform_int_distribution<int>(-8, 8)(random_)) / 4.0f;
    return t;
  }
};

template <int dim, typename DType>
TensorContainer<gpu, dim, DType> There(const TensorContainer<cpu, dim, DType>& host, Stream<gpu>* stream) {
  TensorContainer<gpu, dim, DType> t(host.shape_);
  t.set_stream(stream);
  Copy<dim, DType>(t, host, stream);
  return t;
}

template <int dim, typename DType>
void ExpectEqual(const Tensor<gpu, dim, DType>& there, const Tensor<cpu, dim, DType>& expected, Stream<gpu>* stream) {
  TensorContainer<cpu, dim, DType> back(expected.shape_);
  Copy<dim, DType>(back, there, stream);
  if (stream != nullptr) stream->Wait();
  const Shape<2> flat = expected.shape_.FlatTo2D();
  for (index_t y = 0; y < flat[0]; ++y)
    for (index_t x = 0; x < flat[1]; ++x)
      ASSERT_EQ(static_cast<double>(back.dptr_[y * (dim == 1 ? 0 : back.stride_) + x]),
                static_cast<double>(expected.dptr_[y * (dim == 1 ? 0 : expected.stride_) + x]))
          << y << ", " << x;
}

// The numbers are quarters: every sum is exact in f32, f64 and, rounded once, in f16 and bf16 as on the CPU.
template <typename DType>
class CudaDot : public CudaGemm {};
using DTypes = ::testing::Types<float, double, half_t, bf16_t>;
TYPED_TEST_SUITE(CudaDot, DTypes);

TYPED_TEST(CudaDot, OfExpressionsEqualsTheCpus) {
  using T = TypeParam;
  for (const bool in_stream : {true, false}) {
    Stream<gpu>* const stream = in_stream ? NewStream<gpu>() : nullptr;
    {
      const auto a = this->template Draw<2, T>(Shape2(5, 7)), b = this->template Draw<2, T>(Shape2(7, 3));
      const auto at = this->template Draw<2, T>(Shape2(7, 5)), bt = this->template Draw<2, T>(Shape2(3, 7));
      const auto u = this->template Draw<1, T>(Shape1(7)), v = this->template Draw<1, T>(Shape1(3));
      auto c = this->template Draw<2, T>(Shape2(5, 3)), d = this->template Draw<2, T>(Shape2(7, 3));
      auto r = this->template Draw<1, T>(Shape1(3));
      auto ga = There(a, stream), gb = There(b, stream), gat = There(at, stream), gbt = There(bt, stream),
           gc = There(c, stream), gd = There(d, stream);
      auto gu = There(u, stream), gv = There(v, stream), gr = There(r, stream);
      gc = dot(ga, gb);
      c = dot(a, b);
      ExpectEqual<2, T>(gc, c, stream);
      gc += dot(gat.T(), gb);
      c += dot(at.T(), b);
      gc -= dot(ga, gbt.T());
      c -= dot(a, bt.T());
      ExpectEqual<2, T>(gc, c, stream);
      gc = T(2.0f) * dot(gat.T(), gbt.T());
      c = T(2.0f) * dot(at.T(), bt.T());
      ExpectEqual<2, T>(gc, c, stream);
      gr = dot(gu, gb);
      r = dot(u, b);
      ExpectEqual<1, T>(gr, r, stream);
      gd = dot(gu.T(), gv);
      d = dot(u.T(), v);
      ExpectEqual<2, T>(gd, d, stream);
      // A row range of a padded matrix.
      Tensor<gpu, 2, T> rows = gc.Slice(1, 3);
      Tensor<cpu, 2, T> host_rows = c.Slice(1, 3);
      rows = dot(ga.Slice(1, 3), gb);
      host_rows = dot(a.Slice(1, 3), b);
      ExpectEqual<2, T>(gc, c, stream);
    }
    if (in_stream) DeleteStream(stream);
  }
}

TYPED_TEST(CudaDot, OfBatchesIsOneCall) {
  using T = TypeParam;
  Stream<gpu> stream;
  const auto a = this->template Draw<3, T>(Shape3(4, 5, 7)), b = this->template Draw<3, T>(Shape3(4, 3, 7));
  auto c = this->template Draw<3, T>(Shape3(4, 5, 3));
  auto ga = There(a, &stream), gb = There(b, &stream), gc = There(c, &stream);
  gc = batch_dot<false, true>(ga, gb);
  c = batch_dot<false, true>(a, b);
  ExpectEqual<3, T>(gc, c, &stream);
  gc += batch_dot<false, true>(ga, gb);
  c += batch_dot<false, true>(a, b);
  ExpectEqual<3, T>(gc, c, &stream);
  TensorContainer<gpu, 3, T> none(Shape3(0, 5, 3)), none_a(Shape3(0, 5, 7)), none_b(Shape3(0, 3, 7));
  none = batch_dot<false, true>(none_a, none_b);
}

TEST_F(CudaGemm, SumsOfNothing) {
  Stream<gpu> stream;
  auto c = Draw<2, float>(Shape2(5, 3));
  auto gc = There(c, &stream);
  TensorContainer<gpu, 2> a(Shape2(5, 0)), b(Shape2(0, 3));
  gc += dot(a, b);
  ExpectEqual<2, float>(gc, c, &stream);
  gc = dot(a, b);
  c = 0.0f;
  ExpectEqual<2, float>(gc, c, &stream);
}

TEST_F(CudaGemm, Epilogues) {
  using cuda::Epilogue;
  Stream<gpu> stream;
  const auto a = Draw<2, float>(Shape2(6, 8)), b = Draw<2, float>(Shape2(8, 4));
  const auto bias = Draw<1, float>(Shape1(8));
  const auto ga = There(a, &stream), gb = There(b, &stream);
  const auto gbias = There(bias, &stream);
  TensorContainer<gpu, 2> gc(Shape2(6, 4));
  cuda::Gemm gemm;
  gemm.m = 6, gemm.n = 4, gemm.k = 8;
  gemm.a = ga.dptr_, gemm.lda = ga.stride_, gemm.b = gb.dptr_, gemm.ldb = gb.stride_, gemm.c = gc.dptr_,
  gemm.ldc = gc.stride_;
  gemm.alpha = 0.5;
  TensorContainer<cpu, 2> product(Shape2(6, 4)), back(Shape2(6, 4));
  product = 0.5f * dot(a, b);
  for (const Epilogue epilogue :
       {Epilogue::kNone, Epilogue::kBias, Epilogue::kRelu, Epilogue::kBiasRelu, Epilogue::kGelu, Epilogue::kBiasGelu}) {
    gemm.epilogue = epilogue;
    gemm.bias = gbias.dptr_;
    EXPECT_TRUE(cuda::CanRun(gemm, stream.handle_));
    cuda::Run(gemm, stream.handle_);
    Copy<2, float>(back, gc, &stream);
    stream.Wait();
    for (index_t i = 0; i < 6; ++i)
      for (index_t j = 0; j < 4; ++j) {
        float x = product[i][j];
        if (epilogue == Epilogue::kBias || epilogue == Epilogue::kBiasRelu || epilogue == Epilogue::kBiasGelu)
          x += bias[j];
        if (epilogue == Epilogue::kRelu || epilogue == Epilogue::kBiasRelu) x = std::max(x, 0.0f);
        if (epilogue == Epilogue::kGelu || epilogue == Epilogue::kBiasGelu)
          x = static_cast<float>(0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))));
        EXPECT_FLOAT_EQ(back[i][j], x) << static_cast<int>(epilogue);
      }
  }
  // A bias that the library cannot load in vectors, and f64, which has no such epilogue.
  gemm.bias = gbias.dptr_ + 1;
  EXPECT_FALSE(cuda::CanRun(gemm, stream.handle_));
  EXPECT_SAYS(
      "none of 6 x 8 by 8 x 4 in f32 with this epilogue; ask CanRun, and launch a kernel of your own behind the plain product",
      cuda::Run(gemm, stream.handle_));
  gemm.bias = gbias.dptr_;
  gemm.dtype = DType::kFloat64;
  gemm.m = gemm.n = gemm.k = 2;
  gemm.lda = gemm.ldb = gemm.ldc = 2;
  EXPECT_FALSE(cuda::CanRun(gemm, stream.handle_));
  gemm.k = 0;
  EXPECT_FALSE(cuda::CanRun(gemm, stream.handle_));
  EXPECT_SAYS("of matrices with no column has no epilogue", cuda::Run(gemm, stream.handle_));
}

TEST_F(CudaGemm, Tf32ByChoiceOnly) {
  Stream<gpu> stream;
  TensorContainer<cpu, 2> a(Shape2(1, 1), 1.0009766f), one(Shape2(1, 1), 1.0f),
      c(Shape2(1, 1));  // 1 + 2^-10 + a little
  a[0][0] = 1.0f + std::ldexp(1.0f, -12);
  const auto ga = There(a, &stream), g1 = There(one, &stream);
  auto gc = There(c, &stream);
  gc = dot(ga, g1);
  ExpectEqual<2, float>(gc, a, &stream);
  cuda::AllowTf32(true);
  gc = dot(ga, g1);
  ExpectEqual<2, float>(gc, one, &stream);
}

// The handle of a stream and its workspace come and go with it; a graph works in memory of its own.
TEST_F(CudaGemm, HandlesAndWorkspaces) {
  const auto a = Draw<2, float>(Shape2(16, 16));
  auto* const stream = NewStream<gpu>();
  auto ga = There(a, stream), gc = There(a, stream);
  stream->Wait();
  const std::size_t before = cuda::GetMemoryStatistics(0).in_use;
  stream->CreateBlasHandle();
  EXPECT_EQ(cuda::GetMemoryStatistics(0).in_use, before);
  gc = dot(ga, ga);
  EXPECT_EQ(cuda::GetMemoryStatistics(0).in_use, before + (std::size_t{32} << 20));
  gc = dot(ga, ga);
  EXPECT_EQ(cuda::GetMemoryStatistics(0).in_use, before + (std::size_t{32} << 20));
  {
    const cuda::Graph graph = stream->Capture([&] { gc = dot(ga, ga.T()); });
    EXPECT_EQ(cuda::GetMemoryStatistics(0).in_use, before + (std::size_t{64} << 20));
    stream->DestroyBlasHandle();
    stream->Launch(graph);
    TensorContainer<cpu, 2> expected(a.shape_);
    expected = dot(a, a.T());
    ExpectEqual<2, float>(gc, expected, stream);
  }
  EXPECT_EQ(cuda::GetMemoryStatistics(0).in_use, before);
  gc = dot(ga, ga);
  DeleteStream(stream);
  EXPECT_EQ(cuda::GetMemoryStatistics(0).in_use, before);
  EXPECT_SAYS("a Stream<gpu> is used after it was deleted", gc = dot(ga, ga));
}

// Destroying one would wait for the device, and end every capture.
TEST_F(CudaGemm, OneHandleOfTheLibraryForEachGpu) {
  const auto a = Draw<2, float>(Shape2(16, 16));
  for (const int device : {0, 1}) {
    SetDevice<gpu>(device);
    Stream<gpu>().CreateBlasHandle();
    const int made = stand_in::Calls("cublasLtCreate");
    Stream<gpu> one, two;
    auto ga = There(a, &one), gb = There(a, &one);
    two.CreateBlasHandle();
    const cuda::Graph graph = one.Capture([&] {
      gb = dot(ga, ga);
      two.DestroyBlasHandle();
    });
    one.Launch(graph);
    gb = dot(ga, ga);
    EXPECT_EQ(stand_in::Calls("cublasLtCreate"), made) << device;
  }
}

// The library takes memory of its own, which it finds once what is kept for reuse is given back.
TEST_F(CudaGemm, PressureGivesBackWhatIsKept) {
  constexpr int kAllocationFailed = 3;
  stand_in::SetDevices(3);
  SetDevice<gpu>(2);  // where nothing has been made
  Stream<gpu> stream;
  index_t n = 4;  // each product is a new one
  for (const char* function : {"cublasLtCreate", "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul"}) {
    const auto a = Draw<2, float>(Shape2(n, n));
    auto ga = There(a, &stream), gb = There(a, &stream);
    TensorContainer<cpu, 2> expected(a.shape_);
    expected = dot(a, a);
    const int trims = stand_in::Calls("cuMemPoolTrimTo");
    stand_in::Fail(function, kAllocationFailed, 2);
    EXPECT_SAYS(function, gb = dot(ga, ga));
    stand_in::Fail(function, kAllocationFailed);
    EXPECT_EQ(MessageOf([&] { gb = dot(ga, ga); }), "no error") << function;
    EXPECT_EQ(stand_in::Calls("cuMemPoolTrimTo"), trims + 2) << function;
    ExpectEqual<2, float>(gb, expected, &stream);
    ++n;
  }
  stand_in::SetDevices(2);
}

// What a library answers that is asked for algorithms while a stream is captured.
TEST_F(CudaGemm, CapturesOfKnownProductsAskForNoAlgorithm) {
  constexpr int kInternalError = 14;
  const auto a = Draw<2, float>(Shape2(24, 24));
  Stream<gpu> stream, other;
  auto ga = There(a, &stream), gc = There(a, &stream);
  gc = dot(ga, ga);
  stand_in::RefuseAlgorithms(kInternalError);
  EXPECT_SAYS("cublasLtMatmulAlgoGetHeuristic", gc = dot(ga, ga.T()));
  const cuda::Graph graph = stream.Capture([&] { gc = dot(ga, ga); });
  stand_in::RefuseAlgorithms(0);
  gc = dot(ga, ga.T());
  stream.Launch(graph);
  TensorContainer<cpu, 2> expected(a.shape_);
  expected = dot(a, a);
  ExpectEqual<2, float>(gc, expected, &stream);
}

TEST_F(CudaGemm, BadOperands) {
  Stream<gpu> stream;
  const auto a = Draw<2, float>(Shape2(4, 4));
  auto ga = There(a, &stream), gc = There(a, &stream);
  EXPECT_SAYS("dot: the destination overlaps an operand", ga = dot(ga, gc));
  EXPECT_SAYS("do not give shape (4,4)", gc = dot(ga, ga.Slice(0, 3)));
  EXPECT_SAYS("the left matrix is memory of the host (0x", gc = dot(Tensor<gpu, 2>(a.dptr_, a.shape_), ga));
  EXPECT_SAYS("has no memory", gc = dot(Tensor<gpu, 2>(Shape2(4, 4)), ga));
  SetDevice<gpu>(1);
  Stream<gpu> there;
  gc.set_stream(&there);
  EXPECT_SAYS("the left matrix is memory of GPU 0, and the work is on GPU 1", gc = dot(ga, ga));
  SetDevice<gpu>(0);
  cuda::Gemm gemm;
  gemm.dtype = DType::kInt32;
  EXPECT_SAYS("is of f32, f64, f16 or bf16, not of i32", cuda::Run(gemm, nullptr));
  gemm.dtype = DType::kFloat32;
  gemm.m = -1;
  EXPECT_SAYS("a matrix product on the GPU of extents -1", cuda::Run(gemm, nullptr));
  gemm.m = gemm.n = gemm.k = 4;
  gemm.a = gemm.b = ga.dptr_;
  gemm.c = gc.dptr_;
  gemm.lda = 3;
  EXPECT_SAYS("the rows of the left matrix have 4 elements and begin 3 apart", cuda::Run(gemm, nullptr));
  gemm.lda = gemm.ldb = gemm.ldc = 4;
  gemm.batch = 2;
  EXPECT_SAYS("all store to the same matrix", cuda::Run(gemm, nullptr));
}

// The real library, where it is installed, has every function that is called.
TEST(CudaGemmLibrary, HasTheFunctions) {
  void* library = nullptr;
  for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so"})
    if (library == nullptr) library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) GTEST_SKIP() << "no cuBLASLt is installed";
#define UMBRA_EXPECT_FUNCTION(function, result, arguments) EXPECT_NE(dlsym(library, #function), nullptr) << #function;
  UMBRA_CUBLAS_FUNCTIONS(UMBRA_EXPECT_FUNCTION)
}

void Multiply(const char* library) {
  setenv("UMBRA_CUBLASLT", library, 1);
  std::fputs(MessageOf([] { Stream<gpu>().CreateBlasHandle(); }).c_str(), stderr);
  std::exit(0);
}
TEST(CudaGemmDeathTest, WithoutCublas) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(Multiply("/none.so"), ::testing::ExitedWithCode(0),
              "UMBRA_CUBLASLT=/none.so cannot be used: .*install cuBLAS 12 or 13");
  EXPECT_EXIT(Multiply("libm.so.6"), ::testing::ExitedWithCode(0), "libm.so.6 has no cublasLtCreate");
}

}  // namespace
}  // namespace umbra
