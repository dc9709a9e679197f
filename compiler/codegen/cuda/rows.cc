// Reductions along the vector axis. The threads of a warp or of a block go through a row side by side, phase by phase;
// what they accumulate is joined by shuffles, and through shared memory between warps. Each thread meets the same
// elements in every phase, so that what is kept of the row, inputs among it, which are fetched first, needs no barrier,
// but where rows are scanned, whose last element threads beyond the end read as well.
// Where rows are few and long, several blocks work on one, and a second kernel joins what they found.
#include <algorithm>

#include "compiler/codegen/cuda/emitter.h"
#include "compiler/codegen/cuda/kept.h"
#include "compiler/codegen/reductions.h"
#include "umbra/error.h"

namespace umbra::codegen {

namespace {

using runtime::CudaForm;

class RowsEmitter : private CudaEmitter {
 public:
  RowsEmitter(const CudaTask& task, Writer* out)
      : CudaEmitter(task, out),
        rows_(Axes(0, signature_.row_axes)),
        walks_(Axes(signature_.row_axes, vector_axis_)),
        lanes_(variant_.vector ? schedule_.lanes : 1),
        kept_(RowsKept(plan_, kernel_, !variant_.rows_in_scratch && !Splits())) {}

  void Run(const std::string& name) {
    DeclareArguments(name);
    OpenKernel(name, IsWarp() || Splits() ? 256 : 512);
    DeclareParameters(Axes(0, kernel_.rank()));
    if (Splits()) DeclareFound("gridDim.x", Points(rows_));
    DeclareLines();
    OpenRow();
    DeclareRowPointers();
    FetchKept();
    if (Splits()) {
      RunPhase(SharedPhase());
      KeepFound();
    } else {
      for (const Phase& phase : kernel_.phases) RunPhase(phase);
      DeclareRowValues(kernel_.final_row_values);
      StoreRow("threadIdx.x == 0");
    }
    if (!IsWarp()) CloseRows(rows_);
    out_.Close();
  }

  // The second pass: a block joins what the blocks of a row found.
  void Finish(const std::string& name) {
    const Phase phase = SharedPhase();
    out_.Blank();
    OpenKernel(name, 256, true);
    DeclareParameters(Axes(0, kernel_.rank()));
    DeclareFound("*static_cast<const long long*>(args.scratch)", Points(rows_));
    out_.Line("const {} row = {};", index_type_, Index(Block("x")));
    DeclarePositions("row", rows_);
    DeclareRowPointers();
    DeclareRowValues(phase.row_values);
    for (const auto& reduction : phase.reductions)
      JoinFound(reduction, "for (i64 part = threadIdx.x; part < parts; part += blockDim.x)", "row * parts + part",
                "block_all");
    DeclareRowValues(kernel_.final_row_values);
    StoreRow("threadIdx.x == 0");
    out_.Close();
  }

 private:
  bool Splits() const { return variant_.form == CudaForm::kRowSplit; }
  bool IsWarp() const { return variant_.form == CudaForm::kRowPerWarp; }
  std::string i() const { return fmt::format("i{}", vector_axis_); }
  // From a thread's packet of a row to its next one.
  std::string Step() const {
    return IsWarp() ? "32" : Splits() ? "int(gridDim.x) * int(blockDim.x)" : "int(blockDim.x)";
  }

  void OpenRow() {
    const std::string bytes = BytesOfRows(kept_.types);
    if (IsWarp()) {
      DeclareKept(fmt::format("shared_memory + threadIdx.y * ({})", bytes));
      out_.Line("const {} row = {} * blockDim.y + threadIdx.y;", index_type_, Index(Block("x")));
      out_.Line("if (row >= {}) return;", Points(rows_));
      DeclarePositions("row", rows_);
      return;
    }
    DeclareKept(variant_.rows_in_scratch
                    ? fmt::format("static_cast<char*>(args.scratch) + i64({}) * ({})", Block("x"), bytes)
                    : "shared_memory");
    const char* along = Splits() ? "y" : "x";
    OpenRows(rows_, Index(Block(along)), Grid(along));
  }

  void DeclareKept(const std::string& memory) {
    const std::vector<std::string> names = DeclareRows(kept_.types, memory, "kept");
    for (const int array : kept_.of_row_buffer) row_names_.push_back(names[static_cast<std::size_t>(array)]);
    for (const auto& [operand, array] : kept_.of_operand) inputs_[operand] = names[static_cast<std::size_t>(array)];
  }

  bool IsKept(int operand) const { return inputs_.count(operand) > 0; }
  std::string Source(int operand) const {
    return IsKept(operand) ? inputs_.at(operand) + " + " + i() : Address(operand, i());
  }

