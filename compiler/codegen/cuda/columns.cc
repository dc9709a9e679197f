// Reductions whose results lie along the vector axis: a thread has a column to itself, or shares it with the threads of
// its block, or of several blocks, that have the same threadIdx.x. What they accumulate is joined through shared
// memory, and what blocks found by a second kernel.
#include <algorithm>

#include "compiler/codegen/cuda/emitter.h"
#include "compiler/codegen/reductions.h"

namespace umbra::codegen {

namespace {

using runtime::CudaForm;

class ColumnsEmitter : private CudaEmitter {
 public:
  ColumnsEmitter(const CudaTask& task, Writer* out)
      : CudaEmitter(task, out),
        rows_(Axes(0, signature_.row_axes - 1)),
        inner_(Axes(signature_.row_axes, kernel_.rank())) {}

  void Run(const std::string& name) {
    DeclareArguments(name);
    OpenKernel(name, IsAlone() ? 256 : 512);
    DeclareParameters(Axes(0, kernel_.rank()));
    if (Splits()) DeclareFound("gridDim.z", Results());
    if (IsAlone()) {
      Columns();
    } else {
      OpenSharedColumn();
      Reduce();
      if (Splits()) KeepFound();
      else StoreColumn();
      CloseRows(rows_);
    }
    out_.Close();
  }

  // The second pass: a thread joins what the blocks of a column found.
  void Finish(const std::string& name) {
    const Phase phase = SharedPhase();
    out_.Blank();
    OpenKernel(name, 256, true);
    DeclareParameters(Axes(0, kernel_.rank()));
    DeclareFound("*static_cast<const long long*>(args.scratch)", Results());
    OpenRows(rows_, Index(Block("y")) + " * blockDim.y + threadIdx.y", Grid("y") + " * blockDim.y");
    DeclareRowPointers();
    OpenColumn();
    DeclareRowValues(phase.row_values);
    for (const auto& reduction : phase.reductions)
      JoinFound(reduction, "for (i64 part = 0; part < parts; ++part)", FoundIndex("part"), "");
    DeclareRowValues(kernel_.final_row_values);
    for (const auto& store : kernel_.final_stores) StoreScalar(store, i());
    out_.Close();
    CloseRows(rows_);
    out_.Close();
  }

 private:
  bool IsAlone() const { return variant_.form == CudaForm::kColumn; }
  bool Splits() const { return variant_.form == CudaForm::kColumnSplit; }
  std::string i() const { return fmt::format("i{}", vector_axis_); }
  std::string Results() const {
    return rows_.empty() ? ExtentName(vector_axis_) : Points(rows_) + " * " + ExtentName(vector_axis_);
  }

  std::string FoundIndex(const std::string& part) const {
    if (!HasRows(rows_)) return fmt::format("{} * {} + {}", part, ExtentName(vector_axis_), i());
    return fmt::format("({} * ({}) + row) * {} + {}", part, Points(rows_), ExtentName(vector_axis_), i());
  }

  // Opens what is done for a thread's column, or for the first of those that lie side by side.
  void OpenColumn() {
    const std::string column = result_lanes_ > 1 ? "column" : i();
    if (result_lanes_ > 1)
      out_.Line("const {} column = ({} * blockDim.x + threadIdx.x) * {};", index_type_, Index(Block("x")),
                result_lanes_);
    else out_.Line("const {} {} = {} * blockDim.x + threadIdx.x;", index_type_, column, Index(Block("x")));
    out_.Open("if ({} < {})", column, ExtentName(vector_axis_));
  }

  // A thread's columns, one below the other.
  void Columns() {
    OpenColumn();
    const auto store = [this](int turns) {
      StoreTurns(kernel_.final_stores, turns, result_lanes_, result_lanes_ > 1 ? "column" : i(), "", [&] {
        if (turns > 1) {
          out_.Line("const {} turn = row + u * step;", index_type_);
          DeclarePositions("turn", rows_);
        }
        DeclareRowPointers();
        ReadPacks();
        if (result_lanes_ > 1) OpenResultLanes();
        Reduce();
        ForgetPacks();
      });
    };
    const auto one = [&] {
      if (result_lanes_ > 1) return store(1);
      const Names outer = names_;
      DeclareRowPointers();
      Reduce();
      StoreColumn();
      names_ = outer;
    };
    DeclareDivisors(rows_);
    const Phase& phase = kernel_.phases[0];
    std::vector<int> ids = phase.row_values;
    ids.insert(ids.end(), phase.element_values.begin(), phase.element_values.end());
    if (kernel_.phases.size() == 1 && phase.guard < 0) FindPacks(ids, {}, inner_);
    DeclareWhole();
    WholeOrNot([&] {
      GoThroughRows(
          rows_, [&] { store(rows_at_once_); }, one);
    });
    out_.Close();
  }

