// Index maps as expressions (umbra/extension/index_map.h). What each means is one definition of umbra/index_map/, which
// is evaluated a packet at a time where that needs no position of its own for each element, else element by element.
#ifndef UMBRA_INDEX_MAP_EXP_H_
#define UMBRA_INDEX_MAP_EXP_H_

#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "umbra/axis_map_exp.h"
#include "umbra/expr_engine.h"
#include "umbra/index_map.h"
#include "umbra/index_map/run.h"

namespace umbra::expr {

/// Map of the expressions Srcs, all of one dtype, but that of positions (index_map::IndexSource), which has its own.
template <typename Map, typename DType, int dimdst, typename... Srcs>
struct IndexMapExp : MakeTensorExp<IndexMapExp<Map, DType, dimdst, Srcs...>, void, dimdst, DType> {
  std::array<index_t, 3 * index_map::kMaxRank> params_{};  ///< whole numbers of the map: axes, sizes, steps
  int num_params_ = 0;  ///< how many of them there are
  std::tuple<Srcs...> src_;  ///< what positions are read from

  /// The map of `src` with `params`. Throws umbra::Error if ranks, parameters or extents do not fit the map.
  IndexMapExp(std::initializer_list<index_t> params, const Srcs&... src)
      : IndexMapExp(params.begin(), static_cast<int>(params.size()), src...) {}
  IndexMapExp(const index_t* params, int count, const Srcs&... src) : num_params_(count), src_(src...) {
    std::copy(params, params + count, params_.begin());
    const index_map::Extents<index_t> in = SourceExtents();
    const Map map = MakeMap();
    map.Check(in.rank.data());
    Require(map.Rank(in.rank.data()) == dimdst, "an index map of rank ", map.Rank(in.rank.data()),
            " as an expression of rank ", dimdst);
    std::array<index_t, index_map::kMaxRank> out{};
    map.Shape(in, out.data());
    for (int d = 0; d < dimdst; ++d) {
      this->shape_[d] = out[static_cast<std::size_t>(d)];
      Require(this->shape_[d] >= 0, "an index map has a negative extent: shape ", this->shape_,
              "; an operand is too small");
    }
  }

  /// The definition, with its parameters.
  Map MakeMap() const {
    if constexpr (Map::kParams >= 0) return Map(params_.data());
    else return Map(params_.data(), num_params_);
  }

  /// Ranks and extents of the sources.
  index_map::Extents<index_t> SourceExtents() const {
    index_map::Extents<index_t> in;
    in.param = params_;
    std::size_t k = 0;
    std::apply([&](const auto&... src) { (AddExtents(src, &in, k++), ...); }, src_);
    return in;
  }

 private:
  template <typename Src>
  static void AddExtents(const Src& src, index_map::Extents<index_t>* in, std::size_t k) {
    constexpr int kDim = ExpInfo<Src>::kDim;
    static_assert(kDim > 0, "umbra: an index map takes tensors; a number has no positions");
    const Shape<kDim> shape = ShapeCheck<kDim, Src>::Check(src);
    in->rank[k] = kDim;
    for (int d = 0; d < kDim; ++d) in->extent[k][static_cast<std::size_t>(d)] = shape[d];
  }
};

namespace detail {

template <typename E, typename DType, int etype>
DType ElementOf(const Exp<E, DType, etype>&);
template <typename E>
using ElementType = decltype(ElementOf(std::declval<const E&>()));

/// What is evaluated of source expressions.
template <typename... Srcs>
struct Sources {
  std::tuple<Plan<Srcs, ElementType<Srcs>>...> plans;

  explicit Sources(const std::tuple<Srcs...>& src)
      : plans(std::apply([](const auto&... e) { return decltype(plans)(Plan<Srcs, ElementType<Srcs>>(e)...); }, src)) {}

