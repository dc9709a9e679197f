// Products of matrices: generated kernels and BLAS, by extents that are known when compiling or at the call.
#include <gtest/gtest.h>

#include <array>
#include <cfloat>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "compiler/driver/lower.h"
#include "compiler/driver/target.h"
#include "compiler/transform/sum_products.h"
#include "runtime/cpu_info.h"
#include "tests/support/drawn.h"
#include "tests/support/product_plans.h"
#include "tests/unit/host_targets.h"
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

  std::vector<index_t> ShapeOfA() const {
    return transpose_a ? std::vector<index_t>{k, m} : std::vector<index_t>{m, k};
  }
  std::vector<index_t> ShapeOfB() const {
    return transpose_b ? std::vector<index_t>{n, k} : std::vector<index_t>{k, n};
  }

  // With what comes before and after a product; `known` extents are written into the text.
  std::shared_ptr<const graph::Graph> Graph(bool known, bool around) const {
    const std::string type(Name(this->type));
    const auto shape = [&](const std::vector<index_t>& extents, const char* names) {
      return known ? type + "[" + std::to_string(extents[0]) + ", " + std::to_string(extents[1]) + "]"
                   : type + "[" + names[0] + ", " + names[1] + "]";
    };
    const std::string a = transpose_a ? "p.T" : "p", b = transpose_b ? "b.T" : "b";
    const std::string result =
        around ? "relu(0.5 * dot(" + a + ", " + b + ") + broadcast<1>(c)) - r" : "dot(" + a + ", " + b + ")";
    return Parsed("kernel product(a: " + shape(ShapeOfA(), transpose_a ? "km" : "mk") +
                  ", b: " + shape(ShapeOfB(), transpose_b ? "nk" : "kn") + ", c: " + type +
                  (known ? "[" + std::to_string(n) + "]" : "[n]") + ", r: " + shape({m, n}, "mn") +
                  ") -> (y: " + shape({m, n}, "mn") + ", z: " + type + (known ? "[" + std::to_string(n) + "]" : "[n]") +
                  ") {\n" + (around ? "  p = abs(a)\n" : "  p = a\n") + "  y = " + result + "\n  z = c * 2\n}");
  }
};

struct Operands {
  Operands(const Product& p, index_t padding, unsigned seed)
      : random(seed),
        a(p.type, p.ShapeOfA(), padding, &random),
        b(p.type, p.ShapeOfB(), padding, &random),
        c(p.type, {p.n}, 0, &random),
        r(p.type, {p.m, p.n}, padding, &random) {}

  std::unique_ptr<Tensor> Run(const Product& p, const std::shared_ptr<const graph::Graph>& graph,
                              const CompileOptions& options, int threads) const {
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
        ADD_FAILURE() << what << " at " << i[0] << ", " << i[1] << ": " << got.At(i) << " is not "
                      << static_cast<double>(exact);
    });
  }

  std::mt19937 random;
  Tensor a, b, c, r;
};

// Kernels that sum give the same bits for every target that rounds products, for every one that does not, for any
// number of threads, and whether extents are known or not: so what is not computed by one is seen, too.
TEST(Product, DrawnExtents) {
  std::mt19937 random(11);
  const index_t few[] = {2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 24, 30, 61},
                many[] = {1, 4, 6, 15, 17, 31, 32, 33, 47, 100, 129, 200}, inner[] = {1, 2, 5, 33, 100, 257};
  int sums = 0;
  for (int round = 0; round < 24; ++round) {
    Product p{few[random() % 14], many[random() % 12], inner[random() % 6],
              random() % 3 == 0,  random() % 6 == 0,   round % 3 == 2 ? DType::kFloat64 : DType::kFloat32};
    if (random() % 2 == 0) std::swap(p.m, p.n);
    const bool around = round % 2 == 1;
    const Operands operands(p, round % 3, static_cast<unsigned>(round));
    const runtime::ProductShape shape{p.m, p.n, p.k, p.transpose_a, p.transpose_b, SizeOf(p.type)};
    sums += runtime::SumIsFaster(shape, codegen::Name(HostTarget())) ? 1 : 0;
    const auto known = p.Graph(true, around), open = p.Graph(false, around);
    const bool by_small = p.n <= graph::kFewColumns && p.k <= graph::kFewSteps && p.n * p.k <= graph::kFewProducts;
    EXPECT_EQ(CallsBlas(Lower(*known)), !runtime::SumIsFaster(shape, "") && !by_small)
        << p.m << " x " << p.k << " x " << p.n;
    EXPECT_NE(Alternative(Lower(*open)), nullptr);
    CompileOptions options;
    options.engine = Engine::kInterpreter;
    const std::string what = "round " + std::to_string(round);
    operands.Check(p, around, *operands.Run(p, known, options, 1), what + ", interpreted");
    options.engine = Engine::kJit;
    std::map<bool, std::unique_ptr<Tensor>> first;  // by Fuses
    for (const std::string& target : HostTargets()) {
      options.target = target;
      for (const auto& graph : {known, open}) {
        for (const int threads : {1, 3}) {
          auto got = operands.Run(p, graph, options, threads);
          operands.Check(p, around, *got, what + ", " + target + "\n" + graph::Print(*graph));
          if (!runtime::SumIsFaster(shape, target)) continue;
          auto& expected = first[Fuses(target)];
          if (expected == nullptr) expected = std::move(got);
          else EXPECT_TRUE(SameBits(*expected, *got)) << what << ", " << target << ", " << threads << " threads";
        }
      }
    }
  }
  EXPECT_GE(sums, 5);
}

