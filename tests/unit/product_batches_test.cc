// Batches of products: generated kernels and BLAS.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/cpu_info.h"
#include "tests/support/drawn.h"
#include "tests/unit/host_targets.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using drawn::ForEachIndex;
using drawn::SameBits;
using drawn::Tensor;

std::shared_ptr<const graph::Graph> Parsed(const std::string& text) { return graph::ParseText(text)[0]; }

TEST(ProductBatches, Batches) {
  for (const index_t m : {14, 80})
    for (const bool turned : {false, true}) {
      const auto graph = Parsed(std::string("kernel k(a: f32[g, m, k], b: f32[g, ") + (turned ? "n, k" : "k, n") +
                                "]) -> (y: f32[g, m, n]) { y = relu(3 * batch_dot(a, " +
                                (turned ? "swapaxis(b, 1, 2)" : "b") + ")) }");
      std::mt19937 random(2);
      const Tensor a(DType::kFloat32, {3, m, 21}, 1, &random),
          b(DType::kFloat32, turned ? std::vector<index_t>{3, 50, 21} : std::vector<index_t>{3, 21, 50}, 2, &random);
      std::map<bool, std::unique_ptr<Tensor>> first;  // by Fuses
      for (const std::string& target : HostTargets())
        for (const int threads : {1, 2, 5}) {
          CompileOptions options;
          options.target = target;
          auto y = std::make_unique<Tensor>(DType::kFloat32, std::vector<index_t>{3, m, 50}, 0, nullptr);
          Compile(graph, options)({{a.ref, b.ref}, {y->ref}, {}}, {threads});
          ForEachIndex({3, m, 50}, [&](const std::vector<index_t>& i) {
            double sum = 0;
            for (index_t k = 0; k < 21; ++k)
              sum += 3 * a.At({i[0], i[1], k}) *
                     b.At(turned ? std::vector<index_t>{i[0], i[2], k} : std::vector<index_t>{i[0], k, i[2]});
            EXPECT_NEAR(y->At(i), std::max(0.0, sum), 1e-4) << target;
          });
          if (!runtime::SumIsFaster({m, 50, 21, false, turned}, target)) continue;
          auto& expected = first[Fuses(target)];
          if (expected == nullptr) expected = std::move(y);
          else EXPECT_TRUE(SameBits(*expected, *y)) << target << ", " << threads << " threads";
        }
    }
}

// To call a BLAS takes longer than to multiply each of them: a kernel does, few columns or not.
TEST(ProductBatches, BatchesOfSmallOnes) {
  for (const auto& [m, k, n] : std::vector<std::array<index_t, 3>>{{1, 512, 1}, {512, 1, 1}, {1, 128, 1}, {2, 100, 1}})
    EXPECT_EQ(runtime::FastestWay({m, n, k, false, false, 4, false, true}, "avx512"), runtime::ProductWay::kBlas)
        << "a long sum of one element is a BLAS's";
  const std::vector<std::array<index_t, 3>> shapes = {{2, 2, 2},  {3, 4, 3}, {1, 8, 8}, {8, 8, 1},
                                                      {17, 2, 3}, {1, 1, 1}, {4, 8, 4}};
  for (const auto& [m, k, n] : shapes) {
    for (const std::string& target : HostTargets()) {
      const auto way = [&](bool batched) {
        return runtime::FastestWay({m, n, k, false, false, 4, false, batched}, target);
      };
      EXPECT_EQ(way(true), runtime::ProductWay::kAsTheyLie) << target;
      EXPECT_TRUE(n >= 4 || way(false) == runtime::ProductWay::kBlas) << target;
    }
    for (const char* const product :
         {"batch_dot(a, b)", "batch_dot(swapaxis(a, 1, 2), b)", "batch_dot(a, swapaxis(b, 1, 2)) + 1"})
      for (const DType type : {DType::kFloat32, DType::kFloat64}) {
        const bool turned_a = product[10] == 's', turned_b = product[13] == 's';
        const std::string t(Name(type));
        const auto graph = Parsed("kernel k(a: " + t + "[?, ?, ?], b: " + t + "[?, ?, ?]) -> (y: " + t +
                                  "[?, ?, ?]) { y = " + product + " }");
        std::mt19937 random(3);
        const Tensor a(type, turned_a ? std::vector<index_t>{5, k, m} : std::vector<index_t>{5, m, k}, 0, &random);
        const Tensor b(type, turned_b ? std::vector<index_t>{5, n, k} : std::vector<index_t>{5, k, n}, 2, &random);
        std::map<bool, std::unique_ptr<Tensor>> first;  // by Fuses
        for (const std::string& target : HostTargets())
          for (const int threads : {1, 3}) {
            CompileOptions options;
            options.target = target;
            auto y = std::make_unique<Tensor>(type, std::vector<index_t>{5, m, n}, 1, nullptr);
            Compile(graph, options)({{a.ref, b.ref}, {y->ref}, {}}, {threads});
            ForEachIndex({5, m, n}, [&](const std::vector<index_t>& i) {
              double sum = turned_b ? 1 : 0;
              for (index_t r = 0; r < k; ++r)
                sum += a.At(turned_a ? std::vector<index_t>{i[0], r, i[1]} : std::vector<index_t>{i[0], i[1], r}) *
                       b.At(turned_b ? std::vector<index_t>{i[0], i[2], r} : std::vector<index_t>{i[0], r, i[2]});
              EXPECT_NEAR(y->At(i), sum, 1e-4) << target;
            });
            auto& expected = first[Fuses(target)];
            if (expected == nullptr) expected = std::move(y);
            else EXPECT_TRUE(SameBits(*expected, *y)) << product << ", " << target << ", " << threads << " threads";
          }
      }
  }
}

TEST(ProductBatches, BatchesOfTransposedFactors) {
  const auto graph = Parsed(
      "kernel k(a: f32[g, k, m], b: f32[g, k, n]) -> (y: f32[g, m, n]) { y = relu(3 * batch_dot(swapaxis(a, 1, 2), b)) }");
  for (const index_t n : {4, 11, 40}) {
    std::mt19937 random(2);
    const Tensor a(DType::kFloat32, {3, 21, 50}, 1, &random), b(DType::kFloat32, {3, 21, n}, 2, &random);
    for (const std::string& target : HostTargets())
      for (const int threads : {1, 2, 5}) {
        CompileOptions options;
        options.target = target;
        Tensor y(DType::kFloat32, {3, 50, n}, 0, nullptr);
        Compile(graph, options)({{a.ref, b.ref}, {y.ref}, {}}, {threads});
        ForEachIndex({3, 50, n}, [&](const std::vector<index_t>& i) {
          double sum = 0;
          for (index_t k = 0; k < 21; ++k) sum += 3 * a.At({i[0], k, i[1]}) * b.At({i[0], k, i[2]});
          EXPECT_NEAR(y.At(i), std::max(0.0, sum), 1e-4) << target;
        });
      }
  }
}

}  // namespace
}  // namespace umbra
