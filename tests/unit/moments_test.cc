// Means and variances of what is cut into blocks: each block finds both at once, whatever lies where.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/support/drawn.h"
#include "tests/unit/index_map_common.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using drawn::SameBits;
using drawn::Tensor;

// Of x, by `axes` that stay, in f64 by the definition; the results are the means, then the variances.
struct Expected {
  std::vector<double> mean, variance;
};

Expected ByDefinition(const Tensor& x, const std::vector<std::size_t>& stay) {
  std::size_t count = 1;
  for (const std::size_t axis : stay) count *= static_cast<std::size_t>(x.ref.shape[axis]);
  Expected expected{std::vector<double>(count), std::vector<double>(count)};
  const auto place = [&](const std::vector<index_t>& i) {
    std::size_t at = 0;
    for (const std::size_t axis : stay)
      at = at * static_cast<std::size_t>(x.ref.shape[axis]) + static_cast<std::size_t>(i[axis]);
    return at;
  };
  double elements = 1;
  for (const index_t extent : x.ref.shape) elements *= static_cast<double>(extent);
  elements /= static_cast<double>(count);
  drawn::ForEachIndex(x.ref.shape,
                      [&](const std::vector<index_t>& i) { expected.mean[place(i)] += x.At(i) / elements; });
  drawn::ForEachIndex(x.ref.shape, [&](const std::vector<index_t>& i) {
    const double away = x.At(i) - expected.mean[place(i)];
    expected.variance[place(i)] += away * away / elements;
  });
  return expected;
}

struct Case {
  const char* text;
  std::vector<index_t> shape;
  std::vector<std::size_t> stay;
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"kernel k(x: T[1, n]) -> (a: T[1], v: T[1]) {\n  a = reduce_with_axis<mean>(x, 1)\n  c = x - broadcast<0>(a)\n  v = reduce_with_axis<mean>(c * c, 1)\n}",
       {1, 300017},
       {0}},
      {"kernel k(x: T[n, m]) -> (a: T[n], v: T[n]) {\n  a = reduce_with_axis<mean>(x, 1)\n  c = x - broadcast<0>(a)\n  v = reduce_with_axis<mean>(c * c, 1)\n}",
       {3, 140001},
       {0}},
      // More rows, each of which is long.
      {"kernel k(x: T[n, m]) -> (a: T[n], v: T[n]) {\n  a = reduce_with_axis<mean>(x, 1)\n  c = x - broadcast<0>(a)\n  v = reduce_with_axis<mean>(c * c, 1)\n}",
       {17, 524300},
       {0}},
      {"kernel k(x: T[n, m]) -> (a: T[m], v: T[m]) {\n  a = reduce_with_axis<mean>(x, 0)\n  c = x - broadcast<1>(a)\n  v = reduce_with_axis<mean>(c * c, 0)\n}",
       {70001, 3},
       {1}},
      {"kernel k(x: T[n, m]) -> (a: T[m], v: T[m]) {\n  a = reduce_with_axis<mean>(x, 0)\n  c = x - broadcast<1>(a)\n  v = reduce_with_axis<mean>(c * c, 0)\n}",
       {3001, 131},
       {1}},
      // More columns than a kernel walks at once, and their blocks would not stay in a cache.
      {"kernel k(x: T[n, m]) -> (a: T[m], v: T[m]) {\n  a = reduce_with_axis<mean>(x, 0)\n  c = x - broadcast<1>(a)\n  v = reduce_with_axis<mean>(c * c, 0)\n}",
       {601, 1103},
       {1}},
      {"kernel k(x: T[n, c, s]) -> (a: T[c], v: T[c]) {\n  a = sumall_except_dim<1>(x) / tcast<T>(extent<0>(x) * extent<2>(x))\n  d = x - broadcast<1>(a, x)\n"
       "  v = sumall_except_dim<1>(d * d) / tcast<T>(extent<0>(x) * extent<2>(x))\n}",
       {5, 2, 90001},
       {1}},
  };
  return cases;
}

std::string Typed(std::string text, const std::string& type) {
  for (std::size_t at; (at = text.find("T[")) != std::string::npos;) text.replace(at, 1, type);
  for (std::size_t at; (at = text.find("<T>")) != std::string::npos;) text.replace(at + 1, 1, type);
  return text;
}

