// Places that data choose, in packets: where lanes of a gather are read, or lanes of a table that registers hold.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/literal.h"
#include "compiler/codegen/values.h"

namespace umbra::codegen {

void ValueEmitter::DeclarePlaces(int id, const std::string& index, const std::string& lanes, Names* names) {
  const Value& v = value(id);
  if (v.kind != Value::Kind::kGather || width_ == 1 || side_by_side_ || options_.spelling != Spelling::kPackets) return;
  for (const int arg : v.args) {
    if (lanes_.at_hand.count(arg) > 0) continue;
    const auto places = PlacesOf(arg, index, lanes);
    if (!places) continue;
    const std::string name = names->Make("places");
    out_.Line("{} {}[{}];", ScalarType(places->type), name, width_);
    out_.Line("store({}, {});", name, places->packet.text);
    lanes_.at_hand[arg] = name + "[k]";
  }
}

index_t ValueEmitter::RegistersOfTable(const Value& gather) const {
  if (!MayBeTable(gather) || static_cast<int>(SizeOf(gather.type)) * width_ != RegisterBytes(options_.target) ||
      !PlaceOf(gather.args[0]))
    return 0;
  const auto& access = signature_.operands[static_cast<std::size_t>(gather.index)];
  return (plan_.buffers[static_cast<std::size_t>(access.buffer)].shape[0].value + width_ - 1) / width_;
}

void ValueEmitter::DeclareTables() {
  for (const Value& v : kernel_.values) {
    const index_t registers = RegistersOfTable(v);
    if (registers == 0 || tables_.count(v.index) > 0) continue;
    const Operand& o = operands_[static_cast<std::size_t>(v.index)];
    const auto& access = signature_.operands[static_cast<std::size_t>(v.index)];
    const std::string name = names_.Make(o.name + "_table");
    out_.Line("{} {}[{}];", speller_->Type(v.type), name, registers);
    out_.Line("load_table<{}>({}, {});", plan_.buffers[static_cast<std::size_t>(access.buffer)].shape[0].value, o.name,
              name);
    tables_[v.index] = name;
  }
}

bool ValueEmitter::DeclareOfTable(int id, const std::string& index, const std::string& lanes, Names* names) {
  const Value& v = value(id);
  const auto table = v.kind == Value::Kind::kGather ? tables_.find(v.index) : tables_.end();
  if (table == tables_.end() || RegistersOfTable(v) == 0) return false;
  auto places = PlacesOf(v.args[0], index, lanes);
  if (!places) return false;
  const DType type = SizeOf(v.type) == 4 ? DType::kInt32 : DType::kInt64;
  if (places->type != type) places->packet = speller_->Cast(places->type, type, places->packet);
  Declare(id, v.type, {fmt::format("look_up({}, {})", table->second, places->packet.text)}, names);
  return true;
}

std::optional<ValueEmitter::Places> ValueEmitter::PlacesOf(int id, const std::string& index,
                                                           const std::string& lanes) const {
  const auto place = PlaceOf(id);
  const auto is_had = [this](int data) {
    return InPackets(data) || (value(data).kind == Value::Kind::kLoad && MovesAlongVector(value(data).index));
  };
  if (!place || !std::all_of(place->data.begin(), place->data.end(), is_had)) return std::nullopt;
  const Value& most = value(place->most);
  const double least = value(place->least).constant;
  const bool is_cast = value(place->chosen).kind == Value::Kind::kCast;
  const DType type = is_cast ? DType::kInt32 : DType::kInt64;
  const std::string packet = speller_->Type(type);
  Expr chosen;
  std::string bound = AsScalar(place->most).text;
  if (is_cast) {
    const int from = place->data[0];
    chosen = InPackets(from) ? AsPacket(from) : LoadPacket(value(from), index, lanes);
    if (value(from).type != type) chosen = speller_->Cast(value(from).type, type, chosen);
    bound =
        most.kind == Value::Kind::kConstant && std::abs(most.constant) < 0x1p31
            ? Literal(most.constant, type)
            : fmt::format("static_cast<int>(smaller(larger({}, -1LL), 2147483647LL))", bound);  // least is 0 or more
  } else {
    chosen = WidePosition(place->chosen, index, lanes);
  }
  const Expr within{fmt::format("maximum(minimum({}, fill<{}>({})), fill<{}>({}))", chosen.text, packet, bound, packet,
                                Literal(least, type))};
  return Places{within, type};
}

Expr ValueEmitter::WidePosition(int id, const std::string& index, const std::string& lanes) const {
  const Value& v = value(id);
  if (IsScalar(id)) return speller_->Fill(DType::kInt64, AsScalar(id).text);
  if (const auto slope = SlopeOf(id))
    return {
        fmt::format("ramp<{}>({}, {})", speller_->Type(DType::kInt64), EmitLane(lanes_, id, index, nullptr), *slope)};
  if (v.kind == Value::Kind::kLoad) return LoadPacket(v, index, lanes);
  if (v.kind == Value::Kind::kCast) {
    const Value& data = value(v.args[0]);
    return speller_->Cast(data.type, DType::kInt64,
                          InPackets(v.args[0]) ? AsPacket(v.args[0]) : LoadPacket(data, index, lanes));
  }
  std::vector<Expr> args;
  for (const int arg : v.args) args.push_back(WidePosition(arg, index, lanes));
  return speller_->Map(v.op, DType::kInt64, args, std::vector<bool>(args.size(), false));
}

}  // namespace umbra::codegen
