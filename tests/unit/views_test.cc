// Values that are others with more dimensions: what is read or written in the memory of another buffer, by strides.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/driver/lower.h"
#include "compiler/graph/graph.h"
#include "runtime/program_text.h"
#include "tests/support/drawn.h"
#include "tests/support/expect_each.h"
#include "umbra/compile.h"
#include "umbra/error.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using drawn::ForEachIndex;
using drawn::Tensor;
using Shape = std::vector<index_t>;
using Index = std::vector<index_t>;
using runtime::Buffer;

int Views(const runtime::Program& program) {
  int views = 0;
  for (const Buffer& buffer : program.buffers) views += buffer.kind == Buffer::Kind::kView;
  return views;
}

void ExpectEach(const std::string& text, const Shape& from, const Shape& to, int views,
                const std::function<double(const Tensor& x, const Index& at)>& expected, double tolerance = 0) {
  drawn::ExpectEach(text, from, to, expected, tolerance,
                    [&](const runtime::Program& program) { EXPECT_EQ(Views(program), views) << text; });
}

TEST(Views, GroupsOfARow) {
  const auto sum = [](const Tensor& x, const Index& at) {
    double sum = 0;
    for (index_t k = 0; k < 24; ++k) sum += x.At({at[0], at[1] * 24 + k});
    return sum;
  };
  ExpectEach(
      "kernel k(x: f32[?, 96]) -> (y: f32[?, 4]) { y = reduce_with_axis<sum>(reshape(x, extent<0>(x), 4, 24), 2) }",
      {13, 96}, {13, 4}, 1, sum, 1e-5);
  const auto softmax = [](const Tensor& x, const Index& at) {
    double most = -100, sum = 0;
    const index_t first = at[1] / 24 * 24;
    for (index_t k = first; k < first + 24; ++k) most = std::max(most, x.At({at[0], k}));
    for (index_t k = first; k < first + 24; ++k) sum += std::exp(x.At({at[0], k}) - most);
    return std::exp(x.At(at) - most) / sum;
  };
  ExpectEach(
      "kernel k(x: f32[?, 96]) -> (y: f32[?, 96]) {\n  r = reshape(x, extent<0>(x), 4, 24)\n"
      "  e = exp(r - broadcast<0, 1>(reduce_with_axis<maximum>(r, 2)))\n"
      "  y = reshape(e / broadcast<0, 1>(reduce_with_axis<sum>(e, 2)), extent<0>(x), 96)\n}",
      {13, 96}, {13, 96}, 2, softmax, 1e-6);
}

TEST(Views, BlocksOfOpenExtents) {
  const std::string text =
      "kernel k(x: f32[?, ?]) -> (y: f32[?, ?]) {\n"
      "  y = reduce_with_axis<sum>(reduce_with_axis<sum>(reshape(x, extent<0>(x) / 2, 2, extent<1>(x) / 4, 4), 3), 1)\n}";
  ExpectEach(
      text, {6, 140}, {3, 35}, 1,
      [](const Tensor& x, const Index& at) {
        double sum = 0;
        for (index_t a = 0; a < 2; ++a)
          for (index_t b = 0; b < 4; ++b) sum += x.At({at[0] * 2 + a, at[1] * 4 + b});
        return sum;
      },
      1e-5);
  ExpectEach(text, {0, 140}, {0, 35}, 1, [](const Tensor&, const Index&) { return 0.0; });
  const Function function = Compile(graph::ParseText(text)[0]);
  for (const Shape& shape : {Shape{6, 142}, Shape{7, 140}}) {
    const Tensor x(DType::kFloat32, shape, 0, nullptr), y(DType::kFloat32, {3, 35}, 0, nullptr);
    try {
      function({{x.ref}, {y.ref}, {}});
      ADD_FAILURE() << "blocks that are no multiple were taken";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("reshape of 'x'"), std::string::npos) << error.what();
    }
  }
}

