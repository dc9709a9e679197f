#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "tools/umbra/commands.h"
#include "tools/umbra/files.h"
#include "tools/umbra/load.h"
#include "tools/umbra/npy.h"
#include "umbra/error.h"

namespace umbra::tools {

UMBRA_REGISTER_PARAMETER(RunOptions);

namespace {

std::map<std::string, std::string> Pairs(const std::vector<std::string>& words,
                                         const char* option) {
  std::map<std::string, std::string> pairs;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    Require(equals != std::string::npos && equals > 0 && equals + 1 < word.size(), option, " ",
            word, ": expected name=value");
    Require(pairs.emplace(word.substr(0, equals), word.substr(equals + 1)).second, option, " ",
            word, ": '", word.substr(0, equals), "' is given twice");
  }
  return pairs;
}

// Takes the value of `name` out of `pairs`.
std::string Take(std::map<std::string, std::string>* pairs, const std::string& name,
                 const char* option) {
  const auto found = pairs->find(name);
  Require(found != pairs->end(), "the kernel needs ", option, " ", name, "=...");
  std::string value = found->second;
  pairs->erase(found);
  return value;
}

void RequireEmpty(const std::map<std::string, std::string>& pairs, const char* option) {
  if (!pairs.empty())
    throw Error(std::string(option) + " " + pairs.begin()->first +
                ": the kernel has no such operand");
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

void Run(const RunOptions& options, const CompileOptions& compile) {
  auto in = Pairs(options.in, "--in"), out = Pairs(options.out, "--out"),
       scalars = Pairs(options.scalar, "--scalar");
  std::map<std::string, Array> arrays;
  OperandTypes types;
  for (const auto& [name, path] : in) {
    const Array& array = arrays.emplace(name, ParseNpy(ReadFile(path), path)).first->second;
    types[name] = {array.dtype, static_cast<int>(array.shape.size())};
  }
  // A number of an expression has the dtype of its tensors.
  const DType dtype = types.empty() ? DType::kFloat32 : types.begin()->second.dtype;
  for (const auto& [name, value] : scalars) types[name] = {dtype, 0};
  const auto graph = LoadKernel(options.input, options.kernel, types);
  const auto start = std::chrono::steady_clock::now();
  const Function function = Compile(graph, compile);
  const std::chrono::duration<double, std::milli> compile_time =
      std::chrono::steady_clock::now() - start;
  const runtime::Program& program = function.program();

  std::vector<Array> inputs, outputs;
  std::vector<std::string> paths;
  runtime::Arguments arguments;
  for (const runtime::Buffer& buffer : program.buffers) {
    if (buffer.kind == runtime::Buffer::Kind::kOutput) paths.push_back(Take(&out, buffer.name, "--out"));
    if (buffer.kind != runtime::Buffer::Kind::kInput) continue;
    Take(&in, buffer.name, "--in");
    inputs.push_back(std::move(arrays.at(buffer.name)));
  }
  for (Array& array : inputs) arguments.inputs.push_back(array.Ref());
  for (const auto& [name, dtype] : program.scalars) {
    const std::string text = Take(&scalars, name, "--scalar");
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    Require(end != text.c_str() && *end == '\0', "--scalar ", name, "=", text, ": not a number");
    umbra_scalar scalar;
    if (dtype == DType::kFloat32)
      scalar.f32 = static_cast<float>(value);
    else if (dtype == DType::kFloat64)
      scalar.f64 = value;
    else if (dtype == DType::kInt64) {
      Require(value == std::trunc(value) && std::abs(value) <= 9007199254740992.0, "--scalar ", name, "=", text,
              ": expected a whole number up to 2^53");
      scalar.i64 = static_cast<std::int64_t>(value);
    } else {
      Require(value == std::trunc(value) && std::abs(value) <= 2147483647.0, "--scalar ", name, "=",
              text, ": expected an i32");
      scalar.i32 = static_cast<std::int32_t>(value);
    }
    arguments.scalars.push_back(scalar);
  }
  RequireEmpty(in, "--in");
  RequireEmpty(out, "--out");
  RequireEmpty(scalars, "--scalar");
  const auto shapes = runtime::OutputShapes(program, arguments.inputs);
  for (std::size_t k = 0; k < shapes.size(); ++k)
    outputs.push_back(MakeArray(program.buffers[inputs.size() + k].dtype, shapes[k]));
  for (Array& array : outputs) arguments.outputs.push_back(array.Ref());

  std::vector<double> times;
  const int repetitions = options.time ? 21 : 1;
  for (int k = 0; k < repetitions; ++k) {
    const auto before = std::chrono::steady_clock::now();
    function(arguments, {options.threads});
    const std::chrono::duration<double, std::micro> time =
        std::chrono::steady_clock::now() - before;
    times.push_back(time.count());
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) WriteFile(paths[k], FormatNpy(outputs[k]));
  if (options.time) {
    double bytes = 0;
    for (const Array& array : inputs) bytes += static_cast<double>(array.bytes.size());
    for (const Array& array : outputs) bytes += static_cast<double>(array.bytes.size());
    fmt::print("compile {:.2f} ms\nrun     {:.1f} us (median of {}), {:.2f} GB/s of operands\n",
               compile_time.count(), Median(times), times.size(), bytes / Median(times) / 1e3);
  }
}

}  // namespace umbra::tools
