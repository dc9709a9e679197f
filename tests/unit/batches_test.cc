// Kernels over batches of small things, each of which is a lane of packets: about what the interpreter finds, the same
// bits by every dialect where no product of matrices is summed, however operands lie and however many there are.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/driver/lower.h"
#include "compiler/driver/target.h"
#include "runtime/cpu_info.h"
#include "runtime/prepared.h"
#include "tests/support/drawn.h"
#include "tests/support/every_target.h"
#include "tests/support/expect_each.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using namespace drawn;  // NOLINT: the test's own words

struct Case {
  const char* text;
  bool sums_products = false;  // of matrices: fused where the target can
};

const Case kCases[] = {
    {"kernel k(a: T[?, 4, 4], b: T[?, 4, 4]) -> (y: T[?, 4, 4]) { y = batch_dot(a, b) }", true},
    {"kernel k(a: T[?, 3, 2], b: T[?, 3, 5], c: T[?, 5, 2]) -> (y: T[?, 2, 2]) { y = relu(batch_dot(batch_dot(transpose<0, 2, 1>(a), b), c)) * 2 }",
     true},
    {"kernel k(x: T[?, 3], w: T[3, 3], v: T[3]) -> (y: T[?, 3]) { y = tanh(dot(x, w) + broadcast<1>(v)) }", true},
    {"kernel k(x: T[?, 16], w: T[1, 16]) -> (y: T[?, 1]) { y = dot(x, w.T) }", true},
    {"kernel k(a: T[?, 4, 4], v: T[?, 4]) -> (y: T[?, 4]) { y = reduce_with_axis<sum>(a * broadcast_with_axis(v, 0, 4), 2) }"},
    {"kernel k(a: T[?, 3], b: T[?, 3]) -> (y: T[?, 3, 3]) { y = broadcast_with_axis(a, 1, 3) * broadcast_with_axis(b, 0, 3) }"},
    {"kernel k(x: T[?, 64, 2]) -> (y: T[?, 2]) { y = reduce_with_axis<sum>(x, 1) }"},
    {"kernel k(x: T[?, 6, 3], u: T[3]) -> (y: T[?, 3], z: T[?, 3]) {\n  y = reduce_with_axis<maximum>(x * broadcast<2>(u), 1)\n  z = reduce_with_axis<minimum>(x, 1) + broadcast<1>(u)\n}"},
    // Elements of the batch's own at known places, and in another order.
    {"kernel k(m: T[?, 2, 2]) -> (y: T[?, 2, 2]) {\n  r = reshape(m, extent<0>(m), 4)\n  a = slice(r, 1, 0, 1)\n  b = slice(r, 1, 1, 2)\n  c = slice(r, 1, 2, 3)\n"
     "  d = slice(r, 1, 3, 4)\n  i = 7 / (abs(a * d - b * c) + 1)\n  y = reshape(concat(d * i, -b * i, -c * i, a * i, 1), extent<0>(m), 2, 2)\n}"},
    {"kernel k(a: T[?, 3, 3], b: T[?, 3], c: T[?]) -> (y: T[?, 3, 3]) {\n  y = flip(a, 2) * broadcast_with_axis(b, 0, 3) + flip(a, 1) * broadcast<0>(c)\n}"},
    {"kernel k(a: T[?, 3, 3], b: T[?, 2, 3]) -> (y: T[?, 4, 3]) {\n  s = slice(slice(a, 1, 1, 2), 2, 2, 3)\n  y = concat(flip(b, 1), pad(swapaxis(s * 2, 1, 2), 0, 1), slice(a, 1, 0, 1), 1)\n}"},
    {"kernel k(m: T[?, 3, 4], v: T[?, 3]) -> (y: T[?, 3]) {\n  r = slice(m, 2, 0, 3)\n"
     "  y = reduce_with_axis<sum>(r * broadcast_with_axis(v, 0, 3), 2) + reshape(slice(m, 2, 3, 4), extent<0>(m), 3)\n}"},
    // Several phases, and a result for each of the batch.
    {"kernel k(x: T[?, 5, 3]) -> (y: T[?, 5, 3], s: T[?]) {\n  m = reduce_with_axis<sum>(x, 1) / 5\n  c = x - broadcast_with_axis(m, 0, 5)\n  y = c * c\n"
     "  s = reduce_with_axis<sum>(reduce_with_axis<maximum>(c, 2), 1)\n}"},
    {"kernel k(x: T[?, 16, 3]) -> (y: T[?, 16, 3]) {\n  c = x - broadcast_with_axis(reduce_with_axis<sum>(x, 1) / 16, 0, 16)\n"
     "  y = c * broadcast_with_axis(1 / (1 + reduce_with_axis<sum>(c * c, 1)), 0, 16)\n}"},
    {"kernel k(x: T[?, 16, 3]) -> (y: i64[?, 3]) { y = reduce_with_axis<argmax>(x, 1) }"},
    // Of each row of several.
    {"kernel k(x: T[3, ?, 2, 3], v: T[?, 3], w: T[3]) -> (y: T[3, ?, 3], z: T[3, ?, 2, 3]) {\n"
     "  y = reduce_with_axis<sum>(x, 2) * broadcast_with_axis(v, -1, 3)\n  z = x - broadcast_with_axis(y, 1, 2) * broadcast<0>(w)\n}"},
    {"kernel k(x: T[?, ?, 3, 3]) -> (y: T[?, ?, 3, 3], i: i64[?, ?, 3]) {\n"
     "  y = x - broadcast_with_axis(reduce_with_axis<maximum>(x, 2), 1, 3)\n  i = reduce_with_axis<argmin>(x, 2)\n}"},
    {"kernel k(x: T[?, 2, 3, 4], v: T[?, 2, 4]) -> (y: T[?, 2, 3]) { y = reduce_with_axis<sum>(x * broadcast_with_axis(v, 1, 3), 3) }"},
};

