#include "umbra/tblob.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/testing.h"
#include "umbra/dlpack.h"

namespace umbra {
namespace {

std::string Text(const TShape& shape) {
  std::ostringstream out;
  out << shape;
  return out.str();
}
TShape Of(std::vector<index_t> extents) {
  TShape shape;
  shape = extents;
  return shape;
}

TEST(TShape, Construction) {
  EXPECT_EQ(Text(TShape()), "()");
  EXPECT_EQ(Text(TShape(1)), "(1,)");
  EXPECT_EQ(TShape(6).ndim(), 6);
  EXPECT_EQ(Text(Shape3(1, 2, 3)), "(1,2,3)");
  for (const std::vector<index_t>& extents : {std::vector<index_t>{2, 3}, {1, 2, 3, 4, 5, 6}}) {
    TShape a(extents.begin(), extents.end()), b(a), c;
    EXPECT_EQ(a, b);
    c = a;
    c = *&c;  // itself
    EXPECT_EQ(a, c);
    TShape moved(std::move(b));
    EXPECT_EQ(moved, a);
    EXPECT_EQ(b.ndim(), 0);  // NOLINT: a moved-from shape is empty
    b = extents;
    EXPECT_EQ(a, b);
    c = std::move(b);
    EXPECT_EQ(c, a);
    EXPECT_EQ(b.ndim(), 0);  // NOLINT
    c.CopyFrom(c.begin() + 1, c.end());
    EXPECT_EQ(c.ndim(), a.ndim() - 1);
    EXPECT_EQ(c[0], a[1]);
    EXPECT_NE(c, a);
  }
  TShape grows = Of({1, 2, 3, 4, 5});
  grows = Shape2(7, 8);
  EXPECT_EQ(grows, Shape2(7, 8));
  EXPECT_NE(grows, Shape2(7, 9));
  EXPECT_NE(grows, Shape1(7));
  EXPECT_THROW(TShape(-1), Error);
}

TEST(TShape, Members) {
  const TShape s = Of({2, 3, 4, 5, 6});
  EXPECT_EQ(s.Size(), 720u);
  EXPECT_EQ(TShape().Size(), 1u);
  EXPECT_EQ(s.ProdShape(1, 3), 12);
  EXPECT_EQ(s.FlatTo2D(), Shape2(120, 6));
  EXPECT_EQ(TShape().FlatTo2D(), Shape2(0, 0));
  EXPECT_EQ(s.FlatTo3D(2), Shape3(6, 4, 30));
  EXPECT_EQ(s.FlatTo3D(1, 3), Shape3(2, 60, 6));
  EXPECT_EQ((s.get<5>()), Shape5(2, 3, 4, 5, 6));
  EXPECT_NE(MessageOf([&] { s.get<4>(); }).find("shape (2,3,4,5,6) has rank 5, not 4"), std::string::npos);
  EXPECT_NE(MessageOf([&] { Of({1 << 30, 1 << 30, 1 << 30}).Size(); }).find("overflows"), std::string::npos);
  EXPECT_EQ(Of({index_t{1} << 31, 2}).Size(), std::size_t{1} << 32);
  EXPECT_THROW(s.FlatTo3D(3, 2), Error);
  EXPECT_THROW(s.ProdShape(0, 6), Error);
#ifndef NDEBUG
  EXPECT_THROW(s[5], Error);
#endif
}

TEST(TShape, Text) {
  for (const char* text : {"(1,2,3)", "(4,)", "()", "(1,2,3,4,5,6)"}) {
    std::istringstream in(text);
    TShape s;
    EXPECT_TRUE(in >> s) << text;
    EXPECT_EQ(Text(s), text);
  }
  std::istringstream loose("  ( 3L , 4L )");
  TShape s;
  EXPECT_TRUE(loose >> s);
  EXPECT_EQ(Text(s), "(3,4)");
  std::istringstream number("17");
  EXPECT_TRUE(number >> s);
  EXPECT_EQ(Text(s), "(17,)");
  const std::string whole = "(12,345,6)";
  for (const std::string& bad : {std::string("x"), std::string("(1;2)"), std::string("(1,-2)"), std::string("(a)"),
                                 std::string("(99999999999999999999,)"), std::string("")}) {
    std::istringstream in(bad);
    TShape kept = Of({5, 6});
    EXPECT_FALSE(in >> kept) << bad;
    EXPECT_EQ(Text(kept), "(5,6)");
  }
  for (std::size_t n = 1; n < whole.size(); ++n) {
    std::istringstream in(whole.substr(0, n));
    TShape kept = Of({5, 6});
    EXPECT_FALSE(in >> kept) << n;
    EXPECT_EQ(Text(kept), "(5,6)");
  }
}

TEST(TShape, SaveAndLoad) {
  MemoryStream file;
  const TShape s = Of({2, 3, 4, 5, 6});
  s.Save(&file);
  TShape read;
  EXPECT_TRUE(read.Load(&file));
  EXPECT_EQ(read, s);
  for (std::size_t n = 0; n < file.bytes.size(); ++n) {
    MemoryStream cut{file.bytes.substr(0, n)};
    TShape kept = Of({7});
    EXPECT_FALSE(kept.Load(&cut));
    EXPECT_EQ(Text(kept), "(7,)");
  }
  for (index_t hostile : {index_t{-1}, std::numeric_limits<index_t>::max(), index_t{1} << 40}) {
    MemoryStream file2;
    file2.Write(&hostile, sizeof hostile);
    TShape kept = Of({7});
    EXPECT_FALSE(kept.Load(&file2));
    EXPECT_EQ(Text(kept), "(7,)");
  }
}

TEST(TBlob, Conversions) {
  TensorContainer<cpu, 3> t(Shape3(2, 3, 5), 1.0f);  // padded rows
  TBlob blob = t;
  EXPECT_EQ(blob.ndim(), 3);
  EXPECT_EQ(blob.Size(), 30);
  EXPECT_EQ(blob.size(1), 3);
  EXPECT_EQ(blob.dev_mask(), cpu::kDevMask);
  EXPECT_EQ(blob.type_flag_, kFloat32);
  EXPECT_FALSE(blob.CheckContiguous());
  auto back = blob.get<cpu, 3, float>();
  EXPECT_EQ(back.stride_, t.stride_);
  back[1][2][4] = 9;
  EXPECT_EQ(t[1][2][4], 9.0f);
  EXPECT_EQ((blob.FlatTo2D<cpu, float>()[5][4]), 9.0f);
  EXPECT_NE(MessageOf([&] { blob.FlatTo1D<cpu, float>(); }).find("elements apart"), std::string::npos);
  EXPECT_NE(MessageOf([&] { blob.get<cpu, 3, double>(); }).find("the elements are float32, a tensor of float64"),
            std::string::npos);
  EXPECT_NE(MessageOf([&] { blob.get<cpu, 2, float>(); }).find("rank 3, not 2"), std::string::npos);
  std::vector<double> data(24);
  std::iota(data.begin(), data.end(), 0.0);
  const TBlob dense(data.data(), Of({2, 3, 4}), cpu::kDevMask);
  EXPECT_TRUE(dense.CheckContiguous());
  EXPECT_EQ((dense.FlatTo3D<cpu, double>(1)[1][2][3]), 23.0);
  EXPECT_EQ((dense.FlatTo1D<cpu, double>()[13]), 13.0);
  EXPECT_EQ((dense.get_with_shape<cpu, 2, double>(Shape2(4, 6))[3][5]), 23.0);
  EXPECT_EQ(dense.dptr<double>(), data.data());
  EXPECT_THROW(dense.dptr<float>(), Error);
  EXPECT_NE(MessageOf([&] { dense.get_with_shape<cpu, 1, double>(Shape1(23)); }).find("has 23 elements"),
            std::string::npos);
  EXPECT_NE(MessageOf([&] { TBlob(data.data(), Of({1}), cpu::kDevMask, 77, 0); }).find("type flag 77"),
            std::string::npos);
  const TBlob elsewhere(data.data(), Of({24}), 2);
  EXPECT_NE(MessageOf([&] { elsewhere.get<cpu, 1, double>(); }).find("device mask 2"), std::string::npos);
}

TEST(TBlob, TypeFlagIsTheFourthArgument) {
  double data[6] = {};
  void* const memory = data;
  const TBlob untyped(memory, Of({2, 3}), cpu::kDevMask, kFloat64);
  EXPECT_EQ(untyped.type_flag_, kFloat64);
  EXPECT_EQ(untyped.dev_id(), 0);
  // As in mshadow the flag counts, not the pointer's type.
  const TBlob retyped(reinterpret_cast<float*>(data), Of({2, 3}), cpu::kDevMask, kFloat64, 1);
  EXPECT_EQ(retyped.type_flag(), kFloat64);
  EXPECT_EQ(retyped.dev_id(), 1);
  EXPECT_EQ(retyped.dev_mask_, cpu::kDevMask);
}

TEST(TBlob, RankZeroAndNoMemory) {
  const TBlob nothing;
  EXPECT_EQ(nothing.Size(), 0);
  EXPECT_EQ(nothing.type_flag_, kFloat32);
  EXPECT_EQ((nothing.FlatTo1D<cpu, float>().shape_), Shape1(0));
  EXPECT_EQ((nothing.FlatTo2D<cpu, float>().shape_), Shape2(0, 0));
  EXPECT_EQ((nothing.FlatTo3D<cpu, float>(0).shape_), Shape3(0, 0, 0));
  float one = 3;
  const TBlob scalar(&one, TShape(), cpu::kDevMask);
  EXPECT_EQ(scalar.Size(), 1);
  EXPECT_TRUE(scalar.CheckContiguous());
  EXPECT_EQ((scalar.FlatTo1D<cpu, float>()[0]), 3.0f);
  EXPECT_EQ((scalar.FlatTo2D<cpu, float>()[0][0]), 3.0f);
  EXPECT_EQ((scalar.FlatTo3D<cpu, float>(0)[0][0][0]), 3.0f);
}

TEST(TBlob, ExtentsOfZeroAndBelow) {
  float data[8] = {};
  const TBlob empty(data, Of({3, 0, 2}), cpu::kDevMask);
  EXPECT_EQ(empty.Size(), 0);
  EXPECT_EQ((empty.get<cpu, 3, float>().shape_), Shape3(3, 0, 2));
  EXPECT_EQ((empty.FlatTo3D<cpu, float>(1).shape_), Shape3(3, 0, 2));
  EXPECT_NE(MessageOf([&] { TBlob(data, Of({-2, -3}), cpu::kDevMask); }).find("negative extent"), std::string::npos);
  const TBlob six(data, Of({2, 3}), cpu::kDevMask);
  EXPECT_NE(MessageOf([&] { six.get_with_shape<cpu, 2, float>(Shape2(-2, -3)); }).find("negative"), std::string::npos);
  EXPECT_NE(MessageOf([&] { six.FlatTo3D<cpu, float>(2); }).find("FlatTo3D(2, 2)"), std::string::npos);
}

TEST(TBlob, OneRowOfAnyPitchIsContiguous) {
  float data[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  const TBlob row = Tensor<cpu, 2>(data, Shape2(1, 3), 8, nullptr);
  EXPECT_TRUE(row.CheckContiguous());
  EXPECT_EQ((row.FlatTo1D<cpu, float>()[2]), 2.0f);
  const TBlob rows = Tensor<cpu, 2>(data, Shape2(2, 3), 4, nullptr);
  EXPECT_FALSE(rows.CheckContiguous());
  EXPECT_EQ((rows.FlatTo2D<cpu, float>()[1][2]), 6.0f);
}

TEST(TBlob, MovedFromIsEmpty) {
  double data[30] = {};
  const auto is_empty = [](const TBlob& blob) {
    return blob.dptr_ == nullptr && blob.ndim() == 0 && blob.Size() == 0 && blob.stride_ == 0 && blob.dev_id() == 0 &&
           blob.dev_mask_ == cpu::kDevMask && blob.type_flag_ == kFloat32 && blob.CheckContiguous();
  };
  for (const TShape& shape : {Of({5, 6}), Of({1, 1, 1, 5, 6})}) {
    TBlob source(data, shape, 2, kFloat64, 3);
    TBlob taken(std::move(source));
    EXPECT_TRUE(is_empty(source));  // NOLINT
    EXPECT_EQ((source.FlatTo1D<cpu, float>().shape_), Shape1(0));
    TBlob& same = taken;
    taken = std::move(same);
    EXPECT_EQ(taken.shape_, shape);
    source = std::move(taken);
    EXPECT_TRUE(is_empty(taken));  // NOLINT
    EXPECT_EQ(source.dptr_, data);
    EXPECT_EQ(source.dev_id() + source.dev_mask(), 5);
    EXPECT_EQ(source.type_flag(), kFloat64);
    EXPECT_EQ(source.stride_, 6);
    taken = source;
    EXPECT_EQ(taken.dptr_, source.dptr_);
  }
}

TEST(TBlob, AssignmentFromTensor) {
  double other[1] = {};
  float data[16] = {};
  TBlob blob(other, Of({1}), 2, kFloat64, 3);
  blob = Tensor<cpu, 2>(data, Shape2(2, 3), 8, nullptr);
  EXPECT_EQ(blob.dptr_, data);
  EXPECT_EQ(blob.shape_, Shape2(2, 3));
  EXPECT_EQ(blob.stride_, 8);
  EXPECT_EQ(blob.dev_mask(), cpu::kDevMask);
  EXPECT_EQ(blob.dev_id(), 0);
  EXPECT_EQ(blob.type_flag(), kFloat32);
}

TEST(TBlob, StreamsArePassedOn) {
  float data[24] = {};
  Stream<cpu> stream;
  const TBlob blob(data, Of({2, 3, 4}), cpu::kDevMask);
  EXPECT_EQ((blob.get<cpu, 3, float>(&stream).stream_), &stream);
  EXPECT_EQ((blob.get_with_shape<cpu, 1, float>(Shape1(24), &stream).stream_), &stream);
  EXPECT_EQ((blob.FlatTo1D<cpu, float>(&stream).stream_), &stream);
  EXPECT_EQ((blob.FlatTo2D<cpu, float>(&stream).stream_), &stream);
  EXPECT_EQ((blob.FlatTo3D<cpu, float>(1, &stream).stream_), &stream);
  EXPECT_EQ((blob.FlatTo3D<cpu, float>(0, 1, &stream).stream_), &stream);
  EXPECT_EQ((blob.get<cpu, 3, float>().stream_), nullptr);
}

TEST(TBlob, GetOnRankZero) {
  float one = 3;
  const TBlob scalar(&one, TShape(), cpu::kDevMask);
  EXPECT_SAYS("rank 0, not 1", scalar.get<cpu, 1, float>());
  EXPECT_EQ((scalar.get_with_shape<cpu, 2, float>(Shape2(1, 1))[0][0]), 3.0f);
  EXPECT_SAYS("has 2 elements", scalar.get_with_shape<cpu, 1, float>(Shape1(2)));
}

TEST(TBlob, SizesBeyond32Bits) {
  const index_t n = index_t{1} << 31;
  float first = 0;
  const TBlob blob(&first, Of({3, n, 5}), cpu::kDevMask);
  EXPECT_EQ(blob.Size(), 15 * n);
  EXPECT_EQ((blob.FlatTo1D<cpu, float>().shape_), Shape1(15 * n));
  EXPECT_EQ((blob.FlatTo2D<cpu, float>().shape_), Shape2(3 * n, 5));
  EXPECT_EQ((blob.FlatTo3D<cpu, float>(1).shape_), Shape3(3, n, 5));
  EXPECT_EQ((blob.get<cpu, 3, float>().MSize()), static_cast<std::size_t>(15 * n));
  const TBlob row(&first, Of({1, n + 1}), cpu::kDevMask);
  EXPECT_EQ(row.stride_, n + 1);
}

TEST(TBlob, CheckContiguousOfAnyShape) {
  const index_t huge = index_t{1} << 40;
  float data[1] = {};
  TBlob blob(data, Of({huge, huge, 3}), cpu::kDevMask);
  EXPECT_TRUE(blob.CheckContiguous());
  blob.stride_ = 4;
  EXPECT_FALSE(blob.CheckContiguous());
  EXPECT_SAYS("overflows", blob.Size());
  blob.shape_[1] = 0;
  EXPECT_TRUE(blob.CheckContiguous());
  blob.shape_ = Shape3(2, 2, 0);
  EXPECT_TRUE(blob.CheckContiguous());
  blob.shape_ = Shape3(-1, -1, 3);
  EXPECT_FALSE(blob.CheckContiguous());
}

TEST(TBlob, TypeSwitch) {
  std::size_t size = 0;
  for (int flag : {kFloat32, kFloat64, kInt32, kInt8, kUint8, kInt64}) {
    UMBRA_TYPE_SWITCH(flag, DType, { size = sizeof(DType); });
    EXPECT_EQ(size, SizeOfFlag(flag));
  }
  EXPECT_NE(MessageOf([&] { UMBRA_TYPE_SWITCH(99, DType, { size = sizeof(DType); }); }).find("type flag 99"),
            std::string::npos);
  UMBRA_INTEGER_TYPE_SWITCH(kInt16, DType, { size = sizeof(DType); });
  EXPECT_EQ(size, 2u);
  EXPECT_NE(MessageOf([&] {
              UMBRA_INTEGER_TYPE_SWITCH(kBool, DType, { size = sizeof(DType); });
            }).find("not an integer type"),
            std::string::npos);
  EXPECT_NE(MessageOf([&] { UMBRA_REAL_TYPE_SWITCH(kInt32, DType, { size = sizeof(DType); }); }).find("int32"),
            std::string::npos);
}

TEST(DLPack, OwningBothWays) {
  auto memory = std::make_shared<TensorContainer<cpu, 3>>(Shape3(2, 3, 5), 2.0f);
  const std::weak_ptr<void> alive = memory;
  DLManagedTensor* managed = ToDLPack(TBlob(*memory), memory);
  float* const data = memory->dptr_;
  memory.reset();
  EXPECT_FALSE(alive.expired());
  EXPECT_EQ(managed->dl_tensor.strides[0], 3 * 16);
  {
    const DLPackTensor taken(managed);
    EXPECT_EQ(taken.blob().dptr_, data);
    EXPECT_EQ((taken.blob().get<cpu, 3, float>()[1][2][4]), 2.0f);
    EXPECT_EQ(taken.blob().stride_, 16);
  }
  EXPECT_TRUE(alive.expired());
  EXPECT_THROW(DLPackTensor(nullptr), Error);
}

TEST(DLPack, Borrowed) {
  std::vector<std::int32_t> data(64);
  std::iota(data.begin(), data.end(), 0);
  std::int64_t shape[] = {2, 3, 4}, strides[] = {24, 8, 1};
  DLTensor tensor{};
  tensor.data = data.data();
  tensor.device = {kDLCPU, 0};
  tensor.ndim = 3;
  tensor.dtype = {kDLInt, 32, 1};
  tensor.shape = shape;
  tensor.byte_offset = 4;
  EXPECT_EQ((BorrowDLPack(tensor).get<cpu, 3, std::int32_t>()[1][2][3]), 24);
  tensor.strides = strides;
  EXPECT_EQ((BorrowDLPack(tensor).get<cpu, 3, std::int32_t>()[1][2][3]), 1 + 24 + 16 + 3);
  strides[0] = 25;
  EXPECT_NE(MessageOf([&] { BorrowDLPack(tensor); }).find("strides (25,8,1) of shape (2,3,4)"), std::string::npos);
  strides[2] = 2;
  EXPECT_NE(MessageOf([&] { BorrowDLPack(tensor); }).find("strides (25,8,2)"), std::string::npos);
  tensor.dtype = {kDLComplex, 64, 1};
  EXPECT_NE(MessageOf([&] { BorrowDLPack(tensor); }).find("code 5"), std::string::npos);
  tensor.device = {kDLVulkan, 0};
  EXPECT_NE(MessageOf([&] { BorrowDLPack(tensor); }).find("device type 7"), std::string::npos);
}

}  // namespace
}  // namespace umbra
