#include "compiler/plan/narrow_integers.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <vector>

namespace umbra::plan {

namespace {

using graph::Op;
using graph::Reducer;
using Kind = Value::Kind;

constexpr std::int64_t kLeast = -32768, kMost = 32767;

// The numbers that a value may be, both ends among them.
struct Range {
  std::int64_t low = 0, high = 0;
};

Range Of(std::initializer_list<std::int64_t> ends) { return {std::min(ends), std::max(ends)}; }

std::optional<Range> RangeOf(DType type) {
  switch (type) {
    case DType::kInt8: return Range{-128, 127};
    case DType::kUInt8: return Range{0, 255};
    case DType::kInt16: return Range{kLeast, kMost};
    case DType::kBool: return Range{0, 1};
    default: return std::nullopt;
  }
}

// A position, or a part of one, which has no packet: data of i64 are none.
bool IsOfPositions(const Value& v) {
  return v.type == DType::kInt64 && v.kind != Kind::kLoad && v.kind != Kind::kGather && v.kind != Kind::kReduced &&
         v.kind != Kind::kScanned && v.kind != Kind::kStaged;
}

bool IsNarrow(DType type) { return type == DType::kInt8 || type == DType::kUInt8 || type == DType::kInt16; }

// The ranges of a kernel's integers, as far as 16 bits hold them.
class Ranges {
 public:
  explicit Ranges(const Kernel& kernel) : kernel_(kernel) {
    for (const Value& value : kernel.values) ranges_.push_back(Find(value));
    for (const Phase& phase : kernel.phases)
      for (const Reduction& reduction : phase.reductions) FindReduced(reduction);
  }

  bool Fits(int id) const { return of(id).has_value(); }

 private:
  const std::optional<Range>& of(int id) const { return ranges_[static_cast<std::size_t>(id)]; }
  const Value& value(int id) const { return kernel_.values[static_cast<std::size_t>(id)]; }

  // Of as many bits as both have.
  static Range OfBits(const Range& a, const Range& b) {
    std::int64_t bound = 1;
    while (bound <= std::max({a.high, b.high, -1 - a.low, -1 - b.low})) bound *= 2;
    return {a.low >= 0 && b.low >= 0 ? 0 : -bound, bound - 1};
  }

  static std::optional<Range> Fitting(const Range& range) {
    if (range.low < kLeast || range.high > kMost) return std::nullopt;
    return range;
  }

  std::optional<Range> Find(const Value& v) const {
    switch (v.kind) {
      case Kind::kConstant: {
        if (v.type != DType::kInt32 || std::abs(v.constant) > kMost) return RangeOf(v.type);
        const auto number = static_cast<std::int64_t>(v.constant);
        return Range{number, number};
      }
      case Kind::kLoad:
      case Kind::kGather: return RangeOf(v.type);  // what a guard leaves out is a number of the type, too
      case Kind::kCast: {
        const auto& from = of(v.args[0]);
        const auto own = RangeOf(v.type);
        if (!from || (own && (from->low < own->low || from->high > own->high))) return from ? own : std::nullopt;
        return from;
      }
      case Kind::kMap:
        return v.type == DType::kBool ? RangeOf(v.type) : v.type == DType::kInt32 ? FindMap(v) : std::nullopt;
      default: return std::nullopt;
    }
  }

  std::optional<Range> FindMap(const Value& v) const {
    std::vector<Range> args;
    for (const int arg : v.args) {
      if (!of(arg)) return std::nullopt;
      args.push_back(*of(arg));
    }
    const Range a = args[0], b = args.size() > 1 ? args[1] : Range{};
    const bool counts = b.low == b.high && b.low >= 0 && b.low < 16;  // a shift that takes as many bits either way
    switch (v.op) {
      case Op::plus: return Fitting({a.low + b.low, a.high + b.high});
      case Op::minus: return Fitting({a.low - b.high, a.high - b.low});
      case Op::negative: return Fitting({-a.high, -a.low});
      case Op::mul: return Fitting(Of({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high}));
      case Op::div: {
        if (b.low != b.high || b.low == 0) return std::nullopt;
        return Fitting(Of({a.low / b.low, a.high / b.low}));
      }
      case Op::abs: return Fitting({0, std::max(std::abs(a.low), std::abs(a.high))});
      case Op::maximum: return Range{std::max(a.low, b.low), std::max(a.high, b.high)};
      case Op::minimum: return Range{std::min(a.low, b.low), std::min(a.high, b.high)};
      case Op::select: return Range{std::min(b.low, args[2].low), std::max(b.high, args[2].high)};
      case Op::bit_and:
        return a.low >= 0 || b.low >= 0 ? Range{0, a.low < 0   ? b.high
                                                   : b.low < 0 ? a.high
                                                               : std::min(a.high, b.high)}
                                        : OfBits(a, b);
      case Op::bit_or:
      case Op::bit_xor: return OfBits(a, b);
      case Op::shift_left: return counts ? Fitting({a.low << b.low, a.high << b.low}) : std::nullopt;
      case Op::shift_right: return counts ? std::optional(Range{a.low >> b.low, a.high >> b.low}) : std::nullopt;
      default: return std::nullopt;
    }
  }

