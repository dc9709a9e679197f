// What the forms of a CUDA kernel have in common: its signature, positions, values, stores.
#ifndef UMBRA_COMPILER_CODEGEN_CUDA_EMITTER_H_
#define UMBRA_COMPILER_CODEGEN_CUDA_EMITTER_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/codegen/cuda/generate.h"
#include "compiler/codegen/spans.h"
#include "compiler/codegen/values.h"
#include "compiler/plan/moments.h"

namespace umbra::codegen {

/// What the function of a kernel is called, if it runs several launches or one.
std::string CudaFunction(const std::string& name, bool several);

/// What a form is written of.
struct CudaTask {
  const plan::Plan& plan;
  const Kernel& kernel;
  const Kernel& wide;  ///< the same with positions of 64 bits, which are what spans are found in
  const std::vector<int>& became;  ///< what a value of that one is in `kernel`
  const runtime::CudaSchedule& schedule;
  const SourceOptions& options;
  const runtime::CudaVariant& variant;
};

/// Bytes of shared memory that a kernel may declare, for its tiles.
inline constexpr std::size_t kTilesBytes = 48 * 1024;

class CudaEmitter : protected ValueEmitter {
 public:
  CudaEmitter(const CudaTask& task, Writer* out);

 protected:
  // `struct NAME_args`.
  void DeclareArguments(const std::string& name);
  // Opens the function. `threads`: the most that a block has. That of a second pass is NAME_finish.
  void OpenKernel(const std::string& name, int threads, bool finish = false);

  // The block's position in the grid of its launch, and the extent of that, along x, y or z.
  std::string Block(const std::string& along) const { return (variant_.several ? "here.block." : "blockIdx.") + along; }
  std::string Grid(const std::string& along) const { return (variant_.several ? "here.grid." : "gridDim.") + along; }

  bool ScansLanes() const override { return false; }
  Expr SpellNumber(int id, const std::vector<Expr>& args) const override;
  bool MindsDenormals() const override { return false; }
  std::string StrideType() const override { return variant_.wide_offset ? "i64" : index_type_; }

  bool Moves(const runtime::Access& access, int axis) const override { return AxisDim(access, axis) >= 0; }

  // Is the position along the axis part of an address or a value?
  bool IsUsed(int axis) const;
  // The axes [begin, end) without `skipped`.
  static std::vector<int> Axes(int begin, int end, int skipped = -1);
  // The number of points of the axes: "n0 * n1".
  std::string Points(const std::vector<int>& axes) const;
  // Declares what positions are divided by that are 0 or more, where it is one number for the launch.
  void DeclareQuotients();
  // Declares what DeclarePositions divides by, where positions have 32 bits: before the loop over the linear ones.
  void DeclareDivisors(const std::vector<int>& axes);
  // Declares the positions along the axes from a linear one.
  void DeclarePositions(const std::string& linear, const std::vector<int>& axes);
  // Are there rows to go through, once the axes are known?
  bool HasRows(const std::vector<int>& axes) const;

  // The extents of these axes, operands, numbers and what is one value for the whole launch.
  void DeclareParameters(const std::vector<int>& axes);
  // Pointers of a row, the axes `row_axes` being known.
  void DeclareRowPointers();
  // Values that are one number for a row, or for a column.
  void DeclareRowValues(const std::vector<int>& ids);

  // The operands of a phase's loads that walk along the vector axis, in order; those of stores.
  std::vector<int> LoadedOperands(const Phase& phase) const;
  static std::vector<int> StoredOperands(const Phase& phase);

  // Is its arithmetic not to be compiled for each of several turns?
  bool IsDear(const Phase& phase) const;

  // Opens what is done where the phase's guard holds, if it has one.
  void OpenGuard(const Phase& phase, Names* names);
  void CloseGuard(const Phase& phase);
  // The values of a phase at one point, whose position along the vector axis is `index`.
  void DeclareElements(const Phase& phase, const std::string& index, Names* names);
  void StoreElements(const Phase& phase, const std::string& index);
  void StoreScalar(const plan::Store& store, const std::string& index);
  // Opens a loop over the lanes of a packet of results, each of which has a position along the vector axis.
  void OpenResultLanes();
  // What is read of memory as packets, for packets of results from `column` on: loads and gathers among `ids`, and
  // choices between them, but for those that are `known`; `windows` are axes of one element. DeclareWhole declares
  // `whole`, whether all of them are packets in memory.
  void FindPacks(const std::vector<int>& ids, const std::set<int>& known, const std::vector<int>& windows);
  bool HasPacks() const { return !packs_.empty(); }
  void DeclareWhole();
  // Writes `rows` for the threads where they are, then for the others. Between, in a row, ReadPacks has them at hand in
  // lane `k`, and ForgetPacks not any more.
  void WholeOrNot(const std::function<void()>& rows);
  void ReadPacks();
  void ForgetPacks();
  // Opens a loop over that many turns `u`, which a compiler writes one after the other.
  void OpenTurns(int turns);
  // What is stored of several turns `u`, each declared by `declare`: all are computed before the first is stored, where
  // the condition holds, so that their loads are in flight together. Of several lanes `declare` opens a loop over `k`.
  void StoreTurns(const std::vector<plan::Store>& stores, int turns, int lanes, const std::string& index,
                  const std::string& condition, const std::function<void()>& declare);

