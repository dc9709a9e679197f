// Positions as sums of multiples, and quotients of them that need no division.
#ifndef UMBRA_COMPILER_TRANSFORM_POSITION_FORMS_H_
#define UMBRA_COMPILER_TRANSFORM_POSITION_FORMS_H_

#include <map>
#include <optional>
#include <utility>

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// What becomes of quotients and rests, as index maps such as reshapes are made of, where the ranges of indices are
/// known: (i * 32 + j) / 32 is i and its rest j for j in [0, 32). Nodes are those of one graph, which only grows.
class PositionForms {
 public:
  explicit PositionForms(Graph* graph) : graph_(*graph) {}

  /// A node for `position` / `by`, by > 0, with a division less or of a smaller number; nothing if there is none. Of a
  /// number alone it has no shape; so has that of a difference.
  std::optional<int> Quotient(int position, index_t by);
  /// A node for `a` - `b` without what both have in common; nothing if they have nothing.
  std::optional<int> Difference(int a, int b);

 private:
  // constant + the sum of the multiples of nodes that are no sums themselves.
  struct Form {
    std::map<int, index_t> terms;
    index_t constant = 0;
  };
  struct Range {
    index_t low, high;
  };

  const Form& FormOf(int id);
  Form MakeForm(int id);
  // Nothing where numbers would become too large.
  static std::optional<Form> Sum(Form sum, const Form& second);
  static std::optional<Form> Multiple(const Form& form, index_t by);
  std::optional<Range> RangeOf(const Form& form);
  std::optional<Range> RangeOfTerm(int id);
  // What a term is divided by, and by which number; of one that is no quotient by a number: nothing.
  std::optional<std::pair<int, index_t>> AsQuotient(int id) const;
  // `whole` and `rest` of form = whole * by + rest, term by term.
  static std::pair<Form, Form> Divide(const Form& form, index_t by);
  int Build(const Form& form);
  int Constant(index_t value) { return graph_.Constant(static_cast<double>(value), DType::kInt64); }

  Graph& graph_;
  std::map<int, Form> forms_;
};

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_POSITION_FORMS_H_
