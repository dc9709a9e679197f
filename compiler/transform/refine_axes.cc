#include "compiler/transform/refine_axes.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "compiler/transform/axis_parts.h"
#include "compiler/transform/columns_apart.h"
#include "compiler/transform/copy_node.h"
#include "compiler/transform/position_forms.h"

namespace umbra::graph {

namespace {

using Kind = Node::Kind;
using Form = PositionForms::Form;

constexpr std::size_t kMostAxes = 8;  // of a value
constexpr index_t kFillsPackets = 16;  // elements that packets go along

// What divides axes.
enum class By { kReshapes, kPositions };

// Axes of values that are the same, and the parts that they are divided into, from the first to the last.
class Axes {
 public:
  Axes(const Graph& graph, By by) : graph_(graph), live_(LiveNodes(graph)), forms_(graph) {
    for (const Node& node : graph.nodes()) {
      first_.push_back(parts_.size());
      for (const Dimension& dim : node.shape) parts_.push_back({dim});
    }
    same_.resize(parts_.size());
    std::iota(same_.begin(), same_.end(), std::size_t{0});
    fixed_.resize(parts_.size());
    const int nodes = static_cast<int>(graph.nodes().size());
    for (int id = 0; id < nodes && by == By::kReshapes; ++id)
      if (const Node& node = graph.node(id);
          node.kind == Kind::kGather && IsLive(id) && IsReshape(graph, node, &forms_))
        all_reshapes_.insert(id);
    for (int id = 0; id < nodes; ++id)
      if (IsLive(id)) Enter(id, by);
    if (by == By::kReshapes) Divide();
    else DivideByPositions();
  }

  /// The gathers that are reshapes of the same parts.
  const std::vector<int>& free() const { return reshapes_; }
  /// Is there such a reshape, or an axis of several parts?
  bool any() const {
    return !reshapes_.empty() ||
           std::any_of(parts_.begin(), parts_.end(), [](const auto& parts) { return parts.size() > 1; });
  }
  const std::vector<Dimension>& PartsOf(int id, std::size_t dim) const { return parts_[Find(At(id, dim))]; }

 private:
  // One part of an axis.
  struct Part {
    std::size_t axis, at;
  };

  bool IsLive(int id) const { return live_[static_cast<std::size_t>(id)]; }
  std::size_t At(int id, std::size_t dim) const { return first_[static_cast<std::size_t>(id)] + dim; }
  std::size_t Find(std::size_t axis) const {
    while (same_[axis] != axis) axis = same_[axis];
    return axis;
  }
  void Unite(std::size_t a, std::size_t b) {
    a = Find(a), b = Find(b);
    fixed_[std::min(a, b)] = fixed_[a] || fixed_[b];
    same_[std::max(a, b)] = std::min(a, b);
  }
  // The value keeps the axes that it has.
  void Fix(int id) {
    for (std::size_t d = 0; d < graph_.node(id).shape.size(); ++d) fixed_[Find(At(id, d))] = true;
  }

