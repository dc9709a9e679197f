#include <fmt/format.h>

#include <algorithm>

#include <set>

#include "compiler/plan/plan.h"
#include "umbra/error.h"

namespace umbra::plan {

namespace {

using runtime::Extent;

std::string ExtentText(const Plan& plan, const Extent& extent) {
  return extent.is_static() ? std::to_string(extent.value) : plan.symbols[static_cast<std::size_t>(extent.symbol)];
}

// What a view has of the buffer that it lies in.
std::string PartText(const Plan& plan, const runtime::Buffer& view) {
  return view.part < 0 ? " of "
                       : fmt::format(" from {} along dimension {} of ", ExtentText(plan, view.begin), view.part);
}

// Substitutes {0}, {1}, {2} in the table's text of an operator.
std::string Substitute(std::string_view pattern, const std::vector<std::string>& args) {
  std::string text;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '{') {
      text += args[static_cast<std::size_t>(pattern[i + 1] - '0')];
      i += 2;
    } else {
      text += pattern[i];
    }
  }
  return text;
}

class KernelPrinter {
 public:
  KernelPrinter(const Plan& plan, const Kernel& kernel) : plan_(plan), kernel_(kernel) { CountUses(); }

  std::string Run() {
    const auto& signature = kernel_.signature;
    std::string text = fmt::format("  kernel {}  for {}   (parallel over i0, vector axis i{})\n", signature.name,
                                   Loops(0, kernel_.signature.row_axes), signature.vector_axis);
    for (std::size_t p = 0; p < kernel_.phases.size(); ++p) text += PhaseText(kernel_.phases[p]);
    for (int id : kernel_.final_row_values)
      if (IsNamed(id)) text += fmt::format("    {} = {}\n", NameOf(id), Define(id));
    for (const Store& store : kernel_.final_stores)
      text += fmt::format("    store {} = {}\n", OperandText(store.operand), Ref(store.value));
    text += fmt::format("    cost {:g} an element", signature.cost);
    if (!signature.row_buffers.empty())
      text += fmt::format(", {} row buffer{} of {}", signature.row_buffers.size(),
                          signature.row_buffers.size() > 1 ? "s" : "", ExtentText(plan_, signature.axes.back()));
    return text + "\n";
  }

 private:
  std::string Loops(int begin, int end) const {
    std::string text;
    for (int axis = begin; axis < end; ++axis)
      text += fmt::format("{}i{} in {}", text.empty() ? "" : ", ", axis,
                          ExtentText(plan_, kernel_.signature.axes[static_cast<std::size_t>(axis)]));
    return text;
  }

  const Value& value(int id) const { return kernel_.values[static_cast<std::size_t>(id)]; }

  void CountUses() {
    uses_.assign(kernel_.values.size(), 0);
    for (const Value& v : kernel_.values)
      for (int arg : v.args) ++uses_[static_cast<std::size_t>(arg)];
  }

  bool IsNamed(int id) const {
    const Value& v = value(id);
    if (v.kind != Value::Kind::kMap && v.kind != Value::Kind::kCast) return false;
    return !v.label.empty() || uses_[static_cast<std::size_t>(id)] > 1;
  }

  std::string NameOf(int id) const { return value(id).label.empty() ? fmt::format("v{}", id) : value(id).label; }

  std::string OperandText(int index) const {
    const auto& access = kernel_.signature.operands[static_cast<std::size_t>(index)];
    const auto& buffer = plan_.buffers[static_cast<std::size_t>(access.buffer)];
    std::vector<std::string> subscripts(buffer.shape.size(), "0");
    for (std::size_t axis = 0; axis < access.dim_of_axis.size(); ++axis)
      if (access.dim_of_axis[axis] >= 0)
        subscripts[static_cast<std::size_t>(access.dim_of_axis[axis])] = fmt::format("i{}", axis);
    return fmt::format("{}[{}]", buffer.name, fmt::join(subscripts, ", "));
  }

  // How a reader of the value sees it: its name, or its definition when it has none.
  std::string Ref(int id) const { return IsNamed(id) ? NameOf(id) : Define(id); }

