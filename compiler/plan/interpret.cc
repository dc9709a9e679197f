#include "compiler/plan/interpret.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "compiler/plan/build.h"
#include "runtime/matrix.h"
#include "runtime/operands.h"
#include "runtime/overlap.h"
#include "runtime/shape.h"
#include "runtime/views.h"
#include "umbra/error.h"
#include "umbra/op.h"
#include "umbra/prelude/random.h"

namespace umbra::plan {

using graph::Op;
using runtime::Arguments;
using runtime::Extent;
using runtime::TensorRef;

namespace {

// Every value is held in a long double: it represents those of all dtypes exactly, and rounding the
// double result of + - * / sqrt to f32 equals rounding the exact result once.
using Number = long double;

// To the nearest number with `digits` binary digits and no exponent below `lowest`, ties to even.
Number RoundToDigits(Number value, int digits, int lowest, Number above) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent;
  std::frexp(value, &exponent);
  const int last = std::max(exponent - digits, lowest);
  const Number rounded = std::ldexp(std::nearbyint(std::ldexp(value, -last)), last);
  return std::fabs(rounded) < above ? rounded : std::copysign(std::numeric_limits<Number>::infinity(), value);
}

Number RoundTo(DType type, Number value) {
  switch (type) {
    case DType::kFloat32: return static_cast<float>(value);
    case DType::kFloat64: return static_cast<double>(value);
    case DType::kFloat16: return RoundToDigits(value, 11, -24, 65520);
    case DType::kBFloat16: return RoundToDigits(value, 8, -133, std::ldexp(Number(1), 128));
    default: return value;
  }
}

// The C++ type of an integer dtype.
template <typename Body>
auto SwitchInt(DType type, const Body& body) {
  switch (type) {
    case DType::kInt8: return body(std::int8_t{});
    case DType::kUInt8: return body(std::uint8_t{});
    case DType::kInt16: return body(std::int16_t{});
    case DType::kInt32: return body(std::int32_t{});
    default: return body(std::int64_t{});
  }
}

// The low bits of an integer as one of `type`.
Number Wrap(DType type, std::uint64_t bits) {
  return SwitchInt(type, [bits](auto tag) { return static_cast<Number>(static_cast<decltype(tag)>(bits)); });
}

Number Saturate(DType type, Number value) {
  if (std::isnan(value)) return 0;
  return SwitchInt(type, [value](auto tag) {
    using Limits = std::numeric_limits<decltype(tag)>;
    return std::trunc(std::clamp(value, static_cast<Number>(Limits::min()), static_cast<Number>(Limits::max()))) +
           0;  // one zero, +0
  });
}

bool IsInteger(DType type) { return !IsFloat(type) && !IsHalf(type) && type != DType::kBool; }

Number Cast(Number value, DType from, DType to) {
  if (to == DType::kBool) return value != 0;
  if (!IsInteger(to)) return RoundTo(to, value);
  return IsFloat(from) ? Saturate(to, value) : Wrap(to, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
}

Number Larger(Number a, Number b) { return (a > b || a != a) ? a : b; }
Number Smaller(Number a, Number b) { return (a < b || a != a) ? a : b; }

Number IntMap(Op op, DType type, Number x, Number y) {
  const auto a = static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
  const auto b = static_cast<std::uint64_t>(static_cast<std::int64_t>(y));
  switch (op) {
    case Op::plus: return Wrap(type, a + b);
    case Op::minus: return Wrap(type, a - b);
    case Op::mul: return Wrap(type, a * b);
    case Op::div:
      return y == 0 ? 0
                    : Wrap(type, y == -1 ? 0 - a
                                         : static_cast<std::uint64_t>(static_cast<std::int64_t>(a) /
                                                                      static_cast<std::int64_t>(b)));
    case Op::negative: return Wrap(type, 0 - a);
    case Op::abs: return x < 0 ? Wrap(type, 0 - a) : x;
    case Op::maximum: return Larger(x, y);
    case Op::minimum: return Smaller(x, y);
    case Op::bit_and: return Wrap(type, a & b);
    case Op::bit_or: return Wrap(type, a | b);
    case Op::bit_xor: return Wrap(type, a ^ b);
    case Op::shift_left: return Wrap(type, a << b % (8 * SizeOf(type)));
    case Op::shift_right:
      return Wrap(type, static_cast<std::uint64_t>(static_cast<std::int64_t>(a) >> b % (8 * SizeOf(type))));
    default: break;
  }
  throw InternalError("the interpreter has no integer form of " + std::string(Info(op).name));
}

// Operators of floating-point numbers; integers and conditions have their own arithmetic.
constexpr bool kFloat = true, kNumeric = true, kInteger = false, kBool = false, kAny = false;
template <typename OP, int arity, bool of_floats, typename T>
T Call(T a, [[maybe_unused]] T b, [[maybe_unused]] T c) {
  if constexpr (!of_floats) throw InternalError("the interpreter does not call " + std::string(OP::kName));
  else if constexpr (arity == 1) return OP::Map(a);
  else if constexpr (arity == 2) return OP::Map(a, b);
  else return OP::Map(a, b, c);
}

// The prelude's functions on one number: what they are worth is measured against the C library by the sweep.
template <typename T>
T Function(Op op, T a, T b, T c) {
  switch (op) {
#define UMBRA_PRIMITIVE(name, arity, dtypes, ...)         \
  case Op::name: {                                        \
    return Call<umbra::op::name, arity, dtypes>(a, b, c); \
  }
#include "umbra/ops.def"
    default: break;
  }
  throw InternalError("the interpreter does not know " + std::string(Info(op).name));
}

Number FloatMap(Op op, DType type, const Number* args) {
  const auto x = static_cast<double>(args[0]), y = static_cast<double>(args[1]), z = static_cast<double>(args[2]);
  // Basic arithmetic of f64 must not pass through long double: it would round twice.
  switch (op) {
    case Op::plus: return x + y;
    case Op::minus: return x - y;
    case Op::mul: return x * y;
    case Op::div: return x / y;
    case Op::negative: return -x;
    case Op::abs: return std::fabs(x);
    case Op::maximum: return Larger(x, y);
    case Op::minimum: return Smaller(x, y);
    case Op::sqrt: return std::sqrt(x);
    case Op::floor: return std::floor(x);
    case Op::ceil: return std::ceil(x);
    case Op::trunc: return std::trunc(x);
    case Op::round: return std::round(x);
    case Op::rint: return std::nearbyint(x);
    default: break;
  }
  if (type == DType::kFloat32) return Function(op, static_cast<float>(x), static_cast<float>(y), static_cast<float>(z));
  return Function(op, x, y, z);
}

std::optional<Number> Draw(Op op, Number counter, Number key) {
  switch (op) {
#define UMBRA_DRAW(name, function, type, ...) \
  case Op::name:                              \
    return simd::function<type>(static_cast<simd::i64>(counter), static_cast<simd::i64>(key));
#include "umbra/ops.def"
    default: return std::nullopt;
  }
}

Number Map(Op op, DType result, DType operand, const Number* args) {
  const Number a = args[0], b = args[1];
  switch (op) {
    case Op::lt: return a < b;
    case Op::le: return a <= b;
    case Op::gt: return a > b;
    case Op::ge: return a >= b;
    case Op::eq: return a == b;
    case Op::ne: return a != b;
    case Op::logical_and: return a != 0 && b != 0;
    case Op::logical_or: return a != 0 || b != 0;
    case Op::logical_not: return a == 0;
    case Op::select: return a != 0 ? b : args[2];
    default: break;
  }
  if (const auto drawn = Draw(op, a, b)) return *drawn;
  if (IsInteger(operand)) return IntMap(op, operand, a, b);
  return RoundTo(result, FloatMap(op, operand, args));
}

Number LoadElement(const TensorRef& tensor, index_t offset) {
  return SwitchDType(tensor.dtype, [&](auto tag) {
    return static_cast<Number>(static_cast<const decltype(tag)*>(tensor.data)[offset]);
  });
}

void StoreElement(const TensorRef& tensor, index_t offset, Number value) {
  SwitchDType(tensor.dtype,
              [&](auto tag) { static_cast<decltype(tag)*>(tensor.data)[offset] = static_cast<decltype(tag)>(value); });
}

class KernelRun {
 public:
  KernelRun(const Kernel& kernel, const std::vector<TensorRef>& buffers, const std::vector<Number>& scalars,
            const std::vector<index_t>& symbols)
      : kernel_(kernel),
        buffers_(buffers),
        scalars_(scalars) {
    for (const Extent& axis : kernel.signature.axes)
      extents_.push_back(axis.is_static() ? axis.value : symbols[static_cast<std::size_t>(axis.symbol)]);
    for (const runtime::Number& number : kernel.signature.numbers) {
      if (number.operand >= 0) numbers_.push_back(0);  // Gathered() has the strides at hand
      else
        numbers_.push_back(number.extent.is_static() ? number.extent.value
                                                     : symbols[static_cast<std::size_t>(number.extent.symbol)]);
    }
    values_.assign(kernel.values.size(), 0);
    point_.assign(extents_.size(), 0);
    rows_.assign(kernel.signature.row_buffers.size(), std::vector<Number>(static_cast<std::size_t>(extents_.back())));
  }

  void Run() {
    for (std::size_t id = 0; id < kernel_.values.size(); ++id)
      if (kernel_.values[id].scope == Scope::kUniform) Evaluate(static_cast<int>(id));
    Loop(0, static_cast<std::size_t>(kernel_.signature.row_axes), [this] { Row(); });
  }

 private:
  template <typename Body>
  void Loop(std::size_t axis, std::size_t end, const Body& body) {
    if (axis == end) return body();
    for (point_[axis] = 0; point_[axis] < extents_[axis]; ++point_[axis]) Loop(axis + 1, end, body);
  }

  void Row() {
    for (const Phase& phase : kernel_.phases) {
      for (int id : phase.row_values) Evaluate(id);
      std::vector<Number> sums;
      for (const Reduction& reduction : phase.reductions)
        sums.push_back(Start(reduction.kind, TypeOf(reduction.result)));
      for (const int id : ScansOf(kernel_, phase))
        scans_[id] = Start(kernel_.values[static_cast<std::size_t>(id)].reducer, TypeOf(id));
      Loop(static_cast<std::size_t>(kernel_.signature.row_axes), extents_.size(), [&] {
        for (int id : phase.guard_values) Evaluate(id);
        if (phase.guard >= 0 && Of(phase.guard) == 0) return;
        for (int id : phase.element_values) Evaluate(id);
        for (std::size_t r = 0; r < sums.size(); ++r)
          sums[r] = Accumulate(phase.reductions[r].kind, phase.reductions[r].value, sums[r]);
        for (const Stage& stage : phase.stages)
          rows_[static_cast<std::size_t>(stage.row_buffer)][static_cast<std::size_t>(point_.back())] = Of(stage.value);
        for (const Store& store : phase.stores) Write(store);
      });
      for (std::size_t r = 0; r < sums.size(); ++r) {
        const int result = phase.reductions[r].result;
        values_[static_cast<std::size_t>(result)] =
            RoundTo(kernel_.values[static_cast<std::size_t>(result)].type, sums[r]);
      }
    }
    for (int id : kernel_.final_row_values) Evaluate(id);
    for (const Store& store : kernel_.final_stores) Write(store);
  }

  DType TypeOf(int id) const { return kernel_.values[static_cast<std::size_t>(id)].type; }

  static Number Start(graph::Reducer reducer, DType type) {
    constexpr Number kInfinity = std::numeric_limits<Number>::infinity();
    const bool is_int = IsInteger(type);
    switch (reducer) {
      case graph::Reducer::sum: return 0;
      case graph::Reducer::product: return 1;
      case graph::Reducer::maximum: return is_int ? Saturate(type, -kInfinity) : -kInfinity;
      case graph::Reducer::minimum: return is_int ? Saturate(type, kInfinity) : kInfinity;
    }
    return 0;
  }

  Number Accumulate(graph::Reducer reducer, int id, Number so_far) const {
    const Number next = Of(id);
    const DType type = TypeOf(id);
    const bool is_int = IsInteger(type);
    switch (reducer) {
      case graph::Reducer::sum: return is_int ? IntMap(Op::plus, type, so_far, next) : so_far + next;
      case graph::Reducer::product: return is_int ? IntMap(Op::mul, type, so_far, next) : so_far * next;
      case graph::Reducer::maximum: return Larger(next, so_far);
      case graph::Reducer::minimum: return Smaller(next, so_far);
    }
    return so_far;
  }

  Number Of(int id) const { return values_[static_cast<std::size_t>(id)]; }

  void Evaluate(int id) {
    const Value& value = kernel_.values[static_cast<std::size_t>(id)];
    Number& result = values_[static_cast<std::size_t>(id)];
    switch (value.kind) {
      case Value::Kind::kLoad: {
        const auto& access = kernel_.signature.operands[static_cast<std::size_t>(value.index)];
        result = LoadElement(buffers_[static_cast<std::size_t>(access.buffer)], Offset(access));
        return;
      }
      case Value::Kind::kScalar:
        result = scalars_[static_cast<std::size_t>(kernel_.signature.scalars[static_cast<std::size_t>(value.index)])];
        return;
      case Value::Kind::kConstant: result = RoundTo(value.type, value.constant); return;
      case Value::Kind::kReduced: return;
      case Value::Kind::kIndex: result = static_cast<Number>(point_[static_cast<std::size_t>(value.index)]); return;
      case Value::Kind::kNumber: result = static_cast<Number>(numbers_[static_cast<std::size_t>(value.index)]); return;
      case Value::Kind::kGather: result = Gathered(value); return;
      case Value::Kind::kStaged:
        result = rows_[static_cast<std::size_t>(value.index)][static_cast<std::size_t>(point_.back())];
        return;
      case Value::Kind::kScanned:
        scans_[id] = Accumulate(value.reducer, value.args[0], scans_[id]);
        result = RoundTo(value.type, scans_[id]);
        return;
      case Value::Kind::kCast:
        result = Cast(Of(value.args[0]), kernel_.values[static_cast<std::size_t>(value.args[0])].type, value.type);
        return;
      case Value::Kind::kMap: break;
    }
    Number args[3] = {0, 0, 0};
    for (std::size_t k = 0; k < value.args.size(); ++k) args[k] = Of(value.args[k]);
    result = Map(value.op, value.type, kernel_.values[static_cast<std::size_t>(value.args[0])].type, args);
  }

  Number Gathered(const Value& value) const {
    if (value.guarded && Of(value.args.back()) == 0) return RoundTo(value.type, value.constant);
    const auto& access = kernel_.signature.operands[static_cast<std::size_t>(value.index)];
    const TensorRef& tensor = buffers_[static_cast<std::size_t>(access.buffer)];
    index_t offset = 0;
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      const auto position = static_cast<index_t>(Of(value.args[d]));
      Ensure(position >= 0 && position < tensor.shape[d], "an index map reads position ", position, " of dimension ", d,
             ", which has extent ", tensor.shape[d]);
      offset += position * tensor.stride[d];
    }
    return LoadElement(tensor, offset);
  }

  index_t Offset(const runtime::Access& access) const {
    const TensorRef& tensor = buffers_[static_cast<std::size_t>(access.buffer)];
    index_t offset = 0;
    for (std::size_t axis = 0; axis < access.dim_of_axis.size(); ++axis)
      if (access.dim_of_axis[axis] >= 0)
        offset += point_[axis] * tensor.stride[static_cast<std::size_t>(access.dim_of_axis[axis])];
    return offset;
  }

  void Write(const Store& store) {
    const auto& access = kernel_.signature.operands[static_cast<std::size_t>(store.operand)];
    StoreElement(buffers_[static_cast<std::size_t>(access.buffer)], Offset(access), Of(store.value));
  }

  const Kernel& kernel_;
  const std::vector<TensorRef>& buffers_;
  const std::vector<Number>& scalars_;
  std::vector<index_t> extents_, point_, numbers_;
  std::vector<Number> values_;
  std::vector<std::vector<Number>> rows_;
  std::map<int, Number> scans_;  // what rows have come to, by value
};

void RunGemm(const runtime::GemmStep& step, const TensorRef& ta, const TensorRef& tb, const TensorRef& tc) {
  if (tc.shape.size() == 3) {
    for (index_t k = 0; k < tc.shape[0]; ++k) RunGemm(step, ta.At(k), tb.At(k), tc.At(k));
    return;
  }
  const runtime::MatrixShape a = runtime::AsMatrix(ta, step.transpose_a), b = runtime::AsMatrix(tb, step.transpose_b),
                             c = runtime::AsMatrix(tc, false);
  for (index_t i = 0; i < a.rows; ++i) {
    for (index_t j = 0; j < b.columns; ++j) {
      long double sum = 0;
      for (index_t k = 0; k < a.columns; ++k)
        sum += static_cast<long double>(LoadElement(ta, i * a.row_stride + k * a.column_stride)) *
               LoadElement(tb, k * b.row_stride + j * b.column_stride);
      StoreElement(tc, i * c.row_stride + j * c.column_stride,
                   RoundTo(tc.dtype, static_cast<long double>(step.alpha) * sum));
    }
  }
}

}  // namespace

