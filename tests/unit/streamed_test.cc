// Kernels whose stores go past the caches, on memory of any size: a launch takes them for large results only.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/cpu_info.h"
#include "runtime/prepared.h"
#include "tests/unit/index_map_common.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using runtime::TensorRef;

struct Memory {
  explicit Memory(std::vector<index_t> shape, DType type) : shape(std::move(shape)), type(type) {
    std::size_t count = 1;
    for (const index_t extent : this->shape) count *= static_cast<std::size_t>(extent);
    bytes.resize(count * SizeOf(type) + 128);
  }
  char* data() { return bytes.data() + (64 - reinterpret_cast<std::uintptr_t>(bytes.data()) % 64) % 64; }
  TensorRef ref() { return TensorRef::Dense(data(), type, shape); }
  std::size_t size() const { return bytes.size() - 128; }

  std::vector<index_t> shape;
  DType type;
  std::vector<char> bytes;
};

constexpr runtime::Variant kPlain, kStreams{.stores = runtime::Stores::kStreamed},
    kJoined{.stores = runtime::Stores::kJoined};

// The function's kernels, which from now on store past the caches.
void Stream(const Function& function, const runtime::Variant& streams = kStreams) {
  for (const auto& step : function.program().steps)
    if (const auto* kernel = std::get_if<runtime::KernelStep>(&step)) {
      const runtime::KernelCode code = kernel->code(streams);
      kernel->slots->owners.push_back(code.owner);
      kernel->slots->function[static_cast<std::size_t>(kPlain.index())] = code.function;
    }
}

// The kernel, on a processor that is of the one kind or the other (umbra_args::prefetch_ahead).
umbra_kernel_fn kernel_of_kind = nullptr;
long long ahead_of_kind = 0;
void RunAsKind(const umbra_args* args, long long begin, long long end) {
  umbra_args changed = *args;
  changed.prefetch_ahead = ahead_of_kind;
  kernel_of_kind(&changed, begin, end);
}

// `kernel`, where T is the dtype, of sources with the extents `in`, to a result whose rows begin with cache lines, or,
// if they are joined, anywhere.
void ExpectStreamed(std::string kernel, const std::vector<std::vector<index_t>>& in, const std::vector<index_t>& out,
                    const runtime::Variant& streams = kStreams) {
  for (const DType type :
       {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64, DType::kFloat16, DType::kInt8}) {
    std::string text = kernel;
    for (std::size_t at; (at = text.find('T')) != std::string::npos;) text.replace(at, 1, Name(type));
    std::vector<Memory> sources;
    for (const auto& shape : in) sources.emplace_back(shape, type);
    unsigned seed = 1;
    for (Memory& source : sources)
      for (char& byte : source.bytes) byte = static_cast<char>((seed = seed * 1664525u + 1013904223u) >> 27);
    std::vector<char> expected;
    std::vector<CompileOptions> routes = Routes();
    if (type == DType::kFloat32) {
      routes.push_back(routes.back());
      routes.back().engine = Engine::kSystem;
    }
    for (const CompileOptions& route : routes) {
      SCOPED_TRACE(text + " " + (route.engine == Engine::kInterpreter ? "interpreter" : route.target));
      const Function function = Compile(graph::ParseText(text)[0], route);
      if (route.engine != Engine::kInterpreter) Stream(function, streams);
      Memory result(out, type);
      runtime::Arguments arguments;
      for (Memory& source : sources) arguments.inputs.push_back(source.ref());
      arguments.outputs = {result.ref()};
      const auto check = [&] {
        std::memset(result.bytes.data(), 0x55, result.bytes.size());
        function(arguments, {1});
        const std::vector<char> found(result.data(), result.data() + result.size());
        if (expected.empty()) expected = found;
        ASSERT_EQ(found, expected);
        const std::size_t before = static_cast<std::size_t>(result.data() - result.bytes.data());
        std::size_t outside = 0;
        for (std::size_t k = 0; k < result.bytes.size(); ++k)
          outside += (k < before || k >= before + result.size()) && result.bytes[k] != 0x55 ? 1 : 0;
        EXPECT_EQ(outside, 0u);
      };
      check();
      const auto* const only = std::get_if<runtime::KernelStep>(&function.program().steps[0]);
      if (route.engine == Engine::kInterpreter || function.program().steps.size() != 1 || only == nullptr) continue;
      auto& slot = only->slots->function[static_cast<std::size_t>(kPlain.index())];
      kernel_of_kind = slot;
      ahead_of_kind = runtime::PrefetchAhead() == 0 ? runtime::kPrefetchAhead : 0;
      slot = &RunAsKind;
      check();
    }
  }
}

