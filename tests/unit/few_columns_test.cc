// Columns that are fewer than a packet's lanes and lie step behind step, as the channels of pixels do, and those that
// are a few packets: the same bits by every instruction set and any number of threads, and about what the interpreter
// finds.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "compiler/driver/lower.h"
#include "tests/support/drawn.h"
#include "tests/unit/index_map_common.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using drawn::SameBits;
using drawn::Tensor;

std::shared_ptr<const graph::Graph> Parsed(const std::string& text) { return graph::ParseText(text)[0]; }

// Sums go in another order.
void ExpectNear(const Tensor& a, const Tensor& b, const std::string& what) {
  const double tolerance = a.dtype == DType::kFloat64 ? 1e-11 : a.dtype == DType::kFloat32 ? 1e-4 : 4e-3;
  drawn::ForEachIndex(a.ref.shape, [&](const std::vector<index_t>& i) {
    const double x = a.At(i), y = b.At(i);
    ASSERT_TRUE(x == y || std::abs(x - y) <= tolerance * (1 + std::abs(y)) || (std::isnan(x) && std::isnan(y)))
        << what << ": " << x << ", expected " << y;
  });
}

struct Kernel {
  const char *head, *body;
  std::vector<bool> whole;  // by result: has it the shape of x? Else one number a column.
};

// b rows of n steps of m columns; v has a number for each column.
const std::vector<Kernel>& Kernels() {
  static const std::vector<Kernel> kernels = {
      {"(y: T[b, m], z: T[b, m])",
       "y = reduce_with_axis<sum>(x, 1)  z = reduce_with_axis<maximum>(x * v3, 1)",
       {false, false}},
      {"(y: T[b, m], z: T[b, m])",
       "y = reduce_with_axis<mean>(x, 1) * 2  c = x - broadcast_with_axis(y, 0, extent<1>(x))  z = reduce_with_axis<sum>(c * c, 1)",
       {false, false}},
      {"(y: T[b, n, m], z: T[b, m])",
       "z = reduce_with_axis<minimum>(x, 1) * v2  y = (x + v3) * broadcast_with_axis(z, 0, extent<1>(x))",
       {true, false}},
      {"(y: T[b, n, m], z: T[b, m])",
       "z = reduce_with_axis<sum>(abs(x), 1) + v2 * v2 + 1  y = x / broadcast_with_axis(z, 0, extent<1>(x))",
       {true, false}},
      {"(y: T[b, n, m], z: T[b, m])",
       "e = exp(x - broadcast_with_axis(reduce_with_axis<maximum>(x, 1), 0, extent<1>(x)))"
       "  z = reduce_with_axis<sum>(e, 1)  y = e / broadcast_with_axis(z, 0, extent<1>(x))",
       {true, false}},
  };
  return kernels;
}

std::string Text(const Kernel& kernel, DType type) {
  std::string text = std::string("kernel k(x: T[b, n, m], v: T[m]) -> ") + kernel.head + " {\n  v2 = broadcast<1>(v, " +
                     "reduce_with_axis<maximum>(x, 1))\n" + "  v3 = broadcast<2>(v, x)\n  " + kernel.body + "\n}";
  for (std::size_t at; (at = text.find("T[")) != std::string::npos;) text.replace(at, 1, Name(type));
  return text;
}

struct Size {
  index_t b, n, m;
};
constexpr Size kSizes[] = {{3, 15, 3},
                           {3, 16, 3},
                           {2, 17, 1},
                           {5, 33, 2},
                           {4, 100, 3},
                           {3, 61, 4},
                           {2, 45, 7},
                           {2, 50, 8},
                           {2, 77, 12},
                           {3, 40, 15},
                           {2, 40, 16},
                           {1, 44003, 3},
                           {2, 14003, 5},
                           {1, 11917, 11},
                           // A few packets, or one of few steps.
                           {3, 9, 16},
                           {4, 33, 17},
                           {2, 70, 32},
                           {3, 40, 33},
                           {2, 20, 49},
                           {3, 37, 64},
                           {2, 40, 65}};

