// Loops that begin an iteration before they finish the one before: any number of iterations, in place, with sums.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/host_targets.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using runtime::TensorRef;

Function Compiled(const std::string& text, const std::string& target, Math math = Math::kStrict) {
  CompileOptions options;
  options.use_disk_cache = false;
  options.target = target;
  options.math = math;
  return Compile(graph::ParseText(text)[0], options);
}

template <typename T>
std::vector<T> Drawn(index_t count, unsigned seed) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = T(seed >> 8) / T(1 << 22) + T(0.01);  // up to 4
  }
  return values;
}

template <typename T>
TensorRef Ref(std::vector<T>& values, const std::vector<index_t>& shape) {
  return TensorRef::Dense(values.data(), DTypeOf<T>::value, shape);
}

template <typename T>
void ExpectSameBits(const std::vector<T>& a, const std::vector<T>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < a.size(); ++k)
    ASSERT_EQ(std::memcmp(&a[k], &b[k], sizeof(T)), 0) << what << ", element " << k << ": " << a[k] << " and " << b[k];
}

// The length of a row in each of these is 0 to 6 groups of any dialect, and a rest.
const std::vector<index_t> kLengths = {1,   15,  16,  31,  32,  63,  64,  65,  127, 128, 129,
                                       191, 192, 200, 255, 256, 257, 320, 383, 384, 400};

// From rows of two operands to rows of two results; `in_place`: the results take the place of the operands.
template <typename T>
void ExpectAsPlain(const std::string& text, bool in_place) {
  const Function plain = Compiled(text, "plain");
  for (const std::string& target : HostTargets()) {
    const Function function = Compiled(text, target);
    for (const index_t length : kLengths) {
      const std::vector<index_t> shape = {3, length};
      const auto run = [&](const Function& compiled) {
        std::vector<T> a = Drawn<T>(3 * length, 1), b = Drawn<T>(3 * length, 2), p(a.size()), q(a.size());
        compiled({{Ref(a, shape), Ref(b, shape)}, {Ref(in_place ? a : p, shape), Ref(in_place ? b : q, shape)}, {}});
        std::vector<T> all = in_place ? a : p;
        all.insert(all.end(), in_place ? b.begin() : q.begin(), in_place ? b.end() : q.end());
        return all;
      };
      ExpectSameBits(run(plain), run(function),
                     target + (in_place ? " in place, " : ", ") + std::to_string(length) + ": " + text);
    }
  }
}

std::string Rows(const std::string& type, const std::string& body) {
  return "kernel k(a: " + type + "[n, m], b: " + type + "[n, m]) -> (p: " + type + "[n, m], q: " + type + "[n, m]) { " +
         body + " }";
}

// What a function is of, its operand is needed again behind it; the second result takes what the first has stored over.
const std::vector<std::string> kBodies = {
    "p = exp(a)  q = b * exp(-a)",
    "p = a / (1 + exp(-b))  q = gelu(a * b) + b",
    "p = log(a / b) + a * exp(-0.1 * b)  q = erf(a * 0.7) * b - erf(b * 0.7) * a",
    "p = exp2(a) * b  q = cosh(b) + expm1(a)",
    "e = exp(a - broadcast<0>(reduce_with_axis<maximum>(a, 1)))  p = e / broadcast<0>(reduce_with_axis<sum>(e, 1))  "
    "q = b * broadcast<0>(reduce_with_axis<sum>(sigmoid(b), 1))",
    "p = a * broadcast<1>(sum_rows(exp(b)))  q = b * broadcast<1>(sum_rows(exp(-a) * b))",
};

TEST(Pipelined, AnyNumberOfIterations) {
  for (const std::string& body : kBodies) ExpectAsPlain<float>(Rows("f32", body), false);
  for (const std::string& body : kBodies) ExpectAsPlain<double>(Rows("f64", body), false);
}

TEST(Pipelined, InPlace) {
  for (std::size_t k = 0; k < 4; ++k) {  // the others read rows that they would write
    ExpectAsPlain<float>(Rows("f32", kBodies[k]), true);
    ExpectAsPlain<double>(Rows("f64", kBodies[k]), true);
  }
}

// An element is computed alike wherever in a row it stands, though products and sums become one: in a group, of which a
// loop may do two halves apart, or in what is left of the row.
TEST(Pipelined, FastIsTheSameInEachPlace) {
  std::vector<std::string> bodies(kBodies.begin(), kBodies.begin() + 4);
  bodies.push_back("p = exp(a * a)  q = exp(b * b * 0.5)");  // the square, too, is part of a sum, and not of that alone
  bodies.push_back("p = log2(minimum(b, acos(a) * 0.5))  q = a * a + gelu(b) * gelu(b)");  // acos has the same square
  for (const std::string& body : bodies) {
    const std::string text = Rows("f32", body);
    for (const std::string& target : HostTargets()) {
      const Function function = Compiled(text, target, Math::kFast);
      constexpr index_t kLong = 16000;
      std::vector<float> a = Drawn<float>(kLong, 1), b = Drawn<float>(kLong, 2), p(kLong), q(kLong), one_p(kLong),
                         one_q(kLong);
      function({{Ref(a, {1, kLong}), Ref(b, {1, kLong})}, {Ref(p, {1, kLong}), Ref(q, {1, kLong})}, {}});
      for (index_t i = 0; i < kLong; ++i) {
        const auto at = [&](std::vector<float>& values) {
          return TensorRef::Dense(values.data() + i, DType::kFloat32, {1, 1});
        };
        function({{at(a), at(b)}, {at(one_p), at(one_q)}, {}});
      }
      ExpectSameBits(one_p, p, target + ": " + text);
      ExpectSameBits(one_q, q, target + ": " + text);
    }
  }
}

}  // namespace
}  // namespace umbra
