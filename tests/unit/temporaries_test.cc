// Memory between the steps of a program: each temporary has it only from the step that writes it to the last that reads
// it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/prepared.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

constexpr index_t kSize = 3000;
constexpr std::size_t kBytes = (kSize * sizeof(float) + 63) / 64 * 64;

struct Outcome {
  std::size_t temporary_bytes;
  std::vector<float> first;  // output
};

// Runs a kernel whose operands have kSize elements; input k is k + 1 everywhere.
Outcome OutcomeOf(const std::string& text) {
  const Function function = Compile(graph::ParseText(text)[0]);
  const runtime::Program& program = function.program();
  std::vector<std::vector<float>> memory;
  for (const runtime::Buffer& buffer : program.buffers)
    if (buffer.kind <= runtime::Buffer::Kind::kOutput)
      memory.emplace_back(kSize,
                          buffer.kind == runtime::Buffer::Kind::kInput ? static_cast<float>(memory.size() + 1) : -1.0f);
  runtime::Arguments arguments;
  std::size_t outputs_begin = 0;
  for (std::size_t k = 0; k < memory.size(); ++k) {
    const bool input = program.buffers[k].kind == runtime::Buffer::Kind::kInput;
    outputs_begin += input;
    (input ? arguments.inputs : arguments.outputs)
        .push_back(runtime::TensorRef::Dense(memory[k].data(), DType::kFloat32, {kSize}));
  }
  function(arguments);
  std::vector<runtime::TensorRef> operands = arguments.inputs;
  operands.insert(operands.end(), arguments.outputs.begin(), arguments.outputs.end());
  const runtime::PreparedProgram prepared(program, operands, runtime::CheckArguments(program, arguments), {}, 1);
  return {prepared.temporary_bytes(), memory[outputs_begin]};
}

std::string Kernel(int inputs, const std::string& body) {
  std::string text = "kernel k(";
  for (int k = 0; k < inputs; ++k) text += (k == 0 ? "a" : ", a") + std::to_string(k) + ": f32[n]";
  return text + ") -> (y: f32[n]) {\n" + body + "}\n";
}

TEST(Temporaries, OfASumOf200TensorsEachTakesThePlaceOfTheOneBefore) {
  std::string sum = "  y = a0";
  for (int k = 1; k < 200; ++k) sum += " + a" + std::to_string(k);
  const Outcome outcome = OutcomeOf(Kernel(200, sum + "\n"));
  EXPECT_EQ(outcome.first, std::vector<float>(kSize, 200 * 201 / 2));
  EXPECT_EQ(outcome.temporary_bytes, kBytes);
}

// Read at other places than they are written, and all at once.
TEST(Temporaries, ThatAreNeededTogetherHaveMemoryOfTheirOwn) {
  std::string body, sum = "  y = ";
  for (int s = 0; s < 8; ++s) {
    const std::string name = "s" + std::to_string(s);
    body += "  " + name + " = sqrt(a" + std::to_string(s) + " * a" + std::to_string(s) + ")\n";
    sum += (s == 0 ? "flip(" : " + flip(") + name + ", 0)";
  }
  const Outcome outcome = OutcomeOf(Kernel(8, body + sum + "\n"));
  EXPECT_EQ(outcome.first, std::vector<float>(kSize, 36));
  EXPECT_EQ(outcome.temporary_bytes, 8 * kBytes);
}

// What a second result is made of is not written over while that is still to come.
TEST(Temporaries, ThatAreReadAgainStay) {
  std::string body = "  s = sqrt(a0)\n  t = sqrt(flip(s, 0))\n  u = sqrt(flip(t, 0))\n";
  const Outcome outcome = OutcomeOf(Kernel(1, body + "  y = flip(u, 0) + flip(t, 0) + flip(s, 0) + 1\n"));
  EXPECT_EQ(outcome.first, std::vector<float>(kSize, 4));
  EXPECT_EQ(outcome.temporary_bytes, 3 * kBytes);
}

// Each sum begins in memory for want of room in one kernel, but all that reads it has joined the kernel that makes it.
TEST(Temporaries, ThatNothingReadsAreNone) {
  std::string body, product = "  y = ";
  for (int s = 0; s < 8; ++s) {
    const std::string name = "s" + std::to_string(s);
    body += "  " + name + " = a" + std::to_string(s * 12);
    for (int k = 1; k < 12; ++k) body += " + a" + std::to_string(s * 12 + k);
    body += "\n";
    product += (s == 0 ? "maximum(" : ", maximum(") + name;
  }
  product += ", 0" + std::string(8, ')') + "\n";
  const Outcome outcome = OutcomeOf(Kernel(96, body + product));
  float most = 0;
  for (int k = 84; k < 96; ++k) most += static_cast<float>(k + 1);
  EXPECT_EQ(outcome.first, std::vector<float>(kSize, most));
  EXPECT_EQ(outcome.temporary_bytes, kBytes);
}

}  // namespace
}  // namespace umbra