// Extents by name: as many elements, so that the last one is known where the others are not 0.
TEST(Views, PartsOfNamedExtents) {
  ExpectEach(
      "kernel k(x: f32[b, s, e]) -> (y: f32[b, 3, s, 20]) {\n"
      "  y = transpose<0, 2, 1, 3>(reshape(x, extent<0>(x), extent<1>(x), 3, 20))\n}",
      {4, 9, 60}, {4, 3, 9, 20}, 1, [](const Tensor& x, const Index& at) {
        return x.At({at[0], at[2], at[1] * 20 + at[3]});
      });
}

TEST(Views, DepthToSpaceAndBack) {
  const std::string shuffle =
      "kernel k(x: f32[?, 8, 6, 20]) -> (y: f32[?, 2, 12, 40]) {\n"
      "  y = reshape(transpose<0, 1, 4, 2, 5, 3>(reshape(x, extent<0>(x), 2, 2, 2, 6, 20)), extent<0>(x), 2, 12, 40)\n}";
  ExpectEach(shuffle, {3, 8, 6, 20}, {3, 2, 12, 40}, 2, [](const Tensor& x, const Index& at) {
    return x.At({at[0], at[1] * 4 + at[2] % 2 * 2 + at[3] % 2, at[2] / 2, at[3] / 2});
  });
  const std::string blocks =
      "kernel k(x: f32[?, 2, 12, 40]) -> (y: f32[?, 8, 6, 20]) {\n"
      "  y = reshape(transpose<0, 1, 3, 5, 2, 4>(reshape(x, extent<0>(x), 2, 6, 2, 20, 2)), extent<0>(x), 8, 6, 20)\n}";
  ExpectEach(blocks, {3, 2, 12, 40}, {3, 8, 6, 20}, 2, [](const Tensor& x, const Index& at) {
    return x.At({at[0], at[1] / 4, at[2] * 2 + at[1] / 2 % 2, at[3] * 2 + at[1] % 2});
  });
}

// What is computed and then divided is read where it was written, after that.
TEST(Views, OfComputedValues) {
  const auto value = [](const Tensor& x, index_t row, index_t column) {
    return std::sqrt(std::exp(x.At({row, column}) / 2)) + 1;
  };
  const std::string head = "kernel k(x: f32[?, 40]) -> (y: f32[?, 8]) {\n  v = sqrt(exp(x / 2)) + 1\n";
  ExpectEach(
      head +
          "  y = reduce_with_axis<maximum>(reshape(v, extent<0>(x), 8, 5), 2) + reduce_with_axis<sum>(reshape(v, extent<0>(x), 5, 8), 1)\n}",
      {17, 40}, {17, 8}, 2,
      [&](const Tensor& x, const Index& at) {
        double most = 0, sum = 0;
        for (index_t k = 0; k < 5; ++k)
          most = std::max(most, value(x, at[0], at[1] * 5 + k)), sum += value(x, at[0], k * 8 + at[1]);
        return most + sum;
      },
      1e-5);
}

// Rows of a product that a later step reads as heads are all there before it begins.
TEST(Views, OfProducts) {
  for (const index_t rows : {3, 200}) {
    const auto graph = graph::ParseText(
        "kernel k(x: f32[?, 70], w: f32[70, 64]) -> (y: f32[?, 4], z: f32[?, 64]) {\n  p = dot(x, w)\n"
        "  h = reshape(p, extent<0>(x), 4, 16)\n  y = reduce_with_axis<maximum>(h, 2)\n"
        "  z = reshape(h - broadcast<0, 1>(y), extent<0>(x), 64)\n}")[0];
    std::mt19937 random(5);
    const Tensor x(DType::kFloat32, {rows, 70}, 1, &random), w(DType::kFloat32, {70, 64}, 0, &random);
    for (const std::string& target : HostTargets())
      for (const int threads : {1, 3}) {
        CompileOptions options;
        options.target = target;
        Tensor y(DType::kFloat32, {rows, 4}, 0, nullptr), z(DType::kFloat32, {rows, 64}, 2, nullptr);
        Compile(graph, options)({{x.ref, w.ref}, {y.ref, z.ref}, {}}, {threads});
        ForEachIndex({rows, 4}, [&](const Index& at) {
          std::vector<double> head(16, 0);
          for (index_t k = 0; k < 16; ++k)
            for (index_t j = 0; j < 70; ++j)
              head[static_cast<std::size_t>(k)] += x.At({at[0], j}) * w.At({j, at[1] * 16 + k});
          const double most = *std::max_element(head.begin(), head.end());
          ASSERT_NEAR(y.At(at), most, 1e-3) << target;
          for (index_t k = 0; k < 16; ++k)
            ASSERT_NEAR(z.At({at[0], at[1] * 16 + k}), head[static_cast<std::size_t>(k)] - most, 2e-3) << target;
        });
      }
  }
}

