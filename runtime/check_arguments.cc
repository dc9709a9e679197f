#include <cstdint>
#include <limits>

#include "runtime/shape.h"
#include "umbra/error.h"
#include "umbra/function.h"

namespace umbra::runtime {

TensorRef TensorRef::Dense(void* data, DType dtype, std::vector<index_t> shape) {
  TensorRef tensor{data, dtype, std::move(shape), {}};
  tensor.stride.assign(tensor.shape.size(), 1);
  for (std::size_t d = tensor.shape.size(); d-- > 1;)
    tensor.stride[d - 1] = tensor.stride[d] * tensor.shape[d];
  return tensor;
}

std::string ShapeText(const std::vector<index_t>& shape) {
  std::string text;
  for (index_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

index_t CountElements(const std::vector<index_t>& shape, std::size_t element_size,
                      const std::string& what) {
  index_t count = 1;
  bool overflow = false;
  for (index_t extent : shape) {
    Require(extent >= 0, what, " has the negative extent ", extent);
    if (extent == 0) return 0;
    overflow = overflow || __builtin_mul_overflow(count, extent, &count);
  }
  index_t bytes;
  overflow = overflow || __builtin_mul_overflow(count, static_cast<index_t>(element_size), &bytes);
  Require(!overflow, what, ": the shape ", ShapeText(shape),
          " has more elements than memory can have");
  return count;
}

std::pair<const char*, const char*> ByteRange(const TensorRef& tensor) {
  index_t low = 0, high = 0;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] == 0) return {nullptr, nullptr};
    const index_t reach = (tensor.shape[d] - 1) * tensor.stride[d];
    (reach < 0 ? low : high) += reach;
  }
  const auto size = static_cast<index_t>(SizeOf(tensor.dtype));
  const char* data = static_cast<const char*>(tensor.data);
  return {data + low * size, data + (high + 1) * size};
}

std::vector<index_t> Resolve(const std::vector<Extent>& shape,
                             const std::vector<index_t>& symbols) {
  std::vector<index_t> extents;
  for (const Extent& extent : shape)
    extents.push_back(extent.is_static() ? extent.value
                                         : symbols[static_cast<std::size_t>(extent.symbol)]);
  return extents;
}

namespace {

std::string Describe(const Buffer& buffer) {
  return std::string(buffer.kind == Buffer::Kind::kOutput ? "output" : "input") + " '" +
         buffer.name + "'";
}

// What is known of the symbols so far, and which operand said so.
struct Symbols {
  std::vector<index_t> values;
  std::vector<std::string> origins;
};

void CheckOperand(const Program& program, const Buffer& buffer, const TensorRef& tensor,
                  Symbols* symbols) {
  const std::string what = "kernel '" + program.name + "', " + Describe(buffer);
  Require(tensor.dtype == buffer.dtype, what, ": expected dtype ", Name(buffer.dtype), ", got ",
          Name(tensor.dtype), "; convert with tcast<", Name(buffer.dtype), ">");
  Require(tensor.shape.size() == buffer.shape.size(), what, ": expected rank ",
          buffer.shape.size(), ", got shape ", ShapeText(tensor.shape));
  Require(tensor.stride.size() == tensor.shape.size(), what, ": ", tensor.stride.size(),
          " strides for ", tensor.shape.size(), " dimensions");
  const index_t count = CountElements(tensor.shape, SizeOf(tensor.dtype), what);
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    const Extent& expected = buffer.shape[d];
    const index_t given = tensor.shape[d];
    if (expected.is_static()) {
      Require(given == expected.value, what, ": expected extent ", expected.value,
              " in dimension ", d, ", got shape ", ShapeText(tensor.shape));
      continue;
    }
    const auto s = static_cast<std::size_t>(expected.symbol);
    if (symbols->values[s] < 0) {
      symbols->values[s] = given;
      symbols->origins[s] = "dimension " + std::to_string(d) + " of " + Describe(buffer) +
                            " with shape " + ShapeText(tensor.shape);
    }
    Require(symbols->values[s] == given, what, ": dimension ", d, " of shape ",
            ShapeText(tensor.shape), " must be ", symbols->values[s], " as ", symbols->origins[s]);
  }
  if (count == 0) return;
  Require(tensor.data != nullptr, what, ": the pointer is null, but the shape is ",
          ShapeText(tensor.shape));
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  Require(address % SizeOf(tensor.dtype) == 0, what, ": the pointer ", tensor.data,
          " is not aligned to the ", SizeOf(tensor.dtype), " bytes of an element");
}

}  // namespace

std::vector<index_t> CheckArguments(const Program& program, const Arguments& arguments) {
  std::size_t inputs = 0, outputs = 0;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.kind == Buffer::Kind::kInput) ++inputs;
    if (buffer.kind == Buffer::Kind::kOutput) ++outputs;
  }
  Require(arguments.inputs.size() == inputs, "kernel '", program.name, "' takes ", inputs,
          " inputs, ", arguments.inputs.size(), " given");
  Require(arguments.outputs.size() == outputs, "kernel '", program.name, "' has ", outputs,
          " outputs, ", arguments.outputs.size(), " given");
  Require(arguments.scalars.size() == program.scalars.size(), "kernel '", program.name,
          "' takes ", program.scalars.size(), " scalars, ", arguments.scalars.size(), " given");
  Symbols symbols;
  symbols.values.assign(static_cast<std::size_t>(program.num_symbols), -1);
  symbols.origins.resize(symbols.values.size());
  for (std::size_t k = 0; k < inputs; ++k)
    CheckOperand(program, program.buffers[k], arguments.inputs[k], &symbols);
  for (std::size_t k = 0; k < outputs; ++k)
    CheckOperand(program, program.buffers[inputs + k], arguments.outputs[k], &symbols);
  for (std::size_t k = inputs + outputs; k < program.buffers.size(); ++k)
    CountElements(Resolve(program.buffers[k].shape, symbols.values),
                  SizeOf(program.buffers[k].dtype),
                  "kernel '" + program.name + "', temporary '" + program.buffers[k].name + "'");
  return std::move(symbols.values);
}

}  // namespace umbra::runtime
