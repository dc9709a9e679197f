#include "umbra/dynamic_tensor.h"
#include "tests/support/testing.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace umbra {
namespace {

struct Counted {
  static inline int alive = 0, made = 0, fail_at = -1;
  int value = 7;
  Counted() {
    if (made == fail_at) throw std::runtime_error("made enough");
    ++made;
    ++alive;
  }
  Counted(const Counted& other) : value(other.value) { ++alive; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --alive; }
};

TEST(Enforce, Messages) {
  const int a = 3;
  const std::string text = MessageOf([&] { UMBRA_ENFORCE_EQ(a, 4, "while ", "testing"); });
  EXPECT_NE(text.find("dynamic_tensor_test.cc:"), std::string::npos);
  EXPECT_NE(text.find("a == 4. 3 vs 4. while testing"), std::string::npos);
  UMBRA_ENFORCE(a == 3);
  UMBRA_ENFORCE_LE(a, 3);
  EXPECT_NE(MessageOf([&] { UMBRA_ENFORCE_GT(a, 3); }), "no error");
  EXPECT_NE(MessageOf([&] { UMBRA_ENFORCE_NE(a, 3); }), "no error");
  EXPECT_NE(MessageOf([&] { UMBRA_ENFORCE_LT(a, 3); }), "no error");
  EXPECT_NE(MessageOf([&] { UMBRA_ENFORCE_GE(a, 4); }), "no error");
  try {
    UMBRA_ENFORCE(a > 5, "small");
    FAIL();
  } catch (EnforceNotMet& error) {
    EXPECT_EQ(error.condition(), "a > 5");
    error.AppendMessage(" in the outer call");
    EXPECT_NE(std::string(error.what()).find("small in the outer call"), std::string::npos);
  }
}

TEST(TypeMeta, Identity) {
  EXPECT_EQ(TypeMeta::Make<float>(), TypeMeta::Make<float>());
  EXPECT_NE(TypeMeta::Make<float>(), TypeMeta::Make<std::int32_t>());
  EXPECT_EQ(TypeMeta::Make<float>().name(), "float");
  EXPECT_EQ(TypeMeta::Make<double>().itemsize(), 8u);
  EXPECT_TRUE(TypeMeta::Make<double>().is_trivial());
  EXPECT_FALSE(TypeMeta::Make<std::string>().is_trivial());
  EXPECT_EQ(TypeMeta().itemsize(), 0u);
  EXPECT_TRUE(TypeMeta::Make<int>().Match<int>());
}

TEST(DynamicTensor, DelayedAllocation) {
  DynamicTensor t({2, 3});
  EXPECT_EQ(t.size(), 6);
  EXPECT_EQ(t.capacity_nbytes(), 0u);
  EXPECT_NE(MessageOf([&] { t.data<float>(); }), "no error");
  float* p = t.mutable_data<float>();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % 64, 0u);
  for (int i = 0; i < 6; ++i) p[i] = static_cast<float>(i);
  EXPECT_EQ(t.data<float>()[5], 5.0f);
  EXPECT_TRUE(t.IsType<float>());
  EXPECT_EQ(t.nbytes(), 24u);
  EXPECT_NE(MessageOf([&] { t.data<double>(); }).find("elements of float, not double"), std::string::npos);
  EXPECT_EQ(static_cast<void*>(t.mutable_data<std::int32_t>()), static_cast<void*>(p));  // it fits
  EXPECT_NE(static_cast<void*>(t.mutable_data<double>()), nullptr);
  EXPECT_EQ(t.nbytes(), 48u);
  EXPECT_EQ(t.dim(1), 3);
  EXPECT_THROW(t.dim(2), EnforceNotMet);
  const DynamicTensor values({3}, std::vector<int>{1, 2, 3});
  EXPECT_EQ(values.data<int>()[2], 3);
  EXPECT_THROW(DynamicTensor({2}, std::vector<int>{1}), EnforceNotMet);
  EXPECT_EQ(DynamicTensor().size(), 0);
  EXPECT_THROW(DynamicTensor({-1}), EnforceNotMet);
  EXPECT_THROW(DynamicTensor({index_t{1} << 40, index_t{1} << 40}), EnforceNotMet);
  DynamicTensor big({index_t{1} << 61});
  EXPECT_THROW(big.mutable_data<double>(), EnforceNotMet);
}