  // Opens what runs over the rows: `first` and `step` are texts; without rows their positions are 0.
  void OpenRows(const std::vector<int>& axes, const std::string& first, const std::string& step);
  void CloseRows(const std::vector<int>& axes);
  // The rows, if there are any, of a thread of kElements or kColumn, which lie side by side among those of its block:
  // `several` writes what is done for rows_at_once_ of them at a time, of which turn `u` has row `row + u * step`;
  // `one`, for the rows that are left.
  void GoThroughRows(const std::vector<int>& axes, const std::function<void()>& several,
                     const std::function<void()>& one);

  // What blocks share that split reductions: the first phase and, in one pass with it, moments that tell the second's
  // sum.
  Phase SharedPhase() const;
  // Is the reduction of moments?
  bool IsOfMoments(const plan::Reduction& reduction) const { return moments_ && reduction.result == moments_->squares; }
  // The type of what a block finds of the reduction, and what joins two of them.
  std::string PartType(const plan::Reduction& reduction) const;
  std::string PartJoiner(const plan::Reduction& reduction) const;
  // Declares what a thread accumulates of the reduction, in so many lanes; the text of all of it in the end.
  std::string DeclarePart(const plan::Reduction& reduction, int lanes);
  std::string PartOf(const plan::Reduction& reduction, int lanes) const;
  // Of single elements.
  void AddToMoments() {
    out_.Line("{}.add(pack<{}, 1>{{{}}});", accumulator_.at(moments_->squares), ScalarType(value(moments_->value).type),
              AsPacket(moments_->value).text);
  }
  // Declares the reduction's result, or what a block found of it.
  void DeclareResult(const plan::Reduction& reduction, const std::string& joined);
  // Declares the result of what blocks found: `loop` goes through the parts at `index`, `across` joins those of several
  // threads.
  void JoinFound(const plan::Reduction& reduction, const std::string& loop, const std::string& index,
                 const std::string& across);

  // What a launch that splits keeps of each reduction in scratch: after the number of parts, an array a reduction.
  // `points`: how many results there are.
  void DeclareFound(const std::string& parts, const std::string& points);

  std::string Joined(const plan::Reduction& reduction, const Expr& total, const Expr& element) const;

  // The text of a position that is known to the kernel as an unsigned built-in: "blockIdx.x".
  std::string Index(const std::string& built_in) const { return index_type_ + "(" + built_in + ")"; }

  // If several blocks share the sums that make up a mean and a variance: those, in one pass.
  std::optional<plan::Moments> moments_;
  std::map<int, std::string> found_;  // by result
  std::map<int, std::string> divisors_;  // by axis
  std::map<int, std::string> quotients_;  // by quotient: the divisor
  runtime::CudaVariant variant_;
  runtime::CudaSchedule schedule_;
  const int rows_at_once_;
  const int result_lanes_;  // of packets of results that are computed of single elements

 private:
  // What is read as a packet: a load, a gather, or a choice between some that move alike.
  struct PackRead {
    int id = 0;
    DType type{};  // of the elements in memory
    std::optional<double> outside;  // where there is no element
    long long step = 1;  // 1 or -1, from an element to the next one
    int repeats = 1;  // lanes that have the same one
    int places = 1;  // that are written out
    std::vector<LaneBound> bounds;  // of choices and guards, in values of wide_
    std::vector<int> last;  // positions in the last dimension
    std::vector<int> dividends;  // of those that lanes share
  };
  const std::optional<PackRead>& FindPack(int id);
  std::optional<PackRead> NewPack(int id);
  void AddAlignment(const PackRead& read, int id, const std::function<void(std::string)>& add) const;
  void AddMadeOf(int id, std::vector<int>* values) const;
  std::string PlaceOf(int id) const;
  void InLane(const std::string& begin, const std::string& type, const std::vector<int>& values,
              const std::function<std::string()>& text, const std::string& end);

  const Kernel& wide_;
  const std::vector<int>& became_;
  std::vector<PackRead> packs_;
  std::map<int, std::optional<PackRead>> found_packs_;  // by value
  std::vector<int> pack_ids_, pack_windows_;  // values that packets are made of; axes of one element
  std::vector<LaneBound> pack_bounds_;  // of all packs_
  std::set<int> pack_known_;  // values that are declared before
  std::vector<bool> same_in_lanes_, of_column_;  // by value of wide_
  bool whole_ = false;  // are they known to be packets in memory?
};

/// The forms; each writes its function, or two.
void EmitCudaElements(const CudaTask& task, const std::string& name, Writer* out);
void EmitCudaTiles(const CudaTask& task, const std::string& name, Writer* out);
void EmitCudaRows(const CudaTask& task, const std::string& name, Writer* out);
void EmitCudaColumns(const CudaTask& task, const std::string& name, Writer* out);

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_CUDA_EMITTER_H_
