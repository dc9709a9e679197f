// Products with few rows or columns: generated kernels and BLAS, by extents that are known when compiling or at the call.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/driver/lower.h"
#include "compiler/driver/target.h"
#include "runtime/cpu_info.h"
#include "tests/support/drawn.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using drawn::ExpectSame;
using drawn::ForEachIndex;
using drawn::SameBits;
using drawn::Tensor;
using runtime::Arguments;

std::shared_ptr<const graph::Graph> Parsed(const std::string& text) { return graph::ParseText(text)[0]; }

struct Product {
  index_t m, n, k;
  bool transpose_a = false, transpose_b = false;
  DType type = DType::kFloat32;

  std::vector<index_t> ShapeOfA() const { return transpose_a ? std::vector<index_t>{k, m} : std::vector<index_t>{m, k}; }
  std::vector<index_t> ShapeOfB() const { return transpose_b ? std::vector<index_t>{n, k} : std::vector<index_t>{k, n}; }

  // With what comes before and after a product; `known` extents are written into the text.
  std::shared_ptr<const graph::Graph> Graph(bool known, bool around) const {
    const std::string type(Name(this->type));
    const auto shape = [&](const std::vector<index_t>& extents, const char* names) {
      return known ? type + "[" + std::to_string(extents[0]) + ", " + std::to_string(extents[1]) + "]"
                   : type + "[" + names[0] + ", " + names[1] + "]";
    };
    const std::string a = transpose_a ? "p.T" : "p", b = transpose_b ? "b.T" : "b";
    const std::string result = around ? "relu(0.5 * dot(" + a + ", " + b + ") + broadcast<1>(c)) - r" : "dot(" + a + ", " + b + ")";
    return Parsed("kernel product(a: " + shape(ShapeOfA(), transpose_a ? "km" : "mk") + ", b: " + shape(ShapeOfB(), transpose_b ? "nk" : "kn") +
                  ", c: " + type + (known ? "[" + std::to_string(n) + "]" : "[n]") + ", r: " + shape({m, n}, "mn") + ") -> (y: " +
                  shape({m, n}, "mn") + ", z: " + type + (known ? "[" + std::to_string(n) + "]" : "[n]") + ") {\n" +
                  (around ? "  p = abs(a)\n" : "  p = a\n") + "  y = " + result + "\n  z = c * 2\n}");
  }
};

struct Operands {
  Operands(const Product& p, index_t padding, unsigned seed)
      : random(seed), a(p.type, p.ShapeOfA(), padding, &random), b(p.type, p.ShapeOfB(), padding, &random), c(p.type, {p.n}, 0, &random),
        r(p.type, {p.m, p.n}, padding, &random) {}

  std::unique_ptr<Tensor> Run(const Product& p, const std::shared_ptr<const graph::Graph>& graph, const CompileOptions& options, int threads) const {
    auto y = std::make_unique<Tensor>(p.type, std::vector<index_t>{p.m, p.n}, 3, nullptr);
    Tensor z(p.type, {p.n}, 0, nullptr);
    Compile(graph, options)(Arguments{{a.ref, b.ref, c.ref, r.ref}, {y->ref, z.ref}, {}}, {threads});
    return y;
  }

  // Every element within the bound of a sum of k products, and of the few operations around it.
  void Check(const Product& p, bool around, const Tensor& got, const std::string& what) const {
    const double eps = p.type == DType::kFloat64 ? DBL_EPSILON : static_cast<double>(FLT_EPSILON);
    int wrong = 0;
    ForEachIndex({p.m, p.n}, [&](const std::vector<index_t>& i) {
      long double sum = 0, size = 0;
      for (index_t k = 0; k < p.k; ++k) {
        const double x = a.At(p.transpose_a ? std::vector<index_t>{k, i[0]} : std::vector<index_t>{i[0], k});
        const double w = b.At(p.transpose_b ? std::vector<index_t>{i[1], k} : std::vector<index_t>{k, i[1]});
        const long double term = static_cast<long double>(around ? std::fabs(x) : x) * w;
        sum += term;
        size += std::fabs(term);
      }
      long double bound = static_cast<long double>(p.k + 1) * eps / 2 * size, exact = sum;
      if (around) {
        exact = std::max(0.0L, 0.5L * sum + c.At({i[1]})) - r.At(i);
        bound = bound / 2 + 4 * eps * (std::fabs(exact) + std::fabs(c.At({i[1]})) + std::fabs(r.At(i)) + size);
      }
      if (!(std::fabs(got.At(i) - exact) <= bound) && ++wrong <= 3)
        ADD_FAILURE() << what << " at " << i[0] << ", " << i[1] << ": " << got.At(i) << " is not " << static_cast<double>(exact);
    });
  }

