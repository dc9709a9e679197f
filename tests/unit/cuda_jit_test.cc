// Expressions of a GPU's tensors: the same C++ on both devices, the GPU being the emulator behind the stand-ins.
#include <gtest/gtest.h>

#include <random>

#include "tests/support/on_gpu.h"
#include "tests/support/testing.h"
#include "umbra/gpu_functions.h"
#include "umbra/tblob.h"

namespace umbra {
namespace {

[[maybe_unused]] const int kChosen = on_gpu::UseStandIns();

class CudaJit : public on_gpu::Test {
 protected:
  void SetUp() override {
    on_gpu::Test::SetUp();
    CompileOptions options;  // of the CPU, whose results are the ones to compare with
    options.engine = Engine::kInterpreter;
    jit::SetOptions(options);
  }

  // A tensor of the CPU with drawn elements, and its copy on the GPU.
  template <int dim, typename DType = float>
  struct Both {
    TensorContainer<cpu, dim, DType> host;
    TensorContainer<gpu, dim, DType> there;
  };
  template <typename DType = float, int dim>
  Both<dim, DType> Draw(const Shape<dim>& shape, Stream<gpu>* stream) {
    Both<dim, DType> both{TensorContainer<cpu, dim, DType>(shape), TensorContainer<gpu, dim, DType>(shape)};
    const Shape<2> flat = shape.FlatTo2D();
    for (index_t y = 0; y < flat[0]; ++y)
      for (index_t x = 0; x < flat[1]; ++x)
        both.host.dptr_[(dim == 1 ? 0 : y * both.host.stride_) + x] = static_cast<DType>(std::uniform_int_distribution<int>(-8, 8)(random_)) / DType(4);
    both.there.set_stream(stream);
    Copy<dim, DType>(both.there, both.host, stream);
    return both;
  }
  template <int dim, typename DType>
  static void ExpectSame(const Both<dim, DType>& both, double tolerance = 0) {
    TensorContainer<cpu, dim, DType> back(both.host.shape_);
    Copy<dim, DType>(back, both.there, both.there.stream_);
    const Shape<2> flat = back.shape_.FlatTo2D();
    for (index_t y = 0; y < flat[0]; ++y)
      for (index_t x = 0; x < flat[1]; ++x) {
        const auto at = [&](const auto& t) { return static_cast<double>(t.dptr_[(dim == 1 ? 0 : y * t.stride_) + x]); };
        ASSERT_NEAR(at(back), at(both.host), tolerance * (1 + std::abs(at(both.host)))) << y << ", " << x;
      }
  }

