// Programs as text, and the C entry points of kernels that were compiled ahead of time.
#include "umbra/kernel_desc.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "compiler/driver/lower.h"
#include "compiler/graph/parse.h"
#include "compiler/plan/build.h"
#include "runtime/cpu_info.h"
#include "runtime/program_text.h"
#include "umbra/error.h"

namespace umbra {
namespace {

using runtime::ProgramFromText;
using runtime::ProgramToText;

runtime::Program ProgramOf(const std::string& text) {
  return plan::ToProgram(Lower(*graph::Parse(text, "test").at(0)));
}

// Together these have every kind of member.
const char* const kTexts[] = {
    "kernel k(x: f32[n, m], b: f32[m], s: f64) -> (y: f16[n, m]) { y = tcast<f16>(x + broadcast<1>(b) * tcast<f32>(s)) }",
    ("kernel k(x: f32[?, 7]) -> (y: f32[?, 7]) { e = exp(x - broadcast<0>(reduce_with_axis<maximum>(x, 1)))\n"
     " y = e / broadcast<0>(reduce_with_axis<sum>(e, 1)) }"),
    "kernel k(a: f64[n, k], b: f64[k, m]) -> (y: f64[n, m], t: f64[m]) { y = 2 * dot(a, b)\n t = sum_rows(y) }",
    "kernel k(x: f32[?, ?, ?]) -> (y: f32[?, ?, ?]) { y = pool<maximum>(x, 3, 2, 2, 1) }",
    "kernel k(x: f32[?, ?], from: i64) -> (y: f32[?, ?]) { y = slice(x, 1, from, from + 2) }",
};

TEST(ProgramText, RoundTrip) {
  for (const char* source : kTexts) {
    const runtime::Program program = ProgramOf(source);
    const std::string text = ProgramToText(program);
    const runtime::Program again = ProgramFromText(text);
    EXPECT_EQ(ProgramToText(again), text);
    ASSERT_EQ(again.buffers.size(), program.buffers.size());
    for (std::size_t k = 0; k < program.buffers.size(); ++k) {
      EXPECT_EQ(again.buffers[k].name, program.buffers[k].name);
      EXPECT_EQ(again.buffers[k].dtype, program.buffers[k].dtype);
      EXPECT_EQ(again.buffers[k].shape, program.buffers[k].shape);
    }
    ASSERT_EQ(again.steps.size(), program.steps.size());
    for (std::size_t k = 0; k < program.steps.size(); ++k) {
      ASSERT_EQ(again.steps[k].index(), program.steps[k].index());
      if (const auto* step = std::get_if<runtime::KernelStep>(&program.steps[k])) {
        const auto& copy = std::get<runtime::KernelStep>(again.steps[k]).signature;
        EXPECT_EQ(copy.operands, step->signature.operands);
        EXPECT_EQ(copy.numbers, step->signature.numbers);
        EXPECT_EQ(copy.in_place, step->signature.in_place);
        EXPECT_EQ(copy.cost, step->signature.cost);
        EXPECT_EQ(copy.row_buffers, step->signature.row_buffers);
      } else {
        EXPECT_EQ(std::get<runtime::GemmStep>(again.steps[k]).alpha,
                  std::get<runtime::GemmStep>(program.steps[k]).alpha);
      }
    }
    EXPECT_EQ(again.derived.size(), program.derived.size());
  }
}

TEST(ProgramText, DamageIsAnError) {
  for (const char* source : kTexts) {
    const std::string text = ProgramToText(ProgramOf(source));
    for (std::size_t size = 0; size < text.size(); ++size)
      EXPECT_THROW(ProgramFromText(text.substr(0, size)), Error) << size;
    EXPECT_THROW(ProgramFromText(text + "0 "), Error);
    EXPECT_THROW(ProgramFromText("0" + text.substr(1)), Error);
  }
}

TEST(ProgramText, SchedulesForGpus) {
  const std::vector<runtime::CudaSchedule> schedules = {
      {true, true, 2, 512, 32, false, 1, 1, 32, -1, 1, {DType::kFloat32}, {DType::kFloat64, DType::kInt32}},
      {false, false, 8, 1024, std::numeric_limits<index_t>::max(), true, 2, 4, 64, 1, 2, {}, {}}};
  const std::string text = runtime::SchedulesToText(schedules);
  const std::vector<runtime::CudaSchedule> again = runtime::SchedulesFromText(text);
  ASSERT_EQ(again.size(), 2u);
  EXPECT_TRUE(again[0].reduces && again[0].splits && !again[1].reduces);
  EXPECT_EQ(again[0].partials, schedules[0].partials);
  EXPECT_EQ(again[1].lanes, 8);
  EXPECT_EQ(again[0].warp_row, 512);
  EXPECT_EQ(again[1].lone_column, std::numeric_limits<index_t>::max());
  EXPECT_TRUE(!again[0].packs_results && again[1].packs_results);
  EXPECT_EQ(again[1].packets, 2);
  EXPECT_EQ(again[1].rows, 4);
  EXPECT_EQ(again[1].tile_side, 64);
  EXPECT_EQ(again[1].tile_axis, 1);
  EXPECT_EQ(again[1].tile_lanes, 2);
  EXPECT_EQ(again[0].kept, schedules[0].kept);
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_THROW(runtime::SchedulesFromText(text.substr(0, size)), Error) << size;
}

// A kernel by hand: y = x + s, with code that leaves a mark of its target.
template <int mark>
void Add(const umbra_args* args, long long begin, long long end) {
  EXPECT_EQ(args->prefetch_ahead, runtime::PrefetchAhead());
  const auto* x = static_cast<const float*>(args->data[0]);
  auto* y = static_cast<float*>(args->data[1]);
  for (long long i = begin; i < end; ++i)
    for (long long j = 0; j < args->extent[1]; ++j)
      y[i * args->stride[2] + j * args->stride[3]] =
          x[i * args->stride[0] + j * args->stride[1]] + args->scalar[0].f32 + mark;
}

const std::string& AddProgram() {
  static const std::string text =
      ProgramToText(ProgramOf("kernel add(x: f32[n, m], s: f32) -> (y: f32[n, m]) { y = x + s }"));
  return text;
}

constexpr std::int64_t kShape[] = {-1, -2};
constexpr umbra_operand_desc kOperands[] = {{"x", UMBRA_DTYPE_f32, 2, kShape}, {"y", UMBRA_DTYPE_f32, 2, kShape}};
constexpr umbra_scalar_desc kScalars[] = {{"s", UMBRA_DTYPE_f32}};
constexpr umbra_kernel_fn kPlain[] = {Add<0>, Add<0>, Add<0>, Add<0>, nullptr};
constexpr umbra_kernel_fn kSse2[] = {Add<1000>, Add<1000>, Add<1000>, Add<1000>, nullptr};
constexpr umbra_target_desc kTargets[] = {{"plain", kPlain}, {"sse2", kSse2}};

class CCall : public testing::Test {
 protected:
  void TearDown() override { ASSERT_EQ(umbra_set_target(nullptr), UMBRA_OK); }
  umbra_status Run(umbra_tensor x, umbra_tensor y, float s = 1) {
    umbra_scalar scalar;
    scalar.f32 = s;
    const umbra_tensor* const operands[] = {&x, &y};
    return umbra_call(&kernel_, operands, &scalar, 1);
  }
  static umbra_tensor Of(std::vector<float>* data, const std::int64_t* shape, const std::int64_t* stride = nullptr) {
    return {data->data(), shape, stride, 2, UMBRA_DTYPE_f32, UMBRA_DEVICE_CPU, nullptr};
  }

