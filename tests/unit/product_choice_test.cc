// Which way products go: what is planned, and what a launch chooses.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "compiler/driver/lower.h"
#include "compiler/driver/target.h"
#include "runtime/cpu_info.h"
#include "runtime/prepared.h"
#include "tests/support/drawn.h"
#include "tests/support/product_plans.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using drawn::Tensor;
using runtime::Arguments;

std::shared_ptr<const graph::Graph> Parsed(const std::string& text) { return graph::ParseText(text)[0]; }

// The plan of a product of matrices of such extents.
plan::Plan PlanOf(const std::string& a, const std::string& b, const std::string& product) {
  return Lower(*Parsed("kernel k(a: f32[" + a + "], b: f32[" + b + "]) -> (y: f32[?, ?]) { y = " + product + " }"));
}

// What is planned is the same on every processor: where AVX-512 decides, the launch chooses.
TEST(Product, ChoiceByProcessorIsTheLaunchs) {
  for (const bool known : {true, false}) {
    const plan::Plan plan = known ? PlanOf("16, 64", "64, 1024", "dot(a, b)") : PlanOf("m, k", "k, n", "dot(a, b)");
    EXPECT_TRUE(CallsBlas(plan)) << known;
    EXPECT_NE(Alternative(plan), nullptr) << known;
  }
  EXPECT_FALSE(runtime::SumIsFaster({16, 1024, 64}, "avx2"));
  EXPECT_TRUE(runtime::SumIsFaster({16, 1024, 64}, "avx512"));
  EXPECT_TRUE(runtime::SumIsFaster({512, 1024, 1024}, "avx512"));
  EXPECT_FALSE(runtime::SumIsFaster({512, 1024, 1024}, "avx2"));
  EXPECT_EQ(runtime::SumIsFaster({512, 512, 64}, "avx2"), !runtime::CpuRuns("avx512")) << "BLAS has wider packets";
  EXPECT_FALSE(runtime::SumIsFaster({512, 1024, 1024}, "sse2"));
  EXPECT_TRUE(runtime::SumIsFaster({4, 8192, 8192}, "avx512")) << "along its rows";
  EXPECT_TRUE(runtime::SumIsFaster({4, 8192, 8192}, "avx2"));
  EXPECT_TRUE(runtime::SumIsFaster({16, 8192, 8192}, "avx2"));
  EXPECT_FALSE(runtime::SumIsFaster({4, 8192, 8192}, "sse2"));
  EXPECT_FALSE(runtime::SumIsFaster({1, 1024, 64}, "avx512"));
}

// It is what a launch runs: its first operand is the right factor.
TEST(Product, ALaunchRunsTheTurnedKernel) {
  const Function function =
      Compile(Parsed("kernel k(a: f32[k, m], b: f32[k, n]) -> (y: f32[m, n]) { y = dot(a.T, b) }"));
  const index_t m = 150, k = 70;
  for (const index_t n : {4, 16, 17}) {
    const Tensor a(DType::kFloat32, {k, m}, 0, nullptr), b(DType::kFloat32, {k, n}, 0, nullptr),
        y(DType::kFloat32, {m, n}, 0, nullptr);
    const Arguments arguments{{a.ref, b.ref}, {y.ref}, {}};
    const runtime::PreparedProgram prepared(function.program(), {a.ref, b.ref, y.ref},
                                            runtime::CheckArguments(function.program(), arguments), {}, 1);
    const auto* const kernel = prepared.OnlyKernel();
    const bool turned = kernel != nullptr && kernel->buffer == std::vector<std::size_t>{1, 0, 2};
    EXPECT_EQ(turned, n <= 16 && runtime::SumIsFaster({n, m, k, true}, codegen::Name(HostTarget()))) << n;
  }
}

// A product within an expression goes by tiles that share what they read, however its factors lie, and made or not.
TEST(Product, ImplicitOnes) {
  for (const char* product :
       {"implicit_dot(x, w)", "relu(implicit_dot(2 * x, w.T))", "implicit_dot(x, w / 4)", "implicit_dot(x.T, w)"}) {
    const plan::Plan plan =
        Lower(*Parsed(std::string("kernel k(x: f32[?, ?], w: f32[?, ?]) -> (y: f32[?, ?]) { y = ") + product + " }"));
    ASSERT_EQ(plan.steps.size(), 1u) << product;
    const auto& kernel = std::get<plan::Kernel>(plan.steps[0]);
    EXPECT_FALSE(kernel.signature.panels.empty()) << product;
    EXPECT_TRUE(plan::SharesRows(kernel)) << product;
  }
}

