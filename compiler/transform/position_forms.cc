#include "compiler/transform/position_forms.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace umbra::graph {

namespace {

using Kind = Node::Kind;

// Numbers from it on are not looked at: constants are doubles. No tensor has so many elements along an axis as
// kMostExtent; what may come to more than kMostPosition may wrap around, as integers do.
constexpr index_t kMost = index_t{1} << 52, kMostExtent = index_t{1} << 40, kMostPosition = index_t{1} << 62;
constexpr std::size_t kMostTerms = 16;

// The largest number whose multiple by `by` is not above `value`.
index_t FloorOver(index_t value, index_t by) { return value / by - (value % by < 0 ? 1 : 0); }

}  // namespace

PositionForms::Form PositionForms::MakeForm(int id) {
  const Node& node = graph_.node(id);
  const Form itself{{{id, 1}}, 0};
  if (node.kind == Kind::kBroadcast && graph_.node(node.inputs[0]).kind == Kind::kConstant)
    return FormOf(node.inputs[0]);
  if (node.kind == Kind::kConstant)
    return std::abs(node.constant) < static_cast<double>(kMost) ? Form{{}, static_cast<index_t>(node.constant)}
                                                                : itself;
  if (node.kind != Kind::kMap || node.dtype != DType::kInt64) return itself;
  std::optional<Form> second;
  if (node.op == Op::plus || node.op == Op::minus) {
    second = Multiple(FormOf(node.inputs[1]), node.op == Op::plus ? 1 : -1);
  } else if (node.op == Op::mul) {
    for (const int k : {0, 1})
      if (const Form& factor = FormOf(node.inputs[static_cast<std::size_t>(k)]); factor.terms.empty())
        return Multiple(FormOf(node.inputs[static_cast<std::size_t>(1 - k)]), factor.constant).value_or(itself);
    return itself;
  }
  if (!second) return itself;
  return Sum(FormOf(node.inputs[0]), *second).value_or(itself);
}

std::optional<PositionForms::Form> PositionForms::Sum(Form sum, const Form& second) {
  sum.constant += second.constant;
  bool small = std::abs(sum.constant) < kMost;
  for (const auto& [term, factor] : second.terms) {
    const index_t both = sum.terms[term] += factor;
    small = small && std::abs(both) < kMost;
    if (both == 0) sum.terms.erase(term);
  }
  return small && sum.terms.size() <= kMostTerms ? std::optional(std::move(sum)) : std::nullopt;
}

std::optional<PositionForms::Form> PositionForms::Multiple(const Form& form, index_t by) {
  Form result;
  const auto times = [&](index_t value, index_t* to) {
    return !__builtin_mul_overflow(value, by, to) && std::abs(*to) < kMost;
  };
  if (!times(form.constant, &result.constant)) return std::nullopt;
  for (const auto& [term, factor] : form.terms)
    if (by != 0 && !times(factor, &result.terms[term])) return std::nullopt;
  return result;
}

const PositionForms::Form& PositionForms::FormOf(int id) {
  if (const auto found = forms_.find(id); found != forms_.end()) return found->second;
  return forms_.emplace(id, MakeForm(id)).first->second;
}

std::optional<std::pair<int, index_t>> PositionForms::AsQuotient(int id) const {
  const Node& node = graph_.node(id);
  if (node.kind != Kind::kMap || node.op != Op::div || node.dtype != DType::kInt64) return std::nullopt;
  const Node& by = graph_.node(node.inputs[1]);
  if (by.kind != Kind::kConstant || by.constant < 1 || by.constant >= static_cast<double>(kMost)) return std::nullopt;
  return std::pair(node.inputs[0], static_cast<index_t>(by.constant));
}

std::optional<PositionForms::Range> PositionForms::RangeOfTerm(int id) {
  const Node& node = graph_.node(id);
  if (node.kind == Kind::kExtent) return Range{0, kMostExtent};
  if (node.kind == Kind::kIndex) {
    const Dimension extent = graph_.Known(node.shape[static_cast<std::size_t>(node.axes[0])]);
    return Range{0, extent.is_static() ? std::max<index_t>(0, static_cast<index_t>(extent) - 1) : kMostExtent};
  }
  if (const auto quotient = AsQuotient(id)) {
    const auto range = RangeOf(FormOf(quotient->first));
    if (range && range->low >= 0) return Range{range->low / quotient->second, range->high / quotient->second};
  }
  return std::nullopt;
}

