// Quotients and differences of positions: what replaces them comes to the same at every point, and reshapes of what
// lies in memory need no division of what packets go along.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "compiler/driver/lower.h"
#include "compiler/driver/target.h"
#include "compiler/transform/position_forms.h"
#include "tests/support/drawn.h"
#include "tests/support/expect_each.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using drawn::ForEachIndex;
using drawn::Tensor;
using graph::Graph;
using Kind = graph::Node::Kind;

// What a position comes to at a point of its domain, where the open extents are `extents`, by symbol.
index_t At(const Graph& graph, int id, const std::vector<index_t>& point, const std::vector<index_t>& extents = {}) {
  const graph::Node& node = graph.node(id);
  if (node.kind == Kind::kConstant) return static_cast<index_t>(node.constant);
  if (node.kind == Kind::kIndex) return point[static_cast<std::size_t>(node.axes[0])];
  if (node.kind == Kind::kExtent) return extents[static_cast<std::size_t>(node.extent.symbol())];
  const index_t a = At(graph, node.inputs[0], point, extents), b = At(graph, node.inputs[1], point, extents);
  switch (node.op) {
    case graph::Op::plus: return a + b;
    case graph::Op::minus: return a - b;
    case graph::Op::mul: return a * b;
    case graph::Op::div: return b == 0 ? 0 : a / b;
    default: ADD_FAILURE() << "an operator of no position"; return 0;
  }
}

int Divisions(const Graph& graph, int id) {
  const graph::Node& node = graph.node(id);
  int count = node.kind == Kind::kMap && node.op == graph::Op::div ? 1 : 0;
  for (const int input : node.inputs) count += Divisions(graph, input);
  return count;
}

TEST(PositionForms, ComeToTheSame) {
  std::mt19937 random(11);
  const auto draw = [&](index_t low, index_t high) {
    return std::uniform_int_distribution<index_t>(low, high)(random);
  };
  int replaced = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::vector<index_t> extents = {draw(1, 6), draw(1, 6), draw(1, 6)};
    Graph graph("positions");
    const PartialShape shape{Dimension(extents[0]), Dimension(extents[1]), Dimension(extents[2])};
    const auto number = [&](index_t value) { return graph.Constant(static_cast<double>(value), DType::kInt64); };
    std::function<int(int)> make = [&](int depth) {
      if (depth == 0)
        return draw(0, 5) == 0 ? graph.Map(graph::Op::plus, {graph.Index(0, shape), number(draw(-3, 9))})
                               : graph.Index(static_cast<int>(draw(0, 2)), shape);
      switch (draw(0, 4)) {
        case 0: return graph.Map(graph::Op::mul, {make(depth - 1), number(draw(1, 12))});
        case 1: return graph.Map(graph::Op::div, {make(depth - 1), number(draw(1, 12))});
        case 2: return graph.Map(graph::Op::minus, {make(depth - 1), make(depth - 1)});
        default: return graph.Map(graph::Op::plus, {make(depth - 1), make(depth - 1)});
      }
    };
    const int position = make(4), other = make(2);
    graph::Positions forms(&graph);
    const index_t by = draw(1, 24);
    const std::optional<int> quotient = forms.Quotient(position, number(by)),
                             difference = forms.Difference(position, other);
    replaced += quotient.has_value() + difference.has_value();
    ForEachIndex(extents, [&](const std::vector<index_t>& point) {
      if (quotient) {
        ASSERT_EQ(At(graph, *quotient, point), At(graph, position, point) / by) << graph::Print(graph) << " by " << by;
      }
      if (difference) {
        ASSERT_EQ(At(graph, *difference, point), At(graph, position, point) - At(graph, other, point));
      }
    });
  }
  EXPECT_GT(replaced, 300);
}

