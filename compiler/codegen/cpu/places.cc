// Rows whose places choose what is computed, as those do that join columns of several tensors: the places that choose
// alike are a loop of their own, with nothing in it that others need.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "compiler/codegen/cpu/columns.h"
#include "compiler/plan/short_rows.h"

namespace umbra::codegen {

// What the position, or the condition of positions, is at a place, which has these indices, if that follows from it.
std::optional<index_t> ColumnEmitter::KnownAt(int id, const std::map<int, index_t>& place,
                                              std::map<int, std::optional<index_t>>* known) const {
  if (const auto found = known->find(id); found != known->end()) return found->second;
  const Value& v = value(id);
  const auto of_args = [&]() -> std::optional<index_t> {
    if (v.kind == Value::Kind::kIndex) {
      const auto index = place.find(v.index);
      return index != place.end() ? std::optional(index->second) : std::nullopt;
    }
    if (v.kind == Value::Kind::kConstant && (v.type == DType::kInt64 || v.type == DType::kBool))
      return static_cast<index_t>(v.constant);
    if (v.kind != Value::Kind::kMap || v.args.empty() || v.args.size() > 2) return std::nullopt;
    const auto first = KnownAt(v.args.front(), place, known), last = KnownAt(v.args.back(), place, known);
    using graph::Op;
    if (const bool both = v.op == Op::logical_and; both || v.op == Op::logical_or) {
      if (first && (*first != 0) != both) return !both;
      if (last && (*last != 0) != both) return !both;
    }
    if (!first || !last) return std::nullopt;
    const index_t a = *first, b = *last;
    switch (v.op) {
      case Op::negative: return -a;
      case Op::plus: return a + b;
      case Op::minus: return a - b;
      case Op::mul: return a * b;
      case Op::lt: return a < b;
      case Op::le: return a <= b;
      case Op::gt: return a > b;
      case Op::ge: return a >= b;
      case Op::eq: return a == b;
      case Op::ne: return a != b;
      case Op::logical_and:
      case Op::logical_or: return a;
      case Op::logical_not: return a == 0;
      default: return std::nullopt;
    }
  };
  const std::optional<index_t> found = of_args();
  return known->emplace(id, found).first->second;
}

std::map<int, bool> ColumnEmitter::DecidedAt(const Phase& phase, const std::map<int, index_t>& place) const {
  std::map<int, std::optional<index_t>> known;
  std::map<int, bool> decided;
  for (const int id : phase.element_values)
    if (const auto condition = decided_.ConditionOf(id))
      if (const auto holds = KnownAt(*condition, place, &known)) decided[*condition] = *holds != 0;
  return decided;
}

bool ColumnEmitter::ChoosesInBatch() const {
  index_t points = 1;
  std::map<int, index_t> place;
  for (int axis = vector_axis_ + 1; axis < kernel_.rank(); ++axis) {
    if (!IsBaked(axis)) return false;
    points *= ElementsAlong({axis});
    place[axis] = 0;
  }
  return options_.spelling == Spelling::kPackets && !plan::HasScans(kernel_) && kernel_.phases.size() == 1 &&
         points <= plan::kLongestOfSeveral && !DecidedAt(kernel_.phases[0], place).empty();
}

std::vector<ColumnEmitter::PlaceRun> ColumnEmitter::RunsOfPlaces(const Phase& phase) const {
  std::vector<PlaceRun> runs;
  if (!(signature_.goes_along_columns() || signature_.goes_across_batch()) || Splits() ||
      options_.spelling != Spelling::kPackets || kernel_.rank() == signature_.row_axes || !IsBaked(ElementAxis()) ||
      plan::HasScans(kernel_) || ElementsAlong({ElementAxis()}) > plan::kLongestOfSeveral)
    return runs;
  std::map<int, index_t> place = fixed_;
  for (index_t k = 0; k < ElementsAlong({ElementAxis()}); ++k) {
    place[ElementAxis()] = k;
    std::map<int, bool> decided = DecidedAt(phase, place);
    if (runs.empty() || runs.back().decided != decided) runs.push_back({k, k, std::move(decided), {}});
    ++runs.back().end;
  }
  if (runs.size() == 1 && runs[0].decided.empty()) runs.clear();
  return runs;
}

// What several runs need of the values that do not depend on the place, and take long to compute, and what that is made
// of. Other phases keep what they need by places.
std::set<int> ColumnEmitter::SharedByRuns(const Phase& phase, const std::vector<PlaceRun>& runs) const {
  if (kernel_.phases.size() > 1) return {};
  const std::vector<bool> moves = plan::MovesAlong(kernel_, ElementAxis());
  std::map<int, int> readers;
  for (const PlaceRun& run : runs)
    for (const int id : run.reached)
      if (!moves[static_cast<std::size_t>(id)]) ++readers[id];
  std::set<int> dear, shared;
  for (const int id : phase.element_values) {
    const auto found = readers.find(id);
    if (found == readers.end() || found->second < 2) continue;
    const Value& v = value(id);
    const auto is_dear = [&](int arg) { return dear.count(arg) > 0; };
    if (v.kind == Value::Kind::kGather || (v.kind == Value::Kind::kMap && graph::Info(v.op).header != "arith") ||
        std::any_of(v.args.begin(), v.args.end(), is_dear))
      dear.insert(id);
  }
  std::vector<int> open(dear.begin(), dear.end());
  while (!open.empty()) {
    const int id = open.back();
    open.pop_back();
    if (shared.insert(id).second) open.insert(open.end(), value(id).args.begin(), value(id).args.end());
  }
  return shared;
}

void ColumnEmitter::ColumnElements(const Phase& phase, const std::string& c, const std::string& lanes, Names* names,
                                   const std::function<void()>& body) {
  std::vector<PlaceRun> runs = RunsOfPlaces(phase);
  if (runs.empty()) return RowEmitter::ColumnElements(phase, c, lanes, names, body);
  const auto decide = [this](const PlaceRun& run) {
    for (const auto& [condition, holds] : run.decided) decided_.Decide(condition, holds);
  };
  const auto forget = [this](const PlaceRun& run) {
    for (const auto& [condition, holds] : run.decided) decided_.Forget(condition);
  };
  InnerLoops(signature_.row_axes, ElementAxis(), [&] {
    if (load_short_rows_) load_short_rows_();
    const std::optional<std::set<int>> outer = reached_;
    for (PlaceRun& run : runs) {
      decide(run);
      run.reached = decided_.ReachOf(phase, [](int) { return false; }).values;
      std::erase_if(run.reached, [&](int id) { return outer && outer->count(id) == 0; });
      forget(run);
    }
    const std::set<int> shared = SharedByRuns(phase, runs);
    reached_ = shared;
    for (const int id : phase.element_values) DeclarePacket(id, c, lanes, names);
    for (PlaceRun& run : runs) {
      decide(run);
      std::erase_if(run.reached, [&](int id) { return shared.count(id) > 0; });
      reached_ = run.reached;
      if (rolls_) out_.Line("UMBRA_ROLL");
      out_.Open("for (long long i{0} = {1}; i{0} < {2}; ++i{0})", ElementAxis(), run.begin, run.end);
      body();
      out_.Close();
      forget(run);
    }
    reached_ = outer;
  });
}

}  // namespace umbra::codegen
