// Index maps that join the elements of a window: pooling and patches. Beyond a window that is cut stands
// the number that R leaves every other with; where that is not exact, the nearest element of the window, as
// joining twice does not change an extreme.
#ifndef UMBRA_INDEX_MAP_WINDOW_H_
#define UMBRA_INDEX_MAP_WINDOW_H_

#include "umbra/index_map/definition.h"
#include "umbra/op.h"

namespace umbra::index_map {

/// The elements of a window for a reducer that is made of others; see red::Made.
template <typename C, typename JoinBy, typename CountOf>
struct WindowJoiner {
  C& c;  ///< what computes
  const JoinBy& join;  ///< join(R()) joins the elements by R
  const CountOf& count;  ///< count(), an element, is how many there are
  /// All elements joined by R.
  template <typename R>
  auto Join() const {
    return join(R());
  }
  /// How many elements there are.
  auto Count() const { return count(); }
  /// a / b.
  template <typename A, typename B>
  auto Over(const A& a, const B& b) const {
    return c.Over(a, b);
  }
};
/// What the elements of a window, of which there are `count()`, an element, are by R; join(R()) joins them.
template <typename R, typename C, typename JoinBy, typename CountOf>
auto Joined(C& c, const JoinBy& join, const CountOf& count) {
  if constexpr (red::kIsMade<R>) return R::Value(WindowJoiner<C, JoinBy, CountOf>{c, join, count});
  else return join(R());
}

/// The share in the gradient `grad` of its window, which joins to `joined()` from `count()` elements, that `element()`
/// has.
template <typename R, typename C, typename T, typename Window, typename Element, typename Count>
auto ShareOf(C& c, const T& grad, const Window& joined, const Element& element, const Count& count) {
  if constexpr (R::kName == "mean") return c.Over(grad, c.FromPosition(Max(count(), typename C::Index(1))));
  else if constexpr (R::kName == "sum") return grad;
  else {
    static_assert(R::kName == "maximum" || R::kName == "minimum",
                  "umbra: windows have a gradient if they are joined by sum, mean, maximum or minimum");
    return c.If(element() == joined(), grad, c.Literal(0));
  }
}

/// Throws umbra::Error unless windows of the last two axes have a size and strides.
inline void CheckWindow(const char* name, int rank, const index_t* size, const index_t* stride) {
  RequireRank(name, rank, 2);
  Require(size[0] > 0 && size[1] > 0 && stride[0] > 0 && stride[1] > 0, name, ": a window of ", size[0], " x ", size[1],
          " with strides ", stride[0], ", ", stride[1], "; all must be 1 or more");
}

/// pool<R>(x, height, width, stride_y, stride_x): R over the windows that lie whole within the last two axes.
/// pool<R>(x, rows, columns, height, width, stride_y, stride_x): over rows x columns windows, which begin within them;
/// those that reach beyond the end are cut.
template <typename R>
struct pool : Elementwise {
  static constexpr bool kRuns = true;
  static constexpr int kParams = -1;
  int count;
  index_t windows[2]{}, size[2]{}, stride[2]{};
  pool(const index_t* p, int n) : count(n) {
    if (n != 4 && n != 6) return;
    for (int k = 0; k < 2; ++k) {
      if (Given()) windows[k] = p[k];
      size[k] = p[n - 4 + k];
      stride[k] = p[n - 2 + k];
    }
  }
  void Check(const int* ranks) const {
    Require(count == 4 || count == 6,
            "pool takes height, width, stride_y, stride_x, or, before them, the rows and columns of the "
            "result, ",
            count, " numbers given");
    CheckWindow("pool", ranks[0], size, stride);
    for (int k = 0; k < 2; ++k) RequireNumber("pool", "number of windows", windows[k], 0);
  }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    for (int k = 0; k < 2; ++k) {
      const int d = in.rank[0] - 2 + k;
      RequireAtLeast("pool", in(0, d), size[k]);
      if (Given()) RequireAtLeast("pool", in(0, d), (windows[k] - 1) * stride[k] + 1);
      out[d] = Given() ? D(windows[k]) : Whole(in(0, d), size[k], stride[k]);
    }
  }
  /// Windows that lie whole within an axis of extent n.
  template <typename D>
  static D Whole(const D& n, index_t size, index_t stride) {
    return (n - size) / stride + 1;
  }
  /// Elements that the window at `o` has in rows and columns.
  template <typename Int>
  static Int Count(const Position<Int>& o, const index_t* size, const index_t* stride, const Int& rows,
                   const Int& columns) {
    const Int y = o[o.rank - 2] * stride[0], x = o[o.rank - 1] * stride[1];
    return (Min(y + size[0], rows) - y) * (Min(x + size[1], columns) - x);
  }
  template <typename C>
  auto Value(C& c) const {
    const int r = c.rank();
    const auto join = [&](auto by) {
      using Join = decltype(by);
      return c.template Reduce<Join>({c.size(size[0]), c.size(size[1])}, [&](const auto& w) {
        auto p = Here(c);
        for (int k = 0; k < 2; ++k) p[r - 2 + k] = p[r - 2 + k] * stride[k] + w[k];
        if (!Given()) return c.Load(0, p);
        if (c.template HasIdentity<Join>())
          return c.LoadIf(p[r - 2] < c.extent(0, r - 2) && p[r - 1] < c.extent(0, r - 1), 0, p,
                          c.template Identity<Join>());
        for (int d = r - 2; d < r; ++d) p[d] = Min(p[d], c.extent(0, d) - 1);
        return c.Load(0, p);
      });
    };
    return Joined<R>(c, join, [&] {
      if (!Given()) return c.Literal(static_cast<double>(size[0] * size[1]));
      return c.FromPosition(Count(Here(c), size, stride, c.extent(0, r - 2), c.extent(0, r - 1)));
    });
  }

