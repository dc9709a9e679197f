// Index maps that move elements: each element of the result is one of a source, or a constant.
#ifndef UMBRA_INDEX_MAP_REARRANGE_H_
#define UMBRA_INDEX_MAP_REARRANGE_H_

#include "umbra/index_map/definition.h"

namespace umbra::index_map {

/// flip(x, axis): reversed along one axis.
struct flip : Elementwise {
  static constexpr bool kRuns = true;
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
  static constexpr bool kRuns = true;
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
  static constexpr bool kRuns = true;
  static constexpr int kParams = 3;
  static constexpr bool Open(int k) { return k > 0; }
  int axis;
  explicit slice(const index_t* p) : axis(static_cast<int>(p[0])) {}
  void Check(const int* ranks) const { RequireAxis("slice", axis, ranks[0]); }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    RequireRange("slice", in.param[1], in.param[2], in(0, axis));
    out[axis] = in.param[2] - in.param[1];
  }
  template <typename C>
  auto Value(C& c) const {
    auto p = Here(c);
    p[axis] = p[axis] + c.param(1);
    return c.Load(0, p);
  }
};

/// crop(x, y, x, height, width): a window of the last two axes.
struct crop : Elementwise {
  static constexpr bool kRuns = true;
  static constexpr int kParams = 4;
  static constexpr bool Open(int) { return true; }
  explicit crop(const index_t*) {}
  void Check(const int* ranks) const { RequireRank("crop", ranks[0], 2); }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    for (int k = 0; k < 2; ++k) {
      const D &from = in.param[static_cast<std::size_t>(k)], &extent = in.param[static_cast<std::size_t>(2 + k)];
      RequireRange("crop", from, from + extent, in(0, in.rank[0] - 2 + k));
      out[in.rank[0] - 2 + k] = extent;
    }
  }
  template <typename C>
  auto Value(C& c) const {
    auto p = Here(c);
    for (int k = 0; k < 2; ++k) p[p.rank - 2 + k] = p[p.rank - 2 + k] + c.param(k);
    return c.Load(0, p);
  }
};

/// pad(x, py, px): zeros around the last two axes.
struct pad : Elementwise {
  static constexpr bool kRuns = true;
  static constexpr int kParams = 2;
  static constexpr bool Open(int) { return true; }
  explicit pad(const index_t*) {}
  void Check(const int* ranks) const { RequireRank("pad", ranks[0], 2); }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    for (int k = 0; k < 2; ++k) {
      const D& around = in.param[static_cast<std::size_t>(k)];
      RequireNumber("pad", "padding", around, 0);
      out[in.rank[0] - 2 + k] = in(0, in.rank[0] - 2 + k) + around * 2;
    }
  }
  template <typename C>
  auto Value(C& c) const {
    auto p = Here(c);
    if (c.IsNothing(0) && c.IsNothing(1)) return c.Load(0, p);
    const int r = p.rank;
    for (int k = 0; k < 2; ++k) p[r - 2 + k] = p[r - 2 + k] - c.param(k);
    return c.LoadIf(p[r - 2] >= 0 && p[r - 2] < c.extent(0, r - 2) && p[r - 1] >= 0 && p[r - 1] < c.extent(0, r - 1), 0,
                    p, 0);
  }
};

/// upsampling_nearest(x, scale): every element scale x scale times, last two axes.
struct upsampling_nearest : Elementwise {
  static constexpr int kParams = 1;
  static constexpr bool Open(int) { return true; }
  explicit upsampling_nearest(const index_t*) {}
  void Check(const int* ranks) const { RequireRank("upsampling_nearest", ranks[0], 2); }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    RequireNumber("upsampling_nearest", "scale", in.param[0], 1);
    for (int d = in.rank[0] - 2; d < in.rank[0]; ++d) out[d] = in(0, d) * in.param[0];
  }
  template <typename C>
  auto Value(C& c) const {
    auto p = Here(c);
    for (int d = p.rank - 2; d < p.rank; ++d) p[d] = p[d] / c.param(0);
    return c.Load(0, p);
  }
};

/// repmat(v, rows): a vector as every row of a matrix.
struct repmat {
  static constexpr bool kRuns = true;
  static constexpr int kSources = 1, kParams = 1;
  static constexpr bool Open(int) { return true; }
  explicit repmat(const index_t*) {}
  void Check(const int* ranks) const { Require(ranks[0] == 1, "repmat takes a vector, rank ", ranks[0], " given"); }
  static constexpr int Rank(const int*) { return 2; }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    RequireNumber("repmat", "number of rows", in.param[0], 0);
    out[0] = in.param[0];
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
  static constexpr bool kRuns = true;
  static constexpr int kSources = 2, kParams = 1;
  int axis;
  explicit concat(const index_t* p) : axis(static_cast<int>(p[0])) {}
  void Check(const int* ranks) const {
    RequireAxis("concat", axis, ranks[0]);
    Require(ranks[0] == ranks[1], "concat takes tensors of one rank, ", ranks[0], " and ", ranks[1], " given");
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
    return c.If(first[axis] < c.extent(0, axis), c.LoadIf(first[axis] < c.extent(0, axis), 0, first, 0),
                c.LoadIf(second[axis] >= 0, 1, second, 0));
  }
};

