// Index maps: what the extensions of the expression API mean. Each is one definition, a template
// over the kind of position: run with numbers it is the eager evaluation, run with symbols it builds
// the graph, from which the interpreter and every generator follow.
//
// A map is a struct of parameters with
//   kSources, kParams                        tensors that it reads, whole numbers that it takes
//   void Check(const int* ranks) const       throws umbra::Error for parameters that do not fit
//   int Rank(const int* ranks) const         rank of the result from those of the sources
//   void Shape(const Extents<D>& in, D* out) const    extents of the result
//   Number Value(C& c) const                 the element at position c.at(0), c.at(1), ...
// C gives: at(d); extent(k, d) of source k; rank(k); Load(k, position); LoadIf(condition, k,
// position, outside); If(condition, a, b); Literal(number); Reduce<R>({size(n), ...}, body(window)),
// Identity<R>() and the reducer Sum; FromPosition(i) and ToPosition(number).
#ifndef UMBRA_INDEX_MAP_H_
#define UMBRA_INDEX_MAP_H_

#include <array>
#include <cstddef>

#include "umbra/dtype.h"

namespace umbra::map {

inline constexpr int kMaxRank = 8;

/// A position in a tensor of up to kMaxRank dimensions.
template <typename I>
struct Position {
  std::array<I, kMaxRank> at{};
  int rank = 0;
  I& operator[](int d) { return at[static_cast<std::size_t>(d)]; }
  const I& operator[](int d) const { return at[static_cast<std::size_t>(d)]; }
};

/// Extents of the sources.
template <typename D>
struct Extents {
  std::array<std::array<D, kMaxRank>, 4> extent{};
  std::array<int, 4> rank{};
  const D& operator()(int k, int d) const {
    return extent[static_cast<std::size_t>(k)][static_cast<std::size_t>(d)];
  }
};

/// The position of the result itself.
template <typename C>
auto Here(C& c) {
  Position<typename C::Index> p;
  p.rank = c.rank();
  for (int d = 0; d < p.rank; ++d) p[d] = c.at(d);
  return p;
}

inline index_t Min(index_t a, index_t b) { return a < b ? a : b; }
inline index_t Max(index_t a, index_t b) { return a < b ? b : a; }

/// Throws umbra::Error unless `axis` is one of `rank`.
inline void RequireAxis(const char* name, index_t axis, int rank) {
  Require(axis >= 0 && axis < rank, name, ": axis ", axis, " of a tensor of rank ", rank,
          "; its axes are 0 to ", rank - 1);
}
inline void RequireRank(const char* name, int rank, int least) {
  Require(rank >= least, name, " takes a tensor of rank ", least, " or more, rank ", rank, " given");
}

/// Requirements on extents; where they are not known yet, the launch checks them.
inline void RequireAtLeast(const char* name, index_t extent, index_t least) {
  Require(extent >= least, name, ": an extent of ", extent, ", but ", least, " is the least that fits");
}
inline void RequireEqual(const char* name, index_t a, index_t b) {
  Require(a == b, name, ": the extents ", a, " and ", b, " differ");
}

/// i mod n for i >= 0.
template <typename I, typename N>
I Mod(const I& i, const N& n) { return i - (i / n) * n; }

/// Same shape as its only source.
struct Elementwise {
  static constexpr int kSources = 1;
  static constexpr int Rank(const int* ranks) { return ranks[0]; }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    for (int d = 0; d < in.rank[0]; ++d) out[d] = in(0, d);
  }
};

/// flip(x, axis): reversed along one axis.
struct flip : Elementwise {
  static constexpr int kParams = 1;
  int axis;
  explicit flip(const index_t* p) : axis(static_cast<int>(p[0])) {}
  void Check(const int* ranks) const { RequireAxis("flip", axis, ranks[0]); }
  template <typename C>
  auto Value(C& c) const {
    auto p = Here(c);
    p[axis] = c.extent(0, axis) - 1 - p[axis];
    return c.Load(0, p);
  }
};

