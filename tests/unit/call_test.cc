// Calls of one expression, one after the other: each runs with its own operands, however like the last one it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/support/testing.h"
#include "umbra/call_site.h"
#include "umbra/jit.h"
#include "umbra/tensor.h"

namespace umbra {
namespace {

using expr::F;

// A matrix in the memory of a test.
struct View {
  index_t offset, rows, columns, stride;
  Tensor<cpu, 2> In(std::vector<float>& memory, Stream<cpu>* stream = nullptr) const {
    return {memory.data() + offset, Shape2(rows, columns), stride, stream};
  }
  bool Meets(const View& o) const { return offset < o.offset + o.rows * o.stride && o.offset < offset + rows * stride; }
};

// Two shapes; places that are aligned and not, strides, and two that meet others.
const std::vector<std::vector<View>> kViews = {
    {{0, 4, 5, 8},
     {64, 4, 5, 8},
     {128, 4, 5, 8},
     {192, 4, 5, 16},
     {257, 4, 5, 8},
     {320, 4, 5, 5},
     {8, 4, 5, 8},
     {130, 4, 5, 8}},
    {{384, 6, 3, 8}, {448, 6, 3, 8}, {512, 6, 3, 8}, {577, 6, 3, 7}, {640, 6, 3, 16}, {450, 6, 3, 8}},
};
constexpr std::size_t kSize = 800;

using Draw = std::mt19937;
int Below(Draw& random, std::size_t count) {
  return std::uniform_int_distribution<int>(0, static_cast<int>(count) - 1)(random);
}

// What a call does, and the same by hand.
struct Call {
  View dst, a, b, c;
  float s;
  void (*run)(const Call&, std::vector<float>&, Stream<cpu>*);
  float (*element)(const Call&, std::vector<float>&, index_t, index_t);
};

void Triad(const Call& k, std::vector<float>& m, Stream<cpu>* stream) {
  jit(k.dst.In(m, stream)) = k.a.In(m) * k.b.In(m) + k.c.In(m) * k.s;
}
float TriadAt(const Call& k, std::vector<float>& m, index_t y, index_t x) {
  return k.a.In(m)[y][x] * k.b.In(m)[y][x] + k.c.In(m)[y][x] * k.s;
}
void Difference(const Call& k, std::vector<float>& m, Stream<cpu>* stream) {
  jit(k.dst.In(m, stream)) += k.a.In(m) - k.b.In(m);
}
float DifferenceAt(const Call& k, std::vector<float>& m, index_t y, index_t x) {
  return k.dst.In(m)[y][x] + (k.a.In(m)[y][x] - k.b.In(m)[y][x]);
}
// The axis is not of the type.
void Flipped(const Call& k, std::vector<float>& m, Stream<cpu>* stream) {
  jit(k.dst.In(m, stream)) = expr::flip(k.a.In(m), k.s > 1) + k.b.In(m);
}
float FlippedAt(const Call& k, std::vector<float>& m, index_t y, index_t x) {
  const Tensor<cpu, 2> a = k.a.In(m);
  return (k.s > 1 ? a[y][a.size(1) - 1 - x] : a[a.size(0) - 1 - y][x]) + k.b.In(m)[y][x];
}

Call DrawCall(Draw& random) {
  const std::vector<View>& views = kViews[static_cast<std::size_t>(Below(random, kViews.size()))];
  const auto view = [&] { return views[static_cast<std::size_t>(Below(random, views.size()))]; };
  Call call{view(), view(), view(), view(), static_cast<float>(Below(random, 4)), Triad, TriadAt};
  const int kind = Below(random, 4);
  if (kind == 2) call.run = Difference, call.element = DifferenceAt;
  if (kind == 3) call.run = Flipped, call.element = FlippedAt;
  return call;
}

void ExpectCallsToBeRight(Execution execution, int seed) {
  Draw random(static_cast<unsigned>(seed));
  Stream<cpu> stream(execution);
  Call call = DrawCall(random);
  std::vector<float> memories[2] = {std::vector<float>(kSize), std::vector<float>(kSize)};
  int refused = 0;
  for (int k = 0; k < 1500; ++k) {
    // The call before, one like it, or another one.
    switch (Below(random, 4)) {
      case 0: break;
      case 1: call.s = static_cast<float>(Below(random, 4)); break;
      case 2: std::swap(call.a, call.c); break;
      default: call = DrawCall(random);
    }
    if (Below(random, 50) == 0) runtime::CallSite::SetThreads(1 + Below(random, 2));
    if (Below(random, 200) == 0) jit::SetOptions({});
    std::vector<float>& memory = memories[Below(random, 8) == 0];
    for (float& x : memory) x = static_cast<float>(Below(random, 101) - 50);  // all results are exact
    const std::vector<float> before = memory;
    std::vector<float> expected = memory, read = memory;
    for (index_t y = 0; y < call.dst.rows; ++y)
      for (index_t x = 0; x < call.dst.columns; ++x) call.dst.In(expected)[y][x] = call.element(call, read, y, x);
    std::string message;
    try {
      call.run(call, memory, &stream);
      stream.Wait();
    } catch (const Error& error) {
      message = error.what();
      expected = before;
    }
    const bool apart = !call.a.Meets(call.dst) && !call.b.Meets(call.dst) && !call.c.Meets(call.dst);
    ASSERT_TRUE(message.empty() || (!apart && message.find("overlaps") != std::string::npos)) << message;
    ASSERT_EQ(memory, expected) << "call " << k << ", seed " << seed << ": " << message;
    refused += !message.empty();
  }
  runtime::CallSite::SetThreads(0);
  EXPECT_GT(refused, 0);
}

TEST(Call, EachRunsWithItsOwnOperands) {
  for (int seed = 0; seed < 4; ++seed) ExpectCallsToBeRight(Execution::kImmediate, seed);
}

// An operand is written in place wherever its elements are where the result's are: strides of extents of 1 say nothing.
TEST(Call, InPlaceWhateverStridesOfOneRow) {
  std::vector<float> memory(64, 1);
  const Tensor<cpu, 2> row(memory.data(), Shape2(1, 17), 19, nullptr), dst(memory.data(), Shape2(1, 17), 17, nullptr);
  jit(dst) = row + 1.0f;
  EXPECT_EQ(memory[16], 2);
  EXPECT_EQ(memory[17], 1);
  const Tensor<cpu, 2> two(memory.data(), Shape2(2, 17), 19, nullptr), other(memory.data(), Shape2(2, 17), 17, nullptr);
  EXPECT_SAYS("overlaps input", jit(other) = two + 1.0f);
}

TEST(Call, EachRunsWithItsOwnOperandsInAFusedStream) {
  for (int seed = 4; seed < 8; ++seed) ExpectCallsToBeRight(Execution::kFused, seed);
}

}  // namespace
}  // namespace umbra