TEST(DynamicTensor, ResizePolicies) {
  DynamicTensor t({100});
  float* p = t.mutable_data<float>();
  t.Resize({10});
  EXPECT_EQ(t.mutable_data<float>(), p);
  EXPECT_EQ(t.capacity_nbytes(), 400u);
  t.Resize({100});
  EXPECT_EQ(t.mutable_data<float>(), p);
  t.Resize({101});
  EXPECT_EQ(t.capacity_nbytes(), 0u);
  t.mutable_data<float>();
  t.set_shrink_policy({true, 100});
  t.Resize({90});
  EXPECT_EQ(t.capacity_nbytes(), 404u);
  t.Resize({70});
  EXPECT_EQ(t.capacity_nbytes(), 0u);
  t.mutable_data<float>();
  t.set_shrink_policy({false, 0});
  t.Resize({69});
  EXPECT_EQ(t.capacity_nbytes(), 0u);
  t.mutable_data<float>();
  t.ReserveSpace(500);
  t.Resize({3});
  EXPECT_EQ(t.capacity_nbytes(), 2000u);
  t.Reshape({1, 3});
  EXPECT_EQ(t.ndim(), 2);
  EXPECT_THROW(t.Reshape({4}), EnforceNotMet);
  DynamicTensor u;
  u.ResizeLike(t);
  EXPECT_EQ(u.dims(), t.dims());
}

TEST(DynamicTensor, ExtendAndShrink) {
  DynamicTensor t({2, 3}, std::vector<int>{1, 2, 3, 4, 5, 6});
  t.Extend(1, 50);
  EXPECT_EQ(t.dim(0), 3);
  EXPECT_EQ(t.data<int>()[5], 6);
  EXPECT_EQ(t.capacity_nbytes(), 3 * 3 * sizeof(int));
  t.Extend(1, 50);  // 4.5 rows
  EXPECT_EQ(t.capacity_nbytes(), 5 * 3 * sizeof(int));
  t.Extend(2, 100);
  EXPECT_EQ(t.capacity_nbytes(), 8 * 3 * sizeof(int));
  DynamicTensor ten({10}, std::vector<int>(10, 1));
  ten.Extend(1, 10);  // 11 rows exactly
  EXPECT_EQ(ten.capacity_nbytes(), 11 * sizeof(int));
  const int* p = t.data<int>();
  t.Extend(2, 0);
  EXPECT_EQ(t.data<int>(), p);
  t.ShrinkTo(1);
  EXPECT_EQ(t.size(), 3);
  EXPECT_EQ(t.data<int>(), p);
  EXPECT_THROW(t.ShrinkTo(2), EnforceNotMet);
  EXPECT_THROW(t.Extend(-1, 0), EnforceNotMet);
  EXPECT_THROW(t.Extend(1, -1), EnforceNotMet);
}

TEST(DynamicTensor, SharingAndCopies) {
  DynamicTensor a({4}, std::vector<float>{1, 2, 3, 4}), b({2, 2}), c;
  b.ShareData(a);
  EXPECT_TRUE(b.shares_data());
  b.mutable_data<float>()[0] = 9;
  EXPECT_EQ(a.data<float>()[0], 9.0f);
  c.CopyFrom(a);
  c.mutable_data<float>()[1] = 5;
  EXPECT_EQ(a.data<float>()[1], 2.0f);
  a.CopyFrom(a);
  EXPECT_EQ(a.data<float>()[3], 4.0f);
  DynamicTensor small({3}), none({4});
  EXPECT_THROW(small.ShareData(a), EnforceNotMet);
  EXPECT_NE(MessageOf([&] { b.ShareData(none); }).find("no memory yet"), std::string::npos);
  int deleted = 0;
  {
    float memory[8] = {};
    DynamicTensor x({4}), y({4});
    x.ShareExternalPointer<float>(memory, sizeof memory, [&](float*) { ++deleted; });
    y.ShareData(x);
    x.FreeMemory();
    EXPECT_EQ(deleted, 0);
    EXPECT_EQ(y.mutable_data<float>(), memory);
    EXPECT_THROW(x.ShareExternalPointer<float>(memory, 8), EnforceNotMet);
    EXPECT_THROW(x.ShareExternalPointer<float>(nullptr), EnforceNotMet);
  }
  EXPECT_EQ(deleted, 1);
  DynamicTensor moved(std::move(c));
  EXPECT_EQ(moved.data<float>()[1], 5.0f);
  EXPECT_EQ(c.size(), 0);  // NOLINT: a moved-from tensor is empty
  c = std::move(moved);
  EXPECT_EQ(c.size(), 4);
}