 private:
  bool Given() const { return count == 6; }
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
    return c.template Reduce<typename C::Sum>({c.size(windows[0]), c.size(windows[1])}, [&](const auto& w) {
      auto p = Here(c), o = Here(c);
      const int r = p.rank;
      auto inside = p[0] >= 0;
      for (int k = 0; k < 2; ++k) {
        const int d = r - 2 + k;
        o[d] = p[d] / stride[k] - w[k];
        inside = inside && p[d] >= w[k] * stride[k] && p[d] < (w[k] + c.extent(1, d)) * stride[k];
      }
      auto share = ShareOf<R>(
          c, c.LoadIf(inside, 2, o, 0), [&] { return c.LoadIf(inside, 1, o, 0); }, [&] { return c.Load(0, p); },
          [&] { return pool<R>::Count(o, size, stride, c.extent(0, r - 2), c.extent(0, r - 1)); });
      for (int k = 0; k < 2; ++k)  // windows of whole strides leave no gaps
        if (size[k] % stride[k] != 0)
          share = c.If(Mod(p[r - 2 + k], stride[k]) + w[k] * stride[k] < size[k], share, c.Literal(0));
      return share;
    });
  }
};

/// chpool<R>(x, size, stride, padding): R over windows of the third axis from the end, as many as whole strides fit
/// among the places where one can begin; windows that reach beyond either end are cut.
template <typename R>
struct chpool : Elementwise {
  static constexpr bool kRuns = true;
  static constexpr int kParams = 3;
  index_t size, stride, padding;
  explicit chpool(const index_t* p) : size(p[0]), stride(p[1]), padding(p[2]) {}
  void Check(const int* ranks) const {
    RequireRank("chpool", ranks[0], 3);
    Require(size > 0 && stride > 0 && padding >= 0 && padding < size, "chpool: a window of ", size, " with stride ",
            stride, " and padding ", padding);
  }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    const D& n = in(0, in.rank[0] - 3);
    RequireAtLeast("chpool", n + 2 * padding, size);
    out[in.rank[0] - 3] = (n + 2 * padding - size + 1) / stride;
  }
  /// Channels of window `o` that are none of the padding.
  template <typename Int>
  static Int Count(const Int& o, index_t size, index_t stride, index_t padding, const Int& channels) {
    const Int begin = o * stride - padding;
    return Min(begin + size, channels) - Max(begin, Int(0));
  }
  template <typename C>
  auto Value(C& c) const {
    const int channel = c.rank() - 3;
    const auto join = [&](auto by) {
      using Join = decltype(by);
      return c.template Reduce<Join>({c.size(size)}, [&](const auto& w) {
        auto p = Here(c);
        p[channel] = p[channel] * stride + w[0] - padding;
        if (c.template HasIdentity<Join>())
          return c.LoadIf(p[channel] >= 0 && p[channel] < c.extent(0, channel), 0, p, c.template Identity<Join>());
        p[channel] = Max(typename C::Index(0), Min(p[channel], c.extent(0, channel) - 1));
        return c.Load(0, p);
      });
    };
    return Joined<R>(c, join,
                     [&] { return c.FromPosition(Count(c.at(channel), size, stride, padding, c.extent(0, channel))); });
  }
};

