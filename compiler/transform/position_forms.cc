#include "compiler/transform/position_forms.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <utility>

namespace umbra::graph {

namespace {

using Kind = Node::Kind;

// Numbers from it on are not looked at: constants are doubles. No tensor has so many elements as kMostExtent; what may
// come to more than kMostPosition may wrap around, as integers do.
constexpr index_t kMost = index_t{1} << 52, kMostExtent = index_t{1} << 40, kMostPosition = index_t{1} << 62;
constexpr std::size_t kMostTerms = 16, kMostFactors = 8;
constexpr int kMostDepth = 8;  // of extents that follow from others

// The largest number whose multiple by `by` is not above `value`.
index_t FloorOver(index_t value, index_t by) { return value / by - (value % by < 0 ? 1 : 0); }

bool AddTo(PositionForms::Form* form, const PositionForms::Factors& factors, index_t count) {
  const auto [found, fresh] = form->try_emplace(factors, count);
  if (!fresh && __builtin_add_overflow(found->second, count, &found->second)) return false;
  const bool small = std::abs(found->second) < kMost;
  if (found->second == 0) form->erase(found);
  return small;
}

index_t NumberOf(const PositionForms::Form& form) {
  const auto found = form.find({});
  return found == form.end() ? 0 : found->second;
}

bool IsNumber(const PositionForms::Form& form) { return form.empty() || (form.size() == 1 && form.count({}) != 0); }

}  // namespace

std::optional<PositionForms::Form> PositionForms::Sum(Form sum, const Form& second) {
  bool small = true;
  for (const auto& [factors, count] : second) small = AddTo(&sum, factors, count) && small;
  return small && sum.size() <= kMostTerms ? std::optional(std::move(sum)) : std::nullopt;
}

std::optional<PositionForms::Form> PositionForms::Product(const Form& a, const Form& b) {
  Form result;
  for (const auto& [of_a, count_a] : a)
    for (const auto& [of_b, count_b] : b) {
      index_t count;
      Factors factors;
      std::merge(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), std::back_inserter(factors));
      if (__builtin_mul_overflow(count_a, count_b, &count) || factors.size() > kMostFactors ||
          !AddTo(&result, factors, count))
        return std::nullopt;
    }
  return result.size() <= kMostTerms ? std::optional(std::move(result)) : std::nullopt;
}

PositionForms::Form PositionForms::MakeForm(int id) {
  const Node& node = graph_.node(id);
  const Form itself{{{id}, 1}};
  if (node.kind == Kind::kBroadcast && graph_.node(node.inputs[0]).shape.size() == 0) return FormOf(node.inputs[0]);
  if (node.kind == Kind::kConstant)
    return std::abs(node.constant) < static_cast<double>(kMost) ? Number(static_cast<index_t>(node.constant)) : itself;
  if (node.kind == Kind::kExtent) return FormOf(node.extent);
  if (node.kind != Kind::kMap || node.dtype != DType::kInt64 ||
      (node.op != Op::plus && node.op != Op::minus && node.op != Op::mul && node.op != Op::div))
    return itself;
  const Form first = FormOf(node.inputs[0]), second = FormOf(node.inputs[1]);
  if (node.op == Op::div) {
    const bool known = IsNumber(first) && IsNumber(second) && NumberOf(first) >= 0 && NumberOf(second) > 0;
    return known ? Number(NumberOf(first) / NumberOf(second)) : itself;
  }
  if (node.op == Op::mul) return Product(AsExtent(first), AsExtent(second)).value_or(itself);
  const std::optional<Form> added = Product(second, Number(node.op == Op::plus ? 1 : -1));
  return added ? Sum(first, *added).value_or(itself) : itself;
}

// By symbol: the extents that are the sum of another one and a number.
std::vector<std::pair<int, PositionForms::Form>> PositionForms::Sums() const {
  std::vector<std::pair<int, Form>> sums;
  for (const Graph::Derived& derived : graph_.derived()) {
    const bool adds = derived.op.kind == ExtentOp::kPlus;
    const Dimension result = graph_.Known(derived.result), of = graph_.Known(derived.a), by = graph_.Known(derived.b);
    if ((!adds && derived.op.kind != ExtentOp::kMinus) || result.is_static() || of.is_static() || !by.is_static())
      continue;
    sums.emplace_back(result.symbol(),
                      Form{{{KeyOf(of.symbol())}, 1}, {{}, static_cast<index_t>(by) * (adds ? 1 : -1)}});
  }
  return sums;
}

