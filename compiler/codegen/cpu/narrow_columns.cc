// Columns that are a few packets, for which a block of them takes as much beside its steps as within: all packets side
// by side, so that one does not wait for what another has come to, which stays in registers. Each column is reduced as
// in a block.
#include <algorithm>
#include <functional>
#include <string>

#include "compiler/codegen/cpu/columns.h"

namespace umbra::codegen {

namespace {

constexpr int kFewPackets = 2, kMostPackets = 4;

// Steps, of which fewer make one whole packet narrow, too.
constexpr int kFewSteps = 32;

}  // namespace

bool ColumnEmitter::MayBeNarrow() const {
  constexpr int kRegisters = 24;  // that loads and addresses leave
  if (vector_axis_ == 0 || !HasMasks() || Splits() || HasShortRows() || !kept_columns_.what.empty() ||
      !WalksBlocksOfColumns())
    return false;
  return KeptOfPacket() * kMostPackets <= kRegisters &&
         std::all_of(kernel_.phases.begin(), kernel_.phases.end(),
                     [this](const Phase& phase) { return phase.guard < 0 && IsLight(phase); });
}

void ColumnEmitter::NarrowColumns(const std::string& c, const std::string& first, const std::string& last) {
  const std::string count = CountText(first, last);
  out_.Open("if (({0} > {1} && {0} <= {2}) || ({0} == {1} && {3} < {4}))", count, width_, kFewPackets * width_,
            ElementsOfRow(), kFewSteps);
  SideBySide(c, first, last, kFewPackets);
  out_.Middle(fmt::format("}} else if ({0} > {1} && {0} <= {2}) {{", count, (kMostPackets - 1) * width_,
                          kMostPackets * width_));
  SideBySide(c, first, last, kMostPackets);
}

void ColumnEmitter::SideBySide(const std::string& c, const std::string& first, const std::string& last, int packets) {
  const Names outer = names_;
  const auto usual = block_;
  block_.end = last, block_.packet = "k", block_.packets = packets, block_.side_by_side = true;
  block_.lanes = "lanes";
  BlockBody(c, first);
  block_ = usual;
  names_ = outer;
}

void ColumnEmitter::EachSideBySide(const std::string& c, const std::string& first, const std::function<void()>& body) {
  out_.Open("for (int k = 0; k < {}; ++k)", block_.packets);
  out_.Line("const long long {} = {}k * {};", c, first == "0" ? "" : first + " + ", width_);
  DeclareLanes(c, block_.end);
  body();
  out_.Close();
}

}  // namespace umbra::codegen