std::string Typed(std::string text, DType type) {
  for (auto at = text.find("T["); at != std::string::npos; at = text.find("T[")) text.replace(at, 1, Name(type));
  return text;
}

enum class Layout { kDense, kPadded, kBatchLast };

std::unique_ptr<Tensor> Draw(DType type, std::vector<index_t> shape, Layout layout, std::mt19937* random) {
  if (layout == Layout::kBatchLast) std::rotate(shape.begin(), shape.begin() + 1, shape.end());
  auto made = std::make_unique<Tensor>(type, shape, layout == Layout::kPadded ? 1 : 0, random);
  if (layout == Layout::kBatchLast)
    for (auto* const dims : {&made->ref.shape, &made->ref.stride})
      std::rotate(dims->begin(), dims->end() - 1, dims->end());
  return made;
}

// Operands and results of a graph whose open extents are `open`.
struct Call {
  Call(const graph::Graph& graph, index_t open, Layout layout) {
    std::mt19937 random(static_cast<unsigned>(open));
    for (const int id : graph.inputs())
      in.push_back(Draw(graph.node(id).dtype, Shape(graph.node(id).shape, open), layout, &random));
    for (const auto& output : graph.outputs())
      out.push_back(Draw(graph.node(output.node).dtype, Shape(graph.node(output.node).shape, open), layout, nullptr));
  }

  static std::vector<index_t> Shape(const PartialShape& shape, index_t open) {
    std::vector<index_t> extents;
    for (index_t d = 0; d < static_cast<index_t>(shape.rank()); ++d)
      extents.push_back(shape[d].is_static() ? static_cast<index_t>(shape[d]) : open);
    return extents;
  }

  void Run(const Function& function) {
    runtime::Arguments arguments;
    for (const auto& tensor : in) arguments.inputs.push_back(tensor->ref);
    for (const auto& tensor : out) arguments.outputs.push_back(tensor->ref);
    function(arguments, {2});
  }

  std::vector<std::unique_ptr<Tensor>> in, out;
};

Function CompileFor(const std::shared_ptr<const graph::Graph>& graph, const std::string& target) {
  CompileOptions options;
  options.engine = target.empty() ? Engine::kInterpreter : Engine::kJit;
  options.target = target;
  return Compile(graph, options);
}

