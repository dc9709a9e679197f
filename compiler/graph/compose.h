// Building graph values as people write them: literals that take the other operand's dtype,
// broadcasts whose shape follows from where they are used, operators by name. Every front door
// (text, Builder, Exp API) goes through here.
#ifndef UMBRA_COMPILER_GRAPH_COMPOSE_H_
#define UMBRA_COMPILER_GRAPH_COMPOSE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/ast.h"
#include "compiler/graph/graph.h"
#include "umbra/axis_map.h"

namespace umbra::graph {

/// A value on its way into the graph.
struct Operand {
  enum class Kind {
    kNode = 0,  ///< a node of the graph
    kLiteral = 1,  ///< a number that has no dtype yet
    kPending = 2,  ///< `node` broadcast along `dims`; the rest of the shape is not known yet
  };
  Kind kind = Kind::kNode;
  int node = -1;
  double number = 0;  ///< of a literal, or the largest that a condition of C++ chooses here
  std::uint32_t dims = 0;  ///< of the result, those that the node has, in its order: bit d is dimension d
  LiteralType literal = LiteralType::kReal;  ///< of a literal, or kInteger of what C++ computes as an int

  static Operand Node(int node) { return {Kind::kNode, node}; }
  static Operand Literal(double number, LiteralType type = LiteralType::kReal) {
    return {Kind::kLiteral, -1, number, 0, type};
  }
  static Operand Pending(int node, std::uint32_t dims) { return {Kind::kPending, node, 0, dims}; }
};

class Composer {
 public:
  explicit Composer(Graph* graph) : graph_(*graph) {}

  Graph& graph() { return graph_; }
  /// See Builder::SetOpenShape.
  void SetOpenShape(PartialShape shape) { open_ = std::move(shape); }

  Operand Map(Op op, const std::vector<Operand>& operands);
  /// A primitive or composite of the table by name; throws with the nearest name if unknown.
  Operand Apply(std::string_view name, const std::vector<Operand>& operands);
  /// A composite: its expression with `operands` for its arguments.
  Operand Apply(const Composite& composite, const std::vector<Operand>& operands);
  /// Operators of the expression API, where conditions are numbers: see graph::ApplyNumeric.
  Operand ApplyNumeric(std::string_view name, const std::vector<Operand>& operands);
  Operand ApplyNumeric(const Composite& composite, const std::vector<Operand>& operands);
  Operand Cast(const Operand& value, DType dtype);
  /// broadcast<axes...>(value), with the shape of `like` if given. The axes ascend; the first alone stands for as many
  /// in a row as the value has.
  Operand Broadcast(const Operand& value, const std::vector<int>& axes, const Operand* like);
  /// A number, or a broadcast whose shape is not known yet, with the shape of `like`.
  Operand Spread(const Operand& value, const Operand& like);
  /// By name: sum, maximum, minimum, product; mean; argmax and argmin, which give the position (i64)
  /// of the first extreme along one axis, a NaN counting as extreme, and 0 along an empty one.
  Operand Reduce(std::string_view reducer, const Operand& value, std::vector<int> axes, bool keepdim);
  /// See graph::MapAxes.
  Operand MapAxes(index_map::AxisMap map, int axis, const Operand& value, int rank, std::string_view reducer = {});
  /// Empty `axes`: all dimensions reversed.
  Operand Transpose(const Operand& value, std::vector<int> axes);
  Operand Dot(const Operand& a, const Operand& b, bool transpose_a = false, bool transpose_b = false, double alpha = 1);

  /// A map without sources gives numbers of `dtype`.
  Operand IndexMap(std::string_view name, const std::vector<Operand>& sources, const std::vector<Dimension>& params,
                   DType dtype = DType::kFloat32);
  /// The extent of a value along `axis`, i64.
  Operand Extent(const Operand& value, int axis);
  Operand Extent(const Dimension& dim);
  /// A number that an index map takes: a literal, or what Graph::DimensionOf knows. `what` names it for the
  /// message.
  Dimension Size(const Operand& number, std::string_view what);

  /// Random numbers, "uniform" in [0, 1) or standard "gaussian", of the shape and dtype (f32 or f64) of `like`:
  /// element i of it, counted row by row, is number first + i of the sequence of `key`; both are whole numbers.
  Operand Draw(std::string_view distribution, const Operand& like, const Operand& key, const Operand& first);

  /// The node of a value that has to stand on its own; `what` names it for the message.
  int Resolve(const Operand& value, std::string_view what);
  /// The node of a value brought to `shape` (literals, scalars and pending broadcasts are spread).
  int ResolveTo(const Operand& value, DType dtype, const PartialShape& shape);

 private:
  int AsWholeNumber(Op op, int made, const std::vector<Operand>& operands);
  Operand AsNumber(const Operand& value, const std::vector<Operand>& operands);
  int Spread(const Operand& pending, const PartialShape& shape);
  PartialShape OpenShape();
  PartialShape ShapeOfAll(const std::vector<Operand>& pending, std::uint32_t* dims) const;
  std::string BroadcastText(const Operand& pending) const;

  Graph& graph_;
  PartialShape open_;  // of rank 0 if there is none
  DType number_dtype_ = DType::kFloat32;  // of what is computed of literals alone
};

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_GRAPH_COMPOSE_H_
