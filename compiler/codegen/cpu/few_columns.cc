// Columns that do not fill packets, whose steps follow each other in memory, as the channels of pixels do: packets lie
// across several steps, kStepsOfFew of which are worked on as one that has so many times the columns. What these have
// come to is joined by halves of the steps, and what is known of a column stands as often as it has elements there.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/cpu/columns.h"
#include "compiler/codegen/reductions.h"

namespace umbra::codegen {

using runtime::kStepsOfFew;

// However few are known to be of the axis: a launch may have those of other axes join them. One packet is written
// beyond the last.
int ColumnEmitter::FewColumnsPackets() const {
  return static_cast<int>(runtime::kStepsOfFew * (runtime::kMostFewColumns)) / width_ + 1;
}

index_t ColumnEmitter::KnownFewColumns() const {
  const index_t registers = options_.target == Target::kAvx512 ? 24 : 12;  // that loads and addresses leave
  const runtime::Extent& columns = signature_.axes[static_cast<std::size_t>(vector_axis_)];
  if (width_ == 1 || signature_.row_axes != 1 || !columns.is_static() || kernel_.phases.size() != 1) return 0;
  const index_t packets =
      kStepsOfFew * columns.value / width_ * static_cast<index_t>(kernel_.phases[0].reductions.size());
  return packets <= registers ? columns.value : 0;
}

void ColumnEmitter::FewColumns(const std::string& c, const std::string& columns) {
  const Names outer = names_;
  block_.end = names_.Make("last_" + c), block_.packet = names_.Make("p"), block_.before.clear();
  block_.packets = FewColumnsPackets();
  out_.Line("const long long {} = {} * {};", block_.end, kStepsOfFew, columns);
  if (Splits()) {
    std::vector<int> values;
    for (const int id : Reached())
      if (value(id).scope == Scope::kRow) values.push_back(id);
    const Phase& phase = CurrentPhase();
    FewColumnsPhase(values, phase, c, columns);
    EachOfColumns(c, columns, [&](const std::string& lanes) {
      for (const auto& reduction : phase.reductions) StoreFound(reduction, c, lanes);
    });
    if (FindsMoments()) {
      const Phase& squares = kernel_.phases[1];
      const std::string center = DeclareCenter();
      EachOfColumns(c, columns,
                    [&](const std::string&) { out_.Line("{}[{}] = {};", center, block_.packet, MeanOfBlock()); });
      out_.Line("repeat_columns<{}>({}, {});", kStepsOfFew, center, columns);
      text_[moments_->center] = {fmt::format("{}[{}]", center, block_.packet)};
      FewColumnsPhase({}, squares, c, columns);
      EachOfColumns(c, columns, [&](const std::string& lanes) { StoreFound(squares.reductions[0], c, lanes); });
    }
  } else {
    for (const Phase& phase : kernel_.phases) FewColumnsPhase(phase.row_values, phase, c, columns);
    if (!kernel_.final_stores.empty()) {
      EachOfColumns(c, columns, [&](const std::string& lanes) {
        Names names = names_;
        for (const int id : kernel_.final_row_values) DeclarePacket(id, c, lanes, &names);
        for (const auto& store : kernel_.final_stores) StorePacket(store, c, lanes);
      });
    }
  }
  names_ = outer;
}

void ColumnEmitter::EachOfColumns(const std::string& c, const std::string& columns,
                                  const std::function<void(const std::string&)>& body) {
  out_.Open("for (long long {0} = 0; {0} < {1}; {0} += {2})", c, columns, width_);
  out_.Line("[[maybe_unused]] const long long {} = {} / {};", block_.packet, c, width_);
  if (width_ > 1) out_.Line("const long long lanes = smaller({} - {}, {});", columns, c, width_);
  body(width_ > 1 ? "lanes" : "");
  out_.Close();
}

bool ColumnEmitter::IsReadWithin(int id) const {
  const auto is_read = [&](const std::vector<int>& ids) { return std::find(ids.begin(), ids.end(), id) != ids.end(); };
  return std::any_of(kernel_.phases.begin(), kernel_.phases.end(), [&](const Phase& phase) {
    return is_read(ResultsOf(phase)) || std::any_of(phase.element_values.begin(), phase.element_values.end(),
                                                    [&](int reader) { return is_read(value(reader).args); });
  });
}

void ColumnEmitter::FewColumnsPhase(const std::vector<int>& values, const Phase& phase, const std::string& c,
                                    const std::string& columns) {
  const auto at = [&](const std::string& name) { return fmt::format("{}[{}]", name, block_.packet); };
  const Kept kept = DeclareKept(values, phase);
  std::vector<std::string> repeated;
  std::size_t next = 0;
  if (!values.empty()) {
    EachOfColumns(c, columns, [&](const std::string& lanes) {
      Names names = names_;
      for (const int id : values) {
        DeclareOfColumns(id, c, lanes, &names);
        if (!IsKept(id)) continue;
        if (IsReadWithin(id)) repeated.push_back(kept[next]);
        out_.Line("{} = {};", at(kept[next]), AsPacket(id).text);
        text_[id] = {at(kept[next++])};
      }
    });
  }
  for (const std::string& name : repeated) out_.Line("repeat_columns<{}>({}, {});", kStepsOfFew, name, columns);
  const std::size_t first = next;
  for (const auto& reduction : phase.reductions) text_[reduction.result] = {at(kept[next++])};
  if (!phase.reductions.empty()) {
    EachPacket(c, "0", [&] {
      for (const auto& reduction : phase.reductions)
        out_.Line("{} = {};", text_[reduction.result].text,
                  speller_->Fill(value(reduction.result).type, Identity(kernel_, reduction)).text);
    });
  }
  if (phase.element_values.empty() && phase.stores.empty() && phase.reductions.empty()) return;
  DeclareDivisors(phase, c, "0");
  const int steps = kernel_.rank() - 1;
  InnerLoops(signature_.row_axes, steps, [&] {
    const std::string i = fmt::format("i{}", steps), end = BlockEnd(steps);
    std::string begin = BlockBegin(steps);
    if (const index_t known = KnownFewColumns(); known > 0) {
      // What they come to stays in registers.
      const Names within = names_;
      out_.Open("for (long long {0} = {1}; {0} + {3} <= {2}; {0} += {3})", i, begin, end, kStepsOfFew);
      const std::string all = std::exchange(block_.end, std::to_string(kStepsOfFew * known));
      out_.Line("UMBRA_UNROLL");
      EachPacket(c, "0", [&] { ColumnElement(phase, c, "", names_); });
      block_.end = all;
      out_.Close();
      names_ = within;
      begin = WholeSteps(begin, end, static_cast<int>(kStepsOfFew));
    }
    out_.Open("for (long long {0} = {1}; {0} < {2}; {0} += {3})", i, begin, end, kStepsOfFew);
    const Names within = names_;
    const std::string elements = names_.Make("elements");
    out_.Line("const long long {} = smaller({} - {}, {}) * {};", elements, end, i, kStepsOfFew, columns);
    const std::string all = std::exchange(block_.end, width_ == 1 ? elements : WholeSteps("0", elements, width_));
    EachPacket(c, "0", [&] { ColumnElement(phase, c, "", names_); });
    block_.end = all;
    if (width_ > 1) {
      out_.Open("if (const long long {0} = {1} - {1} % {2}; {0} < {1})", c, elements, width_);
      out_.Line("[[maybe_unused]] const long long {} = {} / {}, lanes = {} - {};", block_.packet, c, width_, elements,
                c);
      LastOfSteps(phase, c);
      out_.Close();
    }
    names_ = within;
    out_.Close();
  });
  ForgetDivisors(phase);
  for (std::size_t k = 0; k < phase.reductions.size(); ++k) {
    out_.Line("fold_columns<{}, {}>({}, {});", Joiner(phase.reductions[k]), kStepsOfFew, kept[first + k], columns);
    if (IsReadWithin(phase.reductions[k].result) && !Splits())
      out_.Line("repeat_columns<{}>({}, {});", kStepsOfFew, kept[first + k], columns);
  }
}

void ColumnEmitter::LastOfSteps(const Phase& phase, const std::string& c) {
  Names names = names_;
  ElementBody(phase, c, "lanes", &names, [&] {
    for (const auto& reduction : phase.reductions) {
      const Expr element{
          fmt::format("keep({}, lanes, {})", AsPacket(reduction.value).text, Identity(kernel_, reduction))};
      const Expr& total = text_[reduction.result];
      RemarkPlace(reduction.result);
      out_.Line("{} = {};", total.text, Join(*speller_, kernel_, reduction, total, element));
    }
  });
}

}  // namespace umbra::codegen
