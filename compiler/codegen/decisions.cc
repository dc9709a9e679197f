#include "compiler/codegen/decisions.h"

#include <algorithm>
#include <utility>

namespace umbra::codegen {

namespace {

// Outcomes that have little each, as where many tensors are joined, and how often all together have what there is.
constexpr int kMostJoined = 64;
constexpr std::size_t kPartsOfAll = 4;

}  // namespace

using graph::Op;
using plan::Value;
using Kind = Value::Kind;

std::optional<bool> Decisions::Holds(int condition) const {
  if (const auto found = known_.find(condition); found != known_.end()) return found->second;
  if (const auto found = follows_.find(condition); found != follows_.end()) return found->second;
  return follows_[condition] = Follows(value(condition));
}

// Differences of other numbers may wrap around. Positions are made in a few steps.
bool Decisions::IsPosition(int id, int steps) const {
  const Value& v = value(id);
  if (v.kind == Kind::kIndex || v.kind == Kind::kNumber || v.kind == Kind::kConstant) return true;
  return v.kind == Kind::kMap && steps > 0 &&
         std::all_of(v.args.begin(), v.args.end(), [&](int arg) { return IsPosition(arg, steps - 1); });
}

std::optional<Decisions::Order> Decisions::OrderOf(const Value& v) const {
  if (v.kind != Kind::kMap || v.type != DType::kBool || v.args.size() != 2 || value(v.args[0]).type != DType::kInt64)
    return std::nullopt;
  const bool swapped = v.op == Op::gt || v.op == Op::ge;
  if (!swapped && v.op != Op::lt && v.op != Op::le) return std::nullopt;
  int sides[] = {v.args[swapped ? 1 : 0], v.args[swapped ? 0 : 1]};
  const auto number = [this](int id) {
    const Value& of = value(id);
    return of.kind == Kind::kConstant ? std::optional(static_cast<index_t>(of.constant)) : std::nullopt;
  };
  for (const int zero : {0, 1}) {
    const Value& difference = value(sides[1 - zero]);
    if (number(sides[zero]) != 0 || difference.kind != Kind::kMap || difference.op != Op::minus ||
        !IsPosition(sides[1 - zero]))
      continue;
    sides[zero] = difference.args[1 - zero];  // 0 < a - b: b < a
    sides[1 - zero] = difference.args[zero];
    if (zero == 1) std::swap(sides[0], sides[1]);
    break;
  }
  return Order{{sides[0], number(sides[0])}, {sides[1], number(sides[1])}, v.op == Op::le || v.op == Op::ge};
}

std::optional<bool> Decisions::Follows(const Order& asked) const {
  const auto same = [](const Side& a, const Side& b) { return a.id == b.id || (a.number && a.number == b.number); };
  for (const auto& [condition, holds] : known_) {
    std::optional<Order> fact = OrderOf(value(condition));
    if (!fact) continue;
    if (!holds) {
      std::swap(fact->less, fact->more);
      fact->or_equal = !fact->or_equal;
    }
    if (same(fact->less, asked.less) && same(fact->more, asked.more) && (!fact->or_equal || asked.or_equal))
      return true;
    if (same(fact->less, asked.more) && same(fact->more, asked.less) && !(fact->or_equal && asked.or_equal))
      return false;
    // The least or the most that one side may be, if the other is a number, of both.
    const bool below = fact->more.number.has_value(), asks_below = asked.more.number.has_value();
    if (below == fact->less.number.has_value() || asks_below == asked.less.number.has_value()) continue;
    if ((below ? fact->less : fact->more).id != (asks_below ? asked.less : asked.more).id) continue;
    const auto bound = [](const Order& order, bool is_below) {
      const index_t beside = order.or_equal ? 0 : 1;
      return is_below ? *order.more.number - beside : *order.less.number + beside;
    };
    const index_t known = bound(*fact, below), wanted = bound(asked, asks_below);
    if (below == asks_below && (below ? known <= wanted : known >= wanted)) return true;
    if (below != asks_below && (below ? known < wanted : known > wanted)) return false;
  }
  return std::nullopt;
}

std::optional<bool> Decisions::Follows(const Value& v) const {
  if (v.kind == Kind::kConstant) return v.constant != 0;
  if (v.kind != Kind::kMap || v.type != DType::kBool) return std::nullopt;
  if (const auto order = OrderOf(v)) return Follows(*order);
  if (v.op == Op::logical_not) {
    const auto holds = Holds(v.args[0]);
    return holds ? std::optional(!*holds) : std::nullopt;
  }
  if (v.op != Op::logical_and && v.op != Op::logical_or) return std::nullopt;
  const bool decides = v.op == Op::logical_or;  // one operand that is so is enough
  const auto a = Holds(v.args[0]), b = Holds(v.args[1]);
  if (a == decides || b == decides) return decides;
  return a && b ? std::optional(!decides) : std::nullopt;
}

std::optional<int> Decisions::ConditionOf(int id) const {
  const Value& v = value(id);
  if (v.kind == Kind::kGather && v.guarded) return v.args.back();
  if (v.kind == Kind::kMap && v.op == Op::select) return v.args[0];
  return std::nullopt;
}

std::optional<bool> Decisions::Reads(int gather) const {
  const auto guard = ConditionOf(gather);
  return guard ? Holds(*guard) : true;
}

std::optional<int> Decisions::Chosen(int select) const {
  const Value& v = value(select);
  if (v.kind != Kind::kMap || v.op != Op::select) return std::nullopt;
  const auto holds = Holds(v.args[0]);
  return holds ? std::optional(v.args[*holds ? 1 : 2]) : std::nullopt;
}

int Decisions::OpenPart(int condition) const {
  const Value& v = value(condition);
  if (v.kind == Kind::kMap && (v.op == Op::logical_and || v.op == Op::logical_or || v.op == Op::logical_not))
    for (const int arg : v.args)
      if (!Holds(arg)) return OpenPart(arg);
  return condition;
}

void Decisions::Collect(int id, const std::function<bool(int)>& can_know, Reach* reach) const {
  if (!reach->values.insert(id).second) return;
  if (const auto chosen = Chosen(id)) return Collect(*chosen, can_know, reach);
  std::span<const int> args = value(id).args;
  if (const auto condition = ConditionOf(id)) {
    if (const auto reads = Holds(*condition)) args = args.first(*reads ? args.size() - 1 : 0);
    else if (reach->open < 0 && can_know(*condition)) reach->open = OpenPart(*condition);
  }
  CollectAll(args, can_know, reach);
}

void Decisions::CollectAll(std::span<const int> values, const std::function<bool(int)>& can_know, Reach* reach) const {
  for (const int id : values) Collect(id, can_know, reach);
}

Decisions::Reach Decisions::ReachOf(const plan::Phase& phase, const std::function<bool(int)>& can_know) const {
  Reach reach;
  for (const auto& reduction : phase.reductions) Collect(reduction.value, can_know, &reach);
  for (const auto& stage : phase.stages) Collect(stage.value, can_know, &reach);
  for (const auto& store : phase.stores) Collect(store.value, can_know, &reach);
  return reach;
}

void Decisions::CountOutcomes(const plan::Phase& phase, const std::function<bool(int)>& can_know, int most,
                              Outcomes* outcomes) {
  const Reach reach = ReachOf(phase, can_know);
  if (reach.open < 0) {
    ++outcomes->count;
    outcomes->values += static_cast<std::size_t>(
        std::count_if(reach.values.begin(), reach.values.end(), [this](int id) { return !Chosen(id); }));
    return;
  }
  for (const bool holds : {true, false}) {
    if (outcomes->count > most) return;
    Decide(reach.open, holds);
    CountOutcomes(phase, can_know, most, outcomes);
    Forget(reach.open);
  }
}

bool Decisions::AreFew(const plan::Phase& phase, const std::function<bool(int)>& can_know, int most) {
  Outcomes outcomes;
  CountOutcomes(phase, can_know, std::max(most, kMostJoined), &outcomes);
  return outcomes.count <= most ||
         (outcomes.count <= kMostJoined && outcomes.values <= kPartsOfAll * ReachOf(phase, can_know).values.size());
}

}  // namespace umbra::codegen