/// ch_unpool<R>(data, pooled, grad, size, stride, padding): the gradient of chpool.
template <typename R>
struct ch_unpool : Elementwise {
  static constexpr int kSources = 3, kParams = 3;
  index_t size, stride, padding;
  explicit ch_unpool(const index_t* p) : size(p[0]), stride(p[1]), padding(p[2]) {}
  void Check(const int* ranks) const {
    RequireRank("ch_unpool", ranks[0], 3);
    Require(size > 0 && stride > 0 && padding >= 0 && padding < size, "ch_unpool: a window of ", size, " with stride ",
            stride, " and padding ", padding);
    Require(ranks[0] == ranks[1] && ranks[0] == ranks[2], "ch_unpool takes tensors of one rank");
  }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    for (int d = 0; d < in.rank[0]; ++d) {
      RequireEqual("ch_unpool", in(1, d), in(2, d));
      if (d != in.rank[0] - 3) RequireEqual("ch_unpool", in(0, d), in(1, d));
    }
  }
  template <typename C>
  auto Value(C& c) const {
    return c.template Reduce<typename C::Sum>({c.size((size - 1) / stride + 1)}, [&](const auto& w) {
      auto p = Here(c), o = Here(c);
      const int channel = p.rank - 3;
      const auto i = p[channel] + padding;
      o[channel] = i / stride - w[0];
      const auto inside = o[channel] >= 0 && i < o[channel] * stride + size && o[channel] < c.extent(1, channel);
      return ShareOf<R>(
          c, c.LoadIf(inside, 2, o, 0), [&] { return c.LoadIf(inside, 1, o, 0); }, [&] { return c.Load(0, p); },
          [&] { return chpool<R>::Count(o[channel], size, stride, padding, c.extent(0, channel)); });
    });
  }
};

/// ada_pool<R>(x, height, width): R over height x width windows that together cover the last two
/// axes; window o of n holds positions floor(o extent / n) to ceil((o + 1) extent / n) - 1.
template <typename R>
struct ada_pool : Elementwise {
  static constexpr int kParams = 2;
  index_t size[2];
  explicit ada_pool(const index_t* p) : size{p[0], p[1]} {}
  void Check(const int* ranks) const {
    RequireRank("ada_pool", ranks[0], 2);
    Require(size[0] > 0 && size[1] > 0, "ada_pool: a result of ", size[0], " x ", size[1]);
  }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    for (int k = 0; k < 2; ++k) {
      RequireAtLeast("ada_pool", in(0, in.rank[0] - 2 + k), 1);
      out[in.rank[0] - 2 + k] = D(size[k]);
    }
  }
  template <typename C>
  auto Value(C& c) const {
    const int y = c.rank() - 2, x = c.rank() - 1;
    const auto begin = [&](int d) { return c.at(d) * c.extent(0, d) / size[d - y]; };
    const auto end = [&](int d) { return ((c.at(d) + 1) * c.extent(0, d) + size[d - y] - 1) / size[d - y]; };
    // A window begins and ends within elements unless the extent is a multiple of theirs.
    const auto most = [&](int d) {
      const auto all = c.size(0, d), of_each = all / size[d - y];
      return of_each + Min(all - of_each * size[d - y], decltype(of_each)(2));
    };
    const auto join = [&](auto by) {
      using Join = decltype(by);
      return c.template Reduce<Join>({most(y), most(x)}, [&](const auto& w) {
        auto p = Here(c);
        for (int k = 0; k < 2; ++k) p[y + k] = begin(y + k) + w[k];
        if (c.template HasIdentity<Join>())
          return c.LoadIf(p[y] < end(y) && p[x] < end(x), 0, p, c.template Identity<Join>());
        for (int d = y; d <= x; ++d) p[d] = Min(p[d], end(d) - 1);
        return c.Load(0, p);
      });
    };
    return Joined<R>(c, join, [&] { return c.FromPosition((end(y) - begin(y)) * (end(x) - begin(x))); });
  }
};

