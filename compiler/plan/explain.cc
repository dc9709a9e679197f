#include "compiler/plan/explain.h"

#include <fmt/format.h>

#include <set>

#include "runtime/panels.h"
#include "runtime/pieces.h"

namespace umbra::plan {

namespace {

using runtime::Extent;
using runtime::StepGroup;

// 1234567 as "1.23 M".
std::string Quantity(double number) {
  static constexpr const char* kUnits[] = {"", " k", " M", " G", " T"};
  int unit = 0;
  for (; number >= 1000 && unit < 4; ++unit) number /= 1000;
  return fmt::format("{:.3g}{}", number, kUnits[unit]);
}

class Explainer {
 public:
  Explainer(const Plan& plan, const std::vector<index_t>& symbols, std::string_view target)
      : plan_(plan),
        symbols_(symbols),
        target_(target) {}

  std::string Run() {
    text_ = fmt::format("plan {}\n", plan_.name);
    for (std::size_t k = 0; k < plan_.symbols.size(); ++k)
      text_ += fmt::format("  {} = {}{}\n", plan_.symbols[k], Value(Extent::Symbol(static_cast<int>(k))),
                           symbols_[k] < 0 ? ", assumed" : "");
    text_ += "values\n";
    for (const ChosenValue& value : plan_.choices) ExplainValue(value);
    text_ += "steps\n";
    for (const StepGroup& group : plan_.groups) ExplainGroup(group);
    return std::move(text_);
  }

 private:
  double Value(const Extent& extent) const {
    if (extent.is_static()) return static_cast<double>(extent.value);
    const index_t known = symbols_[static_cast<std::size_t>(extent.symbol)];
    return known < 0 ? graph::kAssumedExtent : static_cast<double>(known);
  }

  double Count(const std::vector<Extent>& shape) const {
    return Elements(shape, [this](const Extent& extent) { return Value(extent); });
  }

  std::string ShapeText(const std::vector<Extent>& shape) const {
    std::string text;
    for (const Extent& extent : shape) text += fmt::format("{}{}", text.empty() ? "" : ", ", Value(extent));
    return "[" + text + "]";
  }

  double BytesOf(int buffer) const {
    const auto& b = plan_.buffers[static_cast<std::size_t>(buffer)];
    return Count(b.shape) * static_cast<double>(SizeOf(b.dtype));
  }

  void ExplainValue(const ChosenValue& value) {
    const auto& choice = value.choice;
    text_ += fmt::format("  {}: {}{} {}: {}\n", value.name, umbra::Name(value.dtype), ShapeText(value.shape),
                         choice.why == Why::kCheap ? "where it is read" : "in memory", Name(choice.why));
    if (choice.why != Why::kCheap && choice.why != Why::kRepeated) return;
    const Weight weight = Weigh(choice, value.shape, SizeOf(value.dtype), [this](const Extent& e) { return Value(e); });
    std::string readers = fmt::format("{} kernel{}", choice.readers, choice.readers > 1 ? "s" : "");
    if (choice.repeated) readers += fmt::format(" over {}", ShapeText(choice.spread));
    if (weight.operations <= 0) text_ += fmt::format("    computed once, in {}\n", readers);
    else if (choice.why == Why::kRepeated)
      text_ += fmt::format("    saves {} operations in {} and moves {}B\n", Quantity(weight.operations), readers,
                           Bytes(weight.bytes));
    else
      text_ += fmt::format("    memory would save {} operations in {} and move {}B\n", Quantity(weight.operations),
                           readers, Bytes(weight.bytes));
  }

  static std::string Bytes(double bytes) {
    const std::string text = Quantity(bytes);
    return text.find(' ') == std::string::npos ? text + " " : text;
  }