PositionForms::Form PositionForms::Collapsed(Form form) const {
  if (form.count({}) == 0) return form;
  for (const auto& [symbol, sum] : Sums()) {
    const auto found = form.find({KeyOf(symbol)});
    if (found == form.end()) continue;
    const auto part = Product(sum, Number(found->second));
    Form others = form;
    others.erase({KeyOf(symbol)});
    const auto with = part ? Sum(std::move(others), *part) : std::nullopt;
    if (with && with->size() < form.size()) return Collapsed(*with);
  }
  return form;
}

PositionForms::Form PositionForms::AsExtent(Form form) const {
  if (form.size() != 2 || form.count({}) == 0) return form;
  for (const auto& [symbol, sum] : Sums())
    if (form == sum) return {{{KeyOf(symbol)}, 1}};
  return form;
}

const PositionForms::Form& PositionForms::FormOf(int id) {
  if (const auto found = forms_.find(id); found != forms_.end()) return found->second;
  Form form = Collapsed(MakeForm(id));
  return forms_.emplace(id, std::move(form)).first->second;
}

PositionForms::Form PositionForms::FormOf(const Dimension& dim) {
  const Dimension known = graph_.Known(dim);
  return known.is_static() ? Number(static_cast<index_t>(known)) : OfSymbol(known.symbol(), kMostDepth);
}

// An extent is the product that it is defined as.
PositionForms::Form PositionForms::OfSymbol(int symbol, int depth) {
  for (const Graph::Derived& derived : graph_.derived()) {
    const Dimension result = graph_.Known(derived.result);
    if (result.is_static() || result.symbol() != symbol || derived.op.kind != ExtentOp::kTimes || depth == 0) continue;
    const auto factor = [&](const Dimension& dim) {
      const Dimension known = graph_.Known(dim);
      return known.is_static() ? Number(static_cast<index_t>(known)) : OfSymbol(known.symbol(), depth - 1);
    };
    if (const auto product = Product(factor(derived.a), factor(derived.b))) return *product;
    break;
  }
  return {{{KeyOf(symbol)}, 1}};
}

std::optional<std::pair<int, index_t>> PositionForms::AsQuotient(int id) const {
  if (id < 0) return std::nullopt;
  const Node& node = graph_.node(id);
  if (node.kind != Kind::kMap || node.op != Op::div || node.dtype != DType::kInt64) return std::nullopt;
  const Node& by = graph_.node(node.inputs[1]);
  if (by.kind != Kind::kConstant || by.constant < 1 || by.constant >= static_cast<double>(kMost)) return std::nullopt;
  return std::pair(node.inputs[0], static_cast<index_t>(by.constant));
}

bool PositionForms::IsNegative(const Form& form) {
  return std::any_of(form.begin(), form.end(), [](const auto& term) { return term.second < 0; });
}

bool PositionForms::IsLess(const Form& a, const Form& b) {
  const std::optional<Form> negative = Product(a, Number(-1));
  std::optional<Form> apart = negative ? Sum(b, *negative) : std::nullopt;
  if (apart) apart = Sum(*apart, Number(-1));
  return apart && !IsNegative(*apart);
}

std::optional<std::set<int>> PositionForms::SymbolsOf(const Factors& product) {
  std::set<int> symbols;
  for (const int id : product) {
    if (id >= 0) return std::nullopt;
    symbols.insert(SymbolOf(id));
  }
  return symbols;
}

std::set<int> PositionForms::SymbolsOf(const PartialShape& domain) {
  std::set<int> symbols;
  for (const Dimension& dim : domain)
    for (const auto& [factors, count] : FormOf(dim)) symbols.merge(SymbolsOf(factors).value_or(std::set<int>()));
  return symbols;
}

PositionForms::Range PositionForms::RangeOfIndex(const Node& index) {
  const Form extent = FormOf(index.shape[static_cast<std::size_t>(index.axes[0])]);
  return extent.empty() ? Range{} : Range{{}, *Sum(extent, Number(-1))};
}

