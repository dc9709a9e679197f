// A kernel without reductions: threads lie along the vector axis and over the rows. A thread first reads all that it
// needs, then writes, so that its loads are in flight together: packets, or an element of each of several rows.
#include <algorithm>
#include <map>
#include <set>

#include "compiler/codegen/cuda/emitter.h"

namespace umbra::codegen {

namespace {

// In additions: what is worth a register for as long as a thread goes through its rows.
constexpr double kDear = 4;

class ElementsEmitter : private CudaEmitter {
 public:
  ElementsEmitter(const CudaTask& task, Writer* out) : CudaEmitter(task, out) {}

  void Run(const std::string& name) {
    const std::vector<int> rows = Axes(0, signature_.row_axes);
    DeclareArguments(name);
    OpenKernel(name, 256);
    DeclareParameters(HasRows(rows) ? Axes(0, kernel_.rank()) : Axes(vector_axis_, kernel_.rank()));
    if (variant_.vector && !signature_.positional) {
      OpenRows(rows, First(), Step());
      DeclareRowPointers();
      DeclareRowValues(phase().row_values);
      Packets();
      CloseRows(rows);
    } else if (variant_.vector) {
      PacketsOfResults(rows);
    } else {
      out_.Line("const {} {} = {} * blockDim.x + threadIdx.x;", index_type_, i(), Index(Block("x")));
      out_.Open("if ({} < {})", i(), ExtentName(vector_axis_));
      if (HasRows(rows)) {
        Rows(rows);
      } else {
        OpenRows(rows, "", "");
        DeclareRow();
        StoreElements(phase(), i());
      }
      out_.Close();
    }
    out_.Close();
  }

 private:
  std::string Step() const { return Grid("y") + " * blockDim.y"; }
  std::string First() const { return Index(Block("y")) + " * blockDim.y + threadIdx.y"; }
  const Phase& phase() const { return kernel_.phases[0]; }
  std::string i() const { return fmt::format("i{}", vector_axis_); }

  // What the element is made of, but for what all rows have alike.
  void DeclareRow() {
    DeclareRowPointers();
    BeginRow();
    DeclareRowParts();
    DeclareElementsOfRow();
    ForgetPacks();
  }

  // What is read by way of parts needs no positions.
  void BeginRow() {
    if (!parts_.empty()) reached_ = Needed(true);
    DeclareRowValues(phase().row_values);
  }
  void DeclareElementsOfRow() {
    Names names = names_;
    for (const int id : phase().element_values) {
      if (once_.count(id) > 0) continue;
      if (const auto parts = parts_.find(id); parts != parts_.end())
        gathers_at_hand_[id] = ElementOf(id, parts->second);
      DeclarePacket(id, i(), "", &names);
    }
  }

  // An element of the rows that are a thread's: of several at a time, then one by one.
  void Rows(const std::vector<int>& rows) {
    once_ = WhatRowsHaveAlike();
    FindParts();
    DeclareWhatRowsHaveAlike();
    for (auto& [id, parts] : parts_) {
      parts.of_column = names_.Make(OperandName(id) + "_column");
      out_.Line("const {} {} = {};", OffsetType(), parts.of_column, OffsetText(id, parts.column));
    }
    const auto several = [&] {
      StoreTurns(phase().stores, rows_at_once_, 1, i(), "", [&] {
        out_.Line("const {} turn = row + u * step;", index_type_);
        DeclarePositions("turn", rows);
        DeclareRow();
      });
    };
    GoThroughRows(rows, several, [this] {
      DeclareRow();
      StoreElements(phase(), i());
    });
  }

  // Elements that lie side by side are computed one by one and stored at once.
  void PacketsOfResults(const std::vector<int>& rows) {
    out_.Line("const {} column = ({} * blockDim.x + threadIdx.x) * {};", index_type_, Index(Block("x")), result_lanes_);
    out_.Open("if (column < {})", ExtentName(vector_axis_));
    const auto store = [&](int turns) {
      StoreTurns(phase().stores, turns, result_lanes_, "column", "", [&] {
        if (turns > 1) {
          out_.Line("const {} turn = row + u * step;", index_type_);
          DeclarePositions("turn", rows);
        }
        DeclareRowPointers();
        BeginRow();
        ReadPacks();
        DeclareRowParts();
        OpenResultLanes();
        DeclareElementsOfRow();
        ForgetPacks();
      });
    };
    FindDearOfLanes();
    FindPacks(phase().element_values, once_, {});
    if (!HasPacks()) FindParts();
    DeclareDearOfLanes();
    DeclareDivisors(rows);
    DeclareWhole();
    WholeOrNot([&] {
      GoThroughRows(
          rows, [&] { store(rows_at_once_); }, [&] { store(1); });
    });
    out_.Close();
  }

