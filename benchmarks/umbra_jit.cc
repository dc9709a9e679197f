// The suite through the compiler. The triad is an expression with a call site of its own, as a
// host program would write it; the others are kernels in the text form, called with the same operands each time.
#include <map>
#include <string>
#include <utility>

#include "suite.h"
#include "umbra/jit.h"

namespace bench::umbra_jit {

using namespace umbra;
using runtime::TensorRef;

namespace {

int g_threads = 1;
Math g_math = Math::kStrict;

const std::string kKernels = R"(
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
kernel concat_four(a: f32[n, m], b: f32[n, m], c: f32[n, m], d: f32[n, m]) -> (y: f32[n, p]) {
  y = concat(concat(a, b, 1), concat(c, d, 1), 1)
}
kernel take_rows(index: f32[n], x: f32[k, m]) -> (y: f32[n, m]) { y = take(index, x) }
kernel mixed(a: f16[n], b: f32[n], c: f16[n]) -> (y: f32[n]) { y = tcast<f32>(a) * b + tcast<f32>(c) }
kernel saxpy8(x: i8[n], y: i8[n], s: i32) -> (z: i8[n]) { z = x * s + y }
kernel dense(x: f32[n, k], w: f32[k, m], bias: f32[m]) -> (y: f32[n, m]) {
  y = relu(dot(x, w) + broadcast<1>(bias))
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

const Function& Kernel(const std::string& name) {
  static std::map<Math, std::map<std::string, Function>> made;
  std::map<std::string, Function>& functions = made[g_math];
  if (functions.empty()) {
    CompileOptions options;
    options.math = g_math;
    for (const auto& graph : graph::ParseText(kKernels + SumKernel(), "suite")) {
      const Function function = Compile(graph, options);
      functions.emplace(function.program().name, function);
    }
  }
  return functions.at(name);
}

template <typename T>
TensorRef Ref(const T* p, std::vector<index_t> shape) {
  return TensorRef::Dense(const_cast<T*>(p), DTypeOf<T>::value, std::move(shape));
}

Prepared Prepare(const std::string& kernel, runtime::Arguments arguments) {
  return [&function = Kernel(kernel), arguments = std::move(arguments)] { function(arguments, {g_threads}); };
}

umbra_scalar Number(float value) {
  umbra_scalar scalar;
  scalar.f32 = value;
  return scalar;
}

void Assign(const Triad& d) {
  const Tensor<cpu, 1> a(const_cast<float*>(d.a), Shape1(d.n)), b(const_cast<float*>(d.b), Shape1(d.n)),
      c(const_cast<float*>(d.c), Shape1(d.n)), out(d.out, Shape1(d.n));
  jit(out) = a * b + c * d.s;
}

}  // namespace

void SetThreads(int threads) {
  g_threads = threads;
  runtime::CallSite::SetThreads(threads);
}

Prepared Run(const Triad& d) {
  return [d] { Assign(d); };
}

Prepared Run(const Gelu& d) {
  return Prepare("gelu_bias", {{Ref(d.a, {d.rows, d.columns}), Ref(d.b, {d.rows, d.columns}), Ref(d.bias, {d.columns})},
                               {Ref(d.out, {d.rows, d.columns})}, {}});
}

Prepared Run(const Softmax& d) {
  return Prepare("softmax", {{Ref(d.x, {d.rows, d.columns})}, {Ref(d.out, {d.rows, d.columns})}, {}});
}

Prepared Run(const LayerNorm& d) {
  return Prepare("layernorm", {{Ref(d.x, {d.rows, d.columns})}, {Ref(d.out, {d.rows, d.columns})},
                               {Number(1.0f / static_cast<float>(d.columns))}});
}

Prepared Run(const Channels& d) {
  return Prepare("channels", {{Ref(d.x, {d.n, d.c, d.hw})}, {Ref(d.mean, {d.c}), Ref(d.variance, {d.c})},
                              {Number(1.0f / static_cast<float>(d.n * d.hw))}});
}

Prepared Run(const Adam& d) {
  return Prepare("adam", {{Ref(d.p, {d.n}), Ref(d.m, {d.n}), Ref(d.v, {d.n}), Ref(d.g, {d.n})},
                          {Ref(d.p, {d.n}), Ref(d.m, {d.n}), Ref(d.v, {d.n})},
                          {Number(d.rate), Number(d.beta1), Number(d.beta2), Number(d.epsilon)}});
}

Prepared Run(const Options& d) {
  return Prepare("black_scholes", {{Ref(d.spot, {d.n}), Ref(d.strike, {d.n}), Ref(d.time, {d.n})},
                                   {Ref(d.call, {d.n})}, {Number(d.rate), Number(d.volatility)}});
}

Prepared Run(const Dense& d) {
  return Prepare("dense", {{Ref(d.x, {d.rows, d.inner}), Ref(d.w, {d.inner, d.columns}), Ref(d.bias, {d.columns})},
                           {Ref(d.out, {d.rows, d.columns})}, {}});
}

Prepared Run(const Transpose& d) {
  return Prepare("transposed", {{Ref(d.a, {d.n, d.n}), Ref(d.b, {d.n, d.n})}, {Ref(d.out, {d.n, d.n})}, {}});
}

Prepared Run(const LogSumExp& d) {
  return Prepare("log_sum_exp", {{Ref(d.x, {d.rows, d.columns})}, {Ref(d.out, {d.rows})}, {}});
}

Prepared Run(const SoftmaxGradient& d) {
  return Prepare("softmax_gradient", {{Ref(d.y, {d.rows, d.columns}), Ref(d.g, {d.rows, d.columns})},
                                      {Ref(d.out, {d.rows, d.columns})}, {}});
}

Prepared Run(const LayerNormGradient& d) {
  return Prepare("layernorm_gradient", {{Ref(d.x, {d.rows, d.columns}), Ref(d.g, {d.rows, d.columns}), Ref(d.mean, {d.rows}),
                                         Ref(d.variance, {d.rows})},
                                        {Ref(d.out, {d.rows, d.columns})},
                                        {Number(1.0f / static_cast<float>(d.columns))}});
}

Prepared Run(const Patches& d) {
  return Prepare("patches", {{Ref(d.x, {d.n, d.c, d.h, d.w})}, {Ref(d.out, {d.c * 9, d.n * (d.h - 2) * (d.w - 2)})}, {}});
}

Prepared Run(const MaxPool& d) {
  return Prepare("max_pool", {{Ref(d.x, {d.n, d.c, d.h, d.w})}, {Ref(d.out, {d.n, d.c, d.h / 2, d.w / 2})}, {}});
}

Prepared Run(const Unpool& d) {
  return Prepare("max_unpool", {{Ref(d.x, {d.n, d.c, d.h, d.w}), Ref(d.pooled, {d.n, d.c, d.h / 2, d.w / 2}),
                                 Ref(d.g, {d.n, d.c, d.h / 2, d.w / 2})},
                                {Ref(d.out, {d.n, d.c, d.h, d.w})}, {}});
}

Prepared Run(const Concat& d) {
  std::vector<TensorRef> inputs;
  for (const float* x : d.x) inputs.push_back(Ref(x, {d.rows, d.columns}));
  return Prepare("concat_four", {inputs, {Ref(d.out, {d.rows, d.columns * 4})}, {}});
}

Prepared Run(const Take& d) {
  return Prepare("take_rows", {{Ref(d.index, {d.count}), Ref(d.x, {d.rows, d.columns})}, {Ref(d.out, {d.count, d.columns})}, {}});
}

Prepared Run(const Mixed& d) {
  const auto half = [&](const std::uint16_t* p) {
    return TensorRef::Dense(const_cast<std::uint16_t*>(p), DType::kFloat16, {d.n});
  };
  return Prepare("mixed", {{half(d.a), Ref(d.b, {d.n}), half(d.c)}, {Ref(d.out, {d.n})}, {}});
}

Prepared Run(const Saxpy8& d) {
  umbra_scalar s;
  s.i32 = d.s;
  return Prepare("saxpy8", {{Ref(d.x, {d.n}), Ref(d.y, {d.n})}, {Ref(d.out, {d.n})}, {s}});
}

Prepared Run(const Sum500& d) {
  std::vector<TensorRef> inputs;
  for (int k = 0; k < Sum500::kInputs; ++k) inputs.push_back(Ref(d.x[k], {d.n}));
  return Prepare("sum500", {inputs, {Ref(d.out, {d.n})}, {}});
}

}  // namespace bench::umbra_jit

namespace bench::umbra_fast {

namespace {

template <typename Workload>
Prepared PrepareFast(const Workload& d) {
  umbra_jit::g_math = umbra::Math::kFast;
  Prepared prepared = umbra_jit::Run(d);
  umbra_jit::g_math = umbra::Math::kStrict;
  return prepared;
}

}  // namespace

Prepared Run(const Gelu& d) { return PrepareFast(d); }
Prepared Run(const Softmax& d) { return PrepareFast(d); }
Prepared Run(const LayerNorm& d) { return PrepareFast(d); }
Prepared Run(const Channels& d) { return PrepareFast(d); }
Prepared Run(const Options& d) { return PrepareFast(d); }
Prepared Run(const LogSumExp& d) { return PrepareFast(d); }
Prepared Run(const SoftmaxGradient& d) { return PrepareFast(d); }
Prepared Run(const LayerNormGradient& d) { return PrepareFast(d); }

}  // namespace bench::umbra_fast