// Each result is one product, rounded once, for any target.
TEST(Product, OfVectors) {
  std::mt19937 random(3);
  for (const std::string& target : HostTargets())
    for (const DType type : {DType::kFloat32, DType::kFloat64})
      for (const auto& [n, m] : {std::pair<index_t, index_t>{5, 37}, {70, 300}, {1, 1}, {0, 3}}) {
        const std::string t(Name(type));
        CompileOptions options;
        options.target = target;
        const Function function =
            Compile(Parsed("kernel k(v: " + t + "[n], w: " + t + "[m], x: " + t + "[n, m]) -> (y: " + t +
                           "[n, m], z: " + t + "[n, m]) {\n" + "  y = dot(v, w)\n  z = x - dot(v, w) * 0.5\n}"),
                    options);
        const Tensor v(type, {n}, 0, &random), w(type, {m}, 0, &random), x(type, {n, m}, 2, &random);
        Tensor y(type, {n, m}, 1, nullptr), z(type, {n, m}, 0, nullptr);
        function(Arguments{{v.ref, w.ref, x.ref}, {y.ref, z.ref}, {}}, {2});
        const auto rounded = [&](double value) {
          return type == DType::kFloat32 ? static_cast<double>(static_cast<float>(value)) : value;
        };
        ForEachIndex({n, m}, [&](const std::vector<index_t>& i) {
          const double product = rounded(v.At({i[0]}) * w.At({i[1]}));
          ASSERT_EQ(y.At(i), product) << target;
          ASSERT_EQ(z.At(i), rounded(x.At(i) - product * 0.5)) << target;
        });
      }
}

// Rows of tiles share copies of columns, whole ones and parts, of matrices as they lie and turned, cut by rows or by
// columns among threads: always the same bits.
TEST(Product, Panels) {
  if (!runtime::CpuRuns("avx2")) GTEST_SKIP() << "no packets that a load of one element fills";
  const std::string target(codegen::Name(HostTarget()));
  unsigned seed = 0;
  for (const index_t m : {65, 129, 700})
    for (const index_t n : {4, 16, 47, 48, 49, 200, 241})
      for (const index_t k : {1, 16, 45}) {
        const bool turned = seed % 2 == 1;
        const Product p{m, n, k, seed % 3 == 2, turned, seed % 5 == 4 ? DType::kFloat64 : DType::kFloat32};
        const Operands operands(p, seed % 4, seed);
        ++seed;
        ASSERT_TRUE(runtime::SumIsFaster({m, n, k, p.transpose_a, p.transpose_b, SizeOf(p.type)}, target));
        CompileOptions options;
        options.target = target;
        std::unique_ptr<Tensor> first;
        for (const bool known : {true, false})
          for (const int threads : {1, 2, 3, 8}) {
            auto got = operands.Run(p, p.Graph(known, true), options, threads);
            const std::string what = std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) + ", " +
                                     std::to_string(threads) + " threads";
            if (first == nullptr) operands.Check(p, true, *got, what);
            if (first == nullptr) first = std::move(got);
            else EXPECT_TRUE(SameBits(*first, *got)) << what;
          }
      }
}