constexpr char kCentred[] =
    "kernel t(x: f32[n, m]) -> (s: f32[n], y: f32[n, m]) {\n"
    "  s = reduce_with_axis<sum>(x, 1)\n  y = x - broadcast<0>(s)\n}";

TEST(Streamed, RowsBesideNumbers) {
  Memory x({5, 192}, DType::kFloat32);
  for (std::size_t k = 0; k < 5 * 192; ++k) reinterpret_cast<float*>(x.data())[k] = static_cast<float>(k % 37);
  std::vector<char> expected;
  for (const CompileOptions& route : Routes()) {
    const Function function = Compile(graph::ParseText(kCentred)[0], route);
    if (route.engine != Engine::kInterpreter) Stream(function);
    Memory s({5}, DType::kFloat32), y({5, 192}, DType::kFloat32);
    function({{x.ref()}, {s.ref(), y.ref()}, {}});
    std::vector<char> found(y.data(), y.data() + y.size());
    found.insert(found.end(), s.data(), s.data() + s.size());
    if (expected.empty()) expected = found;
    EXPECT_EQ(found, expected) << route.target;
  }
}

// The launch on operands of such shapes, of which nothing is read, by `threads` threads: the form that it takes, and
// into pieces of how many rows it is cut.
struct Launch {
  runtime::Variant variant;
  index_t granule = 0;
};
Launch LaunchOf(const char* text, const std::vector<std::vector<index_t>>& shapes, int threads = 1) {
  const Function function = Compile(graph::ParseText(text)[0]);
  const runtime::Program& program = function.program();
  alignas(64) static char memory[64];
  std::vector<TensorRef> operands;
  for (const auto& shape : shapes)
    operands.push_back(TensorRef::Dense(memory, program.buffers[operands.size()].dtype, shape));
  for (std::size_t k = 1; k < operands.size(); ++k) operands[k].data = memory + 64 * k;  // no memory is shared
  runtime::Arguments arguments;
  for (std::size_t k = 0; k < operands.size(); ++k)
    (program.buffers[k].kind == runtime::Buffer::Kind::kInput ? arguments.inputs : arguments.outputs)
        .push_back(operands[k]);
  auto& slots = std::get<runtime::KernelStep>(program.steps[0]).slots->function;
  for (const runtime::Variant& variant : {kStreams, kJoined})
    slots[static_cast<std::size_t>(variant.index())] = nullptr;
  const runtime::PreparedProgram prepared(program, operands, runtime::CheckArguments(program, arguments), {}, threads);
  const auto& plan = prepared.OnlyKernel()->plan;
  for (const runtime::Variant& variant : {kStreams, kJoined})  // for some targets they have the same code
    if (slots[static_cast<std::size_t>(variant.index())].load() != nullptr) return {variant, plan.granule};
  return {kPlain, plan.granule};
}
bool LaunchStreams(const char* text, const std::vector<std::vector<index_t>>& shapes) {
  return LaunchOf(text, shapes).variant.stores == runtime::Stores::kStreamed;
}
bool LaunchJoins(const char* text, const std::vector<std::vector<index_t>>& shapes) {
  return LaunchOf(text, shapes).variant.stores == runtime::Stores::kJoined;
}

TEST(Streamed, LargeRowsAreWhateverIsBesideThem) {
  constexpr index_t kRows = 1 << 20, kColumns = 1024;
  EXPECT_TRUE(LaunchStreams(kCentred, {{kRows, kColumns}, {kRows}, {kRows, kColumns}}));
  EXPECT_FALSE(LaunchStreams(kCentred, {{3, kColumns}, {3}, {3, kColumns}}));
  EXPECT_FALSE(LaunchStreams("kernel t(x: f32[n, m]) -> (s: f32[n]) { s = reduce_with_axis<sum>(x, 1) }",
                             {{kRows, kColumns}, {kRows}}));
}

