#include "compiler/codegen/cuda/term.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/cuda_geometry.h"

namespace umbra::codegen {

namespace {

// What is computed if all arguments are numbers, or a call.
template <typename Compute, typename... Terms>
Term Call(const char* function, Compute compute, const Terms&... terms) {
  if ((terms.is_number() && ...)) return compute(terms.factor...);
  std::string arguments;
  ((arguments += (arguments.empty() ? "" : ", ") + terms.Alone()), ...);
  return Term(fmt::format("{}({})", function, arguments));
}

}  // namespace

bool Term::operator==(const Term& other) const {
  if (factor != other.factor) return false;
  return factor == 0 || std::is_permutation(names.begin(), names.end(), other.names.begin(), other.names.end());
}

std::string Term::Text() const {
  if (is_number()) return std::to_string(factor);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " * ") + name;
  return factor == 1 ? text : text + " * " + std::to_string(factor);
}

std::string Term::Alone() const {
  const bool enclosed = names.size() == 1 && factor == 1 && names[0][0] == '(';
  return enclosed ? names[0].substr(1, names[0].size() - 2) : Text();
}

bool Term::DivideBy(const Term& other) {
  Term rest = *this;
  for (const std::string& name : other.names) {
    const auto found = std::find(rest.names.begin(), rest.names.end(), name);
    if (found == rest.names.end()) return false;
    rest.names.erase(found);
  }
  if (other.factor == 0 || rest.factor % other.factor != 0) return false;
  rest.factor /= other.factor;
  *this = std::move(rest);
  return true;
}

Term operator*(const Term& a, const Term& b) {
  Term product = a;
  product.factor *= b.factor;
  product.names.insert(product.names.end(), b.names.begin(), b.names.end());
  return product;
}

Term operator/(const Term& a, const Term& b) {
  if (Term rest = a; rest.DivideBy(b)) return rest;
  return Term(
      fmt::format("({} / {})", a.Text(), b.names.size() + (b.factor != 1) > 1 ? "(" + b.Text() + ")" : b.Text()));
}

Term operator+(const Term& a, const Term& b) {
  if (a.is_number() && b.is_number()) return a.factor + b.factor;
  return Term(fmt::format("({} + {})", a.Text(), b.Text()));
}

Term CeilDiv(const Term& a, const Term& b) {
  if (Term rest = a; rest.DivideBy(b)) return rest;
  return Call(
      "ceil_div", [](index_t x, index_t y) { return runtime::CeilDiv(x, y); }, a, b);
}

Term Least(const Term& a, const Term& b) {
  if (a == b || a == 1) return a;
  if (b == 1) return b;
  return Call(
      "least", [](index_t x, index_t y) { return runtime::Least(x, y); }, a, b);
}

Term Most(const Term& a, const Term& b) {
  if (a == b || b == 1) return a;
  if (a == 1) return b;
  return Call(
      "most", [](index_t x, index_t y) { return runtime::Most(x, y); }, a, b);
}

Term PowerOfTwo(const Term& a) {
  return Call(
      "power_of_two", [](index_t x) { return runtime::PowerOfTwo(x); }, a);
}

Term Padded(const Term& count) { return Term(CeilDiv(count, 16)) * 16; }

Term RowsThatFit(const Term& most, const Term& bytes, const Term& limit) {
  if (bytes == 0) return most;
  return Call(
      "rows_that_fit", [](index_t x, index_t y, index_t z) { return runtime::RowsThatFit(x, y, z); }, most, bytes,
      limit);
}

Term IfAtLeast(const Term& a, const Term& b, const Term& then, const Term& otherwise) {
  if (then == otherwise) return then;
  if (a.is_number() && b.is_number()) return a.factor >= b.factor ? then : otherwise;
  return Term(fmt::format("({} >= {} ? {} : {})", a.Text(), b.Text(), then.Text(), otherwise.Text()));
}

std::string TermFunctions(const std::string& text) {
  static const std::pair<std::string, std::string> functions[] = {
      {"ceil_div", "long long ceil_div(long long a, long long b) { return (a + b - 1) / b; }"},
      {"least", "long long least(long long a, long long b) { return a < b ? a : b; }"},
      {"most", "long long most(long long a, long long b) { return a < b ? b : a; }"},
      {"power_of_two",
       "long long power_of_two(long long at_least) {\n  long long power = 1;\n  while (power < at_least) power *= 2;\n  return power;\n}"},
      {"rows_that_fit",
       "long long rows_that_fit(long long rows, long long bytes, long long limit) {\n"
       "  while (rows > 1 && rows * bytes > limit) rows /= 2;\n  return rows;\n}"}};
  std::string definitions;
  for (const auto& [name, definition] : functions)
    if (text.find(name + "(") != std::string::npos) definitions += "inline " + definition + "\n";
  return definitions;
}

}  // namespace umbra::codegen
