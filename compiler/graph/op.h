// Names of the elementwise operators and reducers, from the one table.
#ifndef UMBRA_COMPILER_GRAPH_OP_H_
#define UMBRA_COMPILER_GRAPH_OP_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "umbra/dtype.h"

namespace umbra::graph {

/// The primitive elementwise operators of umbra/ops.def.
enum class Op : std::uint8_t {
#define UMBRA_PRIMITIVE(name, ...) name,
#define UMBRA_DRAW(name, ...) name,
#include "umbra/ops.def"
};

/// Operand dtypes that an operator accepts.
enum class OpTypes : std::uint8_t { kNumeric, kFloat, kInteger, kBool, kInt64, kAny };
/// Is `dtype` one of `types`?
bool Accepts(OpTypes types, DType dtype);
/// Its result's dtype: that of the operands, or the one that it names.
enum class OpResult : std::uint8_t { kSame, kBool, kFloat32, kFloat64 };

/// The table's row of a primitive.
struct OpInfo {
  std::string_view name;
  int arity;
  OpTypes types;
  OpResult result;
  std::string_view text;  ///< C++ over prelude types, {0} {1} {2} are the operands
  std::string_view header;  ///< umbra/prelude/<header>.h declares what the text calls
  double cost;
  std::string_view doc;
};

/// The dtype of an operator's result, of operands of `operands`.
DType ResultType(const OpInfo& info, DType operands);
/// The row of `op`.
const OpInfo& Info(Op op);
/// The primitive called `name`, if there is one.
std::optional<Op> FindOp(std::string_view name);

/// An operator defined by an expression over other operators: a row of the table, or UMBRA_OP.
struct Composite {
  std::string_view name;
  std::string_view args;  ///< "(a, b)" as written
  std::string_view text;  ///< the expression as written
  std::string_view doc;
};
/// The composite of the table called `name`, if there is one; null otherwise.
const Composite* FindComposite(std::string_view name);
/// The rows of the table.
std::span<const OpInfo> Primitives();
std::span<const Composite> Composites();
/// Every primitive and composite of the table.
std::vector<std::string_view> OperatorNames();

enum class Reducer : std::uint8_t { sum, maximum, minimum, product };
std::string_view Name(Reducer reducer);
std::optional<Reducer> FindReducer(std::string_view name);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_GRAPH_OP_H_