TEST(DynamicTensor, ElementsLiveOnce) {
  Counted::made = Counted::alive = 0;
  {
    DynamicTensor t({5});
    EXPECT_EQ(t.mutable_data<Counted>()[4].value, 7);
    EXPECT_EQ(Counted::alive, 5);
    t.mutable_data<Counted>()[0].value = 1;
    DynamicTensor u;
    u.CopyFrom(t);
    EXPECT_EQ(Counted::alive, 10);
    EXPECT_EQ(u.data<Counted>()[0].value, 1);
    t.Extend(3, 0);
    EXPECT_EQ(Counted::alive, 13);
    EXPECT_EQ(t.data<Counted>()[0].value, 1);
    t.Resize({2});
    EXPECT_EQ(Counted::alive, 13);  // kept with the memory
    t.mutable_data<float>();
    EXPECT_EQ(Counted::alive, 5);
    Counted::fail_at = Counted::made + 3;
    DynamicTensor v({6});
    EXPECT_THROW(v.mutable_data<Counted>(), std::runtime_error);
    EXPECT_EQ(Counted::alive, 5);
    Counted::fail_at = -1;
    EXPECT_NE(v.mutable_data<Counted>(), nullptr);
  }
  EXPECT_EQ(Counted::alive, 0);
  DynamicTensor words({2});
  words.mutable_data<std::string>()[1] = std::string(100, 'x');
  DynamicTensor copy;
  copy.CopyFrom(words);
  EXPECT_EQ(copy.data<std::string>()[1].size(), 100u);
  DynamicTensor unique({1});
  unique.mutable_data<std::unique_ptr<int>>();
  EXPECT_THROW(copy.CopyFrom(unique), Error);
  EXPECT_EQ(copy.data<std::string>()[1].size(), 100u);
}

struct NoDelete {
  void operator()(int*) const {}
};

TEST(TypeMeta, TypesWithSemicolonsAndBracketsAreDistinct) {
  EXPECT_NE((TypeMeta::Make<std::unique_ptr<int[]>>()), (TypeMeta::Make<std::unique_ptr<int[], NoDelete>>()));
  EXPECT_NE((TypeMeta::Make<std::pair<int(*)[3], float>>()), (TypeMeta::Make<std::pair<int(*)[3], int>>()));
  const auto text = TypeMeta::Make<std::pair<int(*)[3], float>>().name();
  EXPECT_EQ(text.back(), '>');
  EXPECT_NE(text.find("float"), std::string::npos);
  EXPECT_EQ(TypeMeta().name(), "nothing");
  EXPECT_NE(TypeMeta(), TypeMeta::Make<char>());
}

TEST(TypeMeta, TypesOfOneNameAreDistinct) {
  // As with types in anonymous namespaces of two files: GCC calls both closures `<lambda()>`.
  const auto one = [] { return 1; };
  const auto two = [] { return 2; };
  EXPECT_NE(TypeMeta::Make<decltype(one)*>(), TypeMeta::Make<decltype(two)*>());
}

TEST(TypeMeta, CopiesOfRangesThatOverlap) {
  std::vector<std::string> words = {"a", "b", "c", "d"};
  const TypeMeta meta = TypeMeta::Make<std::string>();
  meta.Copy(&words[0], &words[1], 3);
  EXPECT_EQ(words, (std::vector<std::string>{"a", "a", "b", "c"}));
  meta.Copy(&words[1], &words[0], 3);
  EXPECT_EQ(words, (std::vector<std::string>{"a", "b", "c", "c"}));
  meta.Copy(&words[0], &words[0], 4);
  EXPECT_EQ(words[1], "b");
}

TEST(DynamicTensor, ResizeToAsManyElementsKeepsThem) {
  DynamicTensor t({100});
  float* const p = t.mutable_data<float>();
  p[0] = 1;
  p[49] = 2;
  t.ShrinkTo(50);
  t.set_shrink_policy({false, 0});
  t.Resize({50});
  EXPECT_EQ(t.data<float>(), p);
  t.Resize({5, 10});
  EXPECT_EQ(t.data<float>(), p);
  EXPECT_EQ(p[0] + p[49], 3.0f);
  t.Resize({49});
  EXPECT_EQ(t.capacity_nbytes(), 0u);
}

