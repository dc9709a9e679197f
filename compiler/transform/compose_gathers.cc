#include "compiler/transform/compose_gathers.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "compiler/transform/axis_parts.h"
#include "compiler/transform/copy_node.h"
#include "compiler/transform/gather_reads.h"
#include "compiler/transform/joined_parts.h"
#include "umbra/error.h"

namespace umbra::graph {

namespace {

using Kind = Node::Kind;

// Sources of more nodes are not computed where they are read.
constexpr std::size_t kFewNodes = 64;
// Tensors that are joined at once; as many as one kernel reads.
constexpr int kMostJoined = 16;

enum class Sources { kJoins, kAll };

class Composer {
 public:
  Composer(const Graph& source, bool on_gpu, Sources sources, OutputInputPairs apart, std::set<int> kept = {})
      : source_(source),
        on_gpu_(on_gpu),
        sources_(sources),
        kept_(std::move(kept)),
        result_(source.name()),
        reads_(source, std::move(apart)),
        positions_(source) {}

  Graph Run() {
    RewriteNodes(
        source_,
        [&](const Node& node, std::vector<int> inputs) {
          const bool composes = node.kind == Kind::kGather &&
                                (sources_ == Sources::kJoins ? JoinsMore(node, inputs[0]) : Composes(node, inputs[0]));
          if (composes) composed_.insert(NumberOf(node));
          return composes ? Compose(node, inputs) : CopyNode(&result_, node, std::move(inputs));
        },
        &result_);
    return std::move(result_);
  }

  // The gathers of what is put together of values that were computed where they are read and of others, which are
  // computed to memory, and so are written where they lie in the whole.
  std::set<int> PartsApart() {
    std::set<int> apart;
    for (const auto& [id, parts] : JoinsInMemory(source_, &positions_)) {
      const auto is_kept = [&](const JoinedPart& part) {
        return composed_.count(part.gather) == 0 && source_.node(part.source).kind != Kind::kInput;
      };
      if (!std::any_of(parts.begin(), parts.end(), is_kept)) continue;
      for (const JoinedPart& part : parts)
        if (composed_.count(part.gather) != 0) apart.insert(part.gather);
    }
    return apart;
  }

 private:
  bool Composes(const Node& gather, int source) {
    if (kept_.count(NumberOf(gather)) != 0 || IsBetterInMemory(gather) || IsViewOfKept(gather, source)) return false;
    const auto cost = CostOf(source);
    return cost && (*cost <= kCheap ? !reads_.IsOutput(gather.inputs[0]) && !reads_.IsBetterTurned(gather)
                                    : reads_.IsReadOnce(gather));
  }

  int NumberOf(const Node& node) const { return static_cast<int>(&node - source_.nodes().data()); }

  // Does the gather take what positions choose of other gathers, to join it with more?
  bool JoinsMore(const Node& gather, int source) const {
    return gather.guarded && !reads_.IsOutput(gather.inputs[0]) && result_.node(source).kind != Kind::kGather &&
           IsJoin(source) && Joined(source) < kMostJoined;
  }
  int Joined(int id) const {
    const Node& node = result_.node(id);
    if (node.kind == Kind::kCast) return Joined(node.inputs[0]);
    if (node.kind == Kind::kMap) return Joined(node.inputs[1]) + Joined(node.inputs[2]);
    return node.kind == Kind::kGather ? 1 : 0;
  }
  bool IsJoin(int id) const {
    const Node& node = result_.node(id);
    if (node.kind == Kind::kCast) return IsJoin(node.inputs[0]);
    if (node.kind == Kind::kBroadcast) return result_.node(node.inputs[0]).kind == Kind::kConstant;
    if (node.kind == Kind::kMap && node.op == Op::select) {
      const int condition = node.inputs[0];
      const bool can_move = result_.node(condition).kind == Kind::kInput || CostOf(condition);
      return can_move && IsJoin(node.inputs[1]) && IsJoin(node.inputs[2]);
    }
    return node.kind == Kind::kConstant || (node.kind == Kind::kGather && node.guarded);
  }

