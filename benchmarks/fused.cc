// Steps that run as one: dense layers, with relu or with gelu and residual, beside the bare product and a product with
// a pass of its own, and the update of 200 tensors beside a loop for each.
#include "fused.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "calls.h"
#include "umbra/blas.h"
#include "umbra/compile.h"
#include "umbra/graph.h"
#include "workloads.h"

namespace bench::fused {

namespace {

using umbra::Function;
using umbra::index_t;
using umbra::runtime::TensorRef;

std::vector<float> Random(Size n, float low) {
  std::vector<float> values(static_cast<std::size_t>(n));
  std::mt19937 random(7);
  std::uniform_real_distribution<float> draw(low, 1);
  for (float& value : values) value = draw(random);
  return values;
}

TensorRef Ref(std::vector<float>* values, std::vector<index_t> shape) {
  return TensorRef::Dense(values->data(), umbra::DType::kFloat32, std::move(shape));
}

void Register(const std::string& name, std::function<void()> run) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [run = std::move(run)](benchmark::State& state) {
                                 for (auto _ : state) run();
                               })
      ->UseRealTime()
      ->MinTime(0.1);
}

void RequireClose(const std::string& name, const std::vector<float>& got, const std::vector<float>& expected) {
  for (std::size_t k = 0; k < got.size(); ++k) {
    if (std::fabs(got[k] - expected[k]) <= 1e-3f * (1 + std::fabs(expected[k]))) continue;
    std::fprintf(stderr, "%s: element %zu is %g, expected %g\n", name.c_str(), k, got[k], expected[k]);
    std::exit(1);
  }
}

struct Layer {
  std::vector<float> x, w, bias, residual, y;
};

// What follows the product.
struct Epilogue {
  std::string name, text;  // of `t`, the product and its bias, and the residual `r`
  std::function<void(Size rows, Size columns, Layer*)> pass;
};
const Epilogue kRelu = {"relu", "relu(t)",
                        [](Size rows, Size columns, Layer* d) { Relu(rows, columns, d->bias.data(), d->y.data()); }};
const Epilogue kGeluResidual = {"gelu_residual", "gelu(t) + r", [](Size rows, Size columns, Layer* d) {
                                  GeluResidual(rows, columns, d->bias.data(), d->residual.data(), d->y.data());
                                }};

void RegisterDense(const Epilogue& epilogue, Size rows, Size inner, Size columns) {
  const bool residual = epilogue.text.back() == 'r';
  const Function function = umbra::Compile(umbra::graph::ParseText(
      std::string("kernel dense(x: f32[n, k], w: f32[k, m], b: f32[m]") + (residual ? ", r: f32[n, m]" : "") +
      ") -> (y: f32[n, m]) {\n  t = dot(x, w) + broadcast<1>(b)\n  y = " + epilogue.text + "\n}")[0]);
  auto d = std::make_shared<Layer>(Layer{Random(rows * inner, -1), Random(inner * columns, -1), Random(columns, -1),
                                         Random(rows * columns, -1), Random(rows * columns, -1)});
  for (float& weight : d->w) weight /= 32;  // results of about 1
  const auto product = [=] {
    umbra_gemm_f32(0, 0, rows, columns, inner, 1, d->x.data(), inner, d->w.data(), columns, 0, d->y.data(), columns);
  };
  const auto pass = [=] {
    product();
    epilogue.pass(rows, columns, d.get());
  };
  const auto call = [=](int threads) {
    umbra::runtime::Arguments arguments{
        {Ref(&d->x, {rows, inner}), Ref(&d->w, {inner, columns}), Ref(&d->bias, {columns})},
        {Ref(&d->y, {rows, columns})},
        {}};
    if (residual) arguments.inputs.push_back(Ref(&d->residual, {rows, columns}));
    function(arguments, {threads});
  };
  const std::string name = "dense_" + epilogue.name + "_" + std::to_string(rows) + "x" + std::to_string(inner) + "x" +
                           std::to_string(columns);
  pass();
  const std::vector<float> expected = d->y;
  call(1);
  RequireClose(name, d->y, expected);
  Register(name + "/bare_product", product);
  Register(name + "/product_and_pass", pass);
  Register(name + "/umbra_jit", [=] { call(1); });
  Register(name + "/umbra_jit_2threads", [=] { call(2); });
}

void RegisterUpdate(int tensors) {
  std::vector<std::vector<float>> memory;
  const AdamSteps model = MakeAdamSteps(
      [&](Size n, float low, float) { return memory.emplace_back(Random(n, low)).data(); }, tensors, 0.01f);
  const Call call = CallOf(model);
  const Function function = umbra::Compile(call.kernel);
  const auto by_hand = [=] {
    for (const Adam& d : model.of) Update(d.n, d.p, d.m, d.v, d.g, d.rate, d.beta1, d.beta2, d.epsilon);
  };
  const auto before = memory;
  by_hand();
  const auto expected = memory;
  for (std::size_t k = 0; k < memory.size(); ++k) std::copy(before[k].begin(), before[k].end(), memory[k].begin());
  function(call.arguments, {1});
  const std::string name = "update_of_" + std::to_string(tensors) + "_tensors";
  for (std::size_t k = 0; k < memory.size(); ++k) RequireClose(name, memory[k], expected[k]);
  static const auto kept = std::move(memory);
  Register(name + "/hand", by_hand);
  Register(name + "/umbra_jit", [=] { function(call.arguments, {1}); });
  Register(name + "/umbra_jit_2threads", [=] { function(call.arguments, {2}); });
}

}  // namespace

}  // namespace bench::fused

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (const auto& epilogue : {bench::fused::kRelu, bench::fused::kGeluResidual}) {
    bench::fused::RegisterDense(epilogue, 512, 1024, 1024);
    bench::fused::RegisterDense(epilogue, 16384, 256, 1024);
  }
  bench::fused::RegisterUpdate(200);
  benchmark::RunSpecifiedBenchmarks();
}