// Long sums go by parts, for all rows and columns before the next, or for all rows of a tile's columns: the same bits
// as at once.
TEST(Product, Parts) {
  unsigned seed = 0;
  for (const auto& [m, n, k] : {std::array<index_t, 3>{3, 1100, 700},
                                {7, 150, 5100},
                                {16, 730, 1030},
                                {2, 37, 24000},
                                {16, 9001, 150},
                                {70, 100, 5700},
                                {130, 50, 3500}}) {
    const Product p{m, n, k, seed % 3 == 1, m > 16 && seed % 2 == 1, seed % 4 == 3 ? DType::kFloat64 : DType::kFloat32};
    const Operands operands(p, seed % 2, seed);
    ++seed;
    bool checked = false;
    std::map<bool, std::unique_ptr<Tensor>> first;  // by Fuses
    for (const std::string& target : HostTargets()) {
      CompileOptions options;
      options.target = target;
      for (const bool known : {true, false})
        for (const int threads : {1, 3}) {
          auto got = operands.Run(p, p.Graph(known, true), options, threads);
          const std::string what =
              std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) + ", " + target;
          if (!std::exchange(checked, true)) operands.Check(p, true, *got, what);
          if (!runtime::SumIsFaster({m, n, k, p.transpose_a, p.transpose_b, SizeOf(p.type)}, target)) continue;
          auto& expected = first[Fuses(target)];
          if (expected == nullptr) expected = std::move(got);
          else EXPECT_TRUE(SameBits(*expected, *got)) << what << ", " << threads << " threads";
        }
    }
  }
}

// The function that copies panels is part of each object that calls it, whatever was compiled before.
TEST(Product, PanelsAfterOtherKernels) {
  CompileOptions options;
  options.use_disk_cache = false;
  for (const index_t n : {90, 91, 92}) {
    const Product p{70, n, 33};
    const Operands operands(p, 0, static_cast<unsigned>(n));
    operands.Check(p, true, *operands.Run(p, p.Graph(true, true), options, 1), std::to_string(n));
    Tensor x(DType::kFloat32, {n}, 0, nullptr), y(DType::kFloat32, {n}, 0, nullptr);
    Compile(Parsed("kernel k(x: f32[" + std::to_string(n) + "]) -> (y: f32[?]) { y = exp(x) }"),
            options)({{x.ref}, {y.ref}, {}});
  }
}

// What follows a product reads no product from memory; what it overwrites is read where it is written.
TEST(Product, FollowersInPlace) {
  const index_t m = 70, n = 90, k = 90;
  const auto graph =
      Parsed("kernel k(a: f32[m, k], b: f32[k, n], r: f32[m, n]) -> (y: f32[m, n]) { y = relu(dot(a, b)) + r }");
  std::mt19937 random(3);
  const Tensor b(DType::kFloat32, {k, n}, 0, &random);
  const auto run = [&](bool over_a, bool over_r) {
    std::mt19937 same(7);
    Tensor a(DType::kFloat32, {m, k}, 0, &same), r(DType::kFloat32, {m, n}, 0, &same);
    auto y = std::make_unique<Tensor>(DType::kFloat32, std::vector<index_t>{m, n}, 0, nullptr);
    const auto& target = over_a ? a : over_r ? r : *y;
    Compile(graph)({{a.ref, b.ref, r.ref}, {target.ref}, {}});
    ForEachIndex({m, n}, [&](const std::vector<index_t>& i) {
      static_cast<float*>(y->ref.data)[i[0] * n + i[1]] = static_cast<float>(target.At(i));
    });
    return y;
  };
  const auto apart = run(false, false);
  EXPECT_TRUE(SameBits(*apart, *run(false, true)));
  const auto over = run(true, false);  // by BLAS, as the factor is needed to the end
  ForEachIndex({m, n}, [&](const std::vector<index_t>& i) { EXPECT_NEAR(over->At(i), apart->At(i), 1e-4); });
}