// Heads of two products, each multiplied with the other's, in steps whose results take turns in memory.
TEST(Views, OfFactors) {
  constexpr index_t kBatch = 2, kRows = 5, kHeads = 3, kWidth = 8, kAll = kHeads * kWidth;
  const auto graph = graph::ParseText(
      "kernel k(x: f32[b, s, 24], v: f32[24, 24], w: f32[24, 24]) -> (y: f32[b, s, 24]) {\n"
      "  n = extent<0>(x)\n  m = extent<1>(x)\n  f = reshape(x, n * m, 24)\n"
      "  p = reshape(transpose<0, 2, 1, 3>(reshape(dot(f, v), n, m, 3, 8)), n * 3, m, 8)\n"
      "  q = reshape(transpose<0, 2, 1, 3>(reshape(dot(f, w), n, m, 3, 8)), n * 3, m, 8)\n"
      "  r = batch_dot(batch_dot(p, swapaxis(q, 1, 2)), q)\n"
      "  y = reshape(transpose<0, 2, 1, 3>(reshape(r, n, 3, m, 8)), n, m, 24)\n}")[0];
  std::mt19937 random(7);
  const Tensor x(DType::kFloat32, {kBatch, kRows, kAll}, 0, &random), v(DType::kFloat32, {kAll, kAll}, 0, &random),
      w(DType::kFloat32, {kAll, kAll}, 0, &random);
  const auto head = [&](const Tensor& by, index_t b, index_t h, index_t row, index_t column) {
    double sum = 0;
    for (index_t k = 0; k < kAll; ++k) sum += x.At({b, row, k}) * by.At({k, h * kWidth + column});
    return sum;
  };
  for (const std::string& target : HostTargets())
    for (const int threads : {1, 3}) {
      CompileOptions options;
      options.target = target;
      Tensor y(DType::kFloat32, {kBatch, kRows, kAll}, 3, nullptr);
      const Function function = Compile(graph, options);
      EXPECT_EQ(Views(function.program()), 7);
      function({{x.ref, v.ref, w.ref}, {y.ref}, {}}, {threads});
      ForEachIndex({kBatch, kRows, kHeads, kWidth}, [&](const Index& at) {
        double sum = 0, size = 0;
        for (index_t row = 0; row < kRows; ++row) {
          double score = 0;
          for (index_t k = 0; k < kWidth; ++k) score += head(v, at[0], at[2], at[1], k) * head(w, at[0], at[2], row, k);
          const double term = score * head(w, at[0], at[2], row, at[3]);
          sum += term, size += std::abs(term);
        }
        ASSERT_NEAR(y.At({at[0], at[1], at[2] * kWidth + at[3]}), sum, 1e-5 * std::max(1.0, size)) << target;
      });
    }
}