  /// use(plan, row, column, source's type) of source k, at a position in it.
  template <typename Int, typename Use>
  UMBRA_INLINE void At(int k, const index_map::Extents<index_t>& in, const index_map::Position<Int>& p,
                       const Use& use) const {
    At(k, in, p, use, std::index_sequence_for<Srcs...>());
  }

 private:
  template <typename Int, typename Use, std::size_t... K>
  UMBRA_INLINE void At(int k, const index_map::Extents<index_t>& in, const index_map::Position<Int>& p, const Use& use,
                       std::index_sequence<K...>) const {
    ((k == static_cast<int>(K) ? AtOne<K>(in, p, use) : void()), ...);
  }
  template <std::size_t K, typename Int, typename Use>
  UMBRA_INLINE void AtOne(const index_map::Extents<index_t>& in, const index_map::Position<Int>& p,
                          const Use& use) const {
    using Src = std::tuple_element_t<K, std::tuple<Srcs...>>;
    constexpr int last = ExpInfo<Src>::kDim - 1;
    use(std::get<K>(plans), Row<K>(in, p, std::make_index_sequence<last>()), p[last], static_cast<const Src*>(nullptr));
  }
  template <std::size_t K, typename Int, std::size_t... D>
  UMBRA_INLINE static Int Row(const index_map::Extents<index_t>& in, const index_map::Position<Int>& p,
                              std::index_sequence<D...>) {
    Int row = 0;
    ((row = row * in.extent[K][D] + p.at[D]), ...);
    return row;
  }
};

/// What the definition of a map to `dim` axes of DType asks for, whatever its positions are.
template <typename DType, int dim, typename Int>
struct MapContext {
  using Index = Int;
  using Sum = red::sum;

  const index_map::Extents<index_t>* in;
  index_map::Position<Int> here;

  explicit MapContext(const index_map::Extents<index_t>* extents) : in(extents) {}
  /// Moves to the element of column x in row y of a result of `shape`, whose axes but the last are one for rows.
  UMBRA_INLINE void Place(const Shape<dim>& shape, index_t y, const Int& x) {
    here.rank = dim;
    here.at[dim - 1] = x;
    if constexpr (dim > 1) PlaceRow(shape, y, std::make_index_sequence<dim - 1>());
  }
  static constexpr int rank() { return dim; }
  int rank(int k) const { return in->rank[static_cast<std::size_t>(k)]; }
  UMBRA_INLINE const Int& at(int d) const { return here[d]; }
  Int extent(int k, int d) const { return (*in)(k, d); }
  Int param(int k) const { return in->param[static_cast<std::size_t>(k)]; }
  bool IsNothing(int n) const { return in->param[static_cast<std::size_t>(n)] == 0; }
  bool HasParam(int n, int k, int d) const { return in->param[static_cast<std::size_t>(n)] == (*in)(k, d); }
  index_t size(index_t n) const { return n; }
  index_t size(int k, int d) const { return (*in)(k, d); }
  template <typename R>
  bool HasIdentity() const {
    if constexpr (!std::is_integral_v<DType> || sizeof(DType) < sizeof(index_t)) return true;
    else return red::InitialOf<R, DType>() == 0 || red::InitialOf<R, DType>() == 1;
  }
  template <typename R>
  double Identity() const {
    return static_cast<double>(red::InitialOf<R, DType>());
  }

 protected:
  /// Joins body(position) of each position in a window of `sizes` to `*total`.
  template <typename R, typename T, typename Body>
  UMBRA_INLINE static void JoinWindow(std::initializer_list<index_t> sizes, T* total, const Body& body) {
    std::array<index_t, index_map::kMaxRank> at{};
    for (const index_t size : sizes)
      if (size <= 0) return;
    for (;;) {
      R::Reduce(*total, static_cast<T>(body(at)));
      std::size_t axis = sizes.size();
      while (axis > 0 && ++at[axis - 1] == sizes.begin()[axis - 1]) at[--axis] = 0;
      if (axis == 0) return;
    }
  }