/// swapaxis(x, a, b): two axes exchanged.
struct swapaxis : Elementwise {
  static constexpr int kParams = 2;
  int a, b;
  explicit swapaxis(const index_t* p) : a(static_cast<int>(p[0])), b(static_cast<int>(p[1])) {}
  void Check(const int* ranks) const {
    RequireAxis("swapaxis", a, ranks[0]);
    RequireAxis("swapaxis", b, ranks[0]);
  }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    for (int d = 0; d < in.rank[0]; ++d) out[d] = in(0, d == a ? b : d == b ? a : d);
  }
  template <typename C>
  auto Value(C& c) const {
    auto p = Here(c);
    p[a] = c.at(b);
    p[b] = c.at(a);
    return c.Load(0, p);
  }
};

/// slice(x, axis, begin, end): part of one axis.
struct slice : Elementwise {
  static constexpr int kParams = 3;
  int axis;
  index_t begin, end;
  explicit slice(const index_t* p) : axis(static_cast<int>(p[0])), begin(p[1]), end(p[2]) {}
  void Check(const int* ranks) const {
    RequireAxis("slice", axis, ranks[0]);
    Require(begin >= 0 && begin <= end, "slice: the range ", begin, " to ", end, " is none");
  }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    out[axis] = D(end - begin);
    RequireAtLeast("slice", in(0, axis), end);
  }
  template <typename C>
  auto Value(C& c) const {
    auto p = Here(c);
    p[axis] = p[axis] + begin;
    return c.Load(0, p);
  }
};

/// crop(x, y, x, height, width): a window of the last two axes.
struct crop : Elementwise {
  static constexpr int kParams = 4;
  index_t y, x, height, width;
  explicit crop(const index_t* p) : y(p[0]), x(p[1]), height(p[2]), width(p[3]) {}
  void Check(const int* ranks) const {
    RequireRank("crop", ranks[0], 2);
    Require(y >= 0 && x >= 0 && height >= 0 && width >= 0, "crop: a negative offset or extent");
  }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    out[in.rank[0] - 2] = D(height);
    out[in.rank[0] - 1] = D(width);
    RequireAtLeast("crop", in(0, in.rank[0] - 2), y + height);
    RequireAtLeast("crop", in(0, in.rank[0] - 1), x + width);
  }
  template <typename C>
  auto Value(C& c) const {
    auto p = Here(c);
    p[p.rank - 2] = p[p.rank - 2] + y;
    p[p.rank - 1] = p[p.rank - 1] + x;
    return c.Load(0, p);
  }
};

/// pad(x, py, px): zeros around the last two axes.
struct pad : Elementwise {
  static constexpr int kParams = 2;
  index_t y, x;
  explicit pad(const index_t* p) : y(p[0]), x(p[1]) {}
  void Check(const int* ranks) const {
    RequireRank("pad", ranks[0], 2);
    Require(y >= 0 && x >= 0, "pad: negative padding; use crop");
  }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    const int r = in.rank[0];
    out[r - 2] = in(0, r - 2) + 2 * y;
    out[r - 1] = in(0, r - 1) + 2 * x;
  }
  template <typename C>
  auto Value(C& c) const {
    auto p = Here(c);
    const int r = p.rank;
    p[r - 2] = p[r - 2] - y;
    p[r - 1] = p[r - 1] - x;
    return c.LoadIf(p[r - 2] >= 0 && p[r - 2] < c.extent(0, r - 2) && p[r - 1] >= 0 &&
                        p[r - 1] < c.extent(0, r - 1),
                    0, p, 0);
  }
};

