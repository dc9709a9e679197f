// Element-wise kernels over rows of a few elements: packets that go across them.
#ifndef UMBRA_COMPILER_PLAN_SHORT_ROWS_H_
#define UMBRA_COMPILER_PLAN_SHORT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/plan/plan.h"

namespace umbra::plan {

/// The most elements of rows that several axes or several operands have together.
inline constexpr std::int64_t kLongestOfSeveral = 128;

/// The longest row that packets go across.
inline constexpr std::int64_t kShortRow = 15;
/// The same of a kernel that may compute functions.
std::int64_t LongestShortRow(const Kernel& kernel);

/// Do packets go across rows of so many elements, a known number, or along them? Across those that are shorter than
/// packets; where the kernel computes functions, which waste most in a packet that is not full, across longer ones,
/// too.
bool IsShortRow(const Kernel& kernel, std::int64_t elements);

/// What a gather takes its elements from, where each step along an axis takes the next one: all that its operand has
/// behind one dimension.
struct GatheredRow {
  std::size_t dim = 0;
  runtime::Extent elements;
};
/// Nothing if steps along `across` do anything else, or if several dimensions, of which one is open, are behind.
std::optional<GatheredRow> RowOf(const Plan& plan, const Kernel& kernel, const Value& gather, int across);

/// Where an element-wise kernel cannot walk its operands as one long row, as one of them is repeated along short rows
/// or turned (pixels of three channels, scaled by channel, or taken apart), its short rows become the innermost axis,
/// or several, which operands may have in any order (matrices of 3 x 4, turned), and packets go along the one before.
/// So it is with what takes its elements from short rows of others: a part of them, or several joined, or their
/// elements in another order. For processors: a GPU's threads find their elements wherever they are.
void GoAcrossShortRows(Plan* plan);

/// What an operand has of short rows is to be dense (Access::dense), so that a kernel knows where they are. Rows of
/// several axes, as pictures of 4 x 4 are, are short rows only then: packets go across all of their elements.
void AskForDenseRows(Plan* plan);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_SHORT_ROWS_H_
