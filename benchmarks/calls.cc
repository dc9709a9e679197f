#include "calls.h"

#include <map>
#include <utility>
#include <vector>

#include "compiler/graph/graph.h"
#include "umbra/graph.h"
#include "umbra/tensor.h"

namespace bench {

using umbra::DType;
using umbra::index_t;
using umbra::runtime::TensorRef;

namespace {

const std::string kKernels = R"(
kernel triad(a: f32[n], b: f32[n], c: f32[n], s: f32) -> (y: f32[n]) { y = a * b + c * s }
kernel gelu_bias(a: f32[n, m], b: f32[n, m], bias: f32[m]) -> (y: f32[n, m]) {
  y = gelu(a * b + broadcast<1>(bias))
}
kernel softmax(x: f32[n, m]) -> (y: f32[n, m]) {
  e = exp(x - broadcast<0>(reduce_with_axis<maximum>(x, 1)))
  y = e * broadcast<0>(1 / reduce_with_axis<sum>(e, 1))
}
kernel layernorm(x: f32[n, m], inverse: f32) -> (y: f32[n, m]) {
  mean = reduce_with_axis<sum>(x, 1) * inverse
  c = x - broadcast<0>(mean)
  variance = reduce_with_axis<sum>(c * c, 1) * inverse
  y = c * broadcast<0>(rsqrt(variance + 1e-5))
}
kernel channels(x: f32[n, c, s], inverse: f32) -> (mean: f32[c], variance: f32[c]) {
  mean = sumall_except_dim<1>(x) * inverse
  d = x - broadcast<1>(mean, x)
  variance = sumall_except_dim<1>(d * d) * inverse
}
kernel adam(p: f32[n], m: f32[n], v: f32[n], g: f32[n], rate: f32, beta1: f32, beta2: f32, epsilon: f32)
    -> (p1: f32[n], m1: f32[n], v1: f32[n]) {
  m1 = m * beta1 + g * (1 - beta1)
  v1 = v * beta2 + g * g * (1 - beta2)
  p1 = p - m1 * rate / (sqrt(v1) + epsilon)
}
op normal_cdf(x) = 0.5 + 0.5 * erf(x * 0.70710678)
kernel black_scholes(spot: f32[n], strike: f32[n], time: f32[n], rate: f32, volatility: f32) -> (call: f32[n]) {
  spread = sqrt(time) * volatility
  d1 = (log(spot / strike) + time * (rate + 0.5 * volatility * volatility)) / spread
  call = spot * normal_cdf(d1) - strike * exp(time * -rate) * normal_cdf(d1 - spread)
}
kernel log_sum_exp(x: f32[n, m]) -> (y: f32[n]) {
  most = reduce_with_axis<maximum>(x, 1)
  y = most + log(reduce_with_axis<sum>(exp(x - broadcast<0>(most)), 1))
}
kernel softmax_gradient(y: f32[n, m], g: f32[n, m]) -> (dx: f32[n, m]) {
  dx = y * (g - broadcast<0>(reduce_with_axis<sum>(y * g, 1)))
}
kernel layernorm_gradient(x: f32[n, m], g: f32[n, m], mean: f32[n], variance: f32[n], inverse: f32)
    -> (dx: f32[n, m]) {
  scale = broadcast<0>(rsqrt(variance + 1e-5))
  normal = (x - broadcast<0>(mean)) * scale
  total = reduce_with_axis<sum>(g, 1) * inverse
  product = reduce_with_axis<sum>(g * normal, 1) * inverse
  dx = scale * (g - broadcast<0>(total) - normal * broadcast<0>(product))
}
kernel patches(x: f32[n, c, h, w]) -> (y: f32[p, q]) { y = unpack_patch2col(x, 3, 3, 1, 1, 1, 1) }
kernel max_pool(x: f32[n, c, h, w]) -> (y: f32[n, c, p, q]) { y = pool<maximum>(x, 2, 2, 2, 2) }
kernel max_unpool(x: f32[n, c, h, w], y: f32[n, c, p, q], g: f32[n, c, p, q]) -> (dx: f32[n, c, h, w]) {
  dx = unpool<maximum>(x, y, g, 2, 2, 2, 2)
}
kernel max_unpool_by_2(x: f32[n, c, h, w], y: f32[n, c, p, q], g: f32[n, c, p, q]) -> (dx: f32[n, c, h, w]) {
  dx = unpool<maximum>(x, y, g, 3, 3, 2, 2)
}
kernel opaque(x: f32[n, c], alpha: f32[n, d]) -> (y: f32[n, ?]) { y = concat(flip(x, 1), alpha, 1) }
kernel complex_product(a: f32[n], b: f32[n]) -> (y: f32[n]) { y = complex_mul_cc(a, b) }
kernel concat_four(a: f32[n, m], b: f32[n, m], c: f32[n, m], d: f32[n, m]) -> (y: f32[n, p]) {
  y = concat(concat(a, b, 1), concat(c, d, 1), 1)
}
kernel take_rows(index: f32[n], x: f32[k, m]) -> (y: f32[n, m]) { y = take(index, x) }
kernel mixed(a: f16[n], b: f32[n], c: f16[n]) -> (y: f32[n]) { y = tcast<f32>(a) * b + tcast<f32>(c) }
kernel saxpy8(x: i8[n], y: i8[n], s: i32) -> (z: i8[n]) { z = x * s + y }
kernel planes(x: u8[n, c], scale: f32[c]) -> (y: f32[c, n]) { y = tcast<f32>(x.T) * broadcast<0>(scale) }
kernel dense(x: f32[n, k], w: f32[k, m], bias: f32[m]) -> (y: f32[n, m]) {
  y = relu(dot(x, w) + broadcast<1>(bias))
}
kernel quantized(x: f32[n, k], w: i8[k, m], scale: f32[m]) -> (y: f32[n, m]) {
  y = dot(x, tcast<f32>(w) * broadcast<1>(scale))
}
kernel scores(q: f32[b, n, i], k: f32[b, m, i], s: f32) -> (y: f32[b, n, m]) {
  y = s * batch_dot(q, swapaxis(k, 1, 2))
}
kernel transposed(a: f32[n, m], b: f32[m, n]) -> (y: f32[m, n]) {
  y = a.T * 2 + b
}
)";

std::string SumKernel() {
  std::string operands, sum;
  for (int k = 0; k < Sum500::kInputs; ++k) {
    operands += (k > 0 ? ", x" : "x") + std::to_string(k) + ": f32[n]";
    sum += (k > 0 ? " + x" : "x") + std::to_string(k);
  }
  return "kernel sum500(" + operands + ") -> (y: f32[n]) { y = " + sum + " }";
}

template <typename T>
TensorRef Ref(const T* p, std::vector<index_t> shape) {
  return TensorRef::Dense(const_cast<T*>(p), umbra::DTypeOf<T>::value, std::move(shape));
}

umbra_scalar Number(float value) {
  umbra_scalar scalar;
  scalar.f32 = value;
  return scalar;
}

std::shared_ptr<const umbra::graph::Graph> Named(const std::string& name) {
  static const auto graphs = [] {
    std::map<std::string, std::shared_ptr<const umbra::graph::Graph>> named;
    for (const auto& graph : umbra::graph::ParseText(kKernels + SumKernel(), "suite"))
      named.emplace(graph->name(), graph);
    return named;
  }();
  return graphs.at(name);
}

Call Make(const std::string& kernel, umbra::runtime::Arguments arguments) {
  return {Named(kernel), std::move(arguments)};
}

}  // namespace

