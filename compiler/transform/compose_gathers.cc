#include "compiler/transform/compose_gathers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "compiler/transform/copy_node.h"
#include "umbra/error.h"

namespace umbra::graph {

namespace {

using Kind = Node::Kind;

// A source that costs as many additions for an element, positions aside, and has as few nodes is computed where it is read.
constexpr double kCheap = 4;
constexpr std::size_t kFewNodes = 64;
// So is a dearer one of which gathers alone read as many elements for each that it has, about one but for borders, along
// rows of at least so many: a short row does not fill packets, as memory does whose rows need not be told apart. Where a part is
// read, rows matter less.
constexpr double kOnce = 1.125, kPart = 0.5;
constexpr index_t kLongRow = 64;
constexpr double kAssumed = 1024;

class Composer {
 public:
  explicit Composer(const Graph& source) : source_(source), result_(source.name()) {}

  Graph Run() {
    CountReads();
    RewriteNodes(source_, [&](const Node& node, std::vector<int> inputs) {
      if (node.kind != Kind::kGather) return CopyNode(&result_, node, std::move(inputs));
      if (const auto axes = Permutation(node, inputs)) return result_.Transpose(inputs[0], *axes);
      if (const auto repeated = Repeated(node, inputs)) return *repeated;
      const auto cost = CostOf(inputs[0]);
      const bool composes = cost && (*cost <= kCheap ? !IsOutput(node.inputs[0]) : IsReadOnce(node));
      return composes ? Compose(node, inputs) : CopyNode(&result_, node, std::move(inputs));
    }, &result_);
    return std::move(result_);
  }

 private:
  bool IsOutput(int id) const {
    return std::any_of(source_.outputs().begin(), source_.outputs().end(), [id](const Output& output) { return output.node == id; });
  }

  // Is the source, a dear one, not computed more often, nor by less than packets, where this gather and perhaps others read it?
  bool IsReadOnce(const Node& gather) const {
    const double reads = reads_[static_cast<std::size_t>(gather.inputs[0])];
    if (reads > kOnce || SharesDearValues(gather.inputs[0])) return false;
    if (reads <= kPart) return true;
    const std::size_t positions = gather.inputs.size() - (gather.guarded ? 2 : 1);
    std::set<int> axes;  // along which the last position moves
    for (std::size_t d = 1; d <= positions; ++d) {
      axes.clear();
      if (!IsEven(gather.inputs[d], &axes)) return false;
    }
    return std::any_of(axes.begin(), axes.end(), [&](int axis) {
      const Dimension row = source_.Known(gather.shape[static_cast<std::size_t>(axis)]);
      return row.is_static() && static_cast<index_t>(row) >= kLongRow;
    });
  }

  // Does the position grow evenly along each axis? Adds those along which it does.
  bool IsEven(int position, std::set<int>* axes) const {
    const Node& node = source_.node(position);
    if (node.kind == Kind::kIndex) axes->insert(node.axes[0]);
    if (node.kind != Kind::kMap) return node.kind != Kind::kGather && node.kind != Kind::kCast;
    const bool even = node.op == Op::plus || node.op == Op::minus || node.op == Op::negative || node.op == Op::mul;
    return even && std::all_of(node.inputs.begin(), node.inputs.end(), [&](int input) { return IsEven(input, axes); });
  }

  // Is a dear value that `source` is made of read by something else, too, or repeated by a broadcast?
  bool SharesDearValues(int source) const {
    std::set<std::pair<int, bool>> seen;
    std::vector<std::pair<int, bool>> open{{source, false}};  // and whether it is computed for others, too
    while (!open.empty()) {
      const auto [id, above] = open.back();
      open.pop_back();
      const bool shared = above || (id != source && (readers_[static_cast<std::size_t>(id)] > 1 || IsOutput(id)));
      if (!seen.insert({id, shared}).second) continue;
      const Node& node = source_.node(id);
      if (shared && node.kind == Kind::kMap && Info(node.op).cost > kCheap) return true;
      for (std::size_t k = 0; k < (node.kind == Kind::kGather ? 1 : node.inputs.size()); ++k)
        open.emplace_back(node.inputs[k], shared || node.kind == Kind::kBroadcast);
    }
    return false;
  }