void ExpectAlike(const Case& c, DType type, const std::vector<index_t>& batches) {
  const auto graph = graph::ParseText(Typed(c.text, type))[0];
  const Function interpreted = CompileFor(graph, "");
  std::vector<Function> compiled;
  for (const auto target : codegen::kAllTargets)
    if (HostRuns(target)) compiled.push_back(CompileFor(graph, std::string(codegen::Name(target))));
  for (const index_t batch : batches)
    for (const Layout layout : {Layout::kDense, Layout::kPadded, Layout::kBatchLast}) {
      const std::string what =
          Typed(c.text, type) + "\n" + std::to_string(batch) + ", layout " + std::to_string(static_cast<int>(layout));
      Call expected(*graph, batch, layout);
      expected.Run(interpreted);
      std::unique_ptr<Call> first;
      for (const Function& function : compiled) {
        auto got = std::make_unique<Call>(*graph, batch, layout);
        got->Run(function);
        for (std::size_t k = 0; k < got->out.size(); ++k) {
          ExpectSame(*expected.out[k], *got->out[k],
                     IsHalf(type)              ? 5e-2
                     : type == DType::kFloat64 ? 1e-12
                                               : 1e-4,
                     what);
          EXPECT_TRUE(first == nullptr || c.sums_products || SameBits(*first->out[k], *got->out[k])) << what;
        }
        if (first == nullptr) first = std::move(got);
      }
    }
}

TEST(Batches, OfAnyNumber) {
  for (const Case& c : kCases) ExpectAlike(c, DType::kFloat32, {0, 1, 7, 16, 33, 100});
}

TEST(Batches, OfOtherNumbers) {
  for (const Case& c : kCases)
    for (const DType type : {DType::kFloat64, DType::kFloat16, DType::kInt32}) {
      const std::string text = c.text;
      if (type == DType::kInt32 && (text.find("tanh") != std::string::npos || c.sums_products)) continue;
      if (IsHalf(type) && text.find("batch_dot(batch_dot") != std::string::npos)
        continue;  // rounded between the products
      ExpectAlike(c, type, {1, 19, 64});
    }
}

// What is reduced is no batch.
TEST(Batches, OfResultsAlone) {
  const Case cases[] = {
      {"kernel k(x: T[?, ?]) -> (y: T[?]) { y = reduce_with_axis<sum>(reduce_with_axis<sum>(broadcast_with_axis(x * x, 1, 3), 2), 1) }"},
      {"kernel k(x: T[?, ?, 3], v: T[3]) -> (y: T[?]) { y = reduce_with_axis<sum>(reduce_with_axis<sum>(x * broadcast<2>(v), 2), 1) }"},
      {"kernel k(x: T[40, 200, 3], v: T[3]) -> (y: T[40]) { y = reduce_with_axis<sum>(reduce_with_axis<sum>(x * broadcast<2>(v), 2), 1) }"},
      {"kernel k(x: T[?, ?], w: T[?, ?, 3]) -> (y: T[?]) { y = reduce_with_axis<maximum>(reduce_with_axis<sum>(w * broadcast_with_axis(x, 1, 3), 2), 1) }"},
      {"kernel k(x: T[?], v: T[3]) -> (y: T[1]) { y = reduce_with_axis<sum>(reduce_keepdim<sum>(broadcast_with_axis(x, 0, 3) * broadcast<1>(v, broadcast_with_axis(x, 0, 3)), 0), 1) }"},
  };
  for (const Case& c : cases) ExpectAlike(c, DType::kFloat32, {1, 7, 70});
}

// The form that a launch asks for, of a batch of outer products of 4 and 4.
runtime::Variant FormOf(index_t batch, Layout layout) {
  const Function function = CompileFor(
      graph::ParseText(
          "kernel k(a: f32[?, 4], b: f32[?, 4]) -> (y: f32[?, 4, 4]) { y = broadcast_with_axis(a, 1, 4) * broadcast_with_axis(b, 0, 4) }")
          [0],
      "sse2");
  runtime::KernelStep step = std::get<runtime::KernelStep>(function.program().steps[0]);
  runtime::Variant form;
  step.slots = std::make_shared<runtime::KernelStep::Slots>();
  step.code = [&](const runtime::Variant& variant) {
    form = variant;
    return runtime::KernelCode{[](const umbra_args*, long long, long long) {}, nullptr};
  };
  alignas(64) static char memory[192];
  std::vector<runtime::TensorRef> operands;
  for (const std::vector<index_t>& shape : {std::vector<index_t>{batch, 4}, {batch, 4}, {batch, 4, 4}})
    operands.push_back(runtime::TensorRef::Dense(memory + 64 * operands.size(), DType::kFloat32, shape));
  if (layout == Layout::kPadded) operands[0].stride[0] = 5;
  runtime::PrepareLaunch(step, operands, {batch}, 1, -1, "avx512");
  return form;
}

