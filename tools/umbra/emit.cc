#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "compiler/driver/backend.h"
#include "compiler/driver/lower.h"
#include "compiler/driver/target.h"
#include "compiler/graph/graph.h"
#include "tools/umbra/commands.h"
#include "tools/umbra/emit_cuda.h"
#include "tools/umbra/files.h"
#include "tools/umbra/load.h"
#include "tools/umbra/usage.h"
#include "umbra/error.h"

namespace umbra::tools {

UMBRA_REGISTER_PARAMETER(EmitOptions);

namespace {

// Options that would do nothing beside the others.
void CheckUsage(const EmitOptions& options) {
  const bool on_gpu = options.target == kCudaTarget,
             image = options.as == "ptx" || options.as == "cubin" || options.as == "fatbin";
  RequireUsage(options.arch.empty() || on_gpu, "--arch says for which GPUs code is made: give --target cuda");
  RequireUsage(!image || on_gpu, "--as ", options.as, " is for GPUs: give --target cuda");
  RequireUsage(options.arch.empty() || image,
               "--arch says for which GPUs code is made: give --as ptx, cubin or fatbin");
  RequireUsage(options.spelling == "packets" || (options.as == "source" && !on_gpu), "--spelling ", options.spelling,
               " is one of the source for a CPU; ", on_gpu ? "--target cuda" : "--as " + options.as,
               " has none: leave --spelling away");
  RequireUsage(options.stores == "cached" ||
                   (!on_gpu && (options.as == "source" || options.as == "llvm" || options.as == "asm")),
               "--stores ", options.stores,
               " is one of the code for a CPU: give --as source, llvm or asm, or leave --stores away");
  const bool several = options.as != "fatbin" && options.arch.find(',') != std::string::npos;
  RequireUsage(!several || (!options.output.empty() && options.output != "-"), "--as ", options.as,
               " makes a file for each of ", options.arch, ": give -o kernel.", options.as, " for kernel.sm_80.",
               options.as, " and so on, or --as fatbin for one file that holds all of them");
  RequireUsage(options.as != "text" || options.kernel.empty(), "--as text shows all of ", options.input,
               ": leave --kernel away");
}

// Of several, k.ptx becomes k.sm_80.ptx and so on, whose names are printed.
void WriteFiles(const EmitOptions& options, const std::vector<CudaFile>& files) {
  for (const CudaFile& file : files) {
    if (file.architecture.empty()) return WriteFile(options.output, file.content);
    std::filesystem::path path = options.output;
    path.replace_extension(file.architecture + path.extension().string());
    WriteFile(path.string(), file.content);
    WriteFile("", path.string() + "\n");
  }
}

}  // namespace

void Emit(const EmitOptions& options) {
  CheckUsage(options);
  if (options.as == "text") return WriteFile(options.output, KernelText(options.input, options.scalar));
  const auto graph = LoadKernel(options.input, options.kernel, options.scalar);
  if (options.as == "graph" || options.as == "dot") {
    WriteFile(options.output, options.as == "dot" ? graph::PrintDot(*graph) : graph::Print(*graph));
    return;
  }
  const plan::Plan plan = Lower(*graph, options.target == kCudaTarget, options.math);
  if (options.as == "plan") {
    WriteFile(options.output, plan::Print(plan));
    return;
  }
  Require(std::any_of(plan.steps.begin(), plan.steps.end(),
                      [](const auto& step) { return std::holds_alternative<plan::Kernel>(step); }),
          "kernel '", graph->name(),
          "' is a product of matrices only: BLAS runs it, there is no code to show; --as plan shows its steps");
  if (options.target == kCudaTarget)
    return WriteFiles(options, EmitCuda(plan, graph->name(), options.as, options.arch, options.math));
  codegen::SourceOptions source_options;
  source_options.target = options.target.empty() ? HostTarget() : *codegen::FindTarget(options.target);
  source_options.spelling =
      options.spelling == "intrinsics" ? codegen::Spelling::kIntrinsics : codegen::Spelling::kPackets;
  source_options.fast = options.math == Math::kFast;
  if (options.stores != "cached")
    source_options.variant.stores =
        options.stores == "streamed" ? runtime::Stores::kStreamed : runtime::Stores::kJoined;
  const codegen::Source source = codegen::Generate(plan, source_options);
  if (options.as == "source") return WriteFile(options.output, source.text);
  WriteFile(options.output, ClangBackend().Print(source, source_options.target, options.as));
}

}  // namespace umbra::tools