// Rows of several dimensions of an input and of a result, by matrices: where they do not follow each other a call works
// on copies.
TEST(Views, JoinedRowsOfProducts) {
  const auto product = [](const Tensor& x, index_t rows, const Index& at, index_t columns) {
    const auto of = [&](index_t row, index_t k) { return x.At({row / 4, row % 4, k}); };
    double y = 0;
    for (index_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (index_t row = 0; row < rows; ++row) sum += of(row, j) * of(row, at[2]);
      y += of(at[0] * 4 + at[1], j) * sum;
    }
    return y;
  };
  for (const index_t batch : {1, 9, 40}) {
    const std::string rows =
        "kernel k(x: f32[?, 4, 6]) -> (y: f32[?, 4, 6]) {\n  r = reshape(x, extent<0>(x) * 4, 6)\n"
        "  y = reshape(";
    const auto of_rows = [&](const Tensor& x, const Index& at) { return product(x, batch * 4, at, 6); };
    ExpectEach(rows + "dot(r, dot(r.T, r)), extent<0>(x), 4, 6)\n}", {batch, 4, 6}, {batch, 4, 6}, 2, of_rows, 1e-4);
    ExpectEach(
        rows + "maximum(dot(r, dot(r.T, r)), 0) + r, extent<0>(x), 4, 6)\n}", {batch, 4, 6}, {batch, 4, 6}, 2,
        [&](const Tensor& x, const Index& at) { return std::max(0.0, of_rows(x, at)) + x.At(at); }, 1e-4);
    // The rows themselves are joined: with gaps they do not follow each other.
    ExpectEach(
        "kernel k(x: f32[?, 4, 6]) -> (y: f32[?, 4, 6]) {\n  r = reshape(x, extent<0>(x), 24)\n"
        "  y = reshape(dot(r, dot(r.T, r)), extent<0>(x), 4, 6)\n}",
        {batch, 4, 6}, {batch, 4, 6}, 2,
        [&](const Tensor& x, const Index& at) {
          double y = 0;
          for (index_t j = 0; j < 24; ++j) {
            double sum = 0;
            for (index_t row = 0; row < batch; ++row) sum += x.At({row, j / 6, j % 6}) * x.At({row, at[1], at[2]});
            y += x.At({at[0], j / 6, j % 6}) * sum;
          }
          return y;
        },
        1e-4);
  }
  ExpectEach(
      "kernel k(x: f32[?, 4, 6]) -> (y: f32[6, 6]) {\n  r = reshape(x, extent<0>(x) * 4, 6)\n  y = dot(r.T, r)\n}",
      {0, 4, 6}, {6, 6}, 1, [](const Tensor&, const Index&) { return 0.0; });
}

// Places in an input that counts as a row, parts of it, and that turned.
TEST(Views, PlacesInJoinedRows) {
  const auto flat = [](const Tensor& x, index_t at) { return x.At({at / 66, at % 66}); };
  ExpectEach(
      "kernel k(x: f32[?, 66]) -> (y: f32[200]) {\n  r = reshape(x, extent<0>(x) * 66)\n"
      "  y = take(tcast<i32>(abs(slice(r, 0, 0, 200)) * 300), r)\n}",
      {14, 66}, {200}, 1, [&](const Tensor& x, const Index& at) {
        return flat(x, static_cast<index_t>(std::abs(static_cast<float>(flat(x, at[0]))) * 300.0F));
      });
  ExpectEach(
      "kernel k(x: f32[?, 66]) -> (y: f32[?]) {\n  r = reshape(x, extent<0>(x) * 66)\n"
      "  y = slice(r, 0, 5, 605) - slice(r, 0, 6, 606)\n}",
      {14, 66}, {600}, 1, [&](const Tensor& x, const Index& at) {
        return static_cast<float>(flat(x, at[0] + 5)) - static_cast<float>(flat(x, at[0] + 6));
      });
  ExpectEach(
      "kernel k(x: f32[?, 66]) -> (y: f32[?, 33]) { y = reshape(flip(reshape(x, extent<0>(x) * 66), 0), extent<0>(x) * 2, 33) }",
      {14, 66}, {28, 33}, 1,
      [&](const Tensor& x, const Index& at) { return flat(x, 14 * 66 - 1 - at[0] * 33 - at[1]); });
}