/// upsampling_nearest(x, scale): every element scale x scale times, last two axes.
struct upsampling_nearest : Elementwise {
  static constexpr int kParams = 1;
  index_t scale;
  explicit upsampling_nearest(const index_t* p) : scale(p[0]) {}
  void Check(const int* ranks) const {
    RequireRank("upsampling_nearest", ranks[0], 2);
    Require(scale > 0, "upsampling_nearest: a scale of ", scale, "; it must be 1 or more");
  }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    for (int d = in.rank[0] - 2; d < in.rank[0]; ++d) out[d] = in(0, d) * scale;
  }
  template <typename C>
  auto Value(C& c) const {
    auto p = Here(c);
    p[p.rank - 2] = p[p.rank - 2] / scale;
    p[p.rank - 1] = p[p.rank - 1] / scale;
    return c.Load(0, p);
  }
};

/// repmat(v, rows): a vector as every row of a matrix.
struct repmat {
  static constexpr int kSources = 1, kParams = 1;
  index_t rows;
  explicit repmat(const index_t* p) : rows(p[0]) {}
  void Check(const int* ranks) const {
    Require(ranks[0] == 1, "repmat takes a vector, rank ", ranks[0], " given");
    Require(rows >= 0, "repmat: a negative number of rows");
  }
  static constexpr int Rank(const int*) { return 2; }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    out[0] = D(rows);
    out[1] = in(0, 0);
  }
  template <typename C>
  auto Value(C& c) const {
    Position<typename C::Index> p;
    p.rank = 1;
    p[0] = c.at(1);
    return c.Load(0, p);
  }
};

/// concat(a, b, axis): one after the other along an axis.
struct concat {
  static constexpr int kSources = 2, kParams = 1;
  int axis;
  explicit concat(const index_t* p) : axis(static_cast<int>(p[0])) {}
  void Check(const int* ranks) const {
    RequireAxis("concat", axis, ranks[0]);
    Require(ranks[0] == ranks[1], "concat takes tensors of one rank, ", ranks[0], " and ", ranks[1],
            " given");
  }
  static constexpr int Rank(const int* ranks) { return ranks[0]; }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    for (int d = 0; d < in.rank[0]; ++d) {
      out[d] = d == axis ? in(0, d) + in(1, d) : in(0, d);
      if (d != axis) RequireEqual("concat", in(0, d), in(1, d));
    }
  }
  template <typename C>
  auto Value(C& c) const {
    auto first = Here(c), second = Here(c);
    second[axis] = second[axis] - c.extent(0, axis);
    return c.If(first[axis] < c.extent(0, axis),
                c.LoadIf(first[axis] < c.extent(0, axis), 0, first, 0),
                c.LoadIf(second[axis] >= 0, 1, second, 0));
  }
};

/// reshape(x, extents...): the same elements in row-major order.
struct reshape {
  static constexpr int kSources = 1, kParams = -1;
  std::array<index_t, kMaxRank> shape{};
  int rank;
  reshape(const index_t* p, int count) : rank(count) {
    for (int d = 0; d < count; ++d) shape[static_cast<std::size_t>(d)] = p[d];
  }
  void Check(const int* ranks) const {
    RequireRank("reshape", ranks[0], 1);
    for (int d = 0; d < rank; ++d)
      Require(shape[static_cast<std::size_t>(d)] >= 0, "reshape: a negative extent");
  }
  int Rank(const int*) const { return rank; }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    D before = in(0, 0), after = D(1);
    for (int d = 1; d < in.rank[0]; ++d) before = before * in(0, d);
    for (int d = 0; d < rank; ++d) {
      out[d] = D(shape[static_cast<std::size_t>(d)]);
      after = after * out[d];
    }
    RequireEqual("reshape", before, after);
  }
  template <typename C>
  auto Value(C& c) const {
    typename C::Index flat = c.at(0);
    for (int d = 1; d < rank; ++d) flat = flat * shape[static_cast<std::size_t>(d)] + c.at(d);
    Position<typename C::Index> p;
    p.rank = c.rank(0);
    for (int d = p.rank - 1; d > 0; --d) {
      p[d] = Mod(flat, c.extent(0, d));
      flat = flat / c.extent(0, d);
    }
    p[0] = flat;
    return c.Load(0, p);
  }
};

