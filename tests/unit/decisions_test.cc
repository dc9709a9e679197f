// What is known of conditions leaves of a kernel's values.
#include "compiler/codegen/decisions.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "compiler/graph/op.h"

namespace umbra::codegen {
namespace {

using graph::Op;
using plan::Value;

// The values of a kernel, one after the other.
struct Values {
  int Add(Value::Kind kind, DType type, std::vector<int> args = {}, Op op = {}) {
    Value v;
    v.kind = kind;
    v.type = type;
    v.op = op;
    v.args = std::move(args);
    kernel.values.push_back(v);
    return static_cast<int>(kernel.values.size()) - 1;
  }
  int Condition() { return Add(Value::Kind::kMap, DType::kBool, {}, Op::lt); }
  int Logic(Op op, std::vector<int> args) { return Add(Value::Kind::kMap, DType::kBool, std::move(args), op); }
  int Select(int condition, int a, int b) {
    return Add(Value::Kind::kMap, DType::kFloat32, {condition, a, b}, Op::select);
  }
  int Load() { return Add(Value::Kind::kLoad, DType::kFloat32); }
  int Read(int position, int guard) {
    const int id = Add(Value::Kind::kGather, DType::kFloat32, {position, guard});
    kernel.values.back().guarded = true;
    return id;
  }
  plan::Phase Storing(int value) const {
    plan::Phase phase;
    phase.stores.push_back({0, value});
    return phase;
  }
  plan::Kernel kernel;
};

const auto kAny = [](int) { return true; };

TEST(Decisions, ConditionsFollowFromTheirParts) {
  Values v;
  const int a = v.Condition(), b = v.Condition(), both = v.Logic(Op::logical_and, {a, b}),
            either = v.Logic(Op::logical_or, {a, b}), neither = v.Logic(Op::logical_not, {either});
  Decisions known(v.kernel);
  EXPECT_EQ(known.Holds(both), std::nullopt);
  known.Decide(a, true);
  EXPECT_EQ(known.Holds(both), std::nullopt);
  EXPECT_EQ(known.Holds(either), true);
  EXPECT_EQ(known.Holds(neither), false);
  known.Decide(b, false);
  EXPECT_EQ(known.Holds(both), false);
  known.Forget(a);
  EXPECT_EQ(known.Holds(both), false);
  EXPECT_EQ(known.Holds(either), std::nullopt);
}

// All comparisons of a position with a number, as they are and as a difference that is compared with 0: what one tells
// of another is what is so for all positions that it holds for.
TEST(Decisions, ComparisonsFollowFromOthers) {
  Values v;
  struct Comparison {
    int condition;
    Op op;
    index_t number;
    bool is_turned;
  };
  const auto holds = [](const Comparison& c, index_t x) {
    const index_t a = c.is_turned ? c.number : x, b = c.is_turned ? x : c.number;
    switch (c.op) {
      case Op::lt: return a < b;
      case Op::le: return a <= b;
      case Op::gt: return a > b;
      default: return a >= b;
    }
  };
  const int x = v.Add(Value::Kind::kIndex, DType::kInt64);
  const auto number = [&](index_t value) {
    const int id = v.Add(Value::Kind::kConstant, DType::kInt64);
    v.kernel.values.back().constant = static_cast<double>(value);
    return id;
  };
  const int zero = number(0);
  std::vector<Comparison> all;
  for (const Op op : {Op::lt, Op::le, Op::gt, Op::ge})
    for (const index_t n : {2, 3, 4})
      for (const bool is_turned : {false, true}) {
        const int a = is_turned ? number(n) : x, b = is_turned ? x : number(n);
        all.push_back({v.Logic(op, {a, b}), op, n, is_turned});
        const int difference = v.Add(Value::Kind::kMap, DType::kInt64, {a, b}, Op::minus);
        all.push_back({v.Logic(op, {difference, zero}), op, n, is_turned});
        const int negative = v.Add(Value::Kind::kMap, DType::kInt64, {b, a}, Op::minus);
        all.push_back({v.Logic(op, {zero, negative}), op, n, is_turned});
      }
  for (const Comparison& known : all)
    for (const bool is : {false, true}) {
      Decisions decided(v.kernel);
      decided.Decide(known.condition, is);
      for (const Comparison& asked : all) {
        bool may[] = {false, false};
        for (index_t at = -3; at < 10; ++at)
          if (holds(known, at) == is) may[holds(asked, at) ? 1 : 0] = true;
        EXPECT_EQ(decided.Holds(asked.condition), may[0] && may[1] ? std::nullopt : std::optional(may[1]));
      }
    }
  // Differences of what memory tells may wrap around; comparisons of it do not.
  const int p = v.Add(Value::Kind::kLoad, DType::kInt64), q = v.Add(Value::Kind::kLoad, DType::kInt64);
  const int less = v.Logic(Op::lt, {p, q}), at_least = v.Logic(Op::ge, {p, q}),
            wraps = v.Logic(Op::lt, {v.Add(Value::Kind::kMap, DType::kInt64, {p, q}, Op::minus), zero});
  Decisions decided(v.kernel);
  decided.Decide(less, true);
  EXPECT_EQ(decided.Holds(at_least), false);
  EXPECT_EQ(decided.Holds(wraps), std::nullopt);
}

TEST(Decisions, WhatIsNotChosenIsNotReached) {
  Values v;
  const int left = v.Condition(), inside = v.Condition(), position = v.Add(Value::Kind::kIndex, DType::kInt64),
            read = v.Read(position, v.Logic(Op::logical_and, {left, inside})), other = v.Load(),
            chosen = v.Select(left, read, other);
  const plan::Phase phase = v.Storing(chosen);
  Decisions known(v.kernel);
  EXPECT_EQ(known.ReachOf(phase, kAny).open, left);
  EXPECT_EQ(known.ReachOf(phase, [](int) { return false; }).open, -1);
  known.Decide(left, false);
  EXPECT_EQ(known.Chosen(chosen), other);
  EXPECT_EQ(known.ReachOf(phase, kAny).values, (std::set<int>{other, chosen}));
  EXPECT_EQ(known.ReachOf(phase, kAny).open, -1);
  known.Decide(left, true);
  EXPECT_EQ(known.Chosen(chosen), read);
  EXPECT_EQ(known.Reads(read), std::nullopt);
  EXPECT_EQ(known.ReachOf(phase, kAny).open, inside);
  known.Decide(inside, false);
  EXPECT_EQ(known.ReachOf(phase, kAny).values, (std::set<int>{read, chosen}));
  known.Decide(inside, true);
  EXPECT_EQ(known.ReachOf(phase, kAny).values, (std::set<int>{position, read, chosen}));
}

TEST(Decisions, ManyOutcomesAreNotCountedToTheEnd) {
  Values v;
  int sum = v.Load();
  for (int k = 0; k < 60; ++k)
    sum = v.Add(Value::Kind::kMap, DType::kFloat32, {sum, v.Select(v.Condition(), v.Load(), v.Load())}, Op::plus);
  const plan::Phase phase = v.Storing(sum);
  Decisions known(v.kernel);
  EXPECT_FALSE(known.AreFew(phase, kAny, 16));
  EXPECT_EQ(known.Holds(1), std::nullopt);
  Values one;
  const plan::Phase few = one.Storing(one.Select(one.Condition(), one.Load(), one.Load()));
  EXPECT_TRUE(Decisions(one.kernel).AreFew(few, kAny, 2));
}

// More may be told apart where each has a small part of all, and not where each has most of it.
TEST(Decisions, OutcomesOfLittleEachMayBeMany) {
  Values joined;
  int chosen = joined.Load();
  for (int k = 0; k < 20; ++k) chosen = joined.Select(joined.Condition(), joined.Load(), chosen);
  const plan::Phase parts = joined.Storing(chosen);
  EXPECT_TRUE(Decisions(joined.kernel).AreFew(parts, kAny, 8));
  Values shared;
  int sum = shared.Load();
  for (int k = 0; k < 30; ++k) sum = shared.Add(Value::Kind::kMap, DType::kFloat32, {sum, shared.Load()}, Op::plus);
  for (int k = 0; k < 3; ++k)
    sum = shared.Add(Value::Kind::kMap, DType::kFloat32,
                     {sum, shared.Select(shared.Condition(), shared.Load(), shared.Load())}, Op::plus);
  const plan::Phase all = shared.Storing(sum);
  EXPECT_TRUE(Decisions(shared.kernel).AreFew(all, kAny, 8));
  EXPECT_FALSE(Decisions(shared.kernel).AreFew(all, kAny, 7));
}

}  // namespace
}  // namespace umbra::codegen