void PositionForms::Assume(std::optional<int> condition) {
  bounds_.clear();
  std::vector<int> open;
  if (condition) open.push_back(*condition);
  while (!open.empty()) {
    const Node& node = graph_.node(open.back());
    open.pop_back();
    if (node.kind != Kind::kMap) continue;
    if (node.op == Op::logical_and) open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    const bool above = node.op == Op::gt || node.op == Op::ge, strict = node.op == Op::lt || node.op == Op::gt;
    if ((!above && !strict && node.op != Op::le) || graph_.node(node.inputs[0]).dtype != DType::kInt64) continue;
    const auto less = Product(FormOf(node.inputs[above ? 1 : 0]), Number(-1));
    auto apart = less ? Sum(FormOf(node.inputs[above ? 0 : 1]), *less) : std::nullopt;
    if (apart && strict) apart = Sum(*apart, Number(-1));
    if (apart) Bound(*apart);
  }
}

// `apart`, which is not negative, of an index alone and of what is known when a call begins.
void PositionForms::Bound(const Form& apart) {
  int index = -1;
  for (const auto& [factors, count] : apart) {
    if (SymbolsOf(factors)) continue;
    const bool is_index = factors.size() == 1 && graph_.node(factors[0]).kind == Kind::kIndex;
    if (index >= 0 || !is_index || std::abs(count) != 1) return;
    index = factors[0];
  }
  if (index < 0) return;
  Form others = apart;
  others.erase({index});
  const bool is_least = apart.at({index}) > 0;
  if (is_least) others = *Product(others, Number(-1));
  Range& bound = bounds_.try_emplace(index, RangeOfIndex(graph_.node(index))).first->second;
  if (!is_least) bound.high = others;  // what always held is no condition any more
  else if (!IsNegative(others)) bound.low = others;
}

std::optional<PositionForms::Range> PositionForms::RangeOfNode(int id) {
  if (id < 0) return Range{{{{id}, 1}}, {{{id}, 1}}};
  const Node& node = graph_.node(id);
  if (node.kind == Kind::kIndex) {
    if (const auto bound = bounds_.find(id); bound != bounds_.end()) return bound->second;
    if (FormOf(node.shape[static_cast<std::size_t>(node.axes[0])]).empty()) return std::nullopt;  // there is none
    return RangeOfIndex(node);
  }
  if (const auto quotient = AsQuotient(id)) {
    const auto range = RangeOf(FormOf(quotient->first));
    if (!range || IsNegative(range->low)) return std::nullopt;
    const index_t low = IsNumber(range->low) ? NumberOf(range->low) / quotient->second : 0;
    return Range{Number(low), IsNumber(range->high) ? Number(NumberOf(range->high) / quotient->second) : range->high};
  }
  return std::nullopt;
}

std::optional<PositionForms::Range> PositionForms::RangeOfFactors(const Factors& factors) {
  Range all{Number(1), Number(1)};
  for (const int id : factors) {
    const auto range = RangeOfNode(id);
    if (!range || IsNegative(range->low)) return std::nullopt;
    const auto low = Product(all.low, range->low), high = Product(all.high, range->high);
    if (!low || !high) return std::nullopt;
    all = {*low, *high};
  }
  return all;
}

std::optional<PositionForms::Range> PositionForms::RangeOf(const Form& form) {
  Range all;
  Form terms = form;
  bool fits = true;
  index_t most = 0;
  const auto add = [&](const Range& range, index_t count) {
    const auto add_to = [&](Form* end, const Form& value) {
      const auto product = Product(value, Number(count));
      const auto sum = product ? Sum(*end, *product) : std::nullopt;
      fits = fits && sum;
      if (!fits) return;
      *end = *sum;
      for (const auto& [factors, times] : *product) {
        index_t size;
        fits = fits && !__builtin_mul_overflow(std::abs(times), factors.empty() ? 1 : kMostExtent, &size) &&
               !__builtin_add_overflow(most, size, &most) && most < kMostPosition;
      }
    };
    add_to(&all.low, count < 0 ? range.high : range.low);
    add_to(&all.high, count < 0 ? range.low : range.high);
  };
  // What a term leaves over when it is divided stays below the divisor.
  for (const auto& [factors, count] : form) {
    const auto quotient = factors.size() == 1 ? AsQuotient(factors[0]) : std::nullopt;
    if (!quotient || terms.count(factors) == 0) continue;
    const auto divided = terms.find({quotient->first});
    if (divided == terms.end() || count % quotient->second != 0 || divided->second != -(count / quotient->second))
      continue;
    const auto range = RangeOfNode(quotient->first);
    if (!range || IsNegative(range->low)) continue;
    const bool less = IsNumber(range->high) && NumberOf(range->high) < quotient->second;
    add({{}, less ? range->high : Number(quotient->second - 1)}, divided->second);
    terms.erase(divided);
    terms.erase(factors);
  }
  for (const auto& [factors, count] : terms) {
    const auto range = RangeOfFactors(factors);
    if (!range) return std::nullopt;
    add(*range, count);
  }
  return fits ? std::optional(all) : std::nullopt;
}