// A kernel of an input `x` of some rows, other inputs and results, against the interpreter.
void ExpectAsInterpreted(const std::string& text, index_t rows, const std::vector<Shape>& others,
                         const std::vector<std::pair<DType, Shape>>& results, double tolerance) {
  const auto graph = graph::ParseText(text)[0];
  std::mt19937 random(9);
  std::vector<std::unique_ptr<Tensor>> inputs, expected;
  runtime::Arguments arguments;
  const auto add = [&](const Shape& shape, const runtime::Buffer& buffer) {
    inputs.push_back(std::make_unique<Tensor>(buffer.dtype, shape, 0, &random));
    arguments.inputs.push_back(inputs.back()->ref);
  };
  CompileOptions options;
  options.engine = Engine::kInterpreter;
  const Function interpreted = Compile(graph, options);
  const auto& buffers = interpreted.program().buffers;
  Shape first;
  for (const runtime::Extent& extent : buffers[0].shape) first.push_back(extent.is_static() ? extent.value : rows);
  add(first, buffers[0]);
  for (std::size_t k = 0; k < others.size(); ++k) add(others[k], buffers[k + 1]);
  const auto make = [&](std::vector<std::unique_ptr<Tensor>>* all) {
    arguments.outputs.clear();
    for (const auto& [type, shape] : results) {
      all->push_back(std::make_unique<Tensor>(type, shape, 0, nullptr));
      arguments.outputs.push_back(all->back()->ref);
    }
  };
  make(&expected);
  interpreted(arguments);
  options.engine = Engine::kJit;
  for (const std::string& target : HostTargets())
    for (const int threads : {1, 3}) {
      options.target = target;
      std::vector<std::unique_ptr<Tensor>> got;
      make(&got);
      Compile(graph, options)(arguments, {threads});
      for (std::size_t k = 0; k < got.size(); ++k)
        drawn::ExpectSame(*expected[k], *got[k], tolerance, text + " " + target);
    }
}

// What a later step reads of a view is there, wherever a product or its factor might be left out or written over.
TEST(Views, KeepWhatTheyLieIn) {
  const DType f32 = DType::kFloat32, f64 = DType::kFloat64;
  for (const index_t rows : {1, 5, 70}) {
    ExpectAsInterpreted(
        "kernel k(x: f32[?, 64], w: f32[64, 64], q: f32[8, 64]) -> (y: f32[?, 64]) {\n  p = dot(x, w)\n"
        "  r = broadcast_with_axis(reshape(p, extent<0>(x), 8, 8), 2, 64)\n"
        "  y = reduce_with_axis<sum>(reduce_with_axis<sum>(r * broadcast<2>(q), 1), 1)\n}",
        rows, {{64, 64}, {8, 64}}, {{f32, {rows, 64}}}, 1e-2);
    ExpectAsInterpreted(
        "kernel k(x: f32[?, 64], v: f32[64, 16], w: f64[8, 8]) -> (y: f64[?, 8]) {\n  t = dot(x, v)\n"
        "  r = tcast<f64>(reshape(slice(t, 1, 0, 8), extent<0>(x), 2, 4))\n"
        "  y = dot(reshape(tanh(r), extent<0>(x), 8), w)\n}",
        rows, {{64, 16}, {8, 8}}, {{f64, {rows, 8}}}, 1e-3);
    ExpectAsInterpreted(
        "kernel k(x: f32[?, 64], w: f32[64, 64]) -> (y: f32[?, 64], z: f32[?, 8]) {\n  p = dot(x, w)\n"
        "  y = p * 2 + 1\n  z = reduce_with_axis<sum>(reshape(p, extent<0>(x), 8, 8), 2)\n}",
        rows, {{64, 64}}, {{f32, {rows, 64}}, {f32, {rows, 8}}}, 1e-3);
    for (const char* factor : {"b", "b.T"})
      ExpectAsInterpreted(
          std::string("kernel k(x: f32[?, 8], q: f32[8, 8]) -> (y: f32[?, 8], z: f32[8, 2]) {\n  b = sqrt(abs(q))\n"
                      "  y = dot(x, ") +
              factor + ")\n  z = reduce_with_axis<sum>(reshape(b, 8, 2, 4), 2)\n}",
          rows, {{8, 8}}, {{f32, {rows, 8}}, {f32, {8, 2}}}, 1e-3);
  }
}