  // Of no elements the least or largest i32, or i16, is found, which are the same in 8 bits. What is made of the result
  // comes later.
  void FindReduced(const Reduction& reduction) {
    if (reduction.kind != Reducer::maximum && reduction.kind != Reducer::minimum) return;
    for (const Value& v : kernel_.values)
      if (std::count(v.args.begin(), v.args.end(), reduction.result) > 0 &&
          (v.kind != Kind::kCast || SizeOf(v.type) != 1 || v.type == DType::kBool))
        return;
    const auto stores = [&](const Store& store) { return store.value == reduction.result; };
    if (std::any_of(kernel_.final_stores.begin(), kernel_.final_stores.end(), stores)) return;
    for (const Phase& phase : kernel_.phases)
      if (std::any_of(phase.stores.begin(), phase.stores.end(), stores)) return;
    ranges_[static_cast<std::size_t>(reduction.result)] = of(reduction.value);
    for (std::size_t id = 0; id < ranges_.size(); ++id)
      if (const Value& v = kernel_.values[id]; v.kind == Kind::kCast && v.args[0] == reduction.result)
        ranges_[id] = Find(v);
  }

  const Kernel& kernel_;
  std::vector<std::optional<Range>> ranges_;  // by value
};

// Are packets walked along what lies side by side, however many lanes they have? Those that go across rows, or take
// several steps of columns, count on kStepsOfFew.
bool MayHaveAnyLanes(const Kernel& kernel) {
  const runtime::KernelSignature& signature = kernel.signature;
  if (signature.vector_axis == 0 || signature.few_columns || !signature.row_buffers.empty() ||
      !signature.panels.empty())
    return false;
  return std::all_of(signature.operands.begin(), signature.operands.end(), [&](const runtime::Access& access) {
    const int dim = access.dim_of_axis[static_cast<std::size_t>(signature.vector_axis)];
    return dim < 0 || dim == access.LastDim();
  });
}

class Narrowing {
 public:
  Narrowing(const Plan& plan, const Kernel& kernel) : plan_(plan), kernel_(kernel), ranges_(kernel) {}

  bool MayBe() const {
    if (!MayHaveAnyLanes(kernel_)) return false;
    bool computes = false;
    for (std::size_t id = 0; id < kernel_.values.size(); ++id) {
      const Value& v = kernel_.values[id];
      if (IsOfPositions(v)) continue;
      if (!ranges_.Fits(static_cast<int>(id)) || !TakesPositionsAsSuch(v)) return false;
      computes = computes || (v.type == DType::kInt32 && (v.kind == Kind::kMap || v.kind == Kind::kReduced));
    }
    const auto has_wide_store = [&](const Store& store) {
      return Type(store) != DType::kBool && !IsNarrow(Type(store)) && Type(store) != DType::kInt32;
    };
    for (const Phase& phase : kernel_.phases)
      if (std::any_of(phase.stores.begin(), phase.stores.end(), has_wide_store)) return false;
    return computes && std::none_of(kernel_.final_stores.begin(), kernel_.final_stores.end(), has_wide_store);
  }

  Kernel Run() const {
    Kernel result = kernel_;
    for (Value& value : result.values)
      if (value.type == DType::kInt32) value.type = DType::kInt16;
    const auto widen = [&](std::vector<Store>* stores, Scope scope, std::vector<int>* values) {
      for (Store& store : *stores) {
        if (Type(store) != DType::kInt32) continue;
        Value cast;
        cast.kind = Kind::kCast;
        cast.type = DType::kInt32;
        const bool is_uniform = result.values[static_cast<std::size_t>(store.value)].scope == Scope::kUniform;
        cast.scope = is_uniform ? Scope::kUniform : scope;
        cast.args = {store.value};
        store.value = static_cast<int>(result.values.size());
        if (!is_uniform) values->push_back(store.value);
        result.values.push_back(std::move(cast));
      }
    };
    for (Phase& phase : result.phases) widen(&phase.stores, Scope::kElement, &phase.element_values);
    widen(&result.final_stores, Scope::kRow, &result.final_row_values);
    return result;
  }

 private:
  DType Type(const Store& store) const {
    return plan_
        .buffers[static_cast<std::size_t>(kernel_.signature.operands[static_cast<std::size_t>(store.operand)].buffer)]
        .dtype;
  }

  // Does it take i64 for what those are in packets, positions and what compares them?
  bool TakesPositionsAsSuch(const Value& v) const {
    const auto is_position = [this](int arg) {
      return kernel_.values[static_cast<std::size_t>(arg)].type == DType::kInt64;
    };
    const auto positions = std::count_if(v.args.begin(), v.args.end(), is_position);
    if (positions == 0 || v.kind == Kind::kGather) return true;
    return v.kind == Kind::kMap && v.type == DType::kBool && positions == static_cast<std::ptrdiff_t>(v.args.size());
  }

  const Plan& plan_;
  const Kernel& kernel_;
  const Ranges ranges_;
};

}  // namespace

Kernel WithNarrowIntegers(const Plan& plan, const Kernel& kernel) {
  const Narrowing narrowing(plan, kernel);
  return narrowing.MayBe() ? narrowing.Run() : kernel;
}

bool HasNarrowPackets(const Plan& plan, const Kernel& kernel) {
  const auto is_narrow = [&](DType type) { return IsNarrow(type) || type == DType::kBool; };
  const auto is_stored_narrow = [&](const Store& store) {
    return is_narrow(plan.buffers[static_cast<std::size_t>(
                                      kernel.signature.operands[static_cast<std::size_t>(store.operand)].buffer)]
                         .dtype);
  };
  const auto stores_narrow = [&](const Phase& phase) {
    return std::all_of(phase.stores.begin(), phase.stores.end(), is_stored_narrow);
  };
  return MayHaveAnyLanes(kernel) && std::all_of(kernel.phases.begin(), kernel.phases.end(), stores_narrow) &&
         std::all_of(kernel.final_stores.begin(), kernel.final_stores.end(), is_stored_narrow) &&
         std::all_of(kernel.values.begin(), kernel.values.end(), [&](const Value& v) {
           return is_narrow(v.type) || v.kind == Kind::kConstant || IsOfPositions(v);
         });
}

}  // namespace umbra::plan