// A result that begins within a line does not decide how later ones of that shape are stored.
TEST(Streamed, ResultsThatBeginWithLinesAfterOthers) {
  const auto count = static_cast<index_t>(runtime::LastLevelCacheBytes() / sizeof(float));
  const Function function = Compile(graph::ParseText("kernel t(x: f32[n]) -> (y: f32[n]) { y = x + x }")[0]);
  Memory x({count}, DType::kFloat32), y({count}, DType::kFloat32);
  std::memset(x.bytes.data(), 0, x.bytes.size());
  const auto passes = [&] {
    return std::get<runtime::KernelStep>(function.program().steps[0])
               .slots->function[static_cast<std::size_t>(kStreams.index())]
               .load() != nullptr;
  };
  TensorRef within = y.ref();
  within.data = y.data() + sizeof(float);
  function({{x.ref()}, {within}, {}}, {1});
  EXPECT_FALSE(passes());
  function({{x.ref()}, {y.ref()}, {}}, {1});
  EXPECT_TRUE(passes());
}

// Caches serve several threads faster than memory takes what they write.
TEST(Streamed, SeveralThreadsPassLargerCachesThanOne) {
  const auto cache = static_cast<index_t>(runtime::LastLevelCacheBytes() / sizeof(float));
  const char* const text = "kernel t(x: f32[n, m]) -> (y: f32[n, m]) { y = x + x }";
  const auto passes = [&](double share, int threads) {  // of the cache that operand and result have together
    const index_t rows = static_cast<index_t>(share * static_cast<double>(cache) / 2 / 1024);
    return LaunchOf(text, {{rows, 1024}, {rows, 1024}}, threads).variant.stores == runtime::Stores::kStreamed;
  };
  EXPECT_FALSE(passes(0.9, 1));
  EXPECT_TRUE(passes(1.1, 1));
  const double of_threads = std::max(1.0, 1.5 * static_cast<double>(runtime::LastLevelCacheShare()) /
                                              static_cast<double>(runtime::LastLevelCacheBytes()));
  EXPECT_FALSE(passes(0.87 * of_threads, 2));
  EXPECT_TRUE(passes(1.13 * of_threads, 2));
}

TEST(Streamed, LargeRowsThatBeginAnywhereAreJoined) {
  constexpr index_t kRows = 1 << 20;
  for (const index_t columns : {index_t{1000}, index_t{1001}, index_t{100}, index_t{17}})
    EXPECT_TRUE(LaunchJoins(kCentred, {{kRows, columns}, {kRows}, {kRows, columns}})) << columns;
  EXPECT_FALSE(LaunchJoins(kCentred, {{kRows, 1024}, {kRows}, {kRows, 1024}}));
  EXPECT_FALSE(LaunchJoins(kCentred, {{3, 1000}, {3}, {3, 1000}}));
  // Threads begin where lines do.
  EXPECT_EQ(LaunchOf(kCentred, {{kRows, 1000}, {kRows}, {kRows, 1000}}, 3).granule, 2);
  EXPECT_EQ(LaunchOf(kCentred, {{kRows, 1001}, {kRows}, {kRows, 1001}}, 3).granule, 16);
  EXPECT_TRUE(LaunchJoins("kernel t(x: f32[n, h, w]) -> (y: f32[n, p, q]) { y = pool<sum>(x, 2, 2, 1, 1) }",
                          {{kRows, 29, 29}, {kRows, 28, 28}}));
}

// Columns that are stored along the axis which they are reduced over, too, and so not in the order in which they lie.
TEST(Streamed, ColumnsThatAreStoredAsTheyAreReduced) {
  constexpr index_t kReduced = 30, kRows = 5000, kColumns = 57;
  const Function function = Compile(graph::ParseText(
      "kernel t(x: f32[c, n, w]) -> (y: f32[c, n, w]) { y = x - broadcast<1, 2>(reduce_with_axis<maximum>(x, 0)) }")
                                        [0]);
  Memory x({kReduced, kRows, kColumns}, DType::kFloat32), y({kReduced, kRows, kColumns}, DType::kFloat32);
  const auto at = [](Memory& m, index_t c, index_t k) -> float& {
    return reinterpret_cast<float*>(m.data())[c * kRows * kColumns + k];
  };
  for (index_t c = 0; c < kReduced; ++c)
    for (index_t k = 0; k < kRows * kColumns; ++k) at(x, c, k) = static_cast<float>((c * 37 + k) % 1013);
  for (const int threads : {1, 3}) {
    function({{x.ref()}, {y.ref()}, {}}, {threads});
    index_t wrong = 0;
    for (index_t k = 0; k < kRows * kColumns; ++k) {
      float most = at(x, 0, k);
      for (index_t c = 1; c < kReduced; ++c) most = std::max(most, at(x, c, k));
      for (index_t c = 0; c < kReduced; ++c) wrong += at(y, c, k) != at(x, c, k) - most ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0) << threads;
  }
}