  std::mt19937 random;
  Tensor a, b, c, r;
};

std::vector<std::string> Targets() {
  std::vector<std::string> names;
  for (const auto target : codegen::kAllTargets)
    if (HostRuns(target)) names.emplace_back(codegen::Name(target));
  return names;
}

// Has the target fused multiply-add, so that products which are summed stay unrounded?
bool Fuses(const std::string& target) { return target == "avx2" || target == "avx512"; }

// The kernel that a launch may run instead of the product of the plan; null if there is none.
const plan::Kernel* Alternative(const plan::Plan& plan) {
  for (const auto& step : plan.steps)
    if (const auto* kernel = std::get_if<plan::Kernel>(&step); kernel != nullptr && kernel->signature.product) return kernel;
  return nullptr;
}

bool CallsBlas(const plan::Plan& plan) {
  return std::any_of(plan.steps.begin(), plan.steps.end(), [](const auto& step) { return std::holds_alternative<plan::Gemm>(step); });
}

// What is planned is the same on every processor: where AVX-512 decides, the launch chooses.
TEST(Product, ChoiceByProcessorIsTheLaunchs) {
  for (const bool known : {true, false}) {
    const Product p{16, 1024, 64, false, false, DType::kFloat32};
    const plan::Plan plan = Lower(*p.Graph(known, false));
    EXPECT_TRUE(CallsBlas(plan)) << known;
    EXPECT_NE(Alternative(plan), nullptr) << known;
  }
  EXPECT_FALSE(runtime::SumIsFaster({16, 1024, 64}, false));
  EXPECT_TRUE(runtime::SumIsFaster({16, 1024, 64}, true));
}

// Kernels that sum give the same bits for every target that rounds products, for every one that does not, for any number
// of threads, and whether extents are known or not: so what is not computed by one is seen, too.
TEST(Product, DrawnExtents) {
  std::mt19937 random(11);
  const index_t few[] = {2, 3, 4, 5, 7, 8, 9, 13, 15, 16}, many[] = {1, 4, 6, 15, 17, 31, 32, 33, 47, 100, 129, 200}, inner[] = {1, 2, 5, 33, 100, 257};
  int sums = 0;
  for (int round = 0; round < 15; ++round) {
    Product p{few[random() % 10], many[random() % 12], inner[random() % 6], random() % 3 == 0, random() % 6 == 0,
              round % 3 == 2 ? DType::kFloat64 : DType::kFloat32};
    if (random() % 2 == 0) std::swap(p.m, p.n);
    const bool around = round % 2 == 1;
    const Operands operands(p, round % 3, static_cast<unsigned>(round));
    const runtime::ProductShape shape{p.m, p.n, p.k, p.transpose_a, p.transpose_b, SizeOf(p.type)};
    const bool sum = runtime::SumIsFaster(shape, runtime::CpuRuns("avx512"));
    sums += sum ? 1 : 0;
    const auto known = p.Graph(true, around), open = p.Graph(false, around);
    EXPECT_EQ(CallsBlas(Lower(*known)), !runtime::SumIsFaster(shape, false));
    EXPECT_EQ(Alternative(Lower(*open)) != nullptr, !p.transpose_b);
    CompileOptions options;
    options.engine = Engine::kInterpreter;
    const std::string what = "round " + std::to_string(round);
    operands.Check(p, around, *operands.Run(p, known, options, 1), what + ", interpreted");
    options.engine = Engine::kJit;
    std::map<bool, std::unique_ptr<Tensor>> first;  // by Fuses
    for (const std::string& target : Targets()) {
      options.target = target;
      for (const auto& graph : {known, open}) {
        for (const int threads : {1, 3}) {
          auto got = operands.Run(p, graph, options, threads);
          operands.Check(p, around, *got, what + ", " + target + "\n" + graph::Print(*graph));
          if (!sum) continue;
          auto& expected = first[Fuses(target)];
          if (expected == nullptr) expected = std::move(got);
          else EXPECT_TRUE(SameBits(*expected, *got)) << what << ", " << target << ", " << threads << " threads";
        }
      }
    }
  }
  EXPECT_GE(sums, 5);
}