TEST(Batches, FormsOfLaunches) {
  const auto large = static_cast<index_t>(runtime::LastLevelCacheBytes() / sizeof(float) / 4);
  EXPECT_EQ(FormOf(1000, Layout::kDense).index(), runtime::Variant().index());
  EXPECT_EQ(FormOf(large, Layout::kDense).stores, runtime::Stores::kStreamed);
  EXPECT_FALSE(FormOf(large, Layout::kDense).strided);
  for (const index_t batch : {index_t{1000}, large}) {
    EXPECT_TRUE(FormOf(batch, Layout::kPadded).strided) << batch;
    EXPECT_EQ(FormOf(batch, Layout::kPadded).stores, runtime::Stores::kCached) << batch;
  }
}

// What goes past the caches: results that lanes have whole packets of, of a batch that no cache keeps.
TEST(Batches, LargeOnesPassTheCaches) {
  const auto graph = graph::ParseText(
      "kernel k(a: f32[?, 4], b: f32[?, 4]) -> (y: f32[?, 4, 4]) { y = broadcast_with_axis(a, 1, 4) * broadcast_with_axis(b, 0, 4) }")
      [0];
  const index_t batch = 1 << 20;  // results of 64 MB
  for (const auto target : codegen::kAllTargets) {
    if (!HostRuns(target)) continue;
    Call call(*graph, batch, Layout::kDense);
    call.Run(CompileFor(graph, std::string(codegen::Name(target))));
    const auto* const a = static_cast<const float*>(call.in[0]->ref.data);
    const auto* const b = static_cast<const float*>(call.in[1]->ref.data);
    const auto* const y = static_cast<const float*>(call.out[0]->ref.data);
    index_t wrong = 0;
    for (index_t n = 0; n < batch; ++n)
      for (index_t k = 0; k < 16; ++k) wrong += y[n * 16 + k] != a[n * 4 + k / 4] * b[n * 4 + k % 4];
    EXPECT_EQ(wrong, 0) << codegen::Name(target);
  }
}

// The destination is an operand, of which each lane is read before it is written.
TEST(Batches, InPlace) {
  const auto graph = graph::ParseText(
      "kernel k(x: f32[?, 3, 2], w: f32[?, 3]) -> (y: f32[?, 3, 2]) { y = x * broadcast_with_axis(w, 1, 2) }")[0];
  for (const auto target : codegen::kAllTargets) {
    if (!HostRuns(target)) continue;
    const Function function = CompileFor(graph, std::string(codegen::Name(target)));
    Call expected(*graph, 53, Layout::kDense), call(*graph, 53, Layout::kDense);
    expected.Run(function);
    function(runtime::Arguments{{call.in[0]->ref, call.in[1]->ref}, {call.in[0]->ref}, {}}, {2});
    EXPECT_TRUE(SameBits(*expected.out[0], *call.in[0])) << codegen::Name(target);
  }
}

bool GoesAcross(const std::string& text) {
  const plan::Plan plan = Lower(*graph::ParseText(text)[0], false, Math::kStrict);
  return std::any_of(plan.steps.begin(), plan.steps.end(), [](const auto& step) {
    const auto* const kernel = std::get_if<plan::Kernel>(&step);
    return kernel != nullptr && kernel->signature.goes_across_batch();
  });
}