  // What several phases read is on its way before the first computes.
  void FetchKept() {
    if (inputs_.empty()) return;
    Ensure(walks_.empty(), "rows of several lines that are kept");
    out_.Line("#pragma unroll 4");
    out_.Open("for ({0} chunk = threadIdx.x; chunk < {1}; chunk += {2})", index_type_, Chunks(), Step());
    DeclarePlace("chunk");
    for (const auto& [operand, kept] : inputs_)
      out_.Line("fetch_pack<{}>({} + {}, {});", lanes_, kept, i(), Address(operand, i()));
    out_.Close();
    awaits_ = true;
  }

  void RunPhase(const Phase& phase) {
    DeclareRowValues(phase.row_values);
    if (phase.element_values.empty() && phase.stores.empty() && phase.reductions.empty()) return;
    if (awaits_) out_.Line("fetched();");
    awaits_ = false;
    for (const auto& reduction : phase.reductions) DeclarePart(reduction, lanes_);
    DeclareCarries(phase, &names_);
    if (plan::ScansOf(kernel_, phase).empty()) {
      Loop(phase);
    } else {
      if (!inputs_.empty())
        out_.Line("{};", IsWarp() ? "__syncwarp()" : "__syncthreads()");  // for those beyond the end
      ScanLoop(phase);
    }
    for (const auto& reduction : phase.reductions)
      DeclareResult(reduction, fmt::format("{}<{}>({})", IsWarp() ? "warp_all" : "block_all", PartJoiner(reduction),
                                           PartOf(reduction, lanes_)));
  }

  // A row of several lines is gone through as one: threads are as busy, and as much is in flight, however long a line
  // is.
  void DeclareLines() {
    if (walks_.empty()) return;
    out_.Line("const {} line = {};", index_type_, Chunks());
    out_.Line("const {} chunks = {} * line;", index_type_, Points(walks_));
    if (!variant_.wide_index) out_.Line("const divisor by_line = line;");
    DeclareDivisors(walks_);
  }
  // The packets, or elements, of a line; of a row.
  std::string Chunks() const { return ExtentName(vector_axis_) + (lanes_ > 1 ? fmt::format(" / {}", lanes_) : ""); }
  std::string AllChunks() const { return walks_.empty() ? Chunks() : "chunks"; }

  // Declares where the packet or element number `chunk` of the row is.
  void DeclarePlace(const std::string& chunk) {
    const std::string times = lanes_ > 1 ? fmt::format(" * {}", lanes_) : "";
    if (walks_.empty()) return out_.Line("const {} {} = {}{};", index_type_, i(), chunk, times);
    if (variant_.wide_index) {
      out_.Line("const {} walk = ({}) / line;", index_type_, chunk);
      out_.Line("const {} {} = ({}) % line{};", index_type_, i(), chunk, times);
    } else {
      out_.Line("const divided place({}, by_line);", chunk);
      out_.Line("const {} walk = place.quotient;", index_type_);
      out_.Line("const {} {} = place.rest{};", index_type_, i(), times);
    }
    DeclarePositions("walk", walks_);
  }

  void Loop(const Phase& phase) {
    const Names outer = names_;
    if (walks_.empty()) OpenGuard(phase, &names_);
    const std::string first = Splits() ? Index(Block("x")) + " * blockDim.x + threadIdx.x" : "threadIdx.x";
    const std::string step = Step();
    Names names = names_;
    const bool dear = lanes_ > 1 && IsDear(phase);
    if (const int turns = TurnsAtOnce(phase);
        dear && Waits(phase) && turns > 1 && (walks_.empty() || phase.guard < 0)) {
      Turns(phase, turns, first, step, &names);
    } else {
      out_.Line("#pragma unroll {}", !dear && (Waits(phase) || ReadsKept(phase)) ? 4 : 1);
      // Of a line of elements the position is what is counted.
      const std::string counted = walks_.empty() && lanes_ == 1 ? i() : "chunk";
      out_.Open("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", index_type_, counted, first, AllChunks(), step);
      if (counted == "chunk") DeclarePlace("chunk");
      if (!walks_.empty()) OpenGuard(phase, &names);
      if (lanes_ == 1) Element(phase, &names);
      else Packet(phase, &names);
      if (!walks_.empty()) CloseGuard(phase);
      out_.Close();
    }
    if (walks_.empty()) CloseGuard(phase);
    names_ = outer;
    at_hand_.clear();
    kept_at_hand_.clear();
  }

