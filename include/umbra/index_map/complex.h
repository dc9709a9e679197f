// Complex numbers: pairs of numbers side by side along the last axis, which has even extent.
#ifndef UMBRA_INDEX_MAP_COMPLEX_H_
#define UMBRA_INDEX_MAP_COMPLEX_H_

#include "umbra/index_map/definition.h"

namespace umbra::map {

/// Here, with the last axis at position `i`.
template <typename C>
auto HereWithLast(C& c, const typename C::Index& i) {
  auto p = Here(c);
  p[p.rank - 1] = i;
  return p;
}

/// complex_conj(z): imaginary parts change their sign.
struct complex_conj : Elementwise {
  static constexpr int kParams = 0;
  explicit complex_conj(const index_t*) {}
  void Check(const int* ranks) const { RequireRank("complex_conj", ranks[0], 1); }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    RequireEven("complex_conj", in(0, in.rank[0] - 1));
  }
  template <typename C>
  auto Value(C& c) const {
    const auto z = c.Load(0, Here(c));
    return c.If(Mod(c.at(c.rank() - 1), 2) == 0, z, z * c.Literal(-1));
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
  static auto Part(C& c, int part) { return c.Load(0, HereWithLast(c, c.at(c.rank() - 1) * 2 + part)); }
};

/// complex_toreal(z): real parts.
struct complex_toreal : ComplexParts {
  explicit complex_toreal(const index_t*) : ComplexParts("complex_toreal") {}
  template <typename C>
  auto Value(C& c) const { return Part(c, 0); }
};

/// complex_toimag(z): imaginary parts.
struct complex_toimag : ComplexParts {
  explicit complex_toimag(const index_t*) : ComplexParts("complex_toimag") {}
  template <typename C>
  auto Value(C& c) const { return Part(c, 1); }
};

/// complex_abs2(z): squared moduli.
struct complex_abs2 : ComplexParts {
  explicit complex_abs2(const index_t*) : ComplexParts("complex_abs2") {}
  template <typename C>
  auto Value(C& c) const {
    const auto re = Part(c, 0), im = Part(c, 1);
    return re * re + im * im;
  }
};

/// complex_pack(re, im): complex numbers of two tensors of one shape.
struct complex_pack : Elementwise {
  static constexpr int kSources = 2, kParams = 0;
  explicit complex_pack(const index_t*) {}
  void Check(const int* ranks) const {
    RequireRank("complex_pack", ranks[0], 1);
    Require(ranks[0] == ranks[1], "complex_pack takes tensors of one rank");
  }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    for (int d = 0; d < in.rank[0]; ++d) {
      out[d] = d == in.rank[0] - 1 ? in(0, d) * 2 : in(0, d);
      RequireEqual("complex_pack", in(0, d), in(1, d));
    }
  }
  template <typename C>
  auto Value(C& c) const {
    const auto i = c.at(c.rank() - 1);
    const auto p = HereWithLast(c, i / 2);
    return c.If(Mod(i, 2) == 0, c.Load(0, p), c.Load(1, p));
  }
};

/// complex_mul(a, b): the product of complex numbers.
struct complex_mul : Elementwise {
  static constexpr int kSources = 2, kParams = 0;
  explicit complex_mul(const index_t*) {}
  void Check(const int* ranks) const {
    RequireRank("complex_mul", ranks[0], 1);
    Require(ranks[0] == ranks[1], "complex_mul takes tensors of one rank");
  }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    for (int d = 0; d < in.rank[0]; ++d) RequireEqual("complex_mul", in(0, d), in(1, d));
    RequireEven("complex_mul", in(0, in.rank[0] - 1));
  }
  template <typename C>
  auto Value(C& c) const {
    const auto i = c.at(c.rank() - 1);
    const auto re = HereWithLast(c, i / 2 * 2), im = HereWithLast(c, i / 2 * 2 + 1);
    return c.If(Mod(i, 2) == 0, c.Load(0, re) * c.Load(1, re) - c.Load(0, im) * c.Load(1, im),
                c.Load(0, re) * c.Load(1, im) + c.Load(0, im) * c.Load(1, re));
  }
};

}  // namespace umbra::map

#endif  // UMBRA_INDEX_MAP_COMPLEX_H_