  void Enter(int id, By by) {
    const Node& node = graph_.node(id);
    const std::size_t rank = node.shape.size();
    switch (node.kind) {
      case Kind::kMap:
      case Kind::kCast:
      case Kind::kGather:
        for (std::size_t k = node.kind == Kind::kGather ? 1 : 0; k < node.inputs.size(); ++k)
          for (std::size_t d = 0; d < rank && graph_.node(node.inputs[k]).shape.size() == rank; ++d)
            Unite(At(id, d), At(node.inputs[k], d));
        if (node.kind != Kind::kGather || by == By::kPositions) break;
        if (all_reshapes_.count(id) > 0 && !IsCopy(id)) {
          reshapes_.push_back(id);
          break;
        }
        Fix(node.inputs[0]);
        if (IsOutput(id) || all_reshapes_.count(id) > 0) Fix(id);
        else FixUndivided(id);
        break;
      case Kind::kBroadcast:
        for (std::size_t d = 0; d < rank; ++d)
          if (node.axes[d] >= 0) Unite(At(id, d), At(node.inputs[0], static_cast<std::size_t>(node.axes[d])));
        break;
      case Kind::kReduce: {
        std::size_t kept = 0;
        for (std::size_t d = 0; d < graph_.node(node.inputs[0]).shape.size(); ++d) {
          const bool reduced = std::find(node.axes.begin(), node.axes.end(), static_cast<int>(d)) != node.axes.end();
          if (!reduced) Unite(At(id, kept), At(node.inputs[0], d));
          else if (node.keepdim) fixed_[Find(At(node.inputs[0], d))] = fixed_[Find(At(id, kept))] = true;
          if (!reduced || node.keepdim) ++kept;
        }
        break;
      }
      case Kind::kScan:
        for (std::size_t d = 0; d < rank; ++d) Unite(At(id, d), At(node.inputs[0], d));
        fixed_[Find(At(id, static_cast<std::size_t>(node.axes[0])))] = true;
        break;
      case Kind::kTranspose:
      case Kind::kDot:
        Fix(id);
        for (const int of : node.inputs) Fix(of);
        break;
      default: break;
    }
  }

  // The gather keeps the axes whose index none of its positions divides.
  void FixUndivided(int gather) {
    const Node& node = graph_.node(gather);
    std::set<std::size_t> divided;
    std::set<std::pair<int, bool>> seen;
    const std::function<void(int, bool)> visit = [&](int id, bool within) {
      const Node& of = graph_.node(id);
      if (!seen.emplace(id, within).second || of.shape.size() != node.shape.size()) return;
      if (of.kind == Kind::kIndex && within) divided.insert(static_cast<std::size_t>(of.axes[0]));
      if (of.kind != Kind::kMap) return;
      for (const int input : of.inputs) visit(input, within || of.op == Op::div);
    };
    for (std::size_t k = 1; k < node.inputs.size(); ++k) visit(node.inputs[k], false);
    for (std::size_t d = 0; d < node.shape.size(); ++d)
      if (divided.count(d) == 0) fixed_[Find(At(gather, d))] = true;
  }

  bool IsOutput(int id) const {
    return std::any_of(graph_.outputs().begin(), graph_.outputs().end(),
                       [id](const Output& output) { return output.node == id; });
  }

  // Is it an input in another shape, to be stored so? That is best done in its own axes.
  bool IsCopy(int id) const { return graph_.node(graph_.node(id).inputs[0]).kind == Kind::kInput && IsOutput(id); }

  const Dimension& ExtentOf(const Part& part) const { return parts_[part.axis][part.at]; }

  std::vector<Part> AllParts(int id) const {
    std::vector<Part> all;
    for (std::size_t d = 0; d < graph_.node(id).shape.size(); ++d)
      for (std::size_t k = 0; k < PartsOf(id, d).size(); ++k) all.push_back({Find(At(id, d)), k});
    return all;
  }

  bool Replace(const Part& part, const std::vector<Dimension>& by) {
    if (fixed_[part.axis]) return false;
    std::vector<Dimension>& all = parts_[part.axis];
    const auto at = all.erase(all.begin() + static_cast<std::ptrdiff_t>(part.at));
    all.insert(at, by.begin(), by.end());
    return all.size() <= kMostAxes;
  }

  // What a product is that many times `by`, which is one, too.
  static std::optional<Form> Over(const Form& form, const Form& by) {
    if (form.size() != 1 || by.size() != 1 || form.begin()->second % by.begin()->second != 0) return std::nullopt;
    const auto [whole, rest] = PositionForms::Divide(form, by.begin()->first, by.begin()->second);
    return rest.empty() ? std::optional(whole) : std::nullopt;
  }

