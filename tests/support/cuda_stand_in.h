// What a test tells the stand-in for the CUDA driver, and what it asks of it.
#ifndef UMBRA_TESTS_SUPPORT_CUDA_STAND_IN_H_
#define UMBRA_TESTS_SUPPORT_CUDA_STAND_IN_H_

#include <array>
#include <cstddef>
#include <functional>
#include <string>

namespace umbra::stand_in {

/// The next `times` calls of `function` give `result`, after `behind` that do their work.
void Fail(const std::string& function, int result, int times = 1, int behind = 0);
int Calls(const std::string& function);
/// For stand-ins of libraries over the driver: counts a call of `function`, and says with what it fails; 0 if it does
/// not.
int Called(const std::string& function);
/// Blocks of device and pinned memory that have not been given back.
std::size_t Allocations();
/// Streams, events, graphs and modules that have not been destroyed.
std::size_t Objects();
void SetDevices(int count);
void SetVersion(int version);
/// Work is done as late as possible: when somebody waits for it. Otherwise at once.
void Defer(bool defer);
/// Memory that has been given back becomes free as soon as it may: its streams do their work before any others that
/// they do not wait for.
void FinishFrees();
/// Work given to `stream`, done in its order; an error ends the device, as a kernel's does.
int Enqueue(void* stream, std::function<int()> work);

struct Launch {
  std::array<unsigned, 3> grid, block;
  unsigned shared_bytes;
  std::string arguments;  ///< the bytes of the argument struct
};
/// What kernel `name` does. Images are texts: "image of NAME NAME ...".
void SetKernel(const std::string& name, std::function<int(const Launch&)> body);

}  // namespace umbra::stand_in

#endif  // UMBRA_TESTS_SUPPORT_CUDA_STAND_IN_H_