/// implicit_dot(a, b): the product of matrices, element by element, for use inside larger expressions.
struct implicit_dot {
  static constexpr int kSources = 2, kParams = 0;
  explicit implicit_dot(const index_t*) {}
  void Check(const int* ranks) const { Require(ranks[0] == 2 && ranks[1] == 2, "implicit_dot takes two matrices"); }
  static constexpr int Rank(const int*) { return 2; }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    out[0] = in(0, 0);
    out[1] = in(1, 1);
    RequireEqual("implicit_dot", in(0, 1), in(1, 0));
  }
  template <typename C>
  auto Value(C& c) const {
    return c.template Reduce<typename C::Sum>({c.size(0, 1)}, [&](const auto& w) {
      auto a = Here(c), b = Here(c);
      a[1] = w[0];
      b[0] = w[0];
      return c.Load(0, a) * c.Load(1, b);
    });
  }
};

/// The patches of a picture: their size, and the steps and gaps between their points.
struct Patches {
  index_t size[2], stride[2], dilate[2];
  void Check(const char* name) const {
    for (int k = 0; k < 2; ++k)
      Require(size[k] > 0 && stride[k] > 0 && dilate[k] > 0, name, ": patches of ", size[0], " x ", size[1],
              ", strides and dilations must be 1 or more");
  }
  /// Patches along axis k of extent n.
  template <typename D>
  D Count(const D& n, int k) const {
    return (n - (dilate[k] * (size[k] - 1) + 1)) / stride[k] + 1;
  }
};

/// unpack_patch2col(x, height, width, stride_y, stride_x, dilate_y, dilate_x): the patches of a batch
/// of pictures [n, c, h, w] as the columns of a matrix [c height width, n patches].
struct unpack_patch2col {
  static constexpr int kSources = 1, kParams = 6;
  Patches patch;
  explicit unpack_patch2col(const index_t* p) : patch{{p[0], p[1]}, {p[2], p[3]}, {p[4], p[5]}} {}
  void Check(const int* ranks) const {
    Require(ranks[0] == 4, "unpack_patch2col takes pictures of four axes, rank ", ranks[0], " given");
    patch.Check("unpack_patch2col");
  }
  static constexpr int Rank(const int*) { return 2; }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    for (int k = 0; k < 2; ++k)
      RequireAtLeast("unpack_patch2col", in(0, 2 + k), patch.dilate[k] * (patch.size[k] - 1) + 1);
    out[0] = in(0, 1) * (patch.size[0] * patch.size[1]);
    out[1] = in(0, 0) * patch.Count(in(0, 2), 0) * patch.Count(in(0, 3), 1);
  }
  template <typename C>
  auto Value(C& c) const {
    const auto row = c.at(0), column = c.at(1);
    const auto rows = patch.Count(c.extent(0, 2), 0), columns = patch.Count(c.extent(0, 3), 1);
    Position<typename C::Index> p;
    p.rank = 4;
    p[3] = Mod(column, columns) * patch.stride[1] + Mod(row, patch.size[1]) * patch.dilate[1];
    p[2] = Mod(column / columns, rows) * patch.stride[0] + Mod(row / patch.size[1], patch.size[0]) * patch.dilate[0];
    p[1] = row / (patch.size[0] * patch.size[1]);
    p[0] = column / columns / rows;
    return c.Load(0, p);
  }
};