TEST(Streamed, ColumnsWhoseElementsAreStored) {
  for (const index_t steps : {index_t{5}, index_t{37}}) {
    ExpectStreamed("kernel t(x: T[s, m]) -> (y: T[s, m]) { y = x - broadcast<1>(reduce_with_axis<maximum>(x, 0)) }",
                   {{steps, 192}}, {steps, 192});
    ExpectStreamed(
        "kernel t(x: T[n, s, m]) -> (y: T[n, s, m]) { y = x - broadcast_with_axis(reduce_with_axis<minimum>(x, 1), 0, extent<1>(x)) }",
        {{3, steps, 320}}, {3, steps, 320});
  }
}

// What is larger than caches: short rows, which are walked one after the other, rows of several lines and parts of
// lines, wide ones, cut into blocks or not, and results past the caches and through them.
TEST(Streamed, ColumnsFromMemory) {
  const auto graph = graph::ParseText(
      "kernel t(x: f32[n, m]) -> (t: f32[m], y: f32[n, m]) {\n  t = reduce_with_axis<sum>(x, 0)\n  d = x - broadcast<1>(t / 16)\n"
      "  y = d / broadcast<1>(sqrt(reduce_with_axis<mean>(d * d, 0) + 1))\n}")[0];
  const auto at = [](Memory& of, index_t k) -> float& { return reinterpret_cast<float*>(of.data())[k]; };
  for (const auto& [n, m] :
       {std::pair<index_t, index_t>{150000, 64}, {47000, 250}, {10500, 1000}, {8400, 1024}, {2100, 4100}}) {
    Memory x({n, m}, DType::kFloat32), t({m}, DType::kFloat32), y({n, m}, DType::kFloat32);
    unsigned seed = 1;
    for (index_t k = 0; k < n * m; ++k)
      at(x, k) = static_cast<float>((seed = seed * 1664525u + 1013904223u) >> 20) / 4096 - 0.5f;
    std::vector<double> sum(static_cast<std::size_t>(m)), squares(static_cast<std::size_t>(m));
    for (index_t k = 0; k < n * m; ++k) sum[static_cast<std::size_t>(k % m)] += static_cast<double>(at(x, k));
    for (index_t k = 0; k < n * m; ++k) {
      const auto c = static_cast<std::size_t>(k % m);
      squares[c] += (static_cast<double>(at(x, k)) - sum[c] / 16) * (static_cast<double>(at(x, k)) - sum[c] / 16);
    }
    std::vector<char> expected;
    for (const CompileOptions& route : Routes()) {
      if (route.engine == Engine::kInterpreter) continue;  // it takes seconds
      const Function function = Compile(graph, route);
      for (const int threads : {1, 3}) {
        std::memset(y.bytes.data(), 0x55, y.bytes.size());
        function({{x.ref()}, {t.ref(), y.ref()}, {}}, {threads});
        std::vector<char> found(y.data(), y.data() + y.size());
        found.insert(found.end(), t.data(), t.data() + t.size());
        if (expected.empty()) expected = found;
        EXPECT_TRUE(found == expected) << n << " x " << m << ", " << route.target << ", " << threads << " threads";
      }
    }
    // Of n terms below 1 a sum in f32 is off by n * 2^-24 of their size at most; here far less, as most errors cancel.
    for (index_t c = 0; c < m; ++c)
      EXPECT_NEAR(at(t, c), sum[static_cast<std::size_t>(c)], 1e-3 * std::sqrt(static_cast<double>(n)))
          << n << " x " << m;
    double worst = 0;
    for (index_t k = 0; k < n * m; ++k) {
      const auto c = static_cast<std::size_t>(k % m);
      worst = std::max(
          worst, std::abs(static_cast<double>(at(y, k)) - (static_cast<double>(at(x, k)) - sum[c] / 16) /
                                                              std::sqrt(squares[c] / static_cast<double>(n) + 1)));
    }
    EXPECT_LT(worst, 2e-4) << n << " x " << m;
  }
}

