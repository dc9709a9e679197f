// What the rest of Umbra calls of libumbra_cuda: a table of functions, and the states of objects that it makes. A
// program that uses no GPU does without the library; it is opened at the first call, unless the program is linked to
// it.
#ifndef UMBRA_RUNTIME_CUDA_LIBRARY_H_
#define UMBRA_RUNTIME_CUDA_LIBRARY_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda_kernel.h"
#include "runtime/opened_library.h"
#include "umbra/cuda.h"
#include "umbra/cuda_call_site.h"
#include "umbra/cuda_gemm.h"

namespace umbra::cuda {

using runtime::OpenedLibrary;

struct Event::State {
  virtual ~State() = default;
  virtual bool IsDone() = 0;
  virtual void Wait() = 0;
  virtual double MillisecondsSince(const State& earlier) = 0;
  virtual void HoldUp(StreamHandle stream) = 0;  ///< until the event
};

struct Graph::State {
  virtual ~State() = default;
  virtual void Launch(StreamHandle stream) = 0;
};

struct Kernel::State {
  virtual ~State() = default;
  virtual void Launch(const LaunchShape& shape, const void* arguments, std::size_t argument_bytes,
                      StreamHandle stream) = 0;
  virtual KernelResources Resources(int device) = 0;
  virtual int BlocksPerMultiprocessor(int device, int threads, std::size_t shared_bytes) = 0;
  virtual const std::string& name() const = 0;
};

using CallSiteState = runtime::CudaCallSite::State;

// Each row: name, result, parameters, arguments.

/// The functions of umbra/cuda.h and umbra/cuda_gemm.h that may throw.
#define UMBRA_CUDA_FUNCTIONS_OF_USERS(F)                                                                             \
  F(SetDevice, void, (int device), (device))                                                                         \
  F(Properties, const DeviceProperties&, (int device), (device))                                                     \
  F(Allocate, void*, (std::size_t row_bytes, std::size_t rows, std::size_t * pitch), (row_bytes, rows, pitch))       \
  F(AllocateInOrder, void*, (std::size_t bytes, StreamHandle stream), (bytes, stream))                               \
  F(AllocatePinned, void*, (std::size_t bytes), (bytes))                                                             \
  F(GetMemoryStatistics, MemoryStatistics, (int device), (device))                                                   \
  F(SetMemoryLimit, void, (int device, std::size_t bytes), (device, bytes))                                          \
  F(TrimMemory, void, (int device), (device))                                                                        \
  F(CheckDeviceMemory, void, (const void* memory, std::size_t bytes, int device, const char* what),                  \
    (memory, bytes, device, what))                                                                                   \
  F(Copy, void,                                                                                                      \
    (CopyKind kind, void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch, std::size_t row_bytes, \
     std::size_t rows, StreamHandle stream),                                                                         \
    (kind, dst, dst_pitch, src, src_pitch, row_bytes, rows, stream))                                                 \
  F(NewStream, StreamHandle, (const void* owner), (owner))                                                           \
  F(HandleOf, StreamHandle, (const void* owner), (owner))                                                            \
  F(Wait, void, (StreamHandle stream), (stream))                                                                     \
  F(IsIdle, bool, (StreamHandle stream), (stream))                                                                   \
  F(DeviceOf, int, (StreamHandle stream), (stream))                                                                  \
  F(CreateBlasHandle, void, (StreamHandle stream), (stream))                                                         \
  F(DestroyBlasHandle, void, (StreamHandle stream), (stream))                                                        \
  F(WaitFor, void, (StreamHandle stream, StreamHandle other), (stream, other))                                       \
  F(CanRun, bool, (const Gemm& gemm, StreamHandle stream), (gemm, stream))                                           \
  F(Run, void, (const Gemm& gemm, StreamHandle stream), (gemm, stream))
/// Those that do not throw: without the library they do nothing and give 0.
#define UMBRA_CUDA_FUNCTIONS_THAT_DO_NOT_THROW(F)                             \
  F(DeviceCount, int, (), ())                                                 \
  F(CurrentDevice, int, (), ())                                               \
  F(Free, void, (void* memory), (memory))                                     \
  F(FreeInOrder, void, (void* memory, StreamHandle stream), (memory, stream)) \
  F(FreePinned, void, (void* memory), (memory))                               \
  F(DeleteStream, void, (StreamHandle stream), (stream))                      \
  F(AllowTf32, void, (bool allow), (allow))
/// What objects are made of, and what was found of NVIDIA's libraries.
#define UMBRA_CUDA_FUNCTIONS_OF_UMBRA(F)                                                                               \
  F(NewEvent, std::shared_ptr<Event::State>, (StreamHandle stream), (stream))                                          \
  F(NewGraph, std::shared_ptr<Graph::State>, (StreamHandle stream, const std::function<void()>& body), (stream, body)) \
  F(NewKernel, std::shared_ptr<Kernel::State>, (const std::string& name, std::vector<Image> images), (name, images))   \
  F(NewCallSite, std::shared_ptr<CallSiteState>, (std::shared_ptr<const runtime::Program> program), (program))         \
  F(DriverAsFound, const OpenedLibrary&, (), ())                                                                       \
  F(CublasAsFound, const OpenedLibrary&, (), ())

struct Library {
#define UMBRA_DECLARE_MEMBER(name, result, parameters, arguments) result(*name) parameters;
  UMBRA_CUDA_FUNCTIONS_OF_USERS(UMBRA_DECLARE_MEMBER)
  UMBRA_CUDA_FUNCTIONS_THAT_DO_NOT_THROW(UMBRA_DECLARE_MEMBER)
  UMBRA_CUDA_FUNCTIONS_OF_UMBRA(UMBRA_DECLARE_MEMBER)
#undef UMBRA_DECLARE_MEMBER
};

/// The library of this process, opened at the first call; `problem` says why there is none.
const OpenedLibrary& FindLibrary() noexcept;
/// Its functions. Throws umbra::Error, with what to do, if there is none.
const Library& UseLibrary();

}  // namespace umbra::cuda

namespace umbra::runtime {

struct CudaCallSite::State {
  virtual ~State() = default;
  virtual void Run(void* const* data, Layout layout, const umbra_scalar* scalars, cuda::StreamHandle stream) = 0;
  virtual void Run(const Arguments& arguments, const RunOptions& options) = 0;
};

}  // namespace umbra::runtime

/// The entry of libumbra_cuda.
extern "C" const umbra::cuda::Library* umbra_cuda_library();

#endif  // UMBRA_RUNTIME_CUDA_LIBRARY_H_