TEST(PositionForms, ComeToTheSameWithOpenExtents) {
  std::mt19937 random(12);
  const auto draw = [&](index_t low, index_t high) {
    return std::uniform_int_distribution<index_t>(low, high)(random);
  };
  int replaced = 0;
  for (int round = 0; round < 3000; ++round) {
    Graph graph("positions");
    const std::vector<index_t> extents = {draw(1, 6), draw(1, 6), draw(1, 6), draw(0, 6)};  // the last is no axis'
    std::vector<Dimension> dims;
    for (int k = 0; k < 4; ++k) dims.push_back(Dimension::WithSymbol(graph.NewSymbol()));
    const PartialShape shape{dims[0], dims[1], dims[2]};
    const auto number = [&](index_t value) { return graph.Constant(static_cast<double>(value), DType::kInt64); };
    const auto factor = [&] {
      return draw(0, 2) > 0 ? graph.ExtentOf(dims[static_cast<std::size_t>(draw(0, 3))]) : number(draw(1, 6));
    };
    std::function<int(int)> make = [&](int depth) {
      if (depth == 0) return graph.Index(static_cast<int>(draw(0, 2)), shape);
      switch (draw(0, 5)) {
        case 0:
        case 1: return graph.Map(graph::Op::mul, {make(depth - 1), factor()});
        case 2: return graph.Map(graph::Op::div, {make(depth - 1), factor()});
        case 3: return graph.Map(graph::Op::minus, {make(depth - 1), make(depth - 1)});
        default: return graph.Map(graph::Op::plus, {make(depth - 1), make(depth - 1)});
      }
    };
    // Sums as of joined axes, as well as any.
    const auto joined = [&] {
      int sum = graph.Index(0, shape);
      for (int axis = 1; axis < 3; ++axis)
        sum = graph.Map(graph::Op::plus,
                        {graph.Map(graph::Op::mul, {sum, graph.ExtentOf(dims[static_cast<std::size_t>(axis)])}),
                         graph.Index(axis, shape)});
      return draw(0, 1) == 0
                 ? sum
                 : graph.Map(graph::Op::plus, {graph.Map(graph::Op::mul, {sum, number(4)}), number(draw(0, 3))});
    };
    const int position = draw(0, 1) == 0 ? make(3) : joined(), other = make(2);
    const int by = draw(0, 1) == 0 ? factor() : graph.Map(graph::Op::mul, {factor(), factor()});
    graph::Positions forms(&graph);
    const std::optional<int> quotient = forms.Quotient(position, by), difference = forms.Difference(position, other);
    replaced += quotient.has_value() + difference.has_value();
    ForEachIndex({extents[0], extents[1], extents[2]}, [&](const std::vector<index_t>& point) {
      const auto at = [&](int id) { return At(graph, id, point, extents); };
      if (quotient) {
        ASSERT_EQ(at(*quotient), at(by) == 0 ? 0 : at(position) / at(by)) << graph::Print(graph) << " by " << by;
      }
      if (difference) { ASSERT_EQ(at(*difference), at(position) - at(other)) << graph::Print(graph); }
    });
  }
  EXPECT_GT(replaced, 300);
}

TEST(PositionForms, WhatReshapesAskFor) {
  Graph graph("positions");
  const PartialShape shape{Dimension(70), Dimension(32), Dimension(98)};
  const auto number = [&](index_t value) { return graph.Constant(static_cast<double>(value), DType::kInt64); };
  const int i = graph.Index(0, shape), j = graph.Index(1, shape), k = graph.Index(2, shape);
  const auto sum = [&](int a, index_t by, int b) {
    return graph.Map(graph::Op::plus, {graph.Map(graph::Op::mul, {a, number(by)}), b});
  };
  graph::Positions forms(&graph);
  EXPECT_EQ(forms.Quotient(sum(i, 32, j), number(32)), i);
  const int rows = sum(i, 98, k);  // of 98 in ones of 784
  const std::optional<int> row = forms.Quotient(rows, number(784));
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(*row, graph.Map(graph::Op::div, {i, number(8)}));
  const int half = graph.Map(graph::Op::div, {j, number(2)});
  EXPECT_EQ(forms.Quotient(sum(i, 64, j), number(2)),
            graph.Map(graph::Op::plus, {graph.Map(graph::Op::mul, {i, number(32)}), half}));
  EXPECT_EQ(forms.Quotient(half, number(8)), graph.Map(graph::Op::div, {j, number(16)})) << "by both at once";
  EXPECT_EQ(forms.Quotient(sum(i, 98, k), number(100)), std::nullopt);
  EXPECT_EQ(forms.Quotient(graph.Map(graph::Op::minus, {j, number(1)}), number(1)), std::nullopt)
      << "quotients of negative numbers are rounded up";
  EXPECT_EQ(forms.Difference(i, j), std::nullopt);
}