  // The two parts of a part of a reshape's, of which the last one comes to `last`: a number, or an extent.
  std::optional<std::vector<Dimension>> TwoPartsOf(const Node& reshape, const Part& part, const Form& last) {
    if (const auto number = last.find({}); number != last.end()) {
      if (!Divides(number->second, part)) return std::nullopt;
      return std::vector<Dimension>{Dimension(static_cast<index_t>(graph_.Known(ExtentOf(part))) / number->second),
                                    Dimension(number->second)};
    }
    const auto& [factors, count] = *last.begin();
    const auto times = Over(forms_.Within(reshape.shape, forms_.FormOf(ExtentOf(part))), last);
    if (factors.size() != 1 || factors[0] >= 0 || count != 1 || !times || times->count({}) == 0 || times->at({}) < 2)
      return std::nullopt;
    const std::vector<Dimension> parts = {Dimension(times->at({})),
                                          Dimension::WithSymbol(PositionForms::SymbolOf(factors[0]))};
    return IsSoEverywhere(reshape, part, parts) ? std::optional(parts) : std::nullopt;
  }

  // Is the part's extent known, and a larger multiple of that?
  bool Divides(index_t of, const Part& part) const {
    const Dimension known = graph_.Known(ExtentOf(part));
    return of > 1 && known.is_static() && static_cast<index_t>(known) > of && static_cast<index_t>(known) % of == 0;
  }

  // Divides the last part that differs from its counterpart, of either side; `same`: there is none. False if there is
  // one that cannot be divided.
  bool DivideOne(int reshape, bool* same) {
    const Node& node = graph_.node(reshape);
    const std::vector<Part> sides[] = {AllParts(node.inputs[0]), AllParts(reshape)};
    std::size_t left[] = {sides[0].size(), sides[1].size()};
    while (left[0] > 0 && left[1] > 0 &&
           graph_.SameDimension(ExtentOf(sides[0][left[0] - 1]), ExtentOf(sides[1][left[1] - 1])))
      --left[0], --left[1];
    *same = left[0] == 0 && left[1] == 0;
    if (*same) return true;
    // An axis of one element stands beside what the other side has there. Behind all others it divides nothing.
    const auto is_one = [&](const Part& part) { return graph_.SameDimension(ExtentOf(part), Dimension(1)); };
    for (const int side : {0, 1}) {
      if (left[side] == 0 || !is_one(sides[side][left[side] - 1])) continue;
      if (left[side] == sides[side].size() || sides[1 - side].empty()) return false;
      if (left[1 - side] > 0)
        return Replace(sides[1 - side][left[1 - side] - 1],
                       {ExtentOf(sides[1 - side][left[1 - side] - 1]), Dimension(1)});
      return Replace(sides[1 - side][0], {Dimension(1), ExtentOf(sides[1 - side][0])});
    }
    if (left[0] == 0 || left[1] == 0) return false;
    // One that is some of the other side's together, perhaps with a part of the last of them.
    const auto extent = [&](const Part& part) { return forms_.Within(node.shape, forms_.FormOf(ExtentOf(part))); };
    for (const int side : {0, 1}) {
      const Part& whole = sides[side][left[side] - 1];
      std::vector<Dimension> by;
      std::optional<Form> product = PositionForms::Number(1);
      for (std::size_t k = left[1 - side]; k-- > 0 && product;) {
        if (const auto of = by.empty() ? std::nullopt : Over(extent(whole), *product))
          if (const auto parts = TwoPartsOf(node, sides[1 - side][k], *of)) return Replace(sides[1 - side][k], *parts);
        by.insert(by.begin(), ExtentOf(sides[1 - side][k]));
        product = PositionForms::Product(*product, extent(sides[1 - side][k]));
        if (by.size() > 1 && product == extent(whole)) return IsSoEverywhere(node, whole, by) && Replace(whole, by);
      }
    }
    // One that is a multiple of the other.
    for (const int side : {0, 1}) {
      const Part &whole = sides[side][left[side] - 1], &part = sides[1 - side][left[1 - side] - 1];
      const Dimension of = graph_.Known(ExtentOf(part));
      if (!of.is_static()) return false;
      if (Divides(static_cast<index_t>(of), whole))
        return Replace(whole,
                       {Dimension(static_cast<index_t>(graph_.Known(ExtentOf(whole))) / static_cast<index_t>(of)), of});
    }
    return false;
  }