  std::mt19937 random_{20261121};
};

// The same statement on both devices.
#define ON_BOTH(statement)                     \
  {                                            \
    [&] {                                      \
      auto& Y = y.host; auto& A = a.host; auto& B = b.host; auto& C = c.host; \
      (void)Y, (void)A, (void)B, (void)C;      \
      statement;                               \
    }();                                       \
    [&] {                                      \
      auto& Y = y.there; auto& A = a.there; auto& B = b.there; auto& C = c.there; \
      (void)Y, (void)A, (void)B, (void)C;      \
      statement;                               \
    }();                                       \
  }

TEST_F(CudaJit, Assignments) {
  Stream<gpu> stream;
  auto y = Draw(Shape2(9, 33), &stream), a = Draw(Shape2(9, 33), &stream), b = Draw(Shape2(9, 33), &stream);
  auto c = Draw(Shape1(33), &stream);
  ON_BOTH(Y = A * 2.0f + B);
  ExpectSame(y);
  ON_BOTH(Y += F<op::relu>(A) - broadcast<1>(C, A.shape_));
  ExpectSame(y);
  ON_BOTH(Y = 1.5f);
  ExpectSame(y);
  ON_BOTH(Y *= A);
  ExpectSame(y);
  ON_BOTH(jit(Y) = Y / (A * A + 1.0f));
  ExpectSame(y);
  ON_BOTH(MapExp<sv::minusto>(&Y, B * 3.0f));
  ExpectSame(y);
}

TEST_F(CudaJit, ReductionsMapsAndProducts) {
  Stream<gpu> stream;
  auto y = Draw(Shape1(33), &stream), c = Draw(Shape1(9), &stream);
  auto a = Draw(Shape2(9, 33), &stream), b = Draw(Shape2(33, 33), &stream);
  ON_BOTH(Y = sum_rows(A));
  ExpectSame(y, 1e-6);
  ON_BOTH(jit(Y) += dot(C, A));
  ExpectSame(y, 1e-5);
  {
    auto y = Draw(Shape2(9, 33), &stream);
    ON_BOTH(jit(Y) = F<op::relu>(dot(A, B.T()) + broadcast<0>(C, A.shape_)));
    ExpectSame(y, 1e-5);
    ON_BOTH(Y = dot(A, B));
    ExpectSame(y, 1e-5);
    ON_BOTH(jit(Y) = A / broadcast<0>(reduce_with_axis<red::sum>(F<op::exp>(A), 1), A.shape_));
    ExpectSame(y, 1e-5);
  }
  {
    auto y = Draw(Shape2(33, 9), &stream);
    ON_BOTH(jit(Y) = A.T());
    ExpectSame(y);
  }
}

TEST_F(CudaJit, FunctionsOverTensors) {
  Stream<gpu> stream;
  auto y = Draw(Shape2(9, 33), &stream), a = Draw(Shape2(9, 33), &stream);
  auto b = Draw(Shape1(9), &stream), c = Draw(Shape1(33), &stream);
  for (index_t k = 0; k < 9; ++k) b.host[k] = static_cast<float>(k * 3);
  Copy<1, float>(b.there, b.host, &stream);
  ON_BOTH(Softmax(Y, A));
  ExpectSame(y, 1e-6);
  ON_BOTH(SoftmaxGrad(Y, A, B));
  ExpectSame(y, 1e-6);
  ON_BOTH(SoftmaxGrad(Y, A, B, 6.0f));
  ExpectSame(y, 1e-6);
  ON_BOTH((MapReduceKeepLowest<sv::saveto, red::sum>(&C, A * 2.0f, 0.5f)));
  ExpectSame(c, 1e-5);
  ON_BOTH((MapReduceKeepHighDim<sv::plusto, red::maximum, 0>(&B, A)));
  ExpectSame(b, 1e-6);
  {
    auto y = Draw(Shape1(1), &stream);
    ON_BOTH(VectorDot(Y, C, C));
    ExpectSame(y, 1e-5);
  }
}

TEST_F(CudaJit, BlobsAreTensorsToo) {
  Stream<gpu> stream;
  auto y = Draw(Shape2(4, 8), &stream), a = Draw(Shape2(4, 8), &stream);
  TensorContainer<gpu, 2> dense(Shape2(4, 8), 0.0f, false);
  const TBlob blob(dense);
  Tensor<gpu, 2> whole = blob.get<gpu, 2, float>(&stream);
  whole = a.there * 2.0f;
  blob.FlatTo1D<gpu, float>(&stream) += 1.0f;
  y.there = whole + 0.0f;
  y.host = a.host * 2.0f + 1.0f;
  ExpectSame(y);
  EXPECT_SAYS("device mask", (void)blob.get<cpu, 2, float>());
}

TEST_F(CudaJit, Errors) {
  TensorContainer<gpu, 2> a(Shape2(4, 8)), y(Shape2(4, 8));
  TensorContainer<cpu, 2> host(Shape2(4, 8), 1.0f);
  Tensor<gpu, 2> wrong(host.dptr_, host.shape_, host.stride_, nullptr), none(Shape2(4, 8));
  EXPECT_SAYS("input 'a0', is memory of the host", y = wrong * 2.0f);
  EXPECT_SAYS("output 'dst', is memory of the host", wrong = a * 2.0f);
  EXPECT_SAYS("null", y = none * 2.0f);
  EXPECT_SAYS("must be 3", y = (TensorContainer<gpu, 2>(Shape2(3, 8)) * 2.0f));
  EXPECT_SAYS("in a way that would change the result", y.Slice(0, 3) = y.Slice(1, 4) * 2.0f);
  auto* const stream = NewStream<gpu>();
  y.set_stream(stream);
  DeleteStream(stream);
  EXPECT_SAYS("was deleted", y = a * 2.0f);
  y.set_stream(nullptr);
  y = 3.0f;  // what was there before is still right
  a = y * 2.0f;
  Copy<2, float>(host, a);
  EXPECT_EQ(host[3][7], 6.0f);
}

}  // namespace
}  // namespace umbra