// The map as a kernel for every target, on numbers that say where they are from.
void ExpectMoved(const std::string& text, const std::vector<index_t>& from, const std::vector<index_t>& to,
                 const std::function<index_t(const std::vector<index_t>&)>& source) {
  Tensor x(DType::kFloat32, from, 0, nullptr);
  index_t count = 1;
  for (const index_t extent : from) count *= extent;
  for (index_t k = 0; k < count; ++k) static_cast<float*>(x.ref.data)[k] = static_cast<float>(k);
  CompileOptions options;
  const auto expect = [&] {
    for (const index_t padding : {0, 3}) {
      Tensor y(DType::kFloat32, to, padding, nullptr);
      Compile(graph::ParseText(text)[0], options)({{x.ref}, {y.ref}, {}}, {2});
      ForEachIndex(to, [&](const std::vector<index_t>& at) {
        ASSERT_EQ(y.At(at), static_cast<double>(source(at))) << text << options.target;
      });
    }
  };
  for (const codegen::Target target : codegen::kAllTargets)
    if (HostRuns(target)) options.target = codegen::Name(target), expect();
  options.engine = Engine::kInterpreter;
  expect();
}

TEST(PositionForms, Reshapes) {
  ExpectMoved(
      "kernel k(x: f32[?, 64, 64]) -> (y: f32[?, ?, ?, ?, ?]) { y = transpose<0, 2, 4, 1, 3>(reshape(x, extent<0>(x), 32, 2, 32, 2)) }",
      {3, 64, 64}, {3, 2, 2, 32, 32},
      [](const std::vector<index_t>& i) { return (i[0] * 64 + i[3] * 2 + i[1]) * 64 + i[4] * 2 + i[2]; });
  ExpectMoved(
      "kernel k(x: f32[?, 16, 6, 20]) -> (y: f32[?, ?, ?, ?]) { y = reshape(transpose<0, 1, 4, 2, 5, 3>(reshape(x, extent<0>(x), 4, 2, 2, 6, 20)), extent<0>(x), 4, 12, 40) }",
      {2, 16, 6, 20}, {2, 4, 12, 40}, [](const std::vector<index_t>& i) {
        return ((i[0] * 16 + i[1] * 4 + i[2] % 2 * 2 + i[3] % 2) * 6 + i[2] / 2) * 20 + i[3] / 2;
      });
  ExpectMoved("kernel k(x: f32[?, 784]) -> (y: f32[?, ?]) { y = reshape(x, extent<0>(x) * 8, 98) }", {5, 784}, {40, 98},
              [](const std::vector<index_t>& i) { return i[0] * 98 + i[1]; });
  ExpectMoved(
      "kernel k(x: f32[?]) -> (y: f32[?, ?]) { n = extent<0>(x)\n y = concat(concat(reshape(x, n, 1), reshape(x + 1, n, 1), 1), reshape(flip(x, 0), n, 1), 1) }",
      {37}, {37, 3}, [](const std::vector<index_t>& i) { return i[1] == 0   ? i[0]
                                                                : i[1] == 1 ? i[0] + 1
                                                                            : 36 - i[0]; });
  ExpectMoved("kernel k(x: f32[?, 3]) -> (y: f32[?, 1]) { y = slice(x, 1, 2, 3) * 2 - slice(x, 1, 0, 1) }", {53, 3},
              {53, 1}, [](const std::vector<index_t>& i) { return i[0] * 3 + 4; });
}

