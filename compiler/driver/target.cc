#include "compiler/driver/target.h"

#include "runtime/cpu_info.h"
#include "umbra/compile.h"
#include "umbra/error.h"

namespace umbra {

using codegen::Target;

UMBRA_REGISTER_PARAMETER(CompileOptions);

void CompileOptions::DescribeTarget(parameter::FieldEntry<std::string>* field) {
  field->add_enum("best", "").set_default("").describe("Instruction set; best: of this CPU; cuda: GPUs");
  for (const Target target : codegen::kAllTargets)
    field->add_enum(std::string(Name(target)), std::string(Name(target)));
  field->add_enum(kCudaTarget, kCudaTarget);
}

void CompileOptions::DescribeMath(parameter::FieldEntry<Math>* field) {
  field->add_enum("strict", Math::kStrict)
      .add_enum("fast", Math::kFast)
      .set_default(Math::kStrict)
      .describe("Arithmetic of floats: as written, or with products and sums fused, which differs between targets");
}

bool HostRuns(Target target) { return runtime::CpuRuns(Name(target)); }

Target HostTarget() {
  static const Target target = [] {
    for (Target candidate : {Target::kAvx512, Target::kAvx2, Target::kSse2})
      if (HostRuns(candidate)) return candidate;
    return Target::kPlain;
  }();
  return target;
}

Target ResolveTarget(const std::string& name) {
  if (name.empty()) return HostTarget();
  const auto target = codegen::FindTarget(name);
  Require(target.has_value(), "unknown target '", name,
          "': expected plain, sse2, avx2, avx512 or cuda, or an empty text for the best of this CPU");
  Require(HostRuns(*target), "target ", name, " is not enabled: this CPU lacks the instruction set;",
          " the best it runs is ", codegen::Name(HostTarget()));
  return *target;
}

}  // namespace umbra
