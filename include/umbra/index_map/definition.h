// Index maps: what the extensions of the expression API mean. Each is one definition, a template
// over the kind of position: run with numbers it is the eager evaluation, run with symbols it builds
// the graph, from which the interpreter and every generator follow. Those that say kRuns are run with runs, too, the
// positions of a packet (umbra/index_map/run.h): what they write fits all three.
//
// A map is a struct of parameters with
//   kSources, kParams                        tensors that it reads, whole numbers that it takes
//   static bool Open(int k)                  may number k be known at the call only, as extents are? Without it none is
//   kScans                                   does it ask for Scan? Without it not
//   kRuns                                    is it evaluated by runs? Without it not; it pays where they seldom divide,
//   or
//                                            come from data, within a packet
//   void Check(const int* ranks) const       throws umbra::Error for ranks and closed numbers that do not fit
//   int Rank(const int* ranks) const         rank of the result from those of the sources
//   void Shape(const Extents<D>& in, D* out) const    extents of the result
//   Number Value(C& c) const                 the element at position c.at(0), c.at(1), ...
// Open numbers are no members: they are in.param[k] in Shape, which checks them, and c.param(k) in Value.
// C gives: at(d); extent(k, d) of source k; HasParam(n, k, d), is number n known to be that; IsNothing(n), to be 0;
// rank(k); Load(k, position); LoadIf(condition, k, position, outside); If(condition, a, b); Over(a, b), a / b of
// elements; Literal(number); Reduce<R>({size(n), ...}, body(window)), Identity<R>(), for LoadIf, if HasIdentity<R>(),
// and the reducer Sum; Scan<R>(axis), what source 0 comes to by R from the beginning of the axis up to here;
// FromPosition(i). A map whose source kIndexSource holds positions reads them by LoadPosition(k, position); they may
// have a dtype of their own. Elements have the dtype of the other sources, of the only one, or kResult. What source
// kPointwiseSource is made of may be written over: of it nothing but the element here is read.
#ifndef UMBRA_INDEX_MAP_DEFINITION_H_
#define UMBRA_INDEX_MAP_DEFINITION_H_

#include <array>
#include <cstddef>
#include <type_traits>

#include "umbra/dtype.h"

