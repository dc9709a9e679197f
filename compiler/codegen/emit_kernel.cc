// Emits one kernel:
//
//   operand pointers, strides, extents, scalars
//   for each row axis, the innermost one perhaps some rows at a time, phase by phase:
//     row pointers, row values
//     for each phase: accumulators; inner loops with whole packets, then the head of the last one
//     final row values and stores
//
// Values are scalars where they do not vary along the vector axis, else packets. When the vector
// axis is the last row axis, every row value is a packet and the inner loops are scalar.
#include "compiler/codegen/emit_kernel.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "compiler/codegen/emit_transposed.h"
#include "umbra/error.h"

namespace umbra::codegen {

namespace {

// Columns of a block when a gathered operand is walked across its lines.
constexpr int kTransposeBlock = 64;

class KernelEmitter : private TransposedEmitter {
 public:
  KernelEmitter(const plan::Plan& plan, const Kernel& kernel, const SourceOptions& options,
                Writer* out)
      : TransposedEmitter(plan, kernel, options, out) {}

  std::string Run() {
    const std::string name = names_.Make(signature_.name);
    if (!kernel_.summary.empty())
      out_.Line("// {} \u00b7 {} \u00b7 {}", name, Name(options_.target), kernel_.summary);
    out_.Open("UMBRA_KERNEL_FN {}void {}(const umbra_args* args, long long begin, long long end)",
              PutsPacketsOnStack() ? "UMBRA_ALIGNED_STACK " : "", name);
    if (Splits()) ReserveNames();
    if (SharedAxis() >= 0)
      for (const char* index : {"r", "c"}) names_.Make(index);
    tile_axis_ = Splits() ? -1 : TileAxis();
    if (tile_axis_ >= 0) ReserveTileNames();
    DeclareExtents(Splits() ? 0 : 1);
    DeclareOperands();
    if (!TakesRowsTogether()) row_names_ = DeclareRows(signature_.row_buffers, "static_cast<char*>(args->scratch)", "row");
    DeclareNumbers();
    DeclareUniforms();
    DeclareRowsTogether();
    DeclareAhead();
    if (Splits()) {
      Units();
      out_.Close();
      return name;
    }
    if (CutsColumns()) {
      out_.Open("for (long long j0 = 0; j0 < {}; j0 += {})", ExtentName(vector_axis_), kTransposeBlock);
      out_.Line("const long long j1 = j0 + {} < {} ? j0 + {} : {};", kTransposeBlock,
                ExtentName(vector_axis_), kTransposeBlock, ExtentName(vector_axis_));
    }
    if (JoinsRows() && SharedAxis() < 0 && KeyAxis() < 0) JoinRows();
    const bool streams = Streams() || !streamed_.empty();
    if (tile_axis_ >= 0) TileLoops(0);
    else RowLoops(0);
    if (CutsColumns()) out_.Close();
    FinishStreamedRows();
    if (streams) out_.Line("stream_fence();");
    out_.Close();
    return name;
  }

 private:
  // For want of registers, which functions and tiles need many of. Kernels that walk rows together put few there, and need
  // the register that an aligned stack takes.
  bool PutsPacketsOnStack() const {
    const auto in_groups = [this](const Phase& phase) { return GoesSideBySide(phase); };
    if (std::any_of(kernel_.phases.begin(), kernel_.phases.end(), in_groups)) return !TakesRowsTogether();
    return !Splits() && TileAxis() >= 0;
  }

  // ---- rows -----------------------------------------------------------------------------------

  // What rows are put together in that follow each other.
  void JoinRows() {
    const auto join = [this](const std::vector<plan::Store>& stores) {
      for (const auto& store : stores) {
        const Operand& o = operands_[static_cast<std::size_t>(store.operand)];
        const std::string first = o.stride_names[0].empty() ? o.base : fmt::format("{} + begin * {}", o.base, o.stride_names[0]);
        if (MakesLines(store)) DeclareStreamedRow(store, first);
      }
    };
    if (columns_) return join(kernel_.final_stores);
    for (const Phase& phase : kernel_.phases) join(phase.stores);
  }

  void RowLoops(int axis) {
    if (axis == kernel_.signature.row_axes) {
      Row();
      return;
    }
    if (axis == SharedAxis()) {
      SharedRows();
      return;
    }
    if (axis == KeyAxis()) {
      KeyRows();
      return;
    }
    if (axis == vector_axis_) {
      Columns(axis);
      return;
    }
    const std::string first = axis == 0 ? "begin" : "0", last = axis == 0 ? "end" : fmt::format("n{}", axis);
    const int innermost = signature_.row_axes - (columns_ ? 2 : 1);
    if (axis == innermost && TakesRowsTogether()) {
      RowsTogether(first, last);
      return;
    }
    out_.Open("for (long long i{0} = {1}; i{0} < {2}; ++i{0})", axis, first, last);
    if (axis == innermost) RowPointers();
    RowLoops(axis + 1);
    out_.Close();
  }

