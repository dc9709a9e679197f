#include "runtime/positions.h"

#include <algorithm>
#include <initializer_list>

namespace umbra::runtime {

namespace {

struct Range {
  index_t least, most;
};

Range Around(std::initializer_list<index_t> points) {
  const auto [least, most] = std::minmax_element(points.begin(), points.end());
  return {*least, *most};
}

// Quotients truncate, and those by 0 are 0: none is larger than its dividend.
Range Quotient(const Range& a, const Range& b) {
  if (b.least > 0 || b.most < 0)
    return Around({a.least / b.least, a.least / b.most, a.most / b.least, a.most / b.most});
  return Around({a.least, -a.least, a.most, -a.most});
}

// a - a / b * b
Range Rest(const Range& a, const Range& b) {
  const Range divisors = Around({b.least, -b.least, b.most, -b.most});
  const index_t most =
      b.least <= 0 && b.most >= 0 ? std::max(divisors.most, std::max(a.most, -a.least)) : divisors.most - 1;
  return {a.least < 0 ? std::max(a.least, -most) : 0, a.most > 0 ? std::min(a.most, most) : 0};
}

}  // namespace

bool PositionsStayWithin(index_t limit, const std::vector<Position>& positions, std::size_t rank,
                         const std::vector<index_t>& extents) {
  using Kind = Position::Kind;
  // What is reduced over nothing is the identity of 64 bits.
  if (std::any_of(extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(rank),
                  [](index_t extent) { return extent == 0; }))
    return false;
  std::vector<Range> ranges;
  for (const Position& position : positions) {
    const auto of = [&](index_t number) { return ranges.at(static_cast<std::size_t>(number)); };
    const auto extent = [&](std::size_t number) { return extents.at(number); };
    Range range{};
    if (position.kind == Kind::kAxis) {
      range = {0, std::max<index_t>(extent(static_cast<std::size_t>(position.a)) - 1, 0)};
    } else if (position.kind == Kind::kNumber) {
      range.least = range.most = extent(rank + static_cast<std::size_t>(position.a));
    } else if (position.kind == Kind::kConstant) {
      range = {position.a, position.a};
    } else {
      // Within the limit, so that nothing below overflows.
      const Range a = of(position.a), b = of(position.b);
      switch (position.kind) {
        case Kind::kPlus: range = {a.least + b.least, a.most + b.most}; break;
        case Kind::kMinus: range = {a.least - b.most, a.most - b.least}; break;
        case Kind::kTimes:
          range = Around({a.least * b.least, a.least * b.most, a.most * b.least, a.most * b.most});
          break;
        case Kind::kOver: range = Quotient(a, b); break;
        case Kind::kRest: range = Rest(a, b); break;
        case Kind::kMinimum: range = {std::min(a.least, b.least), std::min(a.most, b.most)}; break;
        case Kind::kMaximum: range = {std::max(a.least, b.least), std::max(a.most, b.most)}; break;
        default: range = {std::min(a.least, b.least), std::max(a.most, b.most)}; break;
      }
    }
    if (range.least <= -limit || range.most >= limit) return false;
    ranges.push_back(range);
  }
  return true;
}

}  // namespace umbra::runtime