  // Values that only the position along the vector axis tells apart, so that all rows of a thread have them alike.
  std::set<int> WhatRowsHaveAlike() const {
    std::set<int> alike;
    for (const int id : phase().element_values) {
      const Value& v = value(id);
      const auto is_alike = [&](int arg) { return alike.count(arg) > 0 || value(arg).scope == Scope::kUniform; };
      bool is = v.kind == Value::Kind::kIndex && v.index == vector_axis_;
      if (v.kind == Value::Kind::kLoad) {
        const auto& access = signature_.operands[static_cast<std::size_t>(v.index)];
        is = true;
        for (int axis = 0; axis < signature_.row_axes; ++axis)
          is = is && (axis == vector_axis_ || !Moves(access, axis));
      }
      if (v.kind == Value::Kind::kMap || v.kind == Value::Kind::kCast || v.kind == Value::Kind::kGather)
        is = std::all_of(v.args.begin(), v.args.end(), is_alike);
      if (is) alike.insert(id);
    }
    return alike;
  }

  // Those are computed once. Of them, the ones that rows make something of get names.
  void DeclareWhatRowsHaveAlike() {
    for (const int id : ReadByRows())
      if (value(id).kind != Value::Kind::kIndex) ++uses_[static_cast<std::size_t>(id)];
    for (const int id : phase().element_values)
      if (once_.count(id) > 0) DeclarePacket(id, i(), "", &names_);
  }

  // Of packets of results, only what is dear: each lane of it takes a register.
  void FindDearOfLanes() {
    for (const int id : WhatRowsHaveAlike()) {  // operands come before their readers
      const Value& v = value(id);
      const bool dear = v.kind == Value::Kind::kLoad || v.kind == Value::Kind::kGather ||
                        (v.kind == Value::Kind::kMap && graph::Info(v.op).cost >= kDear);
      if (dear || std::any_of(v.args.begin(), v.args.end(), [this](int arg) { return once_.count(arg) > 0; }))
        once_.insert(id);
    }
  }

  void DeclareDearOfLanes() {
    const std::set<int> alike = WhatRowsHaveAlike();
    std::set<int> made_of = once_;
    for (const auto& [id, parts] : parts_)
      for (const Part& part : parts.column) made_of.insert(part.position);
    for (auto id = made_of.rbegin(); id != made_of.rend(); ++id)
      for (const int arg : value(*id).args)
        if (alike.count(arg) > 0) made_of.insert(arg);
    std::map<int, std::string> lanes;
    for (const int id : ReadByRows()) {
      ++uses_[static_cast<std::size_t>(id)];
      lanes[id] = names_.Make(value(id).label.empty() ? fmt::format("t{}_lane", id) : value(id).label + "_lane");
      out_.Line("{} {}[{}];", ScalarType(value(id).type), lanes[id], result_lanes_);
    }
    for (auto& [id, parts] : parts_) {
      parts.of_column = names_.Make(OperandName(id) + "_lane");
      out_.Line("{} {}[{}];", OffsetType(), parts.of_column, result_lanes_);
    }
    if (lanes.empty() && parts_.empty()) return;
    OpenResultLanes();
    Names names = names_;
    for (const int id : phase().element_values)
      if (made_of.count(id) > 0) DeclarePacket(id, i(), "", &names);
    for (const auto& [id, lane] : lanes) out_.Line("{}[k] = {};", lane, AsPacket(id).text);
    for (const auto& [id, parts] : parts_) out_.Line("{}[k] = {};", parts.of_column, OffsetText(id, parts.column));
    out_.Close();
    for (const auto& [id, lane] : lanes) text_[id] = {lane + "[k]"};
  }

  // What rows read of what is computed once.
  std::set<int> ReadByRows() const {
    std::set<int> read = Needed(false);
    std::erase_if(read, [this](int id) { return once_.count(id) == 0; });
    return read;
  }

