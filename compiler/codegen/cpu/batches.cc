// Many small things, as matrices of 3 x 3 are, each a lane of packets: what a lane has of an operand lies side by side
// in memory, and is turned in registers, so that each element is a packet.
#include <functional>
#include <map>
#include <string>

#include "compiler/codegen/cpu/columns.h"

namespace umbra::codegen {

namespace {

// The most points of a lane whose packets are all in registers, or as good as that.
constexpr index_t kMostUnrolled = 64;

}  // namespace

void ColumnEmitter::Batch(const std::string& c, const std::string& first, const std::string& last) {
  out_.Open("for (long long {0} = {1}; {0} + {2} <= {3}; {0} += {2})", c, first, width_, last);
  BatchPacket(c, "");
  out_.Close();
  if (width_ == 1) return;
  out_.Open("if (const long long {0} = {1}; {0} < {2})", c, WholeSteps(first, last, width_), last);
  out_.Line("const long long lanes = {} - {};", last, c);
  BatchPacket(c, "lanes");
  out_.Close();
}

void ColumnEmitter::BatchPacket(const std::string& c, const std::string& lanes) {
  const Names outer = names_;
  std::map<std::size_t, std::string> columns;  // by operand
  const auto rows_of = [&](std::size_t k) {  // a launch asks for another form where they do not follow each other
    return fmt::format("{0} + {1} * {2}, {2}", operands_[k].name, c, ElementsOfLane(k));
  };
  const auto move = [&](const char* how, std::size_t k) {
    if (lanes.empty()) out_.Line("{}_columns({}, 1, {});", how, rows_of(k), columns.at(k));
    else out_.Line("{}_columns_head({}, {}, {});", how, rows_of(k), columns.at(k), lanes);
  };
  for (std::size_t k = 0; k < operands_.size(); ++k) {
    if (!IsInLanes(k)) continue;
    const int operand = static_cast<int>(k);
    columns[k] = DeclareColumns(OperandType(operand), operands_[k].name, ElementsOfLane(k), &names_);
    if (signature_.operands[k].gathered) {
      for (int id = 0; id < static_cast<int>(kernel_.values.size()); ++id)
        if (value(id).kind == Value::Kind::kGather && value(id).index == operand) columns_at_hand_[id] = columns[k];
      move("load", k);
      continue;
    }
    const bool is_stored = signature_.operands[k].store;
    (is_stored ? stored_at_hand_ : at_hand_)[operand] = columns[k] + ElementIndex(AxesOfLane(k));
    if (!is_stored) move("load", k);
  }
  index_t points = 1;
  for (int axis = vector_axis_ + 1; axis < kernel_.rank(); ++axis)
    points *= signature_.axes[static_cast<std::size_t>(axis)].value;
  const bool apart = ChoosesInBatch();
  const std::function<void(int)> walk = [&](int axis) {
    if (axis == signature_.row_axes) return ColumnBody(c, lanes);
    for (index_t index = 0; apart && index < signature_.axes[static_cast<std::size_t>(axis)].value; ++index) {
      fixed_[axis] = index;
      out_.Open("for (long long i{0} = {1}; i{0} < {2}; ++i{0})", axis, index, index + 1);
      walk(axis + 1);
      out_.Close();
    }
    fixed_.erase(axis);
    if (apart) return;
    if (!lanes.empty()) out_.Line("UMBRA_ROLL");  // once
    else if (points <= kMostUnrolled) out_.Line("UMBRA_UNROLL");
    out_.Open("for (long long i{0} = 0; i{0} < {1}; ++i{0})", axis, ExtentName(axis));
    walk(axis + 1);
    out_.Close();
  };
  walk(vector_axis_ + 1);
  for (const auto& [k, name] : columns) {
    if (!signature_.operands[k].store) continue;
    const index_t elements = ElementsOfLane(k);
    // Others are written over in part by the next packet.
    const bool streams = StreamsAcross() && lanes.empty() && (2 * elements <= width_ || elements % width_ == 0);
    move(streams ? "stream" : "store", k);
    has_streamed_ = has_streamed_ || streams;
  }
  at_hand_.clear();
  columns_at_hand_.clear();
  stored_at_hand_.clear();
  names_ = outer;
}

bool ColumnEmitter::IsInLanes(std::size_t k) const {
  if (width_ == 1 || options_.variant.strided || options_.spelling != Spelling::kPackets) return false;
  const runtime::Access& access = signature_.operands[k];
  if (access.gathered) return plan_.buffers[static_cast<std::size_t>(access.buffer)].shape.size() > 1;
  return AxisDim(access, vector_axis_) >= 0 && access.LastDim() > AxisDim(access, vector_axis_);
}

std::vector<int> ColumnEmitter::AxesOfLane(std::size_t k) const {
  std::map<int, int> axis_of_dim;
  for (int axis = vector_axis_ + 1; axis < kernel_.rank(); ++axis)
    if (const int dim = AxisDim(signature_.operands[k], axis); dim >= 0) axis_of_dim[dim] = axis;
  std::vector<int> axes;
  for (const auto& [dim, axis] : axis_of_dim) axes.push_back(axis);
  return axes;
}

index_t ColumnEmitter::ElementsOfLane(std::size_t k) const {
  const runtime::Access& access = signature_.operands[k];
  if (!access.gathered) return ElementsAlong(AxesOfLane(k));
  index_t elements = 1;
  const auto& shape = plan_.buffers[static_cast<std::size_t>(access.buffer)].shape;
  for (std::size_t d = 1; d < shape.size(); ++d) elements *= shape[d].value;
  return elements;
}

}  // namespace umbra::codegen
