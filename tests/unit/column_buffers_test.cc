// Kernels of columns that keep in scratch what their phases go through, for blocks of any width: a launch takes them
// for operands and results that are larger than the caches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/cpu_info.h"
#include "runtime/prepared.h"
#include "tests/support/drawn.h"
#include "tests/unit/index_map_common.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using drawn::SameBits;
using drawn::Tensor;
using runtime::Stores;

constexpr runtime::Variant kPlain, kStreams{.stores = Stores::kStreamed, .packed = true},
    kJoins{.stores = Stores::kJoined, .packed = true};

constexpr char kSoftmax[] =
    "kernel k(x: T[n, s, m]) -> (y: T[n, s, m]) {\n"
    "  e = exp(x - broadcast_with_axis(reduce_with_axis<maximum>(x, 1), 0, extent<1>(x)))\n"
    "  y = e / broadcast_with_axis(reduce_with_axis<sum>(e, 1), 0, extent<1>(x))\n}";
// Of operands and results the axes, by letters.
struct Case {
  const char* text;
  std::vector<std::string> axes;
};
const Case kCases[] = {
    {kSoftmax, {"nsm", "nsm"}},
    // No row axis but that of the columns.
    {"kernel k(x: T[s, m]) -> (y: T[s, m]) {\n  m = reduce_with_axis<mean>(x, 0)\n  d = x - broadcast<1>(m)\n"
     "  y = d / broadcast<1>(sqrt(reduce_with_axis<mean>(d * d, 0) + 0.01))\n}",
     {"sm", "sm"}},
    // Two operands, and a number of each column beside the elements.
    {"kernel k(x: T[n, s, m], g: T[n, s, m]) -> (t: T[n, m], y: T[n, s, m]) {\n  t = reduce_with_axis<sum>(x * g, 1)\n"
     "  y = x * (g - broadcast_with_axis(t, 0, extent<1>(x)))\n}",
     {"nsm", "nsm", "nm", "nsm"}},
    // What is stored for good before the last phase.
    {"kernel k(x: T[n, s, m]) -> (e: T[n, s, m], y: T[n, s, m]) {\n  e = exp(x - broadcast_with_axis(reduce_with_axis<maximum>(x, 1), 0, extent<1>(x)))\n"
     "  y = e / broadcast_with_axis(reduce_with_axis<sum>(e, 1), 0, extent<1>(x))\n}",
     {"nsm", "nsm", "nsm"}},
    // Nothing but numbers of columns.
    {"kernel k(x: T[n, s, m]) -> (y: T[n, m]) {\n  m = reduce_with_axis<maximum>(x, 1)\n"
     "  y = log(reduce_with_axis<sum>(exp(x - broadcast_with_axis(m, 0, extent<1>(x))), 1)) + m\n}",
     {"nsm", "nm"}},
    // Steps of two axes, and an operand that no step moves along columns.
    {"kernel k(x: T[s, p, m], w: T[s], v: T[m]) -> (y: T[s, p, m]) {\n  c = x * broadcast<0>(w, x) + broadcast<2>(v, x)\n"
     "  y = c - broadcast<2>(sumall_except_dim<2>(c * c), x)\n}",
     {"spm", "s", "m", "spm"}}};

// What the only kernel of a program is called with: extents and strides as they are, and columns of a block.
struct Called {
  std::vector<void*> data;
  std::vector<index_t> extent, stride;
  std::vector<char> scratch;
};

Called CallOf(const runtime::Program& program, const std::vector<runtime::TensorRef>& operands,
              const std::vector<index_t>& symbols, index_t columns) {
  const runtime::KernelSignature& signature = std::get<runtime::KernelStep>(program.steps[0]).signature;
  Called call;
  index_t steps = 1;
  for (std::size_t axis = 0; axis < signature.axes.size(); ++axis) {
    const runtime::Extent& extent = signature.axes[axis];
    call.extent.push_back(extent.is_static() ? extent.value : symbols[static_cast<std::size_t>(extent.symbol)]);
    if (axis >= static_cast<std::size_t>(signature.row_axes)) steps *= call.extent.back();
  }
  for (const runtime::Access& access : signature.operands) {
    const runtime::TensorRef& tensor = operands[static_cast<std::size_t>(access.buffer)];
    call.data.push_back(tensor.data);
    for (const int dim : access.dim_of_axis)
      call.stride.push_back(dim < 0 ? 0 : tensor.stride[static_cast<std::size_t>(dim)]);
  }
  for (const runtime::Number& number : signature.numbers)
    call.extent.push_back(number.extent.is_static() ? number.extent.value
                                                    : symbols[static_cast<std::size_t>(number.extent.symbol)]);
  call.extent.push_back(columns);
  std::size_t bytes = 64;
  for (const DType type : signature.column_buffers) bytes += SizeOf(type) * static_cast<std::size_t>(steps * columns);
  call.scratch.resize(bytes);
  return call;
}

