// Numbers of C++ types: folded where both are known, else nodes of the graph.
#ifndef UMBRA_TOOLS_UMBRA_EXTRACT_NUMBERS_H_
#define UMBRA_TOOLS_UMBRA_EXTRACT_NUMBERS_H_

#include <clang/AST/ASTContext.h>
#include <clang/AST/OperationKinds.h>

#include <optional>
#include <string_view>
#include <vector>

#include "compiler/graph/compose.h"
#include "tools/umbra-extract/value.h"

namespace umbra::extract {

class Numbers {
 public:
  Numbers(clang::ASTContext* context, graph::Composer* composer) : context_(*context), composer_(*composer) {}

  Number Integer(std::int64_t value, clang::QualType type) const;
  Number Real(double value, clang::QualType type) const;
  Number Extent(const Dimension& extent) const;
  Number Node(int node, clang::QualType type) const;
  /// A value that Clang has computed; nothing if it is no number.
  std::optional<Number> Of(const clang::APValue& value, clang::QualType type) const;

  /// The element type of a C++ type. Throws Unsupported if there is none.
  DType TypeOf(clang::QualType type) const;
  /// The type that expressions compute elements of `type` in, as umbra::ComputeOf.
  clang::QualType ComputeOf(clang::QualType type) const;
  bool IsNumber(clang::QualType type) const;

  /// A node of the number's own dtype, a constant one if it is known.
  int NodeOf(const Number& number) const;
  Number Convert(const Number& number, clang::QualType type) const;
  /// Operands of one type, as the tree has them after its conversions.
  Number Binary(clang::BinaryOperatorKind kind, const Number& a, const Number& b, clang::QualType type) const;
  Number Unary(clang::UnaryOperatorKind kind, const Number& a, clang::QualType type) const;
  Number Select(const Condition& condition, const Number& a, const Number& b) const;
  /// The same of nodes, of `dtype`, under a condition that is not known.
  int Select(const Condition& condition, int a, int b, DType dtype) const;
  /// A function of <cmath> or <algorithm> by its bare name (max and min of any number of operands), or nothing if there
  /// is no such operator.
  std::optional<Number> Function(std::string_view name, const std::vector<Number>& operands,
                                 clang::QualType type) const;

  Condition Truth(const Number& number) const;
  Condition Not(Condition a) const;
  Condition And(const Condition& a, const Condition& b) const;
  Condition Or(const Condition& a, const Condition& b) const;
  /// The node of a condition that is not known.
  int NodeOf(const Condition& condition) const;

 private:
  int Apply(graph::Op op, const std::vector<int>& nodes) const;

  clang::ASTContext& context_;
  graph::Composer& composer_;
};

}  // namespace umbra::extract

#endif  // UMBRA_TOOLS_UMBRA_EXTRACT_NUMBERS_H_