  // Is the extent the product wherever there is a point of a value with the axis? What follows from the number of
  // elements of the reshape does where none of its axes is empty; inputs are read there alone.
  bool IsSoEverywhere(const Node& reshape, const Part& whole, const std::vector<Dimension>& by) {
    std::optional<Form> product = PositionForms::Number(1);
    for (const Dimension& dim : by)
      if (product) product = PositionForms::Product(*product, forms_.FormOf(dim));
    if (product == forms_.FormOf(ExtentOf(whole))) return true;
    const std::set<int> sides[] = {forms_.SymbolsOf(graph_.node(reshape.inputs[0]).shape),
                                   forms_.SymbolsOf(reshape.shape)};
    for (int id = 0; id < static_cast<int>(graph_.nodes().size()); ++id) {
      const Node& node = graph_.node(id);
      bool has = false;
      for (std::size_t d = 0; d < node.shape.size(); ++d) has = has || Find(At(id, d)) == whole.axis;
      if (!has || node.kind == Kind::kInput) continue;
      const std::set<int> there = forms_.SymbolsOf(node.shape);
      const auto has_all = [&](const std::set<int>& side) {
        return std::includes(there.begin(), there.end(), side.begin(), side.end());
      };
      if (!has_all(sides[0]) && !has_all(sides[1])) return false;
    }
    return true;
  }

  bool HasFewAxes() const {
    for (int id = 0; id < static_cast<int>(graph_.nodes().size()); ++id)
      if (AllParts(id).size() > std::max(kMostAxes, graph_.node(id).shape.size())) return false;
    return true;
  }

  // What one reshape divides another may have to divide further. One that cannot keeps its axes, and what others had
  // divided for its sake is whole again.
  void Divide() {
    const auto whole = parts_;
    for (std::size_t done = 0; done < reshapes_.size();) {
      bool changed = false, can = true;
      for (bool same = false; can && !same; changed = changed || !same) can = DivideOne(reshapes_[done], &same);
      if (!can) {
        Fix(reshapes_[done]), Fix(graph_.node(reshapes_[done]).inputs[0]);
        reshapes_.erase(reshapes_.begin() + static_cast<std::ptrdiff_t>(done));
        parts_ = whole;
      }
      done = !can || changed ? 0 : done + 1;
    }
    if (HasFewAxes()) return;
    reshapes_.clear();
    parts_ = whole;
  }

  // The index that a position is the quotient of, and the number that it is divided by.
  std::optional<std::pair<int, index_t>> QuotientOfIndex(int id) {
    const Node& node = graph_.node(id);
    if (node.kind == Kind::kIndex) return std::pair(id, index_t{1});
    if (node.kind != Kind::kMap || node.op != Op::div) return std::nullopt;
    const Form by = forms_.FormOf(node.inputs[1]);
    auto quotient = QuotientOfIndex(node.inputs[0]);
    if (!quotient || by.size() != 1 || by.count({}) == 0 ||
        __builtin_mul_overflow(quotient->second, by.at({}), &quotient->second))
      return std::nullopt;
    return quotient;
  }

  // Does the position come to a quotient by the number, and a known rest, without a division?
  bool IsQuotientOf(int position, const Form& by) {
    if (by.size() != 1 || by.count({}) == 0) return false;
    const Form rest = PositionForms::Divide(forms_.FormOf(position), {}, by.at({})).second;
    return rest.empty() || (rest.size() == 1 && rest.count({}) > 0);
  }

