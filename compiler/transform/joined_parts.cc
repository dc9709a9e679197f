#include "compiler/transform/joined_parts.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace umbra::graph {

namespace {

using Kind = Node::Kind;
using Form = PositionForms::Form;

// Elements of a part that follow each other in memory, at least: what is written in shorter pieces fills no packets.
constexpr index_t kLongPiece = 64;
// Values that are joined, one nested in the other.
constexpr int kMostParts = 64;
// Values of a part that are looked at.
constexpr std::size_t kFewNodes = 64;
// Of extents that are sums of sums.
constexpr int kMostSums = 16;

bool IsOne(const Graph& graph, const Dimension& dim) {
  const Dimension known = graph.Known(dim);
  return known.is_static() && static_cast<index_t>(known) == 1;
}

// The dimensions of the shapes that are the same ones, in order, if none is left but those of 1.
std::optional<std::vector<std::pair<std::size_t, std::size_t>>> Alike(const Graph& graph, const PartialShape& a,
                                                                      const PartialShape& b) {
  std::vector<std::pair<std::size_t, std::size_t>> same;
  std::size_t k = 0;
  const auto skip = [&] {
    while (k < b.size() && IsOne(graph, b[k])) ++k;
  };
  for (std::size_t d = 0; d < a.size(); ++d) {
    if (IsOne(graph, a[d])) continue;
    skip();
    if (k == b.size() || !graph.SameDimension(a[d], b[k])) return std::nullopt;
    same.emplace_back(d, k++);
  }
  skip();
  return k == b.size() ? std::optional(same) : std::nullopt;
}

// Is it the position along dimension `dim` of `shape`, beside which those along dimensions of 1 are nothing?
bool IsAlong(const Graph& graph, const PositionForms::Form& form, std::size_t dim, const PartialShape& shape) {
  bool found = false;
  for (const auto& [factors, count] : form) {
    const auto is_nothing = [&](int factor) {
      return factor >= 0 && graph.node(factor).kind == Kind::kIndex &&
             IsOne(graph, shape[static_cast<std::size_t>(graph.node(factor).axes[0])]);
    };
    if (std::any_of(factors.begin(), factors.end(), is_nothing)) continue;
    const bool is_index = factors.size() == 1 && factors[0] >= 0 && graph.node(factors[0]).kind == Kind::kIndex;
    if (found || !is_index || count != 1 || graph.node(factors[0]).axes[0] != static_cast<int>(dim)) return false;
    found = true;
  }
  return found;
}

// The value that it is, with or without dimensions of 1.
int WithoutReshapes(const Graph& graph, int id, PositionForms* forms) {
  const Node& node = graph.node(id);
  if (node.kind != Kind::kBroadcast && (node.kind != Kind::kGather || node.guarded)) return id;
  const auto same = Alike(graph, node.shape, graph.node(node.inputs[0]).shape);
  const auto is_there = [&](const auto& dims) {
    return node.kind == Kind::kBroadcast
               ? node.axes[dims.first] == static_cast<int>(dims.second)
               : IsAlong(graph, forms->FormOf(node.inputs[dims.second + 1]), dims.first, node.shape);
  };
  return same && std::all_of(same->begin(), same->end(), is_there) ? WithoutReshapes(graph, node.inputs[0], forms) : id;
}

class Parts {
 public:
  Parts(const Graph& graph, int id, PositionForms* forms) : graph_(graph), join_(graph.node(id)), forms_(*forms) {}

  // Adds those of a node that chooses by the index along one dimension, or of one that reads the next.
  bool Add(int id, int depth = kMostParts) {
    const Node& node = graph_.node(id);
    if (depth == 0) return false;
    if (node.kind == Kind::kGather) return node.dtype == join_.dtype && AddPart(id);
    if (node.kind == Kind::kCast) return IsOfNarrow(node) && Add(node.inputs[0], depth - 1);
    if (node.kind != Kind::kMap || node.op != Op::select) return false;
    const Node& condition = graph_.node(node.inputs[0]);
    if (condition.kind != Kind::kMap || condition.op != Op::lt) return false;
    const Node& index = graph_.node(condition.inputs[0]);
    if (index.kind != Kind::kIndex || (dim_ >= 0 && index.axes[0] != dim_)) return false;
    dim_ = index.axes[0];
    if (!Add(node.inputs[1], depth - 1) || Whole(forms_.FormOf(condition.inputs[1])) != end_) return false;
    return graph_.node(node.inputs[2]).kind == Kind::kConstant || Add(node.inputs[2], depth - 1);  // what no index has
  }

