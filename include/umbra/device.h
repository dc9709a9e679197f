// Devices and their streams.
#ifndef UMBRA_DEVICE_H_
#define UMBRA_DEVICE_H_

#include "umbra/cuda.h"
#include "umbra/error.h"

namespace umbra {

/// The host processor.
struct cpu {
  static constexpr bool kDevCPU = true;
  static constexpr int kDevMask = 1 << 0;
};
/// A CUDA device. Its functions are in umbra_runtime, which opens the driver when they are first called.
struct gpu {
  static constexpr bool kDevCPU = false;
  static constexpr int kDevMask = 1 << 1;
};

/// An order of computations on a device. Work on the CPU is done when a call returns.
template <typename Device>
struct Stream {
  void Wait() {}
  bool CheckIdle() { return true; }
  void CreateBlasHandle() {}
};
/// A CUDA stream of the device that was current when it was made.
template <>
struct Stream<gpu> {
  Stream() : handle_(cuda::NewStream()) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cuda::DeleteStream(handle_); }

  /// Returns when all work in the stream is done. Throws umbra::Error if some of it failed.
  void Wait() { cuda::Wait(handle_); }
  /// Is all work in the stream done?
  bool CheckIdle() { return cuda::IsIdle(handle_); }

  cuda::StreamHandle handle_;
};

/// Makes a device ready for use; the CPU always is. Throws umbra::Error if there is no such device.
template <typename Device>
inline void InitTensorEngine(int device = 0) {
  if constexpr (Device::kDevCPU)
    Require(device == 0, "InitTensorEngine: there is one CPU, number 0; ", device, " was given");
  else
    cuda::SetDevice(device);
}
template <typename Device>
inline void ShutdownTensorEngine() {}
/// The device that the calling thread works with from now on.
template <typename Device>
inline void SetDevice(int device) {
  if constexpr (Device::kDevCPU)
    Require(device == 0, "SetDevice: there is one CPU, number 0; ", device, " was given");
  else
    cuda::SetDevice(device);
}
/// A stream that the caller gives back with DeleteStream, on `device` or the thread's own.
template <typename Device>
inline Stream<Device>* NewStream(bool create_blas_handle = true, bool create_dnn_handle = false, int device = -1) {
  (void)create_blas_handle;
  (void)create_dnn_handle;
  if (device >= 0) SetDevice<Device>(device);
  return new Stream<Device>;
}
template <typename Device>
inline void DeleteStream(Stream<Device>* stream) {
  delete stream;
}

}  // namespace umbra

#endif  // UMBRA_DEVICE_H_
