// The Plan: how a graph is computed. Kernels are loop domains with scalar programs over loads,
// reductions and stores; there are no packets and no target here.
//
// A kernel has row axes (the first `row_axes`, axis 0 is the parallel one) and inner axes (the
// rest). For every point of the row axes it runs its phases one after the other:
//
//   for row:                                     scope kRow: values of one row
//     phase p:
//       compute phase.row_values
//       for inner:                               scope kElement: values of one element
//         where phase.guard holds, if there is one:
//         compute phase.element_values
//         phase.reductions  accumulate
//         phase.stages      keep a value in a row buffer for later phases
//         phase.stores      write outputs
//     compute final_row_values; final_stores write outputs that have no inner axes
//
// Values of scope kUniform (scalars, constants) need no loop. Either the last inner axis is the one
// along packets (signature.vector_axis == last axis), or the last row axis is (a reduction over
// leading axes: every column is a lane), or axis 0 is, of a batch of small things (plan/batches.h).
#ifndef UMBRA_COMPILER_PLAN_PLAN_H_
#define UMBRA_COMPILER_PLAN_PLAN_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "compiler/graph/op.h"
#include "compiler/plan/choose.h"
#include "umbra/program.h"

namespace umbra::plan {

enum class Scope { kUniform, kRow, kElement };

/// One value of a kernel's scalar program, in SSA form.
struct Value {
  enum class Kind {
    kLoad,  ///< signature.operands[index] at the current point
    kScalar,  ///< signature.scalars[index]
    kConstant,  ///< `constant` (exact for every i32 and f32/f64 value)
    kMap,  ///< op applied to args
    kCast,  ///< args[0] converted to `type`
    kReduced,  ///< result of the reduction that targets this value
    kScanned,  ///< args[0] joined by `reducer` over the elements of the row up to this one; of one inner axis
    kStaged,  ///< element of row buffer `index`, written by an earlier phase
    kIndex,  ///< the position along kernel axis `index`, i64
    kNumber,  ///< signature.numbers[index], i64
    kGather,  ///< signature.operands[index] at the positions args[0], args[1], ...; if `guarded`,
              ///< `constant` where the last argument, a condition, fails
  };
  Kind kind = Kind::kConstant;
  DType type = DType::kFloat32;
  Scope scope = Scope::kUniform;
  graph::Op op{};
  graph::Reducer reducer{};  ///< kScanned
  std::vector<int> args;
  int index = 0;
  bool guarded = false;
  double constant = 0;
  std::string label;  ///< name for the reader, from the user's own names where there are any
  std::string place;  ///< where the user wrote it, as Graph::place has it
};

struct Reduction {
  graph::Reducer kind{};
  int value = 0;  ///< the element value that is accumulated
  int result = 0;  ///< the kReduced value
  bool contract = false;  ///< may the products that it sums stay unrounded?
};

struct Stage {
  int value = 0;  ///< element value to keep
  int row_buffer = 0;  ///< index into signature.row_buffers
};

struct Store {
  int operand = 0;  ///< signature.operands[operand], a store
  int value = 0;
};

struct Phase {
  int guard = -1;  ///< a condition, the same along the vector axis: elements count where it holds; -1: all do
  std::vector<int> guard_values;  ///< of elements that it is made of, in order of evaluation
  std::vector<int> row_values;  ///< in order of evaluation
  std::vector<int> element_values;  ///< in order of evaluation; may repeat values of earlier phases
  std::vector<Reduction> reductions;
  std::vector<Stage> stages;
  std::vector<Store> stores;
};

struct Kernel {
  runtime::KernelSignature signature;
  std::string summary;  ///< one line for the reader: domain and meaning
  std::vector<Value> values;  ///< each after those that it is made of
  std::vector<Phase> phases;
  std::vector<int> final_row_values;
  std::vector<Store> final_stores;