  // The vector axis is a row axis: a packet of columns at a time.
  void Columns(int axis) {
    const bool ranges = axis == 0 && !Splits();
    const std::string first = ranges ? "begin" : "0";
    const std::string last = ranges ? "end" : ExtentName(axis);
    const std::string c = fmt::format("i{}", axis);
    const auto body = [&](const std::string& lanes) {
      if (Splits()) ColumnUnit(c, lanes);
      else ColumnBody(c, lanes);
    };
    if (HasShortRows()) {
      out_.Open("for (long long {0} = {1}; {0} + {2} <= {3}; {0} += {2})", c, first, width_, last);
      ShortRows(c, names_);
      out_.Close();
    } else if (WalksBlocksOfColumns()) {
      ColumnBlocks(c, first, last);
    } else {
      out_.Open("for (long long {0} = {1}; {0} + {2} <= {3}; {0} += {2})", c, first, width_, last);
      body("");
      out_.Close();
    }
    if (width_ == 1) return;
    const std::string rest = first == "0" ? last : fmt::format("({} - {})", last, first);
    out_.Open("if (const long long {0} = {1} - {2} % {3}; {0} < {1})", c, last, rest, width_);
    out_.Line("const long long lanes = {} - {};", last, c);
    body("lanes");
    out_.Close();
  }

  void ColumnBody(const std::string& c, const std::string& lanes) {
    Names names = names_;
    for (const Phase& phase : kernel_.phases) {
      for (int id : phase.row_values) DeclarePacket(id, c, lanes, &names);
      ColumnLoop(phase, c, lanes, &names);
    }
    for (int id : kernel_.final_row_values) DeclarePacket(id, c, lanes, &names);
    for (const auto& store : kernel_.final_stores) StorePacket(store, c, lanes);
  }

  // ---- few rows -------------------------------------------------------------------------------

  // A row's blocks are worked on side by side, phase by phase. What each accumulates is kept in scratch, after what
  // is kept of the row; a unit of a later phase joins what the blocks of its row found, block after block. After
  // the phases comes a call that stores the results of rows.
  void Units() {
    const int phases = static_cast<int>(kernel_.phases.size());
    int next = kernel_.rank() + static_cast<int>(signature_.numbers.size());
    for (const char* name : {"phase", "blocks"}) out_.Line("const long long {} = args->extent[{}];", name, next++);
    for (int axis : runtime::CutAxes(signature_)) out_.Line("const long long l{} = args->extent[{}];", axis, next++);
    std::vector<int> rows;
    for (int axis = 0; axis < signature_.row_axes; ++axis)
      if (axis != vector_axis_) rows.push_back(axis);
    std::string points;
    for (int axis : rows) points += ExtentName(axis) + " * ";
    out_.Line("const long long units = {}blocks, kept = {};", points, BytesOfRows(signature_.row_buffers));
    out_.Line("[[maybe_unused]] const long long found = {};", Padded("units" + (columns_ ? " * " + ExtentName(vector_axis_) : "")));
    DeclareFound();
    out_.Open("for (long long unit = begin; unit < end; ++unit)");
    out_.Line("[[maybe_unused]] const long long line = unit / blocks, block = unit % blocks;");
    std::string rest = "line";
    for (std::size_t k = rows.size(); k-- > 0;) {
      out_.Line("[[maybe_unused]] const long long i{} = {}{};", rows[k], rest, k == 0 ? "" : " % " + ExtentName(rows[k]));
      rest += " / " + ExtentName(rows[k]);
    }
    Blocks();
    RowPointers();
    for (phase_ = 0; phase_ <= phases; ++phase_) {
      if (IsLast() && kernel_.final_stores.empty()) continue;
      if (phase_ < phases) out_.Open("if (phase == {})", phase_);
      else out_.Open("if (phase == {} && block == 0)", phase_);
      if (columns_) Columns(vector_axis_);
      else RowUnit();
      out_.Close();
    }
    out_.Close();
    if (Streams()) out_.Line("stream_fence();");
  }

  void ReserveNames() {
    for (const char* name : {"phase", "blocks", "units", "kept", "found", "unit", "line", "block"}) names_.Make(name);
    for (int axis : runtime::CutAxes(signature_))
      for (const char* name : {"l", "b", "e"}) names_.Make(name + std::to_string(axis));
  }

  void DeclareFound() {
    std::size_t size = 0;
    for (const Phase& phase : kernel_.phases)
      for (const auto& reduction : phase.reductions) {
        const DType type = value(reduction.result).type;
        found_[reduction.result] = names_.Make(AccumulatorName(kernel_, reduction) + "_found");
        out_.Line("{0}* {1} = reinterpret_cast<{0}*>(static_cast<char*>(args->scratch) + kept{2});",
                  ScalarType(type), found_[reduction.result], size == 0 ? "" : fmt::format(" + found * {}", size));
        size += SizeOf(type);
      }
  }