TEST(FewColumns, SameBits) {
  for (const Kernel& kernel : Kernels())
    for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kFloat16}) {
      const std::string text = Text(kernel, type);
      std::vector<std::pair<CompileOptions, Function>> routes;
      for (const CompileOptions& route : Routes()) routes.emplace_back(route, Compile(Parsed(text), route));
      for (const auto& [b, n, m] : kSizes)
        for (const index_t padding : {0, 2}) {
          if (n > 1000 && (padding > 0 || type == DType::kFloat16)) continue;
          std::mt19937 random(static_cast<unsigned>(n * 16 + m));
          const Tensor x(type, {b, n, m}, padding, &random), v(type, {m}, 0, &random);
          std::unique_ptr<Tensor> first[2], meant[2];
          for (const auto& [route, function] : routes)
            for (const int threads : {1, 3}) {
              std::unique_ptr<Tensor> results[2];
              for (std::size_t k = 0; k < 2; ++k) {
                const std::vector<index_t> shape =
                    kernel.whole[k] ? std::vector<index_t>{b, n, m} : std::vector<index_t>{b, m};
                results[k] = std::make_unique<Tensor>(type, shape, kernel.whole[k] ? padding : 0, nullptr);
              }
              function({{x.ref, v.ref}, {results[0]->ref, results[1]->ref}, {}}, {threads});
              const std::string what = text + "\n" + route.target + " " + std::to_string(b) + " x " +
                                       std::to_string(n) + " x " + std::to_string(m);
              for (std::size_t k = 0; k < 2; ++k) {
                if (route.engine == Engine::kInterpreter) meant[k] = std::move(results[k]);
                else if (first[k] == nullptr) first[k] = std::move(results[k]);
                else EXPECT_TRUE(SameBits(*first[k], *results[k])) << what;
              }
            }
          for (std::size_t k = 0; k < 2; ++k) ExpectNear(*first[k], *meant[k], text);
        }
      for (const auto& [route, function] : routes) {
        const bool is_compiled = route.engine != Engine::kInterpreter;
        EXPECT_EQ(HasTaken(function, {.few_columns = true}), is_compiled) << text << route.target;
        EXPECT_EQ(HasTaken(function, {.split = true, .few_columns = true}), is_compiled && type != DType::kFloat16)
            << text << route.target;
      }
    }
}

// Whole numbers, and the result in the place of the operand; two axes that are reduced, of which rows are padded.
TEST(FewColumns, OtherKinds) {
  const std::string in_place =
      "kernel k(x: i32[b, n, m]) -> (y: i32[b, n, m]) { y = x - broadcast_with_axis(reduce_with_axis<maximum>(x, 1), 0, extent<1>(x)) }";
  const std::string pixels =
      "kernel k(x: f32[b, h, w, c]) -> (y: f32[b, c]) { y = reduce_with_axis<sum>(reduce_with_axis<sum>(x * x, 2), 1) }";
  std::unique_ptr<Tensor> first, meant;
  for (const CompileOptions& route : Routes()) {
    std::mt19937 random(5);
    Tensor x(DType::kInt32, {3, 70, 3}, 0, &random);
    const Tensor y(DType::kInt32, {3, 70, 3}, 0, nullptr);
    const Function function = Compile(Parsed(in_place), route);
    function({{x.ref}, {y.ref}, {}});
    function({{x.ref}, {x.ref}, {}});
    EXPECT_TRUE(SameBits(x, y)) << route.target;
    const Tensor picture(DType::kFloat32, {2, 9, 40 * 3}, 6, &random);
    runtime::TensorRef pixel = picture.ref;
    pixel.shape = {2, 9, 40, 3};
    pixel.stride = {picture.ref.stride[0], picture.ref.stride[1], 3, 1};
    auto sums = std::make_unique<Tensor>(DType::kFloat32, std::vector<index_t>{2, 3}, 0, nullptr);
    const Function sum = Compile(Parsed(pixels), route);
    sum({{pixel}, {sums->ref}, {}});
    if (route.engine == Engine::kInterpreter) meant = std::move(sums);
    else if (first == nullptr) first = std::move(sums);
    else EXPECT_TRUE(SameBits(*first, *sums)) << route.target;
    EXPECT_EQ(HasTaken(sum, {.few_columns = true}), route.engine != Engine::kInterpreter) << route.target;
  }
  ExpectNear(*first, *meant, pixels);
}

// Positions, which are wider than the elements: of columns that are a few packets, and of more; extents open or known.
TEST(FewColumns, Positions) {
  const auto check = [](const std::string& in, const std::string& out, const std::vector<Size>& sizes) {
    const std::string text = "kernel k(x: f32[" + in + "]) -> (y: i64[" + out + "], z: f32[" + out + "], c: i64[" +
                             out +
                             "]) {\n  y = reduce_with_axis<argmax>(x, 1)\n"
                             "  z = tcast<f32>(reduce_with_axis<argmin>(x, 1))\n"
                             "  c = select(y == 3, y * y - 2, reduce_with_axis<argmax>(abs(x), 1))\n}";
    std::vector<std::pair<CompileOptions, Function>> routes;
    for (const CompileOptions& route : Routes()) routes.emplace_back(route, Compile(Parsed(text), route));
    for (const auto& [b, n, m] : sizes) {
      std::mt19937 random(static_cast<unsigned>(m + 400 * n));
      const Tensor x(DType::kFloat32, {b, n, m}, 3, &random);
      std::unique_ptr<Tensor> meant[3];
      for (const auto& [route, function] : routes) {
        std::unique_ptr<Tensor> results[3];
        for (std::size_t k = 0; k < 3; ++k)
          results[k] = std::make_unique<Tensor>(k == 1 ? DType::kFloat32 : DType::kInt64, std::vector<index_t>{b, m},
                                                k == 2 ? 1 : 0, nullptr);
        function({{x.ref}, {results[0]->ref, results[1]->ref, results[2]->ref}, {}}, {2});
        for (std::size_t k = 0; k < 3; ++k)
          if (route.engine == Engine::kInterpreter) meant[k] = std::move(results[k]);
          else EXPECT_TRUE(SameBits(*meant[k], *results[k])) << text << route.target << " " << n << " x " << m;
      }
    }
  };
  std::vector<Size> sizes;
  for (const index_t m : {1, 5, 15, 16, 17, 32, 33, 48, 64, 65, 300})
    for (const index_t n : {1, 7, 21, 40}) sizes.push_back({6, n, m});
  check("b, n, m", "b, m", sizes);
  check("6, 21, 17", "6, 17", {{6, 21, 17}});
  check("5, 7, 300", "5, 300", {{5, 7, 300}});
  check("4, 40, 49", "4, 49", {{4, 40, 49}});
}

