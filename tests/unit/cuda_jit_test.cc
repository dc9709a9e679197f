// Expressions of a GPU's tensors: the same C++ on both devices, the GPU being the emulator behind the stand-ins.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
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
        both.host.dptr_[(dim == 1 ? 0 : y * both.host.stride_) + x] =
            static_cast<DType>(std::uniform_int_distribution<int>(-8, 8)(random_)) / DType(4);
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
#define ON_BOTH(statement)                \
  {                                       \
    [&] {                                 \
      auto& Y = y.host;                   \
      auto& A = a.host;                   \
      auto& B = b.host;                   \
      auto& C = c.host;                   \
      (void)Y, (void)A, (void)B, (void)C; \
      statement;                          \
    }();                                  \
    [&] {                                 \
      auto& Y = y.there;                  \
      auto& A = a.there;                  \
      auto& B = b.there;                  \
      auto& C = c.there;                  \
      (void)Y, (void)A, (void)B, (void)C; \
      statement;                          \
    }();                                  \
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
  ON_BOTH(SmoothSoftmaxGrad(Y, A, B, 0.25f));
  ExpectSame(y, 1e-6);
  ON_BOTH(SmoothSoftmaxGrad(Y, A, B, 6.0f, 0.25f));
  ExpectSame(y, 1e-6);
  {
    auto y = Draw<half_t>(Shape3(3, 5, 7), &stream), a = Draw<half_t>(Shape3(3, 5, 7), &stream);
    auto b = Draw<half_t>(Shape2(3, 7), &stream);
    b.host = F<op::abs>(b.host);  // up to 2
    Copy<2, half_t>(b.there, b.host, &stream);
    ON_BOTH((Softmax<3, half_t>(Y, A)));
    ExpectSame(y, 1e-3);
    ON_BOTH((Softmax<2, half_t>(Y[1], Y[1])));
    ExpectSame(y, 1e-3);
    ON_BOTH((Softmax<1, half_t>(Y[2][4], A[2][4])));
    ExpectSame(y, 1e-3);
    ON_BOTH((SoftmaxGrad<3, half_t>(Y, A, B)));
    ExpectSame(y, 1e-3);
    ON_BOTH((SmoothSoftmaxGrad<3, half_t>(Y, A, B, half_t(1.0f), 0.5f)));
    ExpectSame(y, 1e-3);
  }
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

TEST_F(CudaJit, TargetsAndMaps) {
  Stream<gpu> stream;
  auto y = Draw(Shape3(3, 5, 33), &stream), a = Draw(Shape3(3, 5, 33), &stream), b = Draw(Shape3(3, 5, 33), &stream),
       c = Draw(Shape3(1, 5, 1), &stream);
  ON_BOTH(slice<1>(Y, 1, 3) = slice<1>(A, 0, 2) * 2.0f);
  ExpectSame(y);
  ON_BOTH(slice(Y, Shape3(0, 2, 3), Shape3(2, 5, 20)) -= slice(B, Shape3(1, 0, 1), Shape3(3, 3, 18)));
  ExpectSame(y);
  ON_BOTH(flip(Y, 2) += Y);
  ExpectSame(y);
  ON_BOTH(concat<0>(Y, A) = concat<0>(A, B));
  ExpectSame(y);
  ExpectSame(a);
  ON_BOTH(slice<0>(flip(Y, 0), 0, 1) = 3.0f);
  ExpectSame(y);
  ON_BOTH(Y += broadcast_to(C, Y.shape_));
  ExpectSame(y);
}

TEST_F(CudaJit, RandomNumbers) {
  Stream<gpu> stream;
  auto y = Draw(Shape2(9, 33), &stream), a = Draw(Shape2(9, 33), &stream), b = Draw(Shape2(9, 33), &stream);
  auto c = Draw(Shape1(33), &stream);
  Random<cpu> host(77);
  Random<gpu> there(77);
  there.set_stream(&stream);
  host.SampleUniform<2>(&y.host, -1, 3);
  there.SampleUniform<2>(&y.there, -1, 3);
  ExpectSame(y);
  host.SampleGaussian<2>(&y.host, 5, 2);
  there.SampleGaussian<2>(&y.there, 5, 2);
  ExpectSame(y, 1e-6);
  {  // without a stream of its own
    TensorContainer<gpu, 1> none(Shape1(33));
    there.SampleUniform<1>(&none);
    host.SampleUniform<1>(&c.host);
    c.there = none * 1.0f;
    ExpectSame(c);
  }
  // Fused, and the same from either device's generator.
  host.Seed(78);
  const auto numbers = host.uniform(a.host.shape_);
  ON_BOTH(Y = F<op::select>(F<op::lt>(numbers, scalar(0.8f)), A * 1.25f, A * 0.0f));
  ExpectSame(y);
  there.Seed(78);
  y.there = there.uniform(y.there.shape_) - numbers;
  y.host = 0.0f;
  ExpectSame(y);
  const auto more = host.uniform(c.host.shape_);
  ON_BOTH(C += more * 2.0f);
  ExpectSame(c);
  Random<gpu, double> wide(~0ull);
  Random<cpu, double> wide_host(~0ull);
  auto doubles = Draw<double>(Shape3(2, 3, 5), &stream);
  wide.SampleUniform<3>(&doubles.there);
  wide_host.SampleUniform<3>(&doubles.host);
  ExpectSame(doubles);
  EXPECT_SAYS("ascending", there.SampleUniform<2>(&y.there, 3, 1));

  host.Seed(5);
  there.Seed(5);
  host.Shuffle<2, float>(&a.host);
  there.Shuffle<2, float>(&a.there);
  ExpectSame(a);
  host.Shuffle<1, float>(&c.host);
  there.Shuffle<1, float>(&c.there);
  ExpectSame(c);
  host.Shuffle<3, double>(&doubles.host);
  there.Shuffle<3, double>(&doubles.there);
  ExpectSame(doubles);
  // Columns of a wider matrix: what lies beside them stays.
  Tensor<cpu, 2> columns(b.host.dptr_ + 3, Shape2(9, 4), b.host.stride_, nullptr);
  Tensor<gpu, 2> columns_there(b.there.dptr_ + 3, Shape2(9, 4), b.there.stride_, &stream);
  host.Shuffle<2, float>(&columns);
  there.Shuffle<2, float>(&columns_there);
  ExpectSame(b);
}

TEST_F(CudaJit, RowsByIndex) {
  Stream<gpu> stream;
  auto y = Draw(Shape2(9, 33), &stream), a = Draw(Shape2(20, 33), &stream);
  auto b = Draw<std::int32_t>(Shape1(20), &stream), c = Draw<std::int32_t>(Shape1(20), &stream);
  for (index_t k = 0; k < 20; ++k) {
    b.host[k] = static_cast<std::int32_t>(k * 7 % 6 + 1);  // rows 0, 7 and 8 are named by none
    c.host[k] = static_cast<std::int32_t>(19 - k);
  }
  Copy<1, std::int32_t>(b.there, b.host, &stream);
  Copy<1, std::int32_t>(c.there, c.host, &stream);
  ON_BOTH(AddTakeGrad(Y, B, A));
  ExpectSame(y, 1e-6);
  ON_BOTH(AddTakeGradLargeBatch(Y, B, C, A));
  ExpectSame(y, 1e-6);
  ON_BOTH(IndexFill(Y, B, A));
  ExpectSame(y, 1e-6);
  EXPECT_SAYS("IndexFill: the shapes", IndexFill(y.there, b.there.Slice(0, 3), a.there));
}

TEST_F(CudaJit, PartsOfOneTensorBetweenEachOthersRows) {
  Stream<gpu> stream;
  auto y = Draw(Shape2(8, 40), &stream), a = Draw(Shape2(1, 1), &stream), b = Draw(Shape2(1, 1), &stream);
  auto c = Draw(Shape1(1), &stream);
  const auto assign = [](const auto& to, const auto& from) { jit(to) = from.T() * 2.0f; };
  const auto part = [](const auto& whole, index_t column) {
    auto t = whole.Slice(0, 8);
    t.dptr_ += column;
    t.shape_ = Shape2(8, 8);
    return t;
  };
  for (const index_t column : {8, 8, 24}) ON_BOTH(assign(part(Y, column), part(Y, 0)));
  ON_BOTH(assign(part(Y, 0), part(Y, 24)));
  ExpectSame(y);
  EXPECT_SAYS("overlaps", assign(part(y.there, 4), part(y.there, 0)));
}

TEST_F(CudaJit, BatchesOfProducts) {
  Stream<gpu> stream;
  auto y = Draw(Shape3(4, 5, 7), &stream), a = Draw(Shape3(4, 5, 6), &stream), b = Draw(Shape3(4, 6, 7), &stream);
  auto c = Draw(Shape3(4, 7, 6), &stream);
  ON_BOTH((BatchGEMM<false, false>(Y, A, B, 2.0f, 0.5f)));
  ExpectSame(y, 1e-5);
  ON_BOTH((BatchGEMM<false, true>(Y, A, C, 1.0f, 0.0f)));
  ExpectSame(y, 1e-5);
  {
    auto y = Draw(Shape3(4, 6, 6), &stream), c = Draw(Shape3(4, 5, 6), &stream);
    ON_BOTH((BatchGEMM<true, false>(Y, A, C, 1.0f, 1.0f)));
    ExpectSame(y, 1e-5);
    EXPECT_SAYS("overlaps", (BatchGEMM<true, false>(y.there, y.there, y.there, 1.0f, 1.0f)));
  }
  EXPECT_SAYS("BatchGEMM: the shapes", (BatchGEMM<true, false>(y.there, a.there, b.there, 1.0f, 0.0f)));
  TensorContainer<gpu, 3> none(Shape3(0, 5, 7)), left(Shape3(0, 5, 6)), right(Shape3(0, 6, 7));
  BatchGEMM<false, false>(none, left, right, 1.0f, 0.0f);
}

TEST_F(CudaJit, Sorting) {
  Stream<gpu> stream;
  for (const index_t n : {1, 2, 3, 37, 64, 100}) {
    SCOPED_TRACE(n);
    auto keys = Draw(Shape1(n), &stream);
    auto values = Draw<double>(Shape1(n), &stream);
    auto segments = Draw<std::int32_t>(Shape1(n), &stream);
    if (n > 3) keys.host[n / 2] = keys.host[1] = std::numeric_limits<float>::quiet_NaN();
    for (index_t k = 0; k < n; ++k) values.host[k] = static_cast<double>(k);
    Copy<1, float>(keys.there, keys.host, &stream);
    Copy<1, double>(values.there, values.host, &stream);
    for (const bool ascending : {true, false}) {
      SortByKey(keys.host, values.host, ascending);
      SortByKey(keys.there, values.there, ascending);
      ExpectSame(values);  // among them equal keys, and NaN at the end
    }
    const index_t numbers = n > 3 ? n - 2 : n;
    TensorContainer<cpu, 1> back(keys.host.shape_);
    Copy<1, float>(back, keys.there, &stream);
    for (index_t k = 0; k < n; ++k) EXPECT_EQ(std::isnan(back[k]), k >= numbers);
    SortByKey(segments.host, values.host);
    SortByKey(segments.there, values.there);
    ExpectSame(segments);
    ExpectSame(values);
    for (index_t k = 0; k < n; ++k) segments.host[k] = static_cast<std::int32_t>(k * 7 % 3);
    Copy<1, std::int32_t>(segments.there, segments.host, &stream);
    VectorizedSort(values.host, segments.host);
    VectorizedSort(values.there, segments.there);
    ExpectSame(segments);
    ExpectSame(values);
  }
  TensorContainer<gpu, 1> keys(Shape1(8), 0.0f), values(Shape1(7), 0.0f);
  EXPECT_SAYS("SortByKey: the shapes", SortByKey(keys, values));
  EXPECT_SAYS("overlaps", SortByKey(keys, keys));
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