  std::string Define(int id) const {
    const Value& v = value(id);
    switch (v.kind) {
      case Value::Kind::kLoad: return OperandText(v.index);
      case Value::Kind::kScalar:
        return plan_.scalars[static_cast<std::size_t>(kernel_.signature.scalars[static_cast<std::size_t>(v.index)])]
            .first;
      case Value::Kind::kConstant: return fmt::format("{}", v.constant);
      case Value::Kind::kCast: return fmt::format("tcast<{}>({})", Name(v.type), Ref(v.args[0]));
      case Value::Kind::kReduced: return fmt::format("r{}", id);
      case Value::Kind::kScanned: return fmt::format("scan<{}>({})", graph::Name(v.reducer), Ref(v.args[0]));
      case Value::Kind::kStaged: return fmt::format("row{}[i{}]", v.index, kernel_.signature.vector_axis);
      case Value::Kind::kIndex: return fmt::format("i{}", v.index);
      case Value::Kind::kNumber: {
        const auto& number = kernel_.signature.numbers[static_cast<std::size_t>(v.index)];
        return ExtentText(plan_, number.extent);
      }
      case Value::Kind::kGather: {
        const auto& access = kernel_.signature.operands[static_cast<std::size_t>(v.index)];
        const std::size_t count = v.args.size() - (v.guarded ? 1 : 0);
        std::vector<std::string> positions;
        for (std::size_t k = 0; k < count; ++k) positions.push_back(Ref(v.args[k]));
        std::string text = fmt::format("{}[{}]", plan_.buffers[static_cast<std::size_t>(access.buffer)].name,
                                       fmt::join(positions, ", "));
        if (v.guarded) text = fmt::format("({} ? {} : {})", Ref(v.args.back()), text, v.constant);
        return text;
      }
      case Value::Kind::kMap: break;
    }
    std::vector<std::string> args;
    const std::string_view pattern = graph::Info(v.op).text;
    const bool infix = pattern.front() == '{' || pattern.front() == '-' || pattern.front() == '!';
    for (int arg : v.args) {
      std::string text = Ref(arg);
      if (infix && !IsNamed(arg) && value(arg).kind == Value::Kind::kMap) text = "(" + text + ")";
      args.push_back(std::move(text));
    }
    return Substitute(pattern, args);
  }

  std::string PhaseText(const Phase& phase) const {
    std::string text;
    for (int id : phase.row_values)
      if (IsNamed(id)) text += fmt::format("    {} = {}\n", NameOf(id), Define(id));
    if (phase.reductions.empty() && phase.stores.empty() && phase.stages.empty()) return text;
    const std::string guard = phase.guard < 0 ? "" : " where " + Define(phase.guard);
    text += fmt::format("    for {}{}:\n", Loops(kernel_.signature.row_axes, kernel_.rank()), guard);
    std::set<int> named;
    for (const auto* values : {&phase.guard_values, &phase.element_values})
      for (int id : *values)
        if (IsNamed(id) && id != phase.guard && named.insert(id).second)
          text += fmt::format("      {} = {}\n", NameOf(id), Define(id));
    for (const Stage& stage : phase.stages)
      text += fmt::format("      keep row{} = {}\n", stage.row_buffer, Ref(stage.value));
    for (const Reduction& reduction : phase.reductions)
      text += fmt::format("      reduce r{0} = {1}(r{0}, {2})\n", reduction.result, graph::Name(reduction.kind),
                          Ref(reduction.value));
    for (const Store& store : phase.stores)
      text += fmt::format("      {} {} = {}\n", IsStoredLater(kernel_, phase, store) ? "keep" : "store",
                          OperandText(store.operand), Ref(store.value));
    return text;
  }

  const Plan& plan_;
  const Kernel& kernel_;
  std::vector<int> uses_;
};

std::string ProductText(const Plan& plan, const runtime::GemmStep& gemm) {
  const auto name = [&](int id) { return plan.buffers[static_cast<std::size_t>(id)].name; };
  return fmt::format("{}{}{} . {}{}", gemm.alpha == 1 ? "" : fmt::format("{} * ", gemm.alpha), name(gemm.a),
                     gemm.transpose_a ? ".T" : "", name(gemm.b), gemm.transpose_b ? ".T" : "");
}

// What is said before a kernel that runs instead of steps.
std::string InsteadOf(const Plan& plan, const std::vector<int>& replaced) {
  if (replaced.empty()) return "";
  std::string text;
  for (const int step : replaced)
    text += (text.empty() ? "" : ", ") + StepName(plan, plan.steps[static_cast<std::size_t>(step)]);
  return fmt::format("  or, where that is faster, instead of {}:\n", text);
}

std::string StepText(const Plan& plan, const std::variant<Kernel, Gemm>& step) {
  if (const auto* kernel = std::get_if<Kernel>(&step)) {
    return InsteadOf(plan, kernel->signature.replaces) + KernelPrinter(plan, *kernel).Run();
  }
  const runtime::GemmStep& gemm = std::get<Gemm>(step).step;
  std::string text =
      fmt::format("  gemm {} = {}\n", plan.buffers[static_cast<std::size_t>(gemm.c)].name, ProductText(plan, gemm));
  const auto name = [&](int kernel) { return StepName(plan, plan.steps[static_cast<std::size_t>(kernel)]); };
  if (gemm.epilogue.kernel >= 0)
    text += fmt::format("  or, without kernel {}: gemm {}{}\n", name(gemm.epilogue.kernel), EpilogueText(plan, gemm),
                        gemm.epilogue.behind < 0 ? "" : ", then kernel " + name(gemm.epilogue.behind));
  return text;
}

}  // namespace

