#include "runtime/cuda/staging.h"

#include "runtime/cuda/memory.h"

namespace umbra::cuda {

namespace {
constexpr const char* kDoing = "copying through pinned memory";
constexpr std::size_t kAlignment = 256;
}  // namespace

char* Staging::Place(std::size_t bytes, StreamHandle stream) {
  const Driver& driver = gpu_.driver;
  stream_ = stream;
  if (used_ + bytes > kBlockBytes) {
    Block& full = blocks_[current_];
    gpu_.Check(driver.cuEventRecord(full.done, stream), "cuEventRecord", kDoing);
    full.on_its_way = true;
    current_ = (current_ + 1) % blocks_.size();
    used_ = 0;
  }
  Block& block = blocks_[current_];
  if (block.done == nullptr)
    gpu_.Check(driver.cuEventCreate(&block.done, kEventWithoutTiming), "cuEventCreate", kDoing);
  if (block.memory == nullptr) {
    void* memory = nullptr;
    gpu_.Check(driver.cuMemHostAlloc(&memory, kBlockBytes, kPortableHostMemory), "cuMemHostAlloc", kDoing);
    block.memory = static_cast<char*>(memory);
  }
  if (block.on_its_way) {
    gpu_.Check(driver.cuEventSynchronize(block.done), "cuEventSynchronize", kDoing);
    block.on_its_way = false;
  }
  char* const place = block.memory + used_;
  used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return place;
}

void Staging::Clear() {
  const std::lock_guard lock(mutex);
  const Driver& driver = gpu_.driver;
  if (blocks_[0].memory != nullptr) gpu_.Check(driver.cuStreamSynchronize(stream_), "cuStreamSynchronize", kDoing);
  for (Block& block : blocks_) {
    if (block.memory != nullptr) driver.cuMemFreeHost(block.memory);
    if (block.done != nullptr) driver.cuEventDestroy_v2(block.done);
    block = {};
  }
}

}  // namespace umbra::cuda
