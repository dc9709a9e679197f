#include "compiler/transform/simplify.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/transform/copy_node.h"
#include "compiler/transform/position_forms.h"

namespace umbra::graph {

namespace {

using Kind = Node::Kind;

// Far below where positions wrap around.
constexpr double kMostMoved = 0x1p40;

constexpr int kFewSteps = 16;  // from an index to what is computed of it

class Simplifier {
 public:
  Simplifier(const Graph& source, bool positions_only)
      : source_(source),
        positions_only_(positions_only),
        result_(source.name()),
        readers_(source.nodes().size()) {
    for (const Node& node : source.nodes())
      for (const int input : node.inputs) ++readers_[static_cast<std::size_t>(input)];
    for (const Output& output : source.outputs()) ++readers_[static_cast<std::size_t>(output.node)];
  }

  Graph Run() {
    RewriteNodes(
        source_, [this](const Node& node, std::vector<int> inputs) { return Make(node, std::move(inputs)); }, &result_);
    return std::move(result_);
  }

 private:
  int Make(const Node& node, std::vector<int> inputs) {
    if (positions_only_ && ((node.kind != Kind::kMap && node.kind != Kind::kCast) || node.dtype != DType::kInt64))
      return CopyNode(&result_, node, std::move(inputs));
    switch (node.kind) {
      case Kind::kMap: return MakeMap(node, std::move(inputs));
      case Kind::kCast: return MakeCast(node, inputs[0]);
      case Kind::kTranspose: return MakeTranspose(node, inputs[0]);
      case Kind::kReduce: return MakeReduce(node, inputs[0]);
      case Kind::kGather: return MakeGather(node, std::move(inputs));
      default: return CopyNode(&result_, node, std::move(inputs));
    }
  }

  // Of whole numbers, the one index of an axis is 0.
  std::optional<double> ConstantOf(int id) const {
    const Node& node = result_.node(id);
    if (node.kind == Kind::kConstant) return node.constant;
    if (node.dtype != DType::kInt64) return std::nullopt;
    if (node.kind == Kind::kBroadcast) return ConstantOf(node.inputs[0]);
    const bool is_alone = node.kind == Kind::kIndex &&
                          result_.SameDimension(node.shape[static_cast<std::size_t>(node.axes[0])], Dimension(1));
    return is_alone ? std::optional(0.0) : std::nullopt;
  }

  // A whole number that is compared with itself, as what is decided and what steps of 1 leave no rest of, or constants.
  bool IsTrue(int id) const { return IsEquality(id, true); }
  bool IsFalse(int id) const { return IsEquality(id, false); }
  bool IsEquality(int id, bool holds) const {
    const Node& node = result_.node(id);
    if (node.kind != Kind::kMap || node.op != Op::eq || !IsInt(result_.node(node.inputs[0]).dtype)) return false;
    if (node.inputs[0] == node.inputs[1]) return holds;
    const auto a = ConstantOf(node.inputs[0]), b = ConstantOf(node.inputs[1]);
    return a && b && (*a == *b) == holds;
  }

  // Does a comparison of positions hold wherever indices stand?
  bool IsDecided(Op op, const std::vector<int>& inputs) {
    if (result_.node(inputs[0]).dtype != DType::kInt64) return false;
    const bool swapped = op == Op::gt || op == Op::ge;
    const int less = inputs[swapped ? 1 : 0], more = inputs[swapped ? 0 : 1];
    return op == Op::lt || op == Op::gt ? positions_.IsLess(less, more) : positions_.IsAtMost(less, more);
  }

  // Of two positions the one that is the larger or the smaller wherever indices stand.
  std::optional<int> DecidedExtreme(const Node& node, const std::vector<int>& inputs) {
    if (node.dtype != DType::kInt64) return std::nullopt;
    const std::size_t larger = node.op == Op::maximum ? 1 : 0;
    if (positions_.IsAtMost(inputs[0], inputs[1])) return inputs[larger];
    if (positions_.IsAtMost(inputs[1], inputs[0])) return inputs[1 - larger];
    return std::nullopt;
  }

