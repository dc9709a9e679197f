#include "umbra/partial_shape.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace umbra {
namespace {

template <typename T>
std::string Text(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}
const Dimension kAny = Dimension::dynamic();

TEST(Dimension, StaticAndDynamic) {
  EXPECT_TRUE(Dimension().is_dynamic());
  EXPECT_TRUE(Dimension(3).is_static());
  EXPECT_EQ(static_cast<std::int64_t>(Dimension(-3)), -3);
  EXPECT_EQ(static_cast<std::size_t>(Dimension(3)), 3u);
  EXPECT_THROW(static_cast<void>(static_cast<std::size_t>(Dimension(-3))), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(static_cast<std::int64_t>(kAny)), std::invalid_argument);
  EXPECT_THROW(Dimension{Dimension::s_dynamic_val}, std::invalid_argument);
  EXPECT_EQ(Text(kAny) + Text(Dimension(7)), "?7");
}

TEST(Dimension, Relations) {
  const Dimension two(2), three(3);
  EXPECT_TRUE(two.same_scheme(Dimension(2)) && kAny.same_scheme(Dimension()));
  EXPECT_FALSE(two.same_scheme(three) || two.same_scheme(kAny));
  EXPECT_TRUE(two.compatible(kAny) && kAny.compatible(two) && two.compatible(two));
  EXPECT_FALSE(two.compatible(three));
  EXPECT_TRUE(kAny.relaxes(two) && two.relaxes(two) && kAny.relaxes(kAny));
  EXPECT_FALSE(two.relaxes(kAny) || two.relaxes(three));
  EXPECT_TRUE(two.refines(kAny) && two.refines(two));
  EXPECT_FALSE(kAny.refines(two));
}

TEST(Dimension, Merges) {
  Dimension d = 9;
  EXPECT_TRUE(Dimension::merge(d, kAny, 3) && static_cast<std::int64_t>(d) == 3);
  EXPECT_TRUE(Dimension::merge(d, kAny, kAny) && d.is_dynamic());
  d = 9;
  EXPECT_FALSE(Dimension::merge(d, 2, 3));
  EXPECT_EQ(static_cast<std::int64_t>(d), 9);
  EXPECT_TRUE(Dimension::broadcast_merge(d, 1, 3) && static_cast<std::int64_t>(d) == 3);
  EXPECT_TRUE(Dimension::broadcast_merge(d, kAny, 1) && d.is_dynamic());
  EXPECT_TRUE(Dimension::broadcast_merge(d, kAny, 4) && static_cast<std::int64_t>(d) == 4);
  EXPECT_FALSE(Dimension::broadcast_merge(d, 2, 3));
  const Dimension n = Dimension::WithSymbol(0), m = Dimension::WithSymbol(1);
  EXPECT_TRUE(Dimension::broadcast_merge(d, n, m) && d.is_dynamic() && d.symbol() < 0);
  EXPECT_TRUE(Dimension::broadcast_merge(d, n, n) && d.symbol() == 0);
}

TEST(Dimension, Arithmetic) {
  EXPECT_EQ(Text(Dimension(2) + 3), "5");
  EXPECT_EQ(Text(Dimension(2) - 3), "-1");
  EXPECT_EQ(Text(Dimension(2) * 3), "6");
  EXPECT_EQ(Text(kAny + 3) + Text(3 - kAny) + Text(kAny * 3), "???");
  EXPECT_EQ(Text(kAny * 0) + Text(Dimension(0) * kAny), "00");
  Dimension d = 4;
  d += 2;
  d -= 1;
  d *= 3;
  EXPECT_EQ(Text(d), "15");
  const Dimension large(std::numeric_limits<std::int64_t>::max() - 1);
  EXPECT_THROW(large + 5, std::overflow_error);
  EXPECT_THROW(large + 1, std::overflow_error);  // would look dynamic
  EXPECT_THROW(large * 2, std::overflow_error);
  EXPECT_THROW(Dimension(std::numeric_limits<std::int64_t>::min()) - 1, std::overflow_error);
}

TEST(PartialShape, Construction) {
  EXPECT_EQ(Text(PartialShape{1, kAny, 2}), "{1,?,2}");
  EXPECT_EQ(Text(PartialShape()), "{}");
  EXPECT_EQ(Text(PartialShape::dynamic()), "?");
  EXPECT_EQ(Text(PartialShape::dynamic(2)), "{?,?}");
  EXPECT_TRUE(PartialShape().is_static());
  EXPECT_TRUE((PartialShape{1, 2}).is_static());
  EXPECT_TRUE((PartialShape{1, kAny}).is_dynamic());
  EXPECT_TRUE(PartialShape::dynamic().rank().is_dynamic());
  EXPECT_EQ(static_cast<std::int64_t>((PartialShape{1, kAny}).rank()), 2);
  EXPECT_EQ((PartialShape{2, 3}).to_shape(), (std::vector<std::size_t>{2, 3}));
  EXPECT_THROW((PartialShape{2, kAny}).to_shape(), std::invalid_argument);
  EXPECT_THROW((PartialShape{2, -1}).to_shape(), std::invalid_argument);
  EXPECT_TRUE((PartialShape{2, kAny}).all_non_negative());
  EXPECT_FALSE((PartialShape{2, -1}).all_non_negative());
  PartialShape s{1, 2};
  s[1] = 5;
  EXPECT_EQ(Text(s), "{1,5}");
  EXPECT_THROW(s[2], std::out_of_range);
  EXPECT_EQ(Text(PartialShape{1, 2} + PartialShape{kAny, 3}), "{?,5}");
  EXPECT_EQ(Text(PartialShape{1, 2} + PartialShape::dynamic()), "?");
  EXPECT_THROW((PartialShape{1} + PartialShape{1, 2}), std::invalid_argument);
  EXPECT_TRUE(PartialShape(std::vector<std::size_t>{2, 3}).same_scheme(PartialShape{2, 3}));
  EXPECT_TRUE(PartialShape(Shape3(4, 0, 1)).same_scheme(PartialShape{4, 0, 1}));
  EXPECT_THROW(PartialShape(std::vector<std::size_t>{~std::size_t{0}}), Error);
}

TEST(PartialShape, Relations) {
  const PartialShape any = PartialShape::dynamic(), a{2, kAny}, b{2, 3}, c{3, 3}, d{2, 3, 4};
  EXPECT_TRUE(any.compatible(d) && a.compatible(b) && b.compatible(a));
  EXPECT_FALSE(b.compatible(c) || b.compatible(d));
  EXPECT_TRUE(any.same_scheme(PartialShape::dynamic()) && a.same_scheme(PartialShape{2, kAny}));
  EXPECT_FALSE(a.same_scheme(b) || any.same_scheme(a) || b.same_scheme(d));
  EXPECT_TRUE(any.relaxes(a) && a.relaxes(b) && b.relaxes(b) && b.refines(a) && a.refines(any));
  EXPECT_FALSE(b.relaxes(a) || a.relaxes(any) || a.relaxes(c) || a.relaxes(d));
}

TEST(PartialShape, Merges) {
  PartialShape s = PartialShape::dynamic();
  EXPECT_TRUE(s.merge_rank(Rank::dynamic()) && s.rank().is_dynamic());
  EXPECT_TRUE(s.merge_rank(2));
  EXPECT_EQ(Text(s), "{?,?}");
  EXPECT_FALSE(s.merge_rank(3));
  EXPECT_TRUE(PartialShape::merge_into(s, PartialShape{kAny, 4}));
  EXPECT_TRUE(PartialShape::merge_into(s, PartialShape{3, kAny}));
  EXPECT_EQ(Text(s), "{3,4}");
  EXPECT_TRUE(PartialShape::merge_into(s, PartialShape::dynamic()));
  EXPECT_FALSE(PartialShape::merge_into(s, PartialShape{3, 5}));
  EXPECT_FALSE(PartialShape::merge_into(s, PartialShape{3}));
}

TEST(PartialShape, Broadcasts) {
  const auto merge = [](PartialShape a, const PartialShape& b, AutoBroadcastSpec rule) {
    return PartialShape::broadcast_merge_into(a, b, rule) ? Text(a) : std::string("no");
  };
  const op::AutoBroadcastSpec none{}, numpy{AutoBroadcastSpec::kNumpy}, pdpd{AutoBroadcastSpec::kPdpd},
      pdpd1{AutoBroadcastSpec::kPdpd, 1};
  EXPECT_EQ(merge({2, kAny}, {kAny, 3}, none), "{2,3}");
  EXPECT_EQ(merge({2, 1}, {2, 3}, none), "no");
  EXPECT_EQ(merge({2, 1, 4}, {3, 1}, numpy), "{2,3,4}");
  EXPECT_EQ(merge({4}, {5, 3, kAny}, numpy), "{5,3,4}");
  EXPECT_EQ(merge({kAny, 1}, {1, kAny}, numpy), "{?,?}");
  EXPECT_EQ(merge({2, 3}, {2, 4}, numpy), "no");
  EXPECT_EQ(merge({2, 3}, PartialShape::dynamic(), numpy), "?");
  EXPECT_EQ(merge({2, 3, 4}, {3, 4}, pdpd), "{2,3,4}");
  EXPECT_EQ(merge({2, 3, 4}, {3}, pdpd1), "{2,3,4}");
  EXPECT_EQ(merge({2, kAny, 4}, {3, 1}, pdpd1), "{2,3,4}");
  EXPECT_EQ(merge({2, 3, 4}, {4}, pdpd1), "no");
  EXPECT_EQ(merge({3}, {2, 3}, pdpd), "no");
}

TEST(PartialShape, ConvertsFromVectorsAndShapes) {
  const auto text = [](const PartialShape& shape) { return Text(shape); };
  EXPECT_EQ(text(std::vector<Dimension>{1, kAny, 2}), "{1,?,2}");
  EXPECT_EQ(text(std::vector<Dimension>{}), "{}");
  EXPECT_EQ(text(std::vector<std::size_t>{2, 0}), "{2,0}");
  EXPECT_EQ(text(std::vector<std::int64_t>{2, -1}), "{2,-1}");
  EXPECT_EQ(text(Shape3(4, 0, 1)), "{4,0,1}");
  EXPECT_EQ(text({1, kAny}), "{1,?}");
  PartialShape s = std::vector<std::size_t>{3};
  s = Shape2(5, 6);
  EXPECT_TRUE(s.compatible(Shape2(5, 6)) && s.refines(std::vector<Dimension>{kAny, 6}));
  const std::size_t last = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW(PartialShape(std::vector<std::size_t>{last}), Error);  // would look dynamic
  EXPECT_EQ(text(std::vector<std::size_t>{last - 1}), "{9223372036854775806}");
  EXPECT_THROW(PartialShape(std::vector<std::int64_t>{Dimension::s_dynamic_val}), std::invalid_argument);
}

TEST(PartialShape, IterationAndConstAccess) {
  const PartialShape s{1, kAny, 3}, any = PartialShape::dynamic();
  EXPECT_EQ(s.size(), 3u);
  EXPECT_TRUE(s[1].is_dynamic());
  EXPECT_EQ(static_cast<std::int64_t>(s[2]), 3);
  EXPECT_THROW(s[3], std::out_of_range);
  EXPECT_THROW(any[0], std::out_of_range);
  std::string text;
  for (const Dimension& d : s) text += Text(d);
  EXPECT_EQ(text, "1?3");
  EXPECT_EQ(s.end() - s.begin(), 3);
  EXPECT_TRUE(any.begin() == any.end() && any.size() == 0);
  EXPECT_THROW(any.to_shape(), std::invalid_argument);
  EXPECT_TRUE(PartialShape().to_shape().empty());
}

TEST(PartialShape, NegativeRanks) {
  PartialShape any = PartialShape::dynamic(), two{1, 2};
  EXPECT_THROW(PartialShape::dynamic(-1), std::invalid_argument);
  EXPECT_THROW(any.merge_rank(-1), std::invalid_argument);
  EXPECT_EQ(Text(any), "?");
  EXPECT_FALSE(two.merge_rank(-2));
  EXPECT_TRUE(two.merge_rank(Rank::dynamic()) && two.merge_rank(2));
  EXPECT_EQ(Text(two), "{1,2}");
  EXPECT_TRUE(any.merge_rank(0));
  EXPECT_EQ(Text(any), "{}");
  try {
    PartialShape::dynamic(-3);
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("-3 was given"), std::string::npos);
  }
}

