// What is decided of kernels and launches on a GPU, without one: forms, packets, grids, the width of positions.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "compiler/codegen/cuda/generate.h"
#include "compiler/driver/lower.h"
#include "compiler/graph/graph.h"
#include "runtime/positions.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

// What threads take: packets of 16 bytes of the widest operand, two of them where elements are not bytes; and rows that
// are written have a warp up to half the length.
TEST(CudaLaunch, Schedules) {
  const auto schedule = [](const std::string& text) {
    const plan::Plan plan = Lower(*graph::ParseText("kernel k" + text)[0]);
    return codegen::ScheduleForCuda(plan, std::get<plan::Kernel>(plan.steps[0]));
  };
  const auto packets = [&](const std::string& text) { return std::pair(schedule(text).lanes, schedule(text).packets); };
  EXPECT_EQ(packets("(a: f32[n]) -> (y: f32[n]) { y = a * 2 }"), std::pair(4, 2));
  EXPECT_EQ(packets("(a: f32[n], b: f32[n], c: f32[n]) -> (y: f32[n]) { y = a * b + c }"), std::pair(4, 1));
  EXPECT_EQ(packets("(a: f16[n], b: f32[n]) -> (y: f32[n]) { y = tcast<f32>(a) * b }"), std::pair(4, 2));
  EXPECT_EQ(packets("(a: i8[n], b: i8[n]) -> (y: i8[n]) { y = a + b }"), std::pair(16, 1));
  EXPECT_EQ(packets("(a: i8[n]) -> (y: f64[n]) { y = tcast<f64>(a) }"), std::pair(2, 2));
  EXPECT_EQ(packets("(a: i8[n]) -> (y: i8[n]) { y = flip(a, 0) }"), std::pair(8, 1));
  EXPECT_EQ(schedule("(x: f32[n, m]) -> (y: f32[n, m]) { y = exp(x) / broadcast<0>(reduce_with_axis<sum>(exp(x), 1)) }")
                .warp_row,
            512);
  EXPECT_EQ(schedule("(x: f32[n, m]) -> (y: f32[n]) { y = reduce_with_axis<sum>(exp(x), 1) }").warp_row, 1024);
}

// Of how many launches one has room for the arguments: updates of 13 words, Adam's of 28.
TEST(CudaLaunch, RoomForArguments) {
  EXPECT_EQ(runtime::CudaMostLaunches(13, false), 36u);
  EXPECT_EQ(runtime::CudaMostLaunches(13, true), 292u);
  EXPECT_EQ(runtime::CudaMostLaunches(28, false), 17u);
  EXPECT_EQ(runtime::CudaMostLaunches(28, true), 141u);
}

// What a launch decides of shapes that no test has the memory for.
TEST(CudaLaunch, LargeShapes) {
  const plan::Plan plan = Lower(*graph::ParseText("kernel k(x: f32[n, m]) -> (y: f32[n, m]) { y = x * 2 }")[0]);
  const auto& kernel = std::get<plan::Kernel>(plan.steps[0]);
  const auto launch = [&](index_t n, index_t m, index_t pitch, std::uintptr_t address) {
    runtime::TensorRef x = runtime::TensorRef::Dense(reinterpret_cast<void*>(address), DType::kFloat32, {n, m});
    x.stride[0] = pitch;
    return runtime::PlanCudaLaunch(kernel.signature, codegen::ScheduleForCuda(plan, kernel), {x, x}, {n, m}, {});
  };
  // Dense rows are one: 2048 elements a block, none left over.
  const auto dense = launch(16384, 16384, 16384, 4096);
  EXPECT_TRUE(dense.variant.vector);
  EXPECT_FALSE(dense.variant.wide_index);
  EXPECT_EQ(dense.extent, (std::vector<index_t>{1, 16384 * 16384}));
  EXPECT_EQ(dense.grid.x, 16384u * 16384 / 2048);
  EXPECT_EQ(dense.grid.y, 1u);
  // An address or a pitch that packets do not fit.
  EXPECT_FALSE(launch(16384, 16384, 16384, 4100).variant.vector);
  EXPECT_FALSE(launch(16384, 16383, 16385, 4096).variant.vector);
  EXPECT_TRUE(launch(16384, 16380, 16384, 4096).variant.vector);
  // Beyond 32 bits.
  const auto wide = launch(index_t{1} << 20, 16384, 16384, 4096);
  EXPECT_TRUE(wide.variant.wide_index);
  EXPECT_EQ(wide.grid.x, (1u << 20) / 2048 * 16384);
  // Steps over the rows are up to 2^24, and 32 bits have to hold a position several steps beyond the end.
  EXPECT_FALSE(launch((index_t{1} << 31) - (index_t{1} << 28), 1, 1, 4096).variant.wide_index);
  EXPECT_TRUE(launch((index_t{1} << 31) - (index_t{1} << 26), 1, 1, 4096).variant.wide_index);
  // Without packets a thread takes four rows, or four times four, if that leaves blocks enough.
  EXPECT_EQ(launch(16384, 16383, 16385, 4096).grid.y, 1024u);
  EXPECT_EQ(launch(2048, 1023, 1025, 4096).grid.y, 512u);
  EXPECT_EQ(launch(128, 1023, 1025, 4096).grid.y, 128u);
  // One that writes five results takes a row at a time.
  const plan::Plan five = Lower(*graph::ParseText(
      "kernel k(x: f32[n, m]) -> (a: f32[n, m], b: f32[n, m], c: f32[n, m], d: f32[n, m], e: f32[n, m]) {\n"
      "  a = x * 2  b = x * 3  c = x * 5  d = x * 7  e = x * 11 }")[0]);
  EXPECT_EQ(codegen::ScheduleForCuda(plan, kernel).rows, 4);
  EXPECT_EQ(codegen::ScheduleForCuda(five, std::get<plan::Kernel>(five.steps[0])).rows, 1);
  // Rows that are not one, of two packets a thread: no thread is idle.
  const auto narrow = launch(16384, 1024, 1028, 4096);
  EXPECT_EQ(narrow.grid.x * narrow.block.x * 4 * 2, 1024u);
  EXPECT_EQ(narrow.block.x * narrow.block.y, 256u);
  // More rows than a grid has blocks along y.
  const auto rows = launch(index_t{1} << 27, 3, 4, 4096);
  EXPECT_LE(rows.grid.y, 65535u);
  EXPECT_EQ(rows.block.x * rows.block.y, 256u);
}

