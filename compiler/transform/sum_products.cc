#include "compiler/transform/sum_products.h"

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "compiler/transform/axis_parts.h"
#include "compiler/transform/copy_node.h"
#include "umbra/program.h"

namespace umbra::graph {

namespace {

using Kind = Node::Kind;

class Summer {
 public:
  Summer(const Graph& source, bool on_gpu)
      : source_(source),
        on_gpu_(on_gpu),
        forms_(source),
        readers_(source.nodes().size()),
        result_(source.name()) {
    for (int id = 0; id < static_cast<int>(source.nodes().size()); ++id)
      for (const int input : source.node(id).inputs) readers_[static_cast<std::size_t>(input)].push_back(id);
  }

  Graph Run() {
    RewriteNodes(
        source_,
        [&](const Node& node, std::vector<int> inputs) {
          if (node.kind != Kind::kDot) return CopyNode(&result_, node, std::move(inputs));
          if (IsOfVectors(node)) return MakeOuter(node, inputs[0], inputs[1]);
          const bool sum =
              IsBatchOfSmall(node) || IsBySmall(node) || IsOfFewColumns(node) || IsSkinny(node) || IsOfMadeMatrix(node);
          return sum ? MakeSum(node, inputs[0], inputs[1]) : CopyNode(&result_, node, std::move(inputs));
        },
        &result_);
    return std::move(result_);
  }

 private:
  // The extent of an operand of a product, if it is known.
  std::optional<index_t> Extent(int input, std::size_t dim) const {
    const Dimension known = source_.Known(source_.node(input).shape[dim]);
    if (!known.is_static()) return std::nullopt;
    return static_cast<index_t>(known);
  }

  bool IsOfVectors(const Node& node) const { return source_.node(node.inputs[1]).shape.size() == 1; }

  // Is each product of the batch less work than calling BLAS for it?
  bool IsBatchOfSmall(const Node& node) const {
    if (node.shape.size() != 3) return false;
    for (const int input : node.inputs)
      for (std::size_t d = 1; d < 3; ++d)
        if (Extent(input, d).value_or(kSmallMatrix + 1) > kSmallMatrix) return false;
    return true;
  }

  // Are there a few steps and columns, so that each row is a lane of packets (plan/batches.h)?
  bool IsBySmall(const Node& node) {
    if (on_gpu_ || node.shape.size() != 2 || source_.node(node.inputs[0]).shape.size() != 2) return false;
    const auto inner = Extent(node.inputs[1], node.transpose_b ? 1 : 0),
               columns = Extent(node.inputs[1], node.transpose_b ? 0 : 1);
    return inner && columns && *columns <= kFewColumns && *inner <= kFewSteps && *inner * *columns <= kFewProducts &&
           IsElementwise(node.inputs[0]) && !MeetsPositions(node);
  }

  // Are few columns of two matrices summed, as those of points are to their covariances? Each row of both is read once.
  bool IsOfFewColumns(const Node& node) {
    if (on_gpu_ || node.shape.size() != 2 || source_.node(node.inputs[0]).shape.size() != 2) return false;
    const auto rows = Extent(node.inputs[0], node.transpose_a ? 1 : 0),
               columns = Extent(node.inputs[1], node.transpose_b ? 0 : 1);
    return rows && columns && *rows <= kFewColumns && *columns <= kFewColumns &&
           IsTransposed(node.inputs[0], node.transpose_a) && !IsTransposed(node.inputs[1], node.transpose_b) &&
           IsElementwise(node.inputs[0], true) && IsElementwise(node.inputs[1], true) && !MeetsPositions(node);
  }

