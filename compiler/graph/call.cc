#include "compiler/graph/call.h"

namespace umbra::graph {

namespace {

constexpr CallInfo kCalls[] = {
  {"broadcast<axis>(v, like)", "the vector v along dimension axis of the shape of like, or, of broadcast<axis>(v), of a shape that follows from its use"},
  {"reduce_with_axis<R>(x, axis)", "x without dimension axis, joined by R: sum, maximum, minimum, product or mean; argmax and argmin give the position (i64) of the first extreme, a NaN counting as one"},
  {"reduce_keepdim<R>(x, axis)", "the same with extent 1 left in its place"},
  {"sum_rows(x)", "sum over dimension 0"},
  {"sumall_except_dim<axis>(x)", "sum over all dimensions but axis"},
  {"transpose<axes...>(x)", "dimensions in the order of axes; transpose(x) and x.T reverse them"},
  {"dot(a, b)", "matrix product; of vectors the outer product"},
  {"batch_dot(a, b)", "matrix products of two batches of matrices, [batch, rows, columns] each; transpose<0, 2, 1>(a) costs nothing"},
  {"tcast<dtype>(x)", "conversion"},
  {"extent<axis>(x)", "the extent of x along an axis, a number (i64)"},
  {"uniform(x, key, first)", "random numbers in [0, 1) of the shape and dtype (f32, f64) of x: element i, counted row by row, is number first + i of the sequence of key; both are whole numbers"},
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

}  // namespace

std::span<const CallInfo> Calls() { return kCalls; }

const CallInfo* FindCall(std::string_view name) {
  for (const CallInfo& call : kCalls)
    if (call.name() == name) return &call;
  return nullptr;
}

std::span<const MapName> MapNames() { return kMapNames; }

}  // namespace umbra::graph