// The bytes that are kept of a row take more than its elements.
TEST(CudaLaunch, RowsKeptBeyond32Bits) {
  const plan::Plan plan = Lower(*graph::ParseText(
      "kernel k(x: f32[n, m]) -> (y: f32[n, m]) { y = exp(x) / broadcast<0>(reduce_with_axis<sum>(exp(x), 1)) }")[0]);
  const auto& kernel = std::get<plan::Kernel>(plan.steps[0]);
  ASSERT_FALSE(kernel.signature.row_buffers.empty());
  const auto launch = [&](index_t m) {
    const runtime::TensorRef x = runtime::TensorRef::Dense(reinterpret_cast<void*>(4096), DType::kFloat32, {2, m});
    return runtime::PlanCudaLaunch(kernel.signature, codegen::ScheduleForCuda(plan, kernel), {x, x}, {2, m}, {});
  };
  EXPECT_FALSE(launch(index_t{1} << 28).variant.wide_index);
  EXPECT_TRUE(launch(index_t{1} << 29).variant.wide_index);
}

// A warp keeps no more of its row than a block may have of shared memory.
TEST(CudaLaunch, RowsOfWarpsFitSharedMemory) {
  std::string inputs, terms;
  for (int k = 0; k < 13; ++k) {
    inputs += (k == 0 ? "" : ", ") + std::string("x") + std::to_string(k) + ": f64[n, m]";
    terms += (k == 0 ? "" : " + ") + std::string("x") + std::to_string(k);
  }
  const plan::Plan plan =
      Lower(*graph::ParseText("kernel k(" + inputs + ") -> (y: f64[n, m]) { s = " + terms + "  y = (" + terms +
                              ") / broadcast<0>(reduce_with_axis<maximum>(s, 1)) }")[0]);
  const auto& kernel = std::get<plan::Kernel>(plan.steps[0]);
  const runtime::TensorRef x = runtime::TensorRef::Dense(reinterpret_cast<void*>(4096), DType::kFloat64, {64, 1024});
  const auto launch = runtime::PlanCudaLaunch(kernel.signature, codegen::ScheduleForCuda(plan, kernel),
                                              std::vector<runtime::TensorRef>(14, x), {64, 1024}, {});
  EXPECT_LE(launch.shared_bytes, runtime::CudaLimits().shared_bytes);
}

