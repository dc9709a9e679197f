#include "runtime/cuda/memory.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <shared_mutex>

#include "runtime/cuda/stream.h"

namespace umbra::cuda {

namespace {

constexpr std::size_t kLine = 128;  // rows begin at lines of the L2 cache, so that a warp reads no line of two rows
constexpr unsigned kNonBlocking = 1;

// Every block that Umbra has allocated, by its address.
struct Block {
  std::size_t bytes;
  Gpu* gpu;
};
struct Blocks {
  std::shared_mutex mutex;
  std::map<const char*, Block> by_address;

  void Add(void* memory, const Block& block) {
    const std::unique_lock lock(mutex);
    by_address[static_cast<char*>(memory)] = block;
  }
  std::optional<Block> Remove(void* memory) {
    const std::unique_lock lock(mutex);
    const auto found = by_address.find(static_cast<char*>(memory));
    if (found == by_address.end()) return std::nullopt;
    const Block block = found->second;
    by_address.erase(found);
    return block;
  }
  // The block that begins at or before `memory` and reaches beyond it, and where it begins.
  std::optional<std::pair<const char*, Block>> Around(const void* memory) {
    const std::shared_lock lock(mutex);
    auto found = by_address.upper_bound(static_cast<const char*>(memory));
    if (found == by_address.begin()) return std::nullopt;
    --found;
    if (static_cast<const char*>(memory) >= found->first + found->second.bytes) return std::nullopt;
    return *found;
  }
};
Blocks& TheBlocks() {
  static Blocks& blocks = *new Blocks;
  return blocks;
}

}  // namespace

DeviceMemory::DeviceMemory(Gpu& gpu) : gpu_(gpu) {
  const char* const doing = "making a pool of GPU memory";
  const Driver& driver = gpu.driver;
  PoolProperties properties;
  properties.location.id = gpu.handle;
  gpu.Check(driver.cuMemPoolCreate(&pool_, &properties), "cuMemPoolCreate", doing);
  for (StreamHandle* stream : {&stream_, &idle_})
    gpu.Check(driver.cuStreamCreate(stream, kNonBlocking), "cuStreamCreate", doing);
  // Else the driver lets a stream that takes memory wait for another that is about to give some back.
  int allowed = 0;
  gpu.Check(driver.cuMemPoolSetAttribute(pool_, kReuseAllowInternalDependencies, &allowed), "cuMemPoolSetAttribute",
            doing);
  SetLimit(std::numeric_limits<std::size_t>::max());
}

void DeviceMemory::ShareWith(Gpu& other) {
  const std::lock_guard lock(mutex_);
  if (&other == &gpu_ || !shared_with_.insert(other.ordinal).second) return;
  int possible = 0;
  AccessDescription access;
  access.location.id = other.handle;
  if (gpu_.driver.cuDeviceCanAccessPeer(&possible, other.handle, gpu_.handle) != kSuccess || possible == 0) return;
  gpu_.Check(gpu_.driver.cuMemPoolSetAccess(pool_, &access, 1), "cuMemPoolSetAccess", "letting GPU ", other.ordinal,
             " reach memory of GPU ", gpu_.ordinal);
}

void DeviceMemory::SetLimit(std::size_t bytes) {
  // The driver gives back what it keeps beyond this whenever a stream is waited for.
  unsigned long long threshold = bytes;
  gpu_.Check(gpu_.driver.cuMemPoolSetAttribute(pool_, kReleaseThreshold, &threshold), "cuMemPoolSetAttribute",
             "limiting GPU memory");
  const std::lock_guard lock(mutex_);
  counts_.limit = bytes;
}

void* DeviceMemory::Take(std::size_t bytes, StreamHandle stream) {
  {
    const std::lock_guard lock(mutex_);
    Require(bytes <= counts_.limit && counts_.in_use <= counts_.limit - bytes, "allocating ", bytes,
            " bytes of GPU memory: ", counts_.in_use, " are in use, and the limit of GPU ", gpu_.ordinal, " is ",
            counts_.limit, "; free some, or raise it by cuda::SetMemoryLimit");
    counts_.in_use += bytes;
  }
  try {
    DevicePointer memory = 0;
    const Result result =
        UnderPressure([&] { return gpu_.driver.cuMemAllocFromPoolAsync(&memory, bytes, pool_, stream); });
    if (result == kOutOfMemory) {
      const MemoryStatistics now = Statistics();
      throw Error(detail::Concat("allocating ", bytes, " bytes of GPU memory: GPU ", gpu_.ordinal, " has ",
                                 now.device_free, " of ", now.device_total, " bytes free, ", now.in_use - bytes,
                                 " are in use by Umbra; free some, or work on less at once (", Words(result), ")"));
    }
    gpu_.Check(result, "cuMemAllocFromPoolAsync", "allocating ", bytes, " bytes of GPU memory");
    TheBlocks().Add(reinterpret_cast<void*>(memory), {bytes, &gpu_});
    const std::lock_guard lock(mutex_);
    counts_.peak_in_use = std::max(counts_.peak_in_use, counts_.in_use);
    ++counts_.allocations;
    return reinterpret_cast<void*>(memory);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    counts_.in_use -= bytes;
    throw;
  }
}

void* DeviceMemory::TakeForAll(std::size_t bytes) {
  void* const memory = Take(bytes, idle_);
  const Result result = gpu_.driver.cuStreamSynchronize(idle_);
  if (result == kSuccess) return memory;
  GiveBack(memory, idle_);
  gpu_.Fail(result, "cuStreamSynchronize", "taking GPU memory");
}

void DeviceMemory::GiveBack(void* memory, StreamHandle stream) noexcept {
  const std::optional<Block> block = TheBlocks().Remove(memory);
  if (!block) return;
  {
    const std::lock_guard lock(mutex_);
    counts_.in_use -= block->bytes;
  }
  if (!gpu_.lost())
    gpu_.Note(gpu_.driver.cuMemFreeAsync(Address(memory), stream), "cuMemFreeAsync", "giving back GPU memory");
}

// Waits until what was given back can be had again, and gives all that nobody uses back to the device.
void DeviceMemory::Reclaim() {
  const char* const doing = "waiting for GPU memory";
  // A context that has a captured stream cannot be waited for.
  if (IsCapturing(gpu_)) gpu_.Check(gpu_.driver.cuStreamSynchronize(stream_), "cuStreamSynchronize", doing);
  else gpu_.Check(gpu_.driver.cuCtxSynchronize(), "cuCtxSynchronize", doing);
  Trim();
}

void DeviceMemory::Trim() {
  gpu_.Check(gpu_.driver.cuMemPoolTrimTo(pool_, 0), "cuMemPoolTrimTo", "giving back GPU memory");
}

MemoryStatistics DeviceMemory::Statistics() {
  MemoryStatistics now;
  {
    const std::lock_guard lock(mutex_);
    now = counts_;
  }
  unsigned long long reserved = 0;
  const char* const doing = "asking for the use of GPU memory";
  gpu_.Check(gpu_.driver.cuMemPoolGetAttribute(pool_, kReservedBytes, &reserved), "cuMemPoolGetAttribute", doing);
  gpu_.Check(gpu_.driver.cuMemGetInfo_v2(&now.device_free, &now.device_total), "cuMemGetInfo", doing);
  now.reserved = reserved;
  return now;
}

void* library::Allocate(std::size_t row_bytes, std::size_t rows, std::size_t* pitch) {
  *pitch = row_bytes;
  if (row_bytes == 0 || rows == 0) return nullptr;
  std::size_t row = row_bytes, total = 0;
  const bool padded = rows > 1;
  Require((!padded || !__builtin_add_overflow(row_bytes, kLine - 1, &row)) &&
              !__builtin_mul_overflow(padded ? row / kLine * kLine : row, rows, &total),
          "allocating GPU memory: ", rows, " rows of ", row_bytes, " bytes are more than memory can have");
  Gpu& gpu = Gpu::Current();
  const Using use(gpu);
  void* const memory = gpu.memory->TakeForAll(total);
  *pitch = total / rows;
  return memory;
}

void library::Free(void* memory) noexcept {
  if (memory == nullptr) return;
  const auto block = TheBlocks().Around(memory);
  if (!block) {  // it was allocated by somebody else
    FindDriver().cuMemFree_v2(Address(memory));
    return;
  }
  Gpu& gpu = *block->second.gpu;
  const Quietly quietly;
  try {
    const Using use(gpu);
    std::shared_ptr<void> kept;  // by all that is captured, as it may use the memory whenever its graph is launched
    ForEachStream(gpu, [&](StreamState& state) {
      if (state.captured == nullptr) return;
      if (kept == nullptr) kept.reset(memory, GivesBack());
      state.captured->kept.push_back(kept);
    });
    if (kept != nullptr) return;
    OrderMemoryAfterAll(gpu);
    gpu.memory->GiveBack(memory, gpu.memory->stream());
  } catch (const Error&) {  // the device has failed, as the next call tells; its memory is gone
    gpu.memory->GiveBack(memory, gpu.memory->stream());
  }
}

void* library::AllocateInOrder(std::size_t bytes, StreamHandle stream) {
  const auto state = StateOf(stream);
  Gpu& gpu = state->gpu;
  const Using use(gpu);
  if (bytes == 0) return nullptr;
  std::unique_lock lock(state->mutex);
  if (state->captured == nullptr) {
    lock.unlock();
    return gpu.memory->Take(bytes, stream);
  }
  // Memory of a graph is taken once, now; what an earlier step gave back serves again if it is not much too large.
  auto& reusable = state->captured->reusable;
  for (auto& memory : reusable) {
    const auto block = TheBlocks().Around(memory.get());
    if (!block || block->second.bytes < bytes || block->second.bytes / 2 > bytes) continue;
    memory.swap(reusable.back());
    void* const found = reusable.back().release();
    reusable.pop_back();
    return found;
  }
  return gpu.memory->TakeForAll(bytes);
}

void library::FreeInOrder(void* memory, StreamHandle stream) noexcept {
  if (memory == nullptr) return;
  const auto state = stream == nullptr ? nullptr : FindStream(stream);
  const auto block = TheBlocks().Around(memory);
  if (state == nullptr || !block || block->second.gpu != &state->gpu) return library::Free(memory);
  const std::lock_guard lock(state->mutex);
  if (state->captured != nullptr) state->captured->reusable.emplace_back(memory);
  else state->gpu.memory->GiveBack(memory, stream);
}

void* library::AllocatePinned(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  Gpu& gpu = Gpu::Current();
  const Using use(gpu);
  void* memory = nullptr;
  gpu.Check(gpu.driver.cuMemHostAlloc(&memory, bytes, kPortableHostMemory), "cuMemHostAlloc", "allocating ", bytes,
            " bytes of pinned host memory");
  return memory;
}

void library::FreePinned(void* memory) noexcept {
  if (memory == nullptr) return;
  const Quietly quietly;
  try {
    Gpu& gpu = Gpu::Current();
    const Using use(gpu);
    gpu.Note(gpu.driver.cuMemFreeHost(memory), "cuMemFreeHost", "giving back pinned host memory");
  } catch (const Error&) {  // the device has failed, as the next call tells; its memory is gone
  }
}

MemoryStatistics library::GetMemoryStatistics(int device) {
  Gpu& gpu = Gpu::At(device);
  const Using use(gpu);
  return gpu.memory->Statistics();
}

void library::SetMemoryLimit(int device, std::size_t bytes) {
  Gpu& gpu = Gpu::At(device);
  const Using use(gpu);
  gpu.memory->SetLimit(bytes);
}

void library::TrimMemory(int device) {
  Gpu& gpu = Gpu::At(device);
  const Using use(gpu);
  gpu.memory->Trim();
}

void library::CheckDeviceMemory(const void* memory, std::size_t bytes, int device, const char* what) {
  if (bytes == 0) return;
  Require(memory != nullptr, what, " is null; memory of GPU ", device, " is expected");
  int owner = -1;
  std::size_t behind = bytes;
  if (const auto block = TheBlocks().Around(memory)) {
    owner = block->second.gpu->ordinal;
    behind = static_cast<std::size_t>(block->first + block->second.bytes - static_cast<const char*>(memory));
  } else {
    Gpu& gpu = Gpu::At(device);
    const Using use(gpu);
    std::array<int, 3> attributes = {kMemoryType, kIsManaged, kDeviceOrdinal};
    unsigned type = 0, managed = 0;
    int ordinal = -1;
    std::array<void*, 3> values = {&type, &managed, &ordinal};
    gpu.Check(gpu.driver.cuPointerGetAttributes(3, attributes.data(), values.data(), Address(memory)),
              "cuPointerGetAttributes", "asking what memory ", what, " is");
    if ((managed & 0xff) != 0) return;  // any device may use it
    if (type == kDeviceMemory) owner = ordinal;
  }
  Require(owner >= 0, what, " is memory of the host (", memory, "); memory of GPU ", device,
          " is expected: copy it there");
  Require(owner == device, what, " is memory of GPU ", owner, ", and the work is on GPU ", device,
          "; copy it there, or use a stream of GPU ", owner);
  Require(behind >= bytes, what, " has ", bytes, " bytes, of which ", bytes - behind,
          " lie behind the end of its allocation");
}

}  // namespace umbra::cuda