// Each output is written, whichever others are the same value, or the same joined.
TEST(Views, EveryOutputIsWritten) {
  const DType f32 = DType::kFloat32;
  const struct {
    const char* text;
    index_t rows;
    std::vector<std::pair<DType, Shape>> results;
  } kCases[] = {
      {"kernel k(x: f32[?, 6]) -> (y: f32[?, 2, 3], z: f32[?, 6], u: f32[?, 6]) {\n  v = x + 1\n"
       "  y = reshape(v, extent<0>(x), 2, 3)\n  z = v\n  u = v\n}",
       5,
       {{f32, {5, 2, 3}}, {f32, {5, 6}}, {f32, {5, 6}}}},
      {"kernel k(x: f32[?, 6]) -> (y: f32[2, 3], z: f32[6], u: f32[6]) {\n"
       "  y = reduce_with_axis<maximum>(reshape(x + 1, extent<0>(x), 2, 3), 0)\n  z = reshape(y, 6)\n"
       "  u = reduce_with_axis<maximum>(x + 1, 0)\n}",
       5,
       {{f32, {2, 3}}, {f32, {6}}, {f32, {6}}}},
      {"kernel k(x: f32[2, 24]) -> (z: f32[?], y: f32[?, ?]) {\n  v = reshape(abs(reshape(x + 1, 2, 24, 1)), 2, 24)\n"
       "  z = reshape(v, 48)\n  y = flip(v, 1)\n}",
       2,
       {{f32, {48}}, {f32, {2, 24}}}}};
  for (const auto& [text, rows, results] : kCases) {
    ExpectAsInterpreted(text, rows, {}, results, 0);
    // The interpreter runs the same plan, so that what no step stores is the same there, too.
    const plan::Plan plan = Lower(*graph::ParseText(text)[0]);
    for (const Buffer& buffer : plan.buffers)
      if (buffer.kind == Buffer::Kind::kOutput) {
        EXPECT_NE(plan::Print(plan).find("store " + buffer.name + "["), std::string::npos) << text << buffer.name;
      }
  }
}

// With no rows there are as many elements in parts that the columns have not.
TEST(Views, PartsOfNothing) {
  const Function function = Compile(graph::ParseText(
      "kernel k(x: f32[n, m]) -> (y: f32[?]) {\n  r = reshape(x, extent<0>(x), extent<1>(x) / 4, 4) + 1\n"
      "  y = reduce_with_axis<sum>(reshape(r, extent<0>(x), extent<1>(x)), 0)\n}")[0]);
  for (const index_t columns : {3, 7, 4000}) {
    Tensor x(DType::kFloat32, {0, columns}, 0, nullptr), y(DType::kFloat32, {columns}, 0, nullptr);
    function({{x.ref}, {y.ref}, {}});
    for (index_t k = 0; k < columns; ++k) ASSERT_EQ(y.At({k}), 0) << k;
  }
}

// Windows of blocks: pairs are loaded whole, for each row of a block.
TEST(Views, MaximaOfBlocks) {
  for (const index_t block : {2, 3})
    ExpectEach(
        "kernel k(x: f32[?, 66]) -> (y: f32[?, ?]) {\n  y = reduce_with_axis<maximum>(reduce_with_axis<maximum>("
        "reshape(x, extent<0>(x) / 2, 2, extent<1>(x) / " +
            std::to_string(block) + ", " + std::to_string(block) + "), 3), 1)\n}",
        {14, 66}, {7, 66 / block}, 1, [block](const Tensor& x, const Index& at) {
          double most = -100;
          for (index_t a = 0; a < 2; ++a)
            for (index_t b = 0; b < block; ++b) most = std::max(most, x.At({at[0] * 2 + a, at[1] * block + b}));
          return most;
        });
}

