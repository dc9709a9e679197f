// Tensors, copies and streams of a GPU against a stand-in for the driver, whose memory is the host's.
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "tests/support/cuda_stand_in.h"
#include "tests/support/testing.h"
#include "umbra/cuda_gemm.h"
#include "umbra/dynamic_tensor.h"
#include "umbra/tblob.h"
#include "umbra/tensor.h"

namespace umbra {
namespace {

const int kChosen = setenv("UMBRA_CUDA_DRIVER", UMBRA_CUDA_STAND_IN, 1);

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(kChosen, 0);
    SetDevice<gpu>(0);
  }
  void TearDown() override { EXPECT_EQ(stand_in::Allocations(), 0u); }
};

TensorContainer<cpu, 3> Numbers(index_t a, index_t b, index_t c) {
  TensorContainer<cpu, 3> t(Shape3(a, b, c));
  for (index_t i = 0; i < a; ++i)
    for (index_t j = 0; j < b; ++j)
      for (index_t k = 0; k < c; ++k) t[i][j][k] = static_cast<float>((i * b + j) * c + k);
  return t;
}

TEST_F(Cuda, CopiesAmongDevices) {
  static_assert(gpu::kDevMask == 2 && !gpu::kDevCPU && !Tensor<gpu, 2>::kDevCPU);
  const TensorContainer<cpu, 3> source = Numbers(2, 3, 5);
  for (const bool pad : {true, false})
    for (const bool in_stream : {true, false}) {
      Stream<gpu>* const stream = in_stream ? NewStream<gpu>() : nullptr;
      TensorContainer<gpu, 3> there(pad), there_too(true);
      there.Resize(source.shape_);
      there_too.Resize(source.shape_);
      EXPECT_EQ(there.stride_, pad ? 32 : 5);
      Copy<3, float>(there, source, stream);
      Copy<3, float>(there_too, there, stream);
      TensorContainer<cpu, 3> back(source.shape_, 0.0f, false);
      Copy<3, float>(back, there_too, stream);
      if (in_stream) {
        stream->Wait();
        EXPECT_TRUE(stream->CheckIdle());
        DeleteStream(stream);
      }
      for (index_t k = 0; k < 30; ++k) EXPECT_EQ(back.dptr_[k], static_cast<float>(k));
    }
}

TEST_F(Cuda, ContainersOwnTheirMemory) {
  TensorContainer<gpu, 2> a(Shape2(3, 7), 2.5f);
  TensorContainer<gpu, 2> copy(a), moved(std::move(copy));
  EXPECT_EQ(stand_in::Allocations(), 2u);
  EXPECT_EQ(copy.dptr_, nullptr);
  TensorContainer<cpu, 2> host(a.shape_);
  Copy<2, float>(host, moved);
  EXPECT_EQ(host[2][6], 2.5f);
  Tensor<gpu, 1, double> made = NewTensor<gpu>(Shape1(9), 4.0);
  TensorContainer<cpu, 1, double> numbers(Shape1(9));
  Copy<1, double>(numbers, made);
  EXPECT_EQ(numbers[8], 4.0);
  FreeSpace(&made);
  TensorContainer<gpu, 2> empty(Shape2(0, 7));
  EXPECT_EQ(empty.dptr_, nullptr);
  Copy<2, float>(empty, TensorContainer<cpu, 2>(Shape2(0, 7)));
}

struct Bytes {
  std::string bytes;
  std::size_t at = 0;
  void Write(const void* data, std::size_t size) { bytes.append(static_cast<const char*>(data), size); }
  std::size_t Read(void* data, std::size_t size) {
    const std::size_t given = std::min(size, bytes.size() - at);
    std::memcpy(data, bytes.data() + at, given);
    at += given;
    return given;
  }
};