  // An i32 that is computed of positions, as steps are, as the i64 that it is, if an i32 holds that: what wraps around
  // on the way there does so back.
  std::optional<int> AsPosition(int id) {
    const auto wide = Widened(id, kFewSteps);
    if (!wide || result_.node(*wide).shape.size() == 0) return std::nullopt;
    const int least = result_.Constant(-0x1p31, DType::kInt64), most = result_.Constant(0x1p31 - 1, DType::kInt64);
    return positions_.IsAtMost(least, *wide) && positions_.IsAtMost(*wide, most) ? wide : std::nullopt;
  }
  std::optional<int> Widened(int id, int steps) {
    const Node node = result_.node(id);  // a copy: nodes are added
    if (steps == 0 || node.dtype != DType::kInt32) return std::nullopt;
    if (node.kind == Kind::kConstant) return result_.Constant(node.constant, DType::kInt64);
    if (node.kind == Kind::kCast && result_.node(node.inputs[0]).dtype == DType::kInt64) return node.inputs[0];
    if (node.kind != Kind::kMap || (node.op != Op::plus && node.op != Op::minus && node.op != Op::mul))
      return std::nullopt;
    std::vector<int> inputs;
    for (const int input : node.inputs) {
      const auto wide = Widened(input, steps - 1);
      if (!wide) return std::nullopt;
      inputs.push_back(*wide);
    }
    return result_.Map(node.op, std::move(inputs));
  }

  static bool IsInt(DType type) { return type == DType::kInt32 || type == DType::kInt64; }

  bool HasShapeOf(int id, const Node& node) const { return result_.node(id).shape.size() == node.shape.size(); }

  // A number stands for a tensor of it.
  int Shaped(int id, const Node& node) {
    return HasShapeOf(id, node) ? id : result_.Broadcast(id, std::vector<int>(node.shape.size(), -1), node.shape);
  }

  int MakeMap(const Node& node, std::vector<int> inputs) {
    const auto a = ConstantOf(inputs[0]);
    const auto b = inputs.size() > 1 ? ConstantOf(inputs[1]) : std::nullopt;
    const bool keeps_shape = HasShapeOf(inputs[0], node);
    const bool is_zero = b && *b == 0 && !std::signbit(*b);
    if (const auto moved = MakeMoved(node, inputs, a, b)) return *moved;
    switch (node.op) {
      case Op::mul:
        if (b && *b == 1 && keeps_shape) return inputs[0];
        if (a && *a == 1 && HasShapeOf(inputs[1], node)) return inputs[1];
        if (node.dtype == DType::kInt64 && ((a && *a == 0) || (b && *b == 0)))
          return Shaped(result_.Constant(0, node.dtype), node);
        break;
      case Op::div:
        if (b && *b == 1 && keeps_shape) return inputs[0];
        if (node.dtype == DType::kInt64)
          if (const auto quotient = positions_.Quotient(inputs[0], inputs[1])) return Shaped(*quotient, node);
        break;
      case Op::plus:
        if (IsInt(node.dtype) && is_zero && keeps_shape) return inputs[0];
        if (IsInt(node.dtype) && a && *a == 0 && HasShapeOf(inputs[1], node)) return inputs[1];
        break;
      case Op::minus:
        if (is_zero && keeps_shape) return inputs[0];
        if (node.dtype == DType::kInt64)
          if (const auto difference = positions_.Difference(inputs[0], inputs[1])) return Shaped(*difference, node);
        break;
      case Op::negative: {
        const Node& operand = result_.node(inputs[0]);
        if (operand.kind == Kind::kMap && operand.op == Op::negative) return operand.inputs[0];
        break;
      }
      case Op::lt:
      case Op::gt:
      case Op::le:
      case Op::ge:
        if (IsDecided(node.op, inputs)) return result_.Map(Op::eq, {inputs[0], inputs[0]});
        break;
      case Op::maximum:
      case Op::minimum:
        if (const auto decided = DecidedExtreme(node, inputs)) return Shaped(*decided, node);
        break;
      case Op::logical_and:
        for (const std::size_t k : {std::size_t{0}, std::size_t{1}})
          if (IsTrue(inputs[k]) && HasShapeOf(inputs[1 - k], node)) return inputs[1 - k];
        break;
      case Op::eq:
        if (is_zero)
          if (const auto rest = RestOfMoved(inputs[0])) inputs[0] = Shaped(*rest, node);
        break;
      case Op::ne: {  // a condition that was made a number
        const Node& number = result_.node(inputs[0]);
        if (b && *b == 0 && keeps_shape && number.kind == Kind::kCast &&
            result_.node(number.inputs[0]).dtype == DType::kBool)
          return number.inputs[0];
        break;
      }
      case Op::select:
        if (IsTrue(inputs[0]) && HasShapeOf(inputs[1], node)) return inputs[1];
        if (IsFalse(inputs[0]) && HasShapeOf(inputs[2], node)) return inputs[2];
        if (node.dtype == DType::kBool)
          if (const auto condition = SelectedCondition(inputs)) return *condition;
        for (const std::size_t k : {std::size_t{1}, std::size_t{2}}) {
          const Node& operand = result_.node(inputs[k]);
          if (operand.kind == Kind::kMap && operand.op == Op::select && operand.inputs[0] == inputs[0])
            inputs[k] = operand.inputs[k];
        }
        break;
      default: break;
    }
    if (const auto folded = Fold(node, a, b)) return Shaped(result_.Constant(*folded, node.dtype), node);
    return result_.Map(node.op, std::move(inputs));
  }