  // Is the factor in memory, or elementwise work on what is? Anything else is better computed to memory first: a
  // kernel of a product computes its factors several times. What has fewer dimensions, as the mean of each column, may
  // be `reduced`.
  bool IsElementwise(int id, bool reduced = false) const {
    while (source_.node(id).kind == Kind::kTranspose) id = source_.node(id).inputs[0];
    std::set<int> seen;
    std::vector<int> open = {id};
    while (!open.empty()) {
      const int next = open.back();
      open.pop_back();
      const Node& node = source_.node(next);
      if (!seen.insert(next).second || node.kind == Kind::kInput || node.kind == Kind::kDot) continue;
      if (reduced && node.kind == Kind::kReduce && node.shape.size() < source_.node(id).shape.size()) continue;
      if (node.kind == Kind::kReduce || node.kind == Kind::kScan || node.kind == Kind::kTranspose) return false;
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
    return true;
  }

  // Would the kernel of the product compute values at positions, which keep it from going by tiles or batches? It does
  // what is elementwise work on the product, too. What moves no element takes no positions.
  bool MeetsPositions(const Node& product) {
    std::set<int> seen;
    std::vector<int> open = {static_cast<int>(&product - source_.nodes().data())};
    while (!open.empty()) {
      const int id = open.back();
      const Node& node = source_.node(id);
      open.pop_back();
      if (!seen.insert(id).second || node.kind == Kind::kInput) continue;
      if (node.kind == Kind::kIndex || (node.kind == Kind::kGather && !IsView(node))) return true;
      if (node.kind == Kind::kGather || (node.kind == Kind::kDot && &node != &product)) continue;
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
      for (const int reader : readers_[static_cast<std::size_t>(id)])
        if (const Kind kind = source_.node(reader).kind; kind != Kind::kGather && kind != Kind::kDot)
          open.push_back(reader);
    }
    return false;
  }

  bool IsView(const Node& gather) {
    return PartsOfSource(source_, gather, &forms_) || PartsOfResult(source_, gather, &forms_) ||
           PartsOfReshape(source_, gather, &forms_);
  }

  // Is what memory holds side by side something else than a row of the matrix?
  bool IsTransposed(int id, bool transposed) const {
    const std::size_t last = source_.node(id).shape.size() - 1;
    std::size_t dim = transposed ? last - 1 : last;
    for (const Node* node = &source_.node(id); node->kind == Kind::kTranspose; node = &source_.node(node->inputs[0]))
      dim = static_cast<std::size_t>(node->axes[dim]);
    return dim != last;
  }

  bool IsSkinny(const Node& node) {
    const std::size_t rank = node.shape.size();
    if (on_gpu_ || rank < 2) return false;
    for (const int input : node.inputs)
      if (source_.node(input).shape.size() != rank || !IsElementwise(input)) return false;
    const auto rows = Extent(node.inputs[0], rank - (node.transpose_a ? 1 : 2)),
               inner = Extent(node.inputs[0], rank - (node.transpose_a ? 2 : 1)),
               columns = Extent(node.inputs[1], rank - (node.transpose_b ? 2 : 1));
    return rows && inner && columns &&
           runtime::SumIsFaster(
               {*rows, *columns, *inner, IsTransposed(node.inputs[0], node.transpose_a),
                IsTransposed(node.inputs[1], node.transpose_b), SizeOf(node.dtype), IsMade(node.inputs[1])},
               "") &&
           !MeetsPositions(node);
  }

  // A vector, or a row, by a matrix that would have to be written to memory for BLAS, which reads it once: so does the
  // kernel that makes it.
  bool IsOfMadeMatrix(const Node& node) {
    if (on_gpu_ || source_.node(node.inputs[1]).shape.size() != 2) return false;
    const Node& matrix = source_.node(node.inputs[1]);
    const bool gathers =
        matrix.kind == Kind::kGather && source_.node(matrix.inputs[0]).kind == Kind::kInput && !IsView(matrix);
    if (!gathers && !IsMade(node.inputs[1])) return false;
    return node.shape.size() == 1 ||
           (source_.node(node.inputs[0]).shape.size() == 2 && Extent(node.inputs[0], node.transpose_a ? 1 : 0) == 1);
  }

  bool IsMade(int id) const {
    while (source_.node(id).kind == Kind::kTranspose) id = source_.node(id).inputs[0];
    return source_.node(id).kind == Kind::kMap || source_.node(id).kind == Kind::kCast;
  }

  // c[..., m, n] = alpha * sum over k of a[..., m, k] * b[..., k, n], where a vector has no m.
  int MakeSum(const Node& node, int a, int b) {
    const bool batch = node.shape.size() == 3;
    const std::vector<int> swapped = batch ? std::vector<int>{0, 2, 1} : std::vector<int>{1, 0};
    if (node.transpose_a) a = result_.Transpose(a, swapped);
    if (node.transpose_b) b = result_.Transpose(b, swapped);
    const PartialShape left = result_.node(a).shape, right = result_.node(b).shape;
    const bool vector = left.size() == 1;
    const PartialShape all = batch    ? PartialShape({left[0], left[1], left[2], right[2]})
                             : vector ? right
                                      : PartialShape({left[0], left[1], right[1]});
    const std::vector<int> of_a = batch    ? std::vector<int>{0, 1, 2, -1}
                                  : vector ? std::vector<int>{0, -1}
                                           : std::vector<int>{0, 1, -1},
                           of_b = batch    ? std::vector<int>{0, -1, 1, 2}
                                  : vector ? std::vector<int>{0, 1}
                                           : std::vector<int>{-1, 0, 1};
    const int product = result_.Map(Op::mul, {result_.Broadcast(a, of_a, all), result_.Broadcast(b, of_b, all)});
    return Scaled(result_.Reduce(Reducer::sum, product, {batch ? 2 : vector ? 0 : 1}, false, !on_gpu_), node);
  }

  // c[m, n] = alpha * a[m] * b[n]: no sum.
  int MakeOuter(const Node& node, int a, int b) {
    const PartialShape all{result_.node(a).shape[0], result_.node(b).shape[0]};
    return Scaled(result_.Map(Op::mul, {result_.Broadcast(a, {0, -1}, all), result_.Broadcast(b, {-1, 0}, all)}), node);
  }

  int Scaled(int product, const Node& node) {
    return node.constant == 1 ? product : result_.Map(Op::mul, {product, result_.Constant(node.constant, node.dtype)});
  }

  const Graph& source_;
  bool on_gpu_;
  PositionForms forms_;  // of the source
  std::vector<std::vector<int>> readers_;  // of each node
  Graph result_;
};

}  // namespace

Graph SumProducts(const Graph& graph, bool on_gpu) { return Summer(graph, on_gpu).Run(); }

}  // namespace umbra::graph
