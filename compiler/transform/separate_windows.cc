#include "compiler/transform/separate_windows.h"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "compiler/transform/copy_node.h"
#include "compiler/transform/position_forms.h"

namespace umbra::graph {

namespace {

using Kind = Node::Kind;

// To write a value and read it again takes as long as to read so many of a window.
constexpr index_t kInMemory = 16;

// Where a window lies: its rows along dimension `dim` of the source, which starts `step` further for each index of
// `axis`.
struct Rows {
  std::size_t dim = 0;
  int axis = 0;
  index_t step = 0;
};

class Rewriter {
 public:
  explicit Rewriter(const Graph& source) : result_(source.name()), source_(source) {}

  Graph Run() {
    RewriteNodes(
        source_,
        [this](const Node& node, std::vector<int> inputs) {
          if (node.kind == Kind::kReduce)
            if (const auto separate = Separate(node, inputs[0])) return *separate;
          return CopyNode(&result_, node, std::move(inputs));
        },
        &result_);
    return std::move(result_);
  }

 private:
  std::optional<int> Separate(const Node& reduce, int operand) {
    const bool joins =
        reduce.reducer == Reducer::sum || reduce.reducer == Reducer::maximum || reduce.reducer == Reducer::minimum;
    if (!joins || reduce.axes.size() != 2 || reduce.keepdim) return std::nullopt;
    const bool casts = result_.node(operand).kind == Kind::kCast;
    const Node gather = result_.node(casts ? result_.node(operand).inputs[0] : operand);
    if (gather.kind != Kind::kGather || gather.guarded) return std::nullopt;
    const int above = reduce.axes[0], beside = reduce.axes[1];
    const auto rows = RowsOf(gather, above, beside);
    const auto height = ExtentOf(gather.shape, above), width = ExtentOf(gather.shape, beside);
    if (!rows || !height || !width || *height * *width <= *width * rows->step + *height + kInMemory)
      return std::nullopt;

    // What each row of each window comes to: along the axis of the results there are all rows of the source.
    std::vector<Dimension> dims(gather.shape.begin(), gather.shape.end());
    dims[static_cast<std::size_t>(rows->axis)] = result_.node(gather.inputs[0]).shape[rows->dim];
    const std::vector<Dimension> of_rows = Without(dims, above);
    std::vector<int> positions;
    for (std::size_t d = 0; d + 1 < gather.inputs.size(); ++d)
      positions.push_back(d == rows->dim ? result_.Index(rows->axis - (rows->axis > above), PartialShape(of_rows))
                                         : At(gather.inputs[d + 1], above, of_rows));
    int row = result_.Gather(gather.inputs[0], std::move(positions), -1, 0);
    if (casts) row = result_.Cast(row, result_.node(operand).dtype);
    const int sums = result_.Reduce(reduce.reducer, row, {beside - 1}, false, reduce.contract);

    // And those of a window.
    const std::vector<Dimension> of_columns = Without({gather.shape.begin(), gather.shape.end()}, beside);
    std::vector<int> at;
    for (int axis = 0; axis < static_cast<int>(of_columns.size()); ++axis) {
      if (axis == above) continue;
      const int own = axis + (axis >= beside);
      at.push_back(own == rows->axis ? At(gather.inputs[rows->dim + 1], beside, of_columns)
                                     : result_.Index(axis, PartialShape(of_columns)));
    }
    return result_.Reduce(reduce.reducer, result_.Gather(sums, std::move(at), -1, 0), {above}, false, reduce.contract);
  }

  static std::vector<Dimension> Without(std::vector<Dimension> dims, int axis) {
    dims.erase(dims.begin() + axis);
    return dims;
  }

  std::optional<index_t> ExtentOf(const PartialShape& shape, int axis) const {
    const Dimension known = result_.Known(shape[static_cast<std::size_t>(axis)]);
    return known.is_static() ? std::optional(static_cast<index_t>(known)) : std::nullopt;
  }

  // If one position moves along `above` and one other axis alone, as rows of windows do, no other one along either, and
  // one along `beside`.
  std::optional<Rows> RowsOf(const Node& gather, int above, int beside) {
    std::optional<Rows> rows;
    std::vector<std::set<int>> along;
    for (std::size_t d = 0; d + 1 < gather.inputs.size(); ++d) {
      const auto axes = AxesOf(gather.inputs[d + 1]);
      if (!axes) return std::nullopt;
      along.push_back(*axes);
      if (axes->count(above) == 0) continue;
      if (rows || axes->count(beside) != 0 || axes->size() != 2) return std::nullopt;
      const int axis = *axes->begin() == above ? *axes->rbegin() : *axes->begin();
      const auto step = StepOf(gather.inputs[d + 1], axis);
      if (!step) return std::nullopt;
      rows = Rows{d, axis, *step};
    }
    if (!rows) return std::nullopt;
    int of_beside = 0;
    for (std::size_t d = 0; d < along.size(); ++d) {
      if (d != rows->dim && along[d].count(rows->axis) != 0) return std::nullopt;
      of_beside += static_cast<int>(along[d].count(beside));
    }
    return of_beside == 1 ? rows : std::nullopt;
  }

  // The axes that a position moves along, if it follows from nothing but indices.
  std::optional<std::set<int>> AxesOf(int position) const {
    std::set<int> axes, seen;
    std::vector<int> open{position};
    while (!open.empty()) {
      const int id = open.back();
      open.pop_back();
      if (!seen.insert(id).second) continue;
      const Node& node = result_.node(id);
      if (node.kind == Kind::kIndex) axes.insert(node.axes[0]);
      else if (node.kind == Kind::kGather || node.kind == Kind::kInput) return std::nullopt;
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
    return axes;
  }

  // How far the position moves for each index of the axis, if evenly and by a number.
  std::optional<index_t> StepOf(int position, int axis) {
    PositionForms forms(result_);
    std::optional<index_t> step;
    for (const auto& [factors, count] : forms.FormOf(position))
      for (const int factor : factors) {
        if (factor < 0) continue;
        const Node& node = result_.node(factor);
        if (node.kind != Kind::kIndex || factors.size() != 1) return std::nullopt;
        if (node.axes[0] == axis) step = count;
      }
    return step && *step > 0 ? step : std::nullopt;
  }

  // A position where there is no such axis, which it does not move along, and others have these extents.
  int At(int position, int axis, const std::vector<Dimension>& dims) {
    const Node node = result_.node(position);
    if (node.shape.size() == 0) return position;
    if (node.kind == Kind::kIndex) return result_.Index(node.axes[0] - (node.axes[0] > axis), PartialShape(dims));
    if (node.kind == Kind::kBroadcast) return node.inputs[0];  // of a number
    std::vector<int> inputs;
    for (const int input : node.inputs) inputs.push_back(At(input, axis, dims));
    return CopyNode(&result_, node, std::move(inputs));
  }

  Graph result_;
  const Graph& source_;
};

}  // namespace

Graph SeparateWindows(const Graph& graph) { return Rewriter(graph).Run(); }

}  // namespace umbra::graph
