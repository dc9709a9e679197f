// Memory and streams of CUDA devices. The driver is opened at the first call, so that a program which
// never uses a GPU runs without one. Every function throws umbra::Error, with the driver's own words, if
// there is no driver or device or the driver refuses.
#ifndef UMBRA_CUDA_H_
#define UMBRA_CUDA_H_

#include <cstddef>

namespace umbra::cuda {

/// A CUstream; null is the stream that waits for all others.
using StreamHandle = void*;

/// Number of devices; 0 without a driver. Does not throw.
int DeviceCount() noexcept;
/// The device of the calling thread; 0 until SetDevice.
int CurrentDevice() noexcept;
/// Makes `device` the one that the calling thread works with.
void SetDevice(int device);

/// Memory for `rows` rows of `row_bytes` bytes, which begin `*pitch` bytes apart; `*pitch` is `row_bytes` for
/// one row. Null for no bytes.
void* Allocate(std::size_t row_bytes, std::size_t rows, std::size_t* pitch);
/// Gives back what Allocate gave; null is allowed. Does not throw: it is called by destructors.
void Free(void* memory) noexcept;

/// Which memory the two sides of a copy lie in.
enum class CopyKind { kHostToDevice, kDeviceToHost, kDeviceToDevice };
/// Copies rows, in the order of the stream. With a null stream the copy is done when the call returns.
void Copy(CopyKind kind, void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
          std::size_t row_bytes, std::size_t rows, StreamHandle stream);

/// A stream of the current device. Throws umbra::Error as the driver reports it.
StreamHandle NewStream();
/// Gives back what NewStream gave; null is allowed. Does not throw: it is called by destructors.
void DeleteStream(StreamHandle stream) noexcept;
/// Returns when all that the stream was given is done. Throws umbra::Error if it failed.
void Wait(StreamHandle stream);
/// Is all that the stream was given done? Does not wait.
bool IsIdle(StreamHandle stream);

}  // namespace umbra::cuda

#endif  // UMBRA_CUDA_H_