  // The axes of the indices that a position is made of, or of those alone that it has rests of.
  std::set<std::size_t> AxesIn(int position, bool rests) const {
    std::set<std::size_t> axes;
    std::set<int> seen;
    std::vector<int> open{position};
    while (!open.empty()) {
      const Node& node = graph_.node(open.back());
      open.pop_back();
      if (node.kind != Kind::kMap) continue;
      for (const int input : node.inputs) {
        const Node& of = graph_.node(input);
        if (of.kind == Kind::kIndex && (!rests || node.op == Op::minus))
          axes.insert(Find(At(input, static_cast<std::size_t>(of.axes[0]))));
        if (seen.insert(input).second) open.push_back(input);
      }
    }
    return axes;
  }

  // Axes along which reductions leave elements, and that positions divide by numbers alone.
  void DivideByPositions() {
    std::map<std::size_t, std::set<index_t>> divisors;
    std::set<std::size_t> first_left, left, undivided, of_rows;
    for (int id = 0; id < static_cast<int>(graph_.nodes().size()); ++id) {
      const Node& node = graph_.node(id);
      if (!IsLive(id)) continue;
      if (node.kind == Kind::kReduce) {
        for (std::size_t d = 0; d < node.shape.size(); ++d) (d == 0 ? first_left : left).insert(Find(At(id, d)));
        for (const int axis : node.axes) undivided.insert(Find(At(node.inputs[0], static_cast<std::size_t>(axis))));
      } else if (node.kind == Kind::kGather) {
        for (std::size_t d = 0; d + 1 < graph_.node(node.inputs[0]).shape.size(); ++d)
          of_rows.merge(AxesIn(node.inputs[d + 1], true));
      } else if (node.kind == Kind::kMap && node.op == Op::div && node.dtype == DType::kInt64) {
        if (const auto quotient = QuotientOfIndex(id))
          divisors[Find(At(quotient->first, static_cast<std::size_t>(graph_.node(quotient->first).axes[0])))].insert(
              quotient->second);
        else if (!IsQuotientOf(node.inputs[0], forms_.FormOf(node.inputs[1]))) undivided.merge(AxesIn(id, false));
      }
    }
    // Packets along any axis but the first find few elements side by side in groups, if they are of one row.
    const auto has_groups = [&](std::size_t axis, index_t least) {
      return least <= kMostColumns && first_left.count(axis) == 0 && of_rows.count(axis) == 0;
    };
    const auto can_divide = [&](std::size_t axis, const std::set<index_t>& by) {
      return !fixed_[axis] && left.count(axis) + first_left.count(axis) > 0 && undivided.count(axis) == 0 &&
             !has_groups(axis, *by.begin()) && AreReadWhole(axis, by);
    };
    const auto whole = parts_;
    for (const auto& [axis, by] : divisors)
      if (can_divide(axis, by))
        if (const auto parts = PartsBy(by, parts_[axis][0])) parts_[axis] = *parts;
    if (!HasFewAxes()) parts_ = whole;
  }

  // Where gathers read what is computed along the axis, do their positions take no division for its parts? An output
  // that has it in another shape is written where it lies.
  bool AreReadWhole(std::size_t axis, const std::set<index_t>& divisors) {
    for (int id = 0; id < static_cast<int>(graph_.nodes().size()); ++id) {
      const Node& node = graph_.node(id);
      if (node.kind != Kind::kGather || !IsLive(id) || graph_.node(node.inputs[0]).kind == Kind::kInput ||
          (IsOutput(id) && IsReshape(graph_, node, &forms_)))
        continue;
      for (std::size_t d = 0; d < graph_.node(node.inputs[0]).shape.size(); ++d) {
        if (Find(At(node.inputs[0], d)) != axis) continue;
        if (!IsQuotientOf(node.inputs[d + 1], PositionForms::Number(*divisors.rbegin()))) return false;
      }
    }
    return true;
  }

