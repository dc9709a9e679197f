#include "compiler/transform/gather_reads.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace umbra::graph {

namespace {

using Kind = Node::Kind;

// A dear source is computed where it is read if gathers alone read as many elements for each that it has, about one but
// for borders, along rows of at least kLongRow: a short row does not fill packets, as memory does whose rows need not
// be told apart. Where a part is read, rows matter less.
constexpr double kOnce = 1.125, kPart = 0.5;
// Elements of a row, or of a small matrix, that a packet has of as many rows as it has lanes.
constexpr index_t kFewOfRow = 16;
// Additions that take as long as to write an element and to read it again.
constexpr double kInMemory = 24;
constexpr std::size_t kManyNodes = 256;  // are not looked at
// Known rows of as many gain so much that a call may not write an output over the operand.
constexpr index_t kLongestRow = 64;

double Estimate(ExtentOp op, double a, double b) {
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

bool AreAlike(const Graph& graph, const Node& a, const Node& b) {
  return a.dtype == b.dtype && std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end(),
                                          [&](const auto& x, const auto& y) { return graph.SameDimension(x, y); });
}

}  // namespace

bool IsForRows(const Node& broadcast) {
  const auto row = std::find_if(broadcast.axes.rbegin(), broadcast.axes.rend(), [](int from) { return from >= 0; });
  return std::find(row, broadcast.axes.rend(), -1) != broadcast.axes.rend();
}

OutputInputPairs GatheredByAlike(const Graph& graph) {
  OutputInputPairs pairs;
  for (std::size_t k = 0; k < graph.outputs().size(); ++k) {
    std::set<int> seen;
    std::vector<int> open{graph.outputs()[k].node};
    while (!open.empty()) {
      const int id = open.back();
      open.pop_back();
      const Node& node = graph.node(id);
      if (JoinsElements(node) || !seen.insert(id).second) continue;
      const bool gathers = node.kind == Kind::kGather;
      if (const Node& from = graph.node(gathers ? node.inputs[0] : id);
          gathers && from.kind == Kind::kInput && AreAlike(graph, graph.node(graph.outputs()[k].node), from))
        pairs.emplace(k, from.name);
      open.insert(open.end(), node.inputs.begin() + (gathers ? 1 : 0), node.inputs.end());
    }
  }
  return pairs;
}

bool GatherReads::IsOutput(int id) const {
  return std::any_of(source_.outputs().begin(), source_.outputs().end(),
                     [id](const Output& output) { return output.node == id; });
}

bool GatherReads::IsReadOnce(const Node& gather) const {
  const double reads = reads_[static_cast<std::size_t>(gather.inputs[0])];
  const std::optional<Few> of_row = IsOutput(gather.inputs[0]) ? std::nullopt : ElementsOfFew(gather);
  if (of_row && of_row->count == 1) return true;
  if (reads > kOnce || SharesDearValues(gather.inputs[0], of_row) || SharesWork(gather.inputs[0])) return false;
  if (reads <= kPart) return true;
  if (of_row) return JoinsOthers(gather.inputs[0]) || !MayBeWrittenOver(gather.inputs[0]);
  const std::size_t positions = gather.inputs.size() - (gather.guarded ? 2 : 1);
  std::optional<std::set<int>> axes;
  for (std::size_t d = 1; d <= positions; ++d)
    if (!(axes = EvenAxes(gather.inputs[d]))) return false;
  return std::any_of(axes->begin(), axes->end(), [&](int axis) {  // of the last position
    const Dimension row = source_.Known(gather.shape[static_cast<std::size_t>(axis)]);
    const Dimension run =
        source_.Known(source_.node(gather.inputs[0]).shape[positions - 1]);  // no longer than the source's rows
    const auto length = [](const Dimension& dim) { return dim.is_static() ? static_cast<index_t>(dim) : kLongRow; };
    const index_t elements = run.is_static() ? std::min(length(run), length(row)) : length(row);
    return elements >= kLongestRow || (elements >= kLongRow && !MayBeWrittenOver(gather.inputs[0]));
  });
}

// How many elements the source has for each index of its first axes, if these are few, and so are those of the gather,
// which takes them from the same indices: all of them are at hand together.
std::optional<GatherReads::Few> GatherReads::ElementsOfFew(const Node& gather) const {
  const PartialShape& source = source_.node(gather.inputs[0]).shape;
  std::size_t outer = 0;
  while (outer < std::min<std::size_t>(source.size(), gather.shape.size()) &&
         source_.SameDimension(source[outer], gather.shape[outer]) && AxisOf(gather.inputs[outer + 1]) == outer)
    ++outer;
  if (outer == 0) return std::nullopt;
  for (std::size_t d = outer; d < source.size(); ++d)
    for (const int id : MadeOf(gather.inputs[d + 1])) {
      const Kind kind = source_.node(id).kind;
      if (kind == Kind::kGather || kind == Kind::kInput || AxisOf(id).value_or(outer) < outer) return std::nullopt;
    }
  const auto count = FewOf(source, outer);
  return count && FewOf(gather.shape, outer) ? std::optional(Few{*count, outer}) : std::nullopt;
}

