#include <set>

#include "runtime/cuda/memory.h"
#include "runtime/cuda/stream.h"

namespace umbra::cuda {

namespace {

// A name that lives as long as the process: errors found late speak of kernels that are gone.
const std::string* Interned(const std::string& name) {
  static std::mutex& mutex = *new std::mutex;
  static auto& names = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return &*names.insert(name).first;
}

const char* Remedy(Result result) {
  switch (result) {
    case kUnsupportedPtxVersion:
      return "; the compiler is newer than the driver: update the driver, or use an NVRTC of the driver's CUDA version";
    case kNoBinaryForGpu: return "; the image is for another GPU, or the compiler is newer than the driver";
    case kNotFound: return "; the image holds other kernels";
    default: return "";
  }
}

struct Loaded {
  Module module = nullptr;
  Function function = nullptr;
};

class LoadedKernel final : public Kernel::State, public std::enable_shared_from_this<LoadedKernel> {
 public:
  LoadedKernel(const std::string& name, std::vector<Image> images)
      : name_(Interned(name)),
        images_(std::move(images)) {}
  ~LoadedKernel() override;
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;

  void Launch(const LaunchShape& shape, const void* arguments, std::size_t argument_bytes,
              StreamHandle stream) override;
  KernelResources Resources(int device) override;
  int BlocksPerMultiprocessor(int device, int threads, std::size_t shared_bytes) override;
  const std::string& name() const override { return *name_; }

 private:
  Function On(Gpu& gpu) {
    const auto index = static_cast<std::size_t>(gpu.ordinal);
    if (const Function function = functions_[index].load(std::memory_order_acquire)) return function;
    const std::lock_guard lock(mutex_);
    if (const Function function = functions_[index].load()) return function;
    modules_[index] = Load(gpu);
    functions_[index].store(modules_[index].function, std::memory_order_release);
    return modules_[index].function;
  }
  Loaded Load(Gpu& gpu) const;
  [[noreturn]] void FailToLaunch(Gpu& gpu, Result result, const LaunchShape& shape, std::size_t argument_bytes) const;

