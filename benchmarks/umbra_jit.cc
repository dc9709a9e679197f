// The suite through the compiler. The triad is an expression with a call site of its own, as a
// host program would write it; the others are kernels in the text form.
#include <map>
#include <string>

#include "suite.h"
#include "umbra/jit.h"

namespace bench::umbra_jit {

using namespace umbra;
using runtime::TensorRef;

namespace {

int g_threads = 1;

constexpr const char* kKernels = R"(
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
kernel dense(x: f32[n, k], w: f32[k, m], bias: f32[m]) -> (y: f32[n, m]) {
  y = relu(dot(x, w) + broadcast<1>(bias))
}
kernel transposed(a: f32[n, m], b: f32[m, n]) -> (y: f32[m, n]) {
  y = a.T * 2 + b
}
)";

const Function& Kernel(const std::string& name) {
  static const std::map<std::string, Function> functions = [] {
    std::map<std::string, Function> made;
    for (const auto& graph : graph::ParseText(kKernels, "suite"))
      made.emplace(Compile(graph).program().name, Compile(graph));
    return made;
  }();
  return functions.at(name);
}

TensorRef Ref(const float* p, std::vector<index_t> shape) {
  return TensorRef::Dense(const_cast<float*>(p), DType::kFloat32, std::move(shape));
}

umbra_scalar Number(float value) {
  umbra_scalar scalar;
  scalar.f32 = value;
  return scalar;
}

}  // namespace

void SetThreads(int threads) {
  g_threads = threads;
  runtime::CallSite::SetThreads(threads);
}

void Run(const Triad& d) {
  const Tensor<cpu, 1> a(const_cast<float*>(d.a), Shape1(d.n)), b(const_cast<float*>(d.b), Shape1(d.n)),
      c(const_cast<float*>(d.c), Shape1(d.n)), out(d.out, Shape1(d.n));
  jit(out) = a * b + c * d.s;
}

void Run(const Gelu& d) {
  Kernel("gelu_bias")({{Ref(d.a, {d.rows, d.columns}), Ref(d.b, {d.rows, d.columns}), Ref(d.bias, {d.columns})},
                       {Ref(d.out, {d.rows, d.columns})}, {}}, {g_threads});
}

void Softmax(const Rows& d) {
  Kernel("softmax")({{Ref(d.x, {d.rows, d.columns})}, {Ref(d.out, {d.rows, d.columns})}, {}}, {g_threads});
}

void LayerNorm(const Rows& d) {
  Kernel("layernorm")({{Ref(d.x, {d.rows, d.columns})}, {Ref(d.out, {d.rows, d.columns})},
                       {Number(1.0f / static_cast<float>(d.columns))}}, {g_threads});
}

void Run(const Channels& d) {
  Kernel("channels")({{Ref(d.x, {d.n, d.c, d.hw})}, {Ref(d.mean, {d.c}), Ref(d.variance, {d.c})},
                      {Number(1.0f / static_cast<float>(d.n * d.hw))}}, {g_threads});
}

void Run(const Adam& d) {
  Kernel("adam")({{Ref(d.p, {d.n}), Ref(d.m, {d.n}), Ref(d.v, {d.n}), Ref(d.g, {d.n})},
                  {Ref(d.p, {d.n}), Ref(d.m, {d.n}), Ref(d.v, {d.n})},
                  {Number(d.rate), Number(d.beta1), Number(d.beta2), Number(d.epsilon)}}, {g_threads});
}

void Run(const Options& d) {
  Kernel("black_scholes")({{Ref(d.spot, {d.n}), Ref(d.strike, {d.n}), Ref(d.time, {d.n})},
                           {Ref(d.call, {d.n})}, {Number(d.rate), Number(d.volatility)}}, {g_threads});
}

void Run(const Dense& d) {
  Kernel("dense")({{Ref(d.x, {d.rows, d.inner}), Ref(d.w, {d.inner, d.columns}), Ref(d.bias, {d.columns})},
                   {Ref(d.out, {d.rows, d.columns})}, {}}, {g_threads});
}

void Run(const Transpose& d) {
  Kernel("transposed")({{Ref(d.a, {d.n, d.n}), Ref(d.b, {d.n, d.n})}, {Ref(d.out, {d.n, d.n})}, {}}, {g_threads});
}

}  // namespace bench::umbra_jit
