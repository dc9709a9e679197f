#include "compiler/plan/positions.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

namespace umbra::plan {

namespace {

using graph::Op;
using runtime::Position;
using Kind = Position::Kind;

// The positions of a kernel, by value.
class Positions {
 public:
  explicit Positions(const Kernel& kernel) : kernel_(kernel), place_(kernel.values.size(), -1) {
    for (std::size_t id = 0; id < kernel.values.size(); ++id) Find(static_cast<int>(id));
  }

  const std::vector<Position>& list() const { return list_; }
  bool Has(int id) const { return place_[static_cast<std::size_t>(id)] >= 0; }

  // Is the value data between two positions, computed of i64 numbers?
  bool IsClamp(int id) const {
    const Value& v = value(id);
    return Has(id) && (IsMap(v, Op::minimum) || IsMap(v, Op::maximum)) && Has(v.args[0]) != Has(v.args[1]);
  }

 private:
  const Value& value(int id) const { return kernel_.values[static_cast<std::size_t>(id)]; }
  static bool IsMap(const Value& v, Op op) { return v.kind == Value::Kind::kMap && v.op == op; }

  void Find(int id) {
    const Value& v = value(id);
    if (v.type != DType::kInt64) return;
    if (v.kind == Value::Kind::kIndex) return Add(id, Kind::kAxis, v.index, 0);
    if (v.kind == Value::Kind::kNumber) return Add(id, Kind::kNumber, v.index, 0);
    if (v.kind == Value::Kind::kConstant && std::abs(v.constant) < 0x1p31)
      return Add(id, Kind::kConstant, static_cast<index_t>(v.constant), 0);
    if (v.kind != Value::Kind::kMap) return;
    if (v.op == Op::select) return AddOf(id, Kind::kEither, v.args[1], v.args[2]);
    if (v.op == Op::negative) return AddNegative(id);
    if (v.args.size() != 2) return;
    const int a = v.args[0], b = v.args[1];
    if (v.op == Op::plus) AddOf(id, Kind::kPlus, a, b);
    if (v.op == Op::minus) AddDifference(id, a, b);
    if (v.op == Op::mul) AddOf(id, Kind::kTimes, a, b);
    if (v.op == Op::div) AddOf(id, Kind::kOver, a, b);
    if (v.op == Op::minimum || v.op == Op::maximum) AddExtreme(id, a, b);
  }

  void Add(int id, Kind kind, index_t a, index_t b) {
    place_[static_cast<std::size_t>(id)] = static_cast<index_t>(list_.size());
    list_.push_back({kind, a, b});
  }
  void AddOf(int id, Kind kind, int a, int b) {
    if (Has(a) && Has(b)) Add(id, kind, place_[static_cast<std::size_t>(a)], place_[static_cast<std::size_t>(b)]);
  }
  void AddNegative(int id) {
    const int a = value(id).args[0];
    if (!Has(a)) return;
    list_.push_back({Kind::kConstant, 0, 0});
    Add(id, Kind::kMinus, static_cast<index_t>(list_.size()) - 1, place_[static_cast<std::size_t>(a)]);
  }
  // a - a / n * n is what the quotient leaves, which is less than ranges tell.
  void AddDifference(int id, int a, int b) {
    const Value& multiple = value(b);
    if (IsMap(multiple, Op::mul))
      for (const int k : {0, 1}) {
        const Value& quotient = value(multiple.args[static_cast<std::size_t>(k)]);
        const int by = multiple.args[static_cast<std::size_t>(1 - k)];
        if (IsMap(quotient, Op::div) && quotient.args[0] == a && quotient.args[1] == by)
          return AddOf(id, Kind::kRest, a, by);
      }
    AddOf(id, Kind::kMinus, a, b);
  }
  void AddExtreme(int id, int a, int b) {
    const Op op = value(id).op, other = op == Op::minimum ? Op::maximum : Op::minimum;
    if (Has(a) == Has(b)) return AddOf(id, op == Op::minimum ? Kind::kMinimum : Kind::kMaximum, a, b);
    if (!kernel_.signature.positional) return;  // it is data
    const Value& inner = value(Has(a) ? b : a);
    if (!IsMap(inner, other)) return;
    for (const int arg : inner.args)
      if (Has(arg)) return AddOf(id, Kind::kEither, Has(a) ? a : b, arg);
  }