// A tile of one packet has as many rows as there are, up to 16; what is left goes by lower ones, in the same bits.
TEST(Product, HighTiles) {
  for (const DType type : {DType::kFloat32, DType::kFloat64})
    for (const index_t m : {15, 16, 17, 31, 53})
      for (const index_t k : {16, 61}) {
        const Product p{m, 16, k, false, false, type};
        const Operands operands(p, m % 3, static_cast<unsigned>(m));
        std::map<bool, std::unique_ptr<Tensor>> first;  // by Fuses
        CompileOptions options;
        for (const std::string& target : Targets()) {
          options.target = target;
          for (const bool known : {true, false})
            for (const int threads : {1, 3}) {
              auto got = operands.Run(p, p.Graph(known, true), options, threads);
              operands.Check(p, true, *got, std::to_string(m) + " rows, " + target);
              auto& expected = first[Fuses(target)];
              if (expected == nullptr) expected = std::move(got);
              else EXPECT_TRUE(SameBits(*expected, *got)) << m << " rows of " << k << ", " << target << ", " << threads << " threads";
            }
        }
      }
}

// What chooses between factors has no type that could be written down.
TEST(Product, OfWhatConditionsChoose) {
  const Product p{16, 16, 37};
  const Operands operands(p, 1, 4);
  const auto graph = Parsed("kernel product(a: f32[16, 37], b: f32[37, 16], c: f32[16], r: f32[16, 16]) -> (y: f32[16, 16], z: f32[16]) {\n"
                            "  y = dot(a > 0 && a < 0.75 || a < -0.25 ? a : 0, b > 0.5 ? b : -b)\n  z = c * 2\n}");
  CompileOptions options;
  options.engine = Engine::kInterpreter;
  const auto expected = operands.Run(p, graph, options, 1);
  options.engine = Engine::kJit;
  for (const std::string& target : Targets()) {
    options.target = target;
    const auto got = operands.Run(p, graph, options, 1);
    ForEachIndex({p.m, p.n}, [&](const std::vector<index_t>& i) { EXPECT_NEAR(got->At(i), expected->At(i), 1e-4) << target; });
  }
}

// Conditions of a tile's rows, of its columns, of both and of neither, read by the sum, by what follows it, or by both.
TEST(Product, ConditionsOfTiles) {
  const char* const kConditions[] = {"broadcast_with_axis(m, 0, N) > 0", "broadcast_with_axis(n, -1, 16) > 0", "p > 0",
                                     "broadcast_with_axis(m, 0, N) > broadcast_with_axis(n, -1, 16)", "(p > 0 || p < q - 2) && !(p > q * 2)"};
  const char* const kUses[] = {"  y = v\n  z = v * 2\n}", "  y = select(c, v, -v)\n  z = v\n}", "  y = v\n  z = tcast<f32>(c)\n}"};
  const char* const kSums[] = {"select(broadcast_with_axis(c, 0, 37), PRODUCT, 0)", "PRODUCT + tcast<f32>(broadcast_with_axis(c, 0, 37))"};
  for (const index_t columns : {16, 100})
    for (const char* condition : kConditions)
      for (const char* use : kUses)
        for (const char* sum : kSums) {
          std::string text = std::string("kernel k(x: f32[16, 37], w: f32[37, N], m: f32[16], n: f32[N], p: f32[16, N], q: f32) -> (y: f32[16, N], z: f32[16, N]) {\n  c = ") +
                             condition + "\n  v = reduce_with_axis<sum>(" + sum + ", 1)\n" + use;
          const auto replace = [&](const std::string& word, const std::string& by) {
            for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size())) text.replace(at, word.size(), by);
          };
          replace("PRODUCT", "broadcast_with_axis(x, 1, N) * broadcast_with_axis(w, -1, 16)");
          replace("N", std::to_string(columns));
          SCOPED_TRACE(text);
          std::mt19937 random(4);
          const Tensor x(DType::kFloat32, {16, 37}, 0, &random), w(DType::kFloat32, {37, columns}, 0, &random), m(DType::kFloat32, {16}, 0, &random),
              n(DType::kFloat32, {columns}, 0, &random), p(DType::kFloat32, {16, columns}, 0, &random);
          umbra_scalar q;
          q.f32 = 0.5f;
          const auto run = [&](const CompileOptions& options) {
            std::vector<std::unique_ptr<Tensor>> results;
            for (int k = 0; k < 2; ++k) results.push_back(std::make_unique<Tensor>(DType::kFloat32, std::vector<index_t>{16, columns}, 0, nullptr));
            Compile(Parsed(text), options)(Arguments{{x.ref, w.ref, m.ref, n.ref, p.ref}, {results[0]->ref, results[1]->ref}, {q}});
            return results;
          };
          CompileOptions options;
          options.engine = Engine::kInterpreter;
          const auto expected = run(options);
          options.engine = Engine::kJit;
          for (const std::string& target : Targets()) {
            options.target = target;
            const auto got = run(options);
            for (int k = 0; k < 2; ++k)
              ForEachIndex({16, columns}, [&](const std::vector<index_t>& i) { ASSERT_NEAR(got[k]->At(i), expected[k]->At(i), 1e-3) << target; });
          }
        }
}