std::string Typed(std::string text, DType type) {
  for (std::size_t at; (at = text.find('T')) != std::string::npos;) text.replace(at, 1, Name(type));
  return text;
}

// Sums of other orders: of the largest element, as some are near zero.
void ExpectNear(const Tensor& meant, const Tensor& found, double tolerance) {
  double largest = 0;
  drawn::ForEachIndex(meant.ref.shape,
                      [&](const std::vector<index_t>& i) { largest = std::max(largest, std::abs(meant.At(i))); });
  drawn::ForEachIndex(meant.ref.shape, [&](const std::vector<index_t>& i) {
    ASSERT_NEAR(meant.At(i), found.At(i), tolerance * largest);
  });
}

void ExpectKept(const Case& of, DType type, index_t n, index_t s, index_t m) {
  const std::string text = Typed(of.text, type);
  const std::shared_ptr<const graph::Graph> graph = graph::ParseText(text)[0];
  std::vector<std::unique_ptr<Tensor>> meant, expected;  // of the interpreter, and of a launch that keeps nothing
  for (const CompileOptions& route : Routes()) {
    const Function function = Compile(graph, route);
    const runtime::Program& program = function.program();
    std::mt19937 random(11);
    std::vector<std::unique_ptr<Tensor>> inputs, outputs;
    std::vector<runtime::TensorRef> operands;
    for (const std::string& axes : of.axes) {
      std::vector<index_t> shape;
      for (const char axis : axes) shape.push_back(axis == 'n' ? n : axis == 's' ? s : axis == 'p' ? 3 : m);
      const bool input = program.buffers[operands.size()].kind == runtime::Buffer::Kind::kInput;
      auto& tensors = input ? inputs : outputs;
      tensors.push_back(std::make_unique<Tensor>(type, shape, 0, input ? &random : nullptr));
      operands.push_back(tensors.back()->ref);
    }
    runtime::Arguments arguments;
    for (const auto& input : inputs) arguments.inputs.push_back(input->ref);
    for (const auto& output : outputs) arguments.outputs.push_back(output->ref);
    if (route.engine == Engine::kInterpreter) {
      function(arguments, {1});
      meant = std::move(outputs);
      continue;
    }
    if (expected.empty()) {
      function(arguments, {1});
      for (std::size_t k = 0; k < outputs.size(); ++k) {
        ExpectNear(*meant[k], *outputs[k], type == DType::kFloat32 ? 1e-5 : type == DType::kFloat64 ? 1e-13 : 4e-3);
        expected.push_back(std::make_unique<Tensor>(type, outputs[k]->ref.shape, 0, nullptr));
        expected.back()->bytes = outputs[k]->bytes;
        expected.back()->ref.data =
            expected.back()->bytes.data() + (static_cast<char*>(outputs[k]->ref.data) - outputs[k]->bytes.data());
      }
    }
    const auto& step = std::get<runtime::KernelStep>(program.steps[0]);
    ASSERT_EQ(program.steps.size(), 1u) << text;
    ASSERT_FALSE(step.signature.column_buffers.empty()) << text;
    const std::vector<index_t> symbols = runtime::CheckArguments(program, arguments);
    for (const runtime::Variant& variant : {kStreams, kJoins}) {
      if (variant.stores == Stores::kStreamed && m % 16 != 0) continue;
      const runtime::KernelCode code = step.code(variant);
      for (const index_t columns : {index_t{64}, index_t{192}, (m + 15) / 16 * 16}) {
        for (const auto& output : outputs) std::fill(output->bytes.begin(), output->bytes.end(), char{0x5a});
        Called call = CallOf(program, operands, symbols, columns);
        void* const scratch =
            call.scratch.data() + (64 - reinterpret_cast<std::uintptr_t>(call.scratch.data()) % 64) % 64;
        static_assert(sizeof(index_t) == sizeof(long long));
        const umbra_args args = {call.data.data(),
                                 reinterpret_cast<const long long*>(call.stride.data()),
                                 reinterpret_cast<const long long*>(call.extent.data()),
                                 nullptr,
                                 scratch,
                                 0};
        const index_t half = step.signature.vector_axis == 0 ? call.extent[0] / 32 * 16 : call.extent[0] / 2;
        code.function(&args, 0, half);
        code.function(&args, half, call.extent[0]);
        for (std::size_t k = 0; k < outputs.size(); ++k)
          ASSERT_TRUE(SameBits(*expected[k], *outputs[k]))
              << text << "\n"
              << route.target << ", " << n << " x " << s << " x " << m << ", blocks of " << columns
              << (variant.stores == Stores::kJoined ? " joined" : " streamed");
      }
    }
  }
}