  const Kernel& kernel_;
  std::vector<Position> list_;
  std::vector<index_t> place_;  // in the list; -1: it is none
};

// Which values become i32, and what takes them so.
class Choice {
 public:
  Choice(const Kernel& kernel, Narrowed narrowed)
      : kernel_(kernel),
        positions_(kernel),
        all_(narrowed == Narrowed::kAll),
        moves_(MovesAlong(kernel, kernel.signature.vector_axis)) {
    FindAddresses();
    const auto count = static_cast<int>(kernel.values.size());
    for (int id = 0; id < count; ++id) {
      of_data_.push_back(IsOfData(value(id)));
      narrow_.push_back(Has(id) && !positions_.IsClamp(id) && (all_ || IsMadeInPackets(id)));
    }
    if (all_) return;
    // The least or largest of such positions is one, too, unless a guard may leave out all of them.
    for (const Phase& phase : kernel.phases)
      for (const Reduction& reduction : phase.reductions)
        if (phase.guard < 0 && IsNarrow(reduction.value) &&
            (reduction.kind == graph::Reducer::minimum || reduction.kind == graph::Reducer::maximum))
          narrow_[static_cast<std::size_t>(reduction.result)] = true;
  }

  // Is it computed as i32? Others are converted where they are taken so.
  bool IsNarrow(int id) const { return narrow_[static_cast<std::size_t>(id)]; }

  // Does the value take its operand as i32?
  bool TakesNarrow(int id, int arg) const {
    const Value& v = value(id);
    if (IsWidened(arg)) return v.kind == Value::Kind::kMap && v.type == DType::kBool && ComparesNarrow(v);
    if (!Has(arg)) return false;
    if (IsNarrow(id)) return true;
    if (all_ && v.kind == Value::Kind::kGather) return true;
    if (Has(id) || !FitNarrow(v)) return false;
    if (v.kind == Value::Kind::kCast)
      return all_ ||
             (moves_[static_cast<std::size_t>(arg)] && (v.type == DType::kFloat32 || v.type == DType::kFloat64));
    if (v.kind != Value::Kind::kMap || v.type != DType::kBool) return false;
    return ComparesNarrow(v);
  }

  // Is the value i32 that was made i64? Beside positions it is compared as it was.
  bool IsWidened(int id) const {
    const Value& v = value(id);
    return v.kind == Value::Kind::kCast && v.type == DType::kInt64 && value(v.args[0]).type == DType::kInt32 &&
           !Has(id);
  }

 private:
  const Value& value(int id) const { return kernel_.values[static_cast<std::size_t>(id)]; }
  bool Has(int id) const { return positions_.Has(id); }

  // Do all operands have a form of 32 bits, or need none?
  bool FitNarrow(const Value& v) const {
    return std::all_of(v.args.begin(), v.args.end(),
                       [this](int k) { return Has(k) || IsWidened(k) || value(k).type != DType::kInt64; });
  }
  bool ComparesNarrow(const Value& v) const {
    return FitNarrow(v) && (all_ || std::any_of(v.args.begin(), v.args.end(), [this](int k) {
                              return IsNarrow(k) || (IsWidened(k) && moves_[static_cast<std::size_t>(k)]);
                            }));
  }

  // What gathers read at: it is computed lane by lane, whatever its type.
  void FindAddresses() {
    addresses_.assign(kernel_.values.size(), false);
    for (std::size_t id = kernel_.values.size(); id-- > 0;)
      if (addresses_[id] || kernel_.values[id].kind == Value::Kind::kGather)
        for (const int arg : kernel_.values[id].args) addresses_[static_cast<std::size_t>(arg)] = true;
  }

  bool IsOfData(const Value& v) const {
    using enum Value::Kind;
    if (v.kind == kLoad || v.kind == kGather || v.kind == kStaged || v.kind == kReduced || v.kind == kScanned)
      return true;
    return std::any_of(v.args.begin(), v.args.end(),
                       [this](int arg) { return of_data_[static_cast<std::size_t>(arg)]; });
  }