/// reshape(x, extents...): the same elements in row-major order.
struct reshape {
  static constexpr bool kRuns = true;
  static constexpr int kSources = 1, kParams = -1;
  static constexpr bool Open(int) { return true; }
  int rank;
  reshape(const index_t*, int count) : rank(count) {}
  void Check(const int* ranks) const { RequireRank("reshape", ranks[0], 1); }
  int Rank(const int*) const { return rank; }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    D before = in(0, 0), after = D(1);
    for (int d = 1; d < in.rank[0]; ++d) before = before * in(0, d);
    for (int d = 0; d < rank; ++d) {
      out[d] = in.param[static_cast<std::size_t>(d)];
      RequireNumber("reshape", "extent", out[d], 0);
      after = after * out[d];
    }
    RequireEqual("reshape", before, after);
  }
  template <typename C>
  auto Value(C& c) const {
    Position<typename C::Index> p;
    p.rank = c.rank(0);
    // The first axes, and the last ones, that both shapes have stay as they are.
    int first = 0, end = rank, from_end = p.rank;
    for (; first + 1 < end && first + 1 < from_end && c.HasParam(first, 0, first); ++first) p[first] = c.at(first);
    for (; first + 1 < end && first + 1 < from_end && c.HasParam(end - 1, 0, from_end - 1); --end, --from_end)
      p[from_end - 1] = c.at(end - 1);
    typename C::Index flat = c.at(first);
    for (int d = first + 1; d < end; ++d) flat = flat * c.param(d) + c.at(d);
    for (int d = from_end - 1; d > first; --d) {
      p[d] = Mod(flat, c.extent(0, d));
      flat = flat / c.extent(0, d);
    }
    p[first] = flat;
    return c.Load(0, p);
  }
};

/// slice_ex(x, begins..., ends..., steps...): every step-th element of a range, for every axis.
struct slice_ex : Elementwise {
  static constexpr bool kRuns = true;
  static constexpr int kParams = -1;
  static constexpr bool Open(int) { return true; }
  int count;
  slice_ex(const index_t*, int n) : count(n) {}
  void Check(const int* ranks) const {
    Require(count == 3 * ranks[0], "slice_ex of a tensor of rank ", ranks[0], " takes ", 3 * ranks[0],
            " numbers (begins, ends, steps), ", count, " given");
  }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    const auto rank = static_cast<std::size_t>(in.rank[0]);
    for (std::size_t d = 0; d < rank; ++d) {
      const D &begin = in.param[d], &end = in.param[rank + d], &step = in.param[2 * rank + d];
      RequireRange("slice_ex", begin, end, in(0, static_cast<int>(d)));
      RequireNumber("slice_ex", "step", step, 1);
      out[d] = (end - begin + step - 1) / step;
    }
  }
  template <typename C>
  auto Value(C& c) const {
    auto p = Here(c);
    for (int d = 0; d < p.rank; ++d) p[d] = p[d] * c.param(2 * p.rank + d) + c.param(d);
    return c.Load(0, p);
  }
};

/// permute(x, axes...): dimension d of the result is dimension axes[d] of x.
struct permute : Elementwise {
  static constexpr bool kRuns = true;
  static constexpr int kParams = -1;
  std::array<int, kMaxRank> axes{};
  int count;
  permute(const index_t* p, int n) : count(n) {
    for (int d = 0; d < n && d < kMaxRank; ++d) axes[static_cast<std::size_t>(d)] = static_cast<int>(p[d]);
  }
  void Check(const int* ranks) const {
    Require(count == ranks[0], "permute of a tensor of rank ", ranks[0], " takes ", ranks[0], " axes, ", count,
            " given");
    for (int d = 0; d < count; ++d) {
      RequireAxis("permute", axes[static_cast<std::size_t>(d)], ranks[0]);
      for (int e = 0; e < d; ++e)
        Require(axes[static_cast<std::size_t>(d)] != axes[static_cast<std::size_t>(e)], "permute: axis ",
                axes[static_cast<std::size_t>(d)], " is given twice");
    }
  }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    for (int d = 0; d < in.rank[0]; ++d) out[d] = in(0, axes[static_cast<std::size_t>(d)]);
  }
  template <typename C>
  auto Value(C& c) const {
    auto p = Here(c);
    for (int d = 0; d < p.rank; ++d) p[axes[static_cast<std::size_t>(d)]] = c.at(d);
    return c.Load(0, p);
  }
};

