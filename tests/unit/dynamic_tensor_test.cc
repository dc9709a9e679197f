#include "tests/support/testing.h"
#include "umbra/dynamic_tensor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

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
  t.Extend(1, 100);
  EXPECT_EQ(t.capacity_nbytes(), 6 * 3 * sizeof(int));
  const int* p = t.data<int>();
  t.Extend(2, 0);
  EXPECT_EQ(t.data<int>(), p);
  t.ShrinkTo(1);
  EXPECT_EQ(t.size(), 3);
  EXPECT_EQ(t.data<int>(), p);
  EXPECT_THROW(t.ShrinkTo(2), EnforceNotMet);
  EXPECT_THROW(t.Extend(-1, 0), EnforceNotMet);
  DynamicTensor untyped({1});
  EXPECT_NE(MessageOf([&] { untyped.Extend(1, 0); }).find("no element type"), std::string::npos);
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

}  // namespace
}  // namespace umbra