  // One of two conditions as a condition of all three, of which packets have no selection.
  std::optional<int> SelectedCondition(const std::vector<int>& inputs) {
    const auto known = [&](int id) {
      const Node& of = result_.node(id);
      return ConstantOf(of.kind == Kind::kBroadcast ? of.inputs[0] : id);
    };
    const auto both = [&](int condition, int value) -> std::optional<int> {
      const auto constant = known(value);
      if (constant) return *constant != 0 ? std::optional(condition) : std::nullopt;
      return result_.Map(Op::logical_and, {condition, value});
    };
    const auto first = both(inputs[0], inputs[1]), second = both(result_.Map(Op::logical_not, {inputs[0]}), inputs[2]);
    if (!first || !second) return first ? first : second;
    return result_.Map(Op::logical_or, {*first, *second});
  }

  // A position moved by one constant after another, which is moved by their sum.
  std::optional<int> MakeMoved(const Node& node, std::vector<int> inputs, std::optional<double> a,
                               std::optional<double> b) {
    constexpr double kExact = 0x1p52;  // as a double, and as a sum of two
    if (node.dtype != DType::kInt64 || (node.op != Op::plus && node.op != Op::minus)) return std::nullopt;
    if (node.op == Op::plus && a && !b) {
      std::swap(inputs[0], inputs[1]);
      std::swap(a, b);
    }
    const Node& from = result_.node(inputs[0]);
    if (!b || from.kind != Kind::kMap || (from.op != Op::plus && from.op != Op::minus)) return std::nullopt;
    const auto first = ConstantOf(from.inputs[1]);
    if (!first || std::abs(*first) > kExact || std::abs(*b) > kExact) return std::nullopt;
    const double by = (from.op == Op::plus ? *first : -*first) + (node.op == Op::plus ? *b : -*b);
    const int start = from.inputs[0];
    if (by == 0 && HasShapeOf(start, node)) return start;
    return Shaped(result_.Map(Op::plus, {start, result_.Constant(by, DType::kInt64)}), node);
  }

  // Is the value an index, or made of one by adding numbers, so that it is far from where numbers wrap around?
  bool IsNearIndex(int id) const {
    constexpr int kFew = 16;
    const Node* node = &result_.node(id);
    for (int k = 0; k < kFew && node->kind == Kind::kMap && (node->op == Op::plus || node->op == Op::minus); ++k) {
      if (!ConstantOf(node->inputs[1]) || std::abs(*ConstantOf(node->inputs[1])) > kMostMoved) return false;
      node = &result_.node(node->inputs[0]);
    }
    return node->kind == Kind::kIndex;
  }

