// Which values are known never to be above 0.
#include <gtest/gtest.h>

#include <string>

#include "compiler/driver/lower.h"
#include "compiler/plan/signs.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

// The argument of the kernel's one exponential.
bool IsAtMostZero(const std::string& statements) {
  const auto graph =
      graph::ParseText("kernel k(x: f32[n, m], w: f32[n, m], i: i64[n]) -> (y: f32[n, m]) {\n" + statements + "\n}")[0];
  const plan::Plan plan = Lower(*graph, true);
  for (const auto& step : plan.steps)
    if (const auto* kernel = std::get_if<plan::Kernel>(&step))
      for (const plan::Value& v : kernel->values)
        if (v.kind == plan::Value::Kind::kMap && v.op == graph::Op::exp) return plan::IsAtMostZero(*kernel, v.args[0]);
  ADD_FAILURE() << "there is no exponential: " << statements;
  return false;
}

TEST(Signs, AtMostZero) {
  for (const char* x : {"-abs(x)", "-(x * x)", "abs(x) * -2", "minimum(x, 0)", "minimum(x, -0.5)", "-maximum(x, 1)",
                        "-(abs(x) * (w * w))", "-abs(x) * maximum(w, 0)"})
    EXPECT_TRUE(IsAtMostZero("y = exp(" + std::string(x) + ")")) << x;
  for (const char* x : {"x", "abs(x)", "-x", "x * w", "-(x * w)", "minimum(x, 1)", "-maximum(x, -1)", "x - abs(x)",
                        "-abs(x) * -abs(w)", "-abs(x) * w", "x + 0"})
    EXPECT_FALSE(IsAtMostZero("y = exp(" + std::string(x) + ")")) << x;
}

TEST(Signs, LessTheMaximum) {
  const auto less = [](const std::string& element, const std::string& of, const std::string& reducer = "maximum",
                       const std::string& axis = "1") {
    const std::string spread = axis == "1" ? "broadcast<0>" : "broadcast<1>";
    return IsAtMostZero("t = " + element + "\n y = exp(t - " + spread + "(reduce_with_axis<" + reducer + ">(" + of +
                        ", " + axis + ")))");
  };
  EXPECT_TRUE(less("x", "t"));
  EXPECT_TRUE(less("x * w", "t"));
  EXPECT_TRUE(less("tanh(x) * 3", "t"));
  EXPECT_FALSE(less("x", "w"));
  EXPECT_FALSE(less("x * 2", "x"));
  EXPECT_FALSE(less("x", "t", "minimum"));
  EXPECT_FALSE(less("x", "t", "sum"));
}

// What others are called with again and again is not looked at again and again.
TEST(Signs, LongChains) {
  std::string statements = "t0 = -abs(x)\n";
  for (int k = 1; k < 60; ++k)
    statements +=
        "t" + std::to_string(k) + " = minimum(t" + std::to_string(k - 1) + " * w, t" + std::to_string(k - 1) + ")\n";
  EXPECT_FALSE(IsAtMostZero(statements + "y = exp(t59)"));
}

}  // namespace
}  // namespace umbra
