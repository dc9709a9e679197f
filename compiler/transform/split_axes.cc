#include "compiler/transform/split_axes.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/transform/copy_node.h"

namespace umbra::graph {

namespace {

using Kind = Node::Kind;

// What a gather joins to an axis of its own: dimensions of its source, and their extents.
struct Joined {
  int first = 0;
  std::vector<Dimension> extents;
};

class Splitter {
 public:
  explicit Splitter(const Graph& source)
      : source_(source),
        result_(source.name()),
        made_(source.nodes().size(), -1),
        readers_(source.nodes().size()) {
    for (std::size_t id = 0; id < readers_.size(); ++id)
      for (const int input : source_.nodes()[id].inputs)
        readers_[static_cast<std::size_t>(input)].push_back(static_cast<int>(id));
    for (const Output& output : source_.outputs()) readers_[static_cast<std::size_t>(output.node)].push_back(-1);
  }

  Graph Run() {
    RewriteNodes(
        source_,
        [this](const Node& node, std::vector<int> inputs) {
          const auto split = node.kind == Kind::kReduce ? Split(node) : std::nullopt;
          return made_[static_cast<std::size_t>(&node - source_.nodes().data())] =
                     split ? *split : CopyNode(&result_, node, std::move(inputs));
        },
        &result_);
    return std::move(result_);
  }

 private:
  const Node& node(int id) const { return source_.node(id); }

  std::optional<int> Split(const Node& reduce) {
    for (const int axis : reduce.axes) {
      const std::optional<Joined> joined = JoinedBy(reduce, axis);
      if (!joined) continue;
      const int more = static_cast<int>(joined->extents.size()) - 1;
      std::vector<Dimension> dims;
      const PartialShape& shape = node(reduce.inputs[0]).shape;
      for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
        if (d == axis) dims.insert(dims.end(), joined->extents.begin(), joined->extents.end());
        else dims.push_back(shape[static_cast<std::size_t>(d)]);
      }
      std::vector<int> axes;
      for (const int reduced : reduce.axes) {
        axes.push_back(reduced + (reduced > axis ? more : 0));
        for (int k = 1; k <= more && reduced == axis; ++k) axes.push_back(axis + k);
      }
      axis_ = axis, extents_ = joined->extents, domain_ = PartialShape(std::move(dims));
      apart_.clear();
      return result_.Reduce(reduce.reducer, Apart(reduce.inputs[0]), std::move(axes), false, reduce.contract);
    }
    return std::nullopt;
  }

  // What all gathers that the reduction is of join to its axis `axis`, if there are some and nothing else is read along
  // it.
  std::optional<Joined> JoinedBy(const Node& reduce, int axis) {
    const bool is_over = std::find(reduce.axes.begin(), reduce.axes.end(), axis) != reduce.axes.end();
    if (reduce.keepdim || !is_over) return std::nullopt;
    const auto key = std::make_pair(reduce.inputs[0], axis);
    const auto [found, fresh] = joined_.try_emplace(key);
    if (!fresh) return found->second;
    std::vector<int> gathers;
    std::map<int, bool> seen;
    if (!FindGathers(reduce.inputs[0], axis, &seen, &gathers) || gathers.empty()) return std::nullopt;
    const std::optional<Joined> joined = JoinedBy(gathers[0], axis);
    if (!joined) return std::nullopt;
    for (const int gather : gathers) {
      const std::optional<Joined> other = JoinedBy(gather, axis);
      if (!other || other->extents.size() != joined->extents.size()) return std::nullopt;
      for (std::size_t k = 0; k < joined->extents.size(); ++k)
        if (!source_.SameDimension(joined->extents[k], other->extents[k])) return std::nullopt;
    }
    joined_[key] = joined;  // before others are asked for it; what relies on that falls with it
    const std::size_t before = accepted_.size();
    accepted_.push_back(key);
    std::map<int, bool> reduced;
    if (std::all_of(gathers.begin(), gathers.end(), [&](int gather) { return IsOnlyReduced(gather, axis, &reduced); }))
      return joined;
    for (; accepted_.size() > before; accepted_.pop_back()) joined_[accepted_.back()] = std::nullopt;
    return std::nullopt;
  }