std::pair<PositionForms::Form, PositionForms::Form> PositionForms::Divide(const Form& form, const Factors& factors,
                                                                          index_t by) {
  Form whole, rest;
  for (const auto& [of, count] : form) {
    if (of.empty() && factors.empty()) {
      if (const index_t times = FloorOver(count, by); times != 0) whole[{}] = times;
      if (const index_t left = count - FloorOver(count, by) * by; left != 0) rest[{}] = left;
      continue;
    }
    const bool divides = count % by == 0 && std::includes(of.begin(), of.end(), factors.begin(), factors.end());
    if (!divides) {
      rest[of] = count;
      continue;
    }
    Factors left;
    std::set_difference(of.begin(), of.end(), factors.begin(), factors.end(), std::back_inserter(left));
    AddTo(&whole, left, count / by);
  }
  return {whole, rest};
}

// Of two products that are equal, what is in both is left out, and so are e and e / c times c, which is no more than e:
// if nothing else is left, it is e. If one symbol is left of one, it is the other.
void PositionForms::AddFact(const Form& a, const Form& b) {
  if (a.size() != 1 || b.size() != 1) return;
  Factors left = a.begin()->first, right = b.begin()->first;
  index_t times_left = a.begin()->second, times_right = b.begin()->second;
  if (times_left <= 0 || times_right <= 0 || !SymbolsOf(left) || !SymbolsOf(right)) return;
  const index_t in_both = std::gcd(times_left, times_right);
  times_left /= in_both, times_right /= in_both;
  std::set<int> where;  // of what is in both
  const auto take = [](Factors* from, int id) {
    const auto found = std::find(from->begin(), from->end(), id);
    const bool is_there = found != from->end();
    if (is_there) from->erase(found);
    return is_there;
  };
  for (const int id : Factors(left))
    if (take(&right, id)) take(&left, id), where.insert(SymbolOf(id));
  if (left.size() == 1 && times_left == 1) {
    const int symbol = SymbolOf(left[0]);
    facts_->push_back({symbol, {{right, times_right}}, where});
    return;
  }
  std::vector<Fact> exact;
  for (const int id : Factors(right))
    for (const Graph::Derived& derived : graph_.derived()) {
      const Dimension result = graph_.Known(derived.result), of = graph_.Known(derived.a), by = graph_.Known(derived.b);
      if (derived.op.kind != ExtentOp::kOver || result.is_static() || of.is_static() || !by.is_static() ||
          result.symbol() != SymbolOf(id))
        continue;
      const auto count = static_cast<index_t>(by);
      const Form whole = FormOf(of);
      if (count < 1 || times_right % count != 0 || whole.size() != 1 || whole.begin()->second != 1 ||
          whole.begin()->first.size() != 1 || !take(&left, whole.begin()->first[0]))
        continue;
      take(&right, id);
      times_right /= count;
      where.insert(SymbolOf(id));  // nor is what it is a part of
      exact.push_back({of.symbol(), {{{id}, count}}, {}});
      break;
    }
  if (!left.empty() || !right.empty() || times_left != times_right) return;
  for (Fact& fact : exact) {
    fact.where = where;
    facts_->push_back(std::move(fact));
  }
}

void PositionForms::FindFacts() {
  if (facts_) return;
  facts_.emplace();
  const auto value = [this](const Graph::Derived& derived) { return Product(FormOf(derived.a), FormOf(derived.b)); };
  std::map<int, Form> first;  // by symbol
  for (const Graph::Derived& derived : graph_.derived()) {
    const auto product = derived.op.kind == ExtentOp::kTimes ? value(derived) : std::nullopt;
    if (!product) continue;
    const Dimension result = graph_.Known(derived.result);
    Form known = result.is_static() ? FormOf(result) : *product;
    if (!result.is_static()) known = first.try_emplace(result.symbol(), *product).first->second;
    AddFact(known, *product);
    AddFact(*product, known);
  }
}