TEST(DynamicTensor, ResizeByArguments) {
  DynamicTensor t;
  t.Resize(2, 3u, std::size_t{4});
  EXPECT_EQ(t.dims(), (DynamicTensor::Dims{2, 3, 4}));
  t.Resize(5);
  EXPECT_EQ(t.dims(), DynamicTensor::Dims{5});
  EXPECT_THROW(t.Resize(2, -1), EnforceNotMet);
  EXPECT_THROW(t.Resize(~std::size_t{0}), EnforceNotMet);
  EXPECT_EQ(t.size(), 5);
  t.Resize();
  EXPECT_EQ(t.ndim(), 0);
  EXPECT_EQ(t.numel(), 1);
}

TEST(DynamicTensor, ProductsWithZeros) {
  const index_t huge = index_t{1} << 40;
  DynamicTensor t;
  t.Resize({0, huge, huge});
  t.Resize({huge, huge, 0});
  EXPECT_EQ(t.size(), 0);
  EXPECT_SAYS("(1099511627776,1099511627776,1)", t.Resize({huge, huge, 1}));
  EXPECT_SAYS("negative extent in shape (0,-1)", t.Resize({0, -1}));
  EXPECT_EQ(t.dim(2), 0);
  // 2^31 + elements, in numbers only.
  DynamicTensor large({index_t{1} << 31, 3});
  EXPECT_EQ(large.size(), 3 * (index_t{1} << 31));
  large.ShrinkTo((index_t{1} << 31) - 1);
  EXPECT_EQ(large.size(), 3 * ((index_t{1} << 31) - 1));
}

TEST(DynamicTensor, CopiesUseMemoryThatIsThere) {
  DynamicTensor a({4}, std::vector<int>{1, 2, 3, 4}), b({2, 2}), shares({4});
  const int* const p = b.mutable_data<int>();
  shares.ShareData(b);
  Stream<cpu> stream;
  b.CopyFrom(a, &stream);
  EXPECT_EQ(b.data<int>(), p);
  EXPECT_EQ(b.dims(), DynamicTensor::Dims{4});
  EXPECT_EQ(shares.data<int>()[3], 4);  // as in caffe2 the copy goes to the shared memory
  shares.CopyFrom(b);  // the same memory
  EXPECT_EQ(shares.data<int>()[2], 3);
  a.Resize({3});
  b.CopyFrom(a);
  EXPECT_EQ(b.data<int>(), p);
  EXPECT_EQ(b.size(), 3);
  DynamicTensor five({5}, std::vector<int>(5, 5)), untyped({6}), doubles({2}, std::vector<double>{1, 2});
  b.CopyFrom(five);
  EXPECT_NE(b.data<int>(), p);
  EXPECT_EQ(b.data<int>()[4], 5);
  b.CopyFrom(doubles);
  EXPECT_EQ(b.data<double>()[1], 2);
  b.CopyFrom(untyped);
  EXPECT_EQ(b.size(), 6);
  EXPECT_THROW(b.data<double>(), EnforceNotMet);
  DynamicTensor unique({2}), other({3});
  other.mutable_data<std::unique_ptr<int>>();
  unique.mutable_data<std::unique_ptr<int>>()[0] = std::make_unique<int>(7);
  EXPECT_THROW(unique.CopyFrom(other), Error);
  EXPECT_EQ(unique.size(), 2);
  EXPECT_EQ(*unique.data<std::unique_ptr<int>>()[0], 7);
}

TEST(DynamicTensor, CopyConstructorIsExplicit) {
  const DynamicTensor a({2}, std::vector<std::string>{"x", "y"});
  const DynamicTensor b(a);
  Stream<cpu> stream;
  const DynamicTensor c(a, &stream);
  EXPECT_NE(b.raw_data(), a.raw_data());
  EXPECT_EQ(b.data<std::string>()[1], "y");
  EXPECT_EQ(c.data<std::string>()[0], "x");
  static_assert(!std::is_convertible_v<const DynamicTensor&, DynamicTensor>, "copies are asked for");
}

TEST(DynamicTensor, MemoryIsAlignedForEveryType) {
  struct alignas(4096) Wide {
    char bytes[4096];
  };
  const auto aligned = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % alignof(Wide) == 0; };
  std::vector<DynamicTensor> kept;  // so that of some sizes memory is not aligned by chance
  for (index_t i = 0; i < 8; ++i) {
    DynamicTensor& t = kept.emplace_back(DynamicTensor::Dims{4096 + 64 * i});
    t.mutable_data<char>();
    t.ShrinkTo(1);
    EXPECT_TRUE(aligned(t.mutable_data<Wide>()));
    t.Extend(3, 0);
    EXPECT_TRUE(aligned(t.raw_data()));
    t.ReserveSpace(9);
    EXPECT_TRUE(aligned(t.raw_data()));
    EXPECT_TRUE(aligned(DynamicTensor(t).raw_data()));
  }
  alignas(Wide) static char memory[sizeof(Wide) + 1];
  DynamicTensor t({1});
  EXPECT_SAYS("aligned to", t.ShareExternalPointer(memory + 1, TypeMeta::Make<Wide>()));
  t.ShareExternalPointer(memory, TypeMeta::Make<Wide>());
  EXPECT_EQ(t.raw_data(), memory);
}

