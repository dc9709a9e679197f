// The operators of umbra/ops.def as functions: of expressions, and of values of graphs.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <type_traits>

#include "compiler/graph/graph.h"
#include "compiler/transform/simplify.h"
#include "tests/support/testing.h"
#include "umbra/graph.h"
#include "umbra/jit.h"
#include "umbra/tensor.h"

namespace program {
// Functions of a program's own with names of Umbra's.
template <typename E, typename DType, int etype>
auto mish(const umbra::expr::Exp<E, DType, etype>& x) {
  return x * DType(100);
}
template <typename E, typename DType, int etype>
auto gelu(const umbra::expr::Exp<E, DType, etype>& x, float factor) {
  return x * factor;
}
template <typename A, typename B, typename DA, typename DB, int ta, int tb>
auto maximum(const umbra::expr::Exp<A, DA, ta>& a, const umbra::expr::Exp<B, DB, tb>& b) {
  return a * b;
}
template <typename E, typename DType, int etype>
auto pow(const umbra::expr::Exp<E, DType, etype>& a, double) {
  return a * DType(50);
}
template <typename A, typename B, typename C, typename DA, typename DB, typename DC, int ta, int tb, int tc>
auto select(const umbra::expr::Exp<A, DA, ta>& a, const umbra::expr::Exp<B, DB, tb>&,
            const umbra::expr::Exp<C, DC, tc>&) {
  return a * DA(30);
}
float PowAndSelect(const umbra::Tensor<umbra::cpu, 1>& x) {
  umbra::TensorContainer<umbra::cpu, 1> y(x.shape_);
  y = pow(x, 2.0f) + select(x, x, x);
  return y[0];
}
float Mish(const umbra::Tensor<umbra::cpu, 1>& x) {
  umbra::TensorContainer<umbra::cpu, 1> y(x.shape_);
  y = mish(x);
  return y[0];
}
float GeluOfTwo(const umbra::Tensor<umbra::cpu, 1>& x) {
  umbra::TensorContainer<umbra::cpu, 1> y(x.shape_);
  y = gelu(x, 3.5);
  return y[0];
}
float Maximum(const umbra::Tensor<umbra::cpu, 1>& x) {
  umbra::TensorContainer<umbra::cpu, 1> y(x.shape_);
  y = maximum(x, x) + maximum(x, 1);
  return y[0];
}
}  // namespace program

// No `using namespace` finds them, so that F takes the operators as before.
namespace all {
using namespace umbra;
using namespace umbra::expr;
using namespace umbra::op;
float Softplus(const Tensor<cpu, 1>& x) {
  TensorContainer<cpu, 1> y(x.shape_);
  y = F<softplus>(x);
  return y[0];
}
}  // namespace all

UMBRA_OP(within_six, (x), clip(x, 0, 6))

