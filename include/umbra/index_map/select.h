// Index maps whose positions come from data, of any dtype that has numbers; fractions are cut off, NaN is 0.
#ifndef UMBRA_INDEX_MAP_SELECT_H_
#define UMBRA_INDEX_MAP_SELECT_H_

#include "umbra/index_map/definition.h"

namespace umbra::index_map {

/// A position that data give, held within an axis: below 0 the first, beyond the end the last.
template <typename C>
auto Clipped(C& c, int source, const Position<typename C::Index>& at, int k, int axis) {
  const auto last = c.extent(k, axis) - 1;
  return Max(typename C::Index(0), Min(c.LoadPosition(source, at), last));
}

/// take(index, x): x[index[i]] for every i: an element of a vector, a row of a matrix, and so on; positions beyond
/// axis 0 are clipped.
struct take {
  static constexpr bool kRuns = true;
  static constexpr int kSources = 2, kParams = 0, kIndexSource = 0;
  explicit take(const index_t*) {}
  void Check(const int* ranks) const {
    Require(ranks[1] >= 1 && Rank(ranks) <= kMaxRank, "take(index, x) of ranks ", ranks[0], " and ", ranks[1],
            ": x has an axis, and the result at most ", kMaxRank);
  }
  static constexpr int Rank(const int* ranks) { return ranks[0] + ranks[1] - 1; }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    for (int d = 0; d < in.rank[0]; ++d) out[d] = in(0, d);
    for (int d = 1; d < in.rank[1]; ++d) out[in.rank[0] + d - 1] = in(1, d);
    RequireAtLeast("take", in(1, 0), 1);
  }
  template <typename C>
  auto Value(C& c) const {
    Position<typename C::Index> i, p;
    i.rank = c.rank(0);
    for (int d = 0; d < i.rank; ++d) i[d] = c.at(d);
    p.rank = c.rank(1);
    p[0] = Clipped(c, 0, i, 1, 0);
    for (int d = 1; d < p.rank; ++d) p[d] = c.at(i.rank + d - 1);
    return c.Load(1, p);
  }
};

/// take_grad(index, grad, rows): the gradient of take(index, x) for an x of `rows` rows: row r is the
/// sum of the rows of grad whose index is r.
struct take_grad {
  static constexpr bool kRuns = true;
  static constexpr int kSources = 2, kParams = 1, kIndexSource = 0;
  static constexpr bool Open(int) { return true; }
  explicit take_grad(const index_t*) {}
  void Check(const int* ranks) const {
    Require(ranks[0] == 1 && ranks[1] == 2, "take_grad(index, grad, rows) takes a vector and a matrix");
  }
  static constexpr int Rank(const int*) { return 2; }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    RequireNumber("take_grad", "number of rows", in.param[0], 0);
    out[0] = in.param[0];
    out[1] = in(1, 1);
    RequireEqual("take_grad", in(0, 0), in(1, 0));
  }
  template <typename C>
  auto Value(C& c) const {
    return c.template Reduce<typename C::Sum>({c.size(0, 0)}, [&](const auto& w) {
      Position<typename C::Index> i, p;
      i.rank = 1;
      i[0] = w[0];
      p.rank = 2;
      p[0] = w[0];
      p[1] = c.at(1);
      const auto row = Max(typename C::Index(0), Min(c.LoadPosition(0, i), c.param(0) - 1));
      return c.LoadIf(row == c.at(0), 1, p, 0);
    });
  }
};

/// one_hot_encode(index, classes): 1 where the column is index[row], else 0; of f32, whatever dtype index has.
struct one_hot_encode {
  static constexpr bool kRuns = true;
  static constexpr int kSources = 1, kParams = 1, kIndexSource = 0;
  static constexpr DType kResult = DType::kFloat32;
  static constexpr bool Open(int) { return true; }
  explicit one_hot_encode(const index_t*) {}
  void Check(const int* ranks) const {
    Require(ranks[0] == 1, "one_hot_encode takes a vector of indices, rank ", ranks[0], " given");
  }
  static constexpr int Rank(const int*) { return 2; }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    out[0] = in(0, 0);
    RequireNumber("one_hot_encode", "number of classes", in.param[0], 0);
    out[1] = in.param[0];
  }
  template <typename C>
  auto Value(C& c) const {
    Position<typename C::Index> i;
    i.rank = 1;
    i[0] = c.at(0);
    return c.If(c.LoadPosition(0, i) == c.at(1), c.One(), c.Literal(0));
  }
};

