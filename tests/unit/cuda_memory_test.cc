// Memory, streams, events and graphs of a GPU against a stand-in for the driver, which works as late as it may.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/support/cuda_stand_in.h"
#include "tests/support/testing.h"
#include "umbra/device.h"

namespace umbra {
namespace {

using cuda::CopyKind;

const int kChosen = setenv("UMBRA_CUDA_DRIVER", UMBRA_CUDA_STAND_IN, 1);

class CudaMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(kChosen, 0);
    SetDevice<gpu>(0);
    SetDevice<gpu>(1);
    SetDevice<gpu>(0);
    stand_in::Defer(true);
    objects_ = stand_in::Objects();
  }
  void TearDown() override {
    stand_in::Defer(false);
    EXPECT_EQ(stand_in::Allocations(), 0u);
    EXPECT_EQ(stand_in::Objects(), objects_);
    EXPECT_EQ(cuda::GetMemoryStatistics(0).in_use, 0u);
  }
  std::size_t objects_ = 0;
};

void* Bytes(std::size_t n) {
  std::size_t pitch = 0;
  return cuda::Allocate(n, 1, &pitch);
}
void Upload(void* dst, const void* src, std::size_t n, cuda::StreamHandle stream) {
  cuda::Copy(CopyKind::kHostToDevice, dst, n, src, n, n, 1, stream);
}
void Download(void* dst, const void* src, std::size_t n, cuda::StreamHandle stream) {
  cuda::Copy(CopyKind::kDeviceToHost, dst, n, src, n, n, 1, stream);
}
void Move(void* dst, const void* src, std::size_t n, cuda::StreamHandle stream) {
  cuda::Copy(CopyKind::kDeviceToDevice, dst, n, src, n, n, 1, stream);
}

TEST_F(CudaMemory, RowsBeginAtLines) {
  std::size_t pitch = 0;
  void* const rows = cuda::Allocate(200, 3, &pitch);
  EXPECT_EQ(pitch, 256u);
  EXPECT_EQ(cuda::GetMemoryStatistics(0).in_use, 768u);
  cuda::Free(rows);
  void* const row = cuda::Allocate(200, 1, &pitch);
  EXPECT_EQ(pitch, 200u);
  cuda::Free(row);
  EXPECT_EQ(cuda::Allocate(0, 3, &pitch), nullptr);
  EXPECT_SAYS("more than memory can have", cuda::Allocate(std::numeric_limits<std::size_t>::max() / 2, 3, &pitch));
  EXPECT_SAYS("more than memory can have", cuda::Allocate(std::numeric_limits<std::size_t>::max(), 2, &pitch));
}

// What was given back is still there for all that streams were given before.
TEST_F(CudaMemory, FreeWaitsForEveryStreamButNotForTheHost) {
  Stream<gpu> one, two;
  const std::vector<int> numbers = {1, 2, 3, 4};
  void* const a = Bytes(16);
  void* const b = Bytes(16);
  Upload(a, numbers.data(), 16, one.handle_);
  two.WaitFor(one);
  Move(b, a, 16, two.handle_);
  cuda::Free(a);
  EXPECT_FALSE(two.CheckIdle());
  stand_in::FinishFrees();
  two.Wait();
  std::vector<int> back(4);
  Download(back.data(), b, 16, two.handle_);
  EXPECT_EQ(back, numbers);
  cuda::Free(b);
  EXPECT_EQ(stand_in::Allocations(), 1u);  // pinned memory of the first stream; nothing of the device
}

// A stream that is gone still has its work done, before memory that it uses is given back.
TEST_F(CudaMemory, FreeWaitsForDeletedStreams) {
  const std::vector<int> numbers = {1, 2, 3, 4};
  void* const a = Bytes(16);
  void* const b = Bytes(16);
  Upload(a, numbers.data(), 16, nullptr);
  auto* const stream = NewStream<gpu>();
  Move(b, a, 16, stream->handle_);
  DeleteStream(stream);
  cuda::Free(a);
  stand_in::FinishFrees();
  std::vector<int> back(4);
  Download(back.data(), b, 16, nullptr);
  EXPECT_EQ(back, numbers);
  cuda::Free(b);
}