// The axis whose index the value is, if it is one.
std::optional<std::size_t> GatherReads::AxisOf(int id) const {
  const Node& node = source_.node(id);
  return node.kind == Kind::kIndex ? std::optional(static_cast<std::size_t>(node.axes[0])) : std::nullopt;
}

// The elements for each index of the `outer` first axes, if few.
std::optional<index_t> GatherReads::FewOf(const PartialShape& shape, std::size_t outer) const {
  index_t count = 1;
  for (std::size_t d = outer; d < shape.size(); ++d) {
    const Dimension known = source_.Known(shape[d]);
    if (!known.is_static() || static_cast<index_t>(known) > kFewOfRow) return std::nullopt;
    count *= static_cast<index_t>(known);
    if (count > kFewOfRow) return std::nullopt;
  }
  return count;
}

// Could an input that `source` is made of be an output's memory, too, as their dtypes and shapes are the same? It has
// to be read before that is written.
bool GatherReads::MayBeWrittenOver(int source) const {
  for (const int id : MadeOf(source)) {
    const Node& node = source_.node(id);
    if (node.kind != Kind::kInput) continue;
    for (std::size_t k = 0; k < source_.outputs().size(); ++k)
      if (AreAlike(source_, source_.node(source_.outputs()[k].node), node) && apart_.count({k, node.name}) == 0)
        return true;
  }
  return false;
}

bool GatherReads::IsBetterTurned(const Node& gather) {
  const PartialShape& shape = source_.node(gather.inputs[0]).shape;
  const std::size_t rank = shape.size();
  std::set<int> open;
  if (Elements(gather.shape, &open) < kPart * Elements(shape, &open)) return false;
  for (std::size_t d = 0; d < rank; ++d)
    if (FollowsFromData(gather.inputs[d + 1])) return false;
  for (const int dim : InnermostDims(gather.inputs[0])) {
    if (dim + 1 == static_cast<int>(rank)) continue;
    const auto axes = EvenAxes(gather.inputs[static_cast<std::size_t>(dim) + 1]);
    if (axes && axes->count(static_cast<int>(gather.shape.size()) - 1) > 0) continue;
    if (!GoesInRuns(gather.inputs[static_cast<std::size_t>(dim) + 1], LastLongAxis(gather.shape))) return true;
  }
  return false;
}

// The last axis, but for those that are known to have a few indices, as windows have.
int GatherReads::LastLongAxis(const PartialShape& shape) const {
  int axis = static_cast<int>(shape.size()) - 1;
  while (axis > 0 && FewOf(shape, static_cast<std::size_t>(axis))) --axis;
  return axis;
}

// Does the position grow by one with each index of the axis, but where a quotient by a large number does?
bool GatherReads::GoesInRuns(int position, int axis) {
  bool grows = false;
  for (const auto& [factors, count] : forms_.FormOf(position))
    for (const int id : factors) {
      if (id < 0) continue;  // an extent
      const Node& node = source_.node(id);
      const auto quotient = forms_.AsQuotient(id);
      if (quotient && quotient->second >= kLongRow) continue;
      const bool is_index = node.kind == Kind::kIndex && node.axes[0] == axis;
      const std::set<int> values = MadeOf(id);
      const bool moves = std::any_of(values.begin(), values.end(), [&](int of) {
        return source_.node(of).kind == Kind::kIndex && source_.node(of).axes[0] == axis;
      });
      if (moves && !(is_index && factors.size() == 1 && count == 1)) return false;
      grows = grows || is_index;
    }
  return grows;
}

// The dimensions of `source` along which what it is made of lies side by side in memory.
std::set<int> GatherReads::InnermostDims(int source) const {
  std::set<int> innermost;
  std::vector<int> own;  // dimension of `source` by dimension of a value, -1: none
  for (std::size_t d = 0; d < source_.node(source).shape.size(); ++d) own.push_back(static_cast<int>(d));
  std::set<std::pair<int, std::vector<int>>> seen;
  std::vector<std::pair<int, std::vector<int>>> open{{source, own}};
  while (!open.empty()) {
    auto [id, dims] = open.back();
    open.pop_back();
    if (!seen.insert({id, dims}).second) continue;
    const Node& node = source_.node(id);
    if (node.kind == Kind::kInput) {
      if (!dims.empty() && dims.back() >= 0) innermost.insert(dims.back());
    } else if (node.kind == Kind::kBroadcast || node.kind == Kind::kTranspose) {
      std::vector<int> inner(source_.node(node.inputs[0]).shape.size(), -1);
      for (std::size_t d = 0; d < node.axes.size(); ++d)
        if (node.axes[d] >= 0) inner[static_cast<std::size_t>(node.axes[d])] = dims[d];
      open.emplace_back(node.inputs[0], std::move(inner));
    } else if (node.kind == Kind::kMap || node.kind == Kind::kCast) {
      for (const int input : node.inputs)
        open.emplace_back(input, source_.node(input).shape.size() == dims.size() ? dims : std::vector<int>());
    }
  }
  return innermost;
}