// Packets, groups of them, runs, columns, several results, numbers beside them.
TEST(Streamed, RowsThatBeginAnywhere) {
  for (const index_t n : {index_t{1}, index_t{7}, index_t{16}, index_t{37}, index_t{64}, index_t{100}, index_t{193}}) {
    ExpectStreamed("kernel t(x: T[n, m], b: T[m]) -> (y: T[n, m]) { y = x + broadcast<1>(b) }", {{5, n}, {n}}, {5, n},
                   kJoined);
    ExpectStreamed("kernel t(x: T[n, m]) -> (y: T[n, m]) { y = x - broadcast<0>(reduce_with_axis<maximum>(x, 1)) }",
                   {{9, n}}, {9, n}, kJoined);
    ExpectStreamed("kernel t(x: T[n, m]) -> (y: T[n, m]) { y = flip(x, 1) }", {{5, n}}, {5, n}, kJoined);
    ExpectStreamed("kernel t(a: T[n, m], b: T[n, p]) -> (y: T[n, q]) { y = concat(a, b, 1) }", {{5, n}, {5, 30}},
                   {5, n + 30}, kJoined);
    ExpectStreamed("kernel t(x: T[n, h, w]) -> (y: T[n, p, q]) { y = pool<maximum>(x, 2, 2, 1, 1) }", {{3, 4, n + 1}},
                   {3, 3, n}, kJoined);
    ExpectStreamed("kernel t(x: T[n, h, w]) -> (y: T[n, p, w]) { y = slice(x, 1, 2, 5) + 1 }", {{3, 6, n}}, {3, 3, n},
                   kJoined);
    ExpectStreamed("kernel t(x: T[n, m]) -> (y: T[m, n]) { y = swapaxis(x, 0, 1) }", {{5, n}}, {n, 5}, kJoined);
  }
}

TEST(Streamed, FunctionsOfRowsThatBeginAnywhere) {
  constexpr char kText[] =
      "kernel t(x: f32[n, m]) -> (y: f32[n, m], z: f32[n, m], s: f32[n]) {\n"
      "  e = exp(x - broadcast<0>(reduce_with_axis<maximum>(x, 1)))\n  s = reduce_with_axis<sum>(e, 1)\n"
      "  y = e / broadcast<0>(s)\n  z = tanh(x)\n}";
  for (const index_t n : {index_t{5}, index_t{100}, index_t{193}, index_t{1000}}) {
    const index_t rows = 7;
    Memory x({rows, n}, DType::kFloat32);
    for (index_t k = 0; k < rows * n; ++k)
      reinterpret_cast<float*>(x.data())[k] = static_cast<float>(k * 37 % 101) * 0.05f - 2;
    for (const CompileOptions& route : Routes()) {
      if (route.engine == Engine::kInterpreter) continue;
      const Function function = Compile(graph::ParseText(kText)[0], route);
      Memory y({rows, n}, DType::kFloat32), z({rows, n}, DType::kFloat32), s({rows}, DType::kFloat32);
      const auto results = [&] {
        for (Memory* m : {&y, &z, &s}) std::memset(m->bytes.data(), 0x55, m->bytes.size());
        function({{x.ref()}, {y.ref(), z.ref(), s.ref()}, {}},
                 {1});  // the launch knows of the plain form, and cuts rows anywhere
        std::vector<char> all = y.bytes;
        all.insert(all.end(), z.bytes.begin(), z.bytes.end());
        all.insert(all.end(), s.bytes.begin(), s.bytes.end());
        return all;
      };
      const std::vector<char> expected = results();
      Stream(function, kJoined);
      EXPECT_TRUE(results() == expected) << route.target << " " << n;
    }
  }
}