// Neither the host nor a stream waits for the work that uses what was given back: other memory serves meanwhile.
TEST_F(CudaMemory, AllocateWaitsForNoWork) {
  Stream<gpu> one, two;
  const std::vector<int> numbers = {1, 2, 3, 4}, others = {5, 6, 7, 8};
  std::vector<int> back(4);
  void* const a = Bytes(16);
  void* const b = Bytes(16);
  Upload(a, numbers.data(), 16, one.handle_);
  Move(b, a, 16, one.handle_);
  cuda::Free(a);
  const int waits = stand_in::Calls("cuCtxSynchronize") + stand_in::Calls("cuEventSynchronize");
  void* const c = Bytes(16);
  void* const d = cuda::AllocateInOrder(16, two.handle_);
  Upload(c, others.data(), 16, two.handle_);
  Move(d, c, 16, two.handle_);
  Download(back.data(), d, 16, two.handle_);
  EXPECT_EQ(back, others);
  EXPECT_EQ(stand_in::Calls("cuCtxSynchronize") + stand_in::Calls("cuEventSynchronize"), waits);
  EXPECT_FALSE(one.CheckIdle());
  Download(back.data(), b, 16, one.handle_);
  EXPECT_EQ(back, numbers);
  cuda::FreeInOrder(d, two.handle_);
  cuda::Free(b);
  cuda::Free(c);
}

TEST_F(CudaMemory, InTheOrderOfAStream) {
  Stream<gpu> stream;
  void* const a = cuda::AllocateInOrder(100, stream.handle_);
  EXPECT_EQ(cuda::GetMemoryStatistics(0).in_use, 100u);
  cuda::FreeInOrder(a, stream.handle_);
  EXPECT_EQ(cuda::GetMemoryStatistics(0).in_use, 0u);
  EXPECT_FALSE(stream.CheckIdle());  // nobody has waited
  EXPECT_EQ(cuda::AllocateInOrder(0, stream.handle_), nullptr);
}

TEST_F(CudaMemory, LimitAndStatistics) {
  const std::uint64_t before = cuda::GetMemoryStatistics(0).allocations;
  cuda::SetMemoryLimit(0, 1000);
  void* const a = Bytes(600);
  EXPECT_SAYS(
      "allocating 500 bytes of GPU memory: 600 are in use, and the limit of GPU 0 is 1000; free some, or raise it",
      Bytes(500));
  void* const b = Bytes(400);
  const cuda::MemoryStatistics now = cuda::GetMemoryStatistics(0);
  EXPECT_EQ(now.in_use, 1000u);
  EXPECT_GE(now.peak_in_use, 1000u);
  EXPECT_EQ(now.limit, 1000u);
  EXPECT_EQ(now.reserved, 1000u);
  EXPECT_EQ(now.allocations, before + 2);
  EXPECT_EQ(now.device_total, 2000u);
  EXPECT_EQ(cuda::GetMemoryStatistics(1).in_use, 0u);
  cuda::Free(a);
  cuda::Free(b);
  cuda::SetMemoryLimit(0, std::numeric_limits<std::size_t>::max());
}

TEST_F(CudaMemory, PressureGivesBackWhatIsKept) {
  const int trims = stand_in::Calls("cuMemPoolTrimTo");
  stand_in::Fail("cuMemAllocFromPoolAsync", 2);
  void* const a = Bytes(600);
  EXPECT_NE(a, nullptr);
  EXPECT_EQ(stand_in::Calls("cuMemPoolTrimTo"), trims + 1);
  stand_in::Fail("cuMemAllocFromPoolAsync", 2, 2);
  EXPECT_SAYS("allocating 500 bytes of GPU memory: GPU 0 has 1000 of 2000 bytes free, 600 are in use by Umbra",
              Bytes(500));
  EXPECT_EQ(cuda::GetMemoryStatistics(0).in_use, 600u);
  cuda::TrimMemory(0);
  EXPECT_EQ(stand_in::Calls("cuMemPoolTrimTo"), trims + 3);
  cuda::Free(a);
}

