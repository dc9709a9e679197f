// What a call checks, and what it says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/disk_cache.h"
#include "tests/support/testing.h"
#include "umbra/compile.h"
#include "umbra/error.h"
#include "umbra/graph.h"
#include "umbra/jit.h"

namespace umbra {
namespace {

using runtime::Arguments;
using runtime::TensorRef;

class RunTest : public testing::TestWithParam<Engine> {
 protected:
  Function Make(const char* text) {
    CompileOptions options;
    options.engine = GetParam();
    return Compile(graph::ParseText(text)[0], options);
  }
  alignas(64) float a[64] = {}, b[64] = {}, c[64] = {};
  TensorRef Ref(float* p, std::vector<index_t> shape) { return TensorRef::Dense(p, DType::kFloat32, std::move(shape)); }
};

TEST_P(RunTest, BadOperands) {
  const Function f = Make("kernel add(x: f32[n, 4], y: f32[n, 4]) -> (z: f32[n, 4]) { z = x + y }");
  const auto good = Ref(a, {3, 4}), other = Ref(b, {3, 4}), out = Ref(c, {3, 4});
  f({{good, other}, {out}, {}});
  EXPECT_SAYS("takes 2 inputs, 1 given", f({{good}, {out}, {}}));
  EXPECT_SAYS("input 'y': dimension 0 of shape [2, 4] must be 3 as dimension 0 of input 'x'",
              f({{good, Ref(b, {2, 4})}, {out}, {}}));
  EXPECT_SAYS("input 'x': expected extent 4 in dimension 1, got shape [4, 3]", f({{Ref(a, {4, 3}), other}, {out}, {}}));
  EXPECT_SAYS("expected rank 2, got shape [12]", f({{Ref(a, {12}), other}, {out}, {}}));
  auto wrong = good;
  wrong.dtype = DType::kInt32;
  EXPECT_SAYS("input 'x': expected dtype f32, got i32", f({{wrong, other}, {out}, {}}));
  EXPECT_SAYS("the pointer is null", f({{Ref(nullptr, {3, 4}), other}, {out}, {}}));
  auto odd = good;
  odd.data = reinterpret_cast<char*>(a) + 2;
  EXPECT_SAYS("is not aligned to the 4 bytes", f({{odd, other}, {out}, {}}));
  const index_t huge = index_t{1} << 62;
  EXPECT_SAYS("more elements than memory can have",
              f({{Ref(a, {huge, 4}), Ref(b, {huge, 4})}, {Ref(c, {huge, 4})}, {}}));
  f({{Ref(nullptr, {0, 4}), Ref(nullptr, {0, 4})}, {Ref(nullptr, {0, 4})}, {}});
}

TEST_P(RunTest, AnOutputHasAPlaceForEveryElement) {
  const Function f = Make("kernel t(x: f32[n, m]) -> (y: f32[n, m]) { y = x + 1 }");
  auto out = Ref(b, {3, 4});
  out.stride = {4, 0};
  EXPECT_SAYS("output 'y': the strides [4, 0] of shape [3, 4] may give several elements one place",
              f({{Ref(a, {3, 4})}, {out}, {}}));
  out.stride = {3, 1};  // rows that begin within the rows before them
  EXPECT_SAYS("the strides [3, 1] of shape [3, 4] may give several elements one place",
              f({{Ref(a, {3, 4})}, {out}, {}}));
  out.stride = {-1, 1};
  EXPECT_SAYS("the strides [-1, 1] of shape [3, 4] may give several elements one place",
              f({{Ref(a, {3, 4})}, {out}, {}}));
  out.stride = {1, 3};  // columns side by side
  f({{Ref(a, {3, 4})}, {out}, {}});
  for (const index_t far : {index_t{1} << 61, -(index_t{1} << 62), std::numeric_limits<index_t>::max()}) {
    out.stride = {far, 1};
    EXPECT_SAYS("of shape [3, 4] reach further than memory can", f({{Ref(a, {3, 4})}, {out}, {}}));
  }
  out.shape = {3, 1};
  out.stride = {4, 0};
  f({{Ref(a, {3, 1})}, {out}, {}});
  auto in = Ref(a, {3, 4});
  in.stride = {0, 1};
  f({{in}, {Ref(b, {3, 4})}, {}});
}

TEST_P(RunTest, Threads) {
  const Function f = Make("kernel t(x: f32[n]) -> (y: f32[n]) { y = x + 1 }");
  EXPECT_SAYS("-1 threads; expected 1 or more, or 0", f({{Ref(a, {9})}, {Ref(b, {9})}, {}}, {-1}));
  EXPECT_SAYS("-1 threads", runtime::Run(f.program(), {{Ref(a, {9})}, {Ref(b, {9})}, {}}, {-1}));
}

// What index maps ask of extents that only the call brings.
TEST_P(RunTest, ExtentsThatDoNotFitNameTheMap) {
  const Function slice = Make("kernel k(x: f32[n, m]) -> (y: f32[n, p]) { y = slice(x, 1, 2, 9) }");
  EXPECT_SAYS("slice of 'x', axis 1: an extent is 4, but must be at least 9: an input is too small",
              slice({{Ref(a, {3, 4})}, {Ref(b, {3, 7})}, {}}));
  const Function reshape = Make("kernel k(x: f32[n, m]) -> (y: f32[5, 7]) { t = x + 1 y = reshape(t, 5, 7) }");
  EXPECT_SAYS("reshape of 't': an extent is 35, but must be 28", reshape({{Ref(a, {4, 7})}, {Ref(b, {5, 7})}, {}}));
  const Function two = Make(
      "kernel k(x: f32[n, m]) -> (y: f32[n, p], z: f32[p, q]) {"
      " y = slice(x, 1, 0, 9) z = flip(pool<sum>(x, 9, 9, 1, 1), 0) }");
  EXPECT_SAYS("slice of 'x', axis 1; pool<sum> of 'x', axis 1",
              two({{Ref(a, {9, 4})}, {Ref(b, {9, 9}), Ref(c, {1, 1})}, {}}));
}

TEST_P(RunTest, OnlyHarmlessOverlapsRun) {
  std::vector<float> x(100, 2.0f);
  const auto ref = [&](index_t from) { return TensorRef::Dense(x.data() + from, DType::kFloat32, {50}); };
  const Function twice = Make("kernel t(x: f32[n]) -> (y: f32[n]) { y = x * 2 }");
  twice({{ref(0)}, {ref(0)}, {}});
  EXPECT_EQ(x[49], 4.0f);
  EXPECT_EQ(x[50], 2.0f);
  EXPECT_SAYS("output 'y' overlaps input 'x'", twice({{ref(0)}, {ref(1)}, {}}));
  const Function both = Make("kernel b(x: f32[n]) -> (y: f32[n], z: f32[n]) {\n y = x * 2\n z = x + 1\n}");
  EXPECT_SAYS("the outputs 'y' and 'z' overlap", both({{ref(0)}, {ref(50), ref(50)}, {}}));
  const Function reversed = Make("kernel r(x: f32[n]) -> (y: f32[n]) { y = flip(x, 0) }");
  EXPECT_SAYS("output 'y' overlaps input 'x'", reversed({{ref(0)}, {ref(0)}, {}}));
}

INSTANTIATE_TEST_SUITE_P(Engines, RunTest, testing::Values(Engine::kJit, Engine::kInterpreter));

// Results far larger than the caches take another variant and several ranges; every element counts.
TEST(Launch, LargeResults) {
  const Function f = Compile(graph::ParseText("kernel t(x: f32[n]) -> (y: f32[n]) { y = x * 2 + 1 }")[0]);
  for (const std::size_t n : {std::size_t{30000001}, std::size_t{1} << 25}) {
    std::unique_ptr<float, decltype(&std::free)> x(static_cast<float*>(std::aligned_alloc(64, (n * 4 + 63) / 64 * 64)),
                                                   &std::free),
        y(static_cast<float*>(std::aligned_alloc(64, (n * 4 + 63) / 64 * 64)), &std::free);
    for (std::size_t i = 0; i < n; ++i) x.get()[i] = static_cast<float>(i % 4093), y.get()[i] = -1;
    const auto shape = std::vector<index_t>{static_cast<index_t>(n)};
    f({{TensorRef::Dense(x.get(), DType::kFloat32, shape)}, {TensorRef::Dense(y.get(), DType::kFloat32, shape)}, {}});
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) wrong += y.get()[i] != static_cast<float>(i % 4093) * 2 + 1;
    EXPECT_EQ(wrong, 0u);
  }
}

TEST(Cache, EveryDamageIsAMiss) {
  const auto folder = std::filesystem::temp_directory_path() / ("umbra-cache-test-" + std::to_string(getpid()));
  runtime::DiskCache cache(folder, 1 << 20);
  ASSERT_TRUE(cache.enabled()) << cache.problem();
  const std::string key = runtime::CacheKey({"a", "b"}), payload = "some machine code";
  EXPECT_NE(key, runtime::CacheKey({"ab", ""}));
  const auto file = folder / (key + ".kernel");
  cache.Write(key, payload);
  const auto size = std::filesystem::file_size(file);
  for (std::uintmax_t at = 0; at < size; ++at) {
    cache.Write(key, payload);
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(stream.get());
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(static_cast<char>(byte ^ 0x40));
    stream.close();
    EXPECT_FALSE(cache.Read(key).has_value()) << "byte " << at;
    EXPECT_FALSE(std::filesystem::exists(file)) << "byte " << at;
    cache.Write(key, payload);
    std::filesystem::resize_file(file, at);
    EXPECT_FALSE(cache.Read(key).has_value()) << "cut at " << at;
  }
  cache.Write(key, payload);
  const auto read = cache.Read(key);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(std::string(read->begin(), read->end()), payload);
  std::filesystem::remove_all(folder);
}

// Not every write looks at all entries, and yet there are never many too many.
TEST(Cache, StaysNearItsBound) {
  const auto folder = std::filesystem::temp_directory_path() / ("umbra-bound-test-" + std::to_string(getpid()));
  constexpr std::uint64_t kBound = 1 << 20;
  runtime::DiskCache cache(folder, kBound);
  ASSERT_TRUE(cache.enabled()) << cache.problem();
  std::uint64_t most = 0;
  for (int k = 0; k < 3000; ++k) {
    cache.Write(runtime::CacheKey({std::to_string(k)}), std::string(1000, 'x'));
    if (k % 16 == 0) most = std::max(most, cache.Usage().second);
    EXPECT_TRUE(cache.Read(runtime::CacheKey({std::to_string(k)})).has_value());
  }
  EXPECT_GT(most, kBound * 3 / 4);
  EXPECT_LT(most, kBound * 5 / 4);
  cache.Clear();
  std::filesystem::remove_all(folder);
}

// What is read again stays, though it is the oldest; what a write that was cut short has left goes.
TEST(Cache, WhatIsUnusedLongestGoesFirst) {
  const auto folder = std::filesystem::temp_directory_path() / ("umbra-use-test-" + std::to_string(getpid()));
  runtime::DiskCache cache(folder, 10000);
  ASSERT_TRUE(cache.enabled()) << cache.problem();
  const auto key = [](int k) { return runtime::CacheKey({std::to_string(k)}); };
  const auto file = [&](int k) { return folder / (key(k) + ".kernel"); };
  const auto now = std::filesystem::file_time_type::clock::now();
  for (int k = 0; k < 4; ++k) {
    cache.Write(key(k), std::string(1500, 'x'));
    std::filesystem::last_write_time(file(k), now - std::chrono::hours(10 - k));
  }
  const auto cut_short = folder / (key(7) + ".aB3xY9"), being_written = folder / (key(8) + ".aB3xY9"),
             strange = folder / "notes.kernel";
  for (const auto& path : {cut_short, being_written, strange}) std::ofstream(path) << "x";
  for (const auto& path : {cut_short, strange}) std::filesystem::last_write_time(path, now - std::chrono::hours(10));
  EXPECT_TRUE(cache.Read(key(0)).has_value());
  for (int k = 4; k < 8; ++k) cache.Write(key(k), std::string(1500, 'x'));
  EXPECT_TRUE(std::filesystem::exists(file(0))) << "the oldest, which was read";
  EXPECT_FALSE(std::filesystem::exists(file(1)));
  EXPECT_FALSE(std::filesystem::exists(cut_short));
  EXPECT_TRUE(std::filesystem::exists(being_written));
  cache.Clear();
  EXPECT_FALSE(std::filesystem::exists(being_written));
  EXPECT_TRUE(std::filesystem::exists(strange)) << "nothing of the cache's";
  std::filesystem::remove_all(folder);
}

TEST(Cache, AFolderThatCannotBeUsedIsAReasonNotAnError) {
  const auto file = std::filesystem::temp_directory_path() / ("umbra-cache-file-" + std::to_string(getpid()));
  std::ofstream(file) << "not a folder";
  runtime::DiskCache cache(file, 1 << 20);
  EXPECT_FALSE(cache.enabled());
  EXPECT_NE(cache.problem().find("is not a folder"), std::string::npos) << cache.problem();
  cache.Write("k", "x");
  EXPECT_FALSE(cache.Read("k").has_value());
  std::filesystem::remove(file);
}

TEST(Cache, AFolderThatExistsKeepsItsMode) {
  namespace fs = std::filesystem;
  const auto folder = fs::temp_directory_path() / ("umbra-cache-mode-" + std::to_string(getpid()));
  const auto mode = [](const fs::path& path) { return fs::status(path).permissions(); };
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms(0755));
  EXPECT_TRUE(runtime::DiskCache(folder, 1 << 20).enabled());
  EXPECT_EQ(mode(folder), fs::perms(0755));
  for (const int open : {0775, 0757, 01777}) {
    fs::permissions(folder, fs::perms(open));
    const runtime::DiskCache cache(folder, 1 << 20);
    EXPECT_FALSE(cache.enabled());
    EXPECT_NE(cache.problem().find("can be written by other users; take that away with 'chmod go-w "),
              std::string::npos)
        << cache.problem();
    EXPECT_EQ(mode(folder), fs::perms(open));
  }
  fs::permissions(folder, fs::perms(0700));
  EXPECT_TRUE(runtime::DiskCache(folder / "a" / "b", 1 << 20).enabled());
  EXPECT_EQ(mode(folder / "a"), fs::perms(0700));
  EXPECT_EQ(mode(folder / "a" / "b"), fs::perms(0700));
  fs::remove_all(folder);
}