TEST_F(Cuda, TensorsAsBytes) {
  const TensorContainer<cpu, 3> source = Numbers(2, 3, 5);
  for (const bool in_stream : {true, false}) {
    Stream<gpu>* const stream = in_stream ? NewStream<gpu>() : nullptr;
    TensorContainer<gpu, 3> there(source.shape_), known(source.shape_, 7.0f), grows(Shape3(1, 1, 1), 7.0f);
    for (auto* t : {&there, &known, &grows}) t->set_stream(stream);
    Copy<3, float>(there, source, stream);
    Bytes of_host, of_gpu;
    SaveBinary(of_host, source);
    SaveBinary(of_gpu, there);
    EXPECT_EQ(of_gpu.bytes, of_host.bytes);
    Bytes again{of_gpu.bytes}, third{of_gpu.bytes}, fourth{of_gpu.bytes};
    LoadBinary(again, &known, true);
    LoadBinary(third, &grows, false);
    Tensor<gpu, 3> fresh;
    fresh.stream_ = stream;
    LoadBinary(fourth, &fresh, false);
    EXPECT_EQ(fresh.stream_, stream);
    for (const Tensor<gpu, 3>& read :
         {static_cast<Tensor<gpu, 3>&>(known), static_cast<Tensor<gpu, 3>&>(grows), fresh}) {
      ASSERT_EQ(read.shape_, source.shape_);
      TensorContainer<cpu, 3> back(source.shape_, 0.0f, false);
      Copy<3, float>(back, read, stream);
      if (in_stream) stream->Wait();
      for (index_t k = 0; k < 30; ++k) EXPECT_EQ(back.dptr_[k], static_cast<float>(k));
    }
    FreeSpace(&fresh);
    Bytes cut{of_gpu.bytes.substr(0, 60)}, other{of_gpu.bytes};
    EXPECT_SAYS("the input ends within a tensor", LoadBinary(cut, &fresh, false));
    EXPECT_EQ(fresh.dptr_, nullptr);
    TensorContainer<gpu, 3> wrong(Shape3(5, 3, 2));
    EXPECT_SAYS("the input has shape (2,3,5), the tensor (5,3,2)", LoadBinary(other, &wrong, true));
    const std::size_t before = stand_in::Allocations();
    Bytes refused{of_gpu.bytes};
    stand_in::Fail("cuMemcpy2DAsync_v2", 1);
    EXPECT_SAYS("copying from host to GPU", LoadBinary(refused, &fresh, false));
    EXPECT_EQ(fresh.dptr_, nullptr);
    EXPECT_EQ(stand_in::Allocations(), before);
    if (in_stream) DeleteStream(stream);
  }
}

TEST_F(Cuda, NewTensorKeepsNothingIfFillingFails) {
  const std::size_t before = stand_in::Allocations();
  stand_in::Fail("cuMemcpyHtoDAsync_v2", 1);
  EXPECT_SAYS("copying from host to GPU", NewTensor<gpu>(Shape1(9), 4.0));
  EXPECT_EQ(stand_in::Allocations(), before);
}

TEST_F(Cuda, FailuresAreErrorsWithTheDriversWords) {
  TensorContainer<gpu, 1> a;
  stand_in::Fail("cuMemAllocFromPoolAsync", 2, 2);
  EXPECT_SAYS(
      "allocating 4000 bytes of GPU memory: GPU 0 has 1000 of 2000 bytes free, 0 are in use by Umbra; free some, or work on "
      "less at once (CUDA_ERROR_OUT_OF_MEMORY: out of memory (2))",
      a.Resize(Shape1(1000)));
  EXPECT_EQ(a.dptr_, nullptr);
  a.Resize(Shape1(4));
  TensorContainer<cpu, 1> host(Shape1(4), 1.0f);
  stand_in::Fail("cuMemcpyHtoDAsync_v2", 1);
  EXPECT_SAYS("copying from host to GPU: cuMemcpyHtoDAsync gives CUDA_ERROR_INVALID_VALUE: what went wrong (1)",
              (Copy<1, float>(a, host)));
  Copy<1, float>(a, host);
  stand_in::Fail("cuStreamSynchronize", 1);
  EXPECT_SAYS("waiting for a CUDA stream: cuStreamSynchronize gives", cuda::Wait(nullptr));
  stand_in::Fail("cuStreamCreate", 2);
  EXPECT_SAYS("making a CUDA stream", NewStream<gpu>());
  stand_in::Fail("cuStreamQuery", 600);
  Stream<gpu> stream;
  EXPECT_FALSE(stream.CheckIdle());
  EXPECT_TRUE(stream.CheckIdle());
  EXPECT_SAYS("Copy: the shapes differ: (4,) and (3,)", (Copy<1, float>(a, TensorContainer<cpu, 1>(Shape1(3)))));
  EXPECT_SAYS("has no memory", (Copy<1, float>(Tensor<gpu, 1>(Shape1(4)), host)));
}

// A pointer of the host where one of the device is expected.
TEST_F(Cuda, HostPointerOnTheDevice) {
  TensorContainer<cpu, 1> host(Shape1(4), 1.0f);
  EXPECT_SAYS("copying on the GPU: the destination (0x",
              (Copy<1, float>(Tensor<gpu, 1>(host.dptr_, host.shape_), Tensor<gpu, 1>(host.dptr_, host.shape_))));
}