bool GatherReads::FollowsFromData(int position) const {
  const std::set<int> values = MadeOf(position);
  return std::any_of(values.begin(), values.end(), [this](int id) {
    return source_.node(id).kind == Kind::kGather || source_.node(id).kind == Kind::kInput;
  });
}

// Does it choose by positions what it is made of? That would be one tensor in memory after the other.
bool GatherReads::JoinsOthers(int source) const {
  const std::set<int> values = MadeOf(source);
  return std::any_of(values.begin(), values.end(), [this](int id) { return source_.node(id).guarded; });
}

// All values that the one is made of, and itself.
std::set<int> GatherReads::MadeOf(int value) const {
  std::set<int> values;
  std::vector<int> open{value};
  while (!open.empty()) {
    const int id = open.back();
    open.pop_back();
    if (!values.insert(id).second) continue;
    const std::vector<int>& inputs = source_.node(id).inputs;
    open.insert(open.end(), inputs.begin(), inputs.end());
  }
  return values;
}

// The axes along which the position grows, if evenly.
std::optional<std::set<int>> GatherReads::EvenAxes(int position) const {
  std::set<int> axes;
  for (const int id : MadeOf(position)) {
    const Node& node = source_.node(id);
    if (node.kind == Kind::kIndex) axes.insert(node.axes[0]);
    const bool even = node.op == Op::plus || node.op == Op::minus || node.op == Op::negative || node.op == Op::mul;
    if (node.kind == Kind::kGather || node.kind == Kind::kCast || (node.kind == Kind::kMap && !even))
      return std::nullopt;
  }
  return axes;
}

// The axis of which the position is the index, by one up or down and by a number.
std::optional<int> GatherReads::UnitAxis(int position) const {
  const Node& node = source_.node(position);
  if (node.kind == Kind::kIndex) return node.axes[0];
  if (node.kind != Kind::kMap) return std::nullopt;
  if (node.op == Op::negative) return UnitAxis(node.inputs[0]);
  if (node.op != Op::plus && node.op != Op::minus) return std::nullopt;
  const bool by_number = source_.node(node.inputs[1]).shape.size() == 0;
  return by_number || source_.node(node.inputs[0]).shape.size() == 0 ? UnitAxis(node.inputs[by_number ? 0 : 1])
                                                                     : std::nullopt;
}

// Does no element of the source stand at two points of the gather?
bool GatherReads::ReadsNoneTwice(const Node& gather) const {
  std::set<int> axes;
  for (std::size_t d = 1; d <= source_.node(gather.inputs[0]).shape.size(); ++d) {
    const std::optional<int> axis = UnitAxis(gather.inputs[d]);
    if (axis) axes.insert(*axis);
  }
  for (std::size_t d = 0; d < gather.shape.size(); ++d) {
    const Dimension known = source_.Known(gather.shape[d]);
    if (axes.count(static_cast<int>(d)) == 0 && !(known.is_static() && static_cast<index_t>(known) == 1)) return false;
  }
  return true;
}

// Is a dear value that `source` is made of read by something else, too, or repeated by a broadcast? `few`: one of which
// a row has one element is computed once for all that the row has.
bool GatherReads::SharesDearValues(int source, const std::optional<Few>& few) const {
  std::set<std::pair<int, bool>> seen;
  std::vector<std::pair<int, bool>> open{{source, false}};  // and whether it is computed for others, too
  while (!open.empty()) {
    const auto [id, above] = open.back();
    open.pop_back();
    const bool shared = above || (id != source && (readers_[static_cast<std::size_t>(id)] > 1 || IsOutput(id)));
    if (!seen.insert({id, shared}).second) continue;
    const Node& node = source_.node(id);
    if (node.kind == Kind::kBroadcast && IsForRows(node)) continue;  // what is dear of that is kept
    const bool is_dear = node.kind == Kind::kMap && Info(node.op).cost > kCheap;
    if (shared && is_dear && !(few && FewOf(node.shape, few->outer) == 1)) return true;
    for (std::size_t k = 0; k < (node.kind == Kind::kGather ? 1 : node.inputs.size()); ++k)
      open.emplace_back(node.inputs[k], shared || node.kind == Kind::kBroadcast);
  }
  return false;
}

