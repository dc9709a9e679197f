// Every operator of the table on hard numbers: the same bits eagerly, interpreted, in every dialect that this CPU runs,
// by the system's compiler, and as CUDA in the emulator.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "compiler/driver/target.h"
#include "compiler/graph/graph.h"
#include "tests/support/drawn.h"
#include "tests/support/emulated.h"
#include "umbra/compile.h"
#include "umbra/tensor.h"

namespace umbra {
namespace {

using drawn::Tensor;
using graph::OpInfo;
using graph::OpTypes;

template <typename T>
std::vector<T> Hard() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {0, 1};
  if constexpr (std::is_floating_point_v<T>)
    values = {0,
              Limits::denorm_min(),
              5 * Limits::denorm_min(),
              Limits::min(),
              Limits::epsilon(),
              T(0.1),
              T(0.5),
              1,
              T(1.5),
              2,
              T(2.5),
              3,
              7,
              25,
              T(88.5),
              149,
              1074,
              T(8388609),
              T(1e15),
              Limits::max() / 2,
              Limits::max(),
              Limits::infinity(),
              Limits::quiet_NaN()};
  else if constexpr (!std::is_same_v<T, bool>)
    values = {0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 65, 255, 1000003, Limits::max(), Limits::max() / 2, Limits::min()};
  if constexpr (!std::is_same_v<T, bool>)
    for (std::size_t k = values.size(); k-- > 0;)
      values.push_back(std::is_floating_point_v<T> ? -values[k]
                                                   : static_cast<T>(0ull - static_cast<unsigned long long>(values[k])));
  return values;
}

// All operators that take T, one output each, of operands that are all pairs of hard numbers, with a third beside them.
template <typename T>
class Table {
 public:
  Table() {
    const std::vector<T> hard = Hard<T>();
    const auto count = static_cast<index_t>(hard.size());
    size_ = count * count;
    graph::Builder builder("table");
    std::vector<graph::Value> values;
    for (int k = 0; k < 3; ++k) {
      operands_.push_back(std::make_unique<Tensor>(kType, std::vector<index_t>{size_}, 0, nullptr));
      for (index_t i = 0; i < size_; ++i) {
        const index_t place = k == 0 ? i / count : k == 1 ? i % count : (i / count + 7 * (i % count) + 3) % count;
        static_cast<T*>(operands_.back()->ref.data)[i] = hard[static_cast<std::size_t>(place)];
      }
      values.push_back(builder.Input(std::string(1, "xyz"[k]), kType, {Dimension()}));
    }
    for (const OpInfo& op : graph::Primitives()) {
      if (!graph::Accepts(op.types, kType)) continue;
      std::vector<graph::Value> given(values.begin(), values.begin() + op.arity);
      if (op.types == OpTypes::kAny && kType != DType::kBool) given[0] = values[0] > values[2];
      names_.emplace_back(op.name);
      builder.Output("of_" + names_.back(), graph::Apply(op.name, given));
    }
    graph_ = builder.Build();
  }

  using Results = std::vector<std::unique_ptr<Tensor>>;
  Results Make(runtime::Arguments* arguments) const {
    Results results;
    for (const auto& operand : operands_) arguments->inputs.push_back(operand->ref);
    for (const auto& output : graph_->outputs()) {
      results.push_back(
          std::make_unique<Tensor>(graph_->node(output.node).dtype, std::vector<index_t>{size_}, 0, nullptr));
      arguments->outputs.push_back(results.back()->ref);
    }
    return results;
  }

  Results Run(Engine engine, const std::string& target) const {
    CompileOptions options;
    options.engine = engine;
    options.target = target;
    runtime::Arguments arguments;
    Results results = Make(&arguments);
    Compile(graph_, options)(arguments);
    return results;
  }

  Results Emulate() const {
    emulated::Library library;
    runtime::Arguments arguments;
    Results results = Make(&arguments);
    emulated::Call call(&library, *graph_, arguments);
    library.Build();
    call.Run(false);
    return results;
  }

  // Expressions are evaluated as the program's own compiler compiles them; conditions are numbers there.
  template <typename OP, int arity>
  void ExpectEager(const Results& expected, const std::string& name) const {
    const auto operand = [&](std::size_t k) {
      return umbra::Tensor<cpu, 1, T>(static_cast<T*>(operands_[k]->ref.data), Shape1(size_));
    };
    TensorContainer<cpu, 1, T> y(Shape1(size_));
    if constexpr (arity == 1) y = expr::F<OP>(operand(0));
    else if constexpr (arity == 2) y = expr::F<OP>(operand(0), operand(1));
    else y = expr::F<OP>(operand(0), operand(1), operand(2));
    const auto found = std::find(names_.begin(), names_.end(), name);
    ASSERT_NE(found, names_.end());
    for (index_t i = 0; i < size_; ++i)
      ExpectBits(expected[static_cast<std::size_t>(found - names_.begin())]->At({i}), static_cast<double>(y[i]), name,
                 i, "eagerly");
  }

  void ExpectSame(const Results& expected, const Results& got, const std::string& how) const {
    for (std::size_t k = 0; k < names_.size(); ++k)
      for (index_t i = 0; i < size_; ++i) ExpectBits(expected[k]->At({i}), got[k]->At({i}), names_[k], i, how);
  }

  static constexpr DType kType = DTypeOf<T>::value;

 private:
  void ExpectBits(double want, double have, const std::string& name, index_t i, const std::string& how) const {
    if (std::memcmp(&want, &have, sizeof want) == 0 || (std::isnan(want) && std::isnan(have))) return;
    if (++wrong_[name + how] > 3) return;
    ADD_FAILURE() << name << " of " << operands_[0]->At({i}) << ", " << operands_[1]->At({i}) << ", "
                  << operands_[2]->At({i}) << " of " << Name(kType) << ", " << how << ": " << have << ", expected "
                  << want;
  }

  std::shared_ptr<const graph::Graph> graph_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<Tensor>> operands_;
  index_t size_ = 0;
  mutable std::map<std::string, int> wrong_;
};

template <typename T>
void ExpectOneMeaning() {
  const Table<T> table;
  const auto expected = table.Run(Engine::kInterpreter, "");
  for (const auto target : codegen::kAllTargets)
    if (HostRuns(target))
      table.ExpectSame(expected, table.Run(Engine::kJit, std::string(codegen::Name(target))),
                       std::string(codegen::Name(target)));
  table.ExpectSame(expected, table.Run(Engine::kSystem, ""), "by the system's compiler");
  table.ExpectSame(expected, table.Emulate(), "as CUDA");
  [[maybe_unused]] constexpr bool kFloat = std::is_floating_point_v<T>,
                                  kInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>,
                                  kNumeric = kFloat || kInteger, kBool = false, kAny = false;
#define UMBRA_PRIMITIVE(name, arity, dtypes, ...) \
  if constexpr (dtypes) table.template ExpectEager<op::name, arity>(expected, #name);
#include "umbra/ops.def"
}

TEST(Operators, OfF32) { ExpectOneMeaning<float>(); }
TEST(Operators, OfF64) { ExpectOneMeaning<double>(); }
TEST(Operators, OfI32) { ExpectOneMeaning<int>(); }
TEST(Operators, OfI64) { ExpectOneMeaning<std::int64_t>(); }
TEST(Operators, OfConditions) { ExpectOneMeaning<bool>(); }

}  // namespace
}  // namespace umbra