TEST(DynamicTensor, ChangesOfTypeSpareSharedMemory) {
  DynamicTensor a({1}, std::vector<float>{1}), b({1});
  b.ShareData(a);
  *a.mutable_data<int>() = 5;
  EXPECT_EQ(*b.data<float>(), 1.0f);
}

TEST(DynamicTensor, SwapAndMovesToItself) {
  DynamicTensor a({2}, std::vector<int>{1, 2}), b({1, 1}, std::vector<double>{3});
  a.Swap(b);
  EXPECT_EQ(a.dims(), (DynamicTensor::Dims{1, 1}));
  EXPECT_EQ(*a.data<double>(), 3);
  EXPECT_EQ(b.data<int>()[1], 2);
  DynamicTensor& same = b;
  b = std::move(same);
  EXPECT_EQ(b.data<int>()[1], 2);
  b.ShareData(same);
  EXPECT_FALSE(b.shares_data());
  EXPECT_EQ(b.data<int>()[1], 2);
  b.Swap(same);
  EXPECT_EQ(b.data<int>()[1], 2);
  DynamicTensor empty;
  EXPECT_EQ(empty.numel(), 0);
  empty.ShareData(empty);
  DynamicTensor pending({3});
  EXPECT_THROW(pending.ShareData(pending), EnforceNotMet);
}

TEST(DynamicTensor, RawData) {
  DynamicTensor t({3});
  EXPECT_THROW(t.raw_data(), EnforceNotMet);
  EXPECT_SAYS("no element type", t.raw_mutable_data());
  EXPECT_SAYS("needs an element type", t.raw_mutable_data(TypeMeta()));
  void* const p = t.raw_mutable_data(TypeMeta::Make<std::int16_t>());
  EXPECT_EQ(t.raw_mutable_data(), p);
  EXPECT_EQ(t.raw_data(), p);
  EXPECT_EQ(t.itemsize(), 2u);
  EXPECT_EQ(t.numel(), 3);
  t.FreeMemory();
  EXPECT_THROW(t.raw_data(), EnforceNotMet);
  EXPECT_NE(t.raw_mutable_data(), nullptr);
  t.Shrink(1);
  EXPECT_EQ(t.size(), 1);
  EXPECT_THROW(t.Shrink(-1), EnforceNotMet);
}

TEST(DynamicTensor, RankZeroAndZeroExtents) {
  DynamicTensor scalar(DynamicTensor::Dims{});
  *scalar.mutable_data<double>() = 4;
  EXPECT_EQ(scalar.size(), 1);
  EXPECT_THROW(scalar.Extend(1, 0), EnforceNotMet);
  EXPECT_THROW(scalar.ShrinkTo(0), EnforceNotMet);
  EXPECT_THROW(scalar.ReserveSpace(2), EnforceNotMet);
  scalar.Reshape({1, 1});
  EXPECT_EQ(*scalar.data<double>(), 4);
  DynamicTensor no_rows({0, 3});
  no_rows.mutable_data<int>();
  no_rows.Extend(2, 50);
  EXPECT_EQ(no_rows.size(), 6);
  no_rows.mutable_data<int>()[5] = 1;
  DynamicTensor no_columns({3, 0});
  no_columns.mutable_data<int>();
  no_columns.ReserveSpace(100);
  no_columns.Extend(index_t{1} << 62, 50);
  EXPECT_EQ(no_columns.size(), 0);
  EXPECT_EQ(no_columns.dim(0), (index_t{1} << 62) + 3);
  EXPECT_THROW(no_columns.Extend(index_t{1} << 62, 0), EnforceNotMet);
  no_columns.ShrinkTo(1);
  EXPECT_EQ(no_columns.nbytes(), 0u);
}