std::optional<PositionForms::Range> PositionForms::RangeOf(const Form& form) {
  Range all{form.constant, form.constant};
  std::map<int, index_t> terms = form.terms;
  bool fits = true;
  const auto add = [&](Range range, index_t factor) {
    const auto add_to = [&](index_t* end, index_t value) {
      index_t product;
      fits = fits && !__builtin_mul_overflow(value, factor, &product) && !__builtin_add_overflow(*end, product, end) &&
             std::abs(*end) < kMostPosition;
    };
    add_to(&all.low, factor < 0 ? range.high : range.low);
    add_to(&all.high, factor < 0 ? range.low : range.high);
  };
  // What a term leaves over when it is divided stays below the divisor.
  for (const auto& [term, factor] : form.terms) {
    const auto quotient = AsQuotient(term);
    if (!quotient || terms.count(term) == 0) continue;
    const auto divided = terms.find(quotient->first);
    if (divided == terms.end() || factor % quotient->second != 0 || divided->second != -(factor / quotient->second))
      continue;
    const auto range = RangeOfTerm(quotient->first);
    if (!range || range->low < 0) continue;
    add({0, std::min(range->high, quotient->second - 1)}, divided->second);
    terms.erase(divided);
    terms.erase(term);
  }
  for (const auto& [term, factor] : terms) {
    const auto range = RangeOfTerm(term);
    if (!range) return std::nullopt;
    add(*range, factor);
  }
  return fits ? std::optional(all) : std::nullopt;
}

std::pair<PositionForms::Form, PositionForms::Form> PositionForms::Divide(const Form& form, index_t by) {
  Form whole, rest;
  whole.constant = FloorOver(form.constant, by), rest.constant = form.constant - whole.constant * by;
  for (const auto& [term, factor] : form.terms) {
    if (factor % by == 0) whole.terms[term] = factor / by;
    else rest.terms[term] = factor;
  }
  return {whole, rest};
}

std::optional<int> PositionForms::Quotient(int position, index_t by) {
  const Form form = FormOf(position);
  const auto range = RangeOf(form);
  if (by < 1 || by >= kMost || !range || range->low < 0) return std::nullopt;
  auto [whole, rest] = Divide(form, by);
  const auto range_of_rest = RangeOf(rest);
  if (!range_of_rest || range_of_rest->low < 0) return std::nullopt;
  if (range_of_rest->high < by) return Build(whole);
  bool less = !whole.terms.empty() || whole.constant != 0;
  // Of multiples of a part of the divisor and less than that: the multiples alone by what is left of the divisor.
  for (const auto& [term, factor] : rest.terms) {
    const index_t part = std::abs(factor);
    if (part < 2 || by % part != 0) continue;
    const auto [multiples, below] = Divide(rest, part);
    const auto range_below = RangeOf(below);
    if (!range_below || range_below->low < 0 || range_below->high >= part) continue;
    by /= part, less = true;
    rest = Form(multiples);
    break;
  }
  // A quotient by another number.
  if (rest.terms.size() == 1 && rest.constant == 0 && rest.terms.begin()->second == 1) {
    index_t product;
    if (const auto inner = AsQuotient(rest.terms.begin()->first);
        inner && !__builtin_mul_overflow(inner->second, by, &product) && product < kMost) {
      const auto divided = RangeOf(FormOf(inner->first));
      if (divided && divided->low >= 0) rest = FormOf(inner->first), by = product, less = true;
    }
  }
  if (!less) return std::nullopt;
  const int of_rest = Build(rest);
  const int quotient = by == 1 ? of_rest : Quotient(of_rest, by).value_or(graph_.Map(Op::div, {of_rest, Constant(by)}));
  return whole.terms.empty() && whole.constant == 0 ? quotient : graph_.Map(Op::plus, {Build(whole), quotient});
}

std::optional<int> PositionForms::Difference(int a, int b) {
  const Form from = FormOf(a), less = FormOf(b);
  const auto has = [&](const auto& term) { return from.terms.count(term.first) != 0; };
  if (std::none_of(less.terms.begin(), less.terms.end(), has)) return std::nullopt;
  const std::optional<Form> negative = Multiple(less, -1), left = negative ? Sum(from, *negative) : std::nullopt;
  return left ? std::optional(Build(*left)) : std::nullopt;
}

// Multiples that are added first, so that differences are of the form that other passes know.
int PositionForms::Build(const Form& form) {
  int sum = -1;
  const auto add = [&](int term, index_t factor) {
    const index_t size = std::abs(factor);
    const int product = size == 1 ? term : graph_.Map(Op::mul, {term, Constant(size)});
    if (sum < 0) sum = factor < 0 ? graph_.Map(Op::minus, {Constant(0), product}) : product;
    else sum = graph_.Map(factor < 0 ? Op::minus : Op::plus, {sum, product});
  };
  for (const bool negative : {false, true})
    for (const auto& [term, factor] : form.terms)
      if ((factor < 0) == negative) add(term, factor);
  if (sum < 0) return Constant(form.constant);
  return form.constant == 0 ? sum : graph_.Map(Op::plus, {sum, Constant(form.constant)});
}

}  // namespace umbra::graph