  // What x + c leaves of d is 0 where what x leaves is, if c is a multiple of d: x - x / d * d for the same of x + c.
  std::optional<int> RestOfMoved(int id) {
    const auto args = [this](int of, Op op) {
      const Node& node = result_.node(of);
      return node.kind == Kind::kMap && node.op == op && node.dtype == DType::kInt64
                 ? std::optional(std::pair(node.inputs[0], node.inputs[1]))
                 : std::nullopt;
    };
    const auto difference = args(id, Op::minus);
    const auto multiple = difference ? args(difference->second, Op::mul) : std::nullopt;
    const auto quotient = multiple ? args(multiple->first, Op::div) : std::nullopt;
    if (!quotient || quotient->first != difference->first || ConstantOf(quotient->second) < 1.0 ||
        ConstantOf(quotient->second) != ConstantOf(multiple->second))
      return std::nullopt;
    auto moved = args(quotient->first, Op::plus);
    if (!moved) moved = args(quotient->first, Op::minus);
    const auto by = moved ? ConstantOf(moved->second) : std::nullopt;
    if (!by || std::fmod(*by, *ConstantOf(quotient->second)) != 0 || std::abs(*by) > kMostMoved ||
        !IsNearIndex(moved->first))
      return std::nullopt;
    const int start = moved->first;
    return result_.Map(
        Op::minus, {start, result_.Map(Op::mul, {result_.Map(Op::div, {start, quotient->second}), multiple->second})});
  }

  // Positions of a gather that matter where the condition holds alone. Other readers have them as they were.
  void MakeWithin(int condition, std::vector<int>* inputs) {
    positions_.Assume(condition);
    std::map<int, int> made;
    for (std::size_t d = 1; d + 1 < inputs->size(); ++d) (*inputs)[d] = MakeAgain((*inputs)[d], &made);
    positions_.Assume(std::nullopt);
  }
  int MakeAgain(int id, std::map<int, int>* made) {
    const Node node = result_.node(id);
    if (node.kind != Kind::kMap || node.dtype != DType::kInt64) return id;
    if (const auto found = made->find(id); found != made->end()) return found->second;
    std::vector<int> inputs;
    for (const int input : node.inputs) inputs.push_back(MakeAgain(input, made));
    const int again = inputs == node.inputs && node.op != Op::div ? id : MakeMap(node, std::move(inputs));
    return made->emplace(id, again).first->second;
  }

  // A tensor read at each of its own positions is the tensor.
  int MakeGather(const Node& node, std::vector<int> inputs) {
    const bool guarded = node.guarded && !IsTrue(inputs.back());
    if (node.guarded && !guarded) inputs.pop_back();
    if (guarded) MakeWithin(inputs.back(), &inputs);
    const Node& from = result_.node(inputs[0]);
    bool own = from.shape.size() == node.shape.size();
    for (std::size_t d = 0; own && d < from.shape.size(); ++d) {
      const Node& position = result_.node(inputs[d + 1]);
      own = position.kind == Kind::kIndex && position.axes[0] == static_cast<int>(d) &&
            result_.SameDimension(from.shape[d], node.shape[d]);
    }
    if (!own && node.guarded != guarded) return result_.Gather(inputs[0], {inputs.begin() + 1, inputs.end()}, -1, 0);
    if (!own) return CopyNode(&result_, node, std::move(inputs));
    if (!guarded) return inputs[0];
    const DType type = ComputeType(node.dtype);
    const int inside = type == node.dtype ? inputs[0] : result_.Cast(inputs[0], type);
    const int chosen = result_.Map(Op::select, {inputs.back(), inside, result_.Constant(node.constant, type)});
    return type == node.dtype ? chosen : result_.Cast(chosen, node.dtype);
  }