// As a launch cuts them for its threads.
TEST(Streamed, ThreadsJoinRowsOfTheirOwn) {
  const Function function =
      Compile(graph::ParseText("kernel t(x: f32[n, m], b: f32[m]) -> (y: f32[n, m]) { y = x + broadcast<1>(b) }")[0]);
  for (const index_t columns : {index_t{1000}, index_t{999}, index_t{50}}) {
    const index_t rows = static_cast<index_t>(runtime::LastLevelCacheBytes() / 5 + 7) / columns;  // 1.6 times the cache
    Memory x({rows, columns}, DType::kFloat32), b({columns}, DType::kFloat32), y({rows, columns}, DType::kFloat32);
    const auto at = [](Memory& m, index_t k) -> float& { return reinterpret_cast<float*>(m.data())[k]; };
    for (index_t k = 0; k < rows * columns; ++k) at(x, k) = static_cast<float>(k % 1013);
    for (index_t k = 0; k < columns; ++k) at(b, k) = static_cast<float>(k);
    for (const int threads : {1, 2, 3, 7}) {
      std::memset(y.bytes.data(), 0x55, y.bytes.size());
      function({{x.ref(), b.ref()}, {y.ref()}, {}}, {threads});
      index_t wrong = 0;
      for (index_t k = 0; k < rows * columns; ++k) wrong += at(y, k) != at(x, k) + at(b, k % columns) ? 1 : 0;
      EXPECT_EQ(wrong, 0) << columns << " columns, " << threads << " threads";
      const char* const end = y.data() + y.size();
      EXPECT_TRUE(std::all_of(end, static_cast<const char*>(y.bytes.data() + y.bytes.size()),
                              [](char c) { return c == 0x55; }));
    }
  }
}

TEST(Streamed, RunsOfAnyLength) {
  const std::string text = "kernel t(a: T[n, m], b: T[n, p]) -> (y: T[n, q]) { y = concat(a, b, 1) }";
  for (const index_t first : {index_t{1}, index_t{15}, index_t{16}, index_t{37}, index_t{63}, index_t{127}})
    ExpectStreamed(text, {{3, first}, {3, 128 - first}}, {3, 128});
}

TEST(Streamed, RunsOfReshapesAndPatches) {
  ExpectStreamed("kernel t(x: T[n, m]) -> (y: T[p, q]) { y = reshape(x, 3, 192) }", {{64, 9}}, {3, 192});
  ExpectStreamed("kernel t(x: T[n, m]) -> (y: T[p, q]) { y = reshape(slice(x, 1, 1, 12), 2, 352) }", {{64, 12}},
                 {2, 352});
  ExpectStreamed("kernel t(x: T[n, c, h, w]) -> (y: T[p, q]) { y = unpack_patch2col(x, 3, 3, 1, 1, 1, 1) }",
                 {{4, 2, 18, 21}}, {18, 1216});
  ExpectStreamed("kernel t(x: T[n, c, h, w]) -> (y: T[p, q]) { y = unpack_patch2col(pad(x, 1, 1), 3, 2, 2, 1, 1, 1) }",
                 {{16, 2, 6, 9}}, {12, 480});
}

// In whole blocks, and in what is left of them.
TEST(Streamed, TransposedTiles) {
  ExpectStreamed("kernel t(x: T[n, m], b: T[m, n]) -> (y: T[m, n]) { y = transpose<1, 0>(x) + b }",
                 {{192, 300}, {300, 192}}, {300, 192});
  ExpectStreamed("kernel t(x: T[n, m], b: T[m, n]) -> (y: T[m, n]) { y = transpose<1, 0>(x) + b }",
                 {{192, 1030}, {1030, 192}}, {1030, 192});
  ExpectStreamed("kernel t(x: T[n, m]) -> (y: T[m, n]) { y = transpose<1, 0>(x) }", {{192, 2100}}, {2100, 192});
  ExpectStreamed("kernel t(x: T[n, p, m]) -> (y: T[m, p, n]) { y = transpose<2, 1, 0>(x) }", {{128, 3, 21}},
                 {21, 3, 128});
  ExpectStreamed(
      "kernel t(x: T[p, n, m], b: T[p, m, n], c: T[p, n, m]) -> (y: T[p, m, n]) { y = swapaxis(x, 1, 2) * b - swapaxis(c, 1, 2) }",
      {{2, 320, 73}, {2, 73, 320}, {2, 320, 73}}, {2, 73, 320});
}