  // All threads take as many turns, as they scan together; one beyond the end of the row has its last element, and
  // counts for nothing.
  void ScanLoop(const Phase& phase) {
    const Names outer = names_;
    const std::string first = names_.Make("first"), own = names_.Make("own"), n = ExtentName(vector_axis_);
    inside_row_ = names_.Make("inside");
    out_.Open("for ({0} {1} = 0; {1} < {2}; {1} += {3})", index_type_, first, n, Step());
    out_.Line("const {0} {1} = {2} + {3};", index_type_, own, first, Index("threadIdx.x"));
    out_.Line("const bool {} = {} < {};", inside_row_, own, n);
    out_.Line("const {} {} = {} ? {} : {} - 1;", index_type_, i(), inside_row_, own, n);
    Names names = names_;
    ReadKept(phase, &names);
    DeclareElements(phase, i(), &names);
    out_.Open("if ({})", inside_row_);
    Accumulate(phase, "");
    StoreElements(phase, i());
    out_.Close();
    out_.Close();
    names_ = outer;
    at_hand_.clear();
    kept_at_hand_.clear();
  }

  void DeclareScanned(int id, const std::string& /*lanes*/, Names* names) override {
    const plan::Reduction scan = JoinedBy(kernel_, id);
    const std::string name = names->Make(NameOf(id)), identity = Identity(kernel_, scan);
    out_.Line("const {} {} = {}<{}>({} ? {} : {}, {}{});", ScalarType(value(id).type), name,
              IsWarp() ? "warp_scan" : "block_scan", Joiner(scan), inside_row_, AsPacket(scan.value).text, identity,
              carry_.at(id).text, IsWarp() ? "" : ", " + identity);
    text_[id] = {name};
  }

  void Element(const Phase& phase, Names* names) {
    ReadKept(phase, names);
    DeclareElements(phase, i(), names);
    Accumulate(phase, "");
    if (moments_) AddToMoments();
    StoreElements(phase, i());
  }

  // The packets of several turns are read before the first is computed, by a loop that is compiled once.
  void Turns(const Phase& phase, int turns, const std::string& first, const std::string& step, Names* names) {
    out_.Open("for ({0} turns = {1}; turns < {2}; turns += {3} * {4})", index_type_, first, AllChunks(), turns, step);
    const std::vector<int> read = ReadFromMemory(phase);
    std::vector<std::string> packs;
    for (const int k : read) {
      packs.push_back(names->Make(operands_[static_cast<std::size_t>(k)].name + "_pack"));
      at_hand_[k] = packs.back() + "[0][k]";
      out_.Line("pack<{}, {}> {}[{}];", ElementType(OperandType(k)), lanes_, packs.back(), turns);
    }
    OpenTurns(turns);
    const std::string last = AllChunks() + " - 1";  // whose extent may be a literal
    DeclarePlace(fmt::format("minimum(turns + u * {}, {})", step, variant_.wide_index ? "i64(" + last + ")" : last));
    for (std::size_t k = 0; k < read.size(); ++k)
      out_.Line("{}[u] = load_pack<{}>({});", packs[k], lanes_, Address(read[k], i()));
    out_.Close();
    out_.Line("#pragma unroll 1");
    out_.Open("for ({0} chunk = turns; chunk < {1} && chunk < turns + {2} * {3}; chunk += {3})", index_type_,
              AllChunks(), turns, step);
    DeclarePlace("chunk");
    Packet(phase, names);
    for (const std::string& pack : packs) out_.Line("advance({});", pack);
    out_.Close();
    out_.Close();
  }

  // Would a thread wait for memory in each turn? What is stored between them keeps a compiler from reading for several.
  bool Waits(const Phase& phase) const {
    const auto& ids = phase.element_values;
    const bool gathers =
        std::any_of(ids.begin(), ids.end(), [this](int id) { return value(id).kind == Value::Kind::kGather; });
    return phase.stores.empty() && (gathers || !ReadFromMemory(phase).empty());
  }

  // A little, of shared memory.
  bool ReadsKept(const Phase& phase) const { return phase.stores.empty() && !LoadedOperands(phase).empty(); }

  std::vector<int> ReadFromMemory(const Phase& phase) const {
    std::vector<int> operands = LoadedOperands(phase);
    std::erase_if(operands, [this](int k) { return IsKept(k); });
    return operands;
  }

  // Of which packets in 32 registers have room.
  int TurnsAtOnce(const Phase& phase) const {
    std::size_t bytes = 0;
    for (const int k : ReadFromMemory(phase)) bytes += SizeOf(OperandType(k)) * static_cast<std::size_t>(lanes_);
    return bytes <= 32 ? 4 : bytes <= 64 ? 2 : 1;
  }

  // But for moments, which are made of whole packets.
  void Accumulate(const Phase& phase, const std::string& at) {
    for (const auto& reduction : phase.reductions) {
      if (IsOfMoments(reduction)) continue;
      const std::string part = accumulator_[reduction.result] + at;
      out_.Line("{} = {};", part, Joined(reduction, {part}, AsPacket(reduction.value)));
    }
  }