  // The parts of an extent whose quotients by these numbers are taken, if each is a multiple of the next.
  std::optional<std::vector<Dimension>> PartsBy(const std::set<index_t>& divisors, const Dimension& extent) {
    std::vector<Dimension> parts;
    index_t before = 1;
    for (const index_t by : divisors) {
      if (by < 2 || by % before != 0) return std::nullopt;
      parts.insert(parts.begin(), Dimension(by / before));
      before = by;
    }
    const index_t last = *divisors.begin();
    const auto first = Over(forms_.FormOf(extent), PositionForms::Number(before));
    if (!first || first->size() != 1 || (last < kFillsPackets && last > kMostColumns)) return std::nullopt;
    const auto& [factors, count] = *first->begin();
    if (factors.size() + (count > 1) > 1 || (factors.size() == 1 && factors[0] >= 0)) return std::nullopt;
    if (factors.size() == 1) parts.insert(parts.begin(), Dimension::WithSymbol(PositionForms::SymbolOf(factors[0])));
    else if (count > 1) parts.insert(parts.begin(), Dimension(count));
    return parts;
  }

  const Graph& graph_;
  const std::vector<bool> live_;
  PositionForms forms_;
  std::vector<std::size_t> first_;  // of each node: its first axis
  std::vector<std::size_t> same_;  // of each axis: itself, or one that it is the same as
  std::vector<std::vector<Dimension>> parts_;
  std::vector<bool> fixed_;
  std::vector<int> reshapes_;
  std::set<int> all_reshapes_;
};

class Refiner {
 public:
  Refiner(const Graph& source, By by) : source_(source), axes_(source, by), result_(source.name()) {}

  std::optional<Graph> Run() {
    if (!axes_.any()) return std::nullopt;
    RewriteNodes(
        source_, [this](const Node& node, std::vector<int> inputs) { return Make(node, std::move(inputs)); }, &result_,
        [this](const Node& node, int made) { return IsDivided(IdOf(node)) ? Joined(node, made) : made; });
    return std::move(result_);
  }

 private:
  int IdOf(const Node& node) const { return static_cast<int>(&node - source_.nodes().data()); }
  std::size_t Rank(int id) const { return source_.node(id).shape.size(); }

  bool IsDivided(int id) const {
    for (std::size_t d = 0; d < Rank(id); ++d)
      if (axes_.PartsOf(id, d).size() > 1) return true;
    return false;
  }
  PartialShape ShapeOf(int id) const {
    std::vector<Dimension> dims;
    for (std::size_t d = 0; d < Rank(id); ++d)
      dims.insert(dims.end(), axes_.PartsOf(id, d).begin(), axes_.PartsOf(id, d).end());
    return PartialShape(std::move(dims));
  }
  // The first part of the axis among all parts of the value.
  int FirstOf(int id, std::size_t dim) const {
    std::size_t first = 0;
    for (std::size_t d = 0; d < dim; ++d) first += axes_.PartsOf(id, d).size();
    return static_cast<int>(first);
  }

  int Make(const Node& node, std::vector<int> inputs) {
    const int id = IdOf(node);
    if (std::find(axes_.free().begin(), axes_.free().end(), id) != axes_.free().end()) return inputs[0];
    if (node.kind == Kind::kReduce) {
      std::vector<int> axes;
      for (const int axis : node.axes)
        for (std::size_t k = 0; k < axes_.PartsOf(node.inputs[0], static_cast<std::size_t>(axis)).size(); ++k)
          axes.push_back(FirstOf(node.inputs[0], static_cast<std::size_t>(axis)) + static_cast<int>(k));
      return result_.Reduce(node.reducer, inputs[0], std::move(axes), node.keepdim, node.contract);
    }
    if (node.kind == Kind::kScan)
      return result_.Scan(node.reducer, inputs[0], FirstOf(id, static_cast<std::size_t>(node.axes[0])));
    if (node.kind == Kind::kGather && IsDivided(node.inputs[0])) inputs = FromDivided(node, std::move(inputs));
    if (!IsDivided(id)) return CopyNode(&result_, node, std::move(inputs));
    switch (node.kind) {
      case Kind::kInput: {
        const int input = CopyNode(&result_, node, std::move(inputs)), divided = Divided(id, input);
        whole_.emplace(divided, input);
        return divided;
      }
      case Kind::kIndex: return Position(id, static_cast<std::size_t>(node.axes[0]));
      case Kind::kBroadcast: {
        std::vector<int> axes;
        for (std::size_t d = 0; d < node.axes.size(); ++d)
          for (std::size_t k = 0; k < axes_.PartsOf(id, d).size(); ++k)
            axes.push_back(node.axes[d] < 0
                               ? -1
                               : FirstOf(node.inputs[0], static_cast<std::size_t>(node.axes[d])) + static_cast<int>(k));
        return result_.Broadcast(inputs[0], std::move(axes), ShapeOf(id));
      }
      default: return CopyNode(&result_, node, std::move(inputs));
    }
  }

