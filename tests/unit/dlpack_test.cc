// DLPack: element types, lanes, byte offsets, strides that cannot be held, and who frees what.
#include "umbra/dlpack.h"
#include "tests/support/testing.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace umbra {
namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 40;

TShape Of(const std::vector<index_t>& extents) { return TShape(extents.begin(), extents.end()); }
/// A tensor of another library over 256 numbers 0, 1, 2, ...
struct Foreign {
  explicit Foreign(std::vector<std::int64_t> extents, std::vector<std::int64_t> steps = {})
      : shape(std::move(extents)),
        strides(std::move(steps)),
        data(256) {
    std::iota(data.begin(), data.end(), 0.0f);
    tensor.data = data.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int>(shape.size());
    tensor.dtype = {kDLFloat, 32, 1};
    tensor.shape = shape.data();
    tensor.strides = strides.empty() ? nullptr : strides.data();
  }
  std::vector<std::int64_t> shape, strides;
  std::vector<float> data;
  DLTensor tensor{};
};

TEST(DLPackType, EveryFlagBothWays) {
  int flags = 0;
  for (int flag = 0; flag < 64; ++flag) {
    if (!FindFlag(flag)) continue;
    ++flags;
    const DLDataType type = ToDLPackType(flag);
    EXPECT_EQ(type.bits, 8 * SizeOfFlag(flag));
    EXPECT_EQ(type.lanes, 1);
    EXPECT_EQ(FromDLPackType(type), flag) << TypeFlagName(flag);
  }
  EXPECT_EQ(flags, 10);
  EXPECT_EQ(ToDLPackType(kFloat16).code, kDLFloat);
  EXPECT_EQ(ToDLPackType(kInt8).code, kDLInt);
  EXPECT_EQ(ToDLPackType(kUint8).code, kDLUInt);
  EXPECT_EQ(ToDLPackType(kFloat32, 4).lanes, 4);
  EXPECT_SAYS("0 were given", ToDLPackType(kFloat32, 0));
  EXPECT_SAYS("65536 were given", ToDLPackType(kFloat32, 65536));
  EXPECT_THROW(ToDLPackType(64), Error);
  EXPECT_SAYS("code 5 with 64 bits", FromDLPackType({kDLComplex, 64, 1}));
  EXPECT_SAYS("code 2 with 8 bits", FromDLPackType({kDLFloat, 8, 1}));
}

TEST(DLPackBorrowed, PitchesThatABlobHolds) {
  struct Case {
    std::vector<std::int64_t> shape, strides;
    index_t pitch;
  };
  for (const Case& c : {Case{{2, 3, 4}, {12, 4, 1}, 4}, Case{{2, 3, 4}, {15, 5, 1}, 5}, Case{{3, 4}, {9, 1}, 9},
                        Case{{5}, {1}, 5}, Case{{1}, {77}, 1}, Case{{3, 1}, {6, 99}, 6}, Case{{3, 1, 4}, {8, -5, 1}, 8},
                        Case{{1, 1, 4}, {0, 0, 1}, 4}, Case{{2, 1, 3, 4}, {18, 1, 6, 1}, 6}}) {
    Foreign foreign(c.shape, c.strides);
    const TBlob blob = BorrowDLPack(foreign.tensor);
    EXPECT_EQ(blob.shape_, Of(c.shape));
    EXPECT_EQ(blob.stride_, c.pitch) << blob.shape_;
    EXPECT_EQ(blob.dptr_, foreign.data.data());
  }
  Foreign padded({2, 3, 4}, {15, 5, 1});
  EXPECT_EQ((BorrowDLPack(padded.tensor).get<cpu, 3, float>()[1][2][3]), 15 + 10 + 3);
}

TEST(DLPackBorrowed, StridesThatABlobCannotHold) {
  const std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> cases[] = {
      {{3, 4}, {1, 3}},  // transposed
      {{3, 4}, {8, 2}},  // every second element
      {{3, 4}, {0, 1}},  // one row three times
      {{3, 4}, {-4, 1}},  // backwards
      {{3, 4}, {3, 1}},  // rows that overlap
      {{2, 3, 4}, {13, 4, 1}},  // planes apart from each other
      {{5}, {2}},  //
      {{2, kHuge, 4}, {1, kHuge, 1}},  // the expected stride overflows
      {{kHuge, 2}, {kHuge, 1}},  // the span overflows
      {{1 << 21, 2}, {kHuge, 1}},  // the span in bytes overflows
  };
  for (const auto& [shape, strides] : cases) {
    Foreign foreign(shape, strides);
    const std::string said = MessageOf([&] { BorrowDLPack(foreign.tensor); });
    EXPECT_NE(said.find("DLPack: strides"), std::string::npos) << Of(strides) << ": " << said;
  }
}