// Positions take 32 bits where all that they are computed from stays within.
TEST(CudaLaunch, Positions) {
  using Tensors = std::vector<runtime::TensorRef>;
  const auto variant = [](const std::string& text, const Tensors& inputs, std::vector<umbra_scalar> scalars = {}) {
    const plan::Plan plan = Lower(*graph::ParseText(text)[0]);
    const auto& kernel = std::get<plan::Kernel>(plan.steps[0]);
    runtime::Program face;
    face.buffers = plan.buffers;
    face.scalars = plan.scalars;
    face.num_symbols = static_cast<int>(plan.symbols.size());
    face.derived = plan.derived;
    runtime::Arguments arguments{inputs, {}, std::move(scalars)};
    arguments.outputs.push_back(runtime::TensorRef::Dense(inputs[0].data, DType::kFloat32,
                                                          runtime::OutputShapes(face, inputs, arguments.scalars)[0]));
    const std::vector<index_t> symbols = runtime::CheckArguments(face, arguments);
    return runtime::PlanCudaLaunch(kernel.signature, codegen::ScheduleForCuda(plan, kernel),
                                   {inputs[0], arguments.outputs[0]}, symbols, {})
        .variant;
  };
  const auto is_wide = [&](const std::string& text, const Tensors& inputs, std::vector<umbra_scalar> scalars = {}) {
    return variant(text, inputs, std::move(scalars)).wide_index;
  };
  const auto dense = [](std::vector<index_t> shape) {
    return runtime::TensorRef::Dense(reinterpret_cast<void*>(4096), DType::kFloat32, std::move(shape));
  };
  const std::string flip = "kernel k(x: f32[n]) -> (y: f32[n]) { y = flip(x, 0) }";
  EXPECT_FALSE(is_wide(flip, {dense({1 << 30})}));
  EXPECT_TRUE(is_wide(flip, {dense({index_t{1} << 32})}));
  // More elements than 32 bits tell apart, in rows that they do.
  const std::string patches =
      "kernel k(x: f32[n, c, h, w]) -> (y: f32[p, q]) { y = unpack_patch2col(x, 3, 3, 1, 1, 1, 1) }";
  EXPECT_FALSE(variant(patches, {dense({32, 64, 56, 56})}).wide_offset);
  EXPECT_TRUE(variant(patches, {dense({1337, 64, 56, 56})}).wide_offset);
  EXPECT_FALSE(is_wide(patches, {dense({1337, 64, 56, 56})}));
  EXPECT_FALSE(variant(flip, {dense({index_t{1} << 32})}).wide_offset);
  const auto plain =
      variant("kernel k(x: f32[n, m]) -> (y: f32[n, m]) { y = x * 2 }", {dense({index_t{1} << 20, index_t{1} << 12})});
  EXPECT_TRUE(plain.wide_index && !plain.wide_offset);
  // What a quotient leaves is less than the divisor, so that what follows stays small.
  EXPECT_FALSE(is_wide("kernel k(x: f32[b, 3, h, w]) -> (y: f32[27, q]) { y = unpack_patch2col(x, 3, 3, 1, 1, 1, 1) }",
                       {dense({64, 3, 1024, 1024})}));
  // Few elements of memory, at large positions.
  runtime::TensorRef same = dense({index_t{1} << 32, 4});
  same.stride[0] = 0;
  const std::string slice = "kernel k(x: f32[n, m], p: i64, q: i64) -> (y: f32[?, m]) { y = slice(x, 0, p, q) }";
  const auto number = [](long long value) {
    umbra_scalar scalar;
    scalar.i64 = value;
    return scalar;
  };
  EXPECT_FALSE(is_wide(slice, {same}, {number(1000), number(1010)}));
  EXPECT_TRUE(is_wide(slice, {same}, {number(1LL << 31), number((1LL << 31) + 10)}));
}

// Whatever is said to stay within a limit does, for every index, and all but a few of what does are said to.
TEST(CudaLaunch, PositionsStayWithinTheirRanges) {
  using Kind = runtime::Position::Kind;
  std::mt19937 random(20261124);
  const auto draw = [&](int below) { return static_cast<index_t>(random() % static_cast<unsigned>(below)); };
  int within = 0, said = 0;
  for (int round = 0; round < 20000; ++round) {
    const index_t limit = 40 + draw(200), extent = 1 + draw(12), number = draw(9) - 2;
    std::vector<runtime::Position> positions = {
        {Kind::kAxis, 0, 0}, {Kind::kNumber, 0, 0}, {Kind::kConstant, draw(15) - 5, 0}};
    for (index_t k = 3; k < 7; ++k)
      positions.push_back({static_cast<Kind>(3 + draw(8)), draw(static_cast<int>(k)), draw(static_cast<int>(k))});
    bool stays = true;
    for (index_t i = 0; i < extent; ++i)
      for (int choice = 0; choice < 16; ++choice) {
        std::vector<index_t> values;
        for (const auto& [kind, p, q] : positions) {
          const auto k = values.size();
          const index_t a = k < 3 ? 0 : values[static_cast<std::size_t>(p)],
                        b = k < 3 ? 0 : values[static_cast<std::size_t>(q)];
          const index_t quotient = b == 0 ? 0 : a / b;
          const index_t by_kind[] = {i,
                                     number,
                                     p,
                                     a + b,
                                     a - b,
                                     a * b,
                                     quotient,
                                     a - quotient * b,
                                     std::min(a, b),
                                     std::max(a, b),
                                     (choice >> (k - std::min<std::size_t>(k, 3)) & 1) != 0 ? a : b};
          values.push_back(by_kind[static_cast<int>(kind)]);
          stays = stays && std::abs(values.back()) < limit;
        }
      }
    const bool may = runtime::PositionsStayWithin(limit, positions, 1, {extent, number});
    EXPECT_TRUE(stays || !may) << round;
    within += stays;
    said += may;
  }
  EXPECT_GT(said, within * 9 / 10) << "of " << within;
}

}  // namespace
}  // namespace umbra
