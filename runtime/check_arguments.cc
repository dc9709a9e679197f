#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "runtime/shape.h"
#include "umbra/error.h"
#include "umbra/function.h"

namespace umbra::runtime {

TensorRef TensorRef::Dense(void* data, DType dtype, std::vector<index_t> shape) {
  TensorRef tensor{data, dtype, std::move(shape), {}};
  tensor.stride.assign(tensor.shape.size(), 1);
  for (std::size_t d = tensor.shape.size(); d-- > 1;) tensor.stride[d - 1] = tensor.stride[d] * tensor.shape[d];
  return tensor;
}

TensorRef TensorRef::At(index_t index) const {
  auto* const begin = static_cast<char*>(data) + index * stride[0] * static_cast<index_t>(SizeOf(dtype));
  return {begin, dtype, {shape.begin() + 1, shape.end()}, {stride.begin() + 1, stride.end()}};
}

std::string ShapeText(const std::vector<index_t>& shape) {
  std::string text;
  for (index_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

index_t CountElements(const std::vector<index_t>& shape, std::size_t element_size, const std::string& what) {
  index_t count = 1;
  bool overflow = false;
  for (index_t extent : shape) Require(extent >= 0, what, " has the negative extent ", extent);
  for (index_t extent : shape) {
    if (extent == 0) return 0;
    overflow = overflow || __builtin_mul_overflow(count, extent, &count);
  }
  index_t bytes;
  overflow = overflow || __builtin_mul_overflow(count, static_cast<index_t>(element_size), &bytes);
  Require(!overflow, what, ": the shape ", ShapeText(shape), " has more elements than memory can have");
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

namespace {

// Of what `where` says.
index_t ComputeFor(const std::string& where, ExtentOp op, index_t a, index_t b) {
  index_t result = 0;
  bool overflow = false;
  switch (op) {
    case ExtentOp::kPlus: overflow = __builtin_add_overflow(a, b, &result); break;
    case ExtentOp::kMinus: overflow = __builtin_sub_overflow(a, b, &result); break;
    case ExtentOp::kTimes: overflow = __builtin_mul_overflow(a, b, &result); break;
    case ExtentOp::kOver: result = b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); break;
    case ExtentOp::kMinimum: result = std::min(a, b); break;
    case ExtentOp::kMaximum: result = std::max(a, b); break;
    case ExtentOp::kScalar: break;
  }
  Require(!overflow, where, "an extent computed from ", a, " and ", b, " does not fit 64 bits");
  return result;
}

}  // namespace

index_t Compute(ExtentOp op, index_t a, index_t b) { return ComputeFor("", op, a, b); }

std::vector<index_t> Resolve(const std::vector<Extent>& shape, const std::vector<index_t>& symbols) {
  std::vector<index_t> extents;
  for (const Extent& extent : shape)
    extents.push_back(extent.is_static() ? extent.value : symbols[static_cast<std::size_t>(extent.symbol)]);
  return extents;
}

namespace {

std::string Describe(const Buffer& buffer) {
  return std::string(buffer.kind == Buffer::Kind::kOutput ? "output" : "input") + " '" + buffer.name + "'";
}

// What is known of the symbols so far, and which operand said so.
struct Symbols {
  std::vector<index_t> values;
  std::vector<std::string> origins;
};

[[noreturn]] void RefuseStrides(const TensorRef& tensor, const std::string& what, const char* why) {
  throw Error(what + ": the strides " + ShapeText(tensor.stride) + " of shape " + ShapeText(tensor.shape) + why);
}

// A place that stands for several elements cannot hold what is stored for each. Each dimension has to step over all
// that those of smaller strides reach, which is no further than memory.
void CheckStores(const TensorRef& tensor, const std::string& what) {
  const auto step = [&](std::size_t d) { return std::abs(tensor.stride[d]); };
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    index_t reach = 0;
    for (std::size_t e = 0; e < tensor.shape.size(); ++e)
      if (step(e) < step(d) || (step(e) == step(d) && e < d)) reach += step(e) * (tensor.shape[e] - 1);
    if (tensor.shape[d] != 1 && step(d) <= reach)
      RefuseStrides(tensor, what,
                    " may give several elements one place in memory; expected others, as TensorRef::Dense gives");
  }
}

// No address is further than memory can be.
void CheckReach(const TensorRef& tensor, const std::string& what) {
  index_t low = 0, high = 0;
  bool overflow = false;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    index_t reach = 0;
    if (tensor.shape[d] <= 1) continue;
    overflow = overflow || __builtin_mul_overflow(tensor.shape[d] - 1, tensor.stride[d], &reach);
    index_t& end = reach < 0 ? low : high;
    overflow = overflow || __builtin_add_overflow(end, reach, &end);
  }
  constexpr index_t kMost = std::numeric_limits<index_t>::max() / 32;  // of the largest elements, in both directions
  if (overflow || low < -kMost || high > kMost) RefuseStrides(tensor, what, " reach further than memory can");
}

void CheckOperand(const Program& program, const Buffer& buffer, const TensorRef& tensor, Symbols* symbols) {
  const std::string what = "kernel '" + program.name + "', " + Describe(buffer);
  Require(tensor.dtype == buffer.dtype, what, ": expected dtype ", Name(buffer.dtype), ", got ", Name(tensor.dtype),
          "; convert with tcast<", Name(buffer.dtype), ">");
  Require(tensor.shape.size() == buffer.shape.size(), what, ": expected rank ", buffer.shape.size(), ", got shape ",
          ShapeText(tensor.shape));
  Require(tensor.stride.size() == tensor.shape.size(), what, ": ", tensor.stride.size(), " strides for ",
          tensor.shape.size(), " dimensions");
  const index_t count = CountElements(tensor.shape, SizeOf(tensor.dtype), what);
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    const Extent& expected = buffer.shape[d];
    const index_t given = tensor.shape[d];
    if (expected.is_static()) {
      Require(given == expected.value, what, ": expected extent ", expected.value, " in dimension ", d, ", got shape ",
              ShapeText(tensor.shape));
      continue;
    }
    const auto s = static_cast<std::size_t>(expected.symbol);
    if (symbols->values[s] < 0) {
      symbols->values[s] = given;
      symbols->origins[s] =
          "dimension " + std::to_string(d) + " of " + Describe(buffer) + " with shape " + ShapeText(tensor.shape);
    }
    Require(symbols->values[s] == given, what, ": dimension ", d, " of shape ", ShapeText(tensor.shape), " must be ",
            symbols->values[s], " as ", symbols->origins[s]);
  }
  if (count == 0) return;
  CheckReach(tensor, what);
  if (buffer.kind == Buffer::Kind::kOutput) CheckStores(tensor, what);
  Require(tensor.data != nullptr, what, ": the pointer is null, but the shape is ", ShapeText(tensor.shape));
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  Require(address % SizeOf(tensor.dtype) == 0, what, ": the pointer ", tensor.data, " is not aligned to the ",
          SizeOf(tensor.dtype), " bytes of an element");
}

// Extents that follow from those of the inputs, and from numbers of the call if they are given.
void ComputeDerived(const Program& program, const std::vector<umbra_scalar>* scalars, Symbols* symbols) {
  const auto value = [&](const Extent& extent) {
    return extent.is_static() ? extent.value : symbols->values[static_cast<std::size_t>(extent.symbol)];
  };
  for (const DerivedExtent& derived : program.derived) {
    const index_t a = value(derived.a), b = value(derived.b), known = value(derived.result);
    if (derived.op.kind == ExtentOp::kScalar) {
      if (scalars == nullptr) continue;
      const auto& [name, dtype] = program.scalars[static_cast<std::size_t>(a)];
      const index_t given = WholeNumber(dtype, (*scalars)[static_cast<std::size_t>(a)]);
      Require(given >= 0, "kernel '", program.name, "': scalar '", name, "' is ", given,
              ", but stands for an extent or a position: it must be 0 or more");
      Require(known < 0 || known == given, "kernel '", program.name, "': scalar '", name, "' is ", given,
              ", but must be ", known);
      if (known >= 0) continue;
      symbols->values[static_cast<std::size_t>(derived.result.symbol)] = given;
      symbols->origins[static_cast<std::size_t>(derived.result.symbol)] = "scalar '" + name + "'";
      continue;
    }
    const auto open = [&](const Extent& extent) { return !extent.is_static() && value(extent) < 0; };
    if (open(derived.a) || open(derived.b)) continue;  // the outputs have to say
    const std::string where = "kernel '" + program.name + "': " + derived.op.origin + ": ";
    const index_t result = ComputeFor(where, derived.op.kind, a, b);
    Require(result >= 0 || derived.op.kind != ExtentOp::kMinus, where, "an extent is ", a, ", but must be at least ", b,
            ": an input is too small, or a number does not fit");
    Require(result >= 0, where, "an extent of the result would be ", result, ": an input is too small");
    Require(known < 0 || known == result, where, "an extent is ", known,
            derived.result.is_static() ? std::string()
                                       : " (" + symbols->origins[static_cast<std::size_t>(derived.result.symbol)] + ")",
            ", but must be ", result, ", which follows from the inputs");
    if (known >= 0) continue;
    symbols->values[static_cast<std::size_t>(derived.result.symbol)] = result;
    symbols->origins[static_cast<std::size_t>(derived.result.symbol)] = "follows from the inputs";
  }
}

Symbols SymbolsOfInputs(const Program& program, const std::vector<TensorRef>& inputs) {
  const auto count =
      static_cast<std::size_t>(std::count_if(program.buffers.begin(), program.buffers.end(),
                                             [](const Buffer& buffer) { return buffer.kind == Buffer::Kind::kInput; }));
  Require(inputs.size() == count, "kernel '", program.name, "' takes ", count, " inputs, ", inputs.size(), " given");
  Symbols symbols;
  symbols.values.assign(static_cast<std::size_t>(program.num_symbols), -1);
  symbols.origins.resize(symbols.values.size());
  for (std::size_t k = 0; k < count; ++k) CheckOperand(program, program.buffers[k], inputs[k], &symbols);
  return symbols;
}

}  // namespace