TEST(DLPackBorrowed, ExtentsThatNoMemoryHas) {
  EXPECT_SAYS("overflows", BorrowDLPack(Foreign({kHuge, kHuge}).tensor));
  EXPECT_SAYS("larger than memory", BorrowDLPack(Foreign({kHuge, 1 << 22}).tensor));
  EXPECT_SAYS("negative extent", BorrowDLPack(Foreign({2, -1}).tensor));
  Foreign none({2});
  none.tensor.shape = nullptr;
  EXPECT_SAYS("no shape", BorrowDLPack(none.tensor));
  none.tensor.ndim = -1;
  EXPECT_SAYS("-1 dimensions", BorrowDLPack(none.tensor));
}

TEST(DLPackBorrowed, NoDataAndScalars) {
  Foreign empty({3, 0}, {7, 7});
  empty.tensor.data = nullptr;
  empty.tensor.byte_offset = 64;
  EXPECT_EQ(BorrowDLPack(empty.tensor).Size(), 0);
  Foreign missing({3, 2});
  missing.tensor.data = nullptr;
  EXPECT_SAYS("without data", BorrowDLPack(missing.tensor));
  Foreign scalar({});
  scalar.tensor.shape = nullptr;
  scalar.tensor.byte_offset = 8;
  EXPECT_EQ((BorrowDLPack(scalar.tensor).FlatTo1D<cpu, float>()[0]), 2.0f);
}

TEST(DLPackBorrowed, ByteOffset) {
  Foreign foreign({3, 4});
  foreign.tensor.byte_offset = 12;
  EXPECT_EQ((BorrowDLPack(foreign.tensor).get<cpu, 2, float>()[1][1]), 3 + 5);
  foreign.tensor.byte_offset = 6;
  EXPECT_SAYS("not aligned to the 4 bytes of float32", BorrowDLPack(foreign.tensor));
}

TEST(DLPackLanes, BecomeTheLastDimension) {
  Foreign compact({2, 3});
  compact.tensor.dtype.lanes = 4;
  const TBlob blob = BorrowDLPack(compact.tensor);
  EXPECT_EQ(blob.shape_, Shape3(2, 3, 4));
  EXPECT_EQ((blob.get<cpu, 3, float>()[1][2][3]), 23.0f);
  Foreign apart({6}, {2});  // strides count elements of four lanes
  apart.tensor.dtype.lanes = 4;
  const TBlob rows = BorrowDLPack(apart.tensor);
  EXPECT_EQ(rows.stride_, 8);
  EXPECT_EQ((rows.get<cpu, 2, float>()[5][3]), 43.0f);
  apart.strides[0] = std::int64_t{1} << 62;
  EXPECT_SAYS("further than memory", BorrowDLPack(apart.tensor));
  apart.tensor.dtype.lanes = 0;
  EXPECT_SAYS("0 lanes", BorrowDLPack(apart.tensor));
}

TEST(DLPackLanes, FromTheLastDimension) {
  std::vector<float> data(64);
  const TBlob rows = Tensor<cpu, 3>(data.data(), Shape3(2, 3, 4), 8, nullptr);
  const DLPackView view(rows, 4);
  EXPECT_EQ(view.tensor().ndim, 2);
  EXPECT_EQ(view.tensor().dtype.lanes, 4);
  EXPECT_EQ(view.tensor().strides[0], 6);
  EXPECT_EQ(view.tensor().strides[1], 2);
  const TBlob back = BorrowDLPack(view.tensor());
  EXPECT_EQ(back.shape_, rows.shape_);
  EXPECT_EQ(back.stride_, rows.stride_);
  EXPECT_SAYS("2 lanes of shape (2,3,4)", DLPackView(rows, 2));
  EXPECT_SAYS("6 elements apart", DLPackView(TBlob(Tensor<cpu, 2>(data.data(), Shape2(2, 4), 6, nullptr)), 4));
  EXPECT_SAYS("4 lanes of shape ()", DLPackView(TBlob(data.data(), TShape(), cpu::kDevMask), 4));
}