  // Elements of inputs that are kept, before anything else takes their place.
  void ReadKept(const Phase& phase, Names* names) {
    for (const int k : LoadedOperands(phase)) {
      if (!IsKept(k)) continue;
      const DType type = OperandType(k) == DType::kBool ? DType::kUInt8 : OperandType(k);  // as it lies in memory
      at_hand_[k] = names->Make(operands_[static_cast<std::size_t>(k)].name + "_kept");
      out_.Line("const {} {} = {};", ElementType(type), at_hand_[k], speller_->Load(type, Source(k)).text);
    }
  }

  void Packet(const Phase& phase, Names* names) {
    const auto pack = [&](DType type, const std::string& of, const std::string& from) {
      const std::string name = names->Make(of + "_pack");
      if (from.empty()) out_.Line("pack<{}, {}> {};", ElementType(type), lanes_, name);
      else out_.Line("const pack<{}, {}> {} = load_pack<{}>({});", ElementType(type), lanes_, name, lanes_, from);
      return name;
    };
    for (const int k : LoadedOperands(phase))
      if (at_hand_.count(k) == 0)
        at_hand_[k] = pack(OperandType(k), operands_[static_cast<std::size_t>(k)].name, Source(k)) + "[k]";
    for (int id : phase.element_values) {
      const Value& v = value(id);
      if (v.kind != Value::Kind::kStaged || kept_at_hand_.count(v.index) != 0) continue;
      const std::string& kept = row_names_[static_cast<std::size_t>(v.index)];
      kept_at_hand_[v.index] = pack(v.type, kept, kept + " + " + i()) + "[k]";
    }
    std::vector<std::string> stages, stores;
    for (const auto& stage : phase.stages)
      stages.push_back(pack(value(stage.value).type, row_names_[static_cast<std::size_t>(stage.row_buffer)], ""));
    for (const auto& store : phase.stores)
      stores.push_back(pack(OperandType(store.operand), operands_[static_cast<std::size_t>(store.operand)].name, ""));
    const std::string summed = moments_ ? pack(value(moments_->value).type, "summed", "") : "";
    out_.Line("#pragma unroll");
    out_.Open("for (int k = 0; k < {}; ++k)", lanes_);
    DeclareElements(phase, i() + " + k", names);
    if (moments_) out_.Line("{}[k] = {};", summed, AsPacket(moments_->value).text);
    for (std::size_t s = 0; s < stages.size(); ++s)
      out_.Line("{}[k] = {};", stages[s], AsPacket(phase.stages[s].value).text);
    for (std::size_t s = 0; s < stores.size(); ++s)
      out_.Line("{}[k] = {};", stores[s], AsPacket(phase.stores[s].value).text);
    Accumulate(phase, "[k]");
    out_.Close();
    if (moments_) out_.Line("{}.add({});", accumulator_.at(moments_->squares), summed);
    for (std::size_t s = 0; s < stages.size(); ++s)
      out_.Line("store_pack({} + {}, {});", row_names_[static_cast<std::size_t>(phase.stages[s].row_buffer)], i(),
                stages[s]);
    for (std::size_t s = 0; s < stores.size(); ++s)
      out_.Line("store_pack({}, {});", Address(phase.stores[s].operand, i()), stores[s]);
  }

  void KeepFound() {
    out_.Open("if (threadIdx.x == 0)");
    const std::string row = HasRows(rows_) ? "row * parts + " : "";
    for (const auto& reduction : SharedPhase().reductions)
      out_.Line("{}[{}blockIdx.x] = {};", found_[reduction.result], row, text_.at(reduction.result).text);
    out_.Line("*static_cast<long long*>(args.scratch) = parts;");
    out_.Close();
  }

  void StoreRow(const std::string& condition) {
    if (kernel_.final_stores.empty()) return;
    out_.Open("if ({})", condition);
    for (const auto& store : kernel_.final_stores) StoreScalar(store, "");
    out_.Close();
  }

  std::vector<int> rows_, walks_;
  int lanes_;
  KeptRows kept_;
  std::string inside_row_;  // of a loop that scans: has the thread an element of its own?
  bool awaits_ = false;  // have packets been asked for, and not waited for?
  std::map<int, std::string> inputs_;  // the arrays that keep them, by operand
};

}  // namespace

void EmitCudaRows(const CudaTask& task, const std::string& name, Writer* out) {
  RowsEmitter(task, out).Run(name);
  if (task.variant.form == CudaForm::kRowSplit) RowsEmitter(task, out).Finish(name);
}

}  // namespace umbra::codegen
