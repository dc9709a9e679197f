#include "compiler/codegen/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include "compiler/codegen/cpu/kernel.h"
#include "compiler/codegen/prelude.h"
#include "compiler/codegen/writer.h"
#include "runtime/panels.h"

namespace umbra::codegen {

namespace {

struct TargetRow {
  std::string_view name;
  int register_bytes;
  std::span<const std::string_view> flags;
};

constexpr std::array<std::string_view, 1> kSse2Flags = {"-msse2"};
constexpr std::array<std::string_view, 3> kAvx2Flags = {"-mavx2", "-mfma", "-mf16c"};
constexpr std::array<std::string_view, 8> kAvx512Flags = {
    "-mavx2", "-mfma", "-mf16c", "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mprefer-vector-width=512"};

const TargetRow& Row(Target target) {
  static const TargetRow kRows[] = {
      {"plain", 0, {}}, {"sse2", 16, kSse2Flags}, {"avx2", 32, kAvx2Flags}, {"avx512", 64, kAvx512Flags}};
  return kRows[static_cast<int>(target)];
}

// The parts of the prelude, beyond its base, that not every kernel needs.
constexpr std::array<std::string_view, 10> kParts = {"half", "panel", "tile",  "reduce",  "scan",
                                                     "math", "trig",  "power", "special", "random"};

std::string HeaderOf(std::string_view part) { return fmt::format("umbra/prelude/{}.h", part); }

// Those that the kernels use.
std::set<std::string_view> PartsOf(std::span<const SourceItem> items) {
  std::set<std::string_view> used;
  for (const SourceItem& item : items) {
    if (!item.kernel->signature.panels.empty()) used.insert({"panel", "tile"});
    for (const plan::Value& value : item.kernel->values) {
      if (value.kind == plan::Value::Kind::kMap) used.insert(graph::Info(value.op).header);
      if (value.kind == plan::Value::Kind::kReduced) used.insert("reduce");
      if (value.kind == plan::Value::Kind::kScanned) used.insert({"reduce", "scan"});
      if (IsHalf(value.type)) used.insert("half");
    }
  }
  if (used.count("special") != 0) used.insert("power");
  if (used.count("special") + used.count("random") != 0) used.insert("trig");
  if (used.count("power") + used.count("trig") != 0) used.insert("math");
  return used;
}

std::string Includes(const std::set<std::string_view>& used) {
  std::string text = "#include \"umbra/kernel_prelude.h\"\n";
  for (std::string_view part : kParts)
    if (used.count(part) != 0) text += fmt::format("#include \"{}\"\n", HeaderOf(part));
  return text;
}

// What the kernels need of the prelude as one text, without includes of each other.
std::string PastedPrelude(const std::set<std::string_view>& used, std::string_view kernels) {
  std::string text;
  for (const PreludeFile& file : NeededPrelude(kernels)) {
    const auto part =
        std::find_if(kParts.begin(), kParts.end(), [&](std::string_view name) { return HeaderOf(name) == file.name; });
    if ((part != kParts.end() && used.count(*part) == 0) || file.name == HeaderOf("cuda")) continue;
    std::string_view rest = file.text;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
      const std::string_view line = rest.substr(0, end);
      if (line.substr(0, 10) != "#include \"") text += line;
      rest.remove_prefix(end);
    }
  }
  return text;
}

}  // namespace

std::string_view Name(Target target) { return Row(target).name; }

std::optional<Target> FindTarget(std::string_view name) {
  for (Target target : kAllTargets)
    if (Row(target).name == name) return target;
  return std::nullopt;
}

int RegisterBytes(Target target) { return Row(target).register_bytes; }

std::span<const std::string_view> CompilerFlags(Target target) { return Row(target).flags; }

Source Generate(std::span<const SourceItem> items, SourceOptions options) {
  Source source;
  Writer out;
  for (const SourceItem& item : items) {
    options.variant = item.variant;
    if (&item != items.data()) out.Blank();
    source.functions.push_back(EmitKernel(*item.plan, *item.kernel, options, &out));
  }
  const std::set<std::string_view> used = PartsOf(items);
  const std::string text = out.Take();
  const std::string head = options.spelling == Spelling::kIntrinsics
                               ? "#include <immintrin.h>\n\n" + PastedPrelude(used, text)
                               : Includes(used);
  source.fast = options.fast;
  if (options.fast) source.text = "// Math is fast: a * b + c may be one operation with one rounding.\n";
  source.text += head + "\nnamespace umbra::simd {\n\n" + text + "\n}  // namespace umbra::simd\n";
  return source;
}

Source Generate(const plan::Plan& plan, const plan::Kernel& kernel, const SourceOptions& options) {
  const SourceItem item{&plan, &kernel, options.variant};
  return Generate(std::span(&item, 1), options);
}

std::vector<runtime::Variant> LikelyVariants(const runtime::KernelSignature& signature, std::string_view target) {
  if (signature.few_columns && signature.axes[static_cast<std::size_t>(signature.vector_axis)].is_static())
    return {{.few_columns = true}};
  if (signature.panels.empty() || signature.turned) return {{}};
  const runtime::Extent& rows = signature.axes[static_cast<std::size_t>(signature.row_axes) - 2];
  const runtime::Extent &columns = signature.axes[static_cast<std::size_t>(signature.vector_axis)],
                        &steps = signature.axes.back();
  const bool by_bands =
      steps.is_static() &&
      runtime::MayGoByBands(signature, steps.value,
                            columns.is_static() ? columns.value : static_cast<index_t>(graph::kAssumedExtent),
                            target == Name(Target::kAvx512));
  std::vector<runtime::Variant> variants;
  if (!by_bands && (!rows.is_static() || runtime::PacksColumns(signature, rows.value)))
    variants.push_back({.packed = true});
  if (by_bands || !runtime::PacksColumns(signature, rows.is_static() ? rows.value : 1)) variants.emplace_back();
  return variants;
}

Source Generate(const plan::Plan& plan, const SourceOptions& options) {
  std::vector<SourceItem> items;
  std::vector<std::unique_ptr<plan::Kernel>> named;
  for (const auto& step : plan.steps) {
    const auto* kernel = std::get_if<plan::Kernel>(&step);
    if (kernel == nullptr) continue;
    std::vector<runtime::Variant> variants = LikelyVariants(kernel->signature, Name(options.target));
    if (RegisterBytes(options.target) == 0) variants.resize(1);  // they are the same
    for (runtime::Variant& variant : variants) {
      if (!variant.packed || options.variant.stores != runtime::Stores::kJoined)
        variant.stores = options.variant.stores;
      if (variant.stores != runtime::Stores::kCached && !kernel->signature.column_buffers.empty() &&
          !variant.few_columns)
        variant.packed = true;
      items.push_back({&plan, kernel, variant});
      if (variants.size() == 1 || !variant.packed) continue;
      named.push_back(std::make_unique<plan::Kernel>(*kernel));
      named.back()->signature.name += "_packed";
      items.back().kernel = named.back().get();
    }
  }
  return Generate(items, options);
}

}  // namespace umbra::codegen