  // How often each element of a value would be computed, on average, if it were where it is read; without end if something
  // else than gathers reads it, too, or that depends on the call.
  void CountReads() {
    constexpr double kMany = std::numeric_limits<double>::infinity();
    const std::size_t count = source_.nodes().size();
    std::vector<double>& beside = beside_;  // by others than gathers; those of one loop share what they read
    beside.assign(count, 0);
    reads_.assign(count, 0);
    readers_.assign(count, 0);
    places_.assign(count, false);
    for (const Output& output : source_.outputs()) beside[static_cast<std::size_t>(output.node)] = 1;
    for (const Node& node : source_.nodes())
      for (const int input : std::set<int>(node.inputs.begin(), node.inputs.end())) ++readers_[static_cast<std::size_t>(input)];
    for (std::size_t id = count; id-- > 0;) {
      const Node& node = source_.node(static_cast<int>(id));
      const bool kept = node.kind == Kind::kReduce || node.kind == Kind::kDot;
      const bool in_memory = reads_[id] > kOnce || (reads_[id] > 0 && beside[id] > 0);
      const double times = kept || in_memory ? 1 : reads_[id] + beside[id];
      if (beside[id] > 0) reads_[id] = kMany;
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        const auto input = static_cast<std::size_t>(node.inputs[k]);
        if (node.kind == Kind::kGather ? k > 0 : places_[id]) places_[input] = true;
        if (kept) {
          beside[input] = std::max(beside[input], 1.0);
          continue;
        }
        const double each = Quotient(node.shape, source_.node(node.inputs[k]).shape).value_or(kMany) * times;
        if (node.kind == Kind::kGather && k == 0) reads_[input] += each;
        else beside[input] = std::max(beside[input], each);
      }
    }
  }

  // Elements of the one shape for each of the other, if both follow from the same extents.
  std::optional<double> Quotient(const PartialShape& above, const PartialShape& below) {
    std::set<int> of_above, of_below;
    const double elements = Elements(above, &of_above), others = Elements(below, &of_below);
    return of_above == of_below && elements > 0 && others > 0 ? std::optional(elements / others) : std::nullopt;
  }

  // With kAssumed for every extent that follows from no other, whose symbols are added to `open`.
  double Elements(const PartialShape& shape, std::set<int>* open) {
    double elements = 1;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const Size size = SizeOf(shape[d]);
      elements *= std::max(size.extent, 0.0);
      open->insert(size.open.begin(), size.open.end());
    }
    return elements;
  }
  struct Size {
    double extent;
    std::set<int> open;  // symbols that it follows from
  };
  Size SizeOf(const Dimension& dim) {
    const Dimension known = source_.Known(dim);
    if (known.is_static()) return {static_cast<double>(static_cast<index_t>(known)), {}};
    // An even extent e may follow from e / 2 * 2: while it is looked for, it follows from nothing.
    const auto [found, fresh] = sizes_.try_emplace(known.symbol(), Size{kAssumed, {known.symbol()}});
    if (!fresh) return found->second;
    for (const Graph::Derived& derived : source_.derived()) {
      if (derived.op.kind == ExtentOp::kScalar || !source_.SameDimension(derived.result, known)) continue;
      Size a = SizeOf(derived.a);
      const Size b = SizeOf(derived.b);
      a.extent = Estimate(derived.op.kind, a.extent, b.extent);
      a.open.insert(b.open.begin(), b.open.end());
      return found->second = std::move(a);
    }
    return found->second;
  }
  static double Estimate(ExtentOp op, double a, double b) {
    switch (op) {
      case ExtentOp::kPlus: return a + b;
      case ExtentOp::kMinus: return a - b;
      case ExtentOp::kTimes: return a * b;
      case ExtentOp::kOver: return b == 0 ? 0 : std::floor(a / b);
      case ExtentOp::kMinimum: return std::min(a, b);
      case ExtentOp::kMaximum: return std::max(a, b);
      case ExtentOp::kScalar: break;
    }
    return a;
  }

  // The axes of a transpose that the gather is: it reads each element of its source, at its own positions in another order.
  std::optional<std::vector<int>> Permutation(const Node& gather, const std::vector<int>& inputs) const {
    const PartialShape& from = source_.node(gather.inputs[0]).shape;
    if (gather.guarded || from.size() != gather.shape.size()) return std::nullopt;
    std::vector<int> axes(from.size(), -1);
    for (std::size_t d = 0; d < from.size(); ++d) {
      const Node& position = result_.node(inputs[d + 1]);
      if (position.kind != Kind::kIndex) return std::nullopt;
      const auto axis = static_cast<std::size_t>(position.axes[0]);
      if (axes[axis] >= 0 || !source_.SameDimension(from[d], gather.shape[axis])) return std::nullopt;
      axes[axis] = static_cast<int>(d);
    }
    return axes;
  }