Call CallOf(const Triad& d) {
  return Make("triad", {{Ref(d.a, {d.n}), Ref(d.b, {d.n}), Ref(d.c, {d.n})}, {Ref(d.out, {d.n})}, {Number(d.s)}});
}

Call CallOf(const Gelu& d) {
  return Make("gelu_bias", {{Ref(d.a, {d.rows, d.columns}), Ref(d.b, {d.rows, d.columns}), Ref(d.bias, {d.columns})},
                            {Ref(d.out, {d.rows, d.columns})},
                            {}});
}

Call CallOf(const Softmax& d) {
  return Make("softmax", {{Ref(d.x, {d.rows, d.columns})}, {Ref(d.out, {d.rows, d.columns})}, {}});
}

Call CallOf(const LayerNorm& d) {
  return Make("layernorm", {{Ref(d.x, {d.rows, d.columns})},
                            {Ref(d.out, {d.rows, d.columns})},
                            {Number(1.0f / static_cast<float>(d.columns))}});
}

Call CallOf(const Channels& d) {
  return Make("channels", {{Ref(d.x, {d.n, d.c, d.hw})},
                           {Ref(d.mean, {d.c}), Ref(d.variance, {d.c})},
                           {Number(1.0f / static_cast<float>(d.n * d.hw))}});
}

