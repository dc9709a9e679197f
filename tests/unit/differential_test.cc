// Random graphs through the interpreter, every dialect that this CPU runs, both compilers, dense and
// strided memory: one meaning everywhere.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include "compiler/driver/target.h"
#include "compiler/graph/graph.h"
#include "umbra/compile.h"
#include "umbra/error.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using graph::Builder;
using graph::Value;
using runtime::Arguments;
using runtime::TensorRef;

std::vector<std::string> Targets() {
  std::vector<std::string> names;
  for (auto target : {codegen::Target::kPlain, codegen::Target::kSse2, codegen::Target::kAvx2,
                      codegen::Target::kAvx512})
    if (HostRuns(target)) names.emplace_back(codegen::Name(target));
  return names;
}

// A tensor with some slack between rows and around it, so that a write outside is seen.
struct Tensor {
  DType dtype;
  std::vector<char> bytes;
  TensorRef ref;

  Tensor(DType type, std::vector<index_t> shape, index_t padding, std::mt19937* random)
      : dtype(type) {
    std::vector<index_t> memory = shape;
    if (!memory.empty()) memory.back() += padding;
    index_t count = 1;
    for (index_t extent : memory) count *= extent;
    constexpr index_t kGuard = 16;
    bytes.assign(static_cast<std::size_t>(count + 2 * kGuard) * SizeOf(type) + 64, 0x5a);
    auto base = reinterpret_cast<std::uintptr_t>(bytes.data());
    base = (base + 63) / 64 * 64 + static_cast<std::size_t>(kGuard) * SizeOf(type);
    ref = TensorRef::Dense(reinterpret_cast<void*>(base), type, memory);
    ref.shape = std::move(shape);
    if (random != nullptr) Fill(count, random);
  }
  Tensor(const Tensor&) = delete;

  void Fill(index_t count, std::mt19937* random) {
    std::uniform_real_distribution<double> draw(-3, 3);
    SwitchDType(dtype, [&](auto tag) {
      auto* p = static_cast<decltype(tag)*>(ref.data);
      for (index_t i = 0; i < count; ++i)
        p[i] = static_cast<decltype(tag)>(dtype == DType::kInt32 ? std::floor(draw(*random) * 5) : draw(*random));
    });
  }

  double At(const std::vector<index_t>& index) const {
    index_t offset = 0;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * ref.stride[d];
    return SwitchDType(dtype, [&](auto tag) {
      return static_cast<double>(static_cast<const decltype(tag)*>(ref.data)[offset]);
    });
  }
};

