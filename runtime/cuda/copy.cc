// Copies between host and devices: which memory the two sides are, and through what the bytes go.
#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/cuda/memory.h"
#include "runtime/cuda/stream.h"

namespace umbra::cuda {

namespace {

enum class Where { kPageable, kPinned, kDevice, kManaged };
struct Place {
  Where where = Where::kPageable;
  int device = -1;
};

Place PlaceOf(Gpu& gpu, const void* memory) {
  std::array<int, 3> attributes = {kMemoryType, kIsManaged, kDeviceOrdinal};
  unsigned type = 0, managed = 0;
  int device = -1;
  std::array<void*, 3> values = {&type, &managed, &device};
  // Memory that the driver does not know has a type of 0; that is no error.
  gpu.Check(gpu.driver.cuPointerGetAttributes(3, attributes.data(), values.data(), Address(memory)),
            "cuPointerGetAttributes", "asking what memory lies at ", memory);
  if ((managed & 0xff) != 0) return {Where::kManaged, -1};
  if (type == kDeviceMemory) return {Where::kDevice, device};
  return {type == kHostMemory ? Where::kPinned : Where::kPageable, -1};
}

void RequireSide(bool on_device, const Place& place, const char* doing, const char* side, const void* memory) {
  if (place.where == Where::kManaged) return;
  const bool is_device = place.where == Where::kDevice;
  Require(is_device == on_device, doing, ": the ", side, " (", memory, ") is memory of ",
          is_device ? detail::Concat("GPU ", place.device) : std::string("the host"), ", where memory of ",
          on_device ? "a GPU" : "the host", " is expected");
}

struct Rows {
  void* dst;
  std::size_t dst_pitch;
  const void* src;
  std::size_t src_pitch, row_bytes, rows;