 private:
  template <std::size_t... D>
  UMBRA_INLINE void PlaceRow(const Shape<dim>& shape, index_t y, std::index_sequence<D...>) {
    const auto place = [&](std::size_t d) {
      here.at[d] = d == 0 ? y : y % shape[static_cast<int>(d)];
      if (d > 0) y /= shape[static_cast<int>(d)];
    };
    (place(dim - 2 - D), ...);
  }
};

/// At one position.
template <typename DType, int dim, typename... Srcs>
struct ElementContext : MapContext<DType, dim, index_t> {
  const Sources<Srcs...>* sources;
  DType scanned{};  ///< what Scan gives here

  ElementContext(const index_map::Extents<index_t>* extents, const Sources<Srcs...>* from)
      : MapContext<DType, dim, index_t>(extents),
        sources(from) {}
  DType Literal(double value) const { return static_cast<DType>(value); }
  DType One() const { return DType(1); }
  UMBRA_INLINE DType Load(int k, const index_map::Position<index_t>& p) const { return LoadAs<DType>(k, p); }
  UMBRA_INLINE index_t LoadPosition(int k, const index_map::Position<index_t>& p) const {
    return LoadAs<simd::i64>(k, p);
  }
  UMBRA_INLINE DType LoadIf(bool condition, int k, const index_map::Position<index_t>& p, double outside) const {
    return condition ? Load(k, p) : static_cast<DType>(outside);
  }
  DType If(bool condition, DType a, DType b) const { return condition ? a : b; }
  DType Over(DType a, DType b) const { return simd::div(a, b); }
  DType FromPosition(index_t position) const { return static_cast<DType>(position); }
  template <typename R>
  DType Scan(int) const {
    return scanned;
  }
  template <typename R, typename Body>
  UMBRA_INLINE DType Reduce(std::initializer_list<index_t> sizes, const Body& body) const {
    DType total = red::InitialOf<R, DType>();
    this->template JoinWindow<R>(sizes, &total, body);
    return total;
  }

 private:
  template <typename T>
  UMBRA_INLINE T LoadAs(int k, const index_map::Position<index_t>& p) const {
    T value{};
    sources->At(k, *this->in, p, [&](const auto& plan, index_t row, index_t column, const void*) {
      value = simd::cast<T>(plan.Eval(row, column));
    });
    return value;
  }
};

/// Positions of the elements of a packet V in the tensors of a map of Srcs to `dim` axes.
template <typename V, int dim, typename... Srcs>
using RunOf = index_map::Run<simd::kWidth<V>, std::max({dim, ExpInfo<Srcs>::kDim...})>;

/// At the positions of the first `lanes` elements of a packet V.
template <typename V, int dim, typename... Srcs>
struct PacketContext : MapContext<simd::Elem<V>, dim, RunOf<V, dim, Srcs...>> {
  using DType = simd::Elem<V>;
  using Run = RunOf<V, dim, Srcs...>;
  using Condition = index_map::RunCondition<simd::kWidth<V>>;
  const Sources<Srcs...>* sources;
  index_t lanes;
  bool known = true;  ///< false: what was computed means nothing; the elements are to be evaluated one by one

