#include "runtime/cuda_ahead_of_time.h"

#include <map>
#include <mutex>
#include <string>

#include "runtime/cuda_kernel.h"
#include "runtime/program_text.h"
#include "umbra/error.h"

namespace umbra::runtime {

namespace {

// The code of one step, of which a variant's images are unpacked when a launch first needs it.
class Codes {
 public:
  Codes(const umbra_gpu_desc& desc, int step) : desc_(desc), step_(step) {}

  // Equal kernels have the same images.
  std::string Identity(const CudaVariant& variant) const {
    const umbra_gpu_code* code = Find(variant);
    return code == nullptr ? std::string() : detail::Concat(code->function, " at ", code->images);
  }

  CudaPasses Get(const CudaVariant& variant) {
    const umbra_gpu_code* code = Find(variant);
    Ensure(code != nullptr, "a kernel has no code for variant ", variant.index(), " of step ", step_);
    const std::lock_guard lock(mutex_);
    CudaPasses& passes = made_[code];
    if (!passes.empty()) return passes;
    const std::vector<cuda::Image> images =
        cuda::UnpackImages({static_cast<const char*>(code->images), static_cast<std::size_t>(code->image_bytes)});
    passes.emplace_back(code->function, images);
    if (variant.finishes()) passes.emplace_back(std::string(code->function) + "_finish", images);
    return passes;
  }

 private:
  // The variant's code, or that of the one which stands for it.
  const umbra_gpu_code* Find(const CudaVariant& variant) const {
    for (const int index : {variant.index(), variant.General().index()})
      for (const umbra_gpu_code* code = desc_.codes; code != desc_.codes + desc_.num_codes; ++code)
        if (code->step == step_ && code->variant == index) return code;
    return nullptr;
  }

  const umbra_gpu_desc& desc_;
  const int step_;
  std::mutex mutex_;
  std::map<const umbra_gpu_code*, CudaPasses> made_;
};

}  // namespace

std::shared_ptr<const Program> ProgramOnGpu(const umbra_kernel_desc& kernel) {
  Program program = ProgramFromText(kernel.gpu->program);
  const std::vector<CudaSchedule> schedules = SchedulesFromText(kernel.gpu->schedules);
  program.on_gpu = true;
  std::size_t step = 0;
  for (auto& any : program.steps) {
    auto* of_kernel = std::get_if<KernelStep>(&any);
    if (of_kernel == nullptr) continue;
    Require(step < schedules.size(), "kernel '", kernel.name, "' has schedules for ", schedules.size(),
            " steps, which are fewer than it has: generate it anew");
    const auto codes = std::make_shared<Codes>(*kernel.gpu, static_cast<int>(step));
    of_kernel->cuda = std::make_shared<const CudaKernel>(
        CudaKernel{schedules[step++], [codes](const CudaVariant& variant, int, int) { return codes->Get(variant); },
                   [codes](const CudaVariant& variant) { return codes->Identity(variant); }});
  }
  return std::make_shared<const Program>(std::move(program));
}

}  // namespace umbra::runtime