void ExpectMoments(const Case& of, DType type, double mean, double deviation) {
  const std::string text = Typed(of.text, std::string(Name(type)));
  std::mt19937 random(7);
  Tensor x(type, of.shape, 0, nullptr);
  std::normal_distribution<double> draw(mean, deviation);
  index_t count = 1;
  for (const index_t extent : of.shape) count *= extent;
  SwitchDType(type, [&](auto tag) {
    for (index_t k = 0; k < count; ++k)
      static_cast<decltype(tag)*>(x.ref.data)[k] = static_cast<decltype(tag)>(draw(random));
  });
  const Expected expected = ByDefinition(x, of.stay);
  const auto results = static_cast<index_t>(expected.mean.size());
  std::unique_ptr<Tensor> first;
  for (const CompileOptions& route : Routes()) {
    if (route.engine == Engine::kInterpreter) continue;
    const Function function = Compile(graph::ParseText(text)[0], route);
    for (const int threads : {1, 3}) {
      const Tensor a(type, {results}, 0, nullptr);
      auto v = std::make_unique<Tensor>(type, std::vector<index_t>{results}, 0, nullptr);
      function({{x.ref}, {a.ref, v->ref}, {}}, {threads});
      // Each value less a mean is off by u times the mean; the sums, by as much as their longest chains of additions.
      const double u = type == DType::kFloat32 ? std::ldexp(1, -24) : std::ldexp(1, -53);
      const double bound = 4 * u * (1 + mean / deviation) + (type == DType::kFloat32 ? 1e-5 : 1e-12);
      for (index_t k = 0; k < results; ++k) {
        const double meant = expected.variance[static_cast<std::size_t>(k)];
        EXPECT_NEAR(v->At({k}), meant, bound * meant) << text << "\n" << route.target;
        EXPECT_NEAR(a.At({k}), expected.mean[static_cast<std::size_t>(k)], 1e-5 * (std::abs(mean) + deviation))
            << text << "\n"
            << route.target;
      }
      if (first == nullptr) first = std::move(v);
      else EXPECT_TRUE(SameBits(*first, *v)) << text << "\n" << route.target << ", " << threads << " threads";
    }
  }
}

TEST(Moments, Blocks) {
  for (const Case& of : Cases())
    for (const DType type : {DType::kFloat32, DType::kFloat64}) ExpectMoments(of, type, 0.5, 2);
}

TEST(Moments, BlocksOfALargeMean) {
  for (const Case& of : Cases()) ExpectMoments(of, DType::kFloat32, 3000, 0.58);
}

// What follows reads memory once more, and a center may be anything that the sum tells.
TEST(Moments, WhatFollows) {
  const std::string text =
      "kernel k(x: f32[n, m]) -> (y: f32[n, m]) {\n  a = reduce_with_axis<sum>(x, 0) * 0.0001\n  c = x - broadcast<1>(a)\n"
      "  y = c / broadcast<1>(sqrt(reduce_with_axis<sum>(c * c, 0)))\n}";
  for (const std::vector<index_t>& shape : {std::vector<index_t>{70001, 3}, {3001, 131}, {9001, 17}}) {
    std::mt19937 random(8);
    const Tensor x(DType::kFloat32, shape, 0, &random);
    std::unique_ptr<Tensor> meant, first;
    for (const CompileOptions& route : Routes()) {
      auto y = std::make_unique<Tensor>(DType::kFloat32, shape, 0, nullptr);
      Compile(graph::ParseText(text)[0], route)({{x.ref}, {y->ref}, {}}, {2});
      if (route.engine == Engine::kInterpreter) meant = std::move(y);
      else if (first == nullptr) first = std::move(y);
      else EXPECT_TRUE(SameBits(*first, *y)) << route.target;
    }
    drawn::ForEachIndex(shape, [&](const std::vector<index_t>& i) {
      ASSERT_NEAR(first->At(i), meant->At(i), 1e-4 * std::abs(meant->At(i)) + 1e-7);
    });
  }
}

// What is summed is the same for all elements of a row, or column.
TEST(Moments, OfNoElements) {
  const std::string text =
      "kernel k(x: f32[n, m], v: f32[m]) -> (y: f32[m], z: f32[n, m]) {\n  b = broadcast<1>(v, x)\n  c = reduce_with_axis<sum>(b, 0) / tcast<f32>(extent<0>(x)) + 1\n"
      "  d = b - broadcast<1>(c, x)\n  y = reduce_with_axis<sum>(d * d, 0)\n  z = x * broadcast<1>(y, x)\n}";
  for (const std::vector<index_t>& shape : {std::vector<index_t>{66666, 3}, {11764, 17}, {1526, 131}}) {
    std::mt19937 random(9);
    const Tensor x(DType::kFloat32, shape, 0, &random), v(DType::kFloat32, {shape[1]}, 0, &random);
    for (const CompileOptions& route : Routes()) {
      const Tensor y(DType::kFloat32, {shape[1]}, 0, nullptr), z(DType::kFloat32, shape, 0, nullptr);
      Compile(graph::ParseText(text)[0], route)({{x.ref, v.ref}, {y.ref, z.ref}, {}}, {2});
      for (index_t k = 0; k < shape[1]; ++k)
        ASSERT_NEAR(y.At({k}), static_cast<double>(shape[0]), 0.05 * static_cast<double>(shape[0])) << route.target;
    }
  }
}

}  // namespace
}  // namespace umbra
