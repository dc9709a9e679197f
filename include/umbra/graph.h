// Building graphs at run time.
//
//   umbra::graph::Builder b("bias_gelu");
//   auto x = b.Input("x", umbra::DType::kFloat32, {umbra::Dimension(), 1024});
//   auto bias = b.Input("bias", umbra::DType::kFloat32, {1024});
//   b.Output("y", gelu(x + umbra::graph::Broadcast<1>(bias)));
//   umbra::Function f = umbra::Compile(b.Build());
#ifndef UMBRA_GRAPH_H_
#define UMBRA_GRAPH_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "umbra/axis_map.h"
#include "umbra/dtype.h"
#include "umbra/partial_shape.h"

namespace umbra::graph {

class Graph;
class Builder;
class Value;

/// An operator of umbra/ops.def by name. Shapes must be equal (scalars and numbers fit all), dtypes
/// too. Throws umbra::Error with both shapes or dtypes and a remedy.
Value Apply(std::string_view op, const std::vector<Value>& operands);

/// A tensor value of a graph under construction, or a number that takes its neighbour's dtype.
/// Cheap to copy; lives as long as its Builder's graph. The operators of umbra/ops.def are functions of values:
/// exp(x) is Apply("exp", {x}).
class Value {
 public:
  /// A number that takes its neighbour's dtype.
  Value(double number) : number_(number) {}  // NOLINT: numbers are values
#define UMBRA_VALUE_1(name) \
  friend Value name(const Value& a) { return Apply(#name, {a}); }
#define UMBRA_VALUE_2(name) \
  friend Value name(const Value& a, const Value& b) { return Apply(#name, {a, b}); }
#define UMBRA_VALUE_3(name) \
  friend Value name(const Value& a, const Value& b, const Value& c) { return Apply(#name, {a, b, c}); }
#define UMBRA_PRIMITIVE(name, arity, ...) UMBRA_VALUE_##arity(name)
#define UMBRA_VALUE_OF(...) UMBRA_VALUE_PICK(__VA_ARGS__, 3, 2, 1, )
#define UMBRA_VALUE_PICK(a, b, c, count, ...) UMBRA_VALUE_##count
#define UMBRA_COMPOSITE(name, args, ...) UMBRA_VALUE_OF args(name)
#include "umbra/ops.def"
#undef UMBRA_VALUE_1
#undef UMBRA_VALUE_2
#undef UMBRA_VALUE_3
#undef UMBRA_VALUE_OF
#undef UMBRA_VALUE_PICK
  struct State;

 private:
  friend class Builder;
  friend struct ValueAccess;
  Value(std::shared_ptr<State> state, int kind, int node, std::uint32_t dims)
      : state_(std::move(state)),
        kind_(kind),
        node_(node),
        dims_(dims) {}
  std::shared_ptr<State> state_;
  int kind_ = 1, node_ = -1;
  double number_ = 0;
  std::uint32_t dims_ = 0;
};

/// An operator given by its text, as UMBRA_OP keeps it: name, "(a, b)", "a > b ? a : b".
Value ApplyText(std::string_view name, std::string_view args, std::string_view text,
                const std::vector<Value>& operands);

/// Operators of the expression API, where conditions are numbers: comparisons give 1 or 0, and the
/// conditions of select and of logic are whether an operand differs from 0.
Value ApplyNumeric(std::string_view op, const std::vector<Value>& operands);
/// ApplyText where conditions are numbers.
Value ApplyNumericText(std::string_view name, std::string_view args, std::string_view text,
                       const std::vector<Value>& operands);

/// Apply of the operators that C++ has signs for; comparisons give conditions.
Value operator+(const Value& a, const Value& b);
Value operator-(const Value& a, const Value& b);
Value operator*(const Value& a, const Value& b);
Value operator/(const Value& a, const Value& b);
Value operator-(const Value& a);
Value operator<(const Value& a, const Value& b);
Value operator<=(const Value& a, const Value& b);
Value operator>(const Value& a, const Value& b);
Value operator>=(const Value& a, const Value& b);
Value operator==(const Value& a, const Value& b);
Value operator!=(const Value& a, const Value& b);
/// Of conditions; both sides are computed.
Value operator&&(const Value& a, const Value& b);
Value operator||(const Value& a, const Value& b);
Value operator!(const Value& a);

/// `value` of rank k as dimensions axis .. axis + k - 1 of a larger shape, which follows from the
/// value it is combined with, or from `like`.
Value Broadcast(int axis, const Value& value);
Value Broadcast(int axis, const Value& value, const Value& like);
template <int axis>
Value Broadcast(const Value& value) {
  return Broadcast(axis, value);
}
/// `value`, a number or what a broadcast gives, with the shape of `like`, whose elements are not read.
Value Spread(const Value& value, const Value& like);

/// `reducer` is sum, maximum, minimum or product.
Value Reduce(std::string_view reducer, const Value& value, std::vector<int> axes, bool keepdim = false);
/// Dimension i of the result is dimension axes[i] of `value`; without axes all are reversed.
Value Transpose(const Value& value, std::vector<int> axes = {});
/// `map` of umbra/axis_map.h, which takes `axis`, on `value`, with a result of `rank` dimensions. Those of `value` that
/// are none of the result's are joined by `reducer`, any that Reduce takes, or mean, argmax, argmin; without one they
/// must be of extent 1. Repeated ones follow from where the result is used, as Broadcast's do. Throws umbra::Error for
/// a dimension that `value` does not have.
Value MapAxes(index_map::AxisMap map, int axis, const Value& value, int rank, std::string_view reducer = {});
/// scale * op(a) . op(b); matrix and matrix, vector and matrix, or the outer product of vectors.
Value Dot(const Value& a, const Value& b, bool transpose_a = false, bool transpose_b = false, double scale = 1);
/// An index map of umbra/index_maps.def by name, "flip" or "pool<maximum>": its sources and its whole
/// numbers: literals, or, for sizes and offsets, what follows from extents and i32 or i64 scalars by + - * /.
/// Throws umbra::Error if they do not fit.
Value IndexMap(std::string_view name, const std::vector<Value>& sources, const std::vector<Value>& params);
/// The extent of `value` along `axis`, i64.
Value Extent(const Value& value, int axis);
/// Random numbers of the shape and dtype (f32 or f64) of `like`, whose elements are not read: "uniform" in [0, 1), or
/// "gaussian" with mean 0 and standard deviation 1. Element i, counted row by row, is number first + i of the sequence
/// of `key`, the same in every route; both are whole numbers, i64 scalars as a rule. Throws umbra::Error for another
/// distribution or dtype.
Value Draw(std::string_view distribution, const Value& like, const Value& key, const Value& first);
/// Conversion: floats to integers truncate and saturate, NaN becomes 0.
Value Cast(const Value& value, DType dtype);

/// Makes a Graph, operand by operand and value by value. Throws umbra::Error for a name that is taken and for
/// what Graph refuses; one thread at a time.
class Builder {
 public:
  /// An empty graph; `name` is the kernels' in sources, profilers and messages.
  explicit Builder(std::string name);

  /// A tensor operand; each dimension is static or dynamic. Names are unique.
  Value Input(std::string name, DType dtype, PartialShape shape);
  /// A number that is passed with every call.
  Value Scalar(std::string name, DType dtype);
  /// A number that is written into the graph.
  Value Constant(double value, DType dtype);
  /// An index map without sources, of numbers of `dtype`.
  Value IndexMap(std::string_view name, const std::vector<Value>& params, DType dtype);
  /// From now on, broadcasts along different axes that meet have this shape where no operand says theirs. Dynamic
  /// extents without a symbol get one each.
  void SetOpenShape(const PartialShape& shape);
  /// `rank` dynamic extents, the same wherever this shape is given.
  PartialShape AnyShape(int rank);
  /// `value` with extents as `shape` has them; one without a shape takes it. Throws umbra::Error if the two do not fit;
  /// `name` is for messages.
  Value Shaped(const std::string& name, const Value& value, const PartialShape& shape);
  /// Several outputs may be declared. A value without a shape takes `shape`.
  void Output(std::string name, const Value& value, const std::optional<PartialShape>& shape = std::nullopt);
  /// The finished graph. The builder may go on; the graph does not change.
  std::shared_ptr<const Graph> Build() const;

 private:
  std::shared_ptr<Value::State> state_;
};

/// The kernels of a text in the form of .umb files (docs/text-form.md). `name` stands for the
/// file in messages. Throws umbra::Error with line, column and a caret.
std::vector<std::shared_ptr<const Graph>> ParseText(std::string_view text, std::string_view name = "<text>");

}  // namespace umbra::graph

#endif  // UMBRA_GRAPH_H_
