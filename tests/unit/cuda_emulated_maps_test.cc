// Generated CUDA kernels that compute with positions, run by the emulator, against the interpreter.
#include <gtest/gtest.h>

#include <sys/mman.h>

#include "tests/support/emulated_calls.h"
#include "tests/support/map_texts.h"

namespace umbra {
namespace {

using namespace drawn;  // NOLINT: the test's own words
using emulated::Calls;

// An operand that is read across its lines lies side by side where its lines have one element, or lie apart; and one
// that moves along what is reduced, of which there is one.
TEST(CudaEmulated, PacketsBesidePositions) {
  Calls calls;
  for (const index_t padding : {0, 3, 7})
    calls.Add("kernel k(b: f32[?, ?], d: f32[?]) -> (o: f32[1, 64]) { o = b.T + repmat(flip(d, 0), 1) }",
              {{{64, 1}, padding}, {{64}}});
  for (const std::string type : {"f32", "f64", "i64", "bf16"})
    for (const char* reducer : {"maximum", "sum"}) {
      const std::string of = ": " + type + "[4, 1, 16]";
      calls.Add("kernel k(a" + of + ", b" + of + ") -> (o: " + type + "[4, 16]) { o = reduce_with_axis<" + reducer +
                    ">(flip(a, 2) + b, 1) }",
                {{{4, 1, 16}}, {{4, 1, 16}}}, 1e-2);
    }
  calls.Run();
}

// Integers wrap, also beside positions, and in sums.
TEST(CudaEmulated, IntegersWrapBesidePositions) {
  const auto graph = graph::ParseText(
      "kernel k(a: i64[n, m], c: i64[n, p]) -> (o: bool[n, p], s: i64[n], q: i64[n]) {\n  y = concat(a, a, 1) + flip(c, 0)\n"
      "  o = y + 1 > y\n  s = reduce_with_axis<sum>(y, 1)\n  q = reduce_with_axis<product>(y, 1)\n}")[0];
  const plan::Plan plan = Lower(*graph, true);
  for (const auto& step : plan.steps)
    if (const auto* kernel = std::get_if<plan::Kernel>(&step))
      for (const bool wide : {false, true}) {
        runtime::CudaVariant variant;
        const auto schedule = codegen::ScheduleForCuda(plan, *kernel);
        variant.form = schedule.reduces ? runtime::CudaForm::kRowPerWarp : runtime::CudaForm::kElements;
        variant.wide_index = wide;
        const std::string text = codegen::GenerateCuda(plan, *kernel, variant).kernel;
        EXPECT_EQ(text.find("y + 1LL"), std::string::npos) << text;
      }
}

// Rows that lie so far apart that offsets do not fit 32 bits, where positions do; memory is there where elements are.
TEST(CudaEmulated, OffsetsBeyond32Bits) {
  constexpr index_t kRows = 4, kColumns = 40, kPitch = index_t{1} << 30;
  constexpr std::size_t kBytes = static_cast<std::size_t>(kRows * kPitch) * sizeof(float);
  for (const char* text : {"kernel k(x: f32[n, m]) -> (y: f32[n, m]) { y = flip(x, 0) * 2 }",
                           "kernel k(x: f32[n, m]) -> (y: f32[n, m]) { y = flip(flip(x, 0), 1) * 2 }"}) {
    std::vector<runtime::TensorRef> far;
    for (int k = 0; k < 2; ++k) {
      void* const space = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      ASSERT_NE(space, MAP_FAILED);
      for (index_t row = 0; row < kRows; ++row) {
        float* const begin = static_cast<float*>(space) + row * kPitch;
        ASSERT_EQ(mprotect(begin, 4096, PROT_READ | PROT_WRITE), 0);
        for (index_t i = 0; i < kColumns; ++i) begin[i] = static_cast<float>(row * 100 + i);
      }
      far.push_back(runtime::TensorRef::Dense(space, DType::kFloat32, {kRows, kColumns}));
      far.back().stride[0] = kPitch;
    }
    const auto graph = graph::ParseText(text)[0];
    emulated::Library library;
    emulated::Call call(&library, *graph, {{far[0]}, {far[1]}, {}});
    ASSERT_EQ(call.launches().size(), 1u);
    EXPECT_TRUE(call.launches()[0].variant.wide_offset && !call.launches()[0].variant.wide_index) << text;
    library.Build();
    call.Run(false);
    const bool turned = std::string(text).find(", 1)") != std::string::npos;
    for (index_t row = 0; row < kRows; ++row)
      for (index_t i = 0; i < kColumns; ++i)
        ASSERT_EQ(static_cast<float*>(far[1].data)[row * kPitch + i],
                  static_cast<float>(2 * ((kRows - 1 - row) * 100 + (turned ? kColumns - 1 - i : i))))
            << row << " " << i;
    for (const runtime::TensorRef& tensor : far) munmap(tensor.data, kBytes);
  }
}

// Of windows a thread has several below each other, and what is left of them.
TEST(CudaEmulated, WindowsBelowEachOther) {
  Calls calls;
  for (const auto& [call, rows] : {std::pair<std::string, int>{"pool<maximum>(x, 2, 2, 2, 2)", 4},
                                   {"pool<sum>(x, 3, 3, 1, 1)", 2},
                                   {"pool<sum>(x, 4, 4, 1, 1)", 1}})
    for (const index_t n : {1, 2, 300}) {
      const std::string text = "kernel pooled(x: f32[n, c, h, w]) -> (y: f32[?, ?, ?, ?]) { y = " + call + " }";
      const plan::Plan plan = Lower(*graph::ParseText(text)[0]);
      EXPECT_EQ(codegen::ScheduleForCuda(plan, std::get<plan::Kernel>(plan.steps[0])).rows, rows) << call;
      calls.Add(text, {{{n, 7, 12, 10}}}, 1e-4);
    }
  calls.Run();
}

// What computes with positions stores packets where the results' rows divide into them, whatever it reads.
TEST(CudaEmulated, ResultsInPackets) {
  Calls calls;
  const auto add = [&](const std::string& text, const std::vector<Calls::Shape>& shapes, bool vector) {
    calls.Add(text, shapes, 1e-4);
    EXPECT_EQ(calls.launches()[0].variant.vector, vector) << text;
  };
  for (const index_t m : {20, 19}) {
    const bool whole = m == 20;
    add("kernel patches(x: f32[b, c, h, w]) -> (y: f32[?, ?]) { y = unpack_patch2col(x, 3, 3, 1, 1, 1, 1) }",
        {{{2, 3, 9, m}}}, whole);
    add("kernel taken(a: i32[n], x: f32[k, m]) -> (y: f32[n, m]) { y = take(a, x) }", {{{37}}, {{9, m}}}, whole);
    add("kernel joined(a: f32[n, m], b: f32[n, m]) -> (y: f32[n, ?]) { y = concat(flip(a, 1), b * 2, 1) }",
        {{{300, m}}, {{300, m}}}, m % 2 == 0);
    add("kernel turned(a: f32[m]) -> (y: f32[m]) { y = flip(a, 0) }", {{{m}}}, whole);
    add("kernel spread(x: f32[n, h, w], y: f32[n, p, q], g: f32[n, p, q]) -> (dx: f32[n, h, w]) { dx = unpool<maximum>(x, y, g, 2, 2, 2, 2) }",
        {{{70, 8, m}}, {{70, 4, m / 2}}, {{70, 4, m / 2}}}, whole);
    add("kernel pooled(x: f32[n, h, w]) -> (y: f32[?, ?, ?]) { y = pool<maximum>(x, 2, 2, 2, 2) }", {{{3, 6, 2 * m}}},
        false);
  }
  // Rows of the results that packets do not divide.
  calls.Add("kernel turned(a: f32[n, m]) -> (y: f32[n, m]) { y = flip(a, 1) }", {{{9, 20}, 1}});
  EXPECT_FALSE(calls.launches()[0].variant.vector);
  calls.Run();
}

// What they read by packets where those begin at multiples and columns have the same choices, some of them or all;
// where rows of an operand do not, or none do, by elements. Packets at other addresses trap.
TEST(CudaEmulated, PacketsOfMemory) {
  Calls calls;
  const auto add = [&](const std::string& text, const std::vector<Calls::Shape>& shapes) {
    calls.Add(text, shapes, 1e-4);
    EXPECT_TRUE(calls.launches()[0].variant.vector) << text;
  };
  const std::string three = "concat(a, b, c, 1)";
  for (const std::string dtype : {"f32", "f16", "i8", "f64", "i64", "bool"}) {
    const auto joined = [&](index_t a, index_t b, index_t c, index_t padding) {
      const std::string of = ": " + dtype + "[n, ?]";
      add("kernel joined(a" + of + ", b" + of + ", c" + of + ") -> (y" + of + ") { y = " + three + " }",
          {{{37, a}, padding}, {{37, b}}, {{37, c}, 2 * padding}});
    };
    joined(16, 40, 8, 0);
    joined(16, 32, 16, 8);
    joined(8, 7, 17, 0);  // one whose packets lie across two
    joined(1, 2, 45, 0);  // packets of all three
    joined(24, 16, 8, 8);
  }
  for (const index_t padding : {0, 4, 1})
    for (const index_t m : {32, 30, 31}) {
      const std::string x = "x: f32[n, h, " + std::to_string(m) + "]";
      const std::vector<Calls::Shape> shapes = {{{5, 6, m}, padding}};
      const auto one = [&](const std::string& y, index_t extent) {
        if (extent % 4 == 0) calls.Add("kernel k(" + x + ") -> (y: f32[?, ?, ?]) { y = " + y + " }", shapes, 1e-4);
      };
      one("flip(x, 2) * 2", m);
      one("flip(flip(x, 1), 2)", m);
      one("slice(x, 2, 4, 28)", 24);
      one("slice(x, 2, 5, 29)", 24);
      one("pad(x, 1, 4)", m + 4);
      one("concat(flip(x, 2), x, 2)", 2 * m);
      one("concat(x, x, 1) + concat(x * 2, x, 1)", m);
      one("upsampling_nearest(x, 2)", 2 * m);
      one("upsampling_nearest(x, 4) - 1", 4 * m);
      one("crop(upsampling_nearest(x, 2), 0, 8, 12, 40)", 40);
      // Packets that begin within those that share an element.
      one("slice(upsampling_nearest(x, 2), 2, 1, 41)", 40);
      one("slice(upsampling_nearest(x, 2), 2, 2, 42)", 40);
      one("slice(upsampling_nearest(x, 4), 2, 2, 42)", 40);
      one("slice(upsampling_nearest(x, 2), 2, 5, 29) + slice(upsampling_nearest(x, 2), 2, 4, 28)", 24);
    }
  // Rows of which some have no element.
  add("kernel padded(x: f32[b, c, h, w]) -> (y: f32[?, ?, ?, ?]) { y = pad(x, 3, 4) }", {{{2, 3, 5, 16}}});
  add("kernel taken(a: i32[n], x: f32[k, m]) -> (y: f32[n, m]) { y = take(a, x) * 2 + 1 }", {{{37}}, {{9, 20}, 4}});
  // Names that the text has, and what all rows have alike beside what they do not.
  add("kernel t(choices: f32[?, ?], whole: f32[?, ?]) -> (y: f32[?, 40]) { y = concat(flip(choices, 1), whole, 1) + slice(concat(whole, choices, 1), 1, 0, 40) }",
      {{{5, 16}}, {{5, 24}}});
  const auto alike = [](const std::string& of, int from) {
    return "(broadcast<0>(c) > 0 ? broadcast_keepdim(slice(upsampling_nearest(" + of +
           ", 2), 0, 0, 1), 0, 12) : crop(upsampling_nearest(x, 2), 0, " + std::to_string(from) + ", 12, 32))";
  };
  add("kernel t(a: f32[1, 16], b: f32[1, 16], x: f32[6, 20], c: f32[12]) -> (y: f32[12, 32]) { y = " + alike("a", 8) +
          " + " + alike("b", 4) + " }",
      {{{1, 16}}, {{1, 16}}, {{6, 20}}, {{12}}});
  calls.Run();
}

TEST(CudaEmulated, IndexMaps) {
  using runtime::CudaVariant;
  // Positions and offsets of 32 bits, offsets of 64, and what stands for others ahead of time, which has 64 for both.
  const auto offsets = [](CudaVariant* variant) {
    variant->wide_offset = variant->form == runtime::CudaForm::kElements;
  };
  for (void (*const change)(CudaVariant*) :
       std::initializer_list<void (*)(CudaVariant*)>{nullptr, offsets, emulated::General}) {
    Calls calls(change);
    for (const MapText& map : MapTexts())
      for (const char* dtype : {"f32", "f64", "i32", "i64"}) {
        if (change != nullptr && dtype[0] != 'f') continue;
        std::vector<Calls::Shape> shapes;
        for (const auto& shape : map.shapes)
          shapes.push_back({shape, static_cast<index_t>(shapes.size()) + (dtype[1] == '6')});
        calls.Add(KernelOf(map, dtype), shapes);
        for (const runtime::CudaLaunch& launch : calls.launches())
          EXPECT_EQ(launch.variant.wide_index, change == emulated::General) << map.call;
      }
    calls.Run();
  }
}

// Positions as 32-bit numbers beside data of 64 bits: where one meets the other, and what is stored, is as wide as
// data.
TEST(CudaEmulated, PositionsBesideWideData) {
  using graph::Op;
  Calls calls;
  for (const double step : {1.0, 7.0, 1e8}) {
    auto graph = std::make_shared<graph::Graph>("k");
    const PartialShape shape = {9, 40};
    const auto map = [&](Op op, std::vector<int> args) { return graph->Map(op, std::move(args)); };
    const auto number = [&](double value) { return graph->Constant(value, DType::kInt64); };
    const int a = graph->Input("a", DType::kInt64, shape), b = graph->Input("b", DType::kInt64, shape);
    const int i = map(Op::mul, {graph->Index(1, shape), number(step)}), less = map(Op::minus, {i, number(20)});
    graph->AddOutput("x", map(Op::plus, {map(Op::minimum, {map(Op::maximum, {map(Op::mul, {a, i}), i}), b}),
                                         map(Op::div, {a, less})}));
    graph->AddOutput("y", map(Op::plus, {map(Op::select, {map(Op::gt, {a, i}), a, map(Op::negative, {i})}),
                                         map(Op::bit_and, {b, less})}));
    graph->AddOutput("z", map(Op::mul, {map(Op::abs, {less}), number(1e12)}));
    graph->AddOutput("u", graph->Cast(less, DType::kFloat32));
    graph->AddOutput("v", graph->Cast(map(Op::minimum, {map(Op::maximum, {a, number(3)}), i}), DType::kInt32));
    graph->AddOutput(
        "s", graph->Reduce(graph::Reducer::maximum, map(Op::select, {map(Op::gt, {a, b}), i, number(-1)}), {1}, false));
    graph->AddOutput("c", graph->Reduce(graph::Reducer::sum, map(Op::plus, {i, less}), {0}, false));
    calls.Add(graph, {{{9, 40}}, {{9, 40}}}, 0);
    for (const runtime::CudaLaunch& launch : calls.launches()) EXPECT_EQ(launch.variant.wide_index, step > 7) << step;
  }
  calls.Run();
}

}  // namespace
}  // namespace umbra
