#include "compiler/transform/axis_parts.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

namespace umbra::graph {

namespace {

using Kind = Node::Kind;
using Form = PositionForms::Form;
using Factors = PositionForms::Factors;

constexpr std::size_t kMostDimensions = 32;  // Buffer::goes_on

bool MayBe(const Graph& graph, const Node& gather, bool more) {
  const std::size_t from = graph.node(gather.inputs[0]).shape.size(), to = gather.shape.size();
  return gather.kind == Kind::kGather && !gather.guarded && (more ? to > from : to < from) &&
         std::max(from, to) <= kMostDimensions;
}

bool IsIndex(const Graph& graph, int factor, std::size_t axis) {
  return factor >= 0 && graph.node(factor).kind == Kind::kIndex && graph.node(factor).axes[0] == static_cast<int>(axis);
}

bool IsOne(const Form& form) { return form == PositionForms::Number(1); }

// The axes whose sum the position is, each of which is taken as many times as those behind it have points together;
// nothing if it is otherwise.
std::optional<std::vector<std::size_t>> AxesOf(const Graph& graph, const Node& gather, int position,
                                               PositionForms* forms) {
  Form left = forms->Within(gather.shape, forms->FormOf(position));
  std::vector<std::size_t> axes;
  Form step = PositionForms::Number(1);
  for (std::size_t axis = gather.shape.size(); axis-- > 0 && !left.empty();) {
    const auto term = std::find_if(left.begin(), left.end(), [&](const auto& of) {
      Factors factors = of.first;
      const auto index =
          std::find_if(factors.begin(), factors.end(), [&](int factor) { return IsIndex(graph, factor, axis); });
      if (index == factors.end()) return false;
      factors.erase(index);
      return Form{{factors, of.second}} == step;
    });
    if (term == left.end()) {
      if (axes.empty()) continue;
      break;
    }
    left.erase(term);
    axes.push_back(axis);
    const auto next = PositionForms::Product(step, forms->Within(gather.shape, forms->FormOf(gather.shape[axis])));
    if (!next) return std::nullopt;
    step = *next;
  }
  return left.empty() ? std::optional(axes) : std::nullopt;
}

}  // namespace

std::optional<std::vector<int>> PartsOfSource(const Graph& graph, const Node& gather, PositionForms* forms) {
  if (!MayBe(graph, gather, true)) return std::nullopt;
  const auto is_one = [&](std::size_t axis) { return graph.SameDimension(gather.shape[axis], Dimension(1)); };
  std::vector<int> part_of(gather.shape.size(), -1);
  bool divides = false;
  for (std::size_t d = 0; d < graph.node(gather.inputs[0]).shape.size(); ++d) {
    const auto axes = AxesOf(graph, gather, gather.inputs[d + 1], forms);
    if (!axes || axes->empty()) return std::nullopt;
    for (const std::size_t axis : *axes) part_of[axis] = static_cast<int>(d);
    divides = divides || axes->size() - static_cast<std::size_t>(std::count_if(axes->begin(), axes->end(), is_one)) > 1;
  }
  // An axis of one point is a part of any dimension, but elements do not lie along it: none is the last.
  for (std::size_t axis = 0; axis < part_of.size(); ++axis) {
    if (part_of[axis] >= 0) continue;
    if (!is_one(axis)) return std::nullopt;
    part_of[axis] = axis == 0 ? 0 : part_of[axis - 1];
  }
  if (!divides || is_one(part_of.size() - 1)) return std::nullopt;
  return std::is_sorted(part_of.begin(), part_of.end()) ? std::optional(part_of) : std::nullopt;
}

std::optional<std::vector<int>> PartsOfResult(const Graph& graph, const Node& gather, PositionForms* forms) {
  if (!MayBe(graph, gather, false)) return std::nullopt;
  const PartialShape& from = graph.node(gather.inputs[0]).shape;
  const auto extent_of = [&](const Dimension& dim) { return forms->Within(gather.shape, forms->FormOf(dim)); };
  std::vector<int> part_of;
  for (std::size_t axis = 0; axis < gather.shape.size(); ++axis) {
    // What the positions come to together is the index, and stays below the extent.
    const Form extent = extent_of(gather.shape[axis]);
    std::optional<Form> index = Form{}, count = PositionForms::Number(1);
    const auto is_whole = [&] {
      const bool is_index = index->size() == 1 && index->begin()->second == 1 && index->begin()->first.size() == 1 &&
                            IsIndex(graph, index->begin()->first[0], axis);
      return (is_index || (index->empty() && IsOne(extent))) && *count == extent;
    };
    for (bool whole = false; !whole; whole = is_whole()) {
      const std::size_t d = part_of.size();
      if (d == from.size()) return std::nullopt;
      const Form part = extent_of(from[d]);
      index = PositionForms::Product(*index, part);
      if (index) index = PositionForms::Sum(*index, forms->Within(gather.shape, forms->FormOf(gather.inputs[d + 1])));
      count = PositionForms::Product(*count, part);
      if (!index || !count) return std::nullopt;
      part_of.push_back(static_cast<int>(axis));
    }
  }
  for (; part_of.size() < from.size(); part_of.push_back(part_of.back()))
    if (part_of.empty() || !IsOne(extent_of(from[part_of.size()]))) return std::nullopt;
  return part_of;
}

bool IsReshape(const Graph& graph, const Node& gather, PositionForms* forms) {
  if (gather.guarded) return false;
  const auto within = [&](Form form) { return forms->Within(gather.shape, std::move(form)); };
  const auto place = [&](const PartialShape& shape, const auto& position) {
    std::optional<Form> sum = Form{};
    for (std::size_t d = 0; d < shape.size() && sum; ++d) {
      sum = PositionForms::Product(*sum, within(forms->FormOf(shape[d])));
      if (sum) sum = PositionForms::Sum(*sum, position(d));
    }
    return sum;
  };
  const auto from = place(graph.node(gather.inputs[0]).shape,
                          [&](std::size_t d) { return within(forms->FormOf(gather.inputs[d + 1])); });
  if (!from) return false;
  std::vector<Form> index(gather.shape.size());
  for (const auto& [factors, count] : *from)
    for (const int factor : factors)
      if (factor >= 0 && graph.node(factor).kind == Kind::kIndex)
        index[static_cast<std::size_t>(graph.node(factor).axes[0])] = {{{factor}, 1}};
  const auto to = place(gather.shape, [&](std::size_t d) { return index[d]; });
  for (std::size_t d = 0; d < gather.shape.size(); ++d)
    if (index[d].empty() && !graph.SameDimension(gather.shape[d], Dimension(1))) return false;
  return to && *to == *from;
}

std::optional<SameParts> PartsOfReshape(const Graph& graph, const Node& gather, PositionForms* forms) {
  const PartialShape &from = graph.node(gather.inputs[0]).shape, &to = gather.shape;
  if (gather.kind != Kind::kGather || from.size() == 0 || to.size() == 0 ||
      std::max(from.size(), to.size()) > kMostDimensions || !IsReshape(graph, gather, forms))
    return std::nullopt;
  // The products of a dimension and those behind it, from the last one of a part on.
  const auto products = [&](const PartialShape& shape, std::size_t end) {
    std::vector<Form> all;
    std::optional<Form> product = PositionForms::Number(1);
    while (end-- > 0) {
      product = PositionForms::Product(*product, forms->Within(to, forms->FormOf(shape[end])));
      if (!product) break;
      all.push_back(*product);
    }
    return all;
  };
  SameParts parts;
  for (std::size_t i = from.size(), j = to.size(); i > 0;) {
    std::size_t of_source = i, of_result = j;  // all that is left
    const std::vector<Form> source = products(from, i), result = products(to, j);
    for (std::size_t k = 0; k + 1 < i && k < source.size(); ++k) {
      const auto same = std::find(result.begin(), result.end(), source[k]);
      const auto count = static_cast<std::size_t>(same - result.begin()) + 1;
      if (same == result.end() || count == j) continue;
      of_source = k + 1, of_result = count;
      break;
    }
    for (std::size_t k = 1; k < of_source; ++k) parts.source |= std::uint32_t{1} << (i - k);
    for (std::size_t k = 1; k < of_result; ++k) parts.result |= std::uint32_t{1} << (j - k);
    i -= of_source, j -= of_result;
  }
  return parts;
}

bool IsJoinedInMemory(const Graph& graph, int id, PositionForms* forms) {
  const Node& node = graph.node(id);
  if (node.kind != Kind::kGather || graph.node(node.inputs[0]).kind == Kind::kInput) return false;
  const auto is_output = [&](int value) {
    return std::any_of(graph.outputs().begin(), graph.outputs().end(),
                       [value](const Output& output) { return output.node == value; });
  };
  int readers = 0;
  bool products = true;
  const std::function<void(int)> look = [&](int value) {
    for (std::size_t k = 0; k < graph.nodes().size(); ++k) {
      const Node& reader = graph.nodes()[k];
      if (std::find(reader.inputs.begin(), reader.inputs.end(), value) == reader.inputs.end()) continue;
      ++readers;
      if (reader.kind == Kind::kTranspose && !is_output(static_cast<int>(k))) look(static_cast<int>(k));
      else products = products && reader.kind == Kind::kDot;
    }
  };
  look(id);
  const bool in_memory = is_output(id) ? readers == 0 : readers > 0 && products && !is_output(node.inputs[0]);
  return in_memory && PartsOfResult(graph, node, forms);
}

}  // namespace umbra::graph