TEST(DynamicTensor, ExtendWithoutMemory) {
  DynamicTensor untyped({1, 2});
  untyped.Extend(2, 50);
  EXPECT_EQ(untyped.dims(), (DynamicTensor::Dims{3, 2}));
  DynamicTensor freed({2}, std::vector<int>{1, 2});
  freed.FreeMemory();
  freed.Extend(1, 0);
  EXPECT_EQ(freed.capacity_nbytes(), 0u);
  freed.mutable_data<int>()[2] = 1;
  EXPECT_EQ(freed.size(), 3);
}

TEST(DynamicTensor, ExtendLeavesSharedMemoryToTheOthers) {
  DynamicTensor a({2}, std::vector<std::string>{"a", "b"}), b({2}), c({2});
  a.ReserveSpace(8);
  b.ShareData(a);
  c.ShareData(a);
  b.Extend(1, 0);
  EXPECT_FALSE(b.shares_data());
  b.mutable_data<std::string>()[0] = "x";
  EXPECT_EQ(a.data<std::string>()[0], "a");
  EXPECT_EQ(b.data<std::string>()[1], "b");
  c.ReserveSpace(1);
  EXPECT_FALSE(c.shares_data());
  a.Extend(7, 0);
  DynamicTensor d({9});
  d.ShareData(a);
  a.Extend(1, 0);  // does not fit, and d goes on to use what was
  EXPECT_EQ(d.data<std::string>()[1], "b");
  EXPECT_EQ(a.data<std::string>()[1], "b");
  std::string memory[8] = {"a", "b"};
  DynamicTensor external({2});
  external.ShareExternalPointer(memory, sizeof memory);
  external.Extend(1, 0);
  EXPECT_NE(external.data<std::string>(), memory);
  EXPECT_EQ(external.data<std::string>()[1], "b");
  EXPECT_EQ(memory[1], "b");
}

TEST(DynamicTensor, ExtendMovesElements) {
  DynamicTensor t({1, 2});
  t.mutable_data<std::unique_ptr<int>>()[1] = std::make_unique<int>(3);
  t.Extend(4, 0);
  EXPECT_EQ(*t.data<std::unique_ptr<int>>()[1], 3);
  EXPECT_EQ(t.data<std::unique_ptr<int>>()[9], nullptr);
  DynamicTensor shares({5, 2});
  shares.ShareData(t);
  EXPECT_THROW(shares.Extend(1, 0), Error);
  EXPECT_THROW(t.Extend(1, 0), Error);
  EXPECT_EQ(t.dim(0), 5);
  EXPECT_EQ(*shares.data<std::unique_ptr<int>>()[1], 3);
}

TEST(DynamicTensor, ReservedSpaceIsExtendedInPlace) {
  DynamicTensor t({2, 2}, std::vector<int>{1, 2, 3, 4});
  EXPECT_THROW(t.ReserveSpace(-1), EnforceNotMet);
  const int* const before = t.data<int>();
  t.ReserveSpace(1);
  EXPECT_EQ(t.data<int>(), before);
  t.set_shrink_policy({false, 0});
  t.ReserveSpace(10);
  const int* const p = t.data<int>();
  t.Extend(8, 0);
  EXPECT_EQ(t.data<int>(), p);
  EXPECT_EQ(t.data<int>()[3], 4);
  t.ReserveSpace(3);
  t.Resize(1, 1);
  EXPECT_EQ(t.data<int>(), p);
  EXPECT_EQ(t.capacity_nbytes(), 20 * sizeof(int));
  DynamicTensor untyped({1});
  EXPECT_SAYS("no element type", untyped.ReserveSpace(2));
}

TEST(DynamicTensor, ExternalMemoryWithRoom) {
  float memory[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  int deleted = 0;
  {
    DynamicTensor t({4});
    t.ShareExternalPointer(memory, TypeMeta::Make<float>(), sizeof memory, [&](void* p) { deleted += p == memory; });
    EXPECT_TRUE(t.shares_data());
    EXPECT_EQ(t.capacity_nbytes(), sizeof memory);
    t.Resize({8});
    EXPECT_EQ(t.data<float>()[7], 8.0f);
    t.Resize({9});
    EXPECT_EQ(deleted, 1);
    EXPECT_SAYS("needs an element type", t.ShareExternalPointer(memory, TypeMeta()));
    t.Resize({2});
    t.ShareExternalPointer(memory);
    EXPECT_EQ(t.capacity_nbytes(), 2 * sizeof(float));
    t.mutable_data<int>();
    EXPECT_NE(t.raw_data(), memory);
  }
  EXPECT_EQ(deleted, 1);
}

}  // namespace
}  // namespace umbra