  // Do positions before one end lie before the other, too?
  bool Implies(int condition, int other) {
    const Node &a = result_.node(condition), &b = result_.node(other);
    return a.kind == Kind::kMap && b.kind == Kind::kMap && a.op == Op::lt && b.op == Op::lt &&
           a.inputs[0] == b.inputs[0] && places_.IsAtMost(a.inputs[1], b.inputs[1]);
  }

  // Does the gather join what is written where it lies, or read an input with more dimensions, by strides?
  bool IsBetterInMemory(const Node& gather) {
    const Node& from = source_.node(gather.inputs[0]);
    return !on_gpu_ && (IsJoinedInMemory(source_, NumberOf(gather), &positions_) ||
                        (from.kind == Kind::kGather && source_.node(from.inputs[0]).kind == Kind::kInput &&
                         !reads_.IsOutput(gather.inputs[0]) && PartsOfSource(source_, from, &positions_)));
  }

  // Does it read what is there as dimensions of another value in memory that are joined? Composed with that it would
  // divide its positions.
  bool IsViewOfKept(const Node& gather, int made) {
    const Node &from = source_.node(gather.inputs[0]), &source = result_.node(made);
    if (on_gpu_ || from.kind != Kind::kGather || source.kind != Kind::kGather) return false;
    const Kind kept = result_.node(source.inputs[0]).kind;
    return kept != Kind::kInput && kept != Kind::kGather && !reads_.IsOutput(gather.inputs[0]) &&
           !reads_.IsOutput(from.inputs[0]) && PartsOfResult(source_, from, &positions_);
  }

  // What an element of the value, which is no operand in memory, costs beside positions; none if it is not to be
  // computed where it is read.
  std::optional<double> CostOf(int source) const {
    if (result_.node(source).kind == Kind::kInput) return std::nullopt;
    std::set<int> seen;
    std::vector<int> open{source};
    double cost = 0;
    while (!open.empty()) {
      const int id = open.back();
      open.pop_back();
      if (!seen.insert(id).second) continue;
      const Node& node = result_.node(id);
      if (JoinsElements(node) || seen.size() > kFewNodes) return std::nullopt;
      const bool position = node.dtype == DType::kInt64 || node.dtype == DType::kBool;
      if (node.kind == Kind::kMap && !position) cost += Info(node.op).cost;
      const std::size_t first = node.kind == Kind::kGather ? 1 : 0;  // gathered from memory, where it stays
      open.insert(open.end(), node.inputs.begin() + static_cast<std::ptrdiff_t>(first), node.inputs.end());
    }
    return cost;
  }

  // `gather`, with these operands, of a source that is computed where it is read.
  int Compose(const Node& gather, std::vector<int> inputs) {
    const int guard = gather.guarded ? inputs.back() : -1;
    if (gather.guarded) inputs.pop_back();
    const std::vector<int> positions(inputs.begin() + 1, inputs.end());
    const Node from = result_.node(inputs[0]);
    known_.clear();
    int value;
    if (from.kind == Kind::kGather && (guard < 0 || !from.guarded || from.constant == gather.constant)) {
      value = GatherAt(inputs[0], positions, guard, from.guarded ? from.constant : gather.constant);
    } else {
      value = ValueAt(inputs[0], positions, guard);
      if (guard >= 0 && !HasGuard(value, guard, gather.constant)) {
        const int outside = result_.Constant(gather.constant, ComputeType(gather.dtype));
        value = result_.Cast(result_.Map(Op::select, {guard, value, outside}), gather.dtype);
      }
    }
    const std::size_t rank = gather.shape.size();
    return result_.node(value).shape.size() == rank
               ? value
               : result_.Broadcast(value, std::vector<int>(rank, -1), gather.shape);
  }

  // Is the value a gather with this guard, and that number elsewhere?
  bool HasGuard(int value, int guard, double outside) const {
    const Node& node = result_.node(value);
    return node.kind == Kind::kGather && node.guarded && node.inputs.back() == guard && node.constant == outside;
  }