TEST(Product, ManyColumnsOfFewRowsAreCutAmongThreads) {
  for (const index_t m : {2, 9}) {
    const Product p{m, 1000, 300};
    const Operands operands(p, 1, 5);
    const auto one = operands.Run(p, p.Graph(false, true), {}, 1);
    operands.Check(p, true, *one, "one thread");
    for (const int threads : {2, 3, 8}) EXPECT_TRUE(SameBits(*one, *operands.Run(p, p.Graph(false, true), {}, threads))) << threads;
  }
}

TEST(Product, SystemCompilerAgrees) {
  const Product p{7, 37, 60, true};
  const Operands operands(p, 2, 3);
  CompileOptions options;
  options.use_disk_cache = false;
  for (const std::string& target : Targets()) {
    options.target = target;
    options.engine = Engine::kJit;
    const auto expected = operands.Run(p, p.Graph(true, true), options, 1);
    options.engine = Engine::kSystem;
    EXPECT_TRUE(SameBits(*expected, *operands.Run(p, p.Graph(true, true), options, 1))) << target;
  }
}

TEST(Product, BatchesWithFewRows) {
  const auto graph = Parsed("kernel k(a: f32[g, m, k], b: f32[g, k, n]) -> (y: f32[g, m, n]) { y = 3 * batch_dot(a, b) }");
  std::mt19937 random(2);
  Tensor a(DType::kFloat32, {3, 14, 21}, 1, &random), b(DType::kFloat32, {3, 21, 50}, 2, &random);
  std::map<bool, std::unique_ptr<Tensor>> first;  // by Fuses
  for (const std::string& target : Targets()) {
    CompileOptions options;
    options.target = target;
    auto y = std::make_unique<Tensor>(DType::kFloat32, std::vector<index_t>{3, 14, 50}, 0, nullptr);
    Compile(graph, options)({{a.ref, b.ref}, {y->ref}, {}});
    ForEachIndex({3, 14, 50}, [&](const std::vector<index_t>& i) {
      double sum = 0;
      for (index_t k = 0; k < 21; ++k) sum += 3 * a.At({i[0], i[1], k}) * b.At({i[0], k, i[2]});
      EXPECT_NEAR(y->At(i), sum, 1e-4) << target;
    });
    auto& expected = first[Fuses(target)];
    if (expected == nullptr) expected = std::move(y);
    else EXPECT_TRUE(SameBits(*expected, *y)) << target;
  }
}

// What each kind of extents becomes.
TEST(Product, Choice) {
  const auto plan = [](const std::string& a, const std::string& b, const char* product) {
    return Lower(*Parsed("kernel k(a: f32[" + a + "], b: f32[" + b + "]) -> (y: f32[?, ?]) { y = " + product + " }"));
  };
  EXPECT_FALSE(CallsBlas(plan("8, 100", "100, 200", "dot(a, b)")));
  EXPECT_FALSE(CallsBlas(plan("500, 100", "100, 16", "dot(a, b)")));
  EXPECT_TRUE(CallsBlas(plan("17, 100", "100, 17", "dot(a, b)")));
  EXPECT_TRUE(CallsBlas(plan("8, 100", "200, 100", "dot(a, b.T)"))) << "packets lie across the rows of b";
  EXPECT_TRUE(CallsBlas(plan("8, 4096", "4096, 4096", "dot(a, b)"))) << "b is larger than a cache";
  for (const char* product : {"dot(a / broadcast<0>(reduce_with_axis<sum>(a, 1)), b)", "dot(flip(a, 1), b)", "dot(a, relu(b.T).T)"})
    EXPECT_TRUE(CallsBlas(plan("8, 100", "100, 200", product))) << product << ": a factor is computed once, to memory";
  EXPECT_NE(Alternative(plan("8, 100", "100, 200", "dot(flip(a, 1), b)")), nullptr);
  EXPECT_EQ(Alternative(plan("17, 100", "100, 17", "dot(a, b)")), nullptr);
  EXPECT_NE(Alternative(plan("17, 100", "100, n", "dot(a, b)")), nullptr);
  EXPECT_EQ(Alternative(plan("17, 100", "n, 100", "dot(a, b.T)")), nullptr);
  const plan::Plan open = plan("m, k", "k, n", "dot(a, b)");
  ASSERT_NE(Alternative(open), nullptr);
  EXPECT_EQ(plan::NumSteps(open, open.groups.at(0)), 1);
}

}  // namespace
}  // namespace umbra