TEST(PartialShape, BroadcastsOfZeroExtentsAndDynamicRanks) {
  const auto merge = [](PartialShape a, const PartialShape& b, AutoBroadcastSpec rule) {
    return PartialShape::broadcast_merge_into(a, b, rule) ? Text(a) : std::string("no");
  };
  const AutoBroadcastSpec none{}, numpy{AutoBroadcastSpec::kNumpy}, pdpd{AutoBroadcastSpec::kPdpd};
  const PartialShape any = PartialShape::dynamic();
  EXPECT_EQ(merge({2, 0}, {1, 1}, numpy), "{2,0}");
  EXPECT_EQ(merge({1}, {0, 3, 0}, numpy), "{0,3,0}");
  EXPECT_EQ(merge({0}, {3}, numpy), "no");
  EXPECT_EQ(merge({0}, {kAny}, numpy), "{0}");
  EXPECT_EQ(merge({0}, {1}, none), "no");
  EXPECT_EQ(merge({2, 0}, {0}, pdpd), "{2,0}");
  EXPECT_EQ(merge({2, 0}, {1}, pdpd), "{2,0}");
  EXPECT_EQ(merge({2, 3}, {0}, pdpd), "no");
  EXPECT_EQ(merge({2, 3}, any, pdpd), "{2,3}");
  EXPECT_EQ(merge(any, {2, 3}, pdpd), "?");
  EXPECT_EQ(merge(any, any, pdpd), "?");
  EXPECT_EQ(merge(any, {2}, numpy) + merge(any, {2}, none), "?{2}");
  EXPECT_EQ(merge({2, 3}, {}, pdpd) + merge({2, 3}, {}, numpy), "{2,3}{2,3}");
  EXPECT_EQ(merge({2, 3}, {3}, {AutoBroadcastSpec::kPdpd, -2}), "no");
}

