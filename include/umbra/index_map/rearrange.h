// Index maps that move elements: each element of the result is one of a source, or a constant.
#ifndef UMBRA_INDEX_MAP_REARRANGE_H_
#define UMBRA_INDEX_MAP_REARRANGE_H_

#include "umbra/index_map/definition.h"

namespace umbra::map {

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

/// slice_ex(x, begins..., ends..., steps...): every step-th element of a range, for every axis.
struct slice_ex : Elementwise {
  static constexpr int kParams = -1;
  std::array<index_t, kMaxRank> begin{}, end{}, step{};
  int count;
  slice_ex(const index_t* p, int n) : count(n) {
    const int rank = n / 3 <= kMaxRank ? n / 3 : kMaxRank;
    for (int d = 0; d < rank; ++d) {
      const auto k = static_cast<std::size_t>(d);
      begin[k] = p[d];
      end[k] = p[n / 3 + d];
      step[k] = p[2 * (n / 3) + d];
    }
  }
  void Check(const int* ranks) const {
    Require(count == 3 * ranks[0], "slice_ex of a tensor of rank ", ranks[0], " takes ", 3 * ranks[0],
            " numbers (begins, ends, steps), ", count, " given");
    for (std::size_t d = 0; d < static_cast<std::size_t>(ranks[0]); ++d)
      Require(begin[d] >= 0 && begin[d] <= end[d] && step[d] > 0, "slice_ex: the range ", begin[d],
              " to ", end[d], " by ", step[d], " is none");
  }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    for (int d = 0; d < in.rank[0]; ++d) {
      const auto k = static_cast<std::size_t>(d);
      out[d] = D((end[k] - begin[k] + step[k] - 1) / step[k]);
      RequireAtLeast("slice_ex", in(0, d), end[k]);
    }
  }
  template <typename C>
  auto Value(C& c) const {
    auto p = Here(c);
    for (int d = 0; d < p.rank; ++d) {
      const auto k = static_cast<std::size_t>(d);
      p[d] = p[d] * step[k] + begin[k];
    }
    return c.Load(0, p);
  }
};

/// permute(x, axes...): dimension d of the result is dimension axes[d] of x.
struct permute : Elementwise {
  static constexpr int kParams = -1;
  std::array<int, kMaxRank> axes{};
  int count;
  permute(const index_t* p, int n) : count(n) {
    for (int d = 0; d < n && d < kMaxRank; ++d) axes[static_cast<std::size_t>(d)] = static_cast<int>(p[d]);
  }
  void Check(const int* ranks) const {
    Require(count == ranks[0], "permute of a tensor of rank ", ranks[0], " takes ", ranks[0], " axes, ",
            count, " given");
    for (int d = 0; d < count; ++d) {
      RequireAxis("permute", axes[static_cast<std::size_t>(d)], ranks[0]);
      for (int e = 0; e < d; ++e)
        Require(axes[static_cast<std::size_t>(d)] != axes[static_cast<std::size_t>(e)],
                "permute: axis ", axes[static_cast<std::size_t>(d)], " is given twice");
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

/// broadcast_with_axis(x, axis, size): a new axis behind `axis`, along which x repeats.
struct broadcast_with_axis {
  static constexpr int kSources = 1, kParams = 2;
  int axis;
  index_t size;
  explicit broadcast_with_axis(const index_t* p) : axis(static_cast<int>(p[0])), size(p[1]) {}
  void Check(const int* ranks) const {
    RequireAxis("broadcast_with_axis", axis, ranks[0]);
    Require(size >= 0 && ranks[0] < kMaxRank, "broadcast_with_axis: size ", size);
  }
  static constexpr int Rank(const int* ranks) { return ranks[0] + 1; }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    for (int d = 0; d < in.rank[0]; ++d) out[d > axis ? d + 1 : d] = in(0, d);
    out[axis + 1] = D(size);
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
  static constexpr int kParams = 2;
  int axis;
  index_t size;
  explicit broadcast_keepdim(const index_t* p) : axis(static_cast<int>(p[0])), size(p[1]) {}
  void Check(const int* ranks) const {
    RequireAxis("broadcast_keepdim", axis, ranks[0]);
    Require(size >= 0, "broadcast_keepdim: size ", size);
  }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    RequireEqual("broadcast_keepdim", in(0, axis), D(1));
    out[axis] = D(size);
  }
  template <typename C>
  auto Value(C& c) const {
    auto p = Here(c);
    p[axis] = typename C::Index(0);
    return c.Load(0, p);
  }
};

/// steps(count, repeat): 0, 0, ..., 1, 1, ..., count - 1: every number `repeat` times.
struct steps {
  static constexpr int kSources = 0, kParams = 2;
  index_t count, repeat;
  explicit steps(const index_t* p) : count(p[0]), repeat(p[1]) {}
  void Check(const int*) const {
    Require(count >= 0 && repeat > 0, "steps: ", count, " numbers, ", repeat, " times each");
  }
  static constexpr int Rank(const int*) { return 1; }
  template <typename D>
  void Shape(const Extents<D>&, D* out) const { out[0] = D(count * repeat); }
  template <typename C>
  auto Value(C& c) const { return c.FromPosition(c.at(0) / repeat); }
};

}  // namespace umbra::map

#endif  // UMBRA_INDEX_MAP_REARRANGE_H_
