#include "compiler/driver/cuda.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "compiler/codegen/cuda/generate.h"
#include "compiler/driver/nvrtc.h"
#include "compiler/plan/without_names.h"
#include "runtime/disk_cache.h"
#include "umbra/error.h"

namespace umbra {

namespace {

// Machine code for the device, or, if NVRTC does not know it, PTX of the latest architecture that it knows of those
// before, which the driver compiles.
CudaTarget TargetOf(int major, int minor, bool fast) {
  const std::vector<int>& known = UseNvrtc().architectures;
  const int wanted = major * 10 + minor;
  int latest = 0;
  for (const int one : known)
    if (one <= wanted) latest = std::max(latest, one);
  if (latest == 0 || latest == wanted) return {{major, minor}, cuda::ImageForm::kCubin, fast};
  return {{latest / 10, latest % 10}, cuda::ImageForm::kPtx, fast};
}

class Variants {
 public:
  Variants(std::shared_ptr<const plan::Plan> plan, const plan::Kernel* kernel, const CompileOptions& options)
      : plan_(std::move(plan)),
        kernel_(*kernel),
        use_disk_cache_(options.use_disk_cache),
        fast_(options.math == Math::kFast) {}

  // Kernels that differ in names and operands only, such as the updates of a model's tensors, have it in common.
  std::string Identity(const runtime::CudaVariant& variant) {
    if (variant.many && !UseNvrtc().IsAtLeast(12, 1)) return "";
    const std::lock_guard lock(mutex_);
    std::string& known = identities_[variant.index()];
    if (known.empty()) {
      const plan::Unnamed unnamed = plan::WithoutNames(*plan_, kernel_);
      known = runtime::CacheKey({codegen::GenerateCuda(unnamed.plan, unnamed.kernel, variant, fast_).kernel});
    }
    return known;
  }

  // Equal kernels of one graph share their code, which has the name of the first.
  runtime::CudaPasses Get(const runtime::CudaVariant& variant, int major, int minor) {
    const std::string identity = Identity(variant);
    const std::lock_guard lock(mutex_);
    const auto [found, fresh] = made_.try_emplace({variant.index(), major, minor});
    if (!fresh) return *found->second;
    try {
      found->second = Shared(identity, variant, TargetOf(major, minor, fast_));
      return *found->second;
    } catch (...) {
      made_.erase(found);
      throw;
    }
  }

 private:
  using Code = std::shared_ptr<const runtime::CudaPasses>;
  struct Entry {
    std::mutex making;
    std::weak_ptr<const runtime::CudaPasses> code;  // under the table's mutex
  };

  Code Shared(const std::string& identity, const runtime::CudaVariant& variant, const CudaTarget& target) const {
    static std::mutex mutex;  // of the table
    static auto* const table = new std::map<std::string, std::shared_ptr<Entry>>;  // kernels may outlive static objects
    const std::string key = runtime::CacheKey({plan_->name, target.architecture.Name(),
                                               target.form == cuda::ImageForm::kPtx ? "ptx" : "cubin",
                                               fast_ ? "fast" : "strict", use_disk_cache_ ? "disk" : "", identity});
    std::unique_lock lock(mutex);
    std::erase_if(*table,
                  [](const auto& known) { return known.second.use_count() == 1 && known.second->code.expired(); });
    std::shared_ptr<Entry>& known = (*table)[key];
    if (known == nullptr) known = std::make_shared<Entry>();
    const std::shared_ptr<Entry> entry = known;
    lock.unlock();
    const std::lock_guard making(entry->making);
    lock.lock();
    if (Code code = entry->code.lock()) return code;
    lock.unlock();
    auto code = std::make_shared<const runtime::CudaPasses>(Make(variant, target));
    lock.lock();
    entry->code = code;
    return code;
  }

  runtime::CudaPasses Make(const runtime::CudaVariant& variant, const CudaTarget& target) const {
    const codegen::CudaSource source = codegen::GenerateCuda(*plan_, kernel_, variant, fast_);
    const std::vector<cuda::Image> images = {CompileCuda(source.Text(), source.function, target, use_disk_cache_)};
    runtime::CudaPasses passes = {cuda::Kernel(source.function, images)};
    if (!source.finish.empty()) passes.emplace_back(source.finish, images);
    return passes;
  }

  const std::shared_ptr<const plan::Plan> plan_;
  const plan::Kernel& kernel_;  // of plan_
  const bool use_disk_cache_, fast_;
  std::mutex mutex_;  // of what follows; held while one is made, which others are about to need
  std::map<int, std::string> identities_;  // by variant
  std::map<std::tuple<int, int, int>, Code> made_;
};

}  // namespace

void RequireCuda(const CompileOptions& options) {
  Require(options.engine == Engine::kJit, "the target cuda has one engine, jit, which is NVRTC; another was asked for");
  Require(
      !options.background,
      "the target cuda compiles no function in the background: kernels are compiled by the first call that needs them");
  (void)cuda::Properties(cuda::CurrentDevice());
  (void)UseNvrtc();
}

std::shared_ptr<const runtime::CudaKernel> MakeCudaKernel(std::shared_ptr<const plan::Plan> plan,
                                                          const plan::Kernel* kernel, const CompileOptions& options) {
  runtime::CudaSchedule schedule = codegen::ScheduleForCuda(*plan, *kernel);
  auto variants = std::make_shared<Variants>(std::move(plan), kernel, options);
  return std::make_shared<const runtime::CudaKernel>(
      runtime::CudaKernel{std::move(schedule),
                          [variants](const runtime::CudaVariant& variant, int major, int minor) {
                            return variants->Get(variant, major, minor);
                          },
                          [variants](const runtime::CudaVariant& variant) { return variants->Identity(variant); }});
}

}  // namespace umbra