  // Arithmetic of constants, rounded once to the dtype as the kernel would.
  std::optional<double> Fold(const Node& node, std::optional<double> a, std::optional<double> b) const {
    if (a && b && node.dtype == DType::kInt64) return FoldPositions(node.op, *a, *b);
    if (!a || !IsFloat(node.dtype)) return std::nullopt;
    if (node.op == Op::negative) return -*a;
    if (node.op == Op::sqrt) return std::sqrt(*a);
    if (!b) return std::nullopt;
    switch (node.op) {
      case Op::plus: return *a + *b;
      case Op::minus: return *a - *b;
      case Op::mul: return *a * *b;
      case Op::div: return *a / *b;
      default: return std::nullopt;
    }
  }

  // Positions stay far below 2^53.
  static std::optional<double> FoldPositions(Op op, double a, double b) {
    switch (op) {
      case Op::plus: return a + b;
      case Op::minus: return a - b;
      case Op::mul: return a * b;
      case Op::div: return b == 0 ? 0 : std::trunc(a / b);
      case Op::maximum: return std::max(a, b);
      case Op::minimum: return std::min(a, b);
      default: return std::nullopt;
    }
  }

  int MakeCast(const Node& node, int input) {
    const Node& operand = result_.node(input);
    const bool exact = operand.kind == Kind::kConstant && IsFloat(node.dtype) && node.dtype == ComputeType(node.dtype);
    if (exact) return result_.Constant(operand.constant, node.dtype);
    // A narrow value that was only widened is itself.
    if (operand.kind == Kind::kCast && node.dtype != operand.dtype && ComputeType(node.dtype) == operand.dtype &&
        result_.node(operand.inputs[0]).dtype == node.dtype)
      return operand.inputs[0];
    if (node.dtype == DType::kInt64 && operand.dtype == DType::kInt32)
      if (const auto position = AsPosition(input)) return *position;
    return result_.Cast(input, node.dtype);
  }

  int MakeTranspose(const Node& node, int input) {
    const Node& operand = result_.node(input);
    std::vector<int> axes = node.axes;
    if (operand.kind == Kind::kTranspose) {
      for (int& axis : axes) axis = operand.axes[static_cast<std::size_t>(axis)];
      input = operand.inputs[0];
    }
    bool identity = true;
    for (std::size_t d = 0; d < axes.size(); ++d) identity = identity && axes[d] == static_cast<int>(d);
    return identity ? input : result_.Transpose(input, std::move(axes));
  }

  // A reduction of what only it reads of another one by the same reducer is one over the axes of both.
  int MakeReduce(const Node& node, int input) {
    const Node& inner = result_.node(input);
    if (inner.kind != Kind::kReduce || inner.reducer != node.reducer || inner.keepdim != node.keepdim ||
        readers_[static_cast<std::size_t>(node.inputs[0])] > 1)
      return CopyNode(&result_, node, {input});
    const int from = inner.inputs[0];
    const auto is_reduced = [&](int axis) {
      return std::find(inner.axes.begin(), inner.axes.end(), axis) != inner.axes.end();
    };
    std::vector<int> left;  // the axes of `from` that the inner one leaves
    for (int axis = 0; axis < static_cast<int>(result_.node(from).shape.size()); ++axis)
      if (inner.keepdim || !is_reduced(axis)) left.push_back(axis);
    std::vector<int> axes = inner.axes;
    for (const int axis : node.axes) axes.push_back(left[static_cast<std::size_t>(axis)]);
    return result_.Reduce(node.reducer, from, std::move(axes), node.keepdim, node.contract || inner.contract);
  }

  const Graph& source_;
  const bool positions_only_;
  Graph result_;
  Positions positions_{&result_};
  std::vector<int> readers_;  // of each node of the source
};

}  // namespace

Graph Simplify(const Graph& graph) { return Simplifier(graph, false).Run(); }

Graph SimplifyPositions(const Graph& graph) { return Simplifier(graph, true).Run(); }

}  // namespace umbra::graph
