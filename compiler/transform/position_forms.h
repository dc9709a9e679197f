// Positions as sums of products, and quotients of them that need no division.
#ifndef UMBRA_COMPILER_TRANSFORM_POSITION_FORMS_H_
#define UMBRA_COMPILER_TRANSFORM_POSITION_FORMS_H_

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// Whole numbers as sums of products of indices, extents and what is neither a sum nor a product.
class PositionForms {
 public:
  /// Nodes and open extents (KeyOf), ascending. Empty: of a number alone.
  using Factors = std::vector<int>;
  /// Products and how often each is added, never 0 times.
  using Form = std::map<Factors, index_t>;
  struct Range {
    Form low, high;  ///< of extents alone
  };

  explicit PositionForms(const Graph& graph) : graph_(graph) {}

  /// What stands for the extent `symbol` among factors, and which one it is.
  static int KeyOf(int symbol) { return -1 - symbol; }
  static int SymbolOf(int key) { return -1 - key; }

  const Form& FormOf(int id);
  Form FormOf(const Dimension& dim);
  /// With what extents come to wherever there is a point of `domain`, as the graph has found: of x[n, m] as
  /// [n / 4, 4, m / 4, 4], which has as many elements, m is m / 4 times 4.
  Form Within(const PartialShape& domain, Form form);
  /// The sum of an extent and a number as the extent that it is, if there is one.
  Form AsExtent(Form form) const;
  /// Are there as many elements in tensors of these shapes, as far as extents or the graph say so?
  bool HaveAsMany(const PartialShape& a, const PartialShape& b);
  /// Nothing if it is not known, or if numbers might become too large.
  std::optional<Range> RangeOf(const Form& form);
  /// Is it so whatever the extents are?
  static bool IsLess(const Form& a, const Form& b);
  static bool IsNegative(const Form& form);
  /// From now on indices are looked at where the condition holds alone, as far as it bounds them by extents and
  /// numbers; without one, everywhere.
  void Assume(std::optional<int> condition);
  /// Symbols of which none is 0 where there is a point of `domain`.
  std::set<int> SymbolsOf(const PartialShape& domain);
  /// The extents that a product has; nothing if something else is among its factors.
  static std::optional<std::set<int>> SymbolsOf(const Factors& product);

  /// Nothing where numbers would become too large.
  static std::optional<Form> Sum(Form sum, const Form& second);
  static std::optional<Form> Product(const Form& a, const Form& b);
  static Form Number(index_t value) { return value == 0 ? Form{} : Form{{{}, value}}; }
  /// `whole` and `rest` of form = whole * (factors, by) + rest, product by product.
  static std::pair<Form, Form> Divide(const Form& form, const Factors& factors, index_t by);
  /// What a node is divided by, and by which number; of one that is no quotient by a number: nothing.
  std::optional<std::pair<int, index_t>> AsQuotient(int id) const;

 private:
  // `symbol` is `value` where none of `where` is 0.
  struct Fact {
    int symbol;
    Form value;
    std::set<int> where;
  };

  Form MakeForm(int id);
  std::vector<std::pair<int, Form>> Sums() const;
  // With extents that are sums of another one and a number as these, where numbers cancel: n of (n + 2) - 2. Others
  // stay whole, as what divides has to be.
  Form Collapsed(Form form) const;
  Form OfSymbol(int symbol, int depth);
  void Bound(const Form& apart);
  Range RangeOfIndex(const Node& index);
  std::optional<Range> RangeOfFactors(const Factors& factors);
  std::optional<Range> RangeOfNode(int id);
  void FindFacts();
  void AddFact(const Form& a, const Form& b);

  const Graph& graph_;
  std::map<int, Form> forms_;
  std::optional<std::vector<Fact>> facts_;
  std::map<int, Range> bounds_;  // of indices, by node
};

/// What becomes of quotients and rests, as index maps such as reshapes are made of, where the ranges of indices are
/// known: (i * 32 + j) / 32 is i and its rest j for j in [0, 32), and so it is of (i * n + j) / n for j in [0, n).
/// Nodes are those of one graph, which only grows.
class Positions {
 public:
  explicit Positions(Graph* graph) : graph_(*graph), forms_(*graph) {}

  /// As PositionForms::Assume.
  void Assume(std::optional<int> condition) { forms_.Assume(condition); }

  /// A node for `position` / `by` with a division less or of a smaller number; nothing if there is none. Of a number
  /// alone it has no shape; so has that of a difference.
  std::optional<int> Quotient(int position, int by);
  /// Are they so at every point?
  bool IsLess(int a, int b);
  bool IsAtMost(int a, int b);
  /// A node for `a` - `b` without what both have in common; nothing if they have nothing.
  std::optional<int> Difference(int a, int b);

 private:
  using Form = PositionForms::Form;
  using Factors = PositionForms::Factors;

  std::optional<Form> LeastApart(int a, int b);
  std::optional<int> Quotient(const Form& form, const Factors& factors, index_t by);
  int Build(const Form& form);
  int BuildProduct(const Factors& factors, index_t count);
  int Constant(index_t value) { return graph_.Constant(static_cast<double>(value), DType::kInt64); }

  Graph& graph_;
  PositionForms forms_;
};

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_POSITION_FORMS_H_