  static inline void* state_ = nullptr;  // of the runtime, as long as the process lives
  umbra_kernel_desc kernel_{"add",
                            "(x: f32[?0, ?1], s: f32) -> (y: f32[?0, ?1])",
                            "test:1",
                            1,
                            1,
                            1,
                            2,
                            kOperands,
                            kScalars,
                            kTargets,
                            AddProgram().c_str(),
                            &state_,
                            nullptr};
};

constexpr std::int64_t kTwoByThree[] = {2, 3}, kThreeByTwo[] = {3, 2};

TEST_F(CCall, ComputesWithAndWithoutStrides) {
  std::vector<float> x = {1, 2, 3, 4, 5, 6}, y(6);
  ASSERT_EQ(umbra_set_target("plain"), UMBRA_OK);
  ASSERT_EQ(Run(Of(&x, kTwoByThree), Of(&y, kTwoByThree)), UMBRA_OK) << umbra_error_message();
  EXPECT_EQ(y, (std::vector<float>{2, 3, 4, 5, 6, 7}));
  constexpr std::int64_t kTransposed[] = {1, 2};
  ASSERT_EQ(Run(Of(&x, kTwoByThree, kTransposed), Of(&y, kTwoByThree)), UMBRA_OK) << umbra_error_message();
  EXPECT_EQ(y, (std::vector<float>{2, 4, 6, 3, 5, 7}));
}

TEST_F(CCall, TargetsAreChosen) {
  std::vector<float> x(6), y(6);
  EXPECT_STREQ(umbra_kernel_target(&kernel_), "sse2");
  for (int round = 0; round < 3; ++round)
    for (const char* target : {"plain", "sse2"}) {
      ASSERT_EQ(umbra_set_target(target), UMBRA_OK);
      EXPECT_STREQ(umbra_kernel_target(&kernel_), target);
      ASSERT_EQ(Run(Of(&x, kTwoByThree), Of(&y, kTwoByThree)), UMBRA_OK);
      EXPECT_EQ(y[0], target == std::string("plain") ? 1 : 1001);
    }
  ASSERT_EQ(umbra_set_target("plain"), UMBRA_OK);
  EXPECT_EQ(umbra_set_target("avx9"), UMBRA_ERROR);
  EXPECT_STREQ(umbra_kernel_target(&kernel_), "plain") << "a wrong name changes nothing";
  if (!runtime::CpuRuns("avx2")) GTEST_SKIP() << "the rest needs a CPU with AVX2";
  ASSERT_EQ(umbra_set_target("avx2"), UMBRA_OK);
  EXPECT_EQ(umbra_kernel_target(&kernel_), nullptr);
  EXPECT_STREQ(umbra_error_message(),
               "kernel 'add' has no code for target avx2, which was asked for; it was compiled for plain, sse2");
}

TEST_F(CCall, WhatDoesNotFitIsAnError) {
  std::vector<float> x(6), y(6);
  EXPECT_EQ(Run(Of(&x, kTwoByThree), Of(&y, kThreeByTwo)), UMBRA_ERROR);
  EXPECT_NE(std::string(umbra_error_message()).find("output 'y': dimension 0 of shape [3, 2] must be 2"),
            std::string::npos);
  umbra_tensor wrong = Of(&x, kTwoByThree);
  wrong.dtype = 77;
  EXPECT_EQ(Run(wrong, Of(&y, kTwoByThree)), UMBRA_ERROR);
  EXPECT_STREQ(umbra_error_message(), "kernel 'add', operand 'x': 77 is no umbra_dtype");
  wrong = Of(&x, nullptr);
  EXPECT_EQ(Run(wrong, Of(&y, kTwoByThree)), UMBRA_ERROR);
  EXPECT_STREQ(umbra_error_message(), "kernel 'add', operand 'x': rank 2 without as many extents");
  wrong = Of(&x, kTwoByThree);
  wrong.data = nullptr;
  EXPECT_EQ(Run(wrong, Of(&y, kTwoByThree)), UMBRA_ERROR);
  constexpr std::int64_t kHuge[] = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  EXPECT_EQ(Run(Of(&x, kHuge), Of(&y, kHuge)), UMBRA_ERROR);
  const umbra_tensor* const operands[] = {nullptr, nullptr};
  EXPECT_EQ(umbra_call(&kernel_, operands, nullptr, 1), UMBRA_ERROR);
  EXPECT_STREQ(umbra_error_message(), "kernel 'add', operand 'x': the pointer to its tensor is null");
}

TEST_F(CCall, ThreadsMayCallAndChooseAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<float> x(6), y(6);
      for (int k = 0; k < 500; ++k) {
        if (t == 0) (void)umbra_set_target(k % 2 == 0 ? "plain" : nullptr);
        ASSERT_EQ(Run(Of(&x, kTwoByThree), Of(&y, kTwoByThree)), UMBRA_OK) << umbra_error_message();
        ASSERT_TRUE(y[0] == 1 || y[0] == 1001);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace umbra