// Numbers that may wrap around, as integers do, are left as they are.
TEST(PositionForms, WhatMayWrapAround) {
  constexpr index_t kCount = 10000, kFactor = 2251799813685248, kLarge = 3002399751580331;
  Tensor x(DType::kInt64, {kCount}, 0, nullptr), y(DType::kInt64, {kCount}, 0, nullptr);
  const auto at = [](Tensor& of) { return static_cast<long long*>(of.ref.data); };
  for (index_t k = 0; k < kCount; ++k) at(x)[k] = k % 7;
  const Function quotient = Compile(graph::ParseText(
      "kernel k(x: i64[10000]) -> (y: i64[10000]) { y = steps<i64>(10000, 1) * 2251799813685248 / 2 + x }")[0]);
  quotient({{x.ref}, {y.ref}, {}});
  for (index_t k = 0; k < kCount; ++k)
    ASSERT_EQ(at(y)[k], static_cast<index_t>(static_cast<std::uint64_t>(k) * kFactor) / 2 + k % 7) << k;
  const Function sum = Compile(graph::ParseText(
      "kernel k(x: i64[?]) -> (y: i64[?]) { y = (x * 3002399751580331 + x * 3002399751580331 + x * 3002399751580331) - x }")
                                   [0]);
  sum({{x.ref}, {y.ref}, {}});
  for (index_t k = 0; k < kCount; ++k) ASSERT_EQ(at(y)[k], 3 * kLarge * (k % 7) - k % 7) << k;
  const Function rest = Compile(graph::ParseText(
      "kernel k(x: i64[10000]) -> (y: i64[10000]) {\n  s = steps<i64>(10000, 1) * 2251799813685248 * 4096 + x\n"
      "  r = s + 1536\n  y = r - r / 3 * 3 == 0 ? 1 : x - x\n}")[0]);
  rest({{x.ref}, {y.ref}, {}});
  for (index_t k = 0; k < kCount; ++k) {
    const auto moved = static_cast<std::uint64_t>(k) * kFactor * 4096 + static_cast<std::uint64_t>(k % 7) + 1536;
    ASSERT_EQ(at(y)[k], static_cast<index_t>(moved) % 3 == 0) << k;
  }
}

// Where a condition bounds an index, quotients may need a division less. They come to the same there.
TEST(PositionForms, WhereAConditionHolds) {
  std::mt19937 random(3);
  const auto draw = [&](index_t low, index_t high) {
    return std::uniform_int_distribution<index_t>(low, high)(random);
  };
  int replaced = 0;
  for (int round = 0; round < 2000; ++round) {
    Graph graph("positions");
    const PartialShape shape{Dimension(draw(1, 5)), Dimension(draw(1, 40))};
    const auto number = [&](index_t value) { return graph.Constant(static_cast<double>(value), DType::kInt64); };
    const int row = graph.Index(0, shape), at = graph.Index(1, shape);
    const index_t from = draw(0, 20), to = draw(0, 40), by = draw(2, 12);
    const int above = draw(0, 1) == 0
                          ? graph.Map(graph::Op::ge, {graph.Map(graph::Op::minus, {at, number(from)}), number(0)})
                          : graph.Map(graph::Op::lt, {number(from - 1), at});
    const int below =
        draw(0, 1) == 0 ? graph.Map(graph::Op::lt, {at, number(to)}) : graph.Map(graph::Op::ge, {number(to - 1), at});
    const int moved = graph.Map(graph::Op::plus, {graph.Map(graph::Op::mul, {row, number(by * draw(0, 2))}),
                                                  graph.Map(graph::Op::minus, {at, number(draw(0, 20))})});
    graph::Positions positions(&graph);
    positions.Assume(graph.Map(graph::Op::logical_and, {above, below}));
    const auto quotient = positions.Quotient(moved, number(by));
    positions.Assume(std::nullopt);
    const auto anywhere = positions.Quotient(moved, number(by));
    if (!quotient) continue;
    replaced += anywhere ? 0 : 1;
    ForEachIndex({static_cast<index_t>(shape[0]), static_cast<index_t>(shape[1])},
                 [&](const std::vector<index_t>& point) {
                   if (point[1] < from || point[1] >= to) return;
                   EXPECT_EQ(At(graph, *quotient, point), At(graph, moved, point) / by) << graph::Print(graph);
                 });
  }
  EXPECT_GT(replaced, 100);
}

// Conditions are chosen among, too.
TEST(PositionForms, Conditions) {
  ExpectMoved("kernel k(x: f32[4, 5]) -> (y: f32[8, 5]) { v = x > 9\n y = concat(v, flip(v, 1), 0) ? 1 : 2 }", {4, 5},
              {8, 5}, [](const std::vector<index_t>& i) {
                const index_t from = i[0] < 4 ? i[0] * 5 + i[1] : (i[0] - 4) * 5 + 4 - i[1];
                return from > 9 ? 1 : 2;
              });
}