TEST_F(Cuda, DynamicTensorsCrossDevices) {
  DynamicTensor host({2, 3}, std::vector<float>{0, 1, 2, 3, 4, 5});
  DynamicTensor there({1}, gpu::kDevMask), there_too({6}, gpu::kDevMask), back;
  there.CopyFrom(host);
  EXPECT_EQ(there.dev_mask(), gpu::kDevMask);
  Stream<gpu> stream;
  there_too.CopyFrom(there, &stream);
  there_too.Extend(2, 50);  // keeps the elements, on the device
  there_too.ShrinkTo(2);
  back.CopyFrom(there_too);
  EXPECT_EQ(back.dims(), (DynamicTensor::Dims{2, 3}));
  for (int k = 0; k < 6; ++k) EXPECT_EQ(back.data<float>()[k], static_cast<float>(k));
  const float* const memory = back.data<float>();
  back.CopyFrom(there);
  EXPECT_EQ(back.data<float>(), memory);
  DynamicTensor words({1}, std::vector<std::string>{"a"});
  EXPECT_SAYS("cannot lie on a GPU", there.CopyFrom(words));
  EXPECT_SAYS("device mask 7 is none", DynamicTensor({1}, 7));
}

TEST_F(Cuda, BlobsOfTensors) {
  SetDevice<gpu>(1);
  TensorContainer<gpu, 2> t(Shape2(2, 3), 1.0f);
  const TBlob blob(t);
  EXPECT_EQ(blob.dev_mask(), gpu::kDevMask);
  EXPECT_EQ(blob.dev_id(), 1);
  EXPECT_EQ((blob.get<gpu, 2, float>().dptr_), t.dptr_);
  EXPECT_SAYS("device mask", (blob.get<cpu, 2, float>()));
}

TEST_F(Cuda, Devices) {
  EXPECT_EQ(cuda::DeviceCount(), 2);
  InitTensorEngine<gpu>(1);
  EXPECT_EQ(cuda::CurrentDevice(), 1);
  std::thread([] { EXPECT_EQ(cuda::CurrentDevice(), 0); }).join();
  EXPECT_SAYS("GPU 2 was asked for; the machine has 2", SetDevice<gpu>(2));
  EXPECT_SAYS("GPU -1 was asked for", SetDevice<gpu>(-1));
  EXPECT_EQ(cuda::CurrentDevice(), 1);
  ShutdownTensorEngine<gpu>();
  const int retained = stand_in::Calls("cuDevicePrimaryCtxRetain");
  SetDevice<gpu>(1);
  EXPECT_EQ(stand_in::Calls("cuDevicePrimaryCtxRetain"), retained);
}

// Each in a process of its own, which opens its driver anew; the exit code is the number of devices.
void UseAGpu(const char* variable, const char* value) {
  setenv(variable, value, 1);
  std::fputs(MessageOf([] { SetDevice<gpu>(0); }).c_str(), stderr);
  std::exit(cuda::DeviceCount());
}

TEST(CudaDeathTest, WithoutADriver) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(UseAGpu("UMBRA_CUDA_DRIVER", "/none.so"), ::testing::ExitedWithCode(0),
              "there is no CUDA driver .*/none.so");
  EXPECT_EXIT(UseAGpu("UMBRA_CUDA_DRIVER", "libm.so.6"), ::testing::ExitedWithCode(0),
              ".libm.so.6. has no cuInit: it is too old; install NVIDIA's driver 525 or newer");
  EXPECT_EXIT(UseAGpu("STAND_IN_VERSION", "11080"), ::testing::ExitedWithCode(0),
              "supports CUDA 11.8: it is too old; install NVIDIA's driver 525");
  EXPECT_EXIT(UseAGpu("STAND_IN_CANNOT_INIT", "1"), ::testing::ExitedWithCode(0),
              "cannot be used: CUDA_ERROR_NO_DEVICE: no CUDA-capable device");
}

// What asks for something says why it cannot be had; what gives something back does nothing.
void UseNoLibrary() {
  setenv("UMBRA_CUDA_LIBRARY", "/none.so", 1);
  int memory = 0;
  cuda::Free(&memory);
  cuda::FreeInOrder(&memory, nullptr);
  cuda::FreePinned(&memory);
  cuda::DeleteStream(&memory);
  cuda::AllowTf32(true);
  std::fputs(MessageOf([] { Stream<gpu> stream; }).c_str(), stderr);
  std::fputs(MessageOf([] { DynamicTensor({1}, gpu::kDevMask).mutable_data<float>(); }).c_str(), stderr);
  std::exit(cuda::DeviceCount() + cuda::CurrentDevice());
}

TEST(CudaDeathTest, WithoutUmbrasLibrary) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string problem =
      "Umbra's library for GPUs cannot be opened: /none.so: .*install the Debian package libumbra-cuda";
  EXPECT_EXIT(UseNoLibrary(), ::testing::ExitedWithCode(0), problem + ".*" + problem);
  EXPECT_EXIT(UseAGpu("UMBRA_CUDA_LIBRARY", "libm.so.6"), ::testing::ExitedWithCode(0),
              "libm.so.6 is not libumbra_cuda of Umbra: it has no umbra_cuda_library");
}

}  // namespace
}  // namespace umbra