/// broadcast_with_axis(x, axis, size): a new axis behind `axis`, the first if that is -1, along which x repeats.
struct broadcast_with_axis {
  static constexpr bool kRuns = true;
  static constexpr int kSources = 1, kParams = 2;
  static constexpr bool Open(int k) { return k == 1; }
  int axis;
  explicit broadcast_with_axis(const index_t* p) : axis(static_cast<int>(p[0])) {}
  void Check(const int* ranks) const {
    Require(axis >= -1 && axis < ranks[0], "broadcast_with_axis: a new axis behind axis ", axis,
            " of a tensor of rank ", ranks[0], "; it can be -1 (before all) to ", ranks[0] - 1);
    Require(ranks[0] < kMaxRank, "broadcast_with_axis of a tensor of rank ", ranks[0], "; the result has ", kMaxRank,
            " axes at most");
  }
  static constexpr int Rank(const int* ranks) { return ranks[0] + 1; }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    for (int d = 0; d < in.rank[0]; ++d) out[d > axis ? d + 1 : d] = in(0, d);
    RequireNumber("broadcast_with_axis", "size", in.param[1], 0);
    out[axis + 1] = in.param[1];
  }
  template <typename C>
  auto Value(C& c) const {
    Position<typename C::Index> p;
    p.rank = c.rank(0);
    for (int d = 0; d < p.rank; ++d) p[d] = c.at(d > axis ? d + 1 : d);
    return c.Load(0, p);
  }
};

/// broadcast_keepdim(x, axis, size): an axis of extent 1 repeated.
struct broadcast_keepdim : Elementwise {
  static constexpr bool kRuns = true;
  static constexpr int kParams = 2;
  static constexpr bool Open(int k) { return k == 1; }
  int axis;
  explicit broadcast_keepdim(const index_t* p) : axis(static_cast<int>(p[0])) {}
  void Check(const int* ranks) const { RequireAxis("broadcast_keepdim", axis, ranks[0]); }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    RequireEqual("broadcast_keepdim", in(0, axis), D(1));
    RequireNumber("broadcast_keepdim", "size", in.param[1], 0);
    out[axis] = in.param[1];
  }
  template <typename C>
  auto Value(C& c) const {
    auto p = Here(c);
    p[axis] = typename C::Index(0);
    return c.Load(0, p);
  }
};

/// broadcast_multi_axes(x, axis, size, axis, size, ...): axes of extent 1 repeated.
struct broadcast_multi_axes : Elementwise {
  static constexpr bool kRuns = true;
  static constexpr int kParams = -1;
  static constexpr bool Open(int k) { return k % 2 == 1; }
  std::array<int, kMaxRank> axes{};
  int count;
  broadcast_multi_axes(const index_t* p, int n) : count(n) {
    for (int k = 0; k < n && k < 2 * kMaxRank; k += 2) axes[static_cast<std::size_t>(k / 2)] = static_cast<int>(p[k]);
  }
  void Check(const int* ranks) const {
    Require(count % 2 == 0 && count <= 2 * ranks[0], "broadcast_multi_axes of a tensor of rank ", ranks[0],
            " takes an axis and a size for up to ", ranks[0], " axes, ", count, " numbers given");
    for (int k = 0; k < count / 2; ++k) {
      RequireAxis("broadcast_multi_axes", Axis(k), ranks[0]);
      Require(k == 0 || Axis(k - 1) < Axis(k), "broadcast_multi_axes: axis ", Axis(k), " comes after axis ",
              k == 0 ? 0 : Axis(k - 1), "; they go in increasing order");
    }
  }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    for (int k = 0; k < count / 2; ++k) {
      const D& size = in.param[static_cast<std::size_t>(2 * k + 1)];
      RequireEqual("broadcast_multi_axes", in(0, Axis(k)), D(1));
      RequireNumber("broadcast_multi_axes", "size", size, 0);
      out[Axis(k)] = size;
    }
  }
  template <typename C>
  auto Value(C& c) const {
    auto p = Here(c);
    for (int k = 0; k < count / 2; ++k) p[Axis(k)] = typename C::Index(0);
    return c.Load(0, p);
  }

 private:
  int Axis(int k) const { return axes[static_cast<std::size_t>(k)]; }
};

/// steps(count, repeat): 0, 0, ..., 1, 1, ..., count - 1: every number `repeat` times.
struct steps {
  static constexpr int kSources = 0, kParams = 2;
  static constexpr bool Open(int) { return true; }
  explicit steps(const index_t*) {}
  void Check(const int*) const {}
  static constexpr int Rank(const int*) { return 1; }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    RequireNumber("steps", "count", in.param[0], 0);
    RequireNumber("steps", "repetition", in.param[1], 1);
    out[0] = in.param[0] * in.param[1];
  }
  template <typename C>
  auto Value(C& c) const {
    return c.FromPosition(c.at(0) / c.param(1));
  }
};

}  // namespace umbra::index_map

#endif  // UMBRA_INDEX_MAP_REARRANGE_H_