// Rows of tiles that begin anywhere: whole blocks of columns and parts, rows shorter than a line, operands beside the
// turned one.
TEST(Streamed, TilesOfRowsThatBeginAnywhere) {
  for (const index_t n : {index_t{5}, index_t{17}, index_t{527}, index_t{530}, index_t{1037}, index_t{1056}})
    for (const index_t m : {index_t{1}, index_t{16}, index_t{37}}) {
      ExpectStreamed("kernel t(x: T[n, m]) -> (y: T[m, n]) { y = transpose<1, 0>(x) }", {{n, m}}, {m, n}, kJoined);
      ExpectStreamed("kernel t(x: T[n, m], b: T[m, n]) -> (y: T[m, n]) { y = transpose<1, 0>(x) + b }",
                     {{n, m}, {m, n}}, {m, n}, kJoined);
    }
  ExpectStreamed("kernel t(x: T[n, p, m]) -> (y: T[m, p, n]) { y = transpose<2, 1, 0>(x) }", {{129, 3, 21}},
                 {21, 3, 129}, kJoined);
  ExpectStreamed(
      "kernel t(x: T[p, n, m], c: T[p, n, m]) -> (y: T[p, m, n]) { y = swapaxis(x, 1, 2) - swapaxis(c, 1, 2) }",
      {{2, 321, 73}, {2, 321, 73}}, {2, 73, 321}, kJoined);
}

// As a launch takes them for large results, of rows with gaps that nothing is written to.
TEST(Streamed, LargeTilesOfRowsThatBeginAnywhere) {
  const Function function = Compile(graph::ParseText("kernel t(x: f32[n, m]) -> (y: f32[m, n]) { y = x.T }")[0]);
  const index_t m = 1003, n = static_cast<index_t>(runtime::LastLevelCacheBytes()) / 5 / m;  // 1.6 times the cache
  EXPECT_EQ(
      LaunchJoins("kernel t(x: f32[n, m]) -> (y: f32[m, n]) { y = transpose<1, 0>(x) }", {{n | 1, m}, {m, n | 1}}),
      runtime::CpuRuns("avx512"));
  Memory x({n, m}, DType::kFloat32), y({m, n + 5}, DType::kFloat32);
  const auto at = [](Memory& of, index_t k) -> float& { return reinterpret_cast<float*>(of.data())[k]; };
  for (index_t k = 0; k < n * m; ++k) at(x, k) = static_cast<float>(k % 1013);
  TensorRef result = y.ref();
  result.data = &at(y, 3);
  result.shape[1] = n;
  for (const int threads : {1, 2, 3}) {
    for (index_t k = 0; k < m * (n + 5); ++k) at(y, k) = -1;
    function({{x.ref()}, {result}, {}}, {threads});
    index_t wrong = 0;
    for (index_t i = 0; i < m; ++i)
      for (index_t j = -3; j < n + 2; ++j)
        wrong += at(y, i * (n + 5) + 3 + j) != (j < 0 || j >= n ? -1 : at(x, j * m + i)) ? 1 : 0;
    EXPECT_EQ(wrong, 0) << threads << " threads";
  }
}

TEST(Streamed, ShortRows) {
  for (const index_t width : {80, 64, 16}) {
    ExpectStreamed("kernel t(x: T[n, w, 3], b: T[3]) -> (y: T[n, w, 3]) { y = x + broadcast<2>(b) }",
                   {{3, width, 3}, {3}}, {3, width, 3});
    ExpectStreamed("kernel t(x: T[n, w, 3]) -> (y: T[3, n, w]) { y = transpose<2, 0, 1>(x) }", {{3, width, 3}},
                   {3, 3, width});
    ExpectStreamed(
        "kernel t(x: T[n, w, 3]) -> (y: T[3, n, w]) {\n"
        "  y = transpose<2, 0, 1>(x - broadcast_keepdim(reduce_keepdim<maximum>(x, 2), 2, 3))\n}",
        {{3, width, 3}}, {3, 3, width});
    ExpectStreamed("kernel t(x: T[n, w, 3], a: T[n, w, 1]) -> (y: T[n, w, 4]) { y = concat(flip(x, 2), a, 2) }",
                   {{3, width, 3}, {3, width, 1}}, {3, width, 4});
  }
  for (const char* columns : {"2", "4", "7", "13"}) {
    const index_t count = std::stoi(columns);
    const std::string text = std::string("kernel t(x: T[n, ") + columns + "]) -> (y: T[n, " + columns +
                             "]) { y = x - broadcast<0>(reduce_with_axis<maximum>(x, 1)) }";
    ExpectStreamed(text, {{83, count}}, {83, count});
  }
  constexpr index_t kRows = 1 << 20;
  constexpr char kPlanes[] = "kernel t(x: f32[n, w, 3]) -> (y: f32[3, n, w]) { y = transpose<2, 0, 1>(x) }",
                 kPixels[] = "kernel t(x: f32[3, n, w]) -> (y: f32[n, w, 3]) { y = transpose<1, 2, 0>(x) }";
  EXPECT_TRUE(LaunchStreams(kPlanes, {{kRows + 1, 1040, 3}, {3, kRows + 1, 1040}}));
  EXPECT_TRUE(LaunchStreams(kPlanes, {{kRows, 1024, 3}, {3, kRows, 1024}}));
  EXPECT_FALSE(LaunchStreams(kPlanes, {{kRows, 1023, 3}, {3, kRows, 1023}}));
  EXPECT_FALSE(LaunchStreams(kPlanes, {{3, 1024, 3}, {3, 3, 1024}}));
  EXPECT_TRUE(LaunchStreams(kPixels, {{3, kRows, 1024}, {kRows, 1024, 3}}));
  EXPECT_FALSE(LaunchStreams(kPixels, {{3, kRows, 1001}, {kRows, 1001, 3}}));
}