// Operators that call others several times: 2 to the 40 of the last.
TEST(Parse, OperatorsThatMultiplyAreLimited) {
  const auto nested = [](const std::string& first, const std::string& next) {
    std::string text = "op f0(x) = " + first + "\n";
    for (int k = 1; k <= 40; ++k) {
      const std::string before = "f" + std::to_string(k - 1);
      std::string body = next;
      for (std::size_t at; (at = body.find("f(")) != std::string::npos;) body.replace(at, 1, before);
      text += "op f" + std::to_string(k) + "(x) = " + body + "\n";
    }
    return text;
  };
  const std::string kernel = "kernel k(x: f32[n]) -> (y: f32[n]) { y = f40(";
  EXPECT_SAYS("graph 'k' would have more than 262144 nodes: split it",
              graph::ParseText(nested("x * x + 1", "f(f(x))") + kernel + "x) }"));
  EXPECT_SAYS("expand to more than 2097152 operations",
              graph::ParseText(nested("x + 1", "f(x) + f(x)") + kernel + "x) }"));
  EXPECT_SAYS("expand to more than 2097152 operations",
              graph::ParseText(nested("x + 1", "f(f(x))") + kernel + "0) + x }"));
}

TEST(Parse, NamesThatAreTaken) {
  const std::string kernel = "\nkernel k(x: f32[n]) -> (y: f32[n]) { y = x }";
  for (const char* name : {"exp", "plus", "gelu", "flip", "pool", "dot", "broadcast", "tcast"})
    EXPECT_SAYS("<text>:1:4: error: '" + std::string(name) + "' is an operator of Umbra: choose another name",
                graph::ParseText("op " + std::string(name) + "(x) = x" + kernel));
  EXPECT_SAYS("<text>:2:4: error: two operators are called 'f'",
              graph::ParseText("op f(x) = x\nop f(a, b) = a" + kernel));
  EXPECT_SAYS("<text>:1:9: error: two arguments are called 'x': rename one\nop f(x, x) = x\n        ^",
              graph::ParseText("op f(x, x) = x" + kernel));
}