namespace umbra {
namespace {

using expr::F;

template <int arity, typename OP, typename E, typename Function>
constexpr bool IsFunctionOf(const E&, const Function&) {
  if constexpr (arity == 1)
    return std::is_same_v<decltype(F<OP>(std::declval<E>())), decltype(std::declval<Function>()(std::declval<E>()))>;
  else if constexpr (arity == 2)
    return std::is_same_v<decltype(F<OP>(std::declval<E>(), std::declval<E>())),
                          decltype(std::declval<Function>()(std::declval<E>(), std::declval<E>()))>;
  else
    return std::is_same_v<decltype(F<OP>(std::declval<E>(), std::declval<E>(), std::declval<E>())),
                          decltype(std::declval<Function>()(std::declval<E>(), std::declval<E>(), std::declval<E>()))>;
}

TEST(Elementwise, EveryOperatorIsAFunction) {
  const TensorContainer<cpu, 1> x(Shape1(3), 2.0f);
  int functions = 0;
#define UMBRA_PRIMITIVE(name, arity, ...)                                                                    \
  EXPECT_TRUE((IsFunctionOf<arity, op::name>(x * x, [](const auto&... a) { return name(a...); }))) << #name; \
  ++functions;
#define UMBRA_COMPOSITE(name, args, ...)                                                              \
  EXPECT_TRUE((IsFunctionOf<op::detail::CountOperands(#args), op::name>(x * x, [](const auto&... a) { \
    return name(a...);                                                                                \
  }))) << #name;                                                                                      \
  ++functions;
#include "umbra/ops.def"
  EXPECT_GT(functions, 70);
}

TEST(Elementwise, NumbersStandWhereExpressionsDo) {
  TensorContainer<cpu, 1> x(Shape1(20), 2.0f), y(Shape1(20)), z(Shape1(20));
  const auto expect = [&](double wanted, const auto& exp) {
    y = exp;
    EXPECT_FLOAT_EQ(y[19], static_cast<float>(wanted));
    jit(z) = exp;
    EXPECT_EQ(z[19], y[19]);
  };
  expect(4 + std::sqrt(3.0), exp2(x) + sqrt(x + 1));
  expect(3 + 1 + 4 + 8, maximum(x, 3) + minimum(1.0, x) + pow(x, 2.0f) + pow(2, x * 1.5f));
  expect(2.0 + 0.5 + 7, select(x > 1, x, 0.5f) + select(x < 1.0, 1, 0.5) + select(3 <= x, x, 7));
  expect(1, (x >= x) * (x <= 2));
  expect(3, select(x == 2 && !(x != 2), 3, x) * select(x > 5 || x < 3, 1, x));
  expect(2.5, select(expr::scalar(1.0f), x, 3) + select(0, 7, x) / 4);
  expect(5, fma(x, x, 1));
  expect(9, fma(4, x, 1.0f));
  expect(3 + 1.5 - 2, clip(x, 3, 4) + clip(x, x - 1, 1.5f) + 2 * sign(1 - x) * sign(sqrt(x)) + sign(x - x));
  TensorContainer<cpu, 1, int> i(Shape1(20), 7), j(Shape1(20));
  j = bit_and(i, 3) + shift_left(i, 1) + bit_not(i);
  EXPECT_EQ(j[19], 3 + 14 - 8);
  TensorContainer<cpu, 1, double> d(Shape1(20), 0.1), e(Shape1(20));
  e = maximum(d, 0.1);  // numbers take the dtype beside them
  EXPECT_EQ(e[19], 0.1);
  TensorContainer<cpu, 1, half_t> h(Shape1(20), half_t(2.0f)), k(Shape1(20));
  k = exp2(h) * select(h > 1, h, half_t(0)) + maximum(h, half_t(1)) * 0.0f;
  EXPECT_EQ(static_cast<float>(k[19]), 8);
}

// What elements are computed in, and not the dtype in which they lie.
TEST(Elementwise, NumbersBesideNarrowDtypesAreNotRoundedToThem) {
  TensorContainer<cpu, 1, half_t> h(Shape1(20), half_t(0.5f)), k(Shape1(20)), jitted(Shape1(20));
  const auto expect = [&](float wanted, const auto& exp) {
    k = exp;
    EXPECT_EQ(static_cast<float>(k[19]), wanted);
    jit(jitted) = exp;
    EXPECT_EQ(static_cast<float>(jitted[19]), wanted);
  };
  expect(49984, h * 1e5f);
  expect(0, (h - 0.5f) / ((h - 0.5f) + 1e-8f));
  expect(49984, 1e5f * maximum(h, 1e-8f));
  expect(49984, F<op::mul>(h, 1e5f));
  k = half_t(0.5f);
  k *= 1e5f;
  EXPECT_EQ(static_cast<float>(k[19]), 49984);
  jit(jitted) = half_t(0.5f);
  jit(jitted) *= 1e5f;
  EXPECT_EQ(static_cast<float>(jitted[19]), 49984);
  TensorContainer<cpu, 2, half_t> a(Shape2(2, 3), half_t(0.25f)), b(Shape2(3, 2), half_t(0.25f)), c(Shape2(2, 2));
  c = dot(a, b) * 1e5f;
  EXPECT_EQ(static_cast<float>(c[1][1]), 18752);
  TensorContainer<cpu, 1, std::uint8_t> u(Shape1(20), 200), v(Shape1(20));
  v = (u + 300) / 2;
  EXPECT_EQ(v[19], 250);
  jit(v) = (u + 200) / 2;
  EXPECT_EQ(v[19], 200);
}

TEST(Elementwise, NumbersAreOperandsOfF) {
  TensorContainer<cpu, 1> x(Shape1(20), 7.0f), one(Shape1(20), 1.0f), y(Shape1(20)), z(Shape1(20));
  const auto expect = [&](float wanted, const auto& exp) {
    y = exp;
    EXPECT_EQ(y[19], wanted);
    jit(z) = exp;
    EXPECT_EQ(z[19], wanted);
  };
  expect(3, F<op::clip>(x, 0.5f, 3));
  expect(1, F<op::clip>(x, 0, one));
  expect(4, F<op::clip>(4, one, x));
  expect(2, F<op::clip>(x, one, 2.0));
  expect(49, F<op::pow>(x, 2));
  expect(128, F<op::pow>(2.0f, x));
  expect(6, F<within_six>(x));
}

TEST(Elementwise, AConditionThatIsANumberIsAConditionAgain) {
  const TensorContainer<cpu, 1> x(Shape1(3)), y(Shape1(3));
  const auto graph = MakeGraph(select(logical_and(x > 0, y <= x), exp(x), y));
  const std::string text = graph::Print(graph::Simplify(*graph));
  const auto has = [&text](const std::string& part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has("%2 = gt %0") && has("%5 = le") && has("= logical_and %2, %5 ")) << text;
  EXPECT_FALSE(has("= ne ")) << text;
}

TEST(Elementwise, FunctionsOfAProgramArePreferred) {
  const TensorContainer<cpu, 1> x(Shape1(3), 2.0f);
  EXPECT_EQ(program::Mish(x), 200);
  EXPECT_EQ(program::GeluOfTwo(x), 7);
  EXPECT_EQ(program::Maximum(x), 6);
  EXPECT_EQ(program::PowAndSelect(x), 160);
  EXPECT_FLOAT_EQ(all::Softplus(x), std::log1p(std::exp(2.0f)));
}

TEST(Elementwise, AndFunctionsOfValues) {
  constexpr DType kNumeric = DType::kFloat32, kFloat = DType::kFloat32, kInteger = DType::kInt32, kBool = DType::kBool,
                  kAny = DType::kBool;
  const auto text = [](DType type, const auto& make) {
    graph::Builder b("g");
    const graph::Value x = b.Input("x", type, {8}), y = b.Input("y", type, {8}), z = b.Input("z", type, {8});
    b.Output("r", make(x, y, z));
    return graph::Print(*b.Build());
  };
#define UMBRA_TEST_1(name, type)                                                         \
  EXPECT_EQ(text(type, [](const auto& x, const auto&, const auto&) { return name(x); }), \
            text(type, [](const auto& x, const auto&, const auto&) { return graph::Apply(#name, {x}); }));
#define UMBRA_TEST_2(name, type)                                                              \
  EXPECT_EQ(text(type, [](const auto& x, const auto& y, const auto&) { return name(x, y); }), \
            text(type, [](const auto& x, const auto& y, const auto&) {                        \
              return graph::Apply(#name, {x, y});                                             \
            }));
#define UMBRA_TEST_3(name, type)                                                                   \
  EXPECT_EQ(text(type, [](const auto& x, const auto& y, const auto& z) { return name(x, y, z); }), \
            text(type, [](const auto& x, const auto& y, const auto& z) {                           \
              return graph::Apply(#name, {x, y, z});                                               \
            }));
#define UMBRA_PRIMITIVE(name, arity, dtypes, ...) UMBRA_TEST_##arity(name, dtypes)
#include "umbra/ops.def"
  UMBRA_TEST_1(square, kFloat)
  UMBRA_TEST_1(relu, kFloat)
  UMBRA_TEST_1(gelu, kFloat)
  UMBRA_TEST_2(right, kFloat)
  UMBRA_TEST_1(bit_not, kInteger)
  EXPECT_EQ(text(kFloat, [](const auto& x, const auto& y, const auto&) { return select(x > 0, y, 1); }),
            text(kFloat, [](const auto& x, const auto& y, const auto&) {
              return graph::Apply("select", {graph::Apply("gt", {x, 0}), y, 1});
            }));
  UMBRA_TEST_1(sign, kFloat)
  UMBRA_TEST_3(clip, kFloat)
  EXPECT_EQ(text(kFloat, [](const auto& x, const auto& y, const auto&) { return !(x == 0 || y != x) && 2 >= y; }),
            text(kFloat, [](const auto& x, const auto& y, const auto&) {
              const graph::Value either =
                  graph::Apply("logical_or", {graph::Apply("eq", {x, 0}), graph::Apply("ne", {y, x})});
              return graph::Apply("logical_and", {graph::Apply("logical_not", {either}), graph::Apply("ge", {2, y})});
            }));
}

// A node's number means nothing in another graph.
TEST(GraphValues, BelongToOneBuilder) {
  graph::Builder one("one"), other("other");
  const graph::Value x = one.Input("x", DType::kFloat32, {4}), y = one.Input("y", DType::kFloat32, {4}),
                     sum = x * 2 + y;
  other.Input("z", DType::kFloat32, {4});
  const std::string message = "a Builder was given a value of another one; build both in one";
  EXPECT_SAYS(message, other.Output("o", sum));
  EXPECT_SAYS(message, other.Output("o", sum, PartialShape{4}));
  EXPECT_SAYS(message, other.Shaped("o", sum, PartialShape{4}));
  one.Output("o", sum);
  EXPECT_EQ(one.Build()->outputs().size(), 1u);
}

}  // namespace
}  // namespace umbra