std::string UnnamedExtent(std::size_t k) { return fmt::format("?{}", k); }

std::string ShapeText(const Plan& plan, const std::vector<Extent>& shape) {
  std::string text;
  for (const Extent& extent : shape) text += (text.empty() ? "" : ", ") + ExtentText(plan, extent);
  return "[" + text + "]";
}

std::string Summarize(const Plan& plan, const Kernel& kernel) {
  std::set<int> stored, loaded;
  for (const auto& access : kernel.signature.operands) (access.store ? stored : loaded).insert(access.buffer);
  auto list = [&](const std::set<int>& buffers) {
    std::string text;
    for (int id : buffers) {
      const auto& buffer = plan.buffers[static_cast<std::size_t>(id)];
      text += fmt::format("{}{}: {}{}", text.empty() ? "" : ", ", buffer.name, Name(buffer.dtype),
                          ShapeText(plan, buffer.shape));
    }
    return text;
  };
  std::string scalars;
  for (int index : kernel.signature.scalars) {
    const auto& [name, dtype] = plan.scalars[static_cast<std::size_t>(index)];
    scalars += fmt::format(", {}: {}", name, Name(dtype));
  }
  return fmt::format("({}{}) -> ({})", list(loaded), scalars, list(stored));
}

std::string EpilogueText(const Plan& plan, const runtime::GemmStep& gemm) {
  const runtime::ProductEpilogue& epilogue = gemm.epilogue;
  const auto name = [&](int id) { return plan.buffers[static_cast<std::size_t>(id)].name; };
  std::string text = ProductText(plan, gemm);
  if (epilogue.scale != 1) text = fmt::format("{} * {}", epilogue.scale, text);
  if (epilogue.scalar >= 0)
    text = fmt::format("{} * {}", plan.scalars[static_cast<std::size_t>(epilogue.scalar)].first, text);
  if (epilogue.bias >= 0) text += " + " + name(epilogue.bias);
  const bool relu = epilogue.kind == cuda::Epilogue::kRelu || epilogue.kind == cuda::Epilogue::kBiasRelu;
  const bool gelu = epilogue.kind == cuda::Epilogue::kGelu || epilogue.kind == cuda::Epilogue::kBiasGelu;
  if (relu || gelu) text = fmt::format("{}({})", relu ? "relu" : "gelu", text);
  return fmt::format("{} = {}", name(epilogue.result), text);
}

std::string StepName(const Plan& plan, const std::variant<Kernel, Gemm>& step) {
  if (const auto* kernel = std::get_if<Kernel>(&step)) return kernel->signature.name;
  return "gemm " + plan.buffers[static_cast<std::size_t>(std::get<Gemm>(step).step.c)].name;
}

bool IsBehind(const Plan& plan, int step) {
  return std::any_of(plan.steps.begin(), plan.steps.end(), [step](const auto& other) {
    const auto* gemm = std::get_if<Gemm>(&other);
    return gemm != nullptr && gemm->step.epilogue.behind == step;
  });
}

int NumSteps(const Plan& plan, const runtime::StepGroup& group) {
  return static_cast<int>(
      std::count_if(plan.steps.begin() + group.begin, plan.steps.begin() + group.end, [](const auto& step) {
        const auto* kernel = std::get_if<Kernel>(&step);
        return kernel == nullptr || kernel->signature.replaces.empty();
      }));
}

std::string Print(const Plan& plan) {
  std::string text = fmt::format("plan {}\n", plan.name);
  for (const auto& buffer : plan.buffers) {
    static constexpr std::string_view kKinds[] = {"in  ", "out ", "temp", "view"};
    text += fmt::format("  {} {}: {}{}{}\n", kKinds[static_cast<int>(buffer.kind)], buffer.name, Name(buffer.dtype),
                        ShapeText(plan, buffer.shape),
                        buffer.place < 0 ? ""
                        : buffer.kind == runtime::Buffer::Kind::kView
                            ? PartText(plan, buffer) + plan.buffers[static_cast<std::size_t>(buffer.place)].name
                            : " in " + plan.buffers[static_cast<std::size_t>(buffer.place)].name);
  }
  for (const auto& [name, dtype] : plan.scalars) text += fmt::format("  scalar {}: {}\n", name, Name(dtype));
  for (const auto& group : plan.groups) {
    if (NumSteps(plan, group) > 1)
      text += group.kind == runtime::StepGroup::Kind::kIndependent
                  ? "  side by side:\n"
                  : fmt::format("  for blocks of the rows in {}:\n", ExtentText(plan, group.rows));
    for (int k = group.begin; k < group.end; ++k) {
      if (IsBehind(plan, k)) text += "  behind that product only:\n";
      text += StepText(plan, plan.steps[static_cast<std::size_t>(k)]);
    }
  }
  return text;
}

}  // namespace umbra::plan