  int rank() const { return static_cast<int>(signature.axes.size()); }
  bool vector_axis_is_inner() const { return signature.vector_axis >= signature.row_axes; }
};

struct Gemm {
  runtime::GemmStep step;
  std::string why_alone;  ///< for the reader: of one on a GPU that a kernel follows, why no epilogue computes that
};

/// A value of the graph, and why it is computed where it is.
struct ChosenValue {
  std::string name;
  DType dtype{};
  std::vector<runtime::Extent> shape;
  ChoiceOf<std::vector<runtime::Extent>> choice;
};

/// Two steps that share operands or feed each other, by name, and why they are not one.
struct ApartSteps {
  std::string first, second;
  Apart why{};
};

struct Plan {
  std::string name;
  std::vector<runtime::Buffer> buffers;  ///< inputs, then outputs, then temporaries
  std::vector<std::pair<std::string, DType>> scalars;
  std::vector<std::string> symbols;  ///< printed names of the dynamic extents: the user's, or ?0, ?1, ...
  std::vector<runtime::DerivedExtent> derived;
  std::vector<std::variant<Kernel, Gemm>> steps;
  std::vector<runtime::StepGroup> groups;  ///< all steps, in order
  std::vector<ChosenValue> choices;  ///< for the reader
  std::vector<ApartSteps> apart;  ///< for the reader
};

/// Does the step read the buffer, or a view of it, or write it?
bool Reads(const Plan& plan, const std::variant<Kernel, Gemm>& step, int buffer);
bool Writes(const Plan& plan, const std::variant<Kernel, Gemm>& step, int buffer);

/// Has the kernel values that are scanned, so that elements of a row are computed in their order, and all of them?
bool HasScans(const Kernel& kernel);
/// Those of a phase.
std::vector<int> ScansOf(const Kernel& kernel, const Phase& phase);

/// The element values that a phase without a guard evaluates, operands before their readers.
std::vector<int> NeededElements(const Kernel& kernel, const Phase& phase);

/// An element value this dear (in additions) is kept for later phases rather than computed again.
inline constexpr double kKeptCost = 8;

/// What it costs to join an element with those before it: packets take as many steps as their width has halves.
inline constexpr double kScannedCost = 10;

/// What it costs to compute a value of elements again, from what is loaded and kept.
double CostFromMemory(const Kernel& kernel, int id);

/// KernelSignature::cost: what all phases take for an element.
double ElementCost(const Kernel& kernel);

/// Does a phase after this one of the kernel store there, too, so that the value is only kept there meanwhile?
bool IsStoredLater(const Kernel& kernel, const Phase& phase, const Store& store);

/// Has each value after those that it is made of, as who adds one that others read cannot.
void OrderValues(Kernel* kernel);

/// By value: does it depend on the position along the axis?
std::vector<bool> MovesAlong(const Kernel& kernel, int axis);

/// By value: is it made of what the kernel reads?
std::vector<bool> FollowsFromMemory(const Kernel& kernel);

/// Do the rows of a kernel that reduces share what they read, as those of a product of matrices do, so that several of
/// them are best computed together? Its packets go along the last row axis, its rows along the one before.
bool SharesRows(const Kernel& kernel);

/// KernelSignature::panels of such a kernel: the operands that rows share, and of which each tile of columns reads an
/// element for each index of the one axis that is reduced; then -1 for each of PanelValues().
std::vector<int> PanelsOf(const Kernel& kernel);

/// What is computed of these operands alone, and read by what rows do not share; if columns of the operands lie in
/// memory side by side, as others are copied to be turned.
std::vector<int> PanelValues(const Kernel& kernel);

/// How the dynamic extent number k is printed that the user gave no name: `?k`.
std::string UnnamedExtent(std::size_t k);

/// `[?0, 1024]`, with the names of extents.
std::string ShapeText(const Plan& plan, const std::vector<runtime::Extent>& shape);

/// One line for the reader of a kernel: `y[?0, 1024] = exp(x - ...)`-like domain and operands.
std::string Summarize(const Plan& plan, const Kernel& kernel);

/// Calls f(in_rows, kernel) for each kernel: is it in a group that goes through its rows block by block?
template <typename Plan, typename F>
void ForEachKernel(Plan& plan, const F& f) {
  for (const runtime::StepGroup& group : plan.groups)
    for (int step = group.begin; step < group.end; ++step)
      if (auto* kernel = std::get_if<Kernel>(&plan.steps[static_cast<std::size_t>(step)]))
        f(group.kind == runtime::StepGroup::Kind::kRows, *kernel);
}

/// What a step is called: a kernel's name, or `gemm tmp0`.
std::string StepName(const Plan& plan, const std::variant<Kernel, Gemm>& step);

/// What a product with its epilogue computes: `y = relu(0.5 * x . w.T + b)`.
std::string EpilogueText(const Plan& plan, const runtime::GemmStep& gemm);

/// Is the step one that runs behind a product with its epilogue only?
bool IsBehind(const Plan& plan, int step);

/// How many steps of a group a call runs: of a product and the kernel that computes the same, one.
int NumSteps(const Plan& plan, const runtime::StepGroup& group);

/// The plan as text, as `umbra emit --as plan` shows it.
std::string Print(const Plan& plan);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_PLAN_H_