// What each kind of extents becomes.
TEST(Product, Choice) {
  EXPECT_FALSE(CallsBlas(PlanOf("8, 100", "100, 200", "dot(a, b)")));
  EXPECT_FALSE(CallsBlas(PlanOf("500, 100", "100, 16", "dot(a, b)")));
  EXPECT_TRUE(CallsBlas(PlanOf("17, 100", "100, 17", "dot(a, b)")));
  EXPECT_TRUE(CallsBlas(PlanOf("8, 100", "200, 100", "dot(a, b.T)"))) << "packets lie across the rows of b";
  EXPECT_TRUE(CallsBlas(PlanOf("8, 4096", "4096, 4096", "dot(a, b)"))) << "b is larger than a cache";
  for (const char* product :
       {"dot(a / broadcast<0>(reduce_with_axis<sum>(a, 1)), b)", "dot(flip(a, 1), b)", "dot(a, relu(b.T).T)"})
    EXPECT_TRUE(CallsBlas(PlanOf("8, 100", "100, 200", product)))
        << product << ": a factor is computed once, to memory";
  EXPECT_NE(Alternative(PlanOf("8, 100", "100, 200", "dot(flip(a, 1), b)")), nullptr);
  EXPECT_NE(Alternative(PlanOf("17, 100", "100, 17", "dot(a, b)")), nullptr);
  EXPECT_EQ(Alternative(PlanOf("17, 100", "100, 3", "dot(a, b)")), nullptr);
  EXPECT_NE(Alternative(PlanOf("17, 100", "n, 100", "dot(a, b.T)")), nullptr);
  EXPECT_NE(Alternative(PlanOf("8, 100", "n, 100", "dot(a, b.T)")), nullptr) << "a copy turns b, by AVX-512";
  EXPECT_EQ(Alternative(PlanOf("1, 100", "n, 100", "dot(a, b.T)")), nullptr) << "a vector is BLAS's";
  const auto followed = [&](const char* result, const char* more = "") {
    return Alternative(
               Lower(*Parsed(
                   std::string("kernel k(a: f32[m, k], b: f32[k, n], c: f32[n], r: f32[m, n]) -> (y: f32[?, ?]") +
                   (*more ? ", z: f32[?, ?]" : "") + ") {\n  p = dot(a, b)\n  y = " + result + "\n" + more + "}")))
        ->signature.replaces.size();
  };
  EXPECT_EQ(followed("relu(p + broadcast<1>(c))"), 2u);
  EXPECT_EQ(followed("p * p + r * r"), 2u);
  EXPECT_EQ(followed("p * 2", "  z = p + r\n"), 2u) << "one kernel with two results";
  EXPECT_EQ(followed("p / broadcast<0>(reduce_with_axis<sum>(p, 1))"), 1u) << "a row of products is needed at once";
  EXPECT_EQ(followed("p", "  z = p * 2\n"), 1u) << "the product is an output";
  EXPECT_EQ(followed("flip(p, 1)"), 1u);
  const plan::Plan open = PlanOf("m, k", "k, n", "dot(a, b)");
  ASSERT_NE(Alternative(open), nullptr);
  EXPECT_EQ(plan::NumSteps(open, open.groups.at(0)), 1);
}

// Nothing is summed, and what follows an outer product is in its kernel.
TEST(Product, OfVectorsIsElementwise) {
  for (const bool on_gpu : {false, true})
    for (const char* text :
         {"kernel k(v: f32[n], w: f32[m]) -> (y: f32[n, m]) { y = dot(v, w) }",
          "kernel k(v: f64[n], w: f64[m], x: f64[n, m]) -> (y: f64[n, m]) { y = x - dot(v, w) * 0.5 }"}) {
      const plan::Plan plan = Lower(*Parsed(text), on_gpu);
      ASSERT_EQ(plan.steps.size(), 1u) << text;
      EXPECT_TRUE(std::get<plan::Kernel>(plan.steps[0]).signature.elementwise) << text;
    }
}