  std::vector<JoinedPart> Take() {
    bool whole = dim_ >= 0 && end_ == Whole(forms_.FormOf(join_.shape[static_cast<std::size_t>(dim_)]));
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      const Node& gather = graph_.node(parts_[k].gather);
      whole = whole && (!gather.guarded || Holds(gather.inputs.back(), k));
    }
    const auto is_computed = [this](const JoinedPart& part) {
      const Kind kind = graph_.node(WithoutReshapes(graph_, part.source, &forms_)).kind;
      return kind != Kind::kInput && kind != Kind::kGather;
    };
    whole = whole && std::any_of(parts_.begin(), parts_.end(), is_computed);
    return whole ? std::move(parts_) : std::vector<JoinedPart>();
  }

 private:
  // Narrow elements are chosen as what they are computed in, which holds each of them.
  bool IsOfNarrow(const Node& cast) const {
    const DType wide = ComputeType(join_.dtype), from = graph_.node(cast.inputs[0]).dtype;
    return wide != join_.dtype &&
           ((cast.dtype == wide && from == join_.dtype) || (cast.dtype == join_.dtype && from == wide));
  }

  bool AddPart(int id) {
    const Node& gather = graph_.node(id);
    const Node& source = graph_.node(gather.inputs[0]);
    const PartialShape& from = source.shape;
    if (dim_ < 0 || from.size() != join_.shape.size() || Divides(source) || !HasLongPieces(from)) return false;
    for (std::size_t d = 0; d < from.size(); ++d) {
      std::optional<Form> index = IndexOf(gather.inputs[d + 1], d);
      const bool along = static_cast<int>(d) == dim_;
      if (index && along) index = PositionForms::Sum(Whole(*index), end_);  // which it is behind
      if (!index || !index->empty() || !(along || graph_.SameDimension(from[d], join_.shape[d]))) return false;
    }
    const auto begin = AsDimension();
    const auto dim = static_cast<std::size_t>(dim_);
    const auto end = PositionForms::Sum(end_, forms_.FormOf(from[dim]));
    if (!begin || !end) return false;
    parts_.push_back({id, gather.inputs[0], dim_, *begin});
    end_ = Whole(*end);
    edges_.push_back(end_);
    return true;
  }

  // Does the condition hold for all of a part, as it asks for indices from where that or one before begins, or to where
  // that or one behind ends?
  bool Holds(int condition, std::size_t part) {
    const Node& node = graph_.node(condition);
    if (node.kind != Kind::kMap) return false;
    if (node.op == Op::logical_and) return Holds(node.inputs[0], part) && Holds(node.inputs[1], part);
    if (node.op != Op::lt && node.op != Op::ge) return false;
    const auto index = IndexOf(node.inputs[0], static_cast<std::size_t>(dim_));
    const auto less = index ? PositionForms::Product(*index, PositionForms::Number(-1)) : std::nullopt;
    const auto edge = less ? PositionForms::Sum(*less, forms_.FormOf(node.inputs[1])) : std::nullopt;
    if (!edge) return false;
    const auto first = edges_.begin() + static_cast<std::ptrdiff_t>(part) + 1;
    const auto begin = node.op == Op::lt ? first : edges_.begin(), end = node.op == Op::lt ? edges_.end() : first;
    return std::find(begin, end, Whole(*edge)) != end;
  }

