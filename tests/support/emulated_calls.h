// Calls of generated CUDA kernels by the emulator, compared with what the interpreter computes.
#ifndef UMBRA_TESTS_SUPPORT_EMULATED_CALLS_H_
#define UMBRA_TESTS_SUPPORT_EMULATED_CALLS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "tests/support/drawn.h"
#include "tests/support/emulated.h"
#include "umbra/compile.h"

namespace umbra::emulated {

using namespace drawn;  // NOLINT: the tests' own words

// Calls whose kernels are compiled together: what each expects is computed by the interpreter.
class Calls {
 public:
  struct Shape {
    std::vector<index_t> extents;
    index_t padding = 0;
  };

  /// `change`: makes other variants of those that launches ask for.
  explicit Calls(void (*change)(runtime::CudaVariant*) = nullptr) : change_(change) {}

  /// `text` on operands of these shapes, in the order of the graph's inputs.
  void Add(const std::string& text, const std::vector<Shape>& inputs, double tolerance = 1e-5,
           runtime::CudaLimits limits = {}) {
    Add(graph::ParseText(text)[0], inputs, tolerance, limits);
  }

  /// The same with the first input as the output.
  void AddInPlace(const std::string& text, const std::vector<Shape>& inputs, double tolerance = 1e-5) {
    in_place_ = true;
    Add(text, inputs, tolerance);
    in_place_ = false;
  }

  void Add(const std::shared_ptr<const graph::Graph>& graph, const std::vector<Shape>& shapes, double tolerance,
           runtime::CudaLimits limits = {}) {
    auto one = std::make_unique<One>();
    one->what = graph::Print(*graph);
    one->tolerance = tolerance;
    runtime::Arguments arguments;
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      const DType type = graph->node(graph->inputs()[k]).dtype;
      one->operands.push_back(std::make_unique<Tensor>(type, shapes[k].extents, shapes[k].padding, &random_));
      arguments.inputs.push_back(one->operands.back()->ref);
    }
    for (int id : graph->scalars()) arguments.scalars.push_back(ScalarOf(graph->node(id).dtype));
    CompileOptions options;
    options.engine = Engine::kInterpreter;
    const Function function = Compile(graph, options);
    const auto result_shapes = runtime::OutputShapes(function.program(), arguments.inputs);
    runtime::Arguments own = arguments;
    for (std::size_t k = 0; k < result_shapes.size(); ++k) {
      const DType type = graph->node(graph->outputs()[k].node).dtype;
      const index_t padding = shapes.empty() ? 0 : shapes[0].padding;
      one->expected.push_back(std::make_unique<Tensor>(type, result_shapes[k], padding, nullptr));
      one->got.push_back(std::make_unique<Tensor>(type, result_shapes[k], padding, nullptr));
      arguments.outputs.push_back(one->expected.back()->ref);
      own.outputs.push_back(one->got.back()->ref);
    }
    function(arguments);
    if (in_place_) {
      own.inputs[0] = own.outputs[0];
      one->in_place = true;
    }
    one->call = std::make_unique<Call>(&library_, *graph, own, limits, change_);
    calls_.push_back(std::move(one));
  }

  const std::vector<runtime::CudaLaunch>& launches() const { return calls_.back()->call->launches(); }

  void Run() {
    library_.Build();
    for (const auto& one : calls_)
      for (const bool reverse : {false, true}) {
        for (auto& tensor : one->got) std::fill(tensor->bytes.begin(), tensor->bytes.end(), 0x5a);
        if (one->in_place) {
          Tensor& first = *one->got[0];
          const Tensor& from = *one->operands[0];
          const std::size_t size =
              static_cast<std::size_t>(first.ref.shape[0] * first.ref.stride[0]) * SizeOf(first.dtype);
          std::memcpy(first.ref.data, from.ref.data, size);
        }
        one->call->Run(reverse);
        for (std::size_t k = 0; k < one->got.size(); ++k) {
          ExpectSame(*one->expected[k], *one->got[k], one->tolerance, one->what + (reverse ? " in reverse" : ""));
          ExpectUntouched(*one->got[k], one->what);
        }
      }
  }

 private:
  struct One {
    std::string what;
    double tolerance;
    bool in_place = false;
    std::vector<std::unique_ptr<Tensor>> operands, expected, got;
    std::unique_ptr<Call> call;
  };

  static umbra_scalar ScalarOf(DType type) {
    umbra_scalar scalar{};
    if (type == DType::kFloat32) scalar.f32 = 0.75f;
    else if (type == DType::kFloat64) scalar.f64 = 0.75;
    else if (type == DType::kInt64) scalar.i64 = 3;
    else scalar.i32 = 3;
    return scalar;
  }

  // Nothing is written between the rows and around the tensor.
  static void ExpectUntouched(const Tensor& tensor, const std::string& what) {
    std::vector<bool> own(tensor.bytes.size());
    const auto size = static_cast<index_t>(SizeOf(tensor.dtype));
    const index_t base = static_cast<const char*>(tensor.ref.data) - tensor.bytes.data();
    ForEachIndex(tensor.ref.shape, [&](const std::vector<index_t>& index) {
      index_t at = base;
      for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * tensor.ref.stride[d] * size;
      for (index_t k = 0; k < size; ++k) own[static_cast<std::size_t>(at + k)] = true;
    });
    for (std::size_t k = 0; k < own.size(); ++k)
      if (!own[k] && tensor.bytes[k] != 0x5a) {
        ADD_FAILURE() << "byte " << static_cast<index_t>(k) - base << " outside of the tensor is written: " << what;
        return;
      }
  }

  bool in_place_ = false;
  void (*change_)(runtime::CudaVariant*) = nullptr;
  std::mt19937 random_{20261121};
  Library library_;
  std::vector<std::unique_ptr<One>> calls_;
};

}  // namespace umbra::emulated

#endif  // UMBRA_TESTS_SUPPORT_EMULATED_CALLS_H_
