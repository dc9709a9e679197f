// The source of a unit's kernels for GPUs: images as tables of numbers, which need no compiler for GPUs.
#include <fmt/format.h>

#include <cstring>
#include <map>

#include "compiler/aot/interface.h"
#include "compiler/codegen/cuda/generate.h"
#include "compiler/codegen/writer.h"
#include "compiler/driver/lower.h"
#include "compiler/driver/nvrtc.h"
#include "compiler/plan/without_names.h"
#include "runtime/side_by_side.h"

namespace umbra::aot {

namespace {

// Bytes as 64-bit numbers, the last filled up with zeros.
std::string Words(const std::string& bytes) {
  constexpr std::size_t kInLine = 6;
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    text += fmt::format("{}{:#x},", at / sizeof word % kInLine == 0 ? "\n    " : " ", word);
  }
  return text;
}

// A variant of a step, and which text it has.
struct Code {
  int step, variant;
  std::string function;
  std::size_t text;
};

// Texts to compile, each once.
class Texts {
 public:
  std::size_t Add(std::string text, const std::string& name) {
    const auto [known, fresh] = numbers_.emplace(std::move(text), names_.size());
    if (fresh) names_.push_back(name);
    return known->second;
  }

  // The images of each, packed: machine code for every architecture, and PTX of the last for later ones.
  std::vector<std::string> Compile(const std::vector<cuda::Architecture>& architectures) const {
    std::vector<const std::string*> texts(names_.size());
    for (const auto& [text, number] : numbers_) texts[number] = &text;
    const std::vector<CudaTarget> targets = TargetsForAll(architectures);
    std::vector<cuda::Image> all(texts.size() * targets.size());
    runtime::SideBySide(all.size(), [&](std::size_t k) {
      const std::size_t text = k / targets.size();
      all[k] = CompileCuda(*texts[text], names_[text], targets[k % targets.size()]);
    });
    std::vector<std::string> images;
    for (auto image = all.begin(); image != all.end(); image += static_cast<std::ptrdiff_t>(targets.size()))
      images.push_back(cuda::PackImages({image, image + static_cast<std::ptrdiff_t>(targets.size())}));
    return images;
  }

 private:
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::string> names_;
};

}  // namespace

// Texts of a kernel that launches may ask for, by variant.
using Sources = std::vector<std::pair<runtime::CudaVariant, codegen::CudaSource>>;

Sources SourcesOf(const plan::Plan& plan, const plan::Kernel& kernel, const runtime::CudaSchedule& schedule,
                  bool several) {
  Sources sources;
  for (runtime::CudaVariant variant : codegen::CudaVariants(kernel.signature, schedule)) {
    if (several && variant.finishes()) continue;
    variant.several = several;
    sources.emplace_back(variant, codegen::GenerateCuda(plan, kernel, variant));
  }
  return sources;
}

// What all texts of a kernel follow from.
std::string Identity(const plan::Plan& plan, const plan::Kernel& kernel, const runtime::CudaSchedule& schedule) {
  const plan::Unnamed unnamed = plan::WithoutNames(plan, kernel);
  std::string identity;
  for (const auto& [variant, source] : SourcesOf(unnamed.plan, unnamed.kernel, schedule, false))
    identity += source.kernel;
  return identity;
}

// Kernels of a plan that differ in names and operands only: the texts of the first are those of all.
struct Equals {
  const plan::Kernel* first = nullptr;
  int group = -1;  // that the last one seen is in
  bool several = false;  // are two in one group, so that they may run as one launch?
};

// By identity; `identities` are those of the plan's kernels, in order.
std::map<std::string, Equals> FindEquals(const plan::Plan& plan, const std::vector<runtime::CudaSchedule>& schedules,
                                         std::vector<std::string>* identities) {
  std::map<std::string, Equals> all;
  for (const runtime::StepGroup& group : plan.groups)
    for (int k = group.begin; k < group.end; ++k) {
      const auto* kernel = std::get_if<plan::Kernel>(&plan.steps[static_cast<std::size_t>(k)]);
      if (kernel == nullptr) continue;
      identities->push_back(Identity(plan, *kernel, schedules[identities->size()]));
      Equals& equals = all[identities->back()];
      if (equals.first == nullptr) equals.first = kernel;
      equals.several = equals.several || equals.group == group.begin;
      equals.group = group.begin;
    }
  return all;
}

std::string CodesText(const Library& library, const std::string& unit, std::vector<Entry>* entries) {
  Texts texts;
  std::vector<Code> codes;
  for (Entry& entry : *entries) {
    if (entry.kernel->unit != unit || !entry.kernel->on_gpu) continue;
    entry.first_code = static_cast<int>(codes.size());
    entry.gpu_plan = Lower(*entry.kernel->graph, true);
    const plan::Plan& plan = entry.gpu_plan;
    for (const auto& any : plan.steps)
      if (const auto* kernel = std::get_if<plan::Kernel>(&any))
        entry.schedules.push_back(codegen::ScheduleForCuda(plan, *kernel));
    std::vector<std::string> identities;
    const std::map<std::string, Equals> equals = FindEquals(plan, entry.schedules, &identities);
    for (std::size_t step = 0; step < identities.size(); ++step) {
      const Equals& own = equals.at(identities[step]);
      for (const bool several : {false, true}) {
        if (several && !own.several) continue;
        for (const auto& [variant, source] : SourcesOf(plan, *own.first, entry.schedules[step], several))
          codes.push_back(
              {static_cast<int>(step), variant.index(), source.function, texts.Add(source.Text(), source.function)});
      }
    }
    entry.num_codes = static_cast<int>(codes.size()) - entry.first_code;
  }
  const std::vector<std::string> images = texts.Compile(library.targets.gpu);
  codegen::Writer out;
  out.Line("// Generated by umbra: images for GPUs.");
  out.Line("#include \"umbra/kernel_desc.h\"\n\nnamespace {{\n");
  for (std::size_t k = 0; k < images.size(); ++k)
    out.Line("const uint64_t images{}[] = {{{}}};\n", k, Words(images[k]));
  out.Line("}}  // namespace\n");
  const std::string name = TableName(library, unit, kCudaTarget);
  out.Line("// Step, variant (umbra/cuda_launch.h), function and images.");
  out.Line("extern \"C\" __attribute__((visibility(\"hidden\"))) const umbra_gpu_code {}[];", name);
  out.Line("const umbra_gpu_code {}[] = {{", name);
  for (const Code& code : codes)
    out.Line("    {{{}, {}, \"{}\", images{}, {}}},", code.step, code.variant, code.function, code.text,
             images[code.text].size());
  out.Line("    {{}}}};");
  return out.Take();
}

}  // namespace umbra::aot