  // Does it gather by quotients, as reshapes do? Where they are joined, packets may have other elements side by side.
  bool Divides(const Node& source) const {
    std::vector<int> open;
    if (source.kind == Kind::kGather) open.assign(source.inputs.begin() + 1, source.inputs.end());
    std::set<int> seen;
    while (!open.empty()) {
      const int id = open.back();
      open.pop_back();
      const Node& node = graph_.node(id);
      if (node.kind == Kind::kMap && node.op == Op::div) return true;
      if (seen.insert(id).second) open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
    return false;
  }

  bool HasLongPieces(const PartialShape& shape) const {
    index_t piece = 1;
    for (std::size_t d = static_cast<std::size_t>(dim_); d < shape.size() && piece < kLongPiece; ++d) {
      const Dimension known = graph_.Known(shape[d]);
      if (!known.is_static()) return true;
      piece *= static_cast<index_t>(known);
    }
    return dim_ == 0 || piece >= kLongPiece;
  }

  // The position less the index along the axis.
  std::optional<Form> IndexOf(int position, std::size_t axis) {
    Form form = forms_.FormOf(position);
    const auto index = std::find_if(form.begin(), form.end(), [&](const auto& term) {
      if (term.first.size() != 1 || term.first[0] < 0 || term.second != 1) return false;
      const Node& node = graph_.node(term.first[0]);
      return node.kind == Kind::kIndex && node.axes[0] == static_cast<int>(axis);
    });
    if (index == form.end()) return std::nullopt;
    form.erase(index);
    return form;
  }

  // Where the next part begins, if the graph has such an extent.
  std::optional<Dimension> AsDimension() {
    if (end_.empty()) return Dimension(0);
    if (end_.size() == 1 && end_.begin()->first.empty()) return Dimension(end_.begin()->second);
    const auto is_end = [&](const Dimension& dim) { return !dim.is_static() && Whole(forms_.FormOf(dim)) == end_; };
    for (const JoinedPart& part : parts_)
      if (const Dimension& dim = graph_.node(part.source).shape[static_cast<std::size_t>(dim_)]; is_end(dim))
        return dim;
    for (const Graph::Derived& derived : graph_.derived())
      if (is_end(derived.result)) return derived.result;
    return std::nullopt;
  }

  // With extents that are sums as these.
  Form Whole(const Form& form, int depth = kMostSums) {
    std::optional<Form> whole = Form{};
    for (const auto& [factors, count] : form) {
      const Form one{{factors, 1}};
      const auto term =
          PositionForms::Product(depth > 0 ? SumOf(factors, depth).value_or(one) : one, PositionForms::Number(count));
      if (whole && term) whole = PositionForms::Sum(*whole, *term);
      if (!whole || !term) return form;
    }
    return *whole;
  }

  std::optional<Form> SumOf(const PositionForms::Factors& factors, int depth) {
    if (factors.size() != 1 || factors[0] >= 0) return std::nullopt;
    for (const Graph::Derived& derived : graph_.derived()) {
      const Dimension known = graph_.Known(derived.result);
      if (derived.op.kind != ExtentOp::kPlus || known.is_static() || PositionForms::KeyOf(known.symbol()) != factors[0])
        continue;
      const auto sum = PositionForms::Sum(forms_.FormOf(derived.a), forms_.FormOf(derived.b));
      if (sum) return Whole(*sum, depth - 1);
    }
    return std::nullopt;
  }

  const Graph& graph_;
  const Node& join_;
  PositionForms& forms_;
  int dim_ = -1;
  Form end_;  // of the parts so far
  std::vector<Form> edges_{{}};  // where each part begins, and where the last one ends
  std::vector<JoinedPart> parts_;
};

// Are there two that read the same elements, neither of which has those of a row of the other beside its own?
bool ReadTheSame(const Graph& graph, const std::vector<JoinedPart>& parts, PositionForms* forms) {
  std::map<int, int> reader;  // the first part that reads a value
  for (int k = 0; k < static_cast<int>(parts.size()); ++k) {
    const JoinedPart& part = parts[static_cast<std::size_t>(k)];
    const PartialShape& shape = graph.node(part.source).shape;
    if (part.dim + 1 == static_cast<int>(shape.size())) return false;
    std::set<int> seen;
    std::vector<int> open{part.source};
    while (!open.empty() && seen.size() < kFewNodes) {
      const int id = open.back(), whole = WithoutReshapes(graph, id, forms);
      const Node &read = graph.node(id), &node = graph.node(whole);
      open.pop_back();
      if (!seen.insert(id).second) continue;
      const bool reads = read.kind == Kind::kInput || read.kind == Kind::kGather || read.kind == Kind::kReduce ||
                         read.kind == Kind::kScan;
      if (node.kind == Kind::kMap || node.kind == Kind::kCast)
        open.insert(open.end(), node.inputs.begin(), node.inputs.end());
      else if (reads && Alike(graph, read.shape, shape) && reader.try_emplace(id, k).first->second != k) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<JoinedPart> PartsOfJoin(const Graph& graph, int id, PositionForms* forms) {
  Parts parts(graph, id, forms);
  return parts.Add(id) ? parts.Take() : std::vector<JoinedPart>();
}

std::vector<bool> InMemory(const Graph& graph) {
  std::vector<bool> in_memory(graph.nodes().size());
  for (const Output& output : graph.outputs()) in_memory[static_cast<std::size_t>(output.node)] = true;
  for (const Node& node : graph.nodes()) {
    if (node.kind != Kind::kDot) continue;
    for (int factor : node.inputs) {
      while (graph.node(factor).kind == Kind::kTranspose) factor = graph.node(factor).inputs[0];
      in_memory[static_cast<std::size_t>(factor)] = true;
    }
  }
  return in_memory;
}

std::map<int, std::vector<JoinedPart>> JoinsInMemory(const Graph& graph, PositionForms* forms) {
  std::map<int, std::vector<JoinedPart>> joins;
  const std::vector<bool> in_memory = InMemory(graph);
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    if (!in_memory[static_cast<std::size_t>(id)]) continue;
    if (std::vector<JoinedPart> parts = PartsOfJoin(graph, id, forms); !parts.empty())
      joins.emplace(id, std::move(parts));
  }
  return joins;
}

std::set<int> GathersOfSharedParts(const Graph& graph) {
  PositionForms forms(graph);
  std::set<int> gathers;
  for (const auto& [id, parts] : JoinsInMemory(graph, &forms))
    if (ReadTheSame(graph, parts, &forms))
      for (const JoinedPart& part : parts) gathers.insert(part.gather);
  return gathers;
}

}  // namespace umbra::graph