  PacketContext(const index_map::Extents<index_t>* extents, const Sources<Srcs...>* from, index_t count)
      : MapContext<DType, dim, Run>(extents),
        sources(from),
        lanes(count) {}
  V Literal(double value) const { return simd::fill<V>(static_cast<DType>(value)); }
  V One() const { return simd::fill<V>(DType(1)); }
  UMBRA_INLINE V Load(int k, const index_map::Position<Run>& p) {
    V value{};
    sources->At(k, *this->in, p, [&](const auto& plan, const Run& row, const Run& column, const auto* src) {
      using Src = std::remove_const_t<std::remove_pointer_t<decltype(src)>>;
      if (!row.known || !column.known) {
        known = false;
        return;
      }
      if (row.step == 0 && column.step == 0) {
        value = simd::fill<V>(simd::cast<DType>(plan.Eval(row.first, column.first)));
        return;
      }
      if constexpr (PacketCheck<Src>::kPass && std::is_same_v<ElementType<Src>, DType>) {
        if (row.step == 0 && column.step == 1) {
          value = plan.template EvalPacket<V>(row.first, column.first, lanes);
          return;
        }
      }
      value = simd::by_lane_head<V>(lanes, [&](index_t i) { return simd::cast<DType>(plan.Eval(row[i], column[i])); });
    });
    return value;
  }
  UMBRA_INLINE Run LoadPosition(int k, const index_map::Position<Run>& p) const {
    Run position(0, 0, false);
    sources->At(k, *this->in, p, [&](const auto& plan, const Run& row, const Run& column, const void*) {
      if (row.known && column.known && row.step == 0 && column.step == 0)
        position = simd::cast<simd::i64>(plan.Eval(row.first, column.first));
    });
    return position;
  }
  UMBRA_INLINE V LoadIf(Condition condition, int k, const index_map::Position<Run>& p, double outside) {
    const unsigned long long all = simd::head_bits(lanes), bits = condition.bits & all;
    known = known && condition.known;
    if (!known || bits == 0) return Literal(outside);
    if (bits == all) return Load(k, p);
    V value{};
    sources->At(k, *this->in, p, [&](const auto& plan, const Run& row, const Run& column, const void*) {
      known = row.known && column.known;
      if (!known) return;
      value = simd::by_lane_head<V>(lanes, [&](index_t i) {
        return (bits >> i & 1) != 0 ? simd::cast<DType>(plan.Eval(row[i], column[i])) : static_cast<DType>(outside);
      });
    });
    return value;
  }
  UMBRA_INLINE V If(Condition condition, V a, V b) {
    known = known && condition.known;
    if (condition.bits == Condition::kAll) return a;
    if (condition.bits == 0) return b;
    return simd::by_lane<V>([&](index_t i) { return (condition.bits >> i & 1) != 0 ? a[i] : b[i]; });
  }
  template <typename Mask>
  UMBRA_INLINE V If(Mask mask, V a, V b) const {
    return simd::select(mask, a, b);
  }
  V Over(V a, V b) const { return simd::div(a, b); }
  V FromPosition(const Run& position) {
    known = known && position.known;
    return simd::by_lane<V>([&](index_t i) { return static_cast<DType>(position[i]); });
  }
  template <typename R, typename Body>
  UMBRA_INLINE V Reduce(std::initializer_list<index_t> sizes, const Body& body) {
    V total = simd::fill<V>(red::InitialOf<R, DType>());
    if constexpr (kJoinsPackets<R>) this->template JoinWindow<R>(sizes, &total, body);
    else known = false;
    return total;
  }
};

/// What a map that scans asks of a plan: Scan itself, of all elements at once.
template <typename DType, int dim, typename... Srcs>
struct ScanContext : ElementContext<DType, dim, Srcs...> {
  using ElementContext<DType, dim, Srcs...>::ElementContext;
  Shape<dim> shape;
  std::vector<DType>* all;
  /// Fills `all`, in row-major order; each element is joined in the widest type and rounded once.
  template <typename R>
  DType Scan(int axis) {
    using Total = Wide<R, DType>;
    index_t inner = 1;
    for (int d = axis + 1; d < dim; ++d) inner *= shape[d];
    const index_t block = inner * shape[axis], count = shape.Size(), last = shape[dim - 1];
    all->resize(static_cast<std::size_t>(count));
    std::vector<Total> totals(static_cast<std::size_t>(inner));
    for (index_t k = 0; k < count; ++k) {
      this->Place(shape, k / last, k % last);
      Total& total = totals[static_cast<std::size_t>(k % inner)];
      if (k % block < inner) total = red::InitialOf<R, Total>();
      R::Reduce(total, static_cast<Total>(this->Load(0, index_map::Here(*this))));
      (*all)[static_cast<std::size_t>(k)] = static_cast<DType>(total);
    }
    return DType{};
  }
};

}  // namespace detail

#if !defined(__clang__)
// g++ does not see that Check has held the axes which a map is told within the rank.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif

template <typename Map, typename DType, int dimdst, typename... Srcs>
struct Plan<IndexMapExp<Map, DType, dimdst, Srcs...>, DType> {
  explicit Plan(const IndexMapExp<Map, DType, dimdst, Srcs...>& e)
      : map_(e.MakeMap()),
        sources_(e.src_),
        in_(e.SourceExtents()),
        shape_(e.shape_) {
    if constexpr (index_map::kScans<Map>) {
      detail::ScanContext<ComputeOf<DType>, dimdst, Srcs...> context(&in_, &sources_);
      context.shape = shape_;
      auto all = std::make_shared<std::vector<ComputeOf<DType>>>();
      context.all = all.get();
      if (shape_.Size() > 0) map_.Value(context);
      scanned_ = std::move(all);
    }
  }
  ComputeOf<DType> Eval(index_t y, index_t x) const {
    detail::ElementContext<ComputeOf<DType>, dimdst, Srcs...> context(&in_, &sources_);
    context.Place(shape_, y, x);
    if constexpr (index_map::kScans<Map>)
      context.scanned = (*scanned_)[static_cast<std::size_t>(y * shape_[dimdst - 1] + x)];
    return map_.Value(context);
  }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t n) const {
    if constexpr (simd::kWidth < V >> 1 && index_map::kInRuns<Map>) {
      detail::PacketContext<V, dimdst, Srcs...> context(&in_, &sources_, n);
      context.Place(shape_, y, {x, 1});
      const V value = ValueIn(context);
      if (context.known) return value;
    }
    return simd::by_lane_head<V>(n, [&](index_t k) { return Eval(y, x + k); });
  }