// Only then is the work waited for that uses what was given back, and so it is while another stream is captured.
TEST_F(CudaMemory, PressureWaitsForWhatWasGivenBack) {
  Stream<gpu> one, two;
  const int number = 1;
  for (const bool captured : {false, true}) {
    void* const a = Bytes(600);
    Upload(a, &number, 4, one.handle_);
    cuda::Free(a);
    const auto take = [&] {
      EXPECT_FALSE(one.CheckIdle());
      stand_in::Fail("cuMemAllocFromPoolAsync", 2);
      void* const b = Bytes(600);
      EXPECT_TRUE(one.CheckIdle()) << captured;
      cuda::Free(b);
    };
    if (captured) two.Capture(take);
    else take();
  }
}

// Host memory may change as soon as Copy returns, though nothing has run; pinned memory is read in place.
TEST_F(CudaMemory, CopiesFromOrdinaryMemoryAreStaged) {
  Stream<gpu> stream;
  const std::size_t n = (std::size_t{9} << 20) + 12345;  // several blocks of pinned memory, and more
  std::vector<unsigned char> numbers(n), back(n);
  for (std::size_t k = 0; k < n; ++k) numbers[k] = static_cast<unsigned char>(k * 7 + k / 1000);
  const std::vector<unsigned char> kept = numbers;
  void* const a = Bytes(n);
  Upload(a, numbers.data(), n, stream.handle_);
  EXPECT_FALSE(stream.CheckIdle());
  std::fill(numbers.begin(), numbers.end(), 0);
  Download(back.data(), a, n, stream.handle_);
  EXPECT_EQ(back, kept);

  void* const pinned = cuda::AllocatePinned(16);
  std::memset(pinned, 1, 16);
  Upload(a, pinned, 16, stream.handle_);
  std::memset(pinned, 2, 16);
  stream.Wait();
  Download(back.data(), a, 16, stream.handle_);
  EXPECT_EQ(back[0], 2);
  std::thread([&] { cuda::FreePinned(pinned); }).join();  // a thread that has used no GPU before
  cuda::Free(a);
}