TEST(Parse, OfALongLineThePartAroundTheMistakeIsShown) {
  const auto widest = [](const std::string& message) {
    std::size_t width = 0;
    for (std::size_t at = message.find('\n') + 1, end; at < message.size(); at = end + 1) {
      end = std::min(message.find('\n', at), message.size());
      width = std::max(width, end - at);
    }
    return width;
  };
  const std::string before(5000, ' '), head = "kernel k(x: f32[n]) -> (y: f32[n]) { y = x";
  for (const std::string& text : {head + before + " + @ + x" + before + "}", "@" + before + head, head + before}) {
    const std::string message = MessageOf([&] { graph::ParseText(text); });
    EXPECT_LE(widest(message), 167u) << message;
    const std::size_t line = message.find('\n') + 1, caret = message.rfind('\n') + 1;
    const std::size_t column = message.size() - 1 - caret;
    if (text != head + before) { EXPECT_EQ(message[line + column], '@') << message; }
  }
}

TEST(Build, ADTypeThatIsNone) {
  graph::Builder builder("b");
  EXPECT_SAYS("input 'x': there is no dtype 99; expected f32", builder.Input("x", static_cast<DType>(99), {4}));
  EXPECT_SAYS("scalar 's': there is no dtype 99", builder.Scalar("s", static_cast<DType>(99)));
  EXPECT_SAYS("a constant: there is no dtype 99", builder.Constant(1, static_cast<DType>(99)));
  const graph::Value x = builder.Input("x", DType::kFloat32, {4});
  EXPECT_SAYS("a conversion: there is no dtype 99", graph::Cast(x, static_cast<DType>(99)));
}