  void ExplainGroup(const StepGroup& group) {
    const char* indent = "  ";
    if (NumSteps(plan_, group) > 1) {
      indent = "    ";
      if (group.kind == StepGroup::Kind::kIndependent) text_ += "  side by side: none of these needs another\n";
      else text_ += fmt::format("  block by block of the {} rows: each hands rows on to the next\n", Value(group.rows));
    }
    for (int k = group.begin; k < group.end; ++k) {
      const auto& step = plan_.steps[static_cast<std::size_t>(k)];
      const std::string name = StepName(plan_, step);
      const auto* kernel = std::get_if<Kernel>(&step);
      if (kernel != nullptr && !kernel->signature.replaces.empty()) {
        const std::size_t product = runtime::ProductBefore(kernel->signature, static_cast<std::size_t>(k));
        std::string others;
        for (const int other : kernel->signature.replaces)
          if (other != static_cast<int>(product) && !Replaces(other))
            others += (others.empty() ? ", instead of it and " : ", ") +
                      StepName(plan_, plan_.steps[static_cast<std::size_t>(other)]);
        text_ += fmt::format("{}  or {}{}: {}\n", indent, name, others,
                             ChoiceOfSum(std::get<Gemm>(plan_.steps[product]).step, *kernel, TurnedBehind(k)));
        continue;
      }
      text_ += fmt::format("{}{}{}: {}\n", indent, name, IsBehind(plan_, k) ? ", behind that product only" : "",
                           kernel != nullptr ? CostOf(*kernel) : CostOf(std::get<Gemm>(step).step));
      if (kernel == nullptr) ExplainEpilogue(std::get<Gemm>(step), indent);
      if (kernel != nullptr && target_.empty() && NumSteps(plan_, group) == 1) ExplainPieces(*kernel, k, indent);
      if (kernel != nullptr) ExplainKept(*kernel, indent);
      if (kernel != nullptr && SharesRows(*kernel))
        text_ += fmt::format(
            "{}  its rows share what they read: several rows and packets of columns at a time, so no copies as BLAS makes\n",
            indent);
      for (const ApartSteps& pair : plan_.apart)
        if (pair.second == name) text_ += fmt::format("{}  apart from {}: {}\n", indent, pair.first, Name(pair.why));
    }
  }

  // What phases keep for later ones, in row buffers or where a result will be.
  void ExplainKept(const Kernel& kernel, const char* indent) {
    std::string kept;
    const auto label = [&](int id) {
      const std::string& name = kernel.values[static_cast<std::size_t>(id)].label;
      return name.empty() ? std::string("a value") : name;
    };
    for (const Phase& phase : kernel.phases) {
      for (const Stage& stage : phase.stages) kept += (kept.empty() ? "" : ", ") + label(stage.value);
      for (const Store& store : phase.stores)
        if (IsStoredLater(kernel, phase, store))
          text_ +=
              fmt::format("{}  keeps {} where {} will be until it is done with the column: dearer to compute again\n",
                          indent, label(store.value),
                          plan_
                              .buffers[static_cast<std::size_t>(
                                  kernel.signature.operands[static_cast<std::size_t>(store.operand)].buffer)]
                              .name);
    }
    if (!kernel.signature.column_buffers.empty())
      text_ += fmt::format(
          "{}  with AVX-512, beyond the caches: phases go through a block of columns that is kept in scratch, so memory is read and written once\n",
          indent);
    if (!kept.empty())
      text_ +=
          fmt::format("{}  keeps {} of a row until it is done with the row: dearer to compute again\n", indent, kept);
  }

  // What cuBLASLt does with a product, or why it does nothing with it.
  void ExplainEpilogue(const Gemm& gemm, const char* indent) {
    const int kernel = gemm.step.epilogue.kernel, behind = gemm.step.epilogue.behind;
    if (kernel >= 0)
      text_ +=
          fmt::format("{}  or, without {}: {}{}, where cuBLASLt has that for the operands of a call\n", indent,
                      StepName(plan_, plan_.steps[static_cast<std::size_t>(kernel)]), EpilogueText(plan_, gemm.step),
                      behind < 0 ? "" : " and then " + StepName(plan_, plan_.steps[static_cast<std::size_t>(behind)]));
    if (!gemm.why_alone.empty())
      text_ += fmt::format("{}  cuBLASLt does not compute what follows it: {}\n", indent, gemm.why_alone);
  }

  // On a GPU: whether step k, alone in its group, goes with the product before it by pieces of rows.
  void ExplainPieces(const Kernel& kernel, int k, const char* indent) {
    int product = k - 1;
    if (IsBehind(plan_, k)) --product;  // the kernel between them does not run then
    const auto* gemm = product < 0 ? nullptr : std::get_if<Gemm>(&plan_.steps[static_cast<std::size_t>(product)]);
    if (gemm == nullptr || plan_.buffers[static_cast<std::size_t>(gemm->step.c)].shape.size() != 2) return;
    const int result = IsBehind(plan_, k) ? gemm->step.epilogue.result : gemm->step.c;
    if (runtime::DimensionsAlongRows(kernel.signature, result))
      text_ += fmt::format(
          "{}  by pieces of rows, each beside the product of the next, where {} does not fit the device's second-level cache\n",
          indent, plan_.buffers[static_cast<std::size_t>(result)].name);
  }