// The form in which a launch of a product of m x k by k x n runs its kernel for the target; no operand is read.
struct Form {
  runtime::Variant variant;
  bool by_bands = false;
};
Form FormOf(index_t m, index_t k, index_t n, const char* target, const char* product = "dot(a, b)") {
  const Function function =
      Compile(Parsed(std::string("kernel k(a: f32[?, ?], b: f32[?, ?]) -> (y: f32[?, ?]) { y = ") + product + " }"));
  const runtime::Program& program = function.program();
  const auto at = std::find_if(program.steps.begin(), program.steps.end(), [](const auto& step) {
    const auto* kernel = std::get_if<runtime::KernelStep>(&step);
    return kernel != nullptr && !kernel->signature.replaces.empty() && !kernel->signature.turned;
  });
  runtime::KernelStep step = std::get<runtime::KernelStep>(*at);
  Form form;
  step.slots = std::make_shared<runtime::KernelStep::Slots>();
  step.code = [&](const runtime::Variant& variant) {
    form.variant = variant;
    return runtime::KernelCode{[](const umbra_args*, long long, long long) {}, nullptr};
  };
  alignas(64) static char memory[192];
  const bool turned = std::string(product) == "dot(a, b.T)";
  const auto ref = [&](int place, std::vector<index_t> shape) {
    return runtime::TensorRef::Dense(memory + place * 64, DType::kFloat32, std::move(shape));
  };
  const std::vector<runtime::TensorRef> operands = {
      ref(0, {m, k}), ref(1, turned ? std::vector<index_t>{n, k} : std::vector<index_t>{k, n}), ref(2, {m, n})};
  const auto symbols = runtime::CheckArguments(program, {{operands[0], operands[1]}, {operands[2]}, {}});
  const runtime::LaunchPlan launch = runtime::PrepareLaunch(step, operands, symbols, 1, -1, target);
  form.by_bands = launch.extent.back() != 0;
  return form;
}

// Of few steps, results are written along their rows, a tile's rows at a time, and what they share is read where it
// lies.
TEST(Product, FewStepsOfWideRowsGoByBands) {
  const auto by_bands = [](index_t m, index_t k, index_t n, const char* target, const char* product = "dot(a, b)") {
    const Form form = FormOf(m, k, n, target, product);
    EXPECT_NE(form.by_bands, form.variant.packed) << "what goes by bands is not copied; more than a few rows are, else";
    return form.by_bands;
  };
  EXPECT_TRUE(by_bands(100, 8, 1000, "avx512"));
  EXPECT_TRUE(by_bands(100, 64, 1000, "avx512"));
  EXPECT_FALSE(by_bands(100, 65, 1000, "avx512"));
  EXPECT_TRUE(by_bands(100, 16, 1000, "avx2"));
  EXPECT_FALSE(by_bands(100, 17, 1000, "avx2"));
  EXPECT_FALSE(by_bands(100, 8, 191, "avx512")) << "narrow rows";
  EXPECT_FALSE(by_bands(100, 64, 1 << 20, "avx512")) << "a factor that no second cache has room for";
  EXPECT_FALSE(by_bands(100, 8, 1000, "avx512", "dot(a, b.T)")) << "columns lie across memory";
}

// As all results do that are larger than the caches, if their rows begin with lines.
TEST(Product, LargeResultsPassTheCaches) {
  const auto rows = static_cast<index_t>(runtime::LastLevelCacheBytes() / sizeof(float) / 1024);
  for (const index_t k : {1, 8, 64, 200}) {
    EXPECT_EQ(FormOf(2 * rows, k, 1024, "avx512").variant.stores, runtime::Stores::kStreamed) << k;
    EXPECT_TRUE(FormOf(2 * rows, k, 1024, "avx512").variant.packed) << k;
    EXPECT_EQ(FormOf(rows / 4, k, 1024, "avx512").variant.stores, runtime::Stores::kCached) << k;
    EXPECT_EQ(FormOf(2 * rows, k, 1023, "avx512").variant.stores, runtime::Stores::kCached) << k;
  }
}

}  // namespace
}  // namespace umbra