  // The gather `id` at other positions, with `outside` where the guard or its own fails.
  int GatherAt(int id, const std::vector<int>& positions, int guard, double outside) {
    const Node node = result_.node(id);
    if (StaysView(id, positions)) return result_.Gather(id, positions, guard, outside);
    std::vector<int> at;
    for (std::size_t k = 1; k < node.inputs.size(); ++k) at.push_back(ValueAt(node.inputs[k], positions, guard));
    int both = guard;
    if (node.guarded) {
      both = guard >= 0 && !Implies(at.back(), guard) ? result_.Map(Op::logical_and, {guard, at.back()}) : at.back();
      at.pop_back();
    }
    return result_.Gather(node.inputs[0], std::move(at), both, outside);
  }

  // The value `id` at `positions`; where the guard fails it is any number, and nothing is read.
  int ValueAt(int id, const std::vector<int>& positions, int guard) {
    const auto key = std::make_pair(id, positions);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    const int value = MakeAt(id, positions, guard);
    known_.emplace(key, value);
    return value;
  }

  // Is the value an input in another shape, or what is in memory with dimensions divided? It is read where that lies.
  bool IsView(int id) {
    const Node& node = result_.node(id);
    if (on_gpu_ || node.kind != Kind::kGather) return false;
    const Node& from = result_.node(node.inputs[0]);
    if (JoinsElements(from)) return PartsOfSource(result_, node, &made_).has_value();
    return from.kind == Kind::kInput && PartsOfReshape(result_, node, &made_);
  }

  // Is it better read at these positions than its input at the places of those elements?
  bool StaysView(int view, const std::vector<int>& positions) {
    if (!IsView(view)) return false;
    const bool computed = result_.node(result_.node(view).inputs[0]).kind != Kind::kInput;
    return computed || IsDivided(view, positions) || IsJoined(view, positions);
  }

  // Do the places along a dimension of the input go along several axes, and these positions along one each? `view`
  // divides dimensions.
  bool IsJoined(int view, const std::vector<int>& positions) {
    if (!PartsOfSource(result_, result_.node(view), &made_)) return false;
    const auto axes = [this](int position) { return AxesOf(position).size(); };
    const std::vector<int> inputs = result_.node(view).inputs;
    return std::none_of(positions.begin(), positions.end(), [&](int position) { return axes(position) > 1; }) &&
           std::any_of(inputs.begin() + 1, inputs.end(),
                       [&](int place) { return axes(ValueAt(place, positions, -1)) > 1; });
  }

  std::set<int> AxesOf(int position) const {
    std::set<int> axes, seen;
    std::vector<int> open{position};
    while (!open.empty()) {
      const Node& node = result_.node(open.back());
      open.pop_back();
      if (node.kind == Kind::kIndex) axes.insert(node.axes[0]);
      for (const int input : node.inputs)
        if (seen.insert(input).second) open.push_back(input);
    }
    return axes;
  }

  // Do the places of such a value's elements in the input take a division that these positions do not?
  bool IsDivided(int view, const std::vector<int>& positions) {
    const auto divides = [this](int position) { return Divides(position); };
    const std::vector<int> inputs = result_.node(view).inputs;
    return std::none_of(positions.begin(), positions.end(), divides) &&
           std::any_of(inputs.begin() + 1, inputs.end(),
                       [&](int place) { return Divides(ValueAt(place, positions, -1)); });
  }

  bool Divides(int position) {
    std::set<int> seen;
    const std::function<bool(int)> look = [&](int id) {
      const Node& node = result_.node(id);
      if (node.kind != Kind::kMap || !seen.insert(id).second) return false;
      const std::vector<int> inputs = node.inputs;
      const auto is_constant = [&](int input) { return result_.node(input).kind == Kind::kConstant; };
      if (node.op == Op::div && !std::all_of(inputs.begin(), inputs.end(), is_constant) &&
          !places_.Quotient(inputs[0], inputs[1]))
        return true;
      return std::any_of(inputs.begin(), inputs.end(), look);
    };
    return look(position);
  }