bool GatherReads::SharesWork(int source) const {
  const auto is_computed = [this](int id) {
    const Kind kind = source_.node(id).kind;
    return kind == Kind::kMap || kind == Kind::kCast || kind == Kind::kBroadcast;
  };
  std::vector<int> open{source};
  std::map<int, int> made{{source, 0}};  // and how many of these read it
  while (!open.empty() && made.size() < kManyNodes) {
    const Node& node = source_.node(open.back());
    open.pop_back();
    for (const int input : std::set<int>(node.inputs.begin(), node.inputs.end()))
      if (is_computed(input) && made[input]++ == 0) open.push_back(input);
  }
  if (!open.empty()) return false;
  double cost = 0;
  std::set<int> shared;
  for (auto of = made.rbegin(); of != made.rend(); ++of) {  // readers before what they read
    const auto& [id, readers] = *of;
    const Node& node = source_.node(id);
    if (id != source && readers_[static_cast<std::size_t>(id)] > readers) shared.insert(id);
    if (shared.count(id) == 0) continue;
    shared.insert(node.inputs.begin(), node.inputs.end());
    if (node.kind == Kind::kMap && IsFloat(node.dtype)) cost += Info(node.op).cost;
  }
  return cost > kInMemory;
}

// How often each element of a value would be computed, on average, if it were where it is read; without end if
// something else than gathers reads it, too, or that depends on the call.
GatherReads::GatherReads(const Graph& graph, OutputInputPairs apart) : source_(graph), apart_(std::move(apart)) {
  constexpr double kMany = std::numeric_limits<double>::infinity();
  const std::size_t count = source_.nodes().size();
  std::vector<double> beside(count, 0);  // by others than gathers; those of one loop share what they read
  reads_.assign(count, 0);
  readers_.assign(count, 0);
  for (const Output& output : source_.outputs()) beside[static_cast<std::size_t>(output.node)] = 1;
  for (const Node& node : source_.nodes())
    for (const int input : std::set<int>(node.inputs.begin(), node.inputs.end()))
      ++readers_[static_cast<std::size_t>(input)];
  for (std::size_t id = count; id-- > 0;) {
    const Node& node = source_.node(static_cast<int>(id));
    const bool kept = JoinsElements(node);
    const bool in_memory = reads_[id] > kOnce || (reads_[id] > 0 && beside[id] > 0);
    const double times = kept || in_memory ? 1 : reads_[id] + beside[id];
    if (beside[id] > 0) reads_[id] = kMany;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const auto input = static_cast<std::size_t>(node.inputs[k]);
      if (kept) {
        beside[input] = std::max(beside[input], 1.0);
        continue;
      }
      const bool once =
          node.kind == Kind::kGather && k == 0 && ReadsNoneTwice(node);  // though it asks its guard for more
      const PartialShape& read = source_.node(node.inputs[k]).shape;
      const double each =
          std::min(Quotient(node.shape, read).value_or(kMany), once ? PartOf(node.shape, read) : kMany) * times;
      if (node.kind == Kind::kGather && k == 0) reads_[input] += each;
      else beside[input] = std::max(beside[input], each);
    }
  }
}

// About which part of the elements of `below` those of `above` are that are read once; 1: all. A known part of what is
// open is small.
double GatherReads::PartOf(const PartialShape& above, const PartialShape& below) {
  std::set<int> open;
  const double elements = Elements(above, &open), others = Elements(below, &open);
  return elements < others ? elements / others : 1;
}

// Elements of the one shape for each of the other, if both follow from the same extents.
std::optional<double> GatherReads::Quotient(const PartialShape& above, const PartialShape& below) {
  std::set<int> of_above, of_below;
  const double elements = Elements(above, &of_above), others = Elements(below, &of_below);
  return of_above == of_below && elements > 0 && others > 0 ? std::optional(elements / others) : std::nullopt;
}

// With kAssumedExtent for every extent that follows from no other, whose symbols are added to `open`.
double GatherReads::Elements(const PartialShape& shape, std::set<int>* open) {
  double elements = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Size size = SizeOf(shape[d]);
    elements *= std::max(size.extent, 0.0);
    open->insert(size.open.begin(), size.open.end());
  }
  return elements;
}
GatherReads::Size GatherReads::SizeOf(const Dimension& dim) {
  const Dimension known = source_.Known(dim);
  if (known.is_static()) return {static_cast<double>(static_cast<index_t>(known)), {}};
  // An even extent e may follow from e / 2 * 2: while it is looked for, it follows from nothing.
  const auto [found, fresh] = sizes_.try_emplace(known.symbol(), Size{kAssumedExtent, {known.symbol()}});
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

}  // namespace umbra::graph