// Distances of rows to rows: columns that tiles share lie across memory, and are of any width, in sums of any kind.
TEST(Product, DistancesOfRows) {
  for (const index_t k : {3, 40})
    for (const char* type : {"f32", "f64", "i32", "i64", "i8", "f16", "bool"}) {
      const bool condition = std::string(type) == "bool";
      const std::string inner = std::to_string(k), x = "tcast<f32>(broadcast_with_axis(x, 0, 50))";
      const auto graph = Parsed(std::string("kernel k(x: ") + type + "[37, " + inner + "], w: " + type + "[50, " +
                                inner + "], v: " + type + "[" + inner +
                                ", 50]) -> (y: f32[37, 50], z: f32[37, 50]) {\n"
                                "  y = reduce_with_axis<sum>(abs(" +
                                x +
                                " - tcast<f32>(broadcast_with_axis(w, -1, 37))), 2)\n"
                                "  z = reduce_with_axis<maximum>(" +
                                x + " * tcast<f32>(broadcast_with_axis(v.T, -1, 37)), 2)\n}");
      std::mt19937 random(5);
      const DType dtype = condition ? DType::kBool : FindDType(type).value();
      const Tensor a(dtype, {37, k}, 1, &random), b(dtype, {50, k}, 2, &random), c(dtype, {k, 50}, 3, &random);
      const auto run = [&](CompileOptions options, int threads) {
        std::vector<std::unique_ptr<Tensor>> results;
        for (int r = 0; r < 2; ++r)
          results.push_back(std::make_unique<Tensor>(DType::kFloat32, std::vector<index_t>{37, 50}, 0, nullptr));
        Compile(graph, options)(Arguments{{a.ref, b.ref, c.ref}, {results[0]->ref, results[1]->ref}, {}}, {threads});
        return results;
      };
      CompileOptions options;
      options.engine = Engine::kInterpreter;
      const auto expected = run(options, 1);
      options.engine = Engine::kJit;
      for (const std::string& target : HostTargets()) {
        options.target = target;
        for (const int threads : {1, 3}) {
          const auto got = run(options, threads);
          for (int r = 0; r < 2; ++r)
            ForEachIndex({37, 50}, [&](const std::vector<index_t>& i) {
              ASSERT_NEAR(got[r]->At(i), expected[r]->At(i), 1e-5 * (1 + std::fabs(expected[r]->At(i))))
                  << type << ", " << target;
            });
        }
      }
    }
}

// Where a copy of the columns would take more memory than a thread has for it, they are read where they lie.
TEST(Product, LongDistances) {
  const index_t k = 50000;
  const auto graph = Parsed(
      "kernel k(x: f32[3, k], w: f32[5, k]) -> (y: f32[3, 5]) { y = reduce_with_axis<sum>(abs(broadcast_with_axis(x, 0, 5) - broadcast_with_axis(w, -1, 3)), 2) }");
  std::mt19937 random(5);
  const Tensor x(DType::kFloat32, {3, k}, 0, &random), w(DType::kFloat32, {5, k}, 0, &random);
  Tensor y(DType::kFloat32, {3, 5}, 0, nullptr);
  Compile(graph)({{x.ref, w.ref}, {y.ref}, {}});
  ForEachIndex({3, 5}, [&](const std::vector<index_t>& i) {
    double sum = 0;
    for (index_t j = 0; j < k; ++j) sum += std::fabs(x.At({i[0], j}) - w.At({i[1], j}));
    EXPECT_NEAR(y.At(i), sum, 1e-3 * sum);
  });
}

// A tile of one packet has as many rows as there are, up to 16; what is left goes by lower ones, in the same bits. So
// do rows that begin at the same place of a page each.
TEST(Product, HighTiles) {
  for (const DType type : {DType::kFloat32, DType::kFloat64})
    for (const index_t m : {15, 16, 17, 31, 48, 53})
      for (const index_t k : {16, 61, 1024}) {
        const Product p{m, 16, k, false, false, type};
        const Operands operands(p, m % 3, static_cast<unsigned>(m));
        std::map<bool, std::unique_ptr<Tensor>> first;  // by Fuses
        CompileOptions options;
        for (const std::string& target : HostTargets()) {
          options.target = target;
          for (const bool known : {true, false})
            for (const int threads : {1, 3}) {
              auto got = operands.Run(p, p.Graph(known, true), options, threads);
              operands.Check(p, true, *got, std::to_string(m) + " rows, " + target);
              auto& expected = first[Fuses(target)];
              if (expected == nullptr) expected = std::move(got);
              else
                EXPECT_TRUE(SameBits(*expected, *got))
                    << m << " rows of " << k << ", " << target << ", " << threads << " threads";
            }
        }
      }
}

// What chooses between factors has no type that could be written down.
TEST(Product, OfWhatConditionsChoose) {
  const Product p{16, 16, 37};
  const Operands operands(p, 1, 4);
  const auto graph = Parsed(
      "kernel product(a: f32[16, 37], b: f32[37, 16], c: f32[16], r: f32[16, 16]) -> (y: f32[16, 16], z: f32[16]) {\n"
      "  y = dot(a > 0 && a < 0.75 || a < -0.25 ? a : 0, b > 0.5 ? b : -b)\n  z = c * 2\n}");
  CompileOptions options;
  options.engine = Engine::kInterpreter;
  const auto expected = operands.Run(p, graph, options, 1);
  options.engine = Engine::kJit;
  for (const std::string& target : HostTargets()) {
    options.target = target;
    const auto got = operands.Run(p, graph, options, 1);
    ForEachIndex({p.m, p.n},
                 [&](const std::vector<index_t>& i) { EXPECT_NEAR(got->At(i), expected->At(i), 1e-4) << target; });
  }
}

