#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>

#include "tools/umbra/commands.h"
#include "tools/umbra/files.h"
#include "tools/umbra/load.h"
#include "tools/umbra/npy.h"
#include "tools/umbra/on_gpu.h"
#include "tools/umbra/usage.h"
#include "umbra/device.h"
#include "umbra/error.h"

namespace umbra::tools {

UMBRA_REGISTER_PARAMETER(RunOptions);

namespace {

std::map<std::string, std::string> Pairs(const std::vector<std::string>& words, const char* option) {
  std::map<std::string, std::string> pairs;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    RequireUsage(equals != std::string::npos && equals > 0 && equals + 1 < word.size(), option, " ", word,
                 ": expected name=value");
    RequireUsage(pairs.emplace(word.substr(0, equals), word.substr(equals + 1)).second, option, " ", word, ": '",
                 word.substr(0, equals), "' is given twice");
  }
  return pairs;
}

using Words = std::map<std::string, std::string>;

std::string Names(const Words& pairs) {
  std::string names;
  for (const auto& [name, value] : pairs) names += (names.empty() ? "" : ", ") + name;
  return names;
}

// Takes the value of `name` out of `pairs`, which may hold what is `known`; `misplaced` says that another
// option has it.
std::string Take(Words* pairs, const std::string& name, const char* option, const Words& known,
                 const std::string& misplaced) {
  const auto found = pairs->find(name);
  if (found == pairs->end()) {
    Words strange = *pairs;
    for (const auto& [own, value] : known) strange.erase(own);
    throw Error(fmt::format("the kernel needs {} {}=...{}{}", option, name, misplaced,
                            strange.empty() ? ""
                                            : fmt::format("; {} {} names none of its operands ({})", option,
                                                          Names(strange), Names(known))));
  }
  std::string value = found->second;
  pairs->erase(found);
  return value;
}

void RequireEmpty(const Words& pairs, const char* option, const std::string& operands) {
  Require(pairs.empty(), option, " ", Names(pairs), ": the kernel has no such operand; its operands: ", operands);
}

// The number that `text` is, exactly or rounded once.
template <typename T>
T ParseInteger(const std::string& text, const std::string& what) {
  T value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  Require(error == std::errc() && rest == end, what, ": expected a whole number from ", std::numeric_limits<T>::min(),
          " to ", std::numeric_limits<T>::max());
  return value;
}

template <typename T>
T ParseFloat(const std::string& text, const std::string& what) {
  char* end = nullptr;
  T value;
  if constexpr (std::is_same_v<T, float>) value = std::strtof(text.c_str(), &end);
  else value = std::strtod(text.c_str(), &end);
  Require(end != text.c_str() && *end == '\0', what, ": not a number");
  Require(!std::isinf(value) || text.find_first_of("iI") != std::string::npos, what, ": beyond ",
          Name(DTypeOf<T>::value), ", whose largest number is ", std::numeric_limits<T>::max(),
          "; write inf for infinity");
  return value;
}

umbra_scalar ParseScalar(const std::string& text, DType dtype, const std::string& what) {
  umbra_scalar scalar;
  switch (dtype) {
    case DType::kFloat32: scalar.f32 = ParseFloat<float>(text, what); break;
    case DType::kFloat64: scalar.f64 = ParseFloat<double>(text, what); break;
    case DType::kInt64: scalar.i64 = ParseInteger<std::int64_t>(text, what); break;
    default: scalar.i32 = ParseInteger<std::int32_t>(text, what); break;
  }
  return scalar;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

void Run(const RunOptions& options, CompileOptions compile) {
  if (options.device == "gpu") {
    RequireUsage(compile.target.empty() || compile.target == kCudaTarget, "--target ", compile.target,
                 " is for a CPU, and --device gpu was given");
    compile.target = kCudaTarget;
  }
  auto in = Pairs(options.in, "--in"), out = Pairs(options.out, "--out"), scalars = Pairs(options.scalar, "--scalar");
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
  const std::chrono::duration<double, std::milli> compile_time = std::chrono::steady_clock::now() - start;
  const runtime::Program& program = function.program();

  Words tensors, results, numbers;  // what the kernel has
  for (const runtime::Buffer& buffer : program.buffers) {
    if (buffer.kind == runtime::Buffer::Kind::kInput) tensors[buffer.name];
    if (buffer.kind == runtime::Buffer::Kind::kOutput) results[buffer.name];
  }
  for (const auto& scalar : program.scalars) numbers[scalar.first];
  const Words given = in;
  std::vector<Array> inputs, outputs;
  std::vector<std::string> paths;
  runtime::Arguments arguments;
  for (const runtime::Buffer& buffer : program.buffers) {
    if (buffer.kind == runtime::Buffer::Kind::kOutput) paths.push_back(Take(&out, buffer.name, "--out", results, ""));
    if (buffer.kind != runtime::Buffer::Kind::kInput) continue;
    Take(&in, buffer.name, "--in", tensors,
         scalars.count(buffer.name) != 0 ? ", a file: it is a tensor, and --scalar gives a number"
         : IsFile(options.input)         ? ""
                                         : ", or --scalar " + buffer.name + "=... if it is a number");
    inputs.push_back(std::move(arrays.at(buffer.name)));
  }
  for (Array& array : inputs) arguments.inputs.push_back(array.Ref());
  for (const auto& [name, dtype] : program.scalars) {
    const auto file = given.find(name);
    const std::string text = Take(
        &scalars, name, "--scalar", numbers,
        file == given.end() ? ""
                            : ", the number itself: it is no tensor, as --in " + name + "=" + file->second + " gives");
    arguments.scalars.push_back(ParseScalar(text, dtype, "--scalar " + name + "=" + text));
  }
  RequireEmpty(in, "--in", OperandNames(*graph));
  RequireEmpty(out, "--out", Names(results));
  RequireEmpty(scalars, "--scalar", OperandNames(*graph));
  const auto shapes = runtime::OutputShapes(program, arguments.inputs, arguments.scalars);
  for (std::size_t k = 0; k < shapes.size(); ++k)
    outputs.push_back(MakeArray(program.buffers[inputs.size() + k].dtype, shapes[k]));
  for (Array& array : outputs) arguments.outputs.push_back(array.Ref());

  std::optional<OnGpu> gpu;
  std::optional<Stream<umbra::gpu>> stream;
  if (program.on_gpu) {
    gpu.emplace(arguments);
    stream.emplace();
  }
  std::vector<double> times;
  const int repetitions = options.time ? 21 : 1;
  for (int k = 0; k < repetitions; ++k) {
    const auto before = std::chrono::steady_clock::now();
    function(gpu ? gpu->arguments : arguments, {options.threads, stream ? stream->handle_ : nullptr});
    if (stream) stream->Wait();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - before;
    times.push_back(time.count());
  }
  if (gpu) gpu->CopyBack();
  for (std::size_t k = 0; k < outputs.size(); ++k) WriteFile(paths[k], FormatNpy(outputs[k]));
  if (options.time) {
    double bytes = 0;
    for (const Array& array : inputs) bytes += static_cast<double>(array.bytes.size());
    for (const Array& array : outputs) bytes += static_cast<double>(array.bytes.size());
    fmt::print("compile {:.2f} ms\nrun     {:.1f} us (median of {}), {:.2f} GB/s of operands\n", compile_time.count(),
               Median(times), times.size(), bytes / Median(times) / 1e3);
  }
}

}  // namespace umbra::tools