  // What rows make results of, back to what is computed once; with what row parts are made of or without.
  std::set<int> Needed(bool with_row_parts) const {
    std::set<int> needed;
    const std::function<void(int)> need = [&](int id) {
      if (!needed.insert(id).second || once_.count(id) > 0) return;
      const auto parts = parts_.find(id);
      if (parts == parts_.end()) {
        for (const int arg : value(id).args) need(arg);
        return;
      }
      if (value(id).guarded) need(value(id).args.back());
      if (with_row_parts)
        for (const Part& part : parts->second.row) need(part.position);
    };
    for (const int id : ResultsOf(phase())) need(id);
    return needed;
  }

  // A part of a position, which the row tells, or the column.
  struct Part {
    std::size_t dim = 0;
    bool negative = false;
    int position = 0;
  };
  // Of a gather whose positions are sums of such parts: how far from the operand's first element they lead is computed
  // once for the column, and once for the row.
  struct Parts {
    std::vector<Part> column, row;
    std::string of_column, of_row;
  };

  void FindParts() {
    const std::set<int> alike = WhatRowsHaveAlike();
    for (const int id : phase().element_values) {
      const Value& v = value(id);
      if (v.kind != Value::Kind::kGather || once_.count(id) > 0) continue;
      Parts parts;
      bool found = true;
      for (std::size_t d = 0; d + (v.guarded ? 1 : 0) < v.args.size(); ++d)
        found = found && AddParts({d, false, v.args[d]}, alike, &parts);
      if (found && !parts.column.empty() && !parts.row.empty()) parts_[id] = parts;
    }
  }

  bool AddParts(const Part& part, const std::set<int>& alike, Parts* parts) const {
    const Value& v = value(part.position);
    if (v.kind == Value::Kind::kConstant && v.constant == 0) return true;
    if (alike.count(part.position) > 0 || v.scope != Scope::kElement) {
      (alike.count(part.position) > 0 ? parts->column : parts->row).push_back(part);
      return true;
    }
    if (v.kind != Value::Kind::kMap || (v.op != graph::Op::plus && v.op != graph::Op::minus)) return false;
    return AddParts({part.dim, part.negative, v.args[0]}, alike, parts) &&
           AddParts({part.dim, part.negative != (v.op == graph::Op::minus), v.args[1]}, alike, parts);
  }

  // Parts may leave 32 bits where their sum does not, so they are computed without signs, which wraps.
  bool IsWide() const { return variant_.wide_index || variant_.wide_offset; }
  std::string OffsetType() const { return IsWide() ? "i64" : "unsigned"; }
  std::string OperandName(int gather) const { return operands_[static_cast<std::size_t>(value(gather).index)].name; }

  std::string OffsetText(int gather, const std::vector<Part>& parts) const {
    std::string text;
    for (const Part& part : parts) {
      const std::string position = AsScalar(part.position).text;
      text += text.empty() ? (part.negative ? "-" : "") : (part.negative ? " - " : " + ");
      text += fmt::format("{}({}) * {}", OffsetType(), position,
                          lanes_.stride_name(value(gather).index, static_cast<int>(part.dim)));
    }
    return text;
  }

  void DeclareRowParts() {
    for (auto& [id, parts] : parts_) {
      parts.of_row = names_.Make(OperandName(id) + "_row");
      if (IsWide())
        out_.Line("const {}* {} = {} + ({});", ElementType(OperandType(value(id).index)), parts.of_row, OperandName(id),
                  OffsetText(id, parts.row));
      else out_.Line("const unsigned {} = {};", parts.of_row, OffsetText(id, parts.row));
    }
  }

  std::string ElementOf(int gather, const Parts& parts) const {
    const std::string column = parts.of_column + (result_lanes_ > 1 ? "[k]" : "");
    const Value& v = value(gather);
    const Expr guard = v.guarded ? AsScalar(v.args.back()) : Expr{};
    const std::string element = IsWide() ? fmt::format("{}[{}]", parts.of_row, column)
                                         : fmt::format("{}[int({} + {})]", OperandName(gather), parts.of_row, column);
    const std::string text = GatherText(v, element, guard.atomic ? guard.text : "(" + guard.text + ")");
    return v.guarded || v.type == DType::kBool ? "(" + text + ")" : text;
  }

