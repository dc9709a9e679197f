// Numbers of a launch as texts of C++: products of names and calls, with the arithmetic of runtime/cuda_geometry.h. All
// are 1 or more where a text is evaluated, but for what a reduction finds empty.
#ifndef UMBRA_COMPILER_CODEGEN_CUDA_TERM_H_
#define UMBRA_COMPILER_CODEGEN_CUDA_TERM_H_

#include <string>
#include <vector>

#include "umbra/dtype.h"

namespace umbra::codegen {

struct Term {
  Term(index_t number) : factor(number) {}  // NOLINT: numbers are terms
  explicit Term(std::string name) : names{std::move(name)} {}

  index_t factor = 1;
  std::vector<std::string> names;  ///< the other factors

  bool is_number() const { return names.empty() || factor == 0; }
  bool operator==(const Term& other) const;
  std::string Text() const;
  /// Where nothing binds it: no parentheses around all of it.
  std::string Alone() const;
  /// If `other` times something is this, that; of numbers, if it divides them.
  bool DivideBy(const Term& other);
};

Term operator*(const Term& a, const Term& b);
Term operator/(const Term& a, const Term& b);
Term operator+(const Term& a, const Term& b);
Term CeilDiv(const Term& a, const Term& b);
Term Least(const Term& a, const Term& b);
Term Most(const Term& a, const Term& b);
Term PowerOfTwo(const Term& a);
Term Padded(const Term& count);
Term RowsThatFit(const Term& most, const Term& bytes, const Term& limit);
Term IfAtLeast(const Term& a, const Term& b, const Term& then, const Term& otherwise);

/// The definitions of the functions that `text` calls, as C++.
std::string TermFunctions(const std::string& text);

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_CUDA_TERM_H_