template <typename Body>
void ForEachIndex(const std::vector<index_t>& shape, const Body& body) {
  std::vector<index_t> index(shape.size(), 0);
  for (index_t extent : shape)
    if (extent == 0) return;
  while (true) {
    body(index);
    std::size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

// Draws an expression over x, y (full shape), row (one value a row), column (a vector of columns).
class Drawer {
 public:
  Drawer(std::mt19937* random, DType dtype, std::vector<Value> leaves, int rank)
      : random_(*random), dtype_(dtype), leaves_(std::move(leaves)), rank_(rank) {}

  Value Draw(int depth) {
    if (depth == 0 || Pick(6) == 0) {
      if (Pick(5) == 0) return Value(Pick(2) ? 1.5 - (dtype_ == DType::kInt32 ? 0.5 : 0) : 2.0) * leaves_[0];
      return leaves_[static_cast<std::size_t>(Pick(static_cast<int>(leaves_.size())))];
    }
    const bool is_float = dtype_ != DType::kInt32;
    switch (Pick(is_float ? 9 : 6)) {
      case 0: return Draw(depth - 1) + Draw(depth - 1);
      case 1: return Draw(depth - 1) - Draw(depth - 1);
      case 2: return Draw(depth - 1) * Draw(depth - 1);
      case 3: return graph::Apply("maximum", {Draw(depth - 1), Draw(depth - 1)});
      case 4: return graph::Apply("select", {Draw(depth - 1) > Draw(depth - 1), Draw(depth - 1), Draw(depth - 1)});
      case 5: return is_float ? graph::Apply("abs", {Draw(depth - 1)}) : Draw(depth - 1) / Draw(depth - 1);
      case 6: {
        static constexpr const char* kOps[] = {"sigmoid", "tanh", "floor", "rint", "relu", "square"};
        return graph::Apply(kOps[Pick(6)], {Draw(depth - 1)});
      }
      case 7: {
        // Row fusion: a reduction over the last axis, back over the row.
        if (rank_ < 2) return graph::Apply("negative", {Draw(depth - 1)});
        const Value value = Draw(depth - 1);
        static constexpr const char* kReducers[] = {"maximum", "minimum"};
        return value - graph::Broadcast(0, graph::Reduce(kReducers[Pick(2)], value, {rank_ - 1}), value);
      }
      default: return graph::Apply("exp", {graph::Apply("minimum", {Draw(depth - 1), Value(1.0)})});
    }
  }

  int Pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

 private:
  std::mt19937& random_;
  DType dtype_;
  std::vector<Value> leaves_;
  int rank_;
};

// Is the result what was meant? Comparisons of nearly equal values may go either way, so a few
// elements may differ where the expression has a jump; sums differ by their order.
void ExpectSame(const Tensor& expected, const Tensor& got, double tolerance, const std::string& what) {
  index_t bad = 0, count = 0;
  std::string first;
  ForEachIndex(expected.ref.shape, [&](const std::vector<index_t>& index) {
    const double e = expected.At(index), g = got.At(index);
    ++count;
    if (e == g || (std::isnan(e) && std::isnan(g))) return;
    if (std::fabs(e - g) <= tolerance * (1 + std::fabs(e))) return;
    if (bad++ == 0) first = "expected " + std::to_string(e) + ", got " + std::to_string(g);
  });
  EXPECT_LE(bad, count / 50) << what << ": " << bad << " of " << count << " differ; " << first;
}

bool SameBits(const Tensor& a, const Tensor& b) {
  bool same = true;
  ForEachIndex(a.ref.shape, [&](const std::vector<index_t>& index) {
    const double x = a.At(index), y = b.At(index);
    same = same && (std::memcmp(&x, &y, sizeof x) == 0 || (std::isnan(x) && std::isnan(y)));
  });
  return same;
}

TEST(Differential, RandomExpressions) {
  std::mt19937 random(20261120);
  const index_t extents[] = {1, 3, 7, 16, 17, 33, 64, 131};
  int launches = 0;
  for (int round = 0; round < 24; ++round) {
    const DType dtype = round % 4 == 3 ? DType::kInt32 : round % 4 == 2 ? DType::kFloat64 : DType::kFloat32;
    const int rank = 1 + round % 3;
    std::vector<index_t> shape;
    for (int d = 0; d < rank; ++d) shape.push_back(extents[random() % 8]);
    if (rank == 1 && round % 2 == 0) shape[0] = 40000 + round;
    Builder builder("drawn");
    const Value x = builder.Input("x", dtype, PartialShape::dynamic(rank));
    const Value y = builder.Input("y", dtype, PartialShape::dynamic(rank));
    const Value column = builder.Input("column", dtype, PartialShape::dynamic(1));
    const Value s = builder.Scalar("s", dtype);
    Drawer drawer(&random, dtype, {x, y, graph::Broadcast(rank - 1, column, x), x * s}, rank);
    const Value value = drawer.Draw(3);
    // Anchors every operand in the graph.
    builder.Output("z", value + x * 0.0 + y * 0.0 + graph::Broadcast(rank - 1, column, x) * 0.0 + (x * 0.0) * s);
    const auto graph = builder.Build();

    const index_t padding = round % 5;
    Tensor tx(dtype, shape, padding, &random), ty(dtype, shape, 0, &random),
        tc(dtype, {shape.back()}, 0, &random);
    umbra_scalar scalar{};
    if (dtype == DType::kFloat32) scalar.f32 = 0.75f;
    else if (dtype == DType::kFloat64) scalar.f64 = 0.75;
    else scalar.i32 = 3;
    Arguments arguments{{tx.ref, ty.ref, tc.ref}, {}, {scalar}};
    CompileOptions options;
    options.engine = Engine::kInterpreter;
    Tensor expected(dtype, shape, padding, nullptr);
    arguments.outputs = {expected.ref};
    Compile(graph, options)(arguments);
    std::unique_ptr<Tensor> reference;
    for (const std::string& target : Targets()) {
      options.engine = Engine::kJit;
      options.target = target;
      auto got = std::make_unique<Tensor>(dtype, shape, padding, nullptr);
      arguments.outputs = {got->ref};
      Compile(graph, options)(arguments, {1 + round % 2});
      ++launches;
      ExpectSame(expected, *got, 1e-5, "round " + std::to_string(round) + ", " + target + "\n" + graph::Print(*graph));
      if (reference) EXPECT_TRUE(SameBits(*reference, *got)) << "bits of " << target << " in round " << round;
      else reference = std::move(got);
    }
    // In place: the destination is one of the operands, unless another point of it is read.
    Tensor same(dtype, shape, padding, nullptr);
    std::memcpy(same.ref.data, tx.ref.data, static_cast<std::size_t>(tx.ref.stride[0] * shape[0]) * SizeOf(dtype));
    arguments.inputs[0] = same.ref;
    arguments.outputs = {same.ref};
    options.target.clear();
    try {
      Compile(graph, options)(arguments);
      ExpectSame(expected, same, 1e-5, "in place, round " + std::to_string(round));
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("overlaps"), std::string::npos) << error.what();
    }
  }
  RecordProperty("launches", launches);
}

TEST(Differential, ReductionsOverEverySetOfAxes) {
  std::mt19937 random(7);
  for (const std::vector<index_t>& shape : {std::vector<index_t>{5, 33, 70}, {1, 64, 1}, {4, 1, 131}, {2, 3, 0}}) {
    for (int mask = 1; mask < 8; ++mask) {
      for (const char* reducer : {"sum", "maximum", "minimum", "product"}) {
        const DType dtype = mask % 3 == 0 ? DType::kFloat64 : mask % 3 == 1 ? DType::kFloat32 : DType::kInt32;
        std::vector<int> axes;
        std::vector<index_t> kept;
        for (int d = 0; d < 3; ++d)
          if (mask >> d & 1) axes.push_back(d);
          else kept.push_back(shape[static_cast<std::size_t>(d)]);
        Builder builder("reduced");
        const Value x = builder.Input("x", dtype, PartialShape::dynamic(3));
        const Value half = dtype == DType::kInt32 ? x : x * 0.5;
        builder.Output("r", graph::Reduce(reducer, half, axes));
        const auto graph = builder.Build();
        Tensor tx(dtype, shape, mask % 2, &random);
        Tensor expected(dtype, kept, 0, nullptr);
        Arguments arguments{{tx.ref}, {expected.ref}, {}};
        CompileOptions options;
        options.engine = Engine::kInterpreter;
        Compile(graph, options)(arguments);
        std::unique_ptr<Tensor> reference;
        for (const std::string& target : Targets()) {
          options.engine = Engine::kJit;
          options.target = target;
          auto got = std::make_unique<Tensor>(dtype, kept, 0, nullptr);
          arguments.outputs = {got->ref};
          Compile(graph, options)(arguments);
          ExpectSame(expected, *got, 2e-4, std::string(reducer) + " mask " + std::to_string(mask) + " " + target);
          if (reference) EXPECT_TRUE(SameBits(*reference, *got)) << reducer << " mask " << mask << " " << target;
          else reference = std::move(got);
        }
      }
    }
  }
}

TEST(Differential, SystemCompilerAgrees) {
  const auto graph = graph::ParseText(
      "kernel k(x: f32[n, m], b: f32[m]) -> (y: f32[n, m], total: f32[n]) {\n"
      "  t = sigmoid(x) + broadcast<1>(b)\n  total = reduce_with_axis<sum>(t, 1)\n"
      "  y = t / broadcast<0>(total)\n}")[0];
  std::mt19937 random(3);
  Tensor x(DType::kFloat32, {9, 77}, 3, &random), b(DType::kFloat32, {77}, 0, &random);
  std::unique_ptr<Tensor> first[2];
  for (Engine engine : {Engine::kJit, Engine::kSystem}) {
    auto y = std::make_unique<Tensor>(DType::kFloat32, std::vector<index_t>{9, 77}, 0, nullptr);
    auto total = std::make_unique<Tensor>(DType::kFloat32, std::vector<index_t>{9}, 0, nullptr);
    CompileOptions options;
    options.engine = engine;
    Compile(graph, options)({{x.ref, b.ref}, {y->ref, total->ref}, {}});
    if (first[0]) {
      EXPECT_TRUE(SameBits(*first[0], *y));
      EXPECT_TRUE(SameBits(*first[1], *total));
    }
    first[0] = std::move(y);
    first[1] = std::move(total);
  }
}

// Conversions among all dtypes in one kernel, by both compilers: the packets share a lane count.
TEST(Differential, ConversionsAgree) {
  const auto graph = graph::ParseText(
      "kernel k(x: f32[n], d: f64[n], i: i32[n]) -> (a: f64[n], b: i32[n], c: f32[n], e: i32[n]) {\n"
      "  a = tcast<f64>(x) * d + tcast<f64>(i)\n  b = tcast<i32>(d * 1e9) + i\n"
      "  c = tcast<f32>(d) > x ? tcast<f32>(i) : x\n  e = tcast<i32>(x)\n}")[0];
  std::mt19937 random(13);
  Tensor x(DType::kFloat32, {77}, 0, &random), d(DType::kFloat64, {77}, 0, &random), i(DType::kInt32, {77}, 0, &random);
  static_cast<double*>(d.ref.data)[3] = NAN;
  static_cast<float*>(x.ref.data)[5] = INFINITY;
  const auto run = [&](const CompileOptions& options) {
    auto out = std::make_unique<std::array<std::unique_ptr<Tensor>, 4>>();
    const DType types[] = {DType::kFloat64, DType::kInt32, DType::kFloat32, DType::kInt32};
    Arguments arguments{{x.ref, d.ref, i.ref}, {}, {}};
    for (int k = 0; k < 4; ++k) {
      (*out)[static_cast<std::size_t>(k)] = std::make_unique<Tensor>(types[k], std::vector<index_t>{77}, 0, nullptr);
      arguments.outputs.push_back((*out)[static_cast<std::size_t>(k)]->ref);
    }
    Compile(graph, options)(arguments);
    return out;
  };
  CompileOptions options;
  options.engine = Engine::kInterpreter;
  const auto expected = run(options);
  for (Engine engine : {Engine::kJit, Engine::kSystem})
    for (const std::string& target : Targets()) {
      options.engine = engine;
      options.target = target;
      const auto got = run(options);
      for (std::size_t k = 0; k < 4; ++k)
        EXPECT_TRUE(SameBits(*(*expected)[k], *(*got)[k])) << "output " << k << ", " << target << ", engine " << static_cast<int>(engine);
    }
}

// Rows that end before, at and after a group of packets, with special values on both sides of its end.
TEST(Differential, PolynomialsAtEveryRowLength) {
  const double nan = std::nan(""), infinity = INFINITY;
  const double special[] = {nan, infinity, -infinity, 0.0, -0.0, 1e-40, -1e-40, 88.9, -103.9, 709.9, -745.2, 1.0, 3e38};
  std::mt19937 random(7);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64})
    for (const char* function : {"exp", "expm1", "log", "log1p", "tanh", "softplus"}) {
      const std::string type(Name(dtype));
      const auto graph = graph::ParseText("kernel k(x: " + type + "[n, m], b: " + type + "[m]) -> (y: " + type +
                                          "[n, m]) {\n  y = " + function + "(x + broadcast<1>(b))\n}")[0];
      for (const index_t m : {1, 15, 16, 17, 31, 32, 63, 64, 65, 80, 129}) {
        Tensor x(dtype, {3, m}, 3, &random), b(dtype, {m}, 0, &random);
        SwitchDType(dtype, [&](auto tag) {
          for (index_t k = 0; k < m; ++k) static_cast<decltype(tag)*>(b.ref.data)[k] = 0;
          auto* p = static_cast<decltype(tag)*>(x.ref.data);
          for (std::size_t k = 0; k < std::size(special); ++k) {
            p[static_cast<index_t>(k) % m] = static_cast<decltype(tag)>(special[k]);
            p[x.ref.stride[0] + m - 1 - static_cast<index_t>(k) % m] = static_cast<decltype(tag)>(special[k]);
          }
        });
        CompileOptions options;
        options.target = "plain";  // one element at a time
        Tensor scalars(dtype, {3, m}, 0, nullptr);
        Compile(graph, options)({{x.ref, b.ref}, {scalars.ref}, {}});
        for (const std::string& target : Targets()) {
          options.target = target;
          Tensor y(dtype, {3, m}, 0, nullptr);
          Compile(graph, options)({{x.ref, b.ref}, {y.ref}, {}});
          EXPECT_TRUE(SameBits(scalars, y)) << function << " " << type << " of " << m << ", " << target;
        }
      }
    }
}