  // The gather as a broadcast: it reads its source at its own positions, of dimensions of extent 1 the only one.
  std::optional<int> Repeated(const Node& gather, const std::vector<int>& inputs) {
    const PartialShape& from = source_.node(gather.inputs[0]).shape;
    if (gather.guarded || places_[static_cast<std::size_t>(&gather - source_.nodes().data())]) return std::nullopt;
    std::vector<int> axes(gather.shape.size(), -1);
    std::set<int> single;
    int last = -1;
    for (std::size_t d = 0; d < from.size(); ++d) {
      const Dimension extent = source_.Known(from[d]);
      const Node& position = result_.node(inputs[d + 1]);
      if (extent.is_static() && static_cast<index_t>(extent) == 1) {
        single.insert(static_cast<int>(d));
        continue;
      }
      if (position.kind != Kind::kIndex || position.axes[0] <= last) return std::nullopt;
      last = position.axes[0];
      if (!source_.SameDimension(from[d], gather.shape[static_cast<std::size_t>(last)])) return std::nullopt;
      axes[static_cast<std::size_t>(last)] = static_cast<int>(d - single.size());
    }
    const bool alone = beside_[static_cast<std::size_t>(gather.inputs[0])] == 0;  // else it would be computed twice
    const auto value = single.empty() ? std::optional(inputs[0]) : alone ? Without(inputs[0], single) : std::nullopt;
    return value ? std::optional(result_.Broadcast(*value, axes, gather.shape)) : std::nullopt;
  }

  // The value without dimensions of extent 1 that reductions or broadcasts gave it.
  std::optional<int> Without(int id, const std::set<int>& dims) {
    const auto key = std::make_pair(id, dims);
    const auto [found, fresh] = without_.try_emplace(key);  // none for those at the end of long chains
    if (!fresh || depth_ > kFewNodes) return found->second;
    ++depth_;
    const auto value = MakeWithout(id, dims);
    --depth_;
    return without_[key] = value;
  }
  std::optional<int> MakeWithout(int id, const std::set<int>& dims) {
    const Node node = result_.node(id);
    const auto left_of = [](const std::set<int>& gone, int dim) { return dim - static_cast<int>(std::distance(gone.begin(), gone.lower_bound(dim))); };
    switch (node.kind) {
      case Kind::kMap:
      case Kind::kCast: {
        std::vector<int> inputs;
        for (const int input : node.inputs) {
          const auto value = result_.node(input).shape.size() == 0 ? std::optional(input) : Without(input, dims);
          if (!value) return std::nullopt;
          inputs.push_back(*value);
        }
        return CopyNode(&result_, node, std::move(inputs));
      }
      case Kind::kReduce: {
        std::set<int> inner = dims;
        std::vector<int> axes;
        for (const int axis : node.axes)
          if (!node.keepdim || inner.erase(axis) == 0) return std::nullopt;
        for (const int axis : node.axes) axes.push_back(left_of(inner, axis));
        const auto value = inner.empty() ? std::optional(node.inputs[0]) : Without(node.inputs[0], inner);
        return value ? std::optional(result_.Reduce(node.reducer, *value, axes, false, node.contract)) : std::nullopt;
      }
      case Kind::kBroadcast: {
        std::vector<int> axes;
        std::vector<Dimension> shape;
        for (std::size_t d = 0; d < node.axes.size(); ++d) {
          const bool gone = dims.count(static_cast<int>(d)) > 0;
          if (gone && node.axes[d] >= 0) return std::nullopt;
          if (!gone) axes.push_back(node.axes[d]), shape.push_back(node.shape[d]);
        }
        return result_.Broadcast(node.inputs[0], axes, PartialShape(std::move(shape)));
      }
      default: return std::nullopt;
    }
  }