// Columns of a matrix, in the place of the operand: no thread has steps that another has written already.
TEST(FewColumns, InPlace) {
  const std::string text =
      "kernel k(x: f32[n, m]) -> (y: f32[n, m]) {\n  e = exp(x)\n"
      "  y = e / broadcast<1>(reduce_with_axis<sum>(e, 0), e)\n}";
  for (const CompileOptions& route : Routes()) {
    const Function function = Compile(Parsed(text), route);
    for (const auto& [n, m] : {std::pair{256, 33}, {576, 47}, {300, 20}, {40, 15}}) {
      std::mt19937 random(7);
      Tensor x(DType::kFloat32, {n, m}, 0, &random), y(DType::kFloat32, {n, m}, 0, nullptr);
      function({{x.ref}, {y.ref}, {}}, {1});
      function({{x.ref}, {x.ref}, {}}, {3});
      EXPECT_TRUE(SameBits(x, y)) << route.target << " " << n << " x " << m;
    }
  }
}

// Axes before the columns join them, though their own number is known.
TEST(FewColumns, OfTwoAxes) {
  const std::string text =
      "kernel k(x: f32[n, c, 5], v: f32[c, 5]) -> (y: f32[c, 5]) { y = reduce_with_axis<sum>(x * broadcast_with_axis(v, -1, extent<0>(x)), 0) }";
  for (const index_t c : {1, 2, 3, 4}) {
    std::mt19937 random(6);
    const Tensor x(DType::kFloat32, {100, c, 5}, 0, &random), v(DType::kFloat32, {c, 5}, 0, &random);
    std::unique_ptr<Tensor> first, meant;
    for (const CompileOptions& route : Routes()) {
      auto y = std::make_unique<Tensor>(DType::kFloat32, std::vector<index_t>{c, 5}, 0, nullptr);
      Compile(Parsed(text), route)({{x.ref, v.ref}, {y->ref}, {}});
      if (route.engine == Engine::kInterpreter) meant = std::move(y);
      else if (first == nullptr) first = std::move(y);
      else EXPECT_TRUE(SameBits(*first, *y)) << route.target << " " << c;
    }
    ExpectNear(*first, *meant, text);
  }
}

// A call so large that its results would go past the caches, and then others, of results that lie anywhere.
TEST(FewColumns, AfterALargeCall) {
  const std::string text = "kernel k(x: f32[n, 16, m]) -> (y: f32[n, m]) { y = reduce_with_axis<sum>(x, 1) }";
  for (const CompileOptions& route : Routes()) {
    if (route.engine == Engine::kInterpreter) continue;
    const Function function = Compile(Parsed(text), route);
    const index_t rows = 1666666;
    const std::vector<float> many(static_cast<std::size_t>(rows * 48), 1.0f);
    std::vector<float> sums(static_cast<std::size_t>(rows * 3 + 16));
    void* const aligned = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(sums.data()) + 63) / 64 * 64);
    function({{runtime::TensorRef::Dense(const_cast<float*>(many.data()), DType::kFloat32, {rows, 16, 3})},
              {runtime::TensorRef::Dense(aligned, DType::kFloat32, {rows, 3})},
              {}},
             {1});
    for (const index_t padding : {0, 5}) {
      const Tensor y(DType::kFloat32, {101, 3}, padding, nullptr);
      function(
          {{runtime::TensorRef::Dense(const_cast<float*>(many.data()), DType::kFloat32, {101, 16, 3})}, {y.ref}, {}},
          {3});
      drawn::ForEachIndex(
          {101, 3}, [&](const std::vector<index_t>& i) { ASSERT_EQ(y.At(i), 16) << route.target << " " << padding; });
    }
  }
}

}  // namespace
}  // namespace umbra
