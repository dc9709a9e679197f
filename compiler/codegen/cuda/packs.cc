// Packets of results that are made of packets in memory: loads, gathers whose positions move evenly from lane to lane,
// as those of a slice, a padding, a flip or a concatenation do, and choices between them. Whether all lanes of a packet
// have the same choices, and it begins where packets may, is a matter of its columns and of strides, so a thread finds
// that out before it goes through its rows.
#include <algorithm>
#include <cmath>

#include "compiler/codegen/cuda/emitter.h"
#include "compiler/codegen/literal.h"

namespace umbra::codegen {

namespace {

constexpr std::size_t kMostBounds = 32;  // a bit each
constexpr int kMostPlaces = 64;  // that a choice is between, each written out

// Of each value, whether it is the same in all lanes.
std::vector<bool> SameInLanes(const Kernel& kernel) {
  std::vector<bool> same;
  for (const Value& v : kernel.values) {
    const bool made =
        std::all_of(v.args.begin(), v.args.end(), [&](int arg) { return same[static_cast<std::size_t>(arg)]; });
    switch (v.kind) {
      case Value::Kind::kConstant:
      case Value::Kind::kNumber: same.push_back(true); break;
      case Value::Kind::kIndex: same.push_back(v.index != kernel.signature.vector_axis); break;
      case Value::Kind::kLoad:
        same.push_back(kernel.signature.operands[static_cast<std::size_t>(v.index)]
                           .dim_of_axis[static_cast<std::size_t>(kernel.signature.vector_axis)] < 0);
        break;
      case Value::Kind::kMap:
      case Value::Kind::kCast:
      case Value::Kind::kGather: same.push_back(made); break;
      default: same.push_back(v.scope == Scope::kUniform);
    }
  }
  return same;
}

// Of each value, whether it is a matter of the column alone, of all that a launch has.
std::vector<bool> OfColumn(const Kernel& kernel) {
  std::vector<bool> of_column;
  for (const Value& v : kernel.values) {
    const bool made =
        std::all_of(v.args.begin(), v.args.end(), [&](int arg) { return of_column[static_cast<std::size_t>(arg)]; });
    of_column.push_back(v.scope == Scope::kUniform || v.kind == Value::Kind::kConstant ||
                        (v.kind == Value::Kind::kIndex
                             ? v.index == kernel.signature.vector_axis || v.index >= kernel.signature.row_axes
                             : made && (v.kind == Value::Kind::kMap || v.kind == Value::Kind::kCast)));
  }
  return of_column;
}

bool AreOfColumn(const std::vector<bool>& of_column, const LaneRun& run) {
  return run.period == 0 && std::all_of(run.bounds.begin(), run.bounds.end(), [&](const LaneBound& bound) {
           return of_column[static_cast<std::size_t>(bound.less)] && of_column[static_cast<std::size_t>(bound.greater)];
         });
}

}  // namespace

const std::optional<CudaEmitter::PackRead>& CudaEmitter::FindPack(int id) {
  const auto found = found_packs_.find(id);
  return found != found_packs_.end() ? found->second : found_packs_[id] = NewPack(id);
}

std::optional<CudaEmitter::PackRead> CudaEmitter::NewPack(int id) {
  const Value& v = value(id);
  if (pack_known_.count(id) > 0) return std::nullopt;
  const std::function<bool(int)> is_alike = [this](int other) {
    return same_in_lanes_[static_cast<std::size_t>(other)];
  };
  // The value of wide_ that a gather, or what a choice is made by, was.
  const auto found = std::find(became_.begin(), became_.end(), v.kind == Value::Kind::kMap ? v.args[0] : id);
  const int was = found == became_.end() ? -1 : static_cast<int>(found - became_.begin());
  PackRead read;
  if (v.kind == Value::Kind::kLoad) {
    if (!MovesAlongVector(v.index)) return std::nullopt;
    const auto& access = signature_.operands[static_cast<std::size_t>(v.index)];
    if (std::any_of(pack_windows_.begin(), pack_windows_.end(), [&](int axis) { return Moves(access, axis); }))
      return std::nullopt;
    read.type = OperandType(v.index);
    return read;
  }
  if (v.kind == Value::Kind::kGather) {
    const auto span = was >= 0 ? FindSpan(wide_, was, is_alike) : std::nullopt;
    if (!span || span->group > 0 || span->slopes.empty() || !AreOfColumn(of_column_, span->run)) return std::nullopt;
    if (std::any_of(span->slopes.begin(), span->slopes.end() - 1, [](long long slope) { return slope != 0; }))
      return std::nullopt;
    read.last.push_back(v.args[span->slopes.size() - 1]);
    read.repeats = span->repeats;
    read.step = span->repeats > 1 ? 1 : span->slopes.back();
    if (std::abs(read.step) != 1 || result_lanes_ % read.repeats != 0) return std::nullopt;
    const int last = wide_.values[static_cast<std::size_t>(was)].args[span->slopes.size() - 1];
    if (!of_column_[static_cast<std::size_t>(last)]) return std::nullopt;
    if (read.repeats > 1) read.dividends.push_back(became_[static_cast<std::size_t>(span->dividend)]);
    read.type = OperandType(v.index);
    read.bounds = span->run.bounds;
    if (v.guarded) read.outside = v.constant;
    return read;
  }
  if (v.kind != Value::Kind::kMap || v.op != graph::Op::select) return std::nullopt;
  const auto run = was >= 0 ? FindLaneRun(wide_, was, is_alike) : std::nullopt;
  if (!run || !AreOfColumn(of_column_, *run)) return std::nullopt;
  read.step = 0;
  read.places = 0;
  for (const int arg : {v.args[1], v.args[2]}) {
    std::optional<double> outside;
    if (value(arg).kind == Value::Kind::kConstant) {
      outside = value(arg).constant;
    } else {
      const std::optional<PackRead>& branch = FindPack(arg);
      if (!branch || (read.step != 0 &&
                      (branch->type != read.type || branch->step != read.step || branch->repeats != read.repeats)))
        return std::nullopt;
      read.places += branch->places;
      read.type = branch->type;
      read.step = branch->step;
      read.repeats = branch->repeats;
      read.bounds.insert(read.bounds.end(), branch->bounds.begin(), branch->bounds.end());
      read.last.insert(read.last.end(), branch->last.begin(), branch->last.end());
      read.dividends.insert(read.dividends.end(), branch->dividends.begin(), branch->dividends.end());
      outside = branch->outside;
    }
    if (outside && read.outside && (*outside != *read.outside || std::signbit(*outside) != std::signbit(*read.outside)))
      return std::nullopt;
    if (outside) read.outside = outside;
  }
  read.bounds.insert(read.bounds.end(), run->bounds.begin(), run->bounds.end());
  if (read.step == 0 || read.places > kMostPlaces || read.bounds.size() > kMostBounds)
    return std::nullopt;  // step 0: two constants
  return read;
}

void CudaEmitter::FindPacks(const std::vector<int>& ids, const std::set<int>& known, const std::vector<int>& windows) {
  if (result_lanes_ == 1 || variant_.strided) return;
  pack_ids_ = ids;
  pack_windows_ = windows;
  pack_known_ = known;
  same_in_lanes_ = SameInLanes(wide_);
  of_column_ = OfColumn(wide_);
  std::erase_if(pack_ids_, [&](int id) { return known.count(id) > 0; });
  std::set<int> covered;  // by a choice that is read itself
  for (auto id = pack_ids_.rbegin(); id != pack_ids_.rend(); ++id) {
    const Value& v = value(*id);
    const bool is_covered = covered.count(*id) > 0;
    auto read = is_covered ? std::nullopt : FindPack(*id);
    if (read && pack_bounds_.size() + read->bounds.size() > kMostBounds) read = std::nullopt;
    if (v.kind == Value::Kind::kMap && v.op == graph::Op::select && (read || is_covered))
      covered.insert(v.args.begin() + 1, v.args.end());
    if (!read) continue;
    read->id = *id;
    pack_bounds_.insert(pack_bounds_.end(), read->bounds.begin(), read->bounds.end());
    packs_.insert(packs_.begin(), std::move(*read));
  }
}

void CudaEmitter::DeclareWhole() {
  if (packs_.empty()) return;
  const std::vector<LaneBound>& bounds = pack_bounds_;

  std::vector<std::string> conditions;
  const auto add = [&](std::string condition) {
    if (std::find(conditions.begin(), conditions.end(), condition) == conditions.end())
      conditions.push_back(std::move(condition));
  };
  for (const PackRead& read : packs_) AddAlignment(read, read.id, add);
  out_.Line("bool whole = {};", conditions[0]);
  for (std::size_t k = 1; k < conditions.size(); ++k) out_.Line("whole = whole && {};", conditions[k]);
  if (!bounds.empty()) {
    std::vector<int> ends;
    for (const LaneBound& bound : bounds)
      ends.insert(ends.end(),
                  {became_[static_cast<std::size_t>(bound.less)], became_[static_cast<std::size_t>(bound.greater)]});
    InLane(
        "const auto choices = ", "unsigned", ends,
        [&] {
          std::vector<std::string> bits;
          for (std::size_t k = 0; k < bounds.size(); ++k) {
            const std::string bit = fmt::format("unsigned({} {} {})", AsScalar(ends[2 * k]).text,
                                                bounds[k].or_equal ? "<=" : "<", AsScalar(ends[2 * k + 1]).text);
            if (std::find(bits.begin(), bits.end(), bit) == bits.end()) bits.push_back(bit);
          }
          for (std::size_t k = 1; k < bits.size(); ++k) bits[k] += fmt::format(" << {}", k);
          return fmt::format("{}", fmt::join(bits, " | "));
        },
        ";");
    out_.Line("whole = whole && choices(0) == choices({});", result_lanes_ - 1);
  }
  std::vector<int> last;
  for (const PackRead& read : packs_) {
    last.insert(last.end(), read.last.begin(), read.last.end());
    last.insert(last.end(), read.dividends.begin(), read.dividends.end());
  }
  if (!last.empty()) {
    InLane(
        "whole = whole && ", "bool", last,
        [&] {
          std::vector<std::string> begin;
          const auto divide = [&](const std::string& position, int by) {
            const std::string condition = fmt::format(
                "{} % {} == 0", position.find(' ') == std::string::npos ? position : "(" + position + ")", by);
            if (by > 1 && std::find(begin.begin(), begin.end(), condition) == begin.end()) begin.push_back(condition);
          };
          for (const PackRead& read : packs_) {
            for (const int id : read.last)
              divide(read.step < 0 ? fmt::format("{} - {}", AsScalar(id).text, result_lanes_ - 1) : AsScalar(id).text,
                     result_lanes_ / read.repeats);
            for (const int id : read.dividends) divide(AsScalar(id).text, read.repeats);
          }
          return fmt::format("{}", fmt::join(begin, " && "));
        },
        "(0);");
  }
}

// Do rows begin where packets may?
void CudaEmitter::AddAlignment(const PackRead& read, int id, const std::function<void(std::string)>& add) const {
  const Value& v = value(id);
  if (v.kind == Value::Kind::kMap) {
    for (const int arg : {v.args[1], v.args[2]})
      if (value(arg).kind != Value::Kind::kConstant) AddAlignment(read, arg, add);
    return;
  }
  const int count = result_lanes_ / read.repeats;
  const Operand& operand = operands_[static_cast<std::size_t>(v.index)];
  add(fmt::format("is_aligned<{}>({})", count, operand.base));
  std::string strides;
  if (v.kind == Value::Kind::kLoad) {
    for (std::size_t axis = 0; axis < operand.stride_names.size(); ++axis) {
      const std::string& stride = operand.stride_names[axis];
      if (stride.empty()) continue;
      if (static_cast<int>(axis) == vector_axis_) add(stride + " == 1");
      else strides += (strides.empty() ? "" : " | ") + stride;
    }
  } else {
    const std::size_t rank = v.args.size() - (v.guarded ? 1 : 0);
    add(fmt::format("{} == 1", lanes_.stride_name(v.index, static_cast<int>(rank) - 1)));
    for (std::size_t d = 0; d + 1 < rank; ++d)
      strides += (d == 0 ? "" : " | ") + lanes_.stride_name(v.index, static_cast<int>(d));
  }
  if (!strides.empty())
    add(fmt::format("{} % {} == 0", strides.find(' ') == std::string::npos ? strides : "(" + strides + ")", count));
}

// Writes what `text` makes of values in lane `k`, a function that gives the type.
void CudaEmitter::InLane(const std::string& begin, const std::string& type, const std::vector<int>& values,
                         const std::function<std::string()>& text, const std::string& end) {
  const auto is_position = [this](int axis) {
    return [this, axis](int id) { return value(id).kind == Value::Kind::kIndex && value(id).index == axis; };
  };
  std::set<int> made_of;
  const std::function<void(int)> need = [&](int id) {
    if (pack_known_.count(id) > 0 || !made_of.insert(id).second) return;
    for (const int arg : value(id).args) need(arg);
  };
  for (const int id : values) need(id);
  const auto texts = text_;
  const Names outer = names_;
  const auto reached = reached_;
  reached_.reset();
  out_.Open("{}[&](int k) -> {}", begin, type);
  const bool loads = std::any_of(made_of.begin(), made_of.end(), [this](int id) {
    return value(id).kind == Value::Kind::kLoad && MovesAlongVector(value(id).index);
  });
  if (loads || std::any_of(made_of.begin(), made_of.end(), is_position(vector_axis_)))
    out_.Line("const {} i{} = column + k;", index_type_, vector_axis_);
  for (const int axis : pack_windows_)
    if (std::any_of(made_of.begin(), made_of.end(), is_position(axis)))
      out_.Line("const {} i{} = 0;", index_type_, axis);
  for (const int id : pack_ids_) {
    if (made_of.count(id) == 0 || (value(id).kind == Value::Kind::kLoad && MovesAlongVector(value(id).index))) continue;
    if (value(id).scope == Scope::kElement) DeclarePacket(id, fmt::format("i{}", vector_axis_), "", &names_);
    else DeclareRowValues({id});
  }
  out_.Line("return {};", text());
  out_.Close("}" + end);
  reached_ = reached;
  names_ = outer;
  text_ = texts;
}

void CudaEmitter::WholeOrNot(const std::function<void()>& rows) {
  if (packs_.empty()) return rows();
  const Names outer = names_;
  out_.Open("if (whole)");
  whole_ = true;
  rows();
  whole_ = false;
  names_ = outer;
  out_.Middle("} else {");
  rows();
  out_.Close();
}

void CudaEmitter::ReadPacks() {
  if (!whole_) return;
  for (const PackRead& read : packs_) {
    const Value& v = value(read.id);
    const bool load = v.kind == Value::Kind::kLoad;
    if (load && at_hand_.count(v.index) > 0) continue;
    const std::string of = v.kind == Value::Kind::kMap ? "chosen" : operands_[static_cast<std::size_t>(v.index)].name;
    const std::string pack = names_.Make(of + "_pack"), type = ElementType(read.type);
    const int count = result_lanes_ / read.repeats;
    if (load) {
      out_.Line("const pack<{}, {}> {} = load_pack<{}>({});", type, count, pack, count, Address(v.index, "column"));
    } else {
      const std::string at = names_.Make(of + "_at");
      std::vector<int> made_of;
      AddMadeOf(read.id, &made_of);
      InLane(
          fmt::format("const {}* const {} = ", type, at), fmt::format("const {}*", type), made_of,
          [&] { return PlaceOf(read.id); }, fmt::format("({});", read.step < 0 ? result_lanes_ - 1 : 0));
      const std::string outside = read.outside ? Literal(*read.outside, read.type) : "";
      out_.Line("const pack<{}, {}> {} = {}<{}>({});", type, count, pack, read.outside ? "load_pack_or" : "load_pack",
                count, read.outside ? at + ", " + outside : at);
    }
    const std::string lane = read.step < 0      ? fmt::format("{} - k", result_lanes_ - 1)
                             : read.repeats > 1 ? fmt::format("k / {}", read.repeats)
                                                : "k";
    const std::string element = pack + "[" + lane + "]";
    if (load) at_hand_[v.index] = element;
    else gathers_at_hand_[read.id] = element;
  }
  // Where they are has no part in the other arithmetic.
  std::set<int> needed;
  const std::function<void(int)> need = [&](int id) {
    if (!needed.insert(id).second || gathers_at_hand_.count(id) > 0) return;
    for (const int arg : value(id).args) need(arg);
  };
  for (const Phase& phase : kernel_.phases) {
    for (const int id : ResultsOf(phase)) need(id);
    if (phase.guard >= 0) need(phase.guard);
  }
  for (const auto& store : kernel_.final_stores) need(store.value);
  reached_ = std::move(needed);
}

void CudaEmitter::ForgetPacks() {
  at_hand_.clear();
  gathers_at_hand_.clear();
  reached_.reset();
}

void CudaEmitter::AddMadeOf(int id, std::vector<int>* values) const {
  const Value& v = value(id);
  if (v.kind == Value::Kind::kLoad) values->push_back(id);  // for its position
  if (v.kind == Value::Kind::kLoad || v.kind == Value::Kind::kConstant) return;
  const bool choice = v.kind == Value::Kind::kMap;
  for (std::size_t k = 0; k < v.args.size(); ++k) {
    if (choice && k > 0) AddMadeOf(v.args[k], values);
    else values->push_back(v.args[k]);
  }
}

// A pointer to the element in lane `k`, null where there is none.
std::string CudaEmitter::PlaceOf(int id) const {
  const Value& v = value(id);
  const auto closed = [](const Expr& e) { return e.atomic ? e.text : "(" + e.text + ")"; };
  if (v.kind == Value::Kind::kConstant) return "nullptr";
  if (v.kind == Value::Kind::kLoad) return Address(v.index, fmt::format("i{}", vector_axis_));
  if (v.kind == Value::Kind::kMap) {
    const auto choice = [this](int arg) {
      const std::string place = PlaceOf(arg);
      return place.find('?') == std::string::npos ? place : "(" + place + ")";
    };
    return fmt::format("{} ? {} : {}", closed(AsScalar(v.args[0])), choice(v.args[1]), choice(v.args[2]));
  }
  std::string text = operands_[static_cast<std::size_t>(v.index)].name;
  const std::size_t rank = v.args.size() - (v.guarded ? 1 : 0);
  for (std::size_t d = 0; d < rank; ++d) {
    text += " + " + closed(AsScalar(v.args[d]));
    if (d + 1 < rank) text += " * " + lanes_.stride_name(v.index, static_cast<int>(d));
  }
  return v.guarded ? fmt::format("{} ? {} : nullptr", closed(AsScalar(v.args.back())), text) : text;
}

}  // namespace umbra::codegen