  // Packets, and single elements of what is left of a row.
  void Packets() {
    const std::string chunks = fmt::format("{} / {}", ExtentName(vector_axis_), schedule_.lanes);
    if (schedule_.packets > 1) {
      SeveralPackets(chunks);
    } else {
      out_.Line("const {} chunk = {} * blockDim.x + threadIdx.x;", index_type_, Index(Block("x")));
      out_.Open("if (chunk < {})", chunks);
      Packet();
      out_.Close();
    }
    out_.Line("#pragma unroll 1");
    out_.Open("for ({0} {1} = {5} == 0 ? {2} * {3} + threadIdx.x : {4}; {1} < {4}; {1} += blockDim.x)", index_type_,
              i(), chunks, schedule_.lanes, ExtentName(vector_axis_), Block("x"));
    Names names = names_;
    DeclareElements(phase(), i(), &names);
    StoreElements(phase(), i());
    out_.Close();
  }

  // Those of a thread are read before the first is computed. Beyond the last one it is read again.
  void SeveralPackets(const std::string& chunks) {
    const std::vector<int> loads = LoadedOperands(phase());
    out_.Line("const {} first = {} * {} * blockDim.x + threadIdx.x;", index_type_, Index(Block("x")),
              schedule_.packets);
    std::vector<std::string> packs;
    for (const int k : loads) {
      packs.push_back(names_.Make(operands_[static_cast<std::size_t>(k)].name + "_pack"));
      at_hand_[k] = packs.back() + "[0][k]";
      out_.Line("pack<{}, {}> {}[{}];", ElementType(OperandType(k)), schedule_.lanes, packs.back(), schedule_.packets);
    }
    if (!loads.empty()) {
      OpenTurns(schedule_.packets);
      out_.Line("const {0} {1} = minimum({0}(first + u * blockDim.x), {2} - 1) * {3};", index_type_, i(), chunks,
                schedule_.lanes);
      for (std::size_t k = 0; k < loads.size(); ++k)
        out_.Line("{}[u] = load_pack<{}>({});", packs[k], schedule_.lanes, Address(loads[k], i()));
      out_.Close();
    }
    out_.Line("#pragma unroll 1");
    out_.Open("for ({0} chunk = first; chunk < {1} && chunk < first + {2} * int(blockDim.x); chunk += int(blockDim.x))",
              index_type_, chunks, schedule_.packets);
    Packet();
    for (const std::string& pack : packs) out_.Line("advance({});", pack);
    out_.Close();
  }

  // Its operands are read here unless they are at hand.
  void Packet() {
    Names names = names_;
    out_.Line("const {} {} = chunk * {};", index_type_, i(), schedule_.lanes);
    for (const int k : LoadedOperands(phase())) {
      if (at_hand_.count(k) > 0) continue;
      const std::string name = names.Make(operands_[static_cast<std::size_t>(k)].name + "_pack");
      out_.Line("const pack<{}, {}> {} = load_pack<{}>({});", ElementType(OperandType(k)), schedule_.lanes, name,
                schedule_.lanes, Address(k, i()));
      at_hand_[k] = name + "[k]";
    }
    std::map<int, std::string> results;
    for (const int k : StoredOperands(phase())) {
      results[k] = names.Make(operands_[static_cast<std::size_t>(k)].name + "_pack");
      out_.Line("pack<{}, {}> {};", ElementType(OperandType(k)), schedule_.lanes, results[k]);
    }
    out_.Line("#pragma unroll");
    out_.Open("for (int k = 0; k < {}; ++k)", schedule_.lanes);
    DeclareElements(phase(), i() + " + k", &names);
    for (const auto& store : phase().stores)
      out_.Line("{}[k] = {};", results[store.operand], AsPacket(store.value).text);
    out_.Close();
    for (const auto& store : phase().stores)
      out_.Line("store_pack({}, {});", Address(store.operand, i()), results[store.operand]);
    at_hand_.clear();
  }

  std::set<int> once_;  // values that are computed once for all rows of a thread
  std::map<int, Parts> parts_;  // of gathers
};

}  // namespace

void EmitCudaElements(const CudaTask& task, const std::string& name, Writer* out) {
  ElementsEmitter(task, out).Run(name);
}

}  // namespace umbra::codegen