TEST(ColumnBuffers, BlocksOfAnyWidth) {
  for (const Case& of : kCases)
    for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kFloat16})
      for (const index_t m : {16, 49, 64, 65, 208, 331})
        for (const index_t s : {33, 40}) ASSERT_NO_FATAL_FAILURE(ExpectKept(of, type, 3, s, m));
}

// The launch of a softmax of such a shape, of which nothing is read.
runtime::Variant LaunchOf(const std::vector<index_t>& shape, const char* target) {
  CompileOptions options;
  options.target = target;
  const Function function = Compile(graph::ParseText(Typed(kSoftmax, DType::kFloat32))[0], options);
  alignas(64) static char memory[128];
  const std::vector<runtime::TensorRef> operands = {runtime::TensorRef::Dense(memory, DType::kFloat32, shape),
                                                    runtime::TensorRef::Dense(memory + 64, DType::kFloat32, shape)};
  const runtime::Program& program = function.program();
  auto& slots = std::get<runtime::KernelStep>(program.steps[0]).slots->function;
  for (auto& slot : slots) slot = nullptr;
  const runtime::PreparedProgram prepared(program, operands,
                                          runtime::CheckArguments(program, {{operands[0]}, {operands[1]}, {}}), {}, 1);
  for (const runtime::Variant& variant : {kStreams, kJoins})
    if (slots[static_cast<std::size_t>(variant.index())].load() != nullptr) return variant;
  return kPlain;
}

TEST(ColumnBuffers, OfLargeOperands) {
  const index_t rows = 1 << 12;
  if (runtime::CpuRuns("avx512")) {
    EXPECT_EQ(LaunchOf({rows, 21, 4096}, "avx512").stores, Stores::kStreamed);
    EXPECT_EQ(LaunchOf({rows, 210, 1030}, "avx512").stores, Stores::kJoined);
    EXPECT_FALSE(LaunchOf({3, 21, 1024}, "avx512").packed);
    EXPECT_FALSE(LaunchOf({rows, 2100, 17}, "avx512").packed);  // runs of a packet and one more
    EXPECT_FALSE(LaunchOf({1, 1 << 24, 64}, "avx512").packed);  // of which no cache keeps a block
  }
  // A packet has to be a line, whatever the CPU could do.
  for (const char* const target : {"plain", "sse2", "avx2"})
    for (const std::vector<index_t>& shape : {std::vector<index_t>{rows, 21, 4096}, {rows, 210, 1030}})
      EXPECT_FALSE(runtime::CpuRuns(target) && LaunchOf(shape, target).packed) << target;
}

// Beside the kernel that keeps nothing, by any number of threads.
TEST(ColumnBuffers, Launched) {
  const auto columns = static_cast<index_t>(runtime::LastLevelCacheBytes() / sizeof(float) / 21 / 4 / 16 * 16);
  for (const std::vector<index_t>& shape :
       {std::vector<index_t>{1, 21, 4 * columns}, {4, 21, columns + 16}, {4, 21, columns + 7}}) {
    std::mt19937 random(12);
    const Tensor x(DType::kFloat32, shape, 0, &random);
    std::unique_ptr<Tensor> expected;
    for (const int threads : {2, 1, 3}) {  // a launch is kept for calls with as many
      const Function function = Compile(graph::ParseText(Typed(kSoftmax, DType::kFloat32))[0]);
      const auto& step = std::get<runtime::KernelStep>(function.program().steps[0]);
      for (auto& slot : step.slots->function) slot = nullptr;
      if (expected == nullptr)
        for (const runtime::Variant& variant : {kStreams, kJoins})
          step.slots->function[static_cast<std::size_t>(variant.index())] = runtime::CodeOf(step, kPlain);
      auto y = std::make_unique<Tensor>(DType::kFloat32, shape, 0, nullptr);
      function({{x.ref}, {y->ref}, {}}, {threads});
      const bool taken = HasTaken(function, kStreams) || HasTaken(function, kJoins);
      EXPECT_EQ(taken, expected == nullptr || runtime::CpuRuns("avx512")) << threads << " threads";
      for (auto& slot : step.slots->function) slot = nullptr;
      if (expected == nullptr) expected = std::move(y);
      else EXPECT_TRUE(SameBits(*expected, *y)) << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace umbra
