#include "tools/umbra/emit_cuda.h"

#include <utility>
#include <vector>

#include "compiler/codegen/cuda/dense.h"
#include "compiler/codegen/cuda/generate.h"
#include "compiler/driver/fatbin.h"
#include "compiler/driver/nvrtc.h"
#include "runtime/side_by_side.h"
#include "tools/umbra/usage.h"

namespace umbra::tools {

std::vector<CudaFile> EmitCuda(const plan::Plan& plan, const std::string& name, const std::string& as,
                               const std::string& arch, Math math) {
  RequireUsage(as != "llvm" && as != "asm", "--as ", as,
               " is for the targets of this CPU; of cuda there are source, ptx, cubin and fatbin");
  std::vector<cuda::Architecture> architectures;
  if (!arch.empty()) architectures = ParseArchitectures(arch);
  RequireUsage(as == "source" || !architectures.empty(), "--as ", as,
               " needs the GPUs that it is for: --arch sm_90, or one of the like");
  const bool fast = math == Math::kFast;
  codegen::CudaSource all;
  std::vector<codegen::CudaHost> launches;
  for (const auto& step : plan.steps) {
    const auto* kernel = std::get_if<plan::Kernel>(&step);
    if (kernel == nullptr) continue;
    if (!all.kernel.empty()) all.kernel += "\n";
    const runtime::CudaVariant variant = codegen::TypicalCudaVariant(plan, *kernel);
    const codegen::CudaSource source = codegen::GenerateCuda(plan, *kernel, variant, fast);
    all.kernel += source.kernel;
    launches.push_back(codegen::LaunchOfCuda(plan, *kernel, variant, source.function));
  }
  const std::string text = all.Text();
  if (as == "source")
    return {{"", "// nvcc -std=c++17 --fmad=" + std::string(fast ? "true" : "false") + "\n" + text +
                     codegen::CudaHostPart(plan, launches)}};
  std::vector<CudaTarget> targets;
  if (as == "fatbin") {
    UseFatbin();  // what is missing is said before anything is compiled
    targets = TargetsForAll(architectures, fast);
  } else {
    const auto form = as == "ptx" ? cuda::ImageForm::kPtx : cuda::ImageForm::kCubin;
    for (const cuda::Architecture& architecture : architectures) targets.push_back({architecture, form, fast});
  }
  std::vector<cuda::Image> images(targets.size());
  runtime::SideBySide(targets.size(), [&](std::size_t k) { images[k] = CompileCuda(text, name, targets[k]); });
  if (as == "fatbin") return {{"", MakeFatbin(images, name)}};
  std::vector<CudaFile> files;
  for (cuda::Image& image : images)
    files.push_back({images.size() == 1 ? "" : image.architecture.Name(), std::move(image.bytes)});
  return files;
}

}  // namespace umbra::tools
