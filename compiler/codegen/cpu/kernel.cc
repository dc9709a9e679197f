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
#include "compiler/codegen/cpu/kernel.h"

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/codegen/cpu/emitter.h"
#include "compiler/plan/narrow_integers.h"
#include "compiler/plan/positions.h"

namespace umbra::codegen {

namespace {

// Columns of a block when a gathered operand is walked across its lines.
constexpr int kTransposeBlock = 64;

}  // namespace

std::string CpuEmitter::Run() {
  const std::string name = names_.Make(signature_.name);
  if (!kernel_.summary.empty()) out_.Line("// {} \u00b7 {} \u00b7 {}", name, Name(options_.target), kernel_.summary);
  out_.Open("UMBRA_KERNEL_FN {}void {}(const umbra_args* args, long long begin, long long end)",
            PutsPacketsOnStack() ? "UMBRA_ALIGNED_STACK " : "", name);
  if (Splits()) ReserveUnitNames();
  if (SharedAxis() >= 0)
    for (const char* index : {"r", "c"}) names_.Make(index);
  if (HasTransposedTiles()) ReserveTransposedNames();
  DeclareExtents(Splits() ? 0 : 1);
  DeclareOperands();
  if (!TakesRowsTogether())
    row_names_ = DeclareRows(signature_.row_buffers, "static_cast<char*>(args->scratch)", "row");
  DeclareNumbers();
  DeclareRanges();
  DeclareUniforms();
  DeclareTables();
  DeclareRowsTogether();
  if (KeepsColumns()) DeclareColumnBuffers();
  DeclareAhead();
  if (Splits()) {
    Units([this] { Columns(vector_axis_); });
    EndStreams();
    out_.Close();
    return name;
  }
  if (CutsColumns()) {
    out_.Open("for (long long j0 = {}; j0 < {}; j0 += {})", Begin(vector_axis_), ExtentName(vector_axis_),
              kTransposeBlock);
    out_.Line("const long long j1 = j0 + {} < {} ? j0 + {} : {};", kTransposeBlock, ExtentName(vector_axis_),
              kTransposeBlock, ExtentName(vector_axis_));
  }
  if (JoinsRows() && SharedAxis() < 0 && KeyAxis() < 0) JoinRows();
  if (HasTransposedTiles()) TransposedLoops(0);
  else RowLoops(0);
  if (CutsColumns()) out_.Close();
  EndStreams();
  out_.Close();
  return name;
}

bool CpuEmitter::PutsPacketsOnStack() const {
  const auto in_groups = [this](const Phase& phase) { return GoesSideBySide(phase); };
  if (std::any_of(kernel_.phases.begin(), kernel_.phases.end(), in_groups)) return !TakesRowsTogether();
  return !Splits() && TileAxis() >= 0;
}

void CpuEmitter::JoinRows() {
  const auto join = [this](const std::vector<plan::Store>& stores) {
    for (const auto& store : stores) {
      const Operand& o = operands_[static_cast<std::size_t>(store.operand)];
      const std::string first =
          o.stride_names[0].empty() ? o.base : fmt::format("{} + begin * {}", o.base, o.stride_names[0]);
      if (MakesLines(store)) DeclareStreamedRow(store, first);
    }
  };
  if (columns_) return join(kernel_.final_stores);
  for (const Phase& phase : kernel_.phases) join(phase.stores);
}

void CpuEmitter::RowLoops(int axis) {
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
  const std::string first = Begin(axis), last = End(axis);
  const int innermost = LastOfRows();
  if (axis == innermost && TakesRowsTogether()) {
    RowsTogether(first, last);
    return;
  }
  out_.Open("for (long long i{0} = {1}; i{0} < {2}; ++i{0})", axis, first, last);
  if (axis == innermost) RowPointers();
  RowLoops(axis + 1);
  out_.Close();
}

std::string EmitKernel(const plan::Plan& plan, const Kernel& kernel, const SourceOptions& options, Writer* out) {
  if (options.spelling != Spelling::kPackets || RegisterBytes(options.target) == 0)
    return CpuEmitter(plan, kernel, options, out).Run();
  const Kernel narrow = KernelShape::MayBeNarrow(kernel, options) ? plan::WithNarrowIntegers(plan, kernel) : kernel;
  const Kernel own = options.variant.wide_index ? narrow : plan::WithNarrowPositions(narrow, plan::Narrowed::kPackets);
  return CpuEmitter(plan, own, options, out).Run();
}

}  // namespace umbra::codegen