  // Does it differ from lane to lane, and is it more than an address?
  bool Differs(int id) const {
    return moves_[static_cast<std::size_t>(id)] && !addresses_[static_cast<std::size_t>(id)];
  }

  // Do data choose it, or what it is made of?
  bool IsMadeInPackets(int id) const {
    const Value& v = value(id);
    if (v.kind != Value::Kind::kMap || !Differs(id)) return false;
    const bool chosen = v.op == Op::select && of_data_[static_cast<std::size_t>(v.args[0])];
    return chosen || std::any_of(v.args.begin(), v.args.end(), [this](int arg) { return IsNarrow(arg); });
  }

  const Kernel& kernel_;
  const Positions positions_;
  const bool all_;
  std::vector<bool> narrow_, addresses_, of_data_;  // by value
  const std::vector<bool> moves_;
};

// A kernel anew: each value is there as it was, or as a position of 32 bits, or as both.
class Narrowing {
 public:
  Narrowing(const Kernel& kernel, Narrowed narrowed)
      : kernel_(kernel),
        choice_(kernel, narrowed),
        result_(kernel),
        wide_(kernel.values.size(), -1),
        narrow_(kernel.values.size(), -1) {}

  Kernel Run() {
    result_.values.clear();
    for (std::size_t id = 0; id < kernel_.values.size(); ++id) Copy(static_cast<int>(id));
    for (Phase& phase : result_.phases) {
      if (phase.guard >= 0) phase.guard = Wide(phase.guard);
      for (auto& reduction : phase.reductions) {
        const bool narrow = choice_.IsNarrow(reduction.result);
        reduction.value = narrow ? Narrow(reduction.value) : Wide(reduction.value);
        reduction.result = narrow ? Narrow(reduction.result) : Wide(reduction.result);
      }
      for (auto& stage : phase.stages) stage.value = Wide(stage.value);
      for (auto& store : phase.stores) store.value = Wide(store.value);
    }
    for (auto& store : result_.final_stores) store.value = Wide(store.value);
    for (Phase& phase : result_.phases) {
      phase.row_values = Both(phase.row_values);
      phase.guard_values = Both(phase.guard_values);
      phase.element_values = Both(phase.element_values);
    }
    result_.final_row_values = Both(result_.final_row_values);
    for (std::size_t p = 0; p < kernel_.phases.size(); ++p)
      for (const Reduction& reduction : kernel_.phases[p].reductions) {
        const int wide = choice_.IsNarrow(reduction.result) ? wide_[static_cast<std::size_t>(reduction.result)] : -1;
        auto& after = p + 1 < result_.phases.size() ? result_.phases[p + 1].row_values : result_.final_row_values;
        if (wide >= 0) after.insert(after.begin(), wide);
      }
    return std::move(result_);
  }

  std::vector<int> became() const {
    std::vector<int> became = narrow_;
    for (std::size_t id = 0; id < became.size(); ++id)
      if (became[id] < 0) became[id] = wide_[id];
    return became;
  }

 private:
  const Value& value(int id) const { return kernel_.values[static_cast<std::size_t>(id)]; }
  int& At(std::vector<int>* made, int id) { return (*made)[static_cast<std::size_t>(id)]; }

  int New(Value v) {
    result_.values.push_back(std::move(v));
    return static_cast<int>(result_.values.size()) - 1;
  }
  int Cast(int id, int from, DType type) {
    Value cast;
    cast.kind = Value::Kind::kCast;
    cast.type = type;
    cast.scope = value(id).scope;
    cast.args = {from};
    return New(std::move(cast));
  }
  int Wide(int id) {
    int& made = At(&wide_, id);
    if (made < 0) made = Cast(id, At(&narrow_, id), DType::kInt64);
    return made;
  }
  int Narrow(int id) {
    int& made = At(&narrow_, id);
    if (made >= 0) return made;
    if (choice_.IsWidened(id)) return made = At(&wide_, value(id).args[0]);
    Value constant = value(id);
    if (constant.kind != Value::Kind::kConstant) return made = Cast(id, At(&wide_, id), DType::kInt32);
    constant.type = DType::kInt32;
    return made = New(std::move(constant));
  }