  // What an element of the value, which is no operand in memory, costs beside positions; none if it is not to be computed
  // where it is read.
  std::optional<double> CostOf(int source) const {
    if (result_.node(source).kind == Kind::kInput) return std::nullopt;
    std::set<int> seen;
    std::vector<int> open{source};
    double cost = 0;
    while (!open.empty()) {
      const int id = open.back();
      open.pop_back();
      if (!seen.insert(id).second) continue;
      const Node& node = result_.node(id);
      if (node.kind == Kind::kReduce || node.kind == Kind::kDot || seen.size() > kFewNodes) return std::nullopt;
      const bool position = node.dtype == DType::kInt64 || node.dtype == DType::kBool;
      if (node.kind == Kind::kMap && !position) cost += Info(node.op).cost;
      const std::size_t first = node.kind == Kind::kGather ? 1 : 0;  // gathered from memory, where it stays
      open.insert(open.end(), node.inputs.begin() + static_cast<std::ptrdiff_t>(first), node.inputs.end());
    }
    return cost;
  }

  // `gather`, with these operands, of a source that is computed where it is read.
  int Compose(const Node& gather, std::vector<int> inputs) {
    const int guard = gather.guarded ? inputs.back() : -1;
    if (gather.guarded) inputs.pop_back();
    const std::vector<int> positions(inputs.begin() + 1, inputs.end());
    const Node from = result_.node(inputs[0]);
    known_.clear();
    int value;
    if (from.kind == Kind::kGather && (guard < 0 || !from.guarded || from.constant == gather.constant)) {
      value = GatherAt(inputs[0], positions, guard, from.guarded ? from.constant : gather.constant);
    } else {
      value = ValueAt(inputs[0], positions, guard);
      if (guard >= 0) {
        const int outside = result_.Constant(gather.constant, ComputeType(gather.dtype));
        value = result_.Cast(result_.Map(Op::select, {guard, value, outside}), gather.dtype);
      }
    }
    const std::size_t rank = gather.shape.size();
    return result_.node(value).shape.size() == rank
               ? value
               : result_.Broadcast(value, std::vector<int>(rank, -1), gather.shape);
  }

  // The gather `id` at other positions, with `outside` where the guard or its own fails.
  int GatherAt(int id, const std::vector<int>& positions, int guard, double outside) {
    const Node node = result_.node(id);
    std::vector<int> at;
    for (std::size_t k = 1; k < node.inputs.size(); ++k) at.push_back(ValueAt(node.inputs[k], positions, guard));
    int both = guard;
    if (node.guarded) {
      both = guard >= 0 ? result_.Map(Op::logical_and, {guard, at.back()}) : at.back();
      at.pop_back();
    }
    return result_.Gather(node.inputs[0], std::move(at), both, outside);
  }

  // The value `id` at `positions`; where the guard fails it is any number, and nothing is read.
  int ValueAt(int id, const std::vector<int>& positions, int guard) {
    const auto key = std::make_pair(id, positions);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    const int value = MakeAt(id, positions, guard);
    known_.emplace(key, value);
    return value;
  }

  int MakeAt(int id, const std::vector<int>& positions, int guard) {
    const Node node = result_.node(id);
    if (node.shape.size() == 0 && node.kind != Kind::kInput) return id;
    switch (node.kind) {
      case Kind::kInput: return result_.Gather(id, positions, guard, 0);
      case Kind::kIndex: return positions[static_cast<std::size_t>(node.axes[0])];
      case Kind::kGather: return GatherAt(id, positions, guard, node.constant);
      case Kind::kBroadcast:
      case Kind::kTranspose: {
        std::vector<int> inner(result_.node(node.inputs[0]).shape.size(), -1);
        for (std::size_t d = 0; d < node.axes.size(); ++d)
          if (node.axes[d] >= 0) inner[static_cast<std::size_t>(node.axes[d])] = positions[d];
        return ValueAt(node.inputs[0], inner, guard);
      }
      case Kind::kMap:
      case Kind::kCast: {
        std::vector<int> inputs;
        for (const int input : node.inputs) inputs.push_back(ValueAt(input, positions, guard));
        return CopyNode(&result_, node, std::move(inputs));
      }
      default: throw InternalError("a value that cannot be computed at other positions");
    }
  }

  const Graph& source_;
  Graph result_;
  std::vector<double> reads_, beside_;  // by value of the source
  std::vector<int> readers_;            // the same: how many read it
  std::vector<bool> places_;            // the same: does it serve as a position? Those stay gathers, which prefetching looks for
  std::map<int, Size> sizes_;  // by symbol
  std::map<std::pair<int, std::set<int>>, std::optional<int>> without_;
  std::size_t depth_ = 0;  // of Without
  std::map<std::pair<int, std::vector<int>>, int> known_;  // of the gather that is being composed
};

}  // namespace

Graph ComposeGathers(const Graph& graph) { return Composer(graph).Run(); }

}  // namespace umbra::graph
