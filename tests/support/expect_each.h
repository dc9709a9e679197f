// Kernels of one operand against what each element of their result is.
#ifndef UMBRA_TESTS_SUPPORT_EXPECT_EACH_H_
#define UMBRA_TESTS_SUPPORT_EXPECT_EACH_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/drawn.h"
#include "tests/unit/host_targets.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra::drawn {

// The text of such a kernel: `lines` say what y is of x.
inline std::string Kernel(const std::string& from, const std::string& to, const std::string& lines) {
  return "kernel k(x: f32[" + from + "]) -> (y: f32[" + to + "]) {\n" + lines + "\n}";
}

// A kernel of an input `x` and a result `y` on every route, also where rows have gaps. `check` is given each program.
inline void ExpectEach(const std::string& text, const std::vector<index_t>& from, const std::vector<index_t>& to,
                       const std::function<double(const Tensor& x, const std::vector<index_t>& at)>& expected,
                       double tolerance = 0, const std::function<void(const runtime::Program&)>& check = nullptr) {
  const auto graph = graph::ParseText(text)[0];
  std::mt19937 random(20261128);
  const auto run = [&](const CompileOptions& options, index_t padding, int threads) {
    const Tensor x(DType::kFloat32, from, padding, &random);
    Tensor y(DType::kFloat32, to, padding, nullptr);
    const Function function = Compile(graph, options);
    if (check) check(function.program());
    function({{x.ref}, {y.ref}, {}}, {threads});
    ForEachIndex(to, [&](const std::vector<index_t>& at) {
      const double value = expected(x, at);
      ASSERT_NEAR(y.At(at), value, tolerance * std::max(1.0, std::abs(value)))
          << text << " " << options.target << ", gaps of " << padding << ", " << threads << " threads";
    });
    const char* const end = reinterpret_cast<const char*>(y.bytes.data() + y.bytes.size());
    for (const char* guard = y.bytes.data(); guard < static_cast<const char*>(y.ref.data); ++guard)
      ASSERT_EQ(*guard, 0x5a);
    for (const char* guard = end - 16; guard < end; ++guard) ASSERT_EQ(*guard, 0x5a);
  };
  for (const index_t padding : {0, 5}) {
    for (const std::string& target : HostTargets())
      for (const int threads : {1, 3}) {
        CompileOptions options;
        options.target = target;
        run(options, padding, threads);
      }
    CompileOptions interpreted;
    interpreted.engine = Engine::kInterpreter;
    run(interpreted, padding, 1);
  }
}

}  // namespace umbra::drawn

#endif  // UMBRA_TESTS_SUPPORT_EXPECT_EACH_H_