/// transpose_indices(index, extents..., axes...): where what stands at place index[i] of a tensor of those extents,
/// counted row by row, comes to stand when its axes are permuted; places that the tensor does not have are clipped.
struct transpose_indices : Elementwise {
  static constexpr int kParams = -1, kIndexSource = 0;
  std::array<index_t, kMaxRank> extents{};
  std::array<int, kMaxRank> axes{};
  int count, rank;
  transpose_indices(const index_t* p, int n) : count(n), rank(n / 2 < kMaxRank ? n / 2 : kMaxRank) {
    for (int d = 0; d < rank; ++d) {
      extents[static_cast<std::size_t>(d)] = p[d];
      axes[static_cast<std::size_t>(d)] = static_cast<int>(p[rank + d]);
    }
  }
  void Check(const int*) const {
    Require(count >= 2 && count == 2 * rank, "transpose_indices takes the extents of a tensor of rank 1 to ", kMaxRank,
            " and as many axes, ", count, " numbers given");
    std::array<bool, kMaxRank> seen{};
    for (int d = 0; d < rank; ++d) {
      const auto axis = static_cast<std::size_t>(axes[static_cast<std::size_t>(d)]);
      RequireAxis("transpose_indices", axes[static_cast<std::size_t>(d)], rank);
      Require(!seen[axis], "transpose_indices: axis ", axis, " is given twice");
      seen[axis] = true;
      RequireNumber("transpose_indices", "extent", extents[axis], 1);
    }
    (void)Size();
  }
  template <typename C>
  auto Value(C& c) const {
    typename C::Index from = Max(typename C::Index(0), Min(c.LoadPosition(0, Here(c)), typename C::Index(Size() - 1)));
    typename C::Index to = 0;
    index_t pitch = 1;
    std::array<index_t, kMaxRank> step{};
    for (int d = rank - 1; d >= 0; --d) {
      const auto axis = static_cast<std::size_t>(axes[static_cast<std::size_t>(d)]);
      step[axis] = pitch;
      pitch *= extents[axis];
    }
    for (int d = rank - 1; d >= 0; --d) {
      const auto axis = static_cast<std::size_t>(d);
      to = to + Mod(from, extents[axis]) * step[axis];
      from = from / extents[axis];
    }
    return c.FromPosition(to);
  }

 private:
  index_t Size() const {
    index_t size = 1;
    for (int d = 0; d < rank; ++d)
      Require(!__builtin_mul_overflow(size, extents[static_cast<std::size_t>(d)], &size),
              "transpose_indices: a tensor of more than 2^63 elements");
    return size;
  }
};

/// mat_choose_row_element(x, index): element index[i] of row i; positions beyond it are clipped.
struct mat_choose_row_element {
  static constexpr int kSources = 2, kParams = 0, kIndexSource = 1;
  explicit mat_choose_row_element(const index_t*) {}
  void Check(const int* ranks) const {
    Require(ranks[0] == 2 && ranks[1] == 1, "mat_choose_row_element takes a matrix and a vector");
  }
  static constexpr int Rank(const int*) { return 1; }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    out[0] = in(1, 0);
    RequireEqual("mat_choose_row_element", in(0, 0), in(1, 0));
    RequireAtLeast("mat_choose_row_element", in(0, 1), 1);
  }
  template <typename C>
  auto Value(C& c) const {
    Position<typename C::Index> i, p;
    i.rank = 1;
    i[0] = c.at(0);
    p.rank = 2;
    p[0] = c.at(0);
    p[1] = Clipped(c, 1, i, 0, 1);
    return c.Load(0, p);
  }
};

/// mat_fill_row_element(x, values, index): x, with values[i] as element index[i] of row i.
struct mat_fill_row_element : Elementwise {
  static constexpr bool kRuns = true;
  static constexpr int kSources = 3, kParams = 0, kIndexSource = 2, kPointwiseSource = 0;
  explicit mat_fill_row_element(const index_t*) {}
  void Check(const int* ranks) const {
    Require(ranks[0] == 2 && ranks[1] == 1 && ranks[2] == 1, "mat_fill_row_element takes a matrix and two vectors");
  }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    Elementwise::Shape(in, out);
    RequireEqual("mat_fill_row_element", in(0, 0), in(1, 0));
    RequireEqual("mat_fill_row_element", in(0, 0), in(2, 0));
  }
  template <typename C>
  auto Value(C& c) const {
    Position<typename C::Index> i;
    i.rank = 1;
    i[0] = c.at(0);
    return c.If(c.LoadPosition(2, i) == c.at(1), c.Load(1, i), c.Load(0, Here(c)));
  }
};

/// mask(m, x): row i of x times m[i].
struct mask {
  static constexpr bool kRuns = true;
  static constexpr int kSources = 2, kParams = 0, kPointwiseSource = 1;
  explicit mask(const index_t*) {}
  void Check(const int* ranks) const {
    Require(ranks[0] == 1 && ranks[1] == 2, "mask(m, x) takes a vector and a matrix");
  }
  static constexpr int Rank(const int*) { return 2; }
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    out[0] = in(1, 0);
    out[1] = in(1, 1);
    RequireEqual("mask", in(0, 0), in(1, 0));
  }
  template <typename C>
  auto Value(C& c) const {
    Position<typename C::Index> i;
    i.rank = 1;
    i[0] = c.at(0);
    return c.Load(1, Here(c)) * c.Load(0, i);
  }
};

}  // namespace umbra::index_map

#endif  // UMBRA_INDEX_MAP_SELECT_H_
