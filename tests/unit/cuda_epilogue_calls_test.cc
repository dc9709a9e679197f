// The same of expressions and graphs in a stream: which of their calls are one product with what follows it.
#include <gtest/gtest.h>

#include "tests/unit/cuda_epilogue_common.h"

// mshadow's relu, which makes 0 of NaN as cuBLASLt's does.
UMBRA_OP(relu_of_numbers, (a), select(a > 0, a, 0))

namespace umbra {
namespace {

class Expressions : public CudaEpilogue {
 protected:
  template <int dim>
  TensorContainer<gpu, dim> Draw(const Shape<dim>& shape, Stream<gpu>* stream) {
    TensorContainer<cpu, dim> host(shape);
    const Shape<2> flat = shape.FlatTo2D();
    for (index_t y = 0; y < flat[0]; ++y)
      for (index_t x = 0; x < flat[1]; ++x)
        host.dptr_[(dim == 1 ? 0 : y * host.stride_) + x] =
            static_cast<float>(std::uniform_int_distribution<int>(-8, 8)(random_)) / 4;
    TensorContainer<gpu, dim> there(shape);
    there.set_stream(stream);
    Copy<dim, float>(there, host, stream);
    return there;
  }
  template <int dim>
  static TensorContainer<cpu, dim> Back(const Tensor<gpu, dim>& there) {
    TensorContainer<cpu, dim> host(there.shape_);
    Copy<dim, float>(host, there, there.stream_);
    return host;
  }
  template <typename T>
  static void ExpectEqual(const T& a, const T& b) {
    for (index_t y = 0; y < a.size(0); ++y)
      for (index_t x = 0; x < a.size(1); ++x) ASSERT_EQ(a[y][x], b[y][x]) << y << ", " << x;
  }
};

// The elements are quarters, so that every sum is exact.
TEST_F(Expressions, OfTheExpApi) {
  Stream<gpu> stream;
  auto x = Draw(Shape2(9, 7), &stream), w = Draw(Shape2(7, 5), &stream), y = Draw(Shape2(9, 5), &stream);
  auto b = Draw(Shape1(5), &stream);
  TensorContainer<cpu, 2> expected(Shape2(9, 5));
  const auto hx = Back<2>(x), hw = Back<2>(w);
  const auto hb = Back<1>(b);
  stand_in::TakeProducts();
  jit(y) = F<relu_of_numbers>(dot(x, w) + broadcast<1>(b, y.shape_));
  EXPECT_EQ(stand_in::TakeProducts().at(0).epilogue, kBiasRelu);
  for (const Math math : {Math::kStrict, Math::kFast}) {
    jit::SetOptions(Options(math));
    for (const bool relu : {false, true}) {
      const int launches = stand_in::Calls("cuLaunchKernel");
      stand_in::TakeProducts();
      if (relu) jit(y) = F<op::relu>(dot(x, w) + broadcast<1>(b, y.shape_));
      else jit(y) = dot(x, w) + broadcast<1>(b, y.shape_);
      const auto products = stand_in::TakeProducts();
      ASSERT_EQ(products.size(), 1u);
      const bool whole = !relu || math == Math::kFast;
      EXPECT_EQ(products[0].epilogue, relu ? (whole ? kBiasRelu : kPlain) : kBias);
      EXPECT_EQ(products[0].bias, whole ? b.dptr_ : nullptr);
      EXPECT_EQ(products[0].result == y.dptr_, whole);
      EXPECT_EQ(stand_in::Calls("cuLaunchKernel") - launches, whole ? 0 : 1);
      expected = dot(hx, hw);
      if (relu) expected = F<op::relu>(expected + broadcast<1>(hb, expected.shape_));
      else expected += broadcast<1>(hb, expected.shape_);
      ExpectEqual(Back<2>(y), expected);
    }
  }
}

// f16 and bf16 are summed in f32, and rounded once, behind the epilogue.
TEST_F(Expressions, OfNarrowTypes) {
  Stream<gpu> stream;
  TensorContainer<gpu, 2, bf16_t> x(Shape2(9, 8), bf16_t(0.25f)), y(Shape2(9, 9), bf16_t(7.0f));
  TensorContainer<gpu, 1, bf16_t> b(Shape1(9), bf16_t(-0.375f));
  CompileOptions fast;
  fast.math = Math::kFast;
  jit::SetOptions(fast);
  TensorContainer<cpu, 2, bf16_t> back(y.shape_);
  const int launches = stand_in::Calls("cuLaunchKernel");
  for (const float expected : {0.125f, 0.0f}) {
    stand_in::TakeProducts();
    if (expected > 0) jit(y) = F<op::relu>(dot(x, x.T()) + broadcast<1>(b, y.shape_));
    else jit(y) = F<op::relu>(bf16_t(0.5f) * dot(x, x.T()) + broadcast<1>(b, y.shape_));
    EXPECT_EQ(stand_in::TakeProducts().at(0).epilogue, kBiasRelu);
    Copy<2, bf16_t>(back, y);
    EXPECT_EQ(static_cast<float>(back[8][8]), expected);
  }
  EXPECT_EQ(stand_in::Calls("cuLaunchKernel"), launches);
}

// What was decided for one call is not taken for another: addresses, and operands in the result's memory.
TEST_F(Expressions, EachCallIsLookedAt) {
  Stream<gpu> stream;
  auto x = Draw(Shape2(8, 8), &stream), w = Draw(Shape2(8, 8), &stream), y = Draw(Shape2(8, 8), &stream);
  auto b = Draw(Shape1(80), &stream);
  const auto hw = Back<2>(w);
  const auto hb = Back<1>(b);
  TensorContainer<cpu, 2> expected(Shape2(8, 8));
  const auto call = [&](Tensor<gpu, 2> to, index_t from) {
    const auto hx = Back<2>(x);
    expected = dot(hx, hw);
    expected += broadcast<1>(hb.Slice(from, from + 8), expected.shape_);
    const int launches = stand_in::Calls("cuLaunchKernel");
    stand_in::TakeProducts();
    jit(to) = dot(x, w) + broadcast<1>(b.Slice(from, from + 8), to.shape_);
    EXPECT_EQ(stand_in::TakeProducts().size(), 1u);
    ExpectEqual(Back<2>(to), expected);
    return stand_in::Calls("cuLaunchKernel") - launches;
  };
  EXPECT_EQ(call(y, 0), 0);
  EXPECT_EQ(call(y, 1), 1);
  EXPECT_EQ(call(y, 4), 0);
  EXPECT_EQ(call(y, 0), 0);
  EXPECT_EQ(call(x, 0), 1);  // x, which the product reads
  EXPECT_EQ(call(y, 64), 0);
}

// The algorithms of TF32 may have other epilogues: calls ask again once it is allowed.
TEST_F(Expressions, AskAgainForTf32) {
  Stream<gpu> stream;
  auto x = Draw(Shape2(8, 8), &stream), y = Draw(Shape2(8, 8), &stream);
  auto b = Draw(Shape1(8), &stream);
  const auto call = [&] {
    stand_in::TakeProducts();
    jit(y) = dot(x, x) + broadcast<1>(b, y.shape_);
    return stand_in::TakeProducts().at(0).epilogue;
  };
  EXPECT_EQ(call(), kBias);
  stand_in::RefuseEpilogues(15);  // CUBLAS_STATUS_NOT_SUPPORTED
  EXPECT_EQ(call(), kBias);
  cuda::AllowTf32(true);
  EXPECT_EQ(call(), kPlain);
  cuda::AllowTf32(false);
  EXPECT_EQ(call(), kBias);
}

TEST_F(Expressions, TakeNoMemoryAndAreCaptured) {
  Stream<gpu> stream;
  auto x = Draw(Shape2(8, 8), &stream), y = Draw(Shape2(8, 8), &stream);
  auto b = Draw(Shape1(8), &stream);
  const auto step = [&] { jit(y) = 0.5f * dot(x, x.T()) + broadcast<1>(b, y.shape_); };
  step();
  const auto expected = Back<2>(y);
  const int allocations = stand_in::Calls("cuMemAllocFromPoolAsync"), launches = stand_in::Calls("cuLaunchKernel");
  step();
  EXPECT_EQ(stand_in::Calls("cuMemAllocFromPoolAsync"), allocations);
  EXPECT_EQ(stand_in::Calls("cuLaunchKernel"), launches);
  y = 0.0f;
  stand_in::TakeProducts();
  const cuda::Graph graph = stream.Capture([&] { step(); });
  ASSERT_EQ(stand_in::TakeProducts().at(0).epilogue, kBias);
  EXPECT_EQ(Back<2>(y)[3][3], 0);
  for (int k = 0; k < 2; ++k) {
    y = 0.0f;
    stream.Launch(graph);
    ExpectEqual(Back<2>(y), expected);
  }
}

// Pieces run beside each other in a stream, one after the other where it is captured, and as a whole where the result
// takes the place of an operand. A stream that is deleted takes along the one beside it.
TEST_F(Expressions, InPieces) {
  const auto run = [&] {
    Stream<gpu> stream;
    auto x = Draw(Shape2(700, 9), &stream), w = Draw(Shape2(9, 40), &stream), y = Draw(Shape2(700, 40), &stream),
         r = Draw(Shape2(700, 40), &stream);
    const auto step = [&](const Tensor<gpu, 2>& result) {
      Tensor<gpu, 2> to = result;
      stand_in::TakeProducts();
      jit(to) = F<relu_of_numbers>(dot(x, w) * r) + r;
      return stand_in::TakeProducts().size();
    };
    EXPECT_EQ(step(y), 3u);
    EXPECT_EQ(step(y), 3u);
    const auto expected = Back<2>(y);
    y = 0.0f;
    const cuda::Graph graph = stream.Capture([&] { EXPECT_EQ(step(y), 3u); });
    stream.Launch(graph);
    ExpectEqual(Back<2>(y), expected);
    y = 0.0f;
    stand_in::Fail("cuLaunchKernel", 701, 1, 1);  // the second piece
    EXPECT_THROW(step(y), Error);
    EXPECT_EQ(step(y), 3u);
    ExpectEqual(Back<2>(y), expected);
    EXPECT_EQ(step(r), 1u);
    ExpectEqual(Back<2>(r), expected);
  };
  run();
  const std::size_t objects = stand_in::Objects();  // modules among them
  run();
  EXPECT_EQ(stand_in::Objects(), objects);
}

// What a library that cannot be asked while a stream is captured would have answered, later calls ask again.
TEST_F(Expressions, AskAgainAfterACapture) {
  constexpr int kInternalError = 14;
  Stream<gpu> stream;
  auto x = Draw(Shape2(12, 12), &stream), y = Draw(Shape2(12, 12), &stream);
  auto b = Draw(Shape1(12), &stream);
  const auto step = [&] { jit(y) = 0.25f * dot(x, x) + broadcast<1>(b, y.shape_); };
  const auto epilogue_of = [&](const std::function<void()>& work) {
    stand_in::TakeProducts();
    work();
    return stand_in::TakeProducts().at(0).epilogue;
  };
  stand_in::RefuseEpilogues(kInternalError);
  cuda::Graph graph;
  EXPECT_EQ(epilogue_of([&] { graph = stream.Capture(step); }), kPlain);
  stand_in::RefuseEpilogues(0);
  EXPECT_EQ(epilogue_of(step), kBias);
  const auto expected = Back<2>(y);
  y = 0.0f;
  stream.Launch(graph);
  ExpectEqual(Back<2>(y), expected);
}

}  // namespace
}  // namespace umbra
