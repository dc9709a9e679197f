#include "tools/umbra/emit_cuda.h"

#include <vector>

#include "compiler/codegen/cuda/dense.h"
#include "compiler/codegen/cuda/generate.h"
#include "compiler/driver/fatbin.h"
#include "compiler/driver/nvrtc.h"
#include "tools/umbra/usage.h"

namespace umbra::tools {

std::string EmitCuda(const plan::Plan& plan, const std::string& name, const std::string& as, const std::string& arch, Math math) {
  RequireUsage(as != "llvm" && as != "asm", "--as ", as, " is for the targets of this CPU; of cuda there are source, ptx, cubin and fatbin");
  std::vector<cuda::Architecture> architectures;
  if (!arch.empty()) architectures = ParseArchitectures(arch);
  RequireUsage(as == "source" || !architectures.empty(), "--as ", as, " needs the GPUs that it is for: --arch sm_90, or one of the like");
  RequireUsage(as == "source" || as == "fatbin" || architectures.size() == 1, "--as ", as, " is for one architecture, and --arch names ",
               architectures.size(), ": call it once for each, or make a file that holds all of them by --as fatbin");
  codegen::CudaSource all;
  std::vector<codegen::CudaHost> launches;
  for (const auto& step : plan.steps) {
    const auto* kernel = std::get_if<plan::Kernel>(&step);
    if (kernel == nullptr) continue;
    if (!all.kernel.empty()) all.kernel += "\n";
    const runtime::CudaVariant variant = codegen::TypicalCudaVariant(plan, *kernel);
    const codegen::CudaSource source = codegen::GenerateCuda(plan, *kernel, variant);
    all.kernel += source.kernel;
    launches.push_back(codegen::LaunchOfCuda(plan, *kernel, variant, source.function));
  }
  const bool fast = math == Math::kFast;
  if (as == "source") return "// nvcc -std=c++17 --fmad=" + std::string(fast ? "true" : "false") + "\n" + all.Text() + codegen::CudaHostPart(launches);
  const std::string text = all.Text();
  if (as == "ptx") return CompileCuda(text, name, {architectures[0], cuda::ImageForm::kPtx, fast}).bytes;
  if (as == "cubin") return CompileCuda(text, name, {architectures[0], cuda::ImageForm::kCubin, fast}).bytes;
  UseFatbin();  // what is missing is said before anything is compiled
  return MakeFatbin(CompileCudaForAll(text, name, architectures, fast), name);
}

}  // namespace umbra::tools
