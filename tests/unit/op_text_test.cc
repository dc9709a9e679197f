// The expression of an UMBRA_OP means in generated code what C++ makes of it.
#include <cmath>

#include "tests/unit/index_map_common.h"

#define UMBRA_TEST_SLOPE 0.3f
namespace user {
UMBRA_OP(half_of_whole, (x), x*(1 / 2) + x * (-7 / 2))
UMBRA_OP(third_in_f32, (x), x*(1.0f / 3) + x / 3)
UMBRA_OP(tenth_in_f32, (x), x * 1.1f + 1e-1f * x)
UMBRA_OP(bases, (x), x * 010 + x * 0x1F + x * 0b101 + x * 1'000 + x * 0x1p-3 + x * 12l)
UMBRA_OP(reals, (x), x * .5 + x * 2. + x * 1.5e+1 + x * 0.25L)
UMBRA_OP(with_macros, (x), x* M_PI - UMBRA_TEST_SLOPE * x)
UMBRA_OP(number, (x), 7 / 2)
UMBRA_OP(whole_branches, (x), x > 3 / 2 ? x - 9 / 2 : (x < 0 ? 7 : x > 1 ? 4 : -3) / 2 * x)
UMBRA_OP(by_no_minus_zero, (x), x / (-1 / 2) + x / ((x > 0 ? -1 : 1) / 2))
UMBRA_OP(with_infinity, (x), minimum(x, INFINITY) / maximum(x, -INFINITY))
UMBRA_OP(branches, (x), x > 3 / 2 ? x - 9 / 2 : x * (5 - 3.5f))
constexpr float kSlope = 0.25f;
UMBRA_OP(constant, (x), x* kSlope)
UMBRA_OP(beyond_zero, (x), x * 10u)
}  // namespace user

namespace umbra {
namespace {

template <typename T>
void CheckFractions(const TensorContainer<cpu, 1, T>& x) {
  Check<1, T>("third_in_f32", [&] { return F<user::third_in_f32>(x); });
  Check<1, T>("tenth_in_f32", [&] { return F<user::tenth_in_f32>(x); });
  Check<1, T>("bases", [&] { return F<user::bases>(x); });
  Check<1, T>("reals", [&] { return F<user::reals>(x); });
  Check<1, T>("with_macros", [&] { return F<user::with_macros>(x); });
  Check<1, T>("branches", [&] { return F<user::branches>(x); });
  Check<1, T>("by_no_minus_zero", [&] { return F<user::by_no_minus_zero>(x); });
  Check<1, T>("with_infinity", [&] { return F<user::with_infinity>(x); });
}
template <typename T>
void CheckLiterals() {
  for (const index_t n : {1, 37}) {
    const auto x = Drawn<1, T>(Shape1(n), 1);
    Check<1, T>("half_of_whole", [&] { return F<user::half_of_whole>(x); });
    CheckSavers<1, T>("number", [&] { return F<user::number>(x); });
    Check<1, T>("number, flipped", [&] { return flip(F<user::number>(x), 0); });
    Check<1, T>("whole_branches", [&] { return F<user::whole_branches>(x); });
    if constexpr (!std::is_integral_v<T>) CheckFractions<T>(x);
  }
}
TEST(OpText, LiteralsAreThoseOfCpp) {
  CheckLiterals<float>();
  CheckLiterals<double>();
  CheckLiterals<std::int32_t>();
}

TEST(OpText, ValuesAreThoseOfCpp) {
  const TensorContainer<cpu, 1, double> x(Shape1(3), 3.0);
  TensorContainer<cpu, 1, double> y(Shape1(3));
  for (const CompileOptions& route : Routes()) {
    jit::SetOptions(route);
    jit(y) = F<user::half_of_whole>(x);
    EXPECT_EQ(y[0], -9);
    jit(y) = F<user::tenth_in_f32>(x);
    EXPECT_EQ(y[1], 3 * static_cast<double>(1.1f) + 3 * static_cast<double>(0.1f));
    jit(y) = F<user::bases>(x);
    EXPECT_EQ(y[2], 3 * (8 + 31 + 5 + 1000 + 0.125 + 12));
    jit(y) = F<user::number>(x) + x;
    EXPECT_EQ(y[0], 6);
  }
  jit::SetOptions({});
}

TEST(OpText, NamesOfCppAreForEagerExpressions) {
  const TensorContainer<cpu, 1> x(Shape1(3), 3.0f);
  TensorContainer<cpu, 1> y(Shape1(3));
  y = F<user::constant>(x);
  EXPECT_EQ(y[2], 0.75f);
  EXPECT_EQ(
      jit::WhyEager(F<user::constant>(x)),
      "'user::constant' has 'kSlope' in its expression, which is neither an argument of it nor an operator of umbra/ops.def: give it "
      "as an operand, F<user::constant>(..., scalar(c)), or write the number");
  EXPECT_NE(jit::WhyEager(F<user::beyond_zero>(x)).find("'10u'"), std::string::npos);
  EXPECT_EQ(jit::WhyEager(F<user::bases>(x) + F<user::reals>(x) + F<user::with_macros>(x) + F<user::tenth_in_f32>(x)),
            "");
}

TEST(OpText, WhatIsNoNumberIsAnErrorThatNamesTheOperator) {
  const auto built = [](const char* text) {
    graph::Builder builder("k");
    const graph::Value x = builder.Input("x", DType::kFloat32, {3});
    return graph::ApplyText("odd", "(x)", text, {x});
  };
  EXPECT_SAYS("UMBRA_OP(odd):1:5: error: '08' is no number that generated code knows", built("x * 08"));
  EXPECT_SAYS("'10u' is no number", built("x * 10u"));
  EXPECT_SAYS("'1.5_km' is no number", built("x * 1.5_km"));
  EXPECT_SAYS("'0x' is no number", built("x * 0x"));
  EXPECT_SAYS("'1e' is no number", built("x * 1e"));
  EXPECT_SAYS("'1e999' is out of range", built("x * 1e999"));
  EXPECT_SAYS("'1b1' is no number", built("x * 1b1"));
  EXPECT_SAYS("'1lll' is no number", built("x * 1lll"));
  EXPECT_SAYS("'0xFFFFFFFF' is an unsigned number in C++", built("x * -0xFFFFFFFF"));
  EXPECT_SAYS("'9007199254740993' is a whole number of 2^53 or more", built("x * 9007199254740993"));
  EXPECT_SAYS("whole numbers give 1e+10, which an int of C++ does not hold", built("x * (100000 * 100000)"));
  EXPECT_SAYS("the whole number 1.67772e+07 is too large", built("x * ((x > 0 ? 16777217 : 3) - 16777216)"));
  EXPECT_SAYS("operator 'odd': the whole number 1 is divided by 0", built("x * (1 / 0)"));
  EXPECT_SAYS("operator 'odd': 'kSlope' is not defined here", built("x * kSlope"));
}

}  // namespace
}  // namespace umbra