  int Number(const Dimension& dim) {
    const Dimension known = result_.Known(dim);
    return known.is_static() ? result_.Constant(static_cast<double>(static_cast<index_t>(known)), DType::kInt64)
                             : result_.ExtentOf(known);
  }

  // The index along an axis, by those along its parts.
  int Position(int id, std::size_t dim) {
    const PartialShape shape = ShapeOf(id);
    const std::vector<Dimension>& parts = axes_.PartsOf(id, dim);
    int axis = FirstOf(id, dim), position = result_.Index(axis, shape);
    for (std::size_t k = 1; k < parts.size(); ++k)
      position =
          result_.Map(Op::plus, {result_.Map(Op::mul, {position, Number(parts[k])}), result_.Index(++axis, shape)});
    return position;
  }

  int Divided(int id, int input) {
    std::vector<int> positions;
    for (std::size_t d = 0; d < Rank(id); ++d) positions.push_back(Position(id, d));
    return result_.Gather(input, std::move(positions), -1, 0);
  }

  // A position along an axis as those along its parts.
  std::vector<int> Taken(int position, const std::vector<Dimension>& parts) {
    std::vector<int> of_parts(parts.size());
    for (std::size_t k = parts.size(); k-- > 1;) {
      const int by = Number(parts[k]), quotient = result_.Map(Op::div, {position, by});
      of_parts[k] = result_.Map(Op::minus, {position, result_.Map(Op::mul, {quotient, by})});
      position = quotient;
    }
    of_parts[0] = position;
    return of_parts;
  }

  // The value with the axes that the node had.
  int Joined(const Node& node, int made) {
    std::vector<int> positions;
    for (std::size_t d = 0; d < node.shape.size(); ++d) {
      const std::vector<int> of_parts =
          Taken(result_.Index(static_cast<int>(d), node.shape), axes_.PartsOf(IdOf(node), d));
      positions.insert(positions.end(), of_parts.begin(), of_parts.end());
    }
    return result_.Gather(made, std::move(positions), -1, 0);
  }

  // What a gather reads whose source is divided: an input as it was, anything else by the parts of its positions.
  std::vector<int> FromDivided(const Node& gather, std::vector<int> inputs) {
    if (const auto whole = whole_.find(inputs[0]); whole != whole_.end()) {
      inputs[0] = whole->second;
      return inputs;
    }
    std::vector<int> all{inputs[0]};
    const std::size_t rank = Rank(gather.inputs[0]);
    for (std::size_t d = 0; d < rank; ++d) {
      const std::vector<int> of_parts = Taken(inputs[d + 1], axes_.PartsOf(gather.inputs[0], d));
      all.insert(all.end(), of_parts.begin(), of_parts.end());
    }
    all.insert(all.end(), inputs.begin() + 1 + static_cast<std::ptrdiff_t>(rank), inputs.end());
    return all;
  }

  const Graph& source_;
  Axes axes_;
  Graph result_;
  std::map<int, int> whole_;  // inputs, by what they are with divided axes
};

}  // namespace

Graph RefineAxes(const Graph& graph) { return Refiner(graph, By::kReshapes).Run().value_or(graph); }

std::optional<Graph> DivideAxes(const Graph& graph) { return Refiner(graph, By::kPositions).Run(); }

}  // namespace umbra::graph
