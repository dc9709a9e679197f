// Complex numbers: pairs of numbers side by side along the last axis, which has even extent.
#ifndef UMBRA_INDEX_MAP_COMPLEX_H_
#define UMBRA_INDEX_MAP_COMPLEX_H_

#include "umbra/index_map/definition.h"

namespace umbra::index_map {

/// Here, with the last axis at position `i`.
template <typename C>
auto HereWithLast(C& c, const typename C::Index& i) {
  auto p = Here(c);
  p[p.rank - 1] = i;
  return p;
}

/// `re` as the real part of the complex number that is here, `im` as its imaginary part.
template <typename C, typename T>
auto RealOrImaginary(C& c, const T& re, const T& im) {
  return c.If(Mod(c.at(c.rank() - 1), 2) == 0, re, im);
}

/// Complex numbers of complex numbers: `name` of one tensor, whose last axis holds pairs.
struct ComplexUnary : Elementwise {
  static constexpr int kParams = 0;
  const char* name;
  explicit ComplexUnary(const char* n) : name(n) {}
  void Check(const int* ranks) const { RequireRank(name, ranks[0], 1); }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    RequireEven(name, in(0, in.rank[0] - 1));
  }
};

/// conj(z): imaginary parts change their sign.
struct conj : ComplexUnary {
  explicit conj(const index_t*) : ComplexUnary("conj") {}
  template <typename C>
  auto Value(C& c) const {
    const auto z = c.Load(0, Here(c));
    return RealOrImaginary(c, z, z * c.Literal(-1));
  }
};

/// complex_exchange(z): the real part becomes the imaginary part, and that the real one.
struct complex_exchange : ComplexUnary {
  explicit complex_exchange(const index_t*) : ComplexUnary("complex_exchange") {}
  template <typename C>
  auto Value(C& c) const {
    const auto i = c.at(c.rank() - 1);
    return c.Load(0, HereWithLast(c, i + 1 - Mod(i, 2) * 2));
  }
};

/// One number of every complex number: half as many along the last axis.
struct ComplexParts : Elementwise {
  static constexpr int kParams = 0;
  const char* name;
  explicit ComplexParts(const char* n) : name(n) {}
  void Check(const int* ranks) const { RequireRank(name, ranks[0], 1); }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    const D& last = in(0, in.rank[0] - 1);
    RequireEven(name, last);
    out[in.rank[0] - 1] = last / 2;
  }
  template <typename C>
  static auto Part(C& c, int part) {
    return c.Load(0, HereWithLast(c, c.at(c.rank() - 1) * 2 + part));
  }
};

/// complex_toreal(z): real parts.
struct complex_toreal : ComplexParts {
  explicit complex_toreal(const index_t*) : ComplexParts("complex_toreal") {}
  template <typename C>
  auto Value(C& c) const {
    return Part(c, 0);
  }
};

/// complex_toimag(z): imaginary parts.
struct complex_toimag : ComplexParts {
  explicit complex_toimag(const index_t*) : ComplexParts("complex_toimag") {}
  template <typename C>
  auto Value(C& c) const {
    return Part(c, 1);
  }
};

/// complex_abs_square(z): squared moduli.
struct complex_abs_square : ComplexParts {
  explicit complex_abs_square(const index_t*) : ComplexParts("complex_abs_square") {}
  template <typename C>
  auto Value(C& c) const {
    const auto re = Part(c, 0), im = Part(c, 1);
    return re * re + im * im;
  }
};

/// complex_sum_real_imag(z): real parts plus imaginary parts.
struct complex_sum_real_imag : ComplexParts {
  explicit complex_sum_real_imag(const index_t*) : ComplexParts("complex_sum_real_imag") {}
  template <typename C>
  auto Value(C& c) const {
    return Part(c, 0) + Part(c, 1);
  }
};

/// complex_pad_imag(re): complex numbers of real parts, with imaginary parts of 0.
struct complex_pad_imag : Elementwise {
  static constexpr int kParams = 0;
  explicit complex_pad_imag(const index_t*) {}
  void Check(const int* ranks) const { RequireRank("complex_pad_imag", ranks[0], 1); }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    out[in.rank[0] - 1] = in(0, in.rank[0] - 1) * 2;
  }
  template <typename C>
  auto Value(C& c) const {
    const auto i = c.at(c.rank() - 1);
    return RealOrImaginary(c, c.Load(0, HereWithLast(c, i / 2)), c.Literal(0));
  }
};