Call CallOf(const Adam& d) {
  return Make("adam", {{Ref(d.p, {d.n}), Ref(d.m, {d.n}), Ref(d.v, {d.n}), Ref(d.g, {d.n})},
                       {Ref(d.p, {d.n}), Ref(d.m, {d.n}), Ref(d.v, {d.n})},
                       {Number(d.rate), Number(d.beta1), Number(d.beta2), Number(d.epsilon)}});
}

Call CallOf(const Options& d) {
  return Make("black_scholes", {{Ref(d.spot, {d.n}), Ref(d.strike, {d.n}), Ref(d.time, {d.n})},
                                {Ref(d.call, {d.n})},
                                {Number(d.rate), Number(d.volatility)}});
}

Call CallOf(const Dense& d) {
  return Make("dense", {{Ref(d.x, {d.rows, d.inner}), Ref(d.w, {d.inner, d.columns}), Ref(d.bias, {d.columns})},
                        {Ref(d.out, {d.rows, d.columns})},
                        {}});
}

Call CallOf(const Scores& d) {
  return Make("scores", {{Ref(d.q, {d.batch, d.rows, d.inner}), Ref(d.k, {d.batch, d.columns, d.inner})},
                         {Ref(d.out, {d.batch, d.rows, d.columns})},
                         {Number(d.scale)}});
}

Call CallOf(const Transpose& d) {
  return Make("transposed", {{Ref(d.a, {d.n, d.n}), Ref(d.b, {d.n, d.n})}, {Ref(d.out, {d.n, d.n})}, {}});
}

Call CallOf(const LogSumExp& d) {
  return Make("log_sum_exp", {{Ref(d.x, {d.rows, d.columns})}, {Ref(d.out, {d.rows})}, {}});
}

Call CallOf(const SoftmaxGradient& d) {
  return Make("softmax_gradient",
              {{Ref(d.y, {d.rows, d.columns}), Ref(d.g, {d.rows, d.columns})}, {Ref(d.out, {d.rows, d.columns})}, {}});
}

Call CallOf(const LayerNormGradient& d) {
  return Make("layernorm_gradient", {{Ref(d.x, {d.rows, d.columns}), Ref(d.g, {d.rows, d.columns}),
                                      Ref(d.mean, {d.rows}), Ref(d.variance, {d.rows})},
                                     {Ref(d.out, {d.rows, d.columns})},
                                     {Number(1.0f / static_cast<float>(d.columns))}});
}

Call CallOf(const Patches& d) {
  return Make("patches", {{Ref(d.x, {d.n, d.c, d.h, d.w})}, {Ref(d.out, {d.c * 9, d.n * (d.h - 2) * (d.w - 2)})}, {}});
}

Call CallOf(const MaxPool& d) {
  return Make("max_pool", {{Ref(d.x, {d.n, d.c, d.h, d.w})}, {Ref(d.out, {d.n, d.c, d.h / 2, d.w / 2})}, {}});
}

Call CallOf(const Unpool& d) {
  return Make("max_unpool", {{Ref(d.x, {d.n, d.c, d.h, d.w}), Ref(d.pooled, {d.n, d.c, d.h / 2, d.w / 2}),
                              Ref(d.g, {d.n, d.c, d.h / 2, d.w / 2})},
                             {Ref(d.out, {d.n, d.c, d.h, d.w})},
                             {}});
}