// Where packets along another axis are full, or the axes of small things are one to a launch, they go along that.
TEST(Batches, WherePacketsWouldBeEmpty) {
  for (const Case& c : kCases) {
    const bool are_rows = std::string(c.text).find("dot(x, w.T)") != std::string::npos ||
                          std::string(c.text).find("reshape(concat") != std::string::npos ||  // of a view of the result
                          std::string(c.text).find("broadcast_with_axis(a, 1") != std::string::npos;  // of several axes
    EXPECT_EQ(GoesAcross(Typed(c.text, DType::kFloat32)), !are_rows) << c.text;
  }
  EXPECT_FALSE(GoesAcross("kernel k(x: f32[?, 3, 4], y: f32[?, 3, 4]) -> (z: f32[?, 3, 4]) { z = x + y }"));
  EXPECT_FALSE(GoesAcross(
      "kernel k(x: f32[?, 8, 4], y: f32[8, 4]) -> (z: f32[?, 8, 4]) { z = x + broadcast_with_axis(y, -1, extent<0>(x)) }"));
  EXPECT_FALSE(GoesAcross("kernel k(x: f32[?, 4, 16]) -> (z: f32[?, 16]) { z = reduce_with_axis<sum>(x, 1) }"));
  EXPECT_FALSE(GoesAcross("kernel k(x: f32[?, 100, 3]) -> (z: f32[?, 3]) { z = reduce_with_axis<sum>(x, 1) }"));
  EXPECT_FALSE(
      GoesAcross("kernel k(a: f32[?, 12, 12], b: f32[?, 12, 12]) -> (y: f32[?, 12, 12]) { y = batch_dot(a, b) }"));
  EXPECT_FALSE(GoesAcross("kernel k(a: f32[9, 4, 4], b: f32[9, 4, 4]) -> (y: f32[9, 4, 4]) { y = batch_dot(a, b) }"));
}

// Nothing is a small thing, too.
TEST(Batches, OfNothing) {
  for (const std::string type : {"f32", "u8"})
    for (const std::string extents : {"3, 0", "0, 3", "0, 0"}) {
      const std::string text = "kernel k(x: " + type + "[?, " + extents + "]) -> (y: " + type +
                               "[?, ?]) { y = reduce_with_axis<maximum>(x, 1) }";
      drawn::ExpectSameBitsOnEveryTarget(graph::ParseText(text)[0], 7);
    }
}

// Extents that a call brings are known to a program of its own, which gives the same to rounding.
TEST(Batches, OfOpenExtents) {
  const auto graph =
      graph::ParseText("kernel k(a: f32[?, ?, ?], b: f32[?, ?, ?]) -> (y: f32[?, ?, ?]) { y = batch_dot(a, b) }")[0];
  const Function function = CompileFor(graph, "");
  const Function compiled = CompileFor(graph, std::string(codegen::Name(codegen::Target::kSse2)));
  std::mt19937 random(3);
  const index_t batch = 5000;
  const Tensor a(DType::kFloat32, {batch, 3, 4}, 0, &random), b(DType::kFloat32, {batch, 4, 2}, 0, &random);
  const Tensor expected(DType::kFloat32, {batch, 3, 2}, 0, nullptr), got(DType::kFloat32, {batch, 3, 2}, 0, nullptr);
  function(runtime::Arguments{{a.ref, b.ref}, {expected.ref}, {}}, {1});
  ASSERT_TRUE(compiled.program().for_extents);
  EXPECT_TRUE(compiled.program().for_extents({batch, 3, 4, 2}).program != nullptr);
  compiled(runtime::Arguments{{a.ref, b.ref}, {got.ref}, {}}, {1});
  ExpectSame(expected, got, 1e-4, "batch_dot");
}

// Small matrices by vectors of their own, along either axis: packets that would not be full go across the batch.
TEST(Batches, MatricesByVectors) {
  for (const index_t n : {3, 6, 7, 8})
    for (const int axis : {1, 2}) {
      const std::string e = std::to_string(n), rows = "f32[b, " + e + "]";
      ExpectEach(
          "kernel k(x: f32[b, " + std::to_string(n + 1) + ", " + e + "]) -> (y: " + rows +
              ") {\n  m = slice(x, 1, 0, " + e + ")\n  v = reshape(slice(x, 1, " + e + ", " + std::to_string(n + 1) +
              "), b, " + e + ")\n  y = reduce_with_axis<sum>(m * broadcast<0, " + (axis == 1 ? "1" : "2") + ">(v), " +
              std::to_string(axis) + ")\n}",
          {37, n + 1, n}, {37, n},
          [n, axis](const Tensor& x, const std::vector<index_t>& at) {
            double sum = 0;
            for (index_t k = 0; k < n; ++k)
              sum += (axis == 1 ? x.At({at[0], k, at[1]}) : x.At({at[0], at[1], k})) * x.At({at[0], n, k});
            return sum;
          },
          1e-5);
    }
}

}  // namespace
}  // namespace umbra