PositionForms::Form PositionForms::Within(const PartialShape& domain, Form form) {
  FindFacts();
  if (facts_->empty()) return form;
  const std::set<int> there = SymbolsOf(domain);
  for (int pass = 0; pass < kMostDepth; ++pass) {
    bool changed = false;
    for (const Fact& fact : *facts_) {
      if (!std::includes(there.begin(), there.end(), fact.where.begin(), fact.where.end())) continue;
      Form with;
      bool fits = true, here = false;
      for (const auto& [factors, count] : form) {
        const auto at = std::find(factors.begin(), factors.end(), KeyOf(fact.symbol));
        std::optional<Form> term = Form{{factors, count}};
        if (at != factors.end()) {
          Factors others(factors.begin(), at);
          others.insert(others.end(), at + 1, factors.end());
          term = Product({{others, count}}, fact.value);
          here = true;
        }
        const auto sum = term ? Sum(with, *term) : std::nullopt;
        fits = fits && sum;
        if (fits) with = *sum;
      }
      if (!here || !fits) continue;
      form = std::move(with);
      changed = true;
    }
    if (!changed) break;
  }
  return form;
}

bool PositionForms::HaveAsMany(const PartialShape& a, const PartialShape& b) {
  const auto count = [this](const PartialShape& shape) {
    std::optional<Form> product = Number(1);
    for (std::size_t d = 0; d < shape.size() && product; ++d) product = Product(*product, FormOf(shape[d]));
    return product;
  };
  const auto of_a = count(a), of_b = count(b);
  if (!of_a || !of_b) return false;
  if (*of_a == *of_b) return true;
  std::map<int, unsigned> same_as;  // by symbol that is a product: a bit for either
  for (const Graph::Derived& derived : graph_.derived()) {
    const Dimension result = graph_.Known(derived.result);
    if (derived.op.kind != ExtentOp::kTimes || result.is_static()) continue;
    const auto product = Product(FormOf(derived.a), FormOf(derived.b));
    unsigned& same = same_as[result.symbol()];
    same |= (product == of_a ? 1U : 0U) | (product == of_b ? 2U : 0U);
    if (same == 3) return true;
  }
  return false;
}

std::optional<PositionForms::Form> Positions::LeastApart(int a, int b) {
  // Other numbers than those in a range may wrap around.
  if (!forms_.RangeOf(forms_.FormOf(a)) || !forms_.RangeOf(forms_.FormOf(b))) return std::nullopt;
  const auto negative = PositionForms::Product(forms_.FormOf(a), PositionForms::Number(-1));
  const auto apart = negative ? PositionForms::Sum(forms_.FormOf(b), *negative) : std::nullopt;
  const auto range = apart ? forms_.RangeOf(*apart) : std::nullopt;
  return range ? std::optional(range->low) : std::nullopt;
}

bool Positions::IsLess(int a, int b) {
  const auto apart = LeastApart(a, b);
  return apart && PositionForms::IsLess({}, *apart);
}

bool Positions::IsAtMost(int a, int b) {
  const auto apart = LeastApart(a, b);
  return apart && !PositionForms::IsNegative(*apart);
}

std::optional<int> Positions::Quotient(int position, int by) {
  const PartialShape domain = graph_.node(position).shape;
  const Form divisor = forms_.AsExtent(forms_.Within(domain, forms_.FormOf(by)));
  if (divisor.size() != 1 || divisor.begin()->second < 1) return std::nullopt;
  const auto& [factors, count] = *divisor.begin();
  // What divides is not 0 where there is a position.
  const auto symbols = forms_.SymbolsOf(factors);
  const std::set<int> there = forms_.SymbolsOf(domain);
  if (!symbols || !std::includes(there.begin(), there.end(), symbols->begin(), symbols->end())) return std::nullopt;
  if (factors.empty() && count == 1) return std::nullopt;
  return Quotient(forms_.Within(domain, forms_.FormOf(position)), factors, count);
}