Call CallOf(const Overlapping& d) {
  const std::vector<index_t> picture{d.n, d.c, d.h, d.w}, windows{d.n, d.c, d.Windows(d.h), d.Windows(d.w)};
  return Make("max_unpool_by_2",
              {{Ref(d.x, picture), Ref(d.pooled, windows), Ref(d.g, windows)}, {Ref(d.out, picture)}, {}});
}

Call CallOf(const Opaque& d) {
  return Make("opaque", {{Ref(d.x, {d.n, 3}), Ref(d.alpha, {d.n, 1})}, {Ref(d.out, {d.n, 4})}, {}});
}

Call CallOf(const ComplexProduct& d) {
  return Make("complex_product", {{Ref(d.a, {2 * d.n}), Ref(d.b, {2 * d.n})}, {Ref(d.out, {2 * d.n})}, {}});
}

Call CallOf(const Concat& d) {
  std::vector<TensorRef> inputs;
  for (const float* x : d.x) inputs.push_back(Ref(x, {d.rows, d.columns}));
  return Make("concat_four", {inputs, {Ref(d.out, {d.rows, d.columns * 4})}, {}});
}

Call CallOf(const Take& d) {
  return Make("take_rows",
              {{Ref(d.index, {d.count}), Ref(d.x, {d.rows, d.columns})}, {Ref(d.out, {d.count, d.columns})}, {}});
}

Call CallOf(const Mixed& d) {
  const auto half = [&](const std::uint16_t* p) {
    return TensorRef::Dense(const_cast<std::uint16_t*>(p), DType::kFloat16, {d.n});
  };
  return Make("mixed", {{half(d.a), Ref(d.b, {d.n}), half(d.c)}, {Ref(d.out, {d.n})}, {}});
}

Call CallOf(const Quantized& d) {
  return Make("quantized", {{Ref(d.x, {d.rows, d.inner}), Ref(d.w, {d.inner, d.columns}), Ref(d.scale, {d.columns})},
                            {Ref(d.out, {d.rows, d.columns})},
                            {}});
}

Call CallOf(const Saxpy8& d) {
  umbra_scalar s;
  s.i32 = d.s;
  return Make("saxpy8", {{Ref(d.x, {d.n}), Ref(d.y, {d.n})}, {Ref(d.out, {d.n})}, {s}});
}

Call CallOf(const Planes& d) {
  return Make("planes", {{Ref(d.x, {d.n, Planes::kChannels}), Ref(d.scale, {Planes::kChannels})},
                         {Ref(d.out, {Planes::kChannels, d.n})},
                         {}});
}

Call CallOf(const Sum500& d) {
  std::vector<TensorRef> inputs;
  for (int k = 0; k < Sum500::kInputs; ++k) inputs.push_back(Ref(d.x[k], {d.n}));
  return Make("sum500", {inputs, {Ref(d.out, {d.n})}, {}});
}

Call CallOf(const AdamSteps& d) {
  std::string inputs, outputs, body;
  umbra::runtime::Arguments arguments;
  for (std::size_t k = 0; k < d.of.size(); ++k) {
    const std::string id = std::to_string(k), type = ": f32[n" + id + "]";
    for (const char* name : {"p", "m", "v", "g"}) inputs += name + id + type + ", ";
    for (const char* name : {"np", "nm", "nv"}) outputs += (outputs.empty() ? "" : ", ") + (name + id) + type;
    body += "  nm" + id + " = m" + id + " * beta1 + g" + id + " * (1 - beta1)\n  nv" + id + " = v" + id +
            " * beta2 + g" + id + " * g" + id + " * (1 - beta2)\n  np" + id + " = p" + id + " - nm" + id +
            " * rate / (sqrt(nv" + id + ") + epsilon)\n";
    const umbra::runtime::Arguments one = CallOf(d.of[k]).arguments;
    arguments.inputs.insert(arguments.inputs.end(), one.inputs.begin(), one.inputs.end());
    arguments.outputs.insert(arguments.outputs.end(), one.outputs.begin(), one.outputs.end());
    arguments.scalars = one.scalars;
  }
  return {umbra::graph::ParseText("kernel update(" + inputs + "rate: f32, beta1: f32, beta2: f32, epsilon: f32) -> (" +
                                  outputs + ") {\n" + body + "}")[0],
          arguments};
}

}  // namespace bench