// A result may take the place of an operand that is divided as it is, and of no other.
TEST(Views, InPlace) {
  const auto of = [](const char* parts) {
    return Compile(
        graph::ParseText(std::string("kernel k(x: f32[30, 24]) -> (y: f32[30, 24]) {\n  r = reshape(x, ") + parts +
                         ")\n  y = reshape(r - broadcast<0, 1>(reduce_with_axis<maximum>(r, 2)), 30, 24)\n}")[0]);
  };
  std::mt19937 random(6);
  Tensor x(DType::kFloat32, {30, 24}, 0, &random), y(DType::kFloat32, {30, 24}, 0, nullptr);
  const Function rows = of("30, 3, 8");
  EXPECT_EQ(Views(rows.program()), 2);
  rows({{x.ref}, {y.ref}, {}});
  rows({{x.ref}, {x.ref}, {}});
  EXPECT_TRUE(drawn::SameBits(x, y));
  const Function turned = Compile(graph::ParseText(
      "kernel k(x: f32[8, 8]) -> (y: f32[8, 8]) { y = reshape(transpose<0, 2, 1>(reshape(x, 8, 2, 4)), 8, 8) }")[0]);
  Tensor square(DType::kFloat32, {8, 8}, 0, &random);
  EXPECT_THROW(turned({{square.ref}, {square.ref}, {}}), Error);
}

TEST(Views, TravelAsText) {
  const Function function = Compile(graph::ParseText(
      "kernel k(x: f32[?, 96]) -> (y: f32[?, 4]) { y = reduce_with_axis<sum>(reshape(x, extent<0>(x), 4, 24), 2) }")
                                        [0]);
  const runtime::Program again = runtime::ProgramFromText(runtime::ProgramToText(function.program()));
  ASSERT_EQ(again.buffers.size(), 3u);
  EXPECT_EQ(again.buffers[2].kind, Buffer::Kind::kView);
  EXPECT_EQ(again.buffers[2].place, 0);
  EXPECT_EQ(again.buffers[2].goes_on, 4u);
  EXPECT_EQ(again.buffers[2].place_goes_on, 0u);
  const Function joins = Compile(graph::ParseText(
      "kernel k(x: f32[?, 4, 6]) -> (y: f32[24, 24]) { r = reshape(x, extent<0>(x), 24)  y = dot(r.T, r) }")[0]);
  const runtime::Program joined = runtime::ProgramFromText(runtime::ProgramToText(joins.program()));
  ASSERT_EQ(joined.buffers.size(), 3u);
  EXPECT_EQ(joined.buffers[2].goes_on, 0u);
  EXPECT_EQ(joined.buffers[2].place_goes_on, 4u);
}

// Reshapes that neither divide nor join axes alone: all of the graph has the parts that they have in common.
TEST(Views, GroupsOfChannels) {
  const std::string text =
      "kernel k(x: f32[n, 12, 5, 7], g: f32[12]) -> (y: f32[n, 12, 5, 7]) {\n"
      "  r = reshape(x, extent<0>(x), 3, 140)\n  z = r - broadcast<0, 1>(reduce_with_axis<mean>(r, 2))\n"
      "  y = reshape(z, extent<0>(x), 12, 5, 7) * broadcast<1>(g)\n}";
  const auto graph = graph::ParseText(text)[0];
  std::mt19937 random(8);
  for (const index_t count : {0, 1, 9})
    for (const std::string& target : HostTargets()) {
      const Tensor x(DType::kFloat32, {count, 12, 5, 7}, 2, &random), g(DType::kFloat32, {12}, 0, &random);
      Tensor y(DType::kFloat32, {count, 12, 5, 7}, 1, nullptr);
      CompileOptions options;
      options.target = target;
      const Function function = Compile(graph, options);
      EXPECT_EQ(function.program().steps.size(), 1u);
      function({{x.ref, g.ref}, {y.ref}, {}}, {2});
      ForEachIndex({count, 12, 5, 7}, [&](const Index& at) {
        double sum = 0;
        const index_t first = at[1] / 4 * 4;
        ForEachIndex({4, 5, 7}, [&](const Index& k) { sum += x.At({at[0], first + k[0], k[1], k[2]}); });
        ASSERT_NEAR(y.At(at), (x.At(at) - sum / 140) * g.At({at[1]}), 1e-5) << target;
      });
    }
}

