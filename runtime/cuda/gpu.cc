#include "runtime/cuda/gpu.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "runtime/cuda/memory.h"
#include "runtime/cuda/stream.h"
#include "umbra/cuda_launch.h"

namespace umbra::cuda {

namespace {

thread_local int current_device = 0;
thread_local int quiet = 0;

// After these errors the context, and with it all memory of the process on the device, is lost.
bool EndsTheDevice(Result result) {
  constexpr std::array kSticky = {214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 911, 999};
  return std::find(kSticky.begin(), kSticky.end(), result) != kSticky.end();
}

}  // namespace

Gpu::Gpu(int number) : ordinal(number), driver(UseDriver()) {
  const std::string doing = "using GPU " + std::to_string(ordinal);
  Check(driver.cuDeviceGet(&handle, ordinal), "cuDeviceGet", doing);
  Check(driver.cuDevicePrimaryCtxRetain(&context, handle), "cuDevicePrimaryCtxRetain", doing);
  const auto get = [&](DeviceAttribute attribute) {
    int value = 0;
    Check(driver.cuDeviceGetAttribute(&value, attribute, handle), "cuDeviceGetAttribute", doing);
    return value;
  };
  DeviceProperties& p = properties;
  std::array<char, 256> name{};
  Check(driver.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, handle), "cuDeviceGetName", doing);
  p.name = name.data();
  p.major = get(kMajor);
  p.minor = get(kMinor);
  p.multiprocessors = get(kMultiprocessors);
  p.warp_size = get(kWarpSize);
  p.max_threads_per_block = get(kMaxThreadsPerBlock);
  p.max_threads_per_multiprocessor = get(kMaxThreadsPerMultiprocessor);
  p.max_blocks_per_multiprocessor = get(kMaxBlocksPerMultiprocessor);
  p.registers_per_multiprocessor = get(kRegistersPerMultiprocessor);
  p.max_grid[0] = get(kMaxGridX);
  p.max_grid[1] = get(kMaxGridY);
  p.max_grid[2] = get(kMaxGridZ);
  const auto bytes = [&](DeviceAttribute attribute) { return static_cast<std::size_t>(get(attribute)); };
  p.shared_per_block = bytes(kSharedPerBlock);
  p.shared_per_block_opt_in = bytes(kSharedPerBlockOptIn);
  p.shared_per_multiprocessor = bytes(kSharedPerMultiprocessor);
  p.l2_bytes = bytes(kL2Bytes);
  if (p.major >= 7 && driver.version >= 12010) p.argument_bytes = runtime::kCudaManyArgumentBytes;
  Check(driver.cuDeviceTotalMem_v2(&p.memory_bytes, handle), "cuDeviceTotalMem", doing);
  Require(
      get(kMemoryPoolsSupported) != 0, doing, " (", p.name,
      "): it has no memory pools, which Umbra allocates from; a virtual GPU must be configured with unified memory");
  const Using use(*this);
  memory = std::make_shared<DeviceMemory>(*this);
  null_stream_ = std::make_shared<StreamState>(*this, nullptr, nullptr);
}

Gpu& Gpu::At(int ordinal) {
  // Never destroyed: memory may be given back by destructors that run at the very end.
  static std::mutex& mutex = *new std::mutex;
  static auto& gpus = *new std::vector<std::unique_ptr<Gpu>>;
  static std::array<std::atomic<Gpu*>, kMost> opened{};
  const auto index = static_cast<std::size_t>(ordinal);
  if (index < opened.size())
    if (Gpu* const gpu = opened[index].load(std::memory_order_acquire)) return *gpu;
  const int count = (UseDriver(), library::DeviceCount());
  Require(count > 0,
          "the machine has a CUDA driver but no GPU that it can use; see nvidia-smi and CUDA_VISIBLE_DEVICES");
  Require(0 <= ordinal && ordinal < count, "GPU ", ordinal, " was asked for; the machine has ", count);
  Require(index < opened.size(), "GPU ", ordinal, " was asked for; Umbra uses the first ", opened.size());
  const std::lock_guard lock(mutex);
  if (Gpu* const gpu = opened[index].load()) return *gpu;
  gpus.push_back(std::make_unique<Gpu>(ordinal));
  opened[index].store(gpus.back().get(), std::memory_order_release);
  return *gpus.back();
}

void Gpu::RequireWorking() {
  if (!lost()) return;
  const std::lock_guard lock(mutex_);
  const std::string message = told_ ? reminder_ : story_;
  told_ = told_ || quiet == 0;
  throw Error(message);
}

void Gpu::Lose(Result result, const char* function, const std::string& doing) {
  const std::lock_guard lock(mutex_);
  if (!story_.empty()) return;
  const std::string* const kernel = last_kernel.load();
  const std::string words = Words(result);
  story_ = detail::Concat("GPU ", ordinal, " (", properties.name, ") has failed: ", doing, ": ", function, " gives ",
                          words, "; ",
                          kernel == nullptr ? std::string("no kernel of Umbra was launched before")
                                            : "the kernel launched last is '" + *kernel + "'",
                          ". All memory on it is lost, and this process cannot use it any more: start a new one; with "
                          "CUDA_LAUNCH_BLOCKING=1 in the environment the error comes from the call that causes it");
  reminder_ =
      detail::Concat("GPU ", ordinal, " cannot be used any more in this process: it failed earlier with ", words);
  lost_.store(true, std::memory_order_release);
}

void Gpu::Fail(Result result, const char* function, const std::string& doing) {
  if (EndsTheDevice(result)) {
    Lose(result, function, doing);
    RequireWorking();
  }
  throw Error(detail::Concat(doing, ": ", function, " gives ", Words(result)));
}

void Gpu::Note(Result result, const char* function, const char* doing) noexcept {
  if (EndsTheDevice(result)) Lose(result, function, doing);
}

Quietly::Quietly() { ++quiet; }
Quietly::~Quietly() { --quiet; }

Using::Using(Gpu& gpu) : gpu_(gpu) {
  gpu.RequireWorking();
  Context now = nullptr;
  gpu.Check(gpu.driver.cuCtxGetCurrent(&now), "cuCtxGetCurrent", "using GPU ", gpu.ordinal);
  if (now == gpu.context) return;
  gpu.Check(gpu.driver.cuCtxSetCurrent(gpu.context), "cuCtxSetCurrent", "using GPU ", gpu.ordinal);
  before_ = now;
}

Using::~Using() {
  if (before_ != nullptr) gpu_.driver.cuCtxSetCurrent(before_);
}

int library::DeviceCount() noexcept {
  const Driver& driver = FindDriver();
  int count = 0;
  return !driver.name.empty() && driver.cuDeviceGetCount(&count) == kSuccess ? count : 0;
}

int library::CurrentDevice() noexcept { return current_device; }

void library::SetDevice(int device) {
  Gpu::At(device);
  current_device = device;
}

const DeviceProperties& library::Properties(int device) { return Gpu::At(device).properties; }

}  // namespace umbra::cuda
