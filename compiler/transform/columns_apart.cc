#include "compiler/transform/columns_apart.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "compiler/transform/column_of.h"
#include "compiler/transform/copy_node.h"
#include "compiler/transform/position_forms.h"

namespace umbra::graph {

namespace {

using Kind = Node::Kind;

constexpr index_t kManySteps = 16;

class Rewriter {
 public:
  explicit Rewriter(const Graph& source)
      : source_(source),
        result_(source.name()),
        forms_(result_),
        columns_(&result_) {}

  std::optional<Graph> Run() {
    bool any = false;
    RewriteNodes(
        source_,
        [&](const Node& node, std::vector<int> inputs) {
          const bool apart = node.kind == Kind::kReduce && IsBetterApart(node, inputs[0]);
          any = any || apart;
          return apart ? Apart(node, inputs[0]) : CopyNode(&result_, node, std::move(inputs));
        },
        &result_);
    return any ? std::optional(std::move(result_)) : std::nullopt;
  }

 private:
  bool IsBetterApart(const Node& reduce, int operand) {
    const PartialShape& shape = result_.node(operand).shape;
    const int last = ColumnAxis(reduce, shape);
    if (reduce.keepdim || last < 0) return false;
    const Dimension columns = result_.Known(shape[static_cast<std::size_t>(last)]);
    if (!columns.is_static() || static_cast<index_t>(columns) < 2 || static_cast<index_t>(columns) > kMostColumns)
      return false;
    const auto values = columns_.ValuesOf(operand);
    if (!values) return false;
    bool has_columns = false, shares = false, chooses = false;
    for (const int id : *values) {
      const Node& node = result_.node(id);
      switch (node.kind) {
        case Kind::kMap: chooses = chooses || (node.op == Op::select && IsOfIndex(node.inputs[0], last)); break;
        case Kind::kBroadcast: {
          const auto moves = [&node](int axis) { return node.axes[static_cast<std::size_t>(axis)] >= 0; };
          has_columns = has_columns || moves(last);
          shares = shares || (!moves(last) && std::any_of(reduce.axes.begin(), reduce.axes.end(), moves));
          break;
        }
        case Kind::kGather: chooses = chooses || ChoosesRows(node, reduce, last); break;
        case Kind::kInput: has_columns = true; break;
        case Kind::kCast:
        case Kind::kIndex: break;
        default: return false;
      }
    }
    const bool beside = last + 1 == static_cast<int>(shape.size());
    return chooses || (beside && shares && has_columns && !reduce.contract && HasManySteps(reduce, shape));
  }

  // The last axis that the result has; -1: it has none.
  static int ColumnAxis(const Node& reduce, const PartialShape& shape) {
    int axis = static_cast<int>(shape.size()) - 1;
    while (axis >= 0 && std::count(reduce.axes.begin(), reduce.axes.end(), axis) > 0) --axis;
    return axis;
  }

  // Do packets go along what is reduced? Small matrices are better a batch at a time, products by tiles.
  bool HasManySteps(const Node& reduce, const PartialShape& shape) const {
    index_t steps = 1;
    for (const int axis : reduce.axes) {
      const Dimension extent = result_.Known(shape[static_cast<std::size_t>(axis)]);
      if (!extent.is_static() || static_cast<index_t>(extent) >= kManySteps) return true;
      steps *= static_cast<index_t>(extent);
    }
    return steps >= kManySteps;
  }

  // Does the gather take other rows of its source for other columns, whose elements lie along another axis of the
  // result?
  bool ChoosesRows(const Node& gather, const Node& reduce, int columns) {
    const std::size_t rank = result_.node(gather.inputs[0]).shape.size();
    if (rank < 2 || MovesAlong(gather.inputs[rank], columns)) return false;
    bool other_rows = false, along = false;
    for (std::size_t dim = 0; dim + 1 < rank; ++dim)
      other_rows = other_rows || MovesAlong(gather.inputs[dim + 1], columns);
    for (int axis = 0; axis < columns; ++axis)
      along = along ||
              (std::count(reduce.axes.begin(), reduce.axes.end(), axis) == 0 && MovesAlong(gather.inputs[rank], axis));
    return other_rows && along;
  }

  // Does the position move along the axis, where indices that cancel each other do not count?
  bool MovesAlong(int position, int axis) {
    for (const auto& [factors, count] : PositionForms::Form(forms_.FormOf(position)))
      for (const int id : factors) {
        const auto quotient = forms_.AsQuotient(id);
        if (quotient ? MovesAlong(quotient->first, axis) : id >= 0 && IsOfIndex(id, axis)) return true;
      }
    return false;
  }

  // Is it computed of which element it is along the axis?
  bool IsOfIndex(int id, int axis) const {
    std::set<int> seen;
    std::vector<int> open{id};
    while (!open.empty()) {
      const Node& node = result_.node(open.back());
      open.pop_back();
      if (node.kind == Kind::kIndex && node.axes[0] == axis) return true;
      if (node.kind == Kind::kMap || node.kind == Kind::kCast)
        for (const int input : node.inputs)
          if (seen.insert(input).second) open.push_back(input);
    }
    return false;
  }

  int Apart(const Node& reduce, int operand) {
    const PartialShape of = result_.node(operand).shape;
    const int last = ColumnAxis(reduce, of);
    std::vector<Dimension> dims;
    for (int d = 0; d < static_cast<int>(of.size()); ++d)
      if (std::count(reduce.axes.begin(), reduce.axes.end(), d) == 0) dims.push_back(of[static_cast<std::size_t>(d)]);
    const PartialShape shape(dims);
    const int column_axis = static_cast<int>(shape.size()) - 1;
    std::vector<int> axes;
    for (int d = 0; d < column_axis; ++d) axes.push_back(d);
    axes.push_back(-1);
    std::vector<int> reduced = reduce.axes;
    for (int& axis : reduced) axis -= axis > last;
    int joined = -1;
    for (index_t k = static_cast<index_t>(result_.Known(of[static_cast<std::size_t>(last)])); k-- > 0;) {
      const int column = result_.Broadcast(
          result_.Reduce(reduce.reducer, columns_.Of(operand, last, k), reduced, false, reduce.contract), axes, shape);
      if (joined < 0) {
        joined = column;
        continue;
      }
      const int end = result_.Constant(static_cast<double>(k + 1), DType::kInt64);
      const int before = result_.Map(Op::lt, {result_.Index(column_axis, shape), end});
      joined = result_.Map(Op::select, {before, column, joined});
    }
    return joined;
  }

  const Graph& source_;
  Graph result_;
  PositionForms forms_;
  Columns columns_;
};

}  // namespace

std::optional<Graph> TakeColumnsApart(const Graph& graph) { return Rewriter(graph).Run(); }

}  // namespace umbra::graph