// Places of pairs are read as pairs.
TEST(Views, PairsOfARow) {
  ExpectEach(
      "kernel k(x: f32[?, 66]) -> (y: f32[?, 66]) {\n  r = reshape(x, extent<0>(x), 33, 2)\n"
      "  p = slice(r, 2, 0, 1)\n  q = slice(r, 2, 1, 2)\n  y = reshape(concat(p - q, p + q, 2), extent<0>(x), 66)\n}",
      {11, 66}, {11, 66}, 2,
      [](const Tensor& x, const Index& at) {
        const double p = x.At({at[0], at[1] / 2 * 2}), q = x.At({at[0], at[1] / 2 * 2 + 1});
        return at[1] % 2 == 0 ? p - q : p + q;
      },
      1e-6);
}

// Parts of parts are read as such, of every axis of its own.
TEST(Views, HalvesOfParts) {
  const auto text = [](const std::string& halves) {
    return "kernel k(x: f32[n, 96]) -> (y: f32[n, 96]) {\n  p = reshape(x, n, 12, 8)\n  a = slice(p, 2, 0, 4)\n"
           "  b = slice(p, 2, 4, 8)\n  y = reshape(concat(" +
           halves + ", 2), n, 96)\n}";
  };
  const auto half = [](bool second) {
    return [second](const Tensor& x, const Index& at) {
      const index_t first = at[1] / 8 * 8 + at[1] % 4;
      const double a = x.At({at[0], first}), b = x.At({at[0], first + 4});
      return at[1] % 8 < 4 ? (second ? b : a + b) : (second ? a : a - b);
    };
  };
  ExpectEach(text("a + b, a - b"), {11, 96}, {11, 96}, 2, half(false), 1e-6);
  ExpectEach(text("b, a"), {11, 96}, {11, 96}, 2, half(true));
}

// A reshape that would have to divide an axis of a product, or that another divides otherwise, stays.
TEST(Views, PartsThatDoNotFit) {
  ExpectEach(
      "kernel k(x: f32[?, 12]) -> (y: f32[?, 3]) {\n  n = extent<0>(x)\n"
      "  y = reduce_with_axis<sum>(reshape(x, n, 3, 4), 2) + reduce_with_axis<maximum>(reshape(x, n, 4, 3), 1)\n}",
      {19, 12}, {19, 3}, 2,
      [](const Tensor& x, const Index& at) {
        double sum = 0, most = -100;
        for (index_t k = 0; k < 4; ++k)
          sum += x.At({at[0], at[1] * 4 + k}), most = std::max(most, x.At({at[0], k * 3 + at[1]}));
        return sum + most;
      },
      1e-5);
}

// What starts elsewhere, leaves elements out or is in another order is no view.
TEST(Views, NoneOfOthers) {
  for (const char* body : {"reshape(slice(x, 1, 1, 25), 30, 3, 8) + 1", "reshape(transpose(x), 60, 4, 3) + 1"}) {
    const Function function =
        Compile(graph::ParseText(std::string("kernel k(x: f32[30, ") + (body[8] == 's' ? "26" : "24") +
                                 "]) -> (y: f32[?, ?, ?]) { y = " + body + " }")[0]);
    EXPECT_EQ(Views(function.program()), 0) << body;
  }
}

}  // namespace
}  // namespace umbra
