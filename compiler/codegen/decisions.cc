#include "compiler/codegen/decisions.h"

namespace umbra::codegen {

using graph::Op;
using plan::Value;
using Kind = Value::Kind;

std::optional<bool> Decisions::Holds(int condition) const {
  if (const auto found = known_.find(condition); found != known_.end()) return found->second;
  if (const auto found = follows_.find(condition); found != follows_.end()) return found->second;
  return follows_[condition] = Follows(value(condition));
}

std::optional<bool> Decisions::Follows(const Value& v) const {
  if (v.kind == Kind::kConstant) return v.constant != 0;
  if (v.kind != Kind::kMap || v.type != DType::kBool) return std::nullopt;
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

bool Decisions::CountOutcomes(const plan::Phase& phase, const std::function<bool(int)>& can_know, int* left) {
  const int open = ReachOf(phase, can_know).open;
  if (open < 0) return --*left >= 0;
  bool few = true;
  for (const bool holds : {true, false}) {
    Decide(open, holds);
    few = few && CountOutcomes(phase, can_know, left);
  }
  Forget(open);
  return few;
}

bool Decisions::AreFew(const plan::Phase& phase, const std::function<bool(int)>& can_know, int most) {
  return CountOutcomes(phase, can_know, &most);
}

}  // namespace umbra::codegen
