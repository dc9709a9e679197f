// Loading and launching kernels, and devices that fail, against a stand-in for the driver.
#include "runtime/cuda_kernel.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/support/cuda_stand_in.h"
#include "tests/support/testing.h"
#include "umbra/device.h"

namespace umbra {
namespace {

using cuda::Architecture;
using cuda::Image;
using cuda::ImageForm;
using cuda::Kernel;
using cuda::LaunchShape;

const int kChosen = setenv("UMBRA_CUDA_DRIVER", UMBRA_CUDA_STAND_IN, 1);

Image Cubin(const char* architecture, std::string bytes = "image of scale") {
  return {Architecture::Parse(architecture), ImageForm::kCubin, std::move(bytes)};
}
Image Ptx(const char* architecture, std::string bytes = "image of scale") {
  return {Architecture::Parse(architecture), ImageForm::kPtx, std::move(bytes)};
}

struct ScaleArguments {
  float* data;
  long long extent;
  double factor;
};

class CudaKernel : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(kChosen, 0);
    SetDevice<gpu>(1);
    SetDevice<gpu>(0);
    stand_in::Defer(true);
    objects_ = stand_in::Objects();
    stand_in::SetKernel("scale", [this](const stand_in::Launch& launch) {
      launch_ = launch;
      ScaleArguments args;
      EXPECT_EQ(launch.arguments.size(), sizeof args);
      std::memcpy(&args, launch.arguments.data(), sizeof args);
      for (long long i = 0; i < args.extent; ++i) args.data[i] *= static_cast<float>(args.factor);
      return 0;
    });
  }
  void TearDown() override {
    stand_in::Defer(false);
    EXPECT_EQ(stand_in::Allocations(), 0u);
    EXPECT_EQ(stand_in::Objects(), objects_);
  }
  stand_in::Launch launch_;
  std::size_t objects_ = 0;
};

struct Numbers {
  explicit Numbers(std::vector<float> values) : count(values.size()) {
    std::size_t pitch = 0;
    data = static_cast<float*>(cuda::Allocate(count * 4, 1, &pitch));
    cuda::Copy(cuda::CopyKind::kHostToDevice, data, 0, values.data(), 0, count * 4, 1, nullptr);
  }
  ~Numbers() { cuda::Free(data); }
  std::vector<float> Back(cuda::StreamHandle stream = nullptr) const {
    std::vector<float> values(count);
    cuda::Copy(cuda::CopyKind::kDeviceToHost, values.data(), 0, data, 0, count * 4, 1, stream);
    return values;
  }
  std::size_t count;
  float* data;
};