// Conditions of a tile's rows, of its columns, of both and of neither, read by the sum, by what follows it, or by both.
TEST(Product, ConditionsOfTiles) {
  const char* const kConditions[] = {"broadcast_with_axis(m, 0, N) > 0", "broadcast_with_axis(n, -1, 16) > 0", "p > 0",
                                     "broadcast_with_axis(m, 0, N) > broadcast_with_axis(n, -1, 16)",
                                     "(p > 0 || p < q - 2) && !(p > q * 2)"};
  const char* const kUses[] = {"  y = v\n  z = v * 2\n}", "  y = select(c, v, -v)\n  z = v\n}",
                               "  y = v\n  z = tcast<f32>(c)\n}"};
  const char* const kSums[] = {"select(broadcast_with_axis(c, 0, 37), PRODUCT, 0)",
                               "PRODUCT + tcast<f32>(broadcast_with_axis(c, 0, 37))"};
  for (const index_t columns : {16, 100})
    for (const char* condition : kConditions)
      for (const char* use : kUses)
        for (const char* sum : kSums) {
          std::string text =
              std::string(
                  "kernel k(x: f32[16, 37], w: f32[37, N], m: f32[16], n: f32[N], p: f32[16, N], q: f32) -> (y: f32[16, N], z: f32[16, N]) {\n  c = ") +
              condition + "\n  v = reduce_with_axis<sum>(" + sum + ", 1)\n" + use;
          const auto replace = [&](const std::string& word, const std::string& by) {
            for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size()))
              text.replace(at, word.size(), by);
          };
          replace("PRODUCT", "broadcast_with_axis(x, 1, N) * broadcast_with_axis(w, -1, 16)");
          replace("N", std::to_string(columns));
          SCOPED_TRACE(text);
          std::mt19937 random(4);
          const Tensor x(DType::kFloat32, {16, 37}, 0, &random), w(DType::kFloat32, {37, columns}, 0, &random),
              m(DType::kFloat32, {16}, 0, &random), n(DType::kFloat32, {columns}, 0, &random),
              p(DType::kFloat32, {16, columns}, 0, &random);
          umbra_scalar q;
          q.f32 = 0.5f;
          const auto run = [&](const CompileOptions& options) {
            std::vector<std::unique_ptr<Tensor>> results;
            for (int k = 0; k < 2; ++k)
              results.push_back(
                  std::make_unique<Tensor>(DType::kFloat32, std::vector<index_t>{16, columns}, 0, nullptr));
            Compile(Parsed(text),
                    options)(Arguments{{x.ref, w.ref, m.ref, n.ref, p.ref}, {results[0]->ref, results[1]->ref}, {q}});
            return results;
          };
          CompileOptions options;
          options.engine = Engine::kInterpreter;
          const auto expected = run(options);
          options.engine = Engine::kJit;
          for (const std::string& target : HostTargets()) {
            options.target = target;
            const auto got = run(options);
            for (int k = 0; k < 2; ++k)
              ForEachIndex({16, columns}, [&](const std::vector<index_t>& i) {
                ASSERT_NEAR(got[k]->At(i), expected[k]->At(i), 1e-3) << target;
              });
          }
        }
}

TEST(Product, ManyColumnsOfFewRowsAreCutAmongThreads) {
  for (const index_t m : {2, 9}) {
    const Product p{m, 1000, 300};
    const Operands operands(p, 1, 5);
    const auto one = operands.Run(p, p.Graph(false, true), {}, 1);
    operands.Check(p, true, *one, "one thread");
    for (const int threads : {2, 3, 8})
      EXPECT_TRUE(SameBits(*one, *operands.Run(p, p.Graph(false, true), {}, threads))) << threads;
  }
}

