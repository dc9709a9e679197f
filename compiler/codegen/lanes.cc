#include "compiler/codegen/lanes.h"

#include <fmt/format.h>

#include <set>

#include "compiler/codegen/literal.h"
#include "umbra/error.h"

namespace umbra::codegen {

using plan::Value;

namespace {

class Lane {
 public:
  Lane(const LaneContext& context, const std::string& index, Writer* out)
      : context_(context),
        index_(index),
        out_(out) {}

  Expr Of(int id) {
    if (const auto found = known_.find(id); found != known_.end()) return found->second;
    if (const auto found = context_.at_hand.find(id); found != context_.at_hand.end()) return {found->second};
    Expr e = Define(id);
    const Value& v = value(id);
    const bool computed = v.kind == Value::Kind::kMap || v.kind == Value::Kind::kGather;
    if (computed && e.text.size() > kInlineLength && (out_ != nullptr || IsShared(id))) {
      const std::string name = fmt::format("p{}", id),
                        text = fmt::format("const {} {} = {};", ScalarType(v.type), name, e.text);
      if (out_ != nullptr) out_->Line("{}", text);
      else shared_ += text + " ";
      e = {name};
    }
    known_.emplace(id, e);
    return e;
  }

  // The value as one expression. What it reads several times is named in it, so that no text grows with the paths to a
  // value.
  std::string Whole(int id) {
    CountReads(id);
    const std::string text = Of(id).text;
    return shared_.empty() ? text : fmt::format("[&] {{ {}return {}; }}()", shared_, text);
  }

 private:
  static constexpr std::size_t kInlineLength = 40;

  bool IsShared(int id) const {
    const auto found = reads_.find(id);
    return found != reads_.end() && found->second > 1;
  }

  void CountReads(int id) {
    if (++reads_[id] > 1 || context_.is_scalar(id)) return;
    for (const int arg : value(id).args) CountReads(arg);
  }

  const Value& value(int id) const { return context_.kernel->values[static_cast<std::size_t>(id)]; }

  Expr Define(int id) {
    const Value& v = value(id);
    if (v.kind == Value::Kind::kConstant) return {Literal(v.constant, v.type)};
    if (context_.is_scalar(id)) return {context_.scalar_text(id)};
    switch (v.kind) {
      case Value::Kind::kIndex:
        if (v.index == context_.kernel->signature.vector_axis) return {index_};
        return {v.index >= context_.first_of ? "0LL" : fmt::format("i{}", v.index)};
      case Value::Kind::kLoad:
      case Value::Kind::kStaged: return {context_.load_text(v, index_), v.type != DType::kBool};
      case Value::Kind::kReduced: return {context_.packet_text(id) + "[k]"};
      case Value::Kind::kCast: return SpellScalarCast(value(v.args[0]).type, v.type, Of(v.args[0]));
      case Value::Kind::kGather:
        return {GatherText(context_, v, [this](int arg) { return Parenthesised(Of(arg)); }),
                !v.guarded && v.type != DType::kBool};
      case Value::Kind::kMap: {
        std::vector<Expr> args;
        for (int arg : v.args) args.push_back(Of(arg));
        return SpellScalarMap(v.op, value(v.args[v.op == graph::Op::select ? 1 : 0]).type, args);
      }
      default: break;
    }
    throw InternalError("a value that cannot be computed by lanes");
  }

  static std::string Parenthesised(const Expr& e) { return e.atomic ? e.text : "(" + e.text + ")"; }

  const LaneContext& context_;
  std::string index_;
  Writer* out_;
  std::map<int, Expr> known_;
  std::map<int, int> reads_;
  std::string shared_;
};

}  // namespace

std::string GatherText(const LaneContext& context, const Value& gather,
                       const std::function<std::string(int value)>& text_of) {
  const std::size_t rank = gather.args.size() - (gather.guarded ? 1 : 0);
  std::string at;
  for (std::size_t d = 0; d < rank; ++d)
    at += (at.empty() ? "" : " + ") + text_of(gather.args[d]) +
          (context.is_by_one(gather, d) ? "" : " * " + context.stride_name(gather.index, static_cast<int>(d)));
  return GatherText(gather, fmt::format("{}[{}]", context.operand_name(gather.index), rank == 0 ? "0" : at),
                    gather.guarded ? text_of(gather.args.back()) : "");
}

std::string GatherText(const Value& gather, std::string element, const std::string& guard) {
  if (gather.guarded) element = fmt::format("{} ? {} : {}", guard, element, Literal(gather.constant, gather.type));
  if (gather.type == DType::kBool) element = (gather.guarded ? "(" + element + ")" : element) + " != 0";
  return element;
}

std::size_t LaneSize(const LaneContext& context, int value) {
  std::set<int> seen;
  std::vector<int> open{value};
  std::size_t size = 0;
  while (!open.empty()) {
    const int id = open.back();
    open.pop_back();
    if (context.is_scalar(id) || context.at_hand.count(id) > 0 || !seen.insert(id).second) continue;
    const Value& v = context.kernel->values[static_cast<std::size_t>(id)];
    if (v.kind == Value::Kind::kMap || v.kind == Value::Kind::kCast) ++size;
    open.insert(open.end(), v.args.begin(), v.args.end());
  }
  return size;
}

std::string EmitLane(const LaneContext& context, int value, const std::string& index, Writer* out) {
  Lane lane(context, index, out);
  return out == nullptr ? lane.Whole(value) : lane.Of(value).text;
}

}  // namespace umbra::codegen
