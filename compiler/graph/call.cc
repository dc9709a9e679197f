#include "compiler/graph/call.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "compiler/graph/index_map.h"
#include "compiler/graph/op.h"
#include "umbra/error.h"

namespace umbra::graph {

namespace {

constexpr CallInfo kCalls[] = {
    {"broadcast<axis>(v, like)",
     "the vector v along dimension axis of the shape of like, or, of broadcast<axis>(v), of a shape that follows from its use; a matrix along axis and the next one, or along two, broadcast<0, 2>(m)"},
    {"reduce_with_axis<R>(x, axis)",
     "x without dimension axis, joined by R: sum, maximum, minimum, product or mean; argmax and argmin give the position (i64) of the first extreme, a NaN counting as one"},
    {"reduce_keepdim<R>(x, axis)", "the same with extent 1 left in its place"},
    {"sum_rows(x)", "sum over dimension 0"},
    {"sumall_except_dim<axis>(x)", "sum over all dimensions but axis"},
    {"transpose<axes...>(x)", "dimensions in the order of axes; transpose(x) and x.T reverse them"},
    {"dot(a, b)", "matrix product; of vectors the outer product"},
    {"batch_dot(a, b)",
     "matrix products of two batches of matrices, [batch, rows, columns] each; transpose<0, 2, 1>(a) costs nothing"},
    {"tcast<dtype>(x)", "conversion"},
    {"extent<axis>(x)", "the extent of x along an axis, a number (i64)"},
    {"uniform(x, key, first)",
     "random numbers in [0, 1) of the shape and dtype (f32, f64) of x: element i, counted row by row, is number first + i of the sequence of key; both are whole numbers"},
    {"gaussian(x, key, first)", "the same, standard normal"},
};

constexpr MapName kMapNames[] = {
    {"mirror(x)", "flip(x, the last axis)"},
    {"slice(x, begin, end)", "slice_ex(x, begin..., end..., 1...)"},
    {"broadcast_to(x, shape)", "broadcast_multi_axes(x, each axis of another extent and that, ...)"},
    {"transpose(x, axes)", "permute(x, axes...)"},
    {"range(start, stop, step, repeat)", "steps(ceil((stop - start) / step), repeat) * step + start"},
    {"complex_abs(z)", "sqrt(complex_abs_square(z))"},
};

// Insertions, deletions, replacements and swaps of neighbours that make `b` of `a`.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before = row;
    row.swap(next);
  }
  return row[b.size()];
}

// What a text may have meant by `name`: the call whose name it begins, or to which a third of its letters lead. Empty
// if there is none.
std::string Nearest(std::string_view name) {
  if (name == "min") return "minimum";  // and no minus
  std::string nearest;
  std::size_t best = name.size() / 3 + 1;
  const auto weigh = [&](std::string_view candidate, std::string_view meant) {
    const bool begins = name.size() >= 3 && candidate.starts_with(name);
    const std::size_t distance = candidate == name ? 0 : begins ? 1 : EditDistance(name, candidate);
    if (distance >= best) return;
    best = distance;
    nearest = meant;
  };
  for (std::string_view reducer : {"sum", "product", "mean", "argmax", "argmin"})
    weigh(reducer, detail::Concat("reduce_with_axis<", reducer, ">(x, axis)"));
  for (std::string_view candidate : OperatorNames()) weigh(candidate, candidate);
  for (const CallInfo& call : Calls()) weigh(call.name(), call.form);
  for (const IndexMapInfo& map : IndexMaps()) weigh(map.form.substr(0, map.form.find_first_of("<(")), map.form);
  return nearest;
}

// What other libraries have by these names.
constexpr std::pair<std::string_view, std::string_view> kForeignNames[] = {
    {"where", "select(condition, a, b) or condition ? a : b"},
    {"log10", "log2(x) * 0.30102999566"},
    {"hypot", "sqrt(x * x + y * y)"},
    {"roll", "concat(...) of the two slices that change places"},
    {"stack", "concat(a, b, axis) of operands that reshape(...) has given an axis of 1"},
    {"zeros_like", "0 * x"},
    {"cumsum", "scan<sum>(x, axis)"},
    {"cumprod", "scan<product>(x, axis)"},
    {"cummax", "scan<maximum>(x, axis)"},
    {"cummin", "scan<minimum>(x, axis)"},
    {"softmax",
     "e / broadcast<0>(reduce_with_axis<sum>(e, 1)), of e = exp(x - broadcast<0>(reduce_with_axis<maximum>(x, 1)))"},
    {"norm", "sqrt(reduce_with_axis<sum>(x * x, axis))"},
    {"matmul", "dot(a, b), or batch_dot(a, b)"},
    {"einsum", "dot(a, b), batch_dot(a, b), or a sum of broadcasts"},
    {"arange", "steps(count, 1)"},
    {"cast", "tcast<dtype>(x)"},
    {"astype", "tcast<dtype>(x)"},
};

}  // namespace

std::span<const CallInfo> Calls() { return kCalls; }

const CallInfo* FindCall(std::string_view name) {
  for (const CallInfo& call : kCalls)
    if (call.name() == name) return &call;
  return nullptr;
}

std::span<const MapName> MapNames() { return kMapNames; }

std::string UnknownOperator(std::string_view name) {
  for (const auto& [foreign, own] : kForeignNames)
    if (name == foreign) return detail::Concat("unknown operator '", name, "'; write ", own);
  const std::string nearest = Nearest(name);
  return detail::Concat("unknown operator '", name, nearest.empty() ? "'; `umbra ops` lists them" : "'; did you mean '",
                        nearest, nearest.empty() ? "" : "'?");
}

}  // namespace umbra::graph
