// Corners of TShape: streams with formats of their own, products, ranks around the stack cache.
#include "umbra/tshape.h"
#include "tests/support/testing.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <limits>
#include <list>
#include <locale>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace umbra {
namespace {

TShape Of(const std::vector<index_t>& extents) { return TShape(extents.begin(), extents.end()); }
std::string Text(const TShape& shape) {
  std::ostringstream out;
  out << shape;
  return out.str();
}
/// Groups digits by three with a comma, as many locales do.
struct Grouping : std::numpunct<char> {
  char do_thousands_sep() const override { return ','; }
  std::string do_grouping() const override { return "\3"; }
};

static_assert(std::is_nothrow_move_constructible_v<TShape> && std::is_nothrow_move_assignable_v<TShape>,
              "vectors of shapes move them");

TEST(TShapeCorners, RanksAroundTheStackCache) {
  for (index_t rank = 0; rank <= 2 * TShape::kStackCache; ++rank) {
    const TShape ones(rank);
    EXPECT_EQ(ones.ndim(), rank);
    EXPECT_EQ(ones.Size(), 1u);
    for (index_t from = 0; from <= 2 * TShape::kStackCache; ++from) {
      TShape target(from);
      for (index_t i = 0; i < from; ++i) target[i] = 100 + i;
      target = ones;
      EXPECT_EQ(target, ones);
      TShape source(from), copy(rank);
      copy = std::move(source);
      EXPECT_EQ(copy.ndim(), from);
      EXPECT_EQ(source.ndim(), 0);  // NOLINT: a moved-from shape is empty
      source = ones;
      EXPECT_EQ(source, ones);
    }
  }
  TShape self = Of({1, 2, 3, 4, 5, 6});
  TShape& same = self;
  self = std::move(same);
  EXPECT_EQ(Text(self), "(1,2,3,4,5,6)");
  self = same;
  EXPECT_EQ(Text(self), "(1,2,3,4,5,6)");
}

TEST(TShapeCorners, FromIteratorsOfAnyKind) {
  const std::list<int> extents = {4, 3, 2, 1, 5};
  EXPECT_EQ(Text(TShape(extents.begin(), extents.end())), "(4,3,2,1,5)");
  std::istringstream in("6 5 4 3 2 1");  // can be read once only
  EXPECT_EQ(Text(TShape(std::istream_iterator<int>(in), std::istream_iterator<int>())), "(6,5,4,3,2,1)");
  TShape target = Of({9});
  target.CopyFrom(std::istream_iterator<int>(in), std::istream_iterator<int>());
  EXPECT_EQ(target.ndim(), 0);
}

TEST(TShapeCorners, RanksBeyondInt) {
  for (const index_t rank : {index_t{1} << 60, std::numeric_limits<index_t>::max(), TShape::kMaxRank + 1, index_t{-1}})
    EXPECT_SAYS("a rank of 0 to 2147483647 is expected, " + std::to_string(rank), TShape(rank));
}

TEST(TShapeCorners, RankZeroIsNeverRead) {
  const TShape none;
  EXPECT_EQ(none.begin(), none.end());
  EXPECT_EQ(none.get<0>().kDimension, 0);
  EXPECT_EQ(none, Shape<0>());
  EXPECT_EQ(TShape(Shape<0>()), none);
  EXPECT_EQ(none.FlatTo2D(), Shape2(0, 0));
  EXPECT_EQ(none.FlatTo3D(-1, 7), Shape3(0, 0, 0));
  EXPECT_THROW(none.FlatTo3D(1, 0), Error);  // as the original
  EXPECT_THROW(none.get<1>(), Error);
  EXPECT_THROW(none.ProdShape(0, 1), Error);
#ifndef NDEBUG
  EXPECT_SAYS("whose rank is 0", none[0]);
#endif
}

TEST(TShapeCorners, AxesOutsideTheRank) {
  const TShape s = Of({2, 3, 4});
  EXPECT_SAYS("FlatTo3D(-1, 1)", s.FlatTo3D(-1, 1));
  EXPECT_SAYS("FlatTo3D(-1, -1)", s.FlatTo3D(-1));
  EXPECT_SAYS("FlatTo3D(0, 3)", s.FlatTo3D(0, 3));
}

TEST(TShapeCorners, SwapBetweenStackAndHeap) {
  TShape small = Of({1, 2}), large = Of({1, 2, 3, 4, 5, 6});
  small.swap(large);
  EXPECT_EQ(Text(small) + Text(large), "(1,2,3,4,5,6)(1,2)");
  std::swap(small, large);
  EXPECT_EQ(Text(small) + Text(large), "(1,2)(1,2,3,4,5,6)");
  large.swap(large);
  EXPECT_EQ(Text(large), "(1,2,3,4,5,6)");
}

TEST(TShapeCorners, ContainersOfThemselves) {
  std::vector<TShape> shapes = {Of({1}), Of({1, 2, 3, 4, 5})};
  for (int i = 0; i < 5; ++i) {  // with and without growth
    shapes.push_back(shapes[1]);
    shapes.insert(shapes.begin(), shapes.back());
    shapes.insert(shapes.begin() + 1, 2, shapes[0]);
    ASSERT_EQ(Text(shapes.front()), "(1,2,3,4,5)");
    shapes.erase(shapes.begin(), shapes.begin() + 3);
    ASSERT_EQ(Text(shapes[0]) + Text(shapes.back()), "(1,)(1,2,3,4,5)");
  }
}

TEST(TShapeCorners, ProductsWithZerosNegativesAndOverflow) {
  const index_t huge = index_t{1} << 40;
  EXPECT_EQ(Of({0, huge, huge}).Size(), 0u);
  EXPECT_EQ(Of({huge, huge, 0}).Size(), 0u);
  EXPECT_EQ(Of({huge, huge, 2}).ProdShape(1, 3), 2 * huge);
  EXPECT_NE(MessageOf([&] { Of({huge, huge, 2}).Size(); }).find("overflows"), std::string::npos);
  EXPECT_NE(MessageOf([&] { Of({huge, huge, 2}).FlatTo2D(); }).find("overflows"), std::string::npos);
  EXPECT_NE(MessageOf([&] { Of({3, -2}).Size(); }).find("negative extent in dimension 1"), std::string::npos);
  EXPECT_NE(MessageOf([&] { Of({3, 2}).ProdShape(-1, 1); }).find("its 2 dimensions"), std::string::npos);
  EXPECT_EQ(Of({3, 2}).ProdShape(1, 1), 1);
  EXPECT_EQ(Of({std::numeric_limits<index_t>::max()}).Size(),
            static_cast<std::size_t>(std::numeric_limits<index_t>::max()));
  EXPECT_EQ(Of({7}).FlatTo2D(), Shape2(1, 7));
  EXPECT_EQ(Of({7}).FlatTo3D(0), Shape3(1, 7, 1));
  EXPECT_EQ(TShape().FlatTo3D(0), Shape3(0, 0, 0));
}

TEST(TShapeCorners, TextIgnoresTheFormatOfTheStream) {
  std::ostringstream out;
  out.imbue(std::locale(out.getloc(), new Grouping));
  out << std::hex << std::showbase << Of({1000000, 17});
  EXPECT_EQ(out.str(), "(1000000,17)");
  std::istringstream in("(1,234,010)");
  in.imbue(std::locale(in.getloc(), new Grouping));
  in.unsetf(std::ios::basefield);
  TShape read;
  ASSERT_TRUE(in >> read);
  EXPECT_EQ(Text(read), "(1,234,10)");
}

TEST(TShapeCorners, TextLeavesWhatFollows) {
  std::istringstream in("(2,3)(4,) 5 x");
  TShape a, b, c, d = Of({9});
  ASSERT_TRUE(in >> a >> b >> c);
  EXPECT_EQ(Text(a) + Text(b) + Text(c), "(2,3)(4,)(5,)");
  EXPECT_FALSE(in >> d);
  EXPECT_EQ(Text(d), "(9,)");
}

TEST(TShapeCorners, TextWithoutAnExtentWhereOneIsDue) {
  for (const char* bad : {"(,)", "(3,,4)", "(3 4)", "(3,+4)", "(0x10,)", "(3LL,)", "((3,),)", "-3",
                          "(9223372036854775808,)", "9223372036854775808"}) {
    std::istringstream in(bad);
    TShape kept = Of({1, 2, 3, 4, 5});
    EXPECT_FALSE(in >> kept) << bad;
    EXPECT_TRUE(in.fail()) << bad;
    EXPECT_EQ(Text(kept), "(1,2,3,4,5)") << bad;
  }
  std::istringstream largest("(9223372036854775807,)");
  TShape read;
  ASSERT_TRUE(largest >> read);
  EXPECT_EQ(read[0], std::numeric_limits<index_t>::max());
}

TEST(TShapeCorners, TextOnAStreamThatThrows) {
  std::istringstream in("(3,a)");
  in.exceptions(std::ios::failbit);
  TShape kept = Of({6});
  EXPECT_THROW(in >> kept, std::ios_base::failure);
  EXPECT_EQ(Text(kept), "(6,)");
}

/// Counts the bytes that a reader asks for; has an end unless it is filled for ever.
struct Bytes {
  std::string bytes;
  std::size_t at = 0, largest_request = 0;
  bool endless = false;
  void Write(const void* p, std::size_t n) { bytes.append(static_cast<const char*>(p), n); }
  std::size_t Read(void* p, std::size_t n) {
    largest_request = std::max(largest_request, n);
    if (endless && at == bytes.size()) {
      std::memset(p, 0, n);
      return n;
    }
    n = std::min(n, bytes.size() - at);
    std::memcpy(p, bytes.data() + at, n);
    at += n;
    return n;
  }
};

TEST(TShapeCorners, SaveAndLoadAgreeOnWhatIsBelieved) {
  Bytes file;
  TShape().Save(&file);
  TShape(TShape::kMaxSavedRank).Save(&file);
  EXPECT_EQ(file.bytes.size(), (2 + TShape::kMaxSavedRank) * sizeof(index_t));
  TShape read = Of({4});
  ASSERT_TRUE(read.Load(&file));
  EXPECT_EQ(read.ndim(), 0);
  ASSERT_TRUE(read.Load(&file));
  EXPECT_EQ(read, TShape(TShape::kMaxSavedRank));
  const std::size_t before = file.bytes.size();
  EXPECT_THROW(TShape(TShape::kMaxSavedRank + 1).Save(&file), Error);
  EXPECT_THROW(Of({2, -1}).Save(&file), Error);
  EXPECT_EQ(file.bytes.size(), before);
  TShape moved = Of({1, 2, 3, 4, 5});
  read = std::move(moved);
  moved.Save(&file);  // NOLINT: a moved-from shape is empty
  ASSERT_TRUE(read.Load(&file));
  EXPECT_EQ(read.ndim(), 0);
}

TEST(TShapeCorners, LoadAsksForNoMoreThanAShapeCanHave) {
  for (index_t hostile : {std::numeric_limits<index_t>::max(), std::numeric_limits<index_t>::min(),
                          TShape::kMaxSavedRank + 1, index_t{-1}}) {
    Bytes file;
    file.endless = true;
    file.Write(&hostile, sizeof hostile);
    TShape kept = Of({7});
    EXPECT_FALSE(kept.Load(&file)) << hostile;
    EXPECT_LE(file.largest_request, TShape::kMaxSavedRank * sizeof(index_t));
    EXPECT_EQ(Text(kept), "(7,)");
  }
  Bytes negative;
  for (index_t word : {index_t{2}, index_t{3}, index_t{-4}}) negative.Write(&word, sizeof word);
  TShape kept = Of({7});
  EXPECT_FALSE(kept.Load(&negative));
  EXPECT_EQ(Text(kept), "(7,)");
}

}  // namespace
}  // namespace umbra