TEST(Parse, ATextCutAnywhereIsAnErrorNotACrash) {
  const std::string text =
      "op twice(a) = a * 2\nkernel k(x: f32[?, 4], s: f32) -> (y: f32[?, 4]) {\n"
      "  t = twice(x) > s ? x : -x  # comment\n  y = t - broadcast<0>(reduce_with_axis<sum>(t, 1))\n}\n";
  EXPECT_EQ(graph::ParseText(text).size(), 1u);
  for (std::size_t length = 0; length + 2 < text.size(); ++length)
    EXPECT_THROW(graph::ParseText(text.substr(0, length)), Error) << length;
  std::string deep = "kernel k(x: f32[4]) -> (y: f32[4]) { y = ";
  deep.append(100000, '(');
  EXPECT_SAYS("nested more than", graph::ParseText(deep));
  const auto chain = [](int terms) {
    std::string sum = "x";
    for (int k = 1; k < terms; ++k) sum += " + x";
    return graph::ParseText("kernel k(x: f32[n]) -> (y: f32[n]) { y = " + sum + " }");
  };
  EXPECT_EQ(chain(8000).size(), 1u);
  EXPECT_SAYS("more than 8192 operations one after the other; name a part of it", chain(50000));
}

TEST(Compile, ManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([t, &right] {
      for (int k = 0; k < 6; ++k) {
        CompileOptions options;
        options.use_disk_cache = false;
        const std::string number = std::to_string(k * 8 + t / 2);
        const Function f =
            Compile(graph::ParseText("kernel k(x: f32[n]) -> (y: f32[n]) { y = x + " + number + " }")[0], options);
        float x = 1, y = 0;
        f({{TensorRef::Dense(&x, DType::kFloat32, {1})}, {TensorRef::Dense(&y, DType::kFloat32, {1})}, {}});
        right += y == 1 + static_cast<float>(k * 8 + t / 2);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 48);
}

TEST(Jit, AgreesWithEager) {
  TensorContainer<cpu, 2> a(Shape2(7, 33)), b(Shape2(7, 33)), eager(Shape2(7, 33)), compiled(Shape2(7, 33));
  for (int i = 0; i < 7; ++i)
    for (int j = 0; j < 33; ++j) a[i][j] = static_cast<float>(i - j) / 5, b[i][j] = static_cast<float>(i * j % 11);
  const auto same = [&] {
    for (int i = 0; i < 7; ++i)
      for (int j = 0; j < 33; ++j) ASSERT_EQ(eager[i][j], compiled[i][j]) << i << ", " << j;
  };
  eager = F<op::sigmoid>(a * b) + a / 3.0f;
  jit(compiled) = F<op::sigmoid>(a * b) + a / 3.0f;
  same();
  eager *= F<op::tanh>(a);
  jit(compiled) *= F<op::tanh>(a);
  same();
  eager = F<op::select>(F<op::lt>(a, b), a, b);
  jit(compiled) = F<op::select>(F<op::lt>(a, b), a, b);
  same();
  TensorContainer<cpu, 1> factor(Shape1(1));
  factor[0] = -0.0f;
  eager = a * broadcast_scalar(factor, a.shape_);
  jit(compiled) = a * broadcast_scalar(factor, a.shape_);
  same();
}

}  // namespace
}  // namespace umbra