  const std::string* const name_;
  const std::vector<Image> images_;
  std::array<std::atomic<Function>, Gpu::kMost> functions_{};
  std::mutex mutex_;  // of what follows
  std::array<Loaded, Gpu::kMost> modules_{};
};

LoadedKernel::~LoadedKernel() {
  const Quietly quietly;
  for (std::size_t k = 0; k < modules_.size(); ++k) {
    if (modules_[k].module == nullptr) continue;
    Gpu& gpu = Gpu::At(static_cast<int>(k));
    try {
      const Using use(gpu);
      // A launch may still run.
      OrderMemoryAfterAll(gpu);
      gpu.Check(gpu.driver.cuStreamSynchronize(gpu.memory->stream()), "cuStreamSynchronize", "unloading kernel '",
                *name_, "'");
      gpu.Note(gpu.driver.cuModuleUnload(modules_[k].module), "cuModuleUnload", "unloading a kernel");
    } catch (const Error&) {  // the device has failed, as the next call tells
    }
  }
}

Loaded LoadedKernel::Load(Gpu& gpu) const {
  const Driver& driver = gpu.driver;
  const Image& image = PickImage(images_, gpu.properties.major, gpu.properties.minor, *name_);
  std::array<char, 8192> log{};
  std::array<int, 2> options = {kErrorLog, kErrorLogBytes};
  std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  Loaded loaded;
  // PTX ends with a zero, which std::string keeps behind its bytes.
  const Result result = gpu.memory->UnderPressure(
      [&] { return driver.cuModuleLoadDataEx(&loaded.module, image.bytes.c_str(), 2, options.data(), values.data()); });
  gpu.Check(result, "cuModuleLoadDataEx", "loading kernel '", *name_, "' (", image.architecture.Name(),
            image.form == ImageForm::kPtx ? ", PTX" : "", ") to GPU ", gpu.ordinal, Remedy(result),
            log[0] == 0 ? "" : ":\n", log.data());
  // The driver may put off the rest of the loading to any of these calls, or to the first launch.
  const auto go_on = [&](const char* function, const auto& call) {
    const Result done = gpu.memory->UnderPressure(call);
    gpu.Check(done, function, "loading kernel '", *name_, "'", Remedy(done));
  };
  try {
    go_on("cuModuleGetFunction",
          [&] { return driver.cuModuleGetFunction(&loaded.function, loaded.module, name_->c_str()); });
    int fixed = 0;
    go_on("cuFuncGetAttribute", [&] { return driver.cuFuncGetAttribute(&fixed, kStaticSharedBytes, loaded.function); });
    // A launch may use all the shared memory that the device has for a block.
    const int most = static_cast<int>(gpu.properties.shared_per_block_opt_in) - fixed;
    go_on("cuFuncSetAttribute",
          [&] { return driver.cuFuncSetAttribute(loaded.function, kMaxDynamicSharedBytes, most); });
  } catch (...) {
    driver.cuModuleUnload(loaded.module);
    throw;
  }
  return loaded;
}

void LoadedKernel::FailToLaunch(Gpu& gpu, Result result, const LaunchShape& shape, std::size_t argument_bytes) const {
  const auto& [grid, block, shared] = shape;
  const DeviceProperties& p = gpu.properties;
  std::string doing = detail::Concat("launching kernel '", *name_, "' on GPU ", gpu.ordinal);
  if (result == kInvalidValue || result == kLaunchOutOfResources)
    doing += detail::Concat(" with grid ", grid[0], "x", grid[1], "x", grid[2], ", block ", block[0], "x", block[1],
                            "x", block[2], ", ", shared, " bytes of dynamic shared memory and ", argument_bytes,
                            " bytes of arguments (the device has blocks of ", p.max_threads_per_block, " threads and ",
                            p.shared_per_block_opt_in, " bytes, and grids of ", p.max_grid[0], "x", p.max_grid[1], "x",
                            p.max_grid[2], ")");
  gpu.Fail(result, "cuLaunchKernel", doing);
}

void LoadedKernel::Launch(const LaunchShape& shape, const void* arguments, std::size_t argument_bytes,
                          StreamHandle stream) {
  const auto in = StateOf(stream);
  Gpu& gpu = in->gpu;
  const Using use(gpu);
  const Function function = On(gpu);
  if (IsCapturing(gpu)) in->Keep(shared_from_this());
  constexpr std::size_t kEnd = 0, kBuffer = 1, kBufferBytes = 2;  // CU_LAUNCH_PARAM_...
  std::array<void*, 5> extra = {reinterpret_cast<void*>(kBuffer), const_cast<void*>(arguments),
                                reinterpret_cast<void*>(kBufferBytes), &argument_bytes, reinterpret_cast<void*>(kEnd)};
  gpu.last_kernel.store(name_, std::memory_order_relaxed);
  const Result result = gpu.memory->UnderPressure([&] {
    return gpu.driver.cuLaunchKernel(function, shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0],
                                     shape.block[1], shape.block[2], shape.shared_bytes, stream, nullptr, extra.data());
  });
  if (result != kSuccess) FailToLaunch(gpu, result, shape, argument_bytes);
  if (stream == nullptr) gpu.null_stream_used = true;
}

KernelResources LoadedKernel::Resources(int device) {
  Gpu& gpu = Gpu::At(device);
  const Using use(gpu);
  const Function function = On(gpu);
  const auto get = [&](FunctionAttribute attribute) {
    int value = 0;
    gpu.Check(gpu.driver.cuFuncGetAttribute(&value, attribute, function), "cuFuncGetAttribute",
              "asking for the resources of kernel '", name(), "'");
    return value;
  };
  return {get(kRegisters), static_cast<std::size_t>(get(kLocalBytes)),
          static_cast<std::size_t>(get(kStaticSharedBytes))};
}

int LoadedKernel::BlocksPerMultiprocessor(int device, int threads, std::size_t shared_bytes) {
  Gpu& gpu = Gpu::At(device);
  const Using use(gpu);
  int blocks = 0;
  gpu.Check(gpu.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, On(gpu), threads, shared_bytes),
            "cuOccupancyMaxActiveBlocksPerMultiprocessor", "asking for the occupancy of kernel '", name(), "'");
  return blocks;
}

}  // namespace

std::shared_ptr<Kernel::State> library::NewKernel(const std::string& name, std::vector<Image> images) {
  return std::make_shared<LoadedKernel>(name, std::move(images));
}

}  // namespace umbra::cuda