inline void CheckWindow(const char* name, int rank, const index_t* size, const index_t* stride) {
  RequireRank(name, rank, 2);
  Require(size[0] > 0 && size[1] > 0 && stride[0] > 0 && stride[1] > 0, name, ": a window of ",
          size[0], " x ", size[1], " with strides ", stride[0], ", ", stride[1],
          "; all must be 1 or more");
}

/// pool<R>(x, height, width, stride_y, stride_x): R over windows of the last two axes; windows that
/// reach beyond the end are cut.
template <typename R>
struct pool : Elementwise {
  static constexpr int kParams = 4;
  index_t size[2], stride[2];
  explicit pool(const index_t* p) : size{p[0], p[1]}, stride{p[2], p[3]} {}
  void Check(const int* ranks) const { CheckWindow("pool", ranks[0], size, stride); }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    const int r = in.rank[0];
    for (int k = 0; k < 2; ++k) {
      // As many windows as begin before the end of the last whole one.
      const D& n = in(0, r - 2 + k);
      RequireAtLeast("pool", n, size[k]);
      out[r - 2 + k] = Min(n - size[k] + stride[k] - 1, n - 1) / stride[k] + 1;
    }
  }
  template <typename C>
  auto Value(C& c) const {
    return c.template Reduce<R>({c.size(size[0]), c.size(size[1])}, [&](const auto& w) {
      auto p = Here(c);
      const int r = p.rank;
      for (int k = 0; k < 2; ++k) p[r - 2 + k] = p[r - 2 + k] * stride[k] + w[k];
      return c.LoadIf(p[r - 2] < c.extent(0, r - 2) && p[r - 1] < c.extent(0, r - 1), 0, p,
                      c.template Identity<R>());
    });
  }
};

/// unpool<R>(data, pooled, grad, height, width, stride_y, stride_x): the gradient of pool: of every
/// window that an element is in, R's share of the window's gradient.
template <typename R>
struct unpool : Elementwise {
  static constexpr int kSources = 3, kParams = 4;
  index_t size[2], stride[2];
  explicit unpool(const index_t* p) : size{p[0], p[1]}, stride{p[2], p[3]} {}
  void Check(const int* ranks) const {
    CheckWindow("unpool", ranks[0], size, stride);
    Require(ranks[0] == ranks[1] && ranks[0] == ranks[2], "unpool takes tensors of one rank");
  }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    for (int d = 0; d < in.rank[0]; ++d) {
      RequireEqual("unpool", in(1, d), in(2, d));
      if (d < in.rank[0] - 2) RequireEqual("unpool", in(0, d), in(1, d));
    }
  }
  template <typename C>
  auto Value(C& c) const {
    // Window number o of an axis holds position i if o * stride <= i < o * stride + size.
    const index_t windows[2] = {(size[0] - 1) / stride[0] + 1, (size[1] - 1) / stride[1] + 1};
    return c.template Reduce<typename C::Sum>(
        {c.size(windows[0]), c.size(windows[1])}, [&](const auto& w) {
          auto p = Here(c), o = Here(c);
          const int r = p.rank;
          auto inside = p[0] >= 0;
          for (int k = 0; k < 2; ++k) {
            const int d = r - 2 + k;
            o[d] = p[d] / stride[k] - w[k];
            inside = inside && o[d] >= 0 && p[d] < o[d] * stride[k] + size[k] && o[d] < c.extent(1, d);
          }
          const auto grad = c.LoadIf(inside, 2, o, 0);
          if constexpr (R::kName == "sum") return grad;
          else return c.If(c.Load(0, p) == c.LoadIf(inside, 1, o, 0), grad, c.Literal(0));
        });
  }
};

}  // namespace umbra::map

#endif  // UMBRA_INDEX_MAP_H_