  void Reduce() {
    if (Splits()) return RunPhase(SharedPhase());
    for (const Phase& phase : kernel_.phases) RunPhase(phase);
    DeclareRowValues(kernel_.final_row_values);
  }

  // Threads beyond the last column work on it as well, so that all come to the barriers, and store nothing.
  void OpenSharedColumn() {
    out_.Line("const {} column = {} * 32 + threadIdx.x;", index_type_, Index(Block("x")));
    out_.Line("const bool inside = column < {};", ExtentName(vector_axis_));
    out_.Line("const {} {} = inside ? column : {} - 1;", index_type_, i(), ExtentName(vector_axis_));
    OpenRows(rows_, Index(Block("y")), Grid("y"));
    DeclareRowPointers();
  }

  void RunPhase(const Phase& phase) {
    DeclareRowValues(phase.row_values);
    if (phase.element_values.empty() && phase.stores.empty() && phase.reductions.empty()) return;
    for (const auto& reduction : phase.reductions) DeclarePart(reduction, 1);
    DeclareCarries(phase, &names_);
    if (IsAlone()) {
      for (int axis : inner_) out_.Open("for ({0} i{1} = 0; i{1} < {2}; ++i{1})", index_type_, axis, ExtentName(axis));
    } else {
      DeclareDivisors(inner_);
      if (phase.stores.empty()) out_.Line("#pragma unroll {}", TurnsAtOnce(phase));
      out_.Open("for ({} walk = {}; walk < {}; walk += {})", index_type_,
                Splits() ? Index(Block("z")) + " * blockDim.y + threadIdx.y" : "threadIdx.y", Points(inner_),
                Splits() ? "int(gridDim.z) * int(blockDim.y)" : "int(blockDim.y)");
      DeclarePositions("walk", inner_);
    }
    Names names = names_;
    OpenGuard(phase, &names);
    DeclareElements(phase, i(), &names);
    for (const auto& reduction : phase.reductions) {
      if (IsOfMoments(reduction)) continue;
      const std::string& part = accumulator_[reduction.result];
      out_.Line("{} = {};", part, Joined(reduction, {part}, AsPacket(reduction.value)));
    }
    if (moments_) AddToMoments();
    CloseGuard(phase);
    if (!phase.stores.empty() && !IsAlone()) out_.Open("if (inside)");
    StoreElements(phase, i());
    if (!phase.stores.empty() && !IsAlone()) out_.Close();
    for (std::size_t depth = IsAlone() ? inner_.size() : 1; depth > 0; --depth) out_.Close();
    for (const auto& reduction : phase.reductions) {
      const std::string part = PartOf(reduction, 1);
      DeclareResult(reduction, IsAlone() ? part : fmt::format("column_all<{}>({})", PartJoiner(reduction), part));
    }
  }

  // Narrow elements are read for more of them, so that as many bytes are in flight.
  int TurnsAtOnce(const Phase& phase) const {
    std::size_t widest = 1;
    for (const int k : LoadedOperands(phase)) widest = std::max(widest, SizeOf(OperandType(k)));
    return widest <= 2 && !IsDear(phase) ? 8 : 4;
  }

  void KeepFound() {
    out_.Open("if (inside && threadIdx.y == 0)");
    for (const auto& reduction : SharedPhase().reductions)
      out_.Line("{}[{}] = {};", found_[reduction.result], FoundIndex("i64(blockIdx.z)"),
                text_.at(reduction.result).text);
    out_.Line("*static_cast<long long*>(args.scratch) = parts;");
    out_.Close();
  }

  void StoreColumn() {
    if (kernel_.final_stores.empty()) return;
    if (!IsAlone()) out_.Open("if (inside && threadIdx.y == 0)");
    for (const auto& store : kernel_.final_stores) StoreScalar(store, i());
    if (!IsAlone()) out_.Close();
  }

  std::vector<int> rows_, inner_;
};

}  // namespace

void EmitCudaColumns(const CudaTask& task, const std::string& name, Writer* out) {
  ColumnsEmitter(task, out).Run(name);
  if (task.variant.form == CudaForm::kColumnSplit) ColumnsEmitter(task, out).Finish(name);
}

}  // namespace umbra::codegen
