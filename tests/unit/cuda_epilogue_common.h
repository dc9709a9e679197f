// Products on a GPU that do what follows them, asked for and compared with the interpreter's.
#ifndef UMBRA_TESTS_UNIT_CUDA_EPILOGUE_COMMON_H_
#define UMBRA_TESTS_UNIT_CUDA_EPILOGUE_COMMON_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "tests/support/cublas_stand_in.h"
#include "tests/support/cuda_stand_in.h"
#include "tests/support/drawn.h"
#include "tests/support/on_gpu.h"
#include "umbra/jit.h"

namespace umbra {

using Drawn = drawn::Tensor;

// A cache that holds the other tests' results, but not those of several pieces.
inline const int kChosen = on_gpu::UseStandIns() + setenv("STAND_IN_L2_BYTES", "80000", 1);

inline constexpr std::uint32_t kPlain = 1, kRelu = 2, kBias = 4, kBiasRelu = 6, kGelu = 32, kBiasGelu = 36;

class CudaEpilogue : public on_gpu::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(kChosen, 0);
    on_gpu::Test::SetUp();
    stand_in::TakeProducts();
  }
  void TearDown() override {
    stand_in::RefuseEpilogues(0);
    cuda::AllowTf32(false);
    jit::SetOptions({});
    on_gpu::Test::TearDown();
  }

  struct Operand {
    std::vector<index_t> extents;
    index_t padding = 0;
    index_t from = 0;  // the first element of a vector in memory
    index_t step = 1;  // elements of memory from one of a vector to the next
  };
  // What a call asked for.
  struct Asked {
    std::vector<std::uint32_t> epilogues;
    int kernels = 0;
    bool biased = true;  // do the products with a bias have the last input's?
  };
  static CompileOptions Options(Math math) {
    CompileOptions options = on_gpu::Options();
    options.math = math;
    return options;
  }

  // Runs a kernel on drawn operands, and compares with the interpreter's results.
  Asked Check(const std::string& text, const std::vector<Operand>& inputs, Math math = Math::kStrict,
              double tolerance = 1e-5) {
    const auto graph = graph::ParseText(text)[0];
    const Function function = Compile(graph, Options(math));
    CompileOptions interpreted;
    interpreted.engine = Engine::kInterpreter;
    const auto& buffers = function.program().buffers;
    runtime::Arguments host, device;
    std::vector<std::unique_ptr<Drawn>> operands, results;
    std::vector<std::unique_ptr<on_gpu::There>> there;
    const auto part = [](runtime::TensorRef ref, const Operand& operand) {
      if (operand.step == 1 && operand.from == 0) return ref;
      ref.data = static_cast<char*>(ref.data) + operand.from * static_cast<index_t>(SizeOf(ref.dtype));
      ref.shape = operand.extents;
      ref.stride = {operand.step};
      return ref;
    };
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      std::vector<index_t> extents = inputs[k].extents;
      if (extents.size() == 1) extents[0] = inputs[k].from + extents[0] * inputs[k].step;
      operands.push_back(std::make_unique<Drawn>(buffers[k].dtype, extents, inputs[k].padding, &random_));
      there.push_back(std::make_unique<on_gpu::There>(*operands.back()));
      host.inputs.push_back(part(operands.back()->ref, inputs[k]));
      device.inputs.push_back(part(there.back()->ref, inputs[k]));
    }
    for (std::size_t k = 0; k < function.program().scalars.size(); ++k) {
      umbra_scalar scalar{};
      scalar.f32 = 0.75f;
      host.scalars.push_back(scalar);
    }
    device.scalars = host.scalars;
    const auto shapes = runtime::OutputShapes(function.program(), device.inputs);
    for (std::size_t k = 0; k < shapes.size(); ++k)
      for (runtime::Arguments* arguments : {&host, &device}) {
        results.push_back(
            std::make_unique<Drawn>(buffers[inputs.size() + k].dtype, shapes[k], inputs[0].padding, nullptr));
        if (arguments == &device) there.push_back(std::make_unique<on_gpu::There>(*results.back()));
        arguments->outputs.push_back(arguments == &device ? there.back()->ref : results.back()->ref);
      }
    Compile(graph, interpreted)(host);
    Stream<gpu> stream;
    const int launches = stand_in::Calls("cuLaunchKernel");
    stand_in::TakeProducts();
    function(device, {0, stream.handle_});
    stream.Wait();
    Asked asked;
    asked.kernels = stand_in::Calls("cuLaunchKernel") - launches;
    for (const stand_in::Product& product : stand_in::TakeProducts()) {
      asked.epilogues.push_back(product.epilogue);
      if (product.bias != nullptr) asked.biased = asked.biased && product.bias == device.inputs.back().data;
    }
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      Drawn& got = *results[2 * k + 1];
      there[inputs.size() + k]->CopyBack(&got);
      ExpectSame(*results[2 * k], got, tolerance, text);
      for (index_t at = 0; at < 16; ++at) EXPECT_EQ(got.bytes[static_cast<std::size_t>(at)], 0x5a);
    }
    return asked;
  }
  // One product with this epilogue, and no kernel.
  void ExpectWhole(std::uint32_t epilogue, const std::string& text, const std::vector<Operand>& inputs,
                   Math math = Math::kStrict, double tolerance = 1e-5) {
    const Asked asked = Check(text, inputs, math, tolerance);
    EXPECT_EQ(asked.epilogues, std::vector<std::uint32_t>{epilogue}) << text;
    EXPECT_EQ(asked.kernels, 0) << text;
    EXPECT_TRUE(asked.biased) << text;
  }
  // A plain product, and `kernels` after it.
  void ExpectApart(const std::string& text, const std::vector<Operand>& inputs, Math math = Math::kStrict,
                   int kernels = 1, double tolerance = 1e-5) {
    const Asked asked = Check(text, inputs, math, tolerance);
    EXPECT_EQ(asked.epilogues, std::vector<std::uint32_t>{kPlain}) << text;
    EXPECT_EQ(asked.kernels, kernels) << text;
  }

  static std::string Kernel(const std::string& y, const std::string& dtype = "f32",
                            const std::string& shapes = "[n, k] [k, m] [m] [n, m]") {
    std::vector<std::string> shape(1);
    for (const char c : shapes) {
      shape.back() += c;
      if (c == ']') shape.emplace_back();
    }
    return "kernel e(x: " + dtype + shape[0] + ", w: " + dtype + shape[1] + ", b: " + dtype + shape[2] +
           ") -> (y: " + dtype + shape[3] + ") { y = " + y + " }";
  }

  std::mt19937 random_{20261122};
};

}  // namespace umbra

#endif  // UMBRA_TESTS_UNIT_CUDA_EPILOGUE_COMMON_H_