// Rows that lie alike in their pages: tiles that have a line of each go past the caches, and so do those that read
// others beside, or write less than lines, if they can go along one row after the other.
TEST(Streamed, TilesAlikeInTheirPages) {
  constexpr index_t kRows = 1 << 15;
  EXPECT_TRUE(LaunchStreams("kernel t(x: f32[n, m]) -> (y: f32[m, n]) { y = x.T }", {{kRows, kRows}, {kRows, kRows}}));
  EXPECT_TRUE(LaunchStreams("kernel t(x: u8[n, m]) -> (y: f32[m, n]) { y = tcast<f32>(x.T) }",
                            {{kRows, kRows}, {kRows, kRows}}));
  EXPECT_TRUE(LaunchStreams("kernel t(x: f32[n, m]) -> (y: f16[m, n]) { y = tcast<f16>(x.T) }",
                            {{kRows, kRows}, {kRows, kRows}}));
  EXPECT_TRUE(LaunchStreams("kernel t(x: f32[n, m], b: f32[m, n]) -> (y: f32[m, n]) { y = x.T + b }",
                            {{kRows, kRows}, {kRows, kRows}, {kRows, kRows}}));
  constexpr char kBetween[] =
      "kernel t(x: f32[n, p, m], b: f32[m, p, n]) -> (y: f32[m, p, n]) { y = transpose<2, 1, 0>(x) + b }";
  for (const index_t columns : {index_t{1024}, index_t{1040}})
    EXPECT_EQ(LaunchStreams(kBetween, {{columns, 65, kRows}, {kRows, 65, columns}, {kRows, 65, columns}}),
              columns % 1024 != 0 || runtime::CpuRuns("avx512"));
}

// Threads take whole blocks of tiles if there are many, or whole tiles.
TEST(Streamed, ThreadsTakeTilesTogether) {
  const auto granule = [](index_t rows) {
    return LaunchOf("kernel t(x: f32[n, m]) -> (y: f32[m, n]) { y = x.T }", {{4096, rows}, {rows, 4096}}, 2).granule;
  };
  EXPECT_EQ(granule(4000), 128);
  EXPECT_EQ(granule(1000), 16);
  EXPECT_EQ(granule(30), 1);
}

// Rows of elementwise kernels, of maps without runs, and of reductions.
TEST(Streamed, RowsOfPackets) {
  ExpectStreamed("kernel t(x: T[n, m]) -> (y: T[n, m]) { y = x + x }", {{3, 192}}, {3, 192});
  ExpectStreamed("kernel t(x: T[n, m]) -> (y: T[n, m]) { y = flip(x, 1) }", {{3, 192}}, {3, 192});
  ExpectStreamed("kernel t(x: T[n, m]) -> (y: T[n, m]) { y = x - broadcast<0>(reduce_with_axis<maximum>(x, 1)) }",
                 {{3, 192}}, {3, 192});
}

}  // namespace
}  // namespace umbra