/// `name` of two tensors, of which those that are `paired` hold pairs along the last axis, the others one number for
/// each.
struct ComplexBinary : Elementwise {
  static constexpr int kSources = 2, kParams = 0;
  const char* name;
  bool paired[2];
  ComplexBinary(const char* n, bool a, bool b) : name(n), paired{a, b} {}
  void Check(const int* ranks) const {
    RequireRank(name, ranks[0], 1);
    Require(ranks[0] == ranks[1], name, " takes tensors of one rank");
  }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    const int last = in.rank[0] - 1;
    for (int d = 0; d < last; ++d) {
      out[d] = in(0, d);
      RequireEqual(name, in(0, d), in(1, d));
    }
    for (int k = 0; k < 2; ++k)
      if (paired[k]) RequireEven(name, in(k, last));
    const D a = paired[0] ? in(0, last) : in(0, last) * 2;
    RequireEqual(name, a, paired[1] ? in(1, last) : in(1, last) * 2);
    out[last] = a;
  }
  /// The real part (0) or the imaginary part (1) of source k, here.
  template <typename C>
  static auto Part(C& c, int k, int part) {
    return c.Load(k, HereWithLast(c, c.at(c.rank() - 1) / 2 * 2 + part));
  }
  /// The number of source k, which is real, here.
  template <typename C>
  static auto Real(C& c, int k) {
    return c.Load(k, HereWithLast(c, c.at(c.rank() - 1) / 2));
  }
};

/// complex_pack(re, im): complex numbers of two tensors of one shape.
struct complex_pack : ComplexBinary {
  explicit complex_pack(const index_t*) : ComplexBinary("complex_pack", false, false) {}
  template <typename C>
  auto Value(C& c) const {
    return RealOrImaginary(c, Real(c, 0), Real(c, 1));
  }
};

/// complex_mul_cc(a, b): products of complex numbers.
struct complex_mul_cc : ComplexBinary {
  explicit complex_mul_cc(const index_t*) : ComplexBinary("complex_mul_cc", true, true) {}
  template <typename C>
  auto Value(C& c) const {
    const auto a = Part(c, 0, 0), ai = Part(c, 0, 1), b = Part(c, 1, 0), bi = Part(c, 1, 1);
    return RealOrImaginary(c, a * b - ai * bi, a * bi + ai * b);
  }
};

/// complex_mul_cr(a, b): products of complex numbers a and real ones b.
struct complex_mul_cr : ComplexBinary {
  explicit complex_mul_cr(const index_t*) : ComplexBinary("complex_mul_cr", true, false) {}
  template <typename C>
  auto Value(C& c) const {
    return c.Load(0, Here(c)) * Real(c, 1);
  }
};

/// complex_mul_rc(a, b): products of real numbers a and complex ones b.
struct complex_mul_rc : ComplexBinary {
  explicit complex_mul_rc(const index_t*) : ComplexBinary("complex_mul_rc", false, true) {}
  template <typename C>
  auto Value(C& c) const {
    return Real(c, 0) * c.Load(1, Here(c));
  }
};

/// complex_div_cc(a, b): quotients of complex numbers.
struct complex_div_cc : ComplexBinary {
  explicit complex_div_cc(const index_t*) : ComplexBinary("complex_div_cc", true, true) {}
  template <typename C>
  auto Value(C& c) const {
    const auto a = Part(c, 0, 0), ai = Part(c, 0, 1), b = Part(c, 1, 0), bi = Part(c, 1, 1);
    return c.Over(RealOrImaginary(c, a * b + ai * bi, ai * b - a * bi), b * b + bi * bi);
  }
};

/// complex_div_cr(a, b): quotients of complex numbers a and real ones b.
struct complex_div_cr : ComplexBinary {
  explicit complex_div_cr(const index_t*) : ComplexBinary("complex_div_cr", true, false) {}
  template <typename C>
  auto Value(C& c) const {
    return c.Over(c.Load(0, Here(c)), Real(c, 1));
  }
};

/// complex_div_rc(a, b): quotients of real numbers a and complex ones b.
struct complex_div_rc : ComplexBinary {
  explicit complex_div_rc(const index_t*) : ComplexBinary("complex_div_rc", false, true) {}
  template <typename C>
  auto Value(C& c) const {
    const auto a = Real(c, 0), b = Part(c, 1, 0), bi = Part(c, 1, 1);
    return c.Over(RealOrImaginary(c, a * b, a * bi * c.Literal(-1)), b * b + bi * bi);
  }
};

}  // namespace umbra::index_map

#endif  // UMBRA_INDEX_MAP_COMPLEX_H_
