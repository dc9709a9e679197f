// Random numbers inside compiled kernels: the same bits as eagerly on every route, for any shape, seed and split.
#include "compiler/graph/graph.h"
#include "tests/support/philox.h"
#include "tests/unit/index_map_common.h"
#include "umbra/function.h"

namespace umbra {
namespace {

TEST(RandomCompiled, WordsAreThoseOfPhilox) {
  using simd::i64;
  for (const std::uint64_t key : {std::uint64_t{0}, std::uint64_t{1} << 63 | 12345, ~std::uint64_t{0}})
    for (const std::uint64_t block : {std::uint64_t{0}, std::uint64_t{77}, std::uint64_t{1} << 40}) {
      const auto words = simd::detail::philox<i64>(static_cast<i64>(block), static_cast<i64>(key), 0);
      const auto expected = Philox(key, block);
      for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(words.word[k], static_cast<i64>(expected[k]));
      const auto even = static_cast<i64>(2 * block);
      EXPECT_EQ(simd::random_uniform<float>(even, static_cast<i64>(key)),
                static_cast<float>(expected[0] >> 8) * 0x1p-24f);
      EXPECT_EQ(simd::random_uniform<double>(even + 1, static_cast<i64>(key)),
                (static_cast<double>(expected[2] >> 5) * 0x1p26 + static_cast<double>(expected[3] >> 6)) * 0x1p-53);
    }
}

TEST(RandomCompiled, SameBitsOnEveryRoute) {
  Random<cpu> random(2026);
  Random<cpu, double> wide(~0ull);
  const auto vector = random.uniform(Shape1(1003), -1.0f, 3.0f);
  Check<1>("uniform", [&] { return vector; });
  const auto matrix = random.gaussian(Shape2(7, 37), 2.0f, 0.5f);
  Check<2>("gaussian", [&] { return matrix; });
  const auto cube = wide.uniform(Shape3(3, 5, 19));
  Check<3, double>("uniform f64", [&] { return cube; });
  const auto doubles = wide.gaussian(Shape2(5, 33), -1.0);
  Check<2, double>("gaussian f64", [&] { return doubles; });
  const auto x = Drawn<2>(Shape2(7, 37), 5);
  const auto keep = random.uniform(x.shape_);
  Check<2>("dropout", [&] { return F<op::select>(F<op::lt>(keep, scalar(0.8f)), x * 1.25f, x * 0.0f); });
  Check<2>("flip", [&] { return flip(keep, 1); });
  const auto square = random.uniform(Shape2(33, 33));
  Check<2>("transposed", [&] { return transpose(square, Shape2(1, 0)); });
  const auto equal = random.uniform(Shape1(9), 0.1f, 0.1f);
  Check<1>("of one number", [&] { return equal; });
}

TEST(RandomCompiled, TheShapeNeedsNoOtherOperand) {
  Random<cpu> random(3);
  const auto numbers = random.uniform(Shape2(5, 70));
  TensorContainer<cpu, 2> all(Shape2(5, 70));
  all = numbers;
  TensorContainer<cpu, 1> most(Shape1(5)), expected(Shape1(5));
  expected = reduce_with_axis<red::maximum, false>(all, 1);
  for (const CompileOptions& route : Routes()) {
    jit::SetOptions(route);
    jit(most) = reduce_with_axis<red::maximum, false>(numbers, 1);
    ExpectSame(expected, most, "maximum of a row");
    TensorContainer<cpu, 2> other(Shape2(5, 71), 0.0f);
    EXPECT_SAYS("71", jit(other) = numbers * 1.0f);
    TensorContainer<cpu, 2> none(Shape2(0, 70));
    jit(none) = random.uniform(none.shape_);
  }
  jit::SetOptions({});
}

// Seed, counter, bounds and shape come with the call: one graph, so one kernel, for all of them.
TEST(RandomCompiled, NothingIsCompiledAnew) {
  Random<cpu> a(1), b(2);
  const auto text = [](const auto& e) { return graph::Print(*MakeGraph(e)); };
  EXPECT_EQ(text(a.uniform(Shape2(2, 3))), text(b.uniform(Shape2(9, 1), -1.0f, 5.0f)));
  TensorContainer<cpu, 1> first(Shape1(100)), second(Shape1(100)), expected(Shape1(100));
  Random<cpu> compiled(7), eager(7);
  TensorContainer<cpu, 1>* const both[] = {&first, &second};
  for (TensorContainer<cpu, 1>* to : both) {
    jit(*to) = compiled.uniform(to->shape_);
    expected = eager.uniform(expected.shape_);
    ExpectSame(expected, *to, "a call");
  }
  int same = 0;
  for (index_t i = 0; i < 100; ++i) same += first[i] == second[i];
  EXPECT_EQ(same, 0);
}

TEST(RandomCompiled, AnySplitOverThreads) {
  Random<cpu> random(11);
  TensorContainer<cpu, 2> one(Shape2(700, 1001)), many(Shape2(700, 1001));
  const auto numbers = random.gaussian(one.shape_);
  runtime::CallSite::SetThreads(1);
  jit(one) = numbers;
  runtime::CallSite::SetThreads(3);
  jit(many) = numbers;
  runtime::CallSite::SetThreads(0);
  ExpectSame(one, many, "three threads");
}

TEST(RandomCompiled, TextAndBuilder) {
  const auto from_text = graph::ParseText(
      "kernel noisy(x: f32[n, m], key: i64, first: i64) -> (y: f32[n, m]) { y = x + gaussian(x, key, first) }")[0];
  graph::Builder builder("noisy");
  const auto x = builder.Input("x", DType::kFloat32, {Dimension(), Dimension()});
  const auto key = builder.Scalar("key", DType::kInt64), first = builder.Scalar("first", DType::kInt64);
  builder.Output("y", x + graph::Draw("gaussian", x, key, first));
  Random<cpu> random(99);
  TensorContainer<cpu, 2> in(Shape2(6, 21), 1.0f, false), out(Shape2(6, 21), 0.0f, false), expected(Shape2(6, 21));
  random.uniform(Shape1(5));
  expected = in + random.gaussian(in.shape_);
  for (const auto& graph : {from_text, builder.Build()}) {
    runtime::Arguments arguments;
    arguments.inputs.push_back(runtime::TensorRef::Dense(in.dptr_, DType::kFloat32, {6, 21}));
    arguments.outputs.push_back(runtime::TensorRef::Dense(out.dptr_, DType::kFloat32, {6, 21}));
    arguments.scalars.resize(2);
    arguments.scalars[0].i64 = 99;
    arguments.scalars[1].i64 = 5;
    Compile(graph, {})(arguments);
    ExpectSame(expected, out, "gaussian");
  }
  EXPECT_SAYS("x is i32", graph::ParseText("kernel k(x: i32[n], s: i64) -> (y: i32[n]) { y = uniform(x, s, 0) }"));
  EXPECT_SAYS("the key is one whole number",
              graph::ParseText("kernel k(x: f32[n], s: i64[n]) -> (y: f32[n]) { y = uniform(x, s, 0) }"));
  EXPECT_SAYS("convert it with tcast<i64>",
              graph::ParseText("kernel k(x: f32[n]) -> (y: f32[n]) { y = uniform_f32(x, x) }"));
}

}  // namespace
}  // namespace umbra