  bool dense() const { return rows == 1 || (dst_pitch == row_bytes && src_pitch == row_bytes); }
};

void Direct(Gpu& gpu, CopyKind kind, const Rows& r, StreamHandle stream, const char* doing) {
  const Driver& driver = gpu.driver;
  const bool from_host = kind == CopyKind::kHostToDevice, to_host = kind == CopyKind::kDeviceToHost;
  if (r.dense()) {
    const std::size_t bytes = r.row_bytes * r.rows;
    if (from_host)
      gpu.Check(driver.cuMemcpyHtoDAsync_v2(Address(r.dst), r.src, bytes, stream), "cuMemcpyHtoDAsync", doing);
    else if (to_host)
      gpu.Check(driver.cuMemcpyDtoHAsync_v2(r.dst, Address(r.src), bytes, stream), "cuMemcpyDtoHAsync", doing);
    else
      gpu.Check(driver.cuMemcpyDtoDAsync_v2(Address(r.dst), Address(r.src), bytes, stream), "cuMemcpyDtoDAsync", doing);
    return;
  }
  Memcpy2D copy;
  copy.src_type = from_host ? kHostMemory : kDeviceMemory;
  if (from_host) copy.src_host = r.src;
  else copy.src_device = Address(r.src);
  copy.src_pitch = r.src_pitch;
  copy.dst_type = to_host ? kHostMemory : kDeviceMemory;
  if (to_host) copy.dst_host = r.dst;
  else copy.dst_device = Address(r.dst);
  copy.dst_pitch = r.dst_pitch;
  copy.width = r.row_bytes;
  copy.height = r.rows;
  gpu.Check(driver.cuMemcpy2DAsync_v2(&copy, stream), "cuMemcpy2DAsync", doing);
}

// From one device to another.
void AcrossDevices(Gpu& gpu, int to, int from, const Rows& r, StreamHandle stream) {
  Gpu &source = Gpu::At(from), &destination = Gpu::At(to);
  source.memory->ShareWith(destination);
  destination.memory->ShareWith(source);
  const std::string doing = detail::Concat("copying from GPU ", from, " to GPU ", to);
  if (r.dense()) {
    const std::size_t bytes = r.row_bytes * r.rows;
    gpu.Check(gpu.driver.cuMemcpyPeerAsync(Address(r.dst), destination.context, Address(r.src), source.context, bytes,
                                           stream),
              "cuMemcpyPeerAsync", doing);
    return;
  }
  Memcpy3DPeer copy;
  copy.src.device = Address(r.src);
  copy.src.context = source.context;
  copy.src.pitch = r.src_pitch;
  copy.dst.device = Address(r.dst);
  copy.dst.context = destination.context;
  copy.dst.pitch = r.dst_pitch;
  copy.width = r.row_bytes;
  copy.height = r.rows;
  gpu.Check(gpu.driver.cuMemcpy3DPeerAsync(&copy, stream), "cuMemcpy3DPeerAsync", doing);
}

// From ordinary host memory, piece by piece: it has been read when this returns, and what the stream did before is
// not waited for.
void ThroughStaging(StreamState& state, const Rows& r, const char* doing) {
  const std::lock_guard lock(state.staging.mutex);
  const Rows whole =
      r.dense() ? Rows{r.dst, r.row_bytes * r.rows, r.src, r.row_bytes * r.rows, r.row_bytes * r.rows, 1} : r;
  const std::size_t width = std::min(whole.row_bytes, Staging::kBlockBytes);
  const std::size_t height = std::min(whole.rows, Staging::kBlockBytes / width);
  for (std::size_t y = 0; y < whole.rows; y += height)
    for (std::size_t x = 0; x < whole.row_bytes; x += width) {
      const std::size_t columns = std::min(width, whole.row_bytes - x), rows = std::min(height, whole.rows - y);
      char* const place = state.staging.Place(columns * rows, state.handle);
      for (std::size_t k = 0; k < rows; ++k)
        std::memcpy(place + k * columns, static_cast<const char*>(whole.src) + (y + k) * whole.src_pitch + x, columns);
      char* const dst = static_cast<char*>(whole.dst) + y * whole.dst_pitch + x;
      Direct(state.gpu, CopyKind::kHostToDevice, {dst, whole.dst_pitch, place, columns, columns, rows}, state.handle,
             doing);
    }
}

}  // namespace

void library::Copy(CopyKind kind, void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
                   std::size_t row_bytes, std::size_t rows, StreamHandle stream) {
  if (row_bytes == 0 || rows == 0) return;
  const bool from_host = kind == CopyKind::kHostToDevice, to_host = kind == CopyKind::kDeviceToHost;
  const char* const doing = from_host ? "copying from host to GPU"
                            : to_host ? "copying from GPU to host"
                                      : "copying on the GPU";
  Require(dst != nullptr && src != nullptr, doing, ": the ", dst == nullptr ? "destination" : "source", " is null");
  Require(rows == 1 || (dst_pitch >= row_bytes && src_pitch >= row_bytes), doing, ": rows of ", row_bytes,
          " bytes begin ", dst_pitch, " and ", src_pitch, " bytes apart and would overlap");
  const auto state = StateOf(stream);
  Gpu& gpu = state->gpu;
  const Using use(gpu);
  const Place to = PlaceOf(gpu, dst), from = PlaceOf(gpu, src);
  RequireSide(!to_host, to, doing, "destination", dst);
  RequireSide(!from_host, from, doing, "source", src);
  const Rows r{dst, dst_pitch, src, src_pitch, row_bytes, rows};
  if (to.where == Where::kDevice && from.where == Where::kDevice && to.device != from.device)
    AcrossDevices(gpu, to.device, from.device, r, stream);
  else if (from.where == Where::kPageable && stream != nullptr && !state->IsCaptured())
    ThroughStaging(*state, r, doing);
  else Direct(gpu, kind, r, stream, doing);
  for (const Place& place : {to, from})
    if (place.where == Where::kDevice && place.device != gpu.ordinal) state->Reach(Gpu::At(place.device));
  // Pageable memory holds what was copied when the call returns; the driver promises less.
  if (stream == nullptr || (to.where == Where::kPageable && !state->IsCaptured()))
    gpu.Check(gpu.driver.cuStreamSynchronize(stream), "cuStreamSynchronize", doing);
}

}  // namespace umbra::cuda