TEST_F(CudaMemory, RowsOfAnyWidthAreStaged) {
  Stream<gpu> stream;
  for (const std::size_t width : {std::size_t{3}, std::size_t{1000}, (std::size_t{5} << 20) + 1}) {
    const std::size_t rows = width > 1000 ? 3 : 9000, host_pitch = width + 5;
    std::vector<unsigned char> numbers(rows * host_pitch), back(rows * width);
    for (std::size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<unsigned char>(k % 251);
    std::size_t pitch = 0;
    void* const a = cuda::Allocate(width, rows, &pitch);
    cuda::Copy(CopyKind::kHostToDevice, a, pitch, numbers.data(), host_pitch, width, rows, stream.handle_);
    cuda::Copy(CopyKind::kDeviceToHost, back.data(), width, a, pitch, width, rows, stream.handle_);
    for (std::size_t y = 0; y < rows; ++y)
      ASSERT_EQ(std::memcmp(&back[y * width], &numbers[y * host_pitch], width), 0) << y;
    cuda::Free(a);
  }
  EXPECT_SAYS("would overlap", cuda::Copy(CopyKind::kHostToDevice, &stream, 4, &stream, 4, 5, 2, nullptr));
}

TEST_F(CudaMemory, CopiesAcrossDevices) {
  std::vector<int> numbers(12), back(12);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::size_t pitch = 0, pitch_there = 0;
  void* const here = cuda::Allocate(16, 3, &pitch);
  SetDevice<gpu>(1);
  void* const there = cuda::Allocate(16, 3, &pitch_there);
  Stream<gpu> stream;
  EXPECT_EQ(stream.device(), 1);
  SetDevice<gpu>(0);
  cuda::Copy(CopyKind::kHostToDevice, here, pitch, numbers.data(), 16, 16, 3, nullptr);
  const int before = stand_in::Calls("cuMemcpy3DPeerAsync");
  cuda::Copy(CopyKind::kDeviceToDevice, there, pitch_there, here, pitch, 16, 3, stream.handle_);
  EXPECT_EQ(stand_in::Calls("cuMemcpy3DPeerAsync"), before + 1);
  cuda::Copy(CopyKind::kDeviceToHost, back.data(), 16, there, pitch_there, 16, 3, stream.handle_);
  EXPECT_EQ(back, numbers);
  // Rows that lie side by side are one run of bytes: as rows the driver takes none of 2 GiB or more.
  std::fill(back.begin(), back.end(), 0);
  Move(there, here, 384, stream.handle_);
  EXPECT_EQ(stand_in::Calls("cuMemcpy3DPeerAsync"), before + 1);
  EXPECT_EQ(stand_in::Calls("cuMemcpyPeerAsync"), 1);
  cuda::Copy(CopyKind::kDeviceToHost, back.data(), 16, there, pitch_there, 16, 3, stream.handle_);
  EXPECT_EQ(back, numbers);
  EXPECT_EQ(cuda::GetMemoryStatistics(1).in_use, 384u);
  cuda::Free(here);
  cuda::Free(there);
}

// A stream may copy from and to memory of other GPUs, which lives until it has come so far, and as long as its graphs.
TEST_F(CudaMemory, FreeWaitsForStreamsOfOtherDevices) {
  const std::vector<int> numbers = {1, 2, 3, 4};
  SetDevice<gpu>(1);
  Stream<gpu> there;
  void* const result = Bytes(16);
  SetDevice<gpu>(0);
  void* const pinned = cuda::AllocatePinned(16);
  const std::function<void(void*)> to_the_other = [&](void* memory) { Move(result, memory, 16, there.handle_); };
  const std::function<void(void*)> to_the_host = [&](void* memory) {
    Download(pinned, memory, 16, there.handle_);
    Upload(result, pinned, 16, there.handle_);
  };
  const std::function<void(void*)> free = cuda::Free;
  const std::function<void(void*)> free_in_order = [&](void* memory) { cuda::FreeInOrder(memory, there.handle_); };
  for (const auto& copy : {to_the_other, to_the_host})
    for (const auto& give_back : {free, free_in_order})
      for (const bool captured : {false, true})
        for (const bool meanwhile : {false, true}) {
          SCOPED_TRACE(testing::Message() << captured << meanwhile);
          std::vector<int> back(4);
          void* const memory = Bytes(16);
          Upload(memory, numbers.data(), 16, nullptr);
          const auto work = [&] {
            copy(memory);
            if (meanwhile) give_back(memory);
          };
          cuda::Graph graph;
          if (captured) {
            graph = there.Capture(work);
            stand_in::FinishFrees();
            there.Launch(graph);
          } else {
            work();
          }
          if (!meanwhile) give_back(memory);
          graph = {};
          stand_in::FinishFrees();
          Download(back.data(), result, 16, there.handle_);
          ASSERT_EQ(back, numbers);
        }
  cuda::FreePinned(pinned);
  cuda::Free(result);
}

TEST_F(CudaMemory, MemoryThatIsNotTheDevices) {
  int host = 0;
  void* const a = Bytes(16);
  cuda::CheckDeviceMemory(static_cast<char*>(a) + 4, 12, 0, "operand 'x'");
  cuda::CheckDeviceMemory(nullptr, 0, 0, "operand 'x'");
  EXPECT_SAYS("operand 'x' is null; memory of GPU 0 is expected",
              cuda::CheckDeviceMemory(nullptr, 4, 0, "operand 'x'"));
  EXPECT_SAYS("operand 'x' is memory of the host (0x", cuda::CheckDeviceMemory(&host, 4, 0, "operand 'x'"));
  EXPECT_SAYS("operand 'x' is memory of GPU 0, and the work is on GPU 1; copy it there, or use a stream of GPU 0",
              cuda::CheckDeviceMemory(a, 4, 1, "operand 'x'"));
  EXPECT_SAYS("operand 'x' has 13 bytes, of which 1 lie behind the end of its allocation",
              cuda::CheckDeviceMemory(static_cast<char*>(a) + 4, 13, 0, "operand 'x'"));
  EXPECT_SAYS("copying from host to GPU: the source (0x", Upload(a, a, 4, nullptr));
  EXPECT_SAYS("is memory of GPU 0, where memory of the host is expected", Upload(a, a, 4, nullptr));
  EXPECT_SAYS("the destination is null", Upload(nullptr, &host, 4, nullptr));
  cuda::Free(a);
}

TEST_F(CudaMemory, StreamsAndEvents) {
  Stream<gpu> one, two;
  const std::vector<int> numbers = {5, 6, 7, 8};
  std::vector<int> back(4);
  void* const a = Bytes(16);
  void* const b = Bytes(16);
  Upload(a, numbers.data(), 16, one.handle_);
  const cuda::Event uploaded = one.Record();
  EXPECT_FALSE(uploaded.IsDone());
  two.WaitFor(uploaded);
  Move(b, a, 16, two.handle_);
  const cuda::Event moved = two.Record();
  moved.Wait();
  EXPECT_TRUE(uploaded.IsDone());
  EXPECT_TRUE(moved.IsDone());
  EXPECT_EQ(moved.MillisecondsSince(uploaded), 1.5);
  Download(back.data(), b, 16, two.handle_);
  EXPECT_EQ(back, numbers);
  EXPECT_SAYS("no stream has recorded", cuda::Event().Wait());
  SetDevice<gpu>(1);
  Stream<gpu> other;
  EXPECT_SAYS("one is of GPU 0, the other of GPU 1", other.Record().MillisecondsSince(moved));
  cuda::Free(a);
  cuda::Free(b);
}

// The stream without a handle is that of the thread's GPU, whichever GPU the other stream belongs to.
TEST_F(CudaMemory, StreamsOfTwoDevices) {
  SetDevice<gpu>(1);
  Stream<gpu> there;
  SetDevice<gpu>(0);
  Stream<gpu> here;
  for (const cuda::StreamHandle waiting : {here.handle_, cuda::StreamHandle()}) {
    bool done = false, in_order = false;
    stand_in::Enqueue(there.handle_, [&] { return done = true, 0; });
    cuda::WaitFor(waiting, there.handle_);
    stand_in::Enqueue(waiting, [&] { return in_order = done, 0; });
    cuda::Wait(waiting);
    EXPECT_TRUE(in_order);
  }
  bool done = false;
  stand_in::Enqueue(here.handle_, [&] { return done = true, 0; });
  cuda::WaitFor(there.handle_, cuda::StreamHandle());  // which waits for all of its GPU
  there.Wait();
  EXPECT_TRUE(done);
}

TEST_F(CudaMemory, StreamsUsedAfterDeletion) {
  auto* const stream = NewStream<gpu>();
  const cuda::StreamHandle handle = stream->handle_;
  EXPECT_EQ(Stream<gpu>::GetStream(stream), handle);
  EXPECT_EQ(Stream<gpu>::GetStream(nullptr), nullptr);
  DeleteStream(stream);
  EXPECT_SAYS("a Stream<gpu> is used after it was deleted", Stream<gpu>::GetStream(stream));
  EXPECT_SAYS("a CUDA stream is used that was deleted", cuda::Wait(handle));
  EXPECT_SAYS("a CUDA stream is used that was deleted", cuda::WaitFor(handle, cuda::StreamHandle()));
  cuda::DeleteStream(handle);
}

TEST_F(CudaMemory, GraphsRepeatASequence) {
  Stream<gpu> stream;
  const std::vector<int> numbers = {1, 2, 3, 4}, others = {5, 6, 7, 8};
  std::vector<int> back(4);
  void* const a = Bytes(16);
  void* const b = Bytes(16);
  void* reused = nullptr;
  {
    cuda::Graph graph = stream.Capture([&] {
      void* const temporary = cuda::AllocateInOrder(16, stream.handle_);
      Move(temporary, a, 16, stream.handle_);
      Move(b, temporary, 16, stream.handle_);
      cuda::FreeInOrder(temporary, stream.handle_);
      reused = cuda::AllocateInOrder(12, stream.handle_);
      EXPECT_EQ(reused, temporary);
      cuda::FreeInOrder(reused, stream.handle_);
      void* const mine = Bytes(32);
      cuda::Free(mine);  // the graph may use it: it keeps it
    });
    EXPECT_TRUE(graph);
    EXPECT_EQ(cuda::GetMemoryStatistics(0).in_use, 80u);
    for (const auto& source : {numbers, others}) {
      Upload(a, source.data(), 16, stream.handle_);
      stream.Launch(graph);
      Download(back.data(), b, 16, stream.handle_);
      EXPECT_EQ(back, source);
    }
    Upload(a, numbers.data(), 16, stream.handle_);
    stream.Launch(graph);
  }  // launched, and gone before it runs
  Download(back.data(), b, 16, stream.handle_);
  EXPECT_EQ(back, numbers);
  EXPECT_EQ(cuda::GetMemoryStatistics(0).in_use, 32u);
  cuda::Free(a);
  cuda::Free(b);
}

// Memory that is given back while a stream is captured may still be read in another, whoever gave it back.
TEST_F(CudaMemory, GraphsDoNotWriteToWhatOthersUse) {
  Stream<gpu> captured, other;
  const std::vector<int> numbers = {1, 2, 3, 4}, zeros(4);
  std::vector<int> back(4);
  void* const a = Bytes(16);
  void* const b = Bytes(16);
  void* const zero = Bytes(16);
  Upload(a, numbers.data(), 16, nullptr);
  Upload(zero, zeros.data(), 16, nullptr);
  Move(b, a, 16, other.handle_);
  const cuda::Graph graph = captured.Capture([&] {
    cuda::Free(a);
    void* const temporary = cuda::AllocateInOrder(16, captured.handle_);
    Move(temporary, zero, 16, captured.handle_);
    cuda::FreeInOrder(temporary, captured.handle_);
  });
  captured.Launch(graph);
  captured.Wait();
  Download(back.data(), b, 16, other.handle_);
  EXPECT_EQ(back, numbers);
  cuda::Free(b);
  cuda::Free(zero);
}

// Which graph uses what is given back while two streams are captured, nobody knows.
TEST_F(CudaMemory, MemoryLivesAsLongAsEachGraphThatMayUseIt) {
  Stream<gpu> one, two;
  const std::vector<int> numbers = {1, 2, 3, 4};
  void* const a = Bytes(16);
  void* const b = Bytes(16);
  Upload(a, numbers.data(), 16, nullptr);
  for (const bool inner_lives : {true, false}) {
    std::vector<int> back(4);
    void* const mine = Bytes(16);
    Move(mine, a, 16, nullptr);
    cuda::Graph inner;
    cuda::Graph outer = one.Capture([&] {
      inner = two.Capture([&] {
        Move(b, mine, 16, one.handle_);
        Move(b, mine, 16, two.handle_);
        cuda::Free(mine);
      });
    });
    (inner_lives ? outer : inner) = {};
    stand_in::FinishFrees();
    Stream<gpu>& stream = inner_lives ? two : one;
    stream.Launch(inner_lives ? inner : outer);
    Download(back.data(), b, 16, stream.handle_);
    EXPECT_EQ(back, numbers);
  }
  cuda::Free(a);
  cuda::Free(b);
}

// A graph that is launched while a stream is captured is part of the new one, with its memory.
TEST_F(CudaMemory, GraphsOfGraphs) {
  const std::vector<int> numbers = {1, 2, 3, 4};
  SetDevice<gpu>(1);
  Stream<gpu> stream;
  void* const b = Bytes(16);
  SetDevice<gpu>(0);
  void* const a = Bytes(16);
  Upload(a, numbers.data(), 16, nullptr);
  cuda::Graph outer;
  {
    const cuda::Graph inner = stream.Capture([&] {
      void* const temporary = cuda::AllocateInOrder(16, stream.handle_);
      Move(temporary, a, 16, stream.handle_);
      Move(b, temporary, 16, stream.handle_);
      cuda::FreeInOrder(temporary, stream.handle_);
    });
    outer = stream.Capture([&] { stream.Launch(inner); });
  }
  stand_in::FinishFrees();
  stream.Launch(outer);
  cuda::Free(a);  // which is memory of the other GPU
  outer = {};
  stand_in::FinishFrees();
  std::vector<int> back(4);
  Download(back.data(), b, 16, stream.handle_);
  EXPECT_EQ(back, numbers);
  cuda::Free(b);
}

TEST_F(CudaMemory, WhatCannotBeCaptured) {
  Stream<gpu> stream, other;
  const cuda::Event earlier = other.Record();
  void* const a = Bytes(16);
  int host = 0;
  const auto graph = stream.Capture([&] {
    EXPECT_SAYS("waiting for a CUDA stream: the stream is captured", stream.Wait());
    EXPECT_SAYS("asking a CUDA stream: the stream is captured", stream.CheckIdle());
    EXPECT_SAYS("recording a CUDA event: the stream is captured", stream.Record());
    EXPECT_SAYS("letting a CUDA stream wait for another: the stream is captured", other.WaitFor(stream));
    EXPECT_SAYS("letting a CUDA stream wait for another: the stream is captured", stream.WaitFor(other));
    EXPECT_SAYS("letting a CUDA stream wait for an event: the stream is captured", stream.WaitFor(earlier));
    EXPECT_SAYS("work without a stream was asked for while a stream of GPU 0 is captured",
                Upload(a, &host, 4, nullptr));
    EXPECT_SAYS("it is captured already", stream.Capture([] {}));
    Move(a, a, 4, stream.handle_);
  });
  EXPECT_TRUE(graph);
  EXPECT_SAYS("thrown by the body", stream.Capture([&] {
    cuda::Free(Bytes(8));
    throw Error("thrown by the body");
  }));
  stream.Wait();  // the stream is as before
  stand_in::Fail("cuStreamEndCapture", 901);
  EXPECT_SAYS(
      "something in the sequence cannot be captured, such as waiting or work in other streams: cuStreamEndCapture gives "
      "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
      stream.Capture([] {}));
  EXPECT_SAYS("the stream without a handle cannot be captured", cuda::Capture(nullptr, [] {}));
  EXPECT_SAYS("nothing was captured", stream.Launch(cuda::Graph()));
  SetDevice<gpu>(1);
  Stream<gpu> there;
  EXPECT_SAYS("a CUDA graph of GPU 0 is launched in a stream of GPU 1", there.Launch(graph));
  cuda::Free(a);
}

// The context of another library is put back.
TEST_F(CudaMemory, TheCallersDeviceStays) {
  void* const a = Bytes(16);  // GPU 0 is current now
  SetDevice<gpu>(1);
  void* const b = Bytes(16);
  SetDevice<gpu>(0);
  const int set = stand_in::Calls("cuCtxSetCurrent");
  cuda::Free(a);
  EXPECT_EQ(stand_in::Calls("cuCtxSetCurrent"), set);  // it was current
  cuda::Free(b);
  EXPECT_EQ(stand_in::Calls("cuCtxSetCurrent"), set + 2);
}

}  // namespace
}  // namespace umbra