TEST(Product, SystemCompilerAgrees) {
  const Product p{7, 37, 60, true};
  const Operands operands(p, 2, 3);
  CompileOptions options;
  options.use_disk_cache = false;
  for (const std::string& target : HostTargets()) {
    options.target = target;
    options.engine = Engine::kJit;
    const auto expected = operands.Run(p, p.Graph(true, true), options, 1);
    options.engine = Engine::kSystem;
    EXPECT_TRUE(SameBits(*expected, *operands.Run(p, p.Graph(true, true), options, 1))) << target;
  }
}

// Few columns of a transposed left factor go along its columns, which lie side by side: the same bits as any other way
// that kernels have, alone and in a block with steps that follow, with what is read where it is written, in batches
// too.
TEST(Product, FewColumnsOfATransposedFactor) {
  const auto turned = [](const plan::Plan& plan) {
    return std::count_if(plan.steps.begin(), plan.steps.end(), [](const auto& step) {
      const auto* kernel = std::get_if<plan::Kernel>(&step);
      return kernel != nullptr && kernel->signature.turned;
    });
  };
  EXPECT_EQ(turned(Lower(*Product{16, 4, 5, true}.Graph(true, false))), 0);
  EXPECT_EQ(turned(Lower(*Product{1000, 17, 5, true}.Graph(true, false))), 0);
  EXPECT_EQ(turned(Lower(*Product{1000, 4, 5, false}.Graph(false, false))), 0);
  const runtime::KernelSignature of_turned =
      std::get<plan::Kernel>(Lower(*Product{1000, 4, 5, true}.Graph(false, false)).steps[2]).signature;
  ASSERT_TRUE(of_turned.turned);
  EXPECT_TRUE(runtime::RunsInstead(of_turned, {4, 1000, 1000, true}, "avx512"));
  EXPECT_FALSE(runtime::RunsInstead(of_turned, {17, 1000, 1000, true}, "avx512")) << "many columns";
  EXPECT_FALSE(runtime::RunsInstead(of_turned, {4, 16, 1000, true}, "avx512")) << "few rows";
  for (const bool softmax : {false, true})
    for (const index_t n : {4, 9, 16})
      for (const index_t m : {17, 150}) {
        const std::string row = softmax ? "q / broadcast<0>(reduce_with_axis<sum>(abs(q), 1))" : "relu(q)";
        const auto graph = Parsed(
            "kernel k(a: f32[k, m], b: f32[k, n], c: f32[n], r: f32[m, n]) -> (y: f32[m, n]) { q = 0.5 * dot(a.T, b) + broadcast<1>(c)  y = " +
            row + " - r }");
        ASSERT_EQ(turned(Lower(*graph)), 1);
        std::mt19937 random(4);
        const index_t k = 70;
        const Tensor a(DType::kFloat32, {k, m}, 2, &random), b(DType::kFloat32, {k, n}, 1, &random),
            c(DType::kFloat32, {n}, 0, &random), r(DType::kFloat32, {m, n}, 0, &random);
        std::map<bool, std::unique_ptr<Tensor>> first;  // by Fuses
        for (const std::string& target : HostTargets())
          for (const int threads : {1, 3})
            for (const bool in_place : {false, true}) {
              CompileOptions options;
              options.target = target;
              auto y = std::make_unique<Tensor>(DType::kFloat32, std::vector<index_t>{m, n}, 0, nullptr);
              if (in_place)
                ForEachIndex({m, n}, [&](const std::vector<index_t>& i) {
                  static_cast<float*>(y->ref.data)[i[0] * n + i[1]] = static_cast<float>(r.At(i));
                });
              Compile(graph, options)({{a.ref, b.ref, c.ref, in_place ? y->ref : r.ref}, {y->ref}, {}}, {threads});
              ForEachIndex({m, n}, [&](const std::vector<index_t>& i) {
                double sizes = 0, here = 0;
                for (index_t j = 0; j < n; ++j) {
                  double sum = c.At({j});
                  for (index_t l = 0; l < k; ++l) sum += 0.5 * a.At({l, i[0]}) * b.At({l, j});
                  sizes += std::fabs(sum);
                  if (j == i[1]) here = sum;
                }
                EXPECT_NEAR(y->At(i), (softmax ? here / sizes : std::max(0.0, here)) - r.At(i), 1e-4)
                    << target << " at " << i[0] << ", " << i[1];
              });
              if (!runtime::SumIsFaster({n, m, k, true}, target)) continue;
              auto& expected = first[Fuses(target)];
              if (expected == nullptr) expected = std::move(y);
              else EXPECT_TRUE(SameBits(*expected, *y)) << target << ", " << threads << " threads";
            }
      }
}

}  // namespace
}  // namespace umbra