 private:
  template <typename Context>
  __attribute__((flatten)) auto ValueIn(Context& context) const {
    return map_.Value(context);
  }
  Map map_;
  detail::Sources<Srcs...> sources_;
  index_map::Extents<index_t> in_;
  Shape<dimdst> shape_;
  std::shared_ptr<const std::vector<ComputeOf<DType>>> scanned_;  // of a map that scans: what it does at each position
};

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

template <typename Map, typename DType, int dimdst, typename... Srcs>
struct ExpInfo<IndexMapExp<Map, DType, dimdst, Srcs...>> {
  static constexpr int kDim = dimdst;
  static constexpr int kDevMask = (3 & ... & ExpInfo<Srcs>::kDevMask);
  static constexpr bool kPacket = kHasPackets<DType>;
};

/// Other positions than the one that is written are read, but of a source that says so (PointwiseSource): the others
/// must lie apart.
template <typename Map, typename DType, int dimdst, typename... Srcs>
struct AliasCheck<IndexMapExp<Map, DType, dimdst, Srcs...>> {
  using E = IndexMapExp<Map, DType, dimdst, Srcs...>;
  static bool Harmless(const E& e, const Region& dst) { return Harmless(e, dst, std::index_sequence_for<Srcs...>()); }
  static bool Apart(const E& e, const Region& dst) {
    return std::apply([&](const auto&... src) { return (AliasCheck<Srcs>::Apart(src, dst) && ...); }, e.src_);
  }

 private:
  template <std::size_t... K>
  static bool Harmless(const E& e, const Region& dst, std::index_sequence<K...>) {
    constexpr int pointwise = index_map::PointwiseSource<Map>::value;
    return ((static_cast<int>(K) == pointwise ? AliasCheck<Srcs>::Harmless(std::get<K>(e.src_), dst)
                                              : AliasCheck<Srcs>::Apart(std::get<K>(e.src_), dst)) &&
            ...);
  }
};

}  // namespace umbra::expr

#endif  // UMBRA_INDEX_MAP_EXP_H_