void Interpret(const Plan& plan, const Arguments& arguments) {
  const runtime::Program program = ToProgram(plan);
  const std::vector<index_t> symbols = runtime::CheckArguments(program, arguments);
  std::vector<TensorRef> buffers = runtime::BuffersOf(arguments);
  const runtime::OperandPairs shared = runtime::CheckOverlaps(program, buffers);

  std::vector<void*> given;
  for (const TensorRef& operand : buffers) given.push_back(operand.data);
  const runtime::DenseCopies copies(plan.buffers, shared, &buffers);
  std::vector<double> memory(copies.bytes() / sizeof(double));
  std::vector<void*> data = given;
  copies.Take(buffers, reinterpret_cast<char*>(memory.data()), given.data(), data.data());
  for (std::size_t k = 0; k < buffers.size(); ++k) buffers[k].data = data[k];
  std::vector<std::vector<double>> temporaries;
  for (std::size_t k = buffers.size(); k < plan.buffers.size(); ++k) {
    std::vector<index_t> shape;
    index_t size = 1;
    for (const Extent& extent : plan.buffers[k].shape) {
      shape.push_back(extent.is_static() ? extent.value : symbols[static_cast<std::size_t>(extent.symbol)]);
      size *= shape.back();
    }
    const runtime::Buffer& buffer = plan.buffers[k];
    const bool is_view = buffer.kind == runtime::Buffer::Kind::kView;
    temporaries.emplace_back(is_view ? 0 : static_cast<std::size_t>(size));
    buffers.push_back(TensorRef::Dense(temporaries.back().data(), buffer.dtype, std::move(shape)));
    if (is_view) runtime::PlaceView(buffer, buffers[static_cast<std::size_t>(buffer.place)], symbols, &buffers.back());
  }
  std::vector<Number> scalars;
  for (std::size_t k = 0; k < plan.scalars.size(); ++k) {
    const umbra_scalar& scalar = arguments.scalars[k];
    const DType type = plan.scalars[k].second;
    scalars.push_back(type == DType::kFloat32   ? static_cast<Number>(scalar.f32)
                      : type == DType::kFloat64 ? static_cast<Number>(scalar.f64)
                      : type == DType::kInt64   ? static_cast<Number>(scalar.i64)
                                                : static_cast<Number>(scalar.i32));
  }
  for (const auto& step : plan.steps) {
    if (const auto* kernel = std::get_if<Kernel>(&step)) {
      if (!kernel->signature.replaces.empty()) continue;  // the step before has computed it
      KernelRun(*kernel, buffers, scalars, symbols).Run();
      continue;
    }
    const runtime::GemmStep& gemm = std::get<Gemm>(step).step;
    const auto tensor = [&](int buffer) -> const TensorRef& { return buffers[static_cast<std::size_t>(buffer)]; };
    RunGemm(gemm, tensor(gemm.a), tensor(gemm.b), tensor(gemm.c));
  }
  copies.Return(buffers, reinterpret_cast<char*>(memory.data()), given.data());
}

}  // namespace umbra::plan