// Of axes of one index none is walked in packets.
TEST(PositionForms, AxesOfOneIndex) {
  const auto self = [](const std::vector<index_t>& i) { return i[0] + i[1] + i[2]; };
  ExpectMoved("kernel k(x: f32[?, 1, 1]) -> (y: f32[1, ?, 1]) { y = permute(x, 1, 0, 2) + 0 }", {53, 1, 1}, {1, 53, 1},
              self);
  ExpectMoved("kernel k(x: f32[?, 1, 1]) -> (y: f32[1, 1, ?]) { y = permute(x, 1, 2, 0) + 0 }", {53, 1, 1}, {1, 1, 53},
              self);
  ExpectMoved("kernel k(x: f32[1, ?, 1]) -> (y: f32[?, 1, 1]) { y = flip(flip(permute(x, 1, 0, 2), 0), 0) }",
              {1, 53, 1}, {53, 1, 1}, self);
  ExpectMoved("kernel k(x: f32[1, 1]) -> (y: f32[1, 1]) { y = flip(x, 1) }", {1, 1}, {1, 1},
              [](const std::vector<index_t>&) { return 0; });
}

// Rows of packets are read where they lie: the row is told once for each.
TEST(PositionForms, RowsNeedNoDivision) {
  const plan::Plan plan = Lower(*graph::ParseText(
      "kernel k(x: f32[?, 784]) -> (y: f32[?]) { g = reshape(x, extent<0>(x) * 8, 98)\n y = reduce_with_axis<maximum>(g - broadcast<0>(reduce_with_axis<mean>(g, 1)), 1) }")
                                    [0]);
  ASSERT_EQ(plan.steps.size(), 1u);
  const auto& kernel = std::get<plan::Kernel>(plan.steps[0]);
  for (const plan::Value& value : kernel.values)
    if (value.kind == plan::Value::Kind::kMap && value.op == graph::Op::div && value.type == DType::kInt64) {
      EXPECT_EQ(value.scope, plan::Scope::kRow);
    }
}

// Places that are computed of steps are positions where an i32 holds them, so that windows are read as they lie; where
// it does not, they wrap around.
TEST(PositionForms, PlacesOfSteps) {
  const auto windows = [](const std::string& place) {
    return "kernel k(x: f32[n, 90]) -> (y: f32[17, n]) {\n"
           "  i = reshape(broadcast<0>(steps<i32>(17, 1)) + broadcast<1>(steps<i32>(64, 1)), 1088)" +
           place +
           "\n  w = reshape(take(i, x.T), 17, 64, n)\n"
           "  y = reduce_with_axis<sum>(w * broadcast<1, 2>(slice(x, 1, 0, 64).T), 1)\n}";
  };
  const auto sum = [](const std::function<index_t(index_t)>& at) {
    return [at](const Tensor& x, const std::vector<index_t>& to) {
      double all = 0;
      for (index_t k = 0; k < 64; ++k) all += x.At({to[1], at(to[0] + k)}) * x.At({to[1], k});
      return all;
    };
  };
  drawn::ExpectEach(windows(" + 9"), {5, 90}, {17, 5}, sum([](index_t i) { return i + 9; }), 1e-4);
  drawn::ExpectEach(windows(" - 40"), {5, 90}, {17, 5}, sum([](index_t i) { return std::max<index_t>(i - 40, 0); }),
                    1e-4);
  drawn::ExpectEach(windows(" * 100000000"), {5, 90}, {17, 5}, sum([](index_t i) {
                      return std::clamp<index_t>(static_cast<std::int32_t>(static_cast<std::uint32_t>(i * 100000000)),
                                                 0, 89);
                    }),
                    1e-4);
}

// Quotients of what memory holds, which may wrap around, are computed.
TEST(PositionForms, QuotientsOfData) {
  const auto graph = graph::ParseText(
      "kernel k(x: i64[n]) -> (y: i64[n], z: i64[n]) {\n  y = (x * 4) / 4\n"
      "  z = (x - x * 3) / 2\n}")[0];
  std::int64_t x[] = {std::int64_t{1} << 62, 5, -7, (std::int64_t{1} << 61) + 3,
                      std::numeric_limits<std::int64_t>::min()};
  std::int64_t y[5], z[5];
  const auto dense = [](std::int64_t* data) { return runtime::TensorRef::Dense(data, DType::kInt64, {5}); };
  Compile(graph)(runtime::Arguments{{dense(x)}, {dense(y), dense(z)}, {}}, {1});
  for (int k = 0; k < 5; ++k) {
    const auto wrapped = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
    const auto bits = static_cast<std::uint64_t>(x[k]);
    EXPECT_EQ(y[k], wrapped(bits * 4) / 4);
    EXPECT_EQ(z[k], wrapped(bits - bits * 3) / 2);
  }
}

}  // namespace
}  // namespace umbra