  int ElementAt(int id, std::vector<int> positions, int guard) {
    if (IsView(id) && !StaysView(id, positions)) return ValueAt(id, positions, guard);
    return Element(id, std::move(positions), guard);
  }
  int Element(int id, std::vector<int> positions, int guard) {
    return result_.Gather(id, positions, IsInside(id, positions) ? -1 : guard, 0);
  }

  // Is there such an element wherever the positions are asked for?
  bool IsInside(int id, const std::vector<int>& positions) {
    const PartialShape shape = result_.node(id).shape;
    for (std::size_t d = 0; d < positions.size(); ++d) {
      const Dimension extent = result_.Known(shape[d]);
      const int end = extent.is_static()
                          ? result_.Constant(static_cast<double>(static_cast<index_t>(extent)), DType::kInt64)
                          : result_.ExtentOf(extent);
      if (!places_.IsLess(positions[d], end) || !places_.IsAtMost(result_.Constant(0, DType::kInt64), positions[d]))
        return false;
    }
    return true;
  }

  int MakeAt(int id, const std::vector<int>& positions, int guard) {
    const Node node = result_.node(id);
    if (node.shape.size() == 0 && node.kind != Kind::kInput) return id;
    switch (node.kind) {
      case Kind::kInput: return ElementAt(id, positions, guard);
      case Kind::kIndex: return positions[static_cast<std::size_t>(node.axes[0])];
      case Kind::kGather: {
        if (node.guarded) return GatherAt(id, positions, guard, node.constant);
        if (StaysView(id, positions)) return Element(id, positions, guard);
        std::vector<int> at;
        for (std::size_t k = 1; k < node.inputs.size(); ++k) at.push_back(ValueAt(node.inputs[k], positions, guard));
        return ElementAt(node.inputs[0], std::move(at), guard);
      }
      case Kind::kBroadcast:
      case Kind::kTranspose: {
        std::vector<int> inner(result_.node(node.inputs[0]).shape.size(), -1);
        for (std::size_t d = 0; d < node.axes.size(); ++d)
          if (node.axes[d] >= 0) inner[static_cast<std::size_t>(node.axes[d])] = positions[d];
        // What is dear is computed once, and not for each row.
        if (node.kind == Kind::kBroadcast && IsForRows(node) && CostOf(node.inputs[0]).value_or(0) > kCheap)
          return Element(node.inputs[0], inner, guard);
        return ValueAt(node.inputs[0], inner, guard);
      }
      case Kind::kMap:
      case Kind::kCast: {
        std::vector<int> inputs;
        for (const int input : node.inputs) inputs.push_back(ValueAt(input, positions, guard));
        return CopyNode(&result_, node, std::move(inputs));
      }
      default: throw InternalError("a value that cannot be computed at other positions");
    }
  }

  const Graph& source_;
  const bool on_gpu_;
  const Sources sources_;
  const std::set<int> kept_;  // gathers of what stays
  std::set<int> composed_;  // of the source
  Graph result_;
  GatherReads reads_;  // of the source
  PositionForms positions_;  // of the source
  Positions places_{&result_};
  PositionForms made_{result_};
  std::map<std::pair<int, std::vector<int>>, int> known_;  // of the gather that is being composed
};

}  // namespace

Graph JoinAtOnce(const Graph& graph) { return Composer(graph, false, Sources::kJoins, {}).Run(); }

Graph ComposeGathers(const Graph& graph, bool on_gpu) {
  const std::set<int> shared = on_gpu ? std::set<int>() : GathersOfSharedParts(graph);
  Composer composer(graph, on_gpu, Sources::kAll, {}, shared);
  Graph composed = composer.Run();
  OutputInputPairs apart = GatheredByAlike(composed);
  std::set<int> kept = on_gpu ? std::set<int>() : composer.PartsApart();
  if (apart.empty() && kept.empty()) return composed;
  kept.insert(shared.begin(), shared.end());
  return Composer(graph, on_gpu, Sources::kAll, std::move(apart), std::move(kept)).Run();
}

}  // namespace umbra::graph