std::optional<int> Positions::Quotient(const Form& form, const Factors& factors, index_t by) {
  const auto range = forms_.RangeOf(form);  // of what memory holds there is none, as it may wrap around
  if (by >= kMost || !range) return std::nullopt;
  auto [whole, rest] = PositionForms::Divide(form, factors, by);
  if (rest.empty()) return Build(whole);  // of either sign
  if (PositionForms::IsNegative(range->low)) return std::nullopt;
  const auto range_of_rest = forms_.RangeOf(rest);
  if (!range_of_rest || PositionForms::IsNegative(range_of_rest->low)) return std::nullopt;
  if (PositionForms::IsLess(range_of_rest->high, {{factors, by}})) return Build(whole);
  bool less = !whole.empty();
  // Of multiples of a part of the divisor and less than that: the multiples alone by what is left of the divisor.
  for (const auto& [of, count] : rest) {
    const index_t part = std::abs(count);
    if (of.empty() || part < 2 || by % part != 0) continue;
    const auto [multiples, below] = PositionForms::Divide(rest, {}, part);
    const auto range_below = forms_.RangeOf(below);
    if (!range_below || PositionForms::IsNegative(range_below->low) ||
        !PositionForms::IsLess(range_below->high, PositionForms::Number(part)))
      continue;
    by /= part, less = true;
    rest = Form(multiples);
    break;
  }
  // A quotient by another number.
  if (factors.empty() && rest.size() == 1 && rest.begin()->first.size() == 1 && rest.begin()->second == 1) {
    index_t product;
    if (const auto inner = forms_.AsQuotient(rest.begin()->first[0]);
        inner && !__builtin_mul_overflow(inner->second, by, &product) && product < kMost) {
      const auto divided = forms_.RangeOf(forms_.FormOf(inner->first));
      if (divided && !PositionForms::IsNegative(divided->low))
        rest = forms_.FormOf(inner->first), by = product, less = true;
    }
  }
  if (!less) return std::nullopt;
  const auto divided = [&] {
    if (factors.empty() && by == 1) return Build(rest);
    const auto simpler = Quotient(rest, factors, by);
    return simpler ? *simpler : graph_.Map(Op::div, {Build(rest), BuildProduct(factors, by)});
  };
  const int quotient = divided();
  return whole.empty() ? quotient : graph_.Map(Op::plus, {Build(whole), quotient});
}

std::optional<int> Positions::Difference(int a, int b) {
  const PartialShape& shape = graph_.node(a).shape;
  const PartialShape domain = shape.size() == 0 ? graph_.node(b).shape : shape;
  const Form from = forms_.Within(domain, forms_.FormOf(a)), less = forms_.Within(domain, forms_.FormOf(b));
  const auto has = [&](const auto& term) { return !term.first.empty() && from.count(term.first) != 0; };
  if (std::none_of(less.begin(), less.end(), has)) return std::nullopt;
  const auto negative = PositionForms::Product(less, PositionForms::Number(-1));
  const auto left = negative ? PositionForms::Sum(from, *negative) : std::nullopt;
  return left ? std::optional(Build(*left)) : std::nullopt;
}

int Positions::BuildProduct(const Factors& factors, index_t count) {
  int product = -1;
  for (const int id : factors) {
    const int factor = id < 0 ? graph_.ExtentOf(Dimension::WithSymbol(PositionForms::SymbolOf(id))) : id;
    product = product < 0 ? factor : graph_.Map(Op::mul, {product, factor});
  }
  if (product < 0) return Constant(count);
  return count == 1 ? product : graph_.Map(Op::mul, {product, Constant(count)});
}

// Multiples that are added first, so that differences are of the form that other passes know.
int Positions::Build(const Form& form) {
  int sum = -1;
  for (const bool negative : {false, true})
    for (const auto& [factors, count] : form) {
      if (factors.empty() || (count < 0) != negative) continue;
      const int product = BuildProduct(factors, std::abs(count));
      if (sum < 0) sum = negative ? graph_.Map(Op::minus, {Constant(0), product}) : product;
      else sum = graph_.Map(negative ? Op::minus : Op::plus, {sum, product});
    }
  const index_t number = NumberOf(form);
  if (sum < 0) return Constant(number);
  return number == 0 ? sum : graph_.Map(Op::plus, {sum, Constant(number)});
}

}  // namespace umbra::graph