namespace umbra::index_map {

/// The largest rank of a tensor that an index map reads or makes.
inline constexpr int kMaxRank = 8;

/// The largest rank of a tensor in which Int is a position along an axis.
template <typename Int>
inline constexpr int kMostAxes = kMaxRank;

/// A position in a tensor of up to kMaxRank dimensions.
template <typename Int>
struct Position {
  std::array<Int, kMostAxes<Int>> at{};  ///< of which the first `rank` count
  int rank = 0;  ///< dimensions of the tensor
  /// Along dimension d.
  Int& operator[](int d) { return at[static_cast<std::size_t>(d)]; }
  const Int& operator[](int d) const { return at[static_cast<std::size_t>(d)]; }
};

/// Extents of the sources, and the numbers that a map takes.
template <typename D>
struct Extents {
  std::array<D, 3 * kMaxRank> param{};  ///< the numbers
  std::array<std::array<D, kMaxRank>, 4> extent{};  ///< by source and dimension
  std::array<int, 4> rank{};  ///< of each source
  /// Of dimension d of source k.
  const D& operator()(int k, int d) const { return extent[static_cast<std::size_t>(k)][static_cast<std::size_t>(d)]; }
};

/// The source of a map that holds positions; -1 if none does.
template <typename Map, typename = void>
struct IndexSource {
  static constexpr int value = -1;  ///< the number of the source
};
template <typename Map>
struct IndexSource<Map, std::enable_if_t<(Map::kIndexSource >= 0)>> {
  static constexpr int value = Map::kIndexSource;
};

/// The source of which a map reads, for each element, the one at its position and no other; -1 if there is none.
template <typename Map, typename = void>
struct PointwiseSource {
  static constexpr int value = -1;  ///< the number of the source
};
template <typename Map>
struct PointwiseSource<Map, std::enable_if_t<(Map::kPointwiseSource >= 0)>> {
  static constexpr int value = Map::kPointwiseSource;
};

/// The dtype of a map's elements, Map::kResult, where it is not that of its sources.
template <typename Map, typename = void>
struct ResultDType {
  static constexpr bool kOwn = false;  ///< whether there is one
};
template <typename Map>
struct ResultDType<Map, std::void_t<decltype(Map::kResult)>> {
  static constexpr bool kOwn = true;
};

/// May number k that a map takes be known at the call only?
template <typename Map, typename = void>
struct OpenParams {
  static constexpr bool Has(int) { return false; }  ///< number k
};
template <typename Map>
struct OpenParams<Map, std::void_t<decltype(Map::Open(0))>> {
  static constexpr bool Has(int k) { return Map::Open(k); }
};

/// Is a map evaluated by runs?
template <typename Map, typename = void>
inline constexpr bool kInRuns = false;
/// One that says it.
template <typename Map>
inline constexpr bool kInRuns<Map, std::void_t<decltype(Map::kRuns)>> = Map::kRuns;

/// Is a map's element what others of its only source, before it along an axis, come to?
template <typename Map, typename = void>
inline constexpr bool kScans = false;
/// One that says it.
template <typename Map>
inline constexpr bool kScans<Map, std::void_t<decltype(Map::kScans)>> = Map::kScans;

/// The position of the result itself.
template <typename C>
auto Here(C& c) {
  const int rank = c.rank();
  Position<typename C::Index> p;
  p.rank = rank;
  for (int d = 0; d < rank; ++d) p[d] = c.at(d);
  return p;
}

/// The smaller and the larger of two positions; symbols have their own.
inline index_t Min(index_t a, index_t b) { return a < b ? a : b; }
/// The larger of two positions.
inline index_t Max(index_t a, index_t b) { return a < b ? b : a; }

/// Throws umbra::Error unless `axis` is one of `rank`.
inline void RequireAxis(const char* name, index_t axis, int rank) {
  Require(axis >= 0 && axis < rank, name, ": axis ", axis, " of a tensor of rank ", rank, "; its axes are 0 to ",
          rank - 1);
}
/// Throws umbra::Error unless the rank is `least` or more.
inline void RequireRank(const char* name, int rank, int least) {
  Require(rank >= least, name, " takes a tensor of rank ", least, " or more, rank ", rank, " given");
}

/// Requirements on extents; where they are not known yet, the launch checks them.
inline void RequireAtLeast(const char* name, index_t extent, index_t least) {
  Require(extent >= least, name, ": an extent of ", extent, ", but ", least, " is the least that fits");
}
/// `value`, a number that a map takes, must be `least` or more; `what` names it: "scale".
inline void RequireNumber(const char* name, const char* what, index_t value, index_t least) {
  Require(value >= least, name, ": the ", what, " is ", value, "; it must be ", least, " or more");
}
/// Positions begin ... end - 1 of an axis of `extent`.
inline void RequireRange(const char* name, index_t begin, index_t end, index_t extent) {
  Require(begin >= 0 && begin <= end, name, ": the range ", begin, " to ", end, " is none");
  RequireAtLeast(name, extent, end);
}
/// The extents `a` and `b` must be equal.
inline void RequireEqual(const char* name, index_t a, index_t b) {
  Require(a == b, name, ": the extents ", a, " and ", b, " differ");
}
/// The last axis holds pairs.
inline void RequireEven(const char* name, index_t last) {
  Require(last % 2 == 0, name, ": the last axis must be even, pairs of a real and an imaginary part; its extent is ",
          last);
}

/// i mod n for i >= 0.
template <typename Int, typename N>
Int Mod(const Int& i, const N& n) {
  return i - (i / n) * n;
}

/// Same shape as its only source.
struct Elementwise {
  static constexpr int kSources = 1;  ///< tensors that it reads
  /// That of the source.
  static constexpr int Rank(const int* ranks) { return ranks[0]; }
  /// The extents of the source.
  template <typename D>
  void Shape(const Extents<D>& in, D* out) const {
    for (int d = 0; d < in.rank[0]; ++d) out[d] = in(0, d);
  }
};

}  // namespace umbra::index_map

#endif  // UMBRA_INDEX_MAP_DEFINITION_H_