GivenExtents::GivenExtents(const Program& program, const umbra_scalar* scalars) {
  for (const DerivedExtent& derived : program.derived) {
    if (derived.op.kind != ExtentOp::kScalar) continue;
    const auto k = static_cast<std::size_t>(derived.a.value);
    all_.push_back({k, program.scalars[k].second, WholeNumber(program.scalars[k].second, scalars[k])});
  }
}

std::vector<std::vector<index_t>> OutputShapes(const Program& program, const std::vector<TensorRef>& inputs,
                                               const std::vector<umbra_scalar>& scalars) {
  Symbols symbols = SymbolsOfInputs(program, inputs);
  ComputeDerived(program, scalars.size() == program.scalars.size() ? &scalars : nullptr, &symbols);
  std::vector<std::vector<index_t>> shapes;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.kind != Buffer::Kind::kOutput) continue;
    shapes.push_back(Resolve(buffer.shape, symbols.values));
    for (index_t extent : shapes.back())
      Require(extent >= 0, "the extent of output '", buffer.name,
              "' does not follow from the inputs; declare it in the kernel");
  }
  return shapes;
}

std::vector<index_t> CheckArguments(const Program& program, const Arguments& arguments) {
  Require(arguments.scalars.size() == program.scalars.size(), "kernel '", program.name, "' takes ",
          program.scalars.size(), " scalars, ", arguments.scalars.size(), " given");
  Symbols symbols = SymbolsOfInputs(program, arguments.inputs);
  ComputeDerived(program, &arguments.scalars, &symbols);
  const std::size_t inputs = arguments.inputs.size();
  const auto outputs =
      static_cast<std::size_t>(std::count_if(program.buffers.begin(), program.buffers.end(), [](const Buffer& buffer) {
        return buffer.kind == Buffer::Kind::kOutput;
      }));
  Require(arguments.outputs.size() == outputs, "kernel '", program.name, "' has ", outputs, " outputs, ",
          arguments.outputs.size(), " given");
  for (std::size_t k = 0; k < outputs; ++k)
    CheckOperand(program, program.buffers[inputs + k], arguments.outputs[k], &symbols);
  ComputeDerived(program, &arguments.scalars, &symbols);
  for (std::size_t k = inputs + outputs; k < program.buffers.size(); ++k)
    CountElements(Resolve(program.buffers[k].shape, symbols.values), SizeOf(program.buffers[k].dtype),
                  "kernel '" + program.name + "', temporary '" + program.buffers[k].name + "'");
  return std::move(symbols.values);
}

}  // namespace umbra::runtime