TEST(PartialShape, MergesWithItself) {
  for (const auto type : {AutoBroadcastSpec::kNone, AutoBroadcastSpec::kNumpy, AutoBroadcastSpec::kPdpd})
    for (const PartialShape& shape : {PartialShape{}, PartialShape{1, kAny, 0}, PartialShape::dynamic()}) {
      PartialShape s = shape;
      EXPECT_TRUE(PartialShape::broadcast_merge_into(s, s, {type}));
      EXPECT_TRUE(s.same_scheme(shape)) << s;
      EXPECT_TRUE(PartialShape::merge_into(s, s) && s.same_scheme(shape)) << s;
    }
}

TEST(PartialShape, MovedFromAndItself) {
  PartialShape from{2, kAny, 0}, any = PartialShape::dynamic();
  PartialShape to = std::move(from);
  EXPECT_EQ(Text(to), "{2,?,0}");
  EXPECT_TRUE(from.is_static() && from.size() == 0);  // NOLINT: a moved-from shape is valid
  from = to;
  EXPECT_EQ(Text(from), "{2,?,0}");
  PartialShape& same = to;
  to = same;
  EXPECT_EQ(Text(to), "{2,?,0}");
  to = std::move(any);
  EXPECT_EQ(Text(to), "?");
  EXPECT_TRUE(PartialShape::merge_into(to, from));
  EXPECT_EQ(Text(to), "{2,?,0}");
}

TEST(PartialShape, LargeExtentsAndRanks) {
  const std::int64_t large = std::int64_t{3} << 31;
  PartialShape s{large, kAny}, many = PartialShape::dynamic(100);
  EXPECT_TRUE(PartialShape::merge_into(s, PartialShape{kAny, large * 2}));
  EXPECT_EQ(s.to_shape(), (std::vector<std::size_t>{std::size_t{3} << 31, std::size_t{3} << 32}));
  EXPECT_EQ(Text(s[0] * 4), std::to_string(large * 4));
  EXPECT_TRUE(PartialShape::broadcast_merge_into(many, PartialShape{large}, {AutoBroadcastSpec::kNumpy}));
  EXPECT_EQ(static_cast<std::int64_t>(many[99]), large);
  EXPECT_TRUE(many[98].is_dynamic());
}

}  // namespace
}  // namespace umbra