TEST_F(CudaKernel, LaunchesWithItsArguments) {
  const Kernel scale("scale", {Cubin("sm_90")});
  const Numbers x({1, 2, 3});
  Stream<gpu> stream;
  {
    ScaleArguments args{x.data, 3, 2.0};
    scale.Launch({{5, 2, 1}, {128, 1, 1}, 4096}, &args, sizeof args, stream.handle_);
    args.factor = 100;  // the bytes have been copied
  }
  EXPECT_FALSE(stream.CheckIdle());
  EXPECT_EQ(x.Back(stream.handle_), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(launch_.grid, (std::array<unsigned, 3>{5, 2, 1}));
  EXPECT_EQ(launch_.block[0], 128u);
  EXPECT_EQ(launch_.shared_bytes, 4096u);
  EXPECT_EQ(scale.name(), "scale");
  EXPECT_EQ(scale.Resources(0).registers, 40);
  EXPECT_EQ(scale.Resources(0).static_shared_bytes, 1024u);
  EXPECT_EQ(scale.BlocksPerMultiprocessor(0, 256, 0), 8);
  EXPECT_EQ(cuda::Properties(0).multiprocessors, 132);
  EXPECT_EQ(cuda::Properties(0).shared_per_block_opt_in, 232448u);
}

TEST_F(CudaKernel, IsLoadedOncePerDevice) {
  const int before = stand_in::Calls("cuModuleLoadDataEx");
  const Kernel scale("scale", {Cubin("sm_90")});
  const Numbers x({1});
  const ScaleArguments args{x.data, 1, 2.0};
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) threads.emplace_back([&] { scale.Launch({}, &args, sizeof args, nullptr); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stand_in::Calls("cuModuleLoadDataEx"), before + 1);
  EXPECT_EQ(x.Back(), std::vector<float>{16});
  SetDevice<gpu>(1);
  EXPECT_EQ(scale.Resources(1).registers, 40);
  EXPECT_EQ(stand_in::Calls("cuModuleLoadDataEx"), before + 2);
}

// Unloading waits for launches, and a graph keeps the code of its kernels.
TEST_F(CudaKernel, CodeLivesAsLongAsItsLaunches) {
  const Numbers x({1, 2, 3});
  Stream<gpu> stream;
  cuda::Graph graph;
  const ScaleArguments args{x.data, 3, 3.0};
  {
    const Kernel scale("scale", {Cubin("sm_90")});
    scale.Launch({}, &args, sizeof args, stream.handle_);
  }
  EXPECT_TRUE(stream.CheckIdle());
  const int unloaded = stand_in::Calls("cuStreamSynchronize");
  {
    const Kernel scale("scale", {Cubin("sm_90")});
    graph = stream.Capture([&] { scale.Launch({}, &args, sizeof args, stream.handle_); });
  }
  EXPECT_EQ(stand_in::Calls("cuStreamSynchronize"), unloaded);
  stream.Launch(graph);
  stream.Launch(graph);
  EXPECT_EQ(x.Back(stream.handle_), (std::vector<float>{27, 54, 81}));
}

TEST_F(CudaKernel, FailuresNameTheKernel) {
  const Numbers x({1});
  const ScaleArguments args{x.data, 1, 2.0};
  const auto launch = [&](const Kernel& kernel, const LaunchShape& shape = {}) {
    kernel.Launch(shape, &args, sizeof args, nullptr);
  };
  EXPECT_SAYS(
      "kernel 'scale' has no image for a GPU of compute capability 9.0: there is sm_80, sm_100 (PTX); compile it for sm_90 as well",
      launch(Kernel("scale", {Cubin("sm_80"), Ptx("sm_100")})));
  EXPECT_SAYS("there is none", launch(Kernel("scale", {})));
  EXPECT_SAYS(
      "loading kernel 'scale' (sm_90, PTX) to GPU 0:\nptxas: line 7: no such instruction: cuModuleLoadDataEx gives CUDA_ERROR_INVALID_PTX",
      launch(Kernel("scale", {Ptx("sm_90", "bad ptx")})));
  EXPECT_SAYS("loading kernel 'scale' (sm_90) to GPU 0: cuModuleLoadDataEx gives CUDA_ERROR_INVALID_IMAGE",
              launch(Kernel("scale", {Cubin("sm_90", "?")})));
  EXPECT_SAYS("loading kernel 'other'; the image holds other kernels", launch(Kernel("other", {Cubin("sm_90")})));
  stand_in::Fail("cuModuleLoadDataEx", 222);
  EXPECT_SAYS("the compiler is newer than the driver: update the driver, or use an NVRTC of the driver's CUDA version",
              launch(Kernel("scale", {Ptx("sm_90")})));
  const Kernel scale("scale", {Cubin("sm_90")});
  EXPECT_SAYS(
      "launching kernel 'scale' on GPU 0 with grid 1x70000x1, block 1x1x1, 0 bytes of dynamic shared memory and 24 bytes of arguments (the "
      "device has blocks of 1024 threads and 232448 bytes, and grids of 2147483647x65535x65535): cuLaunchKernel gives CUDA_ERROR_INVALID_VALUE",
      launch(scale, {{1, 70000, 1}, {1, 1, 1}, 0}));
  EXPECT_SAYS("cuLaunchKernel gives CUDA_ERROR_INVALID_VALUE", launch(scale, {{1, 1, 1}, {2048, 1, 1}, 0}));
  launch(scale);
  EXPECT_EQ(x.Back(), std::vector<float>{2});  // what was there is intact
}

// Whatever needs memory of the device, which may be all that loads code when it is first used: what is kept for reuse
// is given back, and it goes on.
TEST_F(CudaKernel, PressureGivesBackWhatIsKept) {
  const Numbers x({1});
  const ScaleArguments args{x.data, 1, 2.0};
  Stream<gpu> stream;
  float expected = 1;
  for (const char* function : {"cuModuleLoadDataEx", "cuModuleGetFunction", "cuFuncGetAttribute", "cuFuncSetAttribute",
                               "cuLaunchKernel", "cuGraphInstantiateWithFlags", "cuGraphLaunch"}) {
    const auto launch = [&] {
      const Kernel scale("scale", {Cubin("sm_90")});
      stream.Launch(stream.Capture([&] { scale.Launch({}, &args, sizeof args, stream.handle_); }));
    };
    const int trims = stand_in::Calls("cuMemPoolTrimTo");
    stand_in::Fail(function, 2);
    EXPECT_EQ(MessageOf(launch), "no error") << function;
    EXPECT_EQ(stand_in::Calls("cuMemPoolTrimTo"), trims + 1) << function;
    EXPECT_EQ(x.Back(stream.handle_), std::vector<float>{expected *= 2}) << function;
    stand_in::Fail(function, 2, 2);
    EXPECT_SAYS("out of memory", launch());
  }
}

TEST(CudaImage, ThePickIsTheBestThatRuns) {
  const auto picked = [](const std::vector<Image>& images, int major, int minor) {
    const Image& image = PickImage(images, major, minor, "k");
    return image.architecture.Name() + (image.form == ImageForm::kPtx ? "+ptx" : "");
  };
  const std::vector<Image> images = {Cubin("sm_80"), Cubin("sm_86"),  Cubin("sm_90"),  Ptx("sm_80"),
                                     Ptx("sm_90"),   Cubin("sm_90a"), Cubin("sm_100f")};
  EXPECT_EQ(picked(images, 8, 0), "sm_80");
  EXPECT_EQ(picked(images, 8, 9), "sm_86");
  EXPECT_EQ(picked(images, 9, 0), "sm_90a");
  EXPECT_EQ(picked(images, 10, 3), "sm_100f");
  EXPECT_EQ(picked(images, 12, 0), "sm_90+ptx");
  EXPECT_EQ(picked({Cubin("sm_90"), Ptx("sm_80")}, 8, 9), "sm_80+ptx");
  EXPECT_SAYS("no image for a GPU of compute capability 7.5", picked(images, 7, 5));
  EXPECT_SAYS("no image for a GPU of compute capability 10.0: there is sm_90a (PTX)", picked({Ptx("sm_90a")}, 10, 0));
}

TEST(CudaImage, TablesAreReadBackOrRefused) {
  const std::vector<Image> images = {Cubin("sm_90a", std::string("\0\1\2", 3)), Ptx("sm_80", ".version 9.0"),
                                     Cubin("sm_100", "")};
  const std::string packed = cuda::PackImages(images);
  const std::vector<Image> back = cuda::UnpackImages(packed);
  ASSERT_EQ(back.size(), images.size());
  for (std::size_t k = 0; k < back.size(); ++k) {
    EXPECT_EQ(back[k].architecture, images[k].architecture);
    EXPECT_EQ(back[k].form, images[k].form);
    EXPECT_EQ(back[k].bytes, images[k].bytes);
  }
  EXPECT_EQ(cuda::UnpackImages(cuda::PackImages({})).size(), 0u);
  for (std::size_t n = 0; n < packed.size(); ++n)
    EXPECT_SAYS("no table of GPU images, or are damaged", cuda::UnpackImages(std::string_view(packed).substr(0, n)));
  for (std::size_t n = 0; n < packed.size(); ++n) {
    std::string damaged = packed;
    damaged[n] = static_cast<char>(damaged[n] ^ 0x10);
    EXPECT_SAYS("no table of GPU images, or are damaged", cuda::UnpackImages(damaged));
  }
}

// In a process of its own: the device is lost for good. A kernel fails, and the error is found when waiting.
void LoseTheDevice() {
  SetDevice<gpu>(0);
  stand_in::Defer(true);
  stand_in::SetKernel("bad", [](const stand_in::Launch&) { return 700; });
  auto* const x = new Numbers({1, 2});
  auto* const stream = new Stream<gpu>;
  const Kernel bad("bad", {Cubin("sm_90", "image of bad")});
  bad.Launch({}, "", 0, stream->handle_);
  const cuda::Event event = stream->Record();
  std::string said = MessageOf([&] { stream->Wait(); });
  said += "|" + MessageOf([&] { event.Wait(); });
  const int calls =
      stand_in::Calls("cuStreamSynchronize") + stand_in::Calls("cuMemFreeAsync") + stand_in::Calls("cuStreamQuery");
  said += "|" + MessageOf([&] { stream->CheckIdle(); });
  said += "|" + MessageOf([&] { (void)x->Back(); });
  delete x;
  delete stream;
  if (stand_in::Calls("cuStreamSynchronize") + stand_in::Calls("cuMemFreeAsync") + stand_in::Calls("cuStreamQuery") !=
      calls)
    said += " the driver was called";
  SetDevice<gpu>(1);  // works on
  const Numbers there({3});
  said += "|" + std::to_string(there.Back()[0]);
  std::fputs(said.c_str(), stderr);
  std::_Exit(0);  // the driver keeps what it had of the lost device
}
TEST(CudaDeathTest, ADeviceFailsOnceAndClearly) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      LoseTheDevice(), ::testing::ExitedWithCode(0),
      "^GPU 0 .Stand-in. has failed: waiting for a CUDA stream: cuStreamSynchronize gives CUDA_ERROR_ILLEGAL_ADDRESS: what went wrong "
      ".700.; the kernel launched last is 'bad'. All memory on it is lost, and this process cannot use it any more: start a new one; "
      "with CUDA_LAUNCH_BLOCKING=1 .*"
      "[|]GPU 0 cannot be used any more in this process: it failed earlier with CUDA_ERROR_ILLEGAL_ADDRESS: what went wrong .700."
      "[|]GPU 0 cannot be used any more [^|]*[|]GPU 0 cannot be used any more [^|]*[|]3.0");
}

// What destructors find is told by the next call.
void LoseTheDeviceQuietly() {
  SetDevice<gpu>(0);
  std::size_t pitch = 0;
  void* const memory = cuda::Allocate(8, 1, &pitch);
  void* const more = cuda::Allocate(8, 1, &pitch);
  stand_in::Fail("cuMemFreeAsync", 719);
  cuda::Free(memory);
  cuda::Free(more);
  std::string said = MessageOf([&] { cuda::Allocate(8, 1, &pitch); });
  said += "|" + MessageOf([&] { cuda::Allocate(8, 1, &pitch); });
  std::fputs(said.c_str(), stderr);
  std::exit(0);
}
TEST(CudaDeathTest, AFailureInADestructorIsTold) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      LoseTheDeviceQuietly(), ::testing::ExitedWithCode(0),
      "^GPU 0 .Stand-in. has failed: giving back GPU memory: cuMemFreeAsync gives CUDA_ERROR_LAUNCH_FAILED.*no kernel of Umbra was launched "
      "before.*[|]GPU 0 cannot be used any more");
}

}  // namespace
}  // namespace umbra