  std::string Totals(const std::set<int>& reads, const std::set<int>& writes, double operations) const {
    double read = 0, written = 0;
    for (const int buffer : reads) read += BytesOf(buffer);
    for (const int buffer : writes) written += BytesOf(buffer);
    return fmt::format("reads {}B, writes {}B, {} operations, {:.3g} a byte", Bytes(read), Bytes(written),
                       Quantity(operations), read + written > 0 ? operations / (read + written) : 0);
  }

  // Is step k one of a kernel that may run instead of others?
  bool Replaces(int k) const {
    const auto* kernel = std::get_if<Kernel>(&plan_.steps[static_cast<std::size_t>(k)]);
    return kernel != nullptr && !kernel->signature.replaces.empty();
  }

  // The turned kernel behind step k, or null.
  const Kernel* TurnedBehind(int k) const {
    const auto* next = static_cast<std::size_t>(k) + 1 < plan_.steps.size()
                           ? std::get_if<Kernel>(&plan_.steps[static_cast<std::size_t>(k) + 1])
                           : nullptr;
    return next != nullptr && next->signature.turned ? next : nullptr;
  }

  const char* WhyOf(const runtime::ProductShape& shape, const runtime::KernelSignature& kernel) const {
    switch (FastestWay(shape, target_)) {
      case runtime::ProductWay::kAsTheyLie:
        if (shape.made_b) return "it runs, as BLAS would have the right factor made in memory first";
        return "it runs, as BLAS would copy its factors for few uses of each element";
      case runtime::ProductWay::kInPanels:
        if (runtime::MayGoByBands(kernel, shape.inner, shape.columns, target_ == "avx512") &&
            shape.rows > runtime::kFewRows)
          return "it runs, some rows at a time going through all columns, unless results pass the caches: then by copies of columns";
        return "it runs, a copy of some columns at a time serving all rows";
      default: return "BLAS runs, which is faster for these extents";
    }
  }

  runtime::ProductShape ShapeOfSum(const runtime::GemmStep& gemm, const Kernel& kernel) const {
    std::vector<index_t> loops;
    for (const Extent& axis : kernel.signature.axes) loops.push_back(static_cast<index_t>(Value(axis)));
    return ShapeOf(gemm, kernel.signature, loops, plan_.buffers[static_cast<std::size_t>(gemm.c)].dtype);
  }

  // What a launch with these extents runs, and why. `turned` is the turned kernel for the same product, if there is
  // another.
  std::string ChoiceOfSum(const runtime::GemmStep& gemm, const Kernel& kernel, const Kernel* turned) const {
    const runtime::ProductShape shape = ShapeOfSum(gemm, kernel);
    const char* why = WhyOf(shape, kernel.signature);
    if (kernel.signature.turned)
      why = RunsInstead(kernel.signature, shape, target_)
                ? "it runs, as columns of the left factor lie side by side, and few elements of the result across"
                : "it is for few columns of a product";
    else if (turned != nullptr && RunsInstead(turned->signature, ShapeOfSum(gemm, *turned), target_))
      why = "the one that is turned runs";
    return fmt::format("{} rows, {} columns, sums of {}: {}", shape.rows, shape.columns, shape.inner, why);
  }

  std::string CostOf(const Kernel& kernel) const {
    std::set<int> reads, writes;
    for (const auto& access : kernel.signature.operands) (access.store ? writes : reads).insert(access.buffer);
    return fmt::format("{} points, {}", ShapeText(kernel.signature.axes),
                       Totals(reads, writes, kernel.signature.cost * Count(kernel.signature.axes)));
  }

  std::string CostOf(const runtime::GemmStep& gemm) const {
    const auto& a = plan_.buffers[static_cast<std::size_t>(gemm.a)];
    const auto& c = plan_.buffers[static_cast<std::size_t>(gemm.c)];
    const double inner = Value(a.shape[a.shape.size() - (gemm.transpose_a ? 2 : 1)]);
    std::string where;
    if (c.place >= 0 && c.kind == runtime::Buffer::Kind::kTemporary)
      where = fmt::format(", in the memory of {}", plan_.buffers[static_cast<std::size_t>(c.place)].name);
    return Totals({gemm.a, gemm.b}, {gemm.c}, 2 * inner * Count(c.shape)) + where;
  }

  const Plan& plan_;
  const std::vector<index_t>& symbols_;
  const std::string_view target_;
  std::string text_;
};

}  // namespace

std::string Explain(const Plan& plan, const std::vector<index_t>& symbols, std::string_view target) {
  return Explainer(plan, symbols, target).Run();
}

}  // namespace umbra::plan