TEST(DLPackView, BlobsOfEveryRankAndBack) {
  std::vector<double> data(1 << 10);
  for (index_t rank = 0; rank <= 6; ++rank) {
    TShape shape(rank);
    for (index_t i = 0; i < rank; ++i) shape[i] = 1 + i % 3;
    TBlob blob(data.data() + 1, shape, cpu::kDevMask);
    if (rank > 1) blob.stride_ += 2;
    const DLPackView view(blob);
    EXPECT_EQ(view.tensor().ndim, rank);
    const TBlob back = BorrowDLPack(view.tensor());
    EXPECT_EQ(back.dptr_, blob.dptr_);
    EXPECT_EQ(back.shape_, shape);
    if (!blob.CheckContiguous()) { EXPECT_EQ(back.stride_, blob.stride_); }
    EXPECT_EQ(back.type_flag_, kFloat64);
  }
  EXPECT_SAYS("without memory", DLPackView(TBlob()));
  EXPECT_SAYS("device mask 4; 1 (the CPU) or 2 (a GPU) is expected", DLPackView(TBlob(data.data(), Of({2}), 4)));
  const TBlob empty(data.data(), Of({0, kHuge, kHuge, 2}), cpu::kDevMask);
  EXPECT_EQ(BorrowDLPack(DLPackView(empty).tensor()).Size(), 0);
}

// Nothing is read or written: a number stands for the memory of a GPU.
TEST(DLPackDevice, GpusKeepTheirNumber) {
  void* const memory = reinterpret_cast<void*>(std::uintptr_t{1} << 40);
  TBlob blob(memory, Of({2, 3, 4}), gpu::kDevMask, kFloat16, 3);
  blob.stride_ = 8;
  DLManagedTensor* const managed = ToDLPack(blob, nullptr);
  EXPECT_EQ(managed->dl_tensor.device.device_type, kDLCUDA);
  EXPECT_EQ(managed->dl_tensor.device.device_id, 3);
  managed->dl_tensor.byte_offset = 16;
  const DLPackTensor taken(managed);
  EXPECT_EQ(taken.blob().dev_mask(), gpu::kDevMask);
  EXPECT_EQ(taken.blob().dev_id(), 3);
  EXPECT_EQ(taken.blob().stride_, 8);
  EXPECT_EQ((taken.blob().get<gpu, 3, half_t>().dptr_), static_cast<half_t*>(memory) + 8);
  EXPECT_SAYS("the memory is of device mask 2, a tensor of device mask 1", (taken.blob().get<cpu, 3, half_t>()));
  Foreign elsewhere({2});
  elsewhere.tensor.device = {kDLOpenCL, 0};
  EXPECT_SAYS("device type 4; memory of the CPU (1) or of a CUDA GPU (2) is expected", BorrowDLPack(elsewhere.tensor));
}

struct Counted {
  explicit Counted(Foreign* foreign) {
    managed.dl_tensor = foreign->tensor;
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* m) { ++static_cast<Counted*>(m->manager_ctx)->deleted; };
  }
  int deleted = 0;
  DLManagedTensor managed{};
};

TEST(DLPackOwned, DeletedOnceWhenTheLastCopyIsGone) {
  Foreign foreign({2, 3});
  Counted counted(&foreign);
  {
    DLPackTensor first(&counted.managed);
    const DLPackTensor moved = std::move(first);
    // A copy, so that the blob of the first is not left without its memory.
    EXPECT_EQ(first.blob().shape_, moved.blob().shape_);  // NOLINT
    {
      DLPackTensor third = moved;
      third = first;
    }
    EXPECT_EQ(counted.deleted, 0);
  }
  EXPECT_EQ(counted.deleted, 1);
}

TEST(DLPackOwned, DeletedAlsoIfItCannotBeHeld) {
  Foreign transposed({3, 4}, {1, 3});
  Counted counted(&transposed);
  EXPECT_THROW(DLPackTensor(&counted.managed), Error);
  EXPECT_EQ(counted.deleted, 1);
  Foreign foreign({2});
  Counted kept(&foreign);
  kept.managed.deleter = nullptr;
  EXPECT_EQ(DLPackTensor(&kept.managed).blob().Size(), 2);
}

TEST(DLPackOwned, ProducedTensorsKeepTheirOwner) {
  auto memory = std::make_shared<std::vector<float>>(24);
  const std::weak_ptr<void> alive = memory;
  DLManagedTensor* const managed = ToDLPack(TBlob(memory->data(), Of({2, 3, 4}), cpu::kDevMask), memory, 4);
  EXPECT_EQ(managed->dl_tensor.ndim, 2);
  EXPECT_THROW(ToDLPack(TBlob(memory->data(), Of({2, 3}), cpu::kDevMask), memory, 4), Error);
  memory.reset();
  EXPECT_FALSE(alive.expired());
  managed->deleter(managed);
  EXPECT_TRUE(alive.expired());
}

}  // namespace
}  // namespace umbra