  // The gathers that the value is made of; false if it is made of what cannot be taken apart along the axis.
  bool FindGathers(int id, int axis, std::map<int, bool>* seen, std::vector<int>* gathers) const {
    const auto [found, fresh] = seen->try_emplace(id, true);
    if (!fresh) return found->second;
    const Node& of = node(id);
    bool can = of.shape.size() == 0 || of.kind == Kind::kIndex ||
               (of.kind == Kind::kBroadcast && of.axes[static_cast<std::size_t>(axis)] < 0);
    if (!can && of.kind == Kind::kGather && !of.guarded) {
      gathers->push_back(id);
      can = true;
    } else if (!can && (of.kind == Kind::kMap || of.kind == Kind::kCast)) {
      can = std::all_of(of.inputs.begin(), of.inputs.end(),
                        [&](int input) { return FindGathers(input, axis, seen, gathers); });
    }
    return (*seen)[id] = can;
  }

  std::optional<Joined> JoinedBy(int gather, int axis) const {
    const Node& of = node(gather);
    const PartialShape& from = node(of.inputs[0]).shape;
    int first = -1, last = -1;
    for (int d = 0; d < static_cast<int>(from.size()); ++d) {
      bool plain = true;
      if (!MovesAlong(of.inputs[static_cast<std::size_t>(d) + 1], axis, &plain)) {
        if (!plain) return std::nullopt;
        continue;
      }
      if (first < 0) first = d;
      else if (last != d - 1) return std::nullopt;
      last = d;
    }
    if (first < 0 || first == last) return std::nullopt;
    Joined joined{first, {}};
    for (int d = first; d <= last; ++d) joined.extents.push_back(from[static_cast<std::size_t>(d)]);
    // The last dimension is what the quotient by its extent leaves, and so on.
    int left = -1;
    for (int d = last; d > first; --d) {
      const Node& rest = node(of.inputs[static_cast<std::size_t>(d) + 1]);
      if (rest.kind != Kind::kMap || rest.op != Op::minus) return std::nullopt;
      const Node &start = node(rest.inputs[0]), &whole = node(rest.inputs[1]);
      const bool is_start = left < 0 ? start.kind == Kind::kIndex && start.axes[0] == axis : rest.inputs[0] == left;
      if (!is_start || whole.kind != Kind::kMap || whole.op != Op::mul ||
          !IsExtent(whole.inputs[1], from[static_cast<std::size_t>(d)]))
        return std::nullopt;
      const Node& quotient = node(whole.inputs[0]);
      if (quotient.kind != Kind::kMap || quotient.op != Op::div || quotient.inputs[0] != rest.inputs[0] ||
          quotient.inputs[1] != whole.inputs[1])
        return std::nullopt;
      left = whole.inputs[0];
    }
    if (of.inputs[static_cast<std::size_t>(first) + 1] != left) return std::nullopt;
    if (!IsProduct(of.shape[static_cast<std::size_t>(axis)], joined.extents, joined.extents.size()))
      return std::nullopt;
    return joined;
  }

  // Does the position move along the axis? If not, is it `plain`, made of indices and numbers?
  bool MovesAlong(int position, int axis, bool* plain) const {
    const Node& of = node(position);
    if (of.kind == Kind::kIndex) return of.axes[0] == axis;
    if (of.shape.size() == 0) return false;
    if (of.kind != Kind::kMap) {
      *plain = false;
      return false;
    }
    bool moves = false;
    for (const int input : of.inputs) moves = MovesAlong(input, axis, plain) || moves;
    return moves;
  }

  bool IsExtent(int number, const Dimension& dim) const {
    const Node& of = node(number);
    const Dimension known = source_.Known(dim);
    if (of.kind == Kind::kConstant)
      return known.is_static() && of.constant == static_cast<double>(static_cast<index_t>(known));
    return of.kind == Kind::kExtent && source_.SameDimension(of.extent, dim);
  }