TEST(Differential, TransposesAndDot) {
  const auto graph = graph::ParseText(
      "kernel k(a: f32[n, k], b: f32[m, k], c: f32[m, n]) -> (y: f32[n, m]) {\n"
      "  y = relu(dot(a, b.T) * 2 + c.T)\n}")[0];
  std::mt19937 random(5);
  Tensor a(DType::kFloat32, {37, 20}, 2, &random), b(DType::kFloat32, {65, 20}, 0, &random),
      c(DType::kFloat32, {65, 37}, 1, &random), expected(DType::kFloat32, {37, 65}, 0, nullptr);
  Arguments arguments{{a.ref, b.ref, c.ref}, {expected.ref}, {}};
  CompileOptions options;
  options.engine = Engine::kInterpreter;
  Compile(graph, options)(arguments);
  for (const std::string& target : Targets()) {
    options.engine = Engine::kJit;
    options.target = target;
    Tensor y(DType::kFloat32, {37, 65}, 5, nullptr);
    arguments.outputs = {y.ref};
    Compile(graph, options)(arguments);
    ExpectSame(expected, y, 1e-4, target);
  }
}

// Memory without unit stride: a transposed view, a reversed one, a broadcast one.
TEST(Differential, AnyStrides) {
  Builder builder("strided");
  const Value x = builder.Input("x", DType::kFloat32, PartialShape::dynamic(2));
  const Value y = builder.Input("y", DType::kFloat32, PartialShape::dynamic(2));
  builder.Output("z", x * 2.0 + y);
  const Function function = Compile(builder.Build());
  std::mt19937 random(11);
  Tensor x_store(DType::kFloat32, {50, 40}, 0, &random), y_store(DType::kFloat32, {40}, 0, &random),
      z(DType::kFloat32, {40, 50}, 0, nullptr);
  TensorRef x_view = x_store.ref, y_view = y_store.ref;
  x_view.shape = {40, 50};
  x_view.stride = {1, 40};
  y_view.shape = {40, 50};
  y_view.stride = {1, 0};
  function({{x_view, y_view}, {z.ref}, {}});
  ForEachIndex({40, 50}, [&](const std::vector<index_t>& i) {
    EXPECT_FLOAT_EQ(static_cast<float>(z.At(i)), static_cast<float>(x_store.At({i[1], i[0]}) * 2 + y_store.At({i[0]})));
  });
}

}  // namespace
}  // namespace umbra