  // The block's part of each axis that is cut.
  void Blocks() {
    std::string rest = "block";
    const std::vector<int> cut = runtime::CutAxes(signature_);
    for (std::size_t k = cut.size(); k-- > 0;) {
      const std::string n = ExtentName(cut[k]), l = fmt::format("l{}", cut[k]);
      const std::string count = fmt::format("(({0} + {1} - 1) / {1})", n, l);
      out_.Line("const long long b{0} = {1}{2} * {3}, e{0} = smaller(b{0} + {3}, {4});", cut[k], rest,
                k == 0 ? "" : " % " + count, l, n);
      rest = fmt::format("{} / {}", rest, count);
    }
  }

  bool IsLast() const { return phase_ == static_cast<int>(kernel_.phases.size()); }
  const Phase& CurrentPhase() const { return kernel_.phases[static_cast<std::size_t>(phase_)]; }

  // The values that the current phase needs, in order of evaluation.
  std::set<int> Reached() const {
    if (!IsLast()) return ReachedFrom(CurrentPhase());
    std::set<int> reached;
    ReachFromFinal(&reached);
    return reached;
  }

  const plan::Reduction& ReductionOf(int result) const {
    for (const Phase& phase : kernel_.phases)
      for (const auto& reduction : phase.reductions)
        if (reduction.result == result) return reduction;
    throw InternalError("a reduced value without a reduction");
  }

  void RowUnit() {
    const Names outer = names_;
    const std::set<int> reached = Reached();
    SpreadWithin(IsLast() ? Phase() : CurrentPhase(), reached);
    for (const int id : reached) {
      if (value(id).scope != Scope::kRow) continue;
      if (value(id).kind != Value::Kind::kReduced) {
        DeclareRowValue(id);
        continue;
      }
      const plan::Reduction& reduction = ReductionOf(id);
      const std::string all = names_.Make(AccumulatorName(kernel_, reduction) + "_all");
      out_.Line("{} {} = {};", ScalarType(value(id).type), all, Identity(kernel_, reduction));
      out_.Line("for (long long k = 0; k < blocks; ++k) {} = {};", all,
                SpellScalarMap(JoinOp(reduction), value(id).type, {{all}, {found_[id] + "[line * blocks + k]"}}).text);
      DeclareScalar(id, {all});
    }
    if (IsLast()) {
      StoreRow();
    } else {
      for (const auto& reduction : CurrentPhase().reductions) results_[reduction.result] = found_[reduction.result] + "[unit]";
      RowLoop(CurrentPhase());
    }
    names_ = outer;
  }

  void ColumnUnit(const std::string& c, const std::string& lanes) {
    Names names = names_;
    const auto found = [&](int id, const std::string& unit) {
      return fmt::format("{} + ({}) * {} + {}", found_[id], unit, ExtentName(vector_axis_), c);
    };
    for (const int id : Reached()) {
      if (value(id).scope != Scope::kRow) continue;
      if (value(id).kind != Value::Kind::kReduced) {
        DeclarePacket(id, c, lanes, &names);
        continue;
      }
      const plan::Reduction& reduction = ReductionOf(id);
      const DType type = value(id).type;
      const std::string all = names.Make(AccumulatorName(kernel_, reduction)), from = found(id, "line * blocks + k");
      out_.Line("{} {} = {};", speller_->Type(type), all, speller_->Fill(type, Identity(kernel_, reduction)).text);
      out_.Line("for (long long k = 0; k < blocks; ++k) {} = {};", all,
                Join(*speller_, kernel_, reduction, {all}, lanes.empty() ? speller_->Load(type, from) : speller_->LoadHead(type, from, lanes)));
      text_[id] = {all};
    }
    if (IsLast()) {
      for (const auto& store : kernel_.final_stores) StorePacket(store, c, lanes);
      return;
    }
    ColumnLoop(CurrentPhase(), c, lanes, &names);
    for (const auto& reduction : CurrentPhase().reductions) {
      const DType type = value(reduction.result).type;
      const std::string to = found(reduction.result, "unit");
      const Expr& e = text_[reduction.result];
      out_.Line("{};", lanes.empty() ? speller_->Store(type, to, e) : speller_->StoreHead(type, to, e, lanes));
    }
  }

  int phase_ = 0;                      // that is being written, of a kernel whose rows are split
  std::map<int, std::string> found_;   // by reduced value: what blocks found
};

}  // namespace

std::string EmitKernel(const plan::Plan& plan, const Kernel& kernel, const SourceOptions& options,
                       Writer* out) {
  return KernelEmitter(plan, kernel, options, out).Run();
}

}  // namespace umbra::codegen