  // Is the extent the product of the first `count` of them?
  bool IsProduct(const Dimension& dim, const std::vector<Dimension>& extents, std::size_t count) const {
    const Dimension known = source_.Known(dim), last = source_.Known(extents[count - 1]);
    if (count == 1) return source_.SameDimension(known, last);
    if (known.is_static()) {
      if (!last.is_static()) return false;
      const auto all = static_cast<index_t>(known), of_last = static_cast<index_t>(last);
      return of_last > 0 && all % of_last == 0 && IsProduct(Dimension(all / of_last), extents, count - 1);
    }
    return std::any_of(source_.derived().begin(), source_.derived().end(), [&](const Graph::Derived& derived) {
      if (derived.op.kind != ExtentOp::kTimes || !source_.SameDimension(derived.result, known)) return false;
      return (source_.SameDimension(derived.b, last) && IsProduct(derived.a, extents, count - 1)) ||
             (source_.SameDimension(derived.a, last) && IsProduct(derived.b, extents, count - 1));
    });
  }

  // Do reductions over the axis that are taken apart, too, alone read the value, or what is computed of it?
  bool IsOnlyReduced(int id, int axis, std::map<int, bool>* seen) {
    const auto [found, fresh] = seen->try_emplace(id, true);
    if (!fresh) return found->second;
    bool only = true;
    for (const int reader : readers_[static_cast<std::size_t>(id)]) {
      if (!only || reader < 0) {
        only = false;
        break;
      }
      const Node& by = node(reader);
      if (by.kind == Kind::kReduce) only = JoinedBy(by, axis).has_value();
      else only = (by.kind == Kind::kMap || by.kind == Kind::kCast) && IsOnlyReduced(reader, axis, seen);
    }
    return (*seen)[id] = only;
  }

  // The value of the source with the axis taken apart; what the gathers join they read where it lies.
  int Apart(int id) {
    const Node& of = node(id);
    if (of.shape.size() == 0) return made_[static_cast<std::size_t>(id)];
    if (const auto found = apart_.find(id); found != apart_.end()) return found->second;
    return apart_[id] = MakeApart(of, id);
  }
  int MakeApart(const Node& of, int id) {
    const int more = static_cast<int>(extents_.size()) - 1;
    const auto moved = [&](int axis) { return axis + (axis > axis_ ? more : 0); };
    std::vector<int> inputs;
    switch (of.kind) {
      case Kind::kBroadcast: {
        std::vector<int> axes = of.axes;
        axes.insert(axes.begin() + axis_, static_cast<std::size_t>(more), -1);
        return result_.Broadcast(made_[static_cast<std::size_t>(of.inputs[0])], std::move(axes), domain_);
      }
      case Kind::kIndex: {
        if (of.axes[0] != axis_) return result_.Index(moved(of.axes[0]), domain_);
        int flat = result_.Index(axis_, domain_);
        for (int k = 1; k <= more; ++k)
          flat = result_.Map(Op::plus,
                             {result_.Map(Op::mul, {flat, result_.ExtentOf(extents_[static_cast<std::size_t>(k)])}),
                              result_.Index(axis_ + k, domain_)});
        return flat;
      }
      case Kind::kGather: {
        const int first = JoinedBy(id, axis_)->first;
        std::vector<int> positions;
        for (int d = 0; d + 1 < static_cast<int>(of.inputs.size()); ++d)
          positions.push_back(d >= first && d <= first + more ? result_.Index(axis_ + d - first, domain_)
                                                              : Apart(of.inputs[static_cast<std::size_t>(d) + 1]));
        return result_.Gather(made_[static_cast<std::size_t>(of.inputs[0])], std::move(positions), -1, of.constant);
      }
      default: break;
    }
    for (const int input : of.inputs) inputs.push_back(Apart(input));
    return CopyNode(&result_, of, std::move(inputs));
  }

  const Graph& source_;
  Graph result_;
  std::vector<int> made_;  // by value of the source: what it is in the result
  std::vector<std::vector<int>> readers_;  // of each value; -1: an output
  std::map<std::pair<int, int>, std::optional<Joined>> joined_;  // by what is reduced and the axis
  std::vector<std::pair<int, int>> accepted_;  // of these, in the order in which they were asked for
  // Of the reduction that is being taken apart.
  int axis_ = 0;
  std::vector<Dimension> extents_;
  PartialShape domain_;
  std::map<int, int> apart_;
};

}  // namespace

Graph SplitAxes(const Graph& graph) {
  const auto is_gather = [](const Node& node) { return node.kind == Kind::kGather; };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), is_gather)) return graph;
  return Splitter(graph).Run();
}

}  // namespace umbra::graph
