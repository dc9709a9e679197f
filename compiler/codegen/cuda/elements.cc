// A kernel without reductions: threads lie along the vector axis and over the rows. A thread first reads all that it
// needs, then writes, so that its loads are in flight together: packets, or an element of each of several rows.
#include <algorithm>
#include <map>
#include <set>

#include "compiler/codegen/cuda/emitter.h"

namespace umbra::codegen {

namespace {

class ElementsEmitter : private CudaEmitter {
 public:
  ElementsEmitter(const CudaTask& task, Writer* out) : CudaEmitter(task, out) {}

  void Run(const std::string& name) {
    const std::vector<int> rows = Axes(0, signature_.row_axes);
    DeclareArguments(name);
    OpenKernel(name, 256);
    DeclareParameters(HasRows(rows) ? Axes(0, kernel_.rank()) : Axes(vector_axis_, kernel_.rank()));
    if (variant_.vector) {
      OpenRows(rows, First(), kStep);
      DeclareRowPointers();
      DeclareRowValues(phase().row_values);
      Packets();
      CloseRows(rows);
    } else {
      out_.Line("const {} {} = {} * blockDim.x + threadIdx.x;", index_type_, i(), Index("blockIdx.x"));
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
  static constexpr const char* kStep = "gridDim.y * blockDim.y";

  std::string First() const { return Index("blockIdx.y") + " * blockDim.y + threadIdx.y"; }
  const Phase& phase() const { return kernel_.phases[0]; }
  std::string i() const { return fmt::format("i{}", vector_axis_); }

  // What the element is made of, but for what all rows have alike.
  void DeclareRow() {
    DeclareRowPointers();
    DeclareRowValues(phase().row_values);
    Names names = names_;
    for (const int id : phase().element_values)
      if (alike_.count(id) == 0) DeclarePacket(id, i(), "", &names);
  }

  // An element of the rows that are a thread's: of several at a time, then one by one.
  void Rows(const std::vector<int>& rows) {
    DeclareWhatRowsHaveAlike();
    const std::string points = Points(rows);
    out_.Line("const {} step = {};", index_type_, kStep);
    out_.Line("{} row = {};", index_type_, First());
    if (schedule_.rows > 1) {
      out_.Open("for (; row + {0} * step < {2}; row += {1} * step)", schedule_.rows - 1, schedule_.rows, points);
      StoreTurns(phase(), schedule_.rows, i(), "", [&] {
        out_.Line("const {} turn = row + u * step;", index_type_);
        DeclarePositions("turn", rows);
        DeclareRow();
      });
      out_.Close();
    }
    out_.Line("#pragma unroll 1");
    out_.Open("for (; row < {}; row += step)", points);
    DeclarePositions("row", rows);
    DeclareRow();
    StoreElements(phase(), i());
    out_.Close();
  }

  // Values that only the position along the vector axis tells apart are computed once for all rows of a thread. Those that
  // rows make something of get names.
  void DeclareWhatRowsHaveAlike() {
    for (const int id : phase().element_values) {
      const Value& v = value(id);
      const auto is_alike = [this](int arg) { return alike_.count(arg) > 0 || value(arg).scope == Scope::kUniform; };
      bool alike = v.kind == Value::Kind::kIndex && v.index == vector_axis_;
      if (v.kind == Value::Kind::kLoad) {
        const auto& access = signature_.operands[static_cast<std::size_t>(v.index)];
        alike = true;
        for (int axis = 0; axis < signature_.row_axes; ++axis) alike = alike && (axis == vector_axis_ || !Moves(access, axis));
      }
      if (v.kind == Value::Kind::kMap || v.kind == Value::Kind::kCast || v.kind == Value::Kind::kGather)
        alike = std::all_of(v.args.begin(), v.args.end(), is_alike);
      if (alike) alike_.insert(id);
    }
    const auto name = [this](int id) {
      if (alike_.count(id) > 0 && value(id).kind != Value::Kind::kIndex) ++uses_[static_cast<std::size_t>(id)];
    };
    for (const int id : phase().element_values)
      if (alike_.count(id) == 0)
        for (const int arg : value(id).args) name(arg);
    for (const int id : ResultsOf(phase())) name(id);
    for (const int id : phase().element_values)
      if (alike_.count(id) > 0) DeclarePacket(id, i(), "", &names_);
  }

  // One packet or two of each operand.
  void Packets() {
    const int lanes = schedule_.lanes;
    out_.Line("const {} first = ({} * {}blockDim.x + threadIdx.x) * {};", index_type_, Index("blockIdx.x"), IsPair() ? "2 * " : "", lanes);
    if (IsPair()) out_.Line("const {} step = blockDim.x * {};", index_type_, lanes);
    ReadPackets();
    Names names = names_;
    OpenPackets("#pragma unroll 1");
    std::map<int, std::string> results;
    for (const int k : StoredOperands(phase())) {
      results[k] = names.Make(operands_[static_cast<std::size_t>(k)].name + "_pack");
      out_.Line("pack<{}, {}> {};", ElementType(OperandType(k)), lanes, results[k]);
    }
    out_.Line("#pragma unroll");
    out_.Open("for (int k = 0; k < {}; ++k)", lanes);
    for (const auto& [k, pack] : packs_) at_hand_[k] = pack + (IsPair() ? "[0][k]" : "[k]");
    DeclareElements(phase(), "k", &names);
    for (const auto& store : phase().stores) out_.Line("{}[k] = {};", results[store.operand], AsPacket(store.value).text);
    at_hand_.clear();
    out_.Close();
    for (const auto& store : phase().stores)
      out_.Line("store_pack_head({} + {}, {}, {});", operands_[static_cast<std::size_t>(store.operand)].name, Here(),
                results[store.operand], Left());
    Advance();
    ClosePackets();
  }

  // All that a thread reads, whole packets at once.
  void ReadPackets() {
    for (const int k : LoadedOperands(phase())) {
      packs_[k] = names_.Make(operands_[static_cast<std::size_t>(k)].name + "_pack");
      out_.Line("pack<{}, {}> {}{};", ElementType(OperandType(k)), schedule_.lanes, packs_[k], IsPair() ? "[2]" : "");
    }
    if (packs_.empty()) return;
    const auto operand = [this](int k) { return operands_[static_cast<std::size_t>(k)].name; };
    out_.Open("if ({} + {} <= {})", IsPair() ? "first + step" : "first", schedule_.lanes, ExtentName(vector_axis_));
    OpenPackets("#pragma unroll");
    for (const auto& [k, pack] : packs_)
      out_.Line("{}{} = load_pack<{}>({} + {});", pack, IsPair() ? "[u]" : "", schedule_.lanes, operand(k), Here());
    ClosePackets();
    out_.Middle("} else {");
    OpenPackets("#pragma unroll 1");
    Advance();
    for (const auto& [k, pack] : packs_)
      out_.Line("{}{} = load_pack_head<{}>({} + {}, {});", pack, IsPair() ? "[1]" : "", schedule_.lanes, operand(k), Here(), Left());
    ClosePackets();
    out_.Close();
  }

  bool IsPair() const { return schedule_.packets > 1; }
  // Where the packet begins, and how many elements there are from it on.
  std::string Here() const { return IsPair() ? "first + u * step" : "first"; }
  std::string Left() const { return ExtentName(vector_axis_) + " - " + (IsPair() ? "(" + Here() + ")" : Here()); }

  void Advance() {
    for (const auto& [k, pack] : packs_)
      if (IsPair()) out_.Line("advance({});", pack);
  }
  void OpenPackets(const char* how) {
    if (!IsPair()) return;
    out_.Line("{}", how);
    out_.Open("for (int u = 0; u < 2; ++u)");
  }
  void ClosePackets() {
    if (IsPair()) out_.Close();
  }

  std::map<int, std::string> packs_;  // of operands that are read
  std::set<int> alike_;  // values that all rows have alike
};

}  // namespace

void EmitCudaElements(const CudaTask& task, const std::string& name, Writer* out) { ElementsEmitter(task, out).Run(name); }

}  // namespace umbra::codegen