/// pack_col2patch(x, n, c, h, w, height, width, stride_y, stride_x, dilate_y, dilate_x): the
/// transpose of unpack_patch2col: every element of [n, c, h, w] is the sum of its places in x.
struct pack_col2patch {
  static constexpr int kSources = 1, kParams = 10;
  static constexpr bool Open(int k) { return k < 4; }
  Patches patch;
  explicit pack_col2patch(const index_t* p) : patch{{p[4], p[5]}, {p[6], p[7]}, {p[8], p[9]}} {}
  void Check(const int* ranks) const {
    Require(ranks[0] == 2, "pack_col2patch takes a matrix, rank ", ranks[0], " given");
    patch.Check("pack_col2patch");
  }
  static constexpr int Rank(const int*) { return 4; }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    for (int d = 0; d < 4; ++d) out[d] = in.param[static_cast<std::size_t>(d)];
    for (int k = 0; k < 2; ++k) RequireAtLeast("pack_col2patch", out[2 + k], patch.dilate[k] * (patch.size[k] - 1) + 1);
    RequireEqual("pack_col2patch", in(0, 0), out[1] * (patch.size[0] * patch.size[1]));
    RequireEqual("pack_col2patch", in(0, 1), out[0] * patch.Count(out[2], 0) * patch.Count(out[3], 1));
  }
  template <typename C>
  auto Value(C& c) const {
    using Index = typename C::Index;
    const Index count[2] = {patch.Count(c.param(2), 0), patch.Count(c.param(3), 1)};
    return c.template Reduce<typename C::Sum>({c.size(Steps(0)), c.size(Steps(1))}, [&](const auto& w) {
      // The patch, if there is one, whose point lies here.
      Index point[2] = {w[0], w[1]}, from[2];
      for (int k = 0; k < 2; ++k) {
        if (AreStrideApart(k)) point[k] = Mod(c.at(2 + k), patch.stride[k]) + w[k] * patch.stride[k];
        from[k] = c.at(2 + k) - point[k] * patch.dilate[k];
      }
      auto inside =
          from[0] >= 0 && from[1] >= 0 && from[0] < count[0] * patch.stride[0] && from[1] < count[1] * patch.stride[1];
      for (int k = 0; k < 2; ++k)
        if (AreStrideApart(k) && patch.size[k] % patch.stride[k] != 0) inside = inside && point[k] < patch.size[k];
      Position<Index> p;
      p.rank = 2;
      p[0] = (c.at(1) * patch.size[0] + point[0]) * patch.size[1] + point[1];
      p[1] = (c.at(0) * count[0] + from[0] / patch.stride[0]) * count[1] + from[1] / patch.stride[1];
      auto value = c.LoadIf(inside, 0, p, 0);
      for (int k = 0; k < 2; ++k) {
        if (patch.stride[k] == 1 || AreStrideApart(k)) continue;
        // Patches begin at whole strides. So many are added that the dividend is not negative.
        const index_t strides = (patch.dilate[k] * (patch.size[k] - 1) + patch.stride[k] - 1) / patch.stride[k];
        const auto whole = c.at(2 + k) + strides * patch.stride[k] - w[k] * patch.dilate[k];
        value = c.If(Mod(whole, patch.stride[k]) == 0, value, c.Literal(0));
      }
      return value;
    });
  }

 private:
  /// Are the points of patches that lie at one element a stride apart from each other?
  bool AreStrideApart(int k) const { return patch.stride[k] > 1 && patch.dilate[k] == 1; }
  /// Points along axis k that may lie at an element.
  index_t Steps(int k) const {
    return AreStrideApart(k) ? (patch.size[k] + patch.stride[k] - 1) / patch.stride[k] : patch.size[k];
  }
};

}  // namespace umbra::index_map

#endif  // UMBRA_INDEX_MAP_WINDOW_H_