  void Copy(int id) {
    Value v = value(id);
    for (int& arg : v.args) arg = choice_.TakesNarrow(id, arg) ? Narrow(arg) : Wide(arg);
    const bool is_narrow = choice_.IsNarrow(id) && v.kind != Value::Kind::kConstant;
    if (is_narrow) v.type = DType::kInt32;
    At(is_narrow ? &narrow_ : &wide_, id) = New(std::move(v));
  }

  // What a list of values has become, in the order in which it was made.
  std::vector<int> Both(const std::vector<int>& ids) const {
    std::vector<int> both;
    for (const int id : ids) {
      const auto [first, second] =
          std::minmax(wide_[static_cast<std::size_t>(id)], narrow_[static_cast<std::size_t>(id)]);
      if (first >= 0) both.push_back(first);
      both.push_back(second);
    }
    return both;
  }

  const Kernel& kernel_;
  const Choice choice_;
  Kernel result_;
  std::vector<int> wide_, narrow_;  // by value of the kernel as it was; -1: there is none
};

std::vector<Position> PositionsOf(const Kernel& kernel) {
  const bool has = std::any_of(kernel.values.begin(), kernel.values.end(), [](const Value& v) {
    return v.kind == Value::Kind::kIndex || v.kind == Value::Kind::kNumber || v.kind == Value::Kind::kGather;
  });
  return has ? Positions(kernel).list() : std::vector<Position>();
}

}  // namespace

bool IsOfPositions(const Kernel& kernel, int id) {
  std::set<int> seen;
  std::vector<int> open{id};
  while (!open.empty()) {
    const Value& v = kernel.values[static_cast<std::size_t>(open.back())];
    const bool fresh = seen.insert(open.back()).second;
    open.pop_back();
    if (!fresh || v.kind == Value::Kind::kConstant || v.kind == Value::Kind::kIndex || v.kind == Value::Kind::kNumber)
      continue;
    if (v.kind != Value::Kind::kMap) return false;
    open.insert(open.end(), v.args.begin(), v.args.end());
  }
  return true;
}

std::optional<std::int64_t> StepAlong(const Kernel& kernel, int id, int axis) {
  constexpr int kDeepest = 8;
  const std::vector<bool> moves = MovesAlong(kernel, axis);
  const std::function<std::optional<std::int64_t>(int, int)> step = [&](int of,
                                                                        int depth) -> std::optional<std::int64_t> {
    const Value& v = kernel.values[static_cast<std::size_t>(of)];
    if (!moves[static_cast<std::size_t>(of)]) return 0;
    if (v.kind == Value::Kind::kIndex) return 1;
    if (v.kind != Value::Kind::kMap || depth == 0 || v.args.size() != 2) return std::nullopt;
    const auto a = step(v.args[0], depth - 1), b = step(v.args[1], depth - 1);
    std::int64_t steps = 0;
    if (v.op == Op::mul) {
      for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
        const Value& by = kernel.values[static_cast<std::size_t>(v.args[k])];
        const auto& other = k == 0 ? b : a;
        if (other && by.kind == Value::Kind::kConstant && std::abs(by.constant) < 0x1p31 &&
            !__builtin_mul_overflow(*other, static_cast<std::int64_t>(by.constant), &steps))
          return steps;
      }
      return std::nullopt;
    }
    if (!a || !b || (v.op != Op::plus && v.op != Op::minus)) return std::nullopt;
    const bool wraps =
        v.op == Op::plus ? __builtin_add_overflow(*a, *b, &steps) : __builtin_sub_overflow(*a, *b, &steps);
    return wraps ? std::nullopt : std::optional(steps);
  };
  return step(id, kDeepest);
}

void FindPositions(Plan* plan) {
  for (auto& step : plan->steps)
    if (auto* kernel = std::get_if<Kernel>(&step)) kernel->signature.positions = PositionsOf(*kernel);
}

Kernel WithNarrowPositions(const Kernel& kernel, Narrowed narrowed, std::vector<int>* became) {
  if (kernel.signature.positions.empty()) return kernel;
  Narrowing narrowing(kernel, narrowed);
  Kernel result = narrowing.Run();
  if (became != nullptr) *became = narrowing.became();
  return result;
}

}  // namespace umbra::plan
