// What a kernel looks like to the emitter: packet width, who moves along which axis, what is baked.
#ifndef UMBRA_COMPILER_CODEGEN_KERNEL_SHAPE_H_
#define UMBRA_COMPILER_CODEGEN_KERNEL_SHAPE_H_

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/codegen/source.h"
#include "compiler/codegen/spans.h"
#include "compiler/plan/narrow_integers.h"

namespace umbra::codegen {

inline constexpr int kLine = 64;  // bytes that memory is fetched by

class KernelShape {
 public:
  KernelShape(const plan::Plan& plan, const plan::Kernel& kernel, const SourceOptions& options);
  virtual ~KernelShape() = default;

  /// May packets that have nothing wider than 16 bits have as many lanes as fit? With AVX-512, whose masks load a part
  /// of such a packet at once; not where lanes are gathered from anything but elements side by side, nor of rows that
  /// are known to be shorter than two packets.
  static bool MayBeNarrow(const plan::Kernel& kernel, const SourceOptions& options);

  /// Lanes of the kernel's packets: as many as the widest dtype has in a register; 1 for plain.
  int PacketWidth() const;

  /// Does each step that is reduced count for a row of one element, as in a histogram? What is kept of a packet that
  /// has one lane waits for the packet before it.
  bool AddsToOneElement() const;

  /// Of which conditions on lanes are: i32, or i16 where packets have nothing wider.
  DType IntegerOfLanes() const { return narrow_ ? DType::kInt16 : DType::kInt32; }

  /// Is the value the same along the vector axis?
  bool IsAlike(int id) const;

  /// Does the value move along the vector axis? One that does not may still be another for each step of another axis.
  bool DiffersByLane(int id) const { return moves_[static_cast<std::size_t>(id)]; }

  /// Is the value computed with positions? Those are computed one by one rather than in packets.
  bool IsPositional(int id) const { return positional_[static_cast<std::size_t>(id)]; }

  /// Does something need the value as a packet? If not, it is part of a position.
  bool InPackets(int id) const { return packets_[static_cast<std::size_t>(id)]; }

  /// Is the value made of data and of positions that grow evenly along a packet, as argmax's are? It is one of packets.
  bool IsOfDataToo(int id) const { return of_data_too_[static_cast<std::size_t>(id)]; }

  /// Is the value's packet put together from lanes?
  bool IsMadeOfLanes(int id) const;

  /// A position that data choose between two bounds, `least` a constant from 0 on: i32, floats where positions are
  /// known to fit i32, i64 that lie side by side in memory, or, in registers of 32 bytes or more, sums and products of
  /// these. It is made in packets, from whose lanes it is read.
  struct Place {
    int chosen, least, most;
    std::vector<int> data = {};  ///< what it is chosen by: packets, or loads
  };
  std::optional<Place> PlaceOf(int id) const;
  /// Are packets of what a place of the gather is chosen by had?
  bool HasPlacesOf(const Place& place, const plan::Value& gather) const;
  /// Does the gather read, without a guard, a tensor of so few numbers that registers hold it?
  bool MayBeTable(const plan::Value& gather) const;

  /// The gather as a span of lanes, if packets of its dtype are loaded so: those of 16-bit floats whole, or by a
  /// stride.
  std::optional<Span> SpanOf(int id) const;

  /// Do the packets of the vector loop begin at multiples of `number`?
  bool PacketsBeginAtMultiples(int number) const;

  /// The condition on positions as a run of lanes, if it is one.
  std::optional<LaneRun> LaneRunOf(int id) const;

  /// Where windows are joined column by column: what makes the guards of all spans hold for all lanes and all points of
  /// the windows. Empty if there is nothing to guard, or it is not known.
  std::vector<BoxBound> InsideBounds(const plan::Phase& phase) const;
  /// The vector axis, then those of the windows.
  std::vector<int> BoxAxes() const;

  /// codegen::IsRemainder
  bool IsRemainder(int id) const;

  /// By how much the position grows from lane to lane, if evenly.
  std::optional<long long> SlopeOf(int id) const;
  Runs RunsOf(const plan::Phase& phase) const;
  /// Is the value a number along the runs that are being written?
  bool IsAlikeInRun(int id) const { return std::find(runs_.alike.begin(), runs_.alike.end(), id) != runs_.alike.end(); }

  /// Do packets that are stored go past the caches one by one?
  bool Streams() const { return options_.variant.stores == runtime::Stores::kStreamed && !columns_; }
  /// Do rows go past the caches one after the other, as one? They have to be walked in the order in which they lie. Of
  /// one row, and of rows of whole lines, there is no need.
  bool JoinsRows() const;
  /// Do rows of tiles, which begin anywhere, go past the caches, each as one?
  bool JoinsTiles() const;
  /// Do results go past the caches?
  bool PassesCaches() const { return Streams() || JoinsRows(); }

  /// Are blocks of a row worked on side by side?
  bool Splits() const { return options_.variant.split && !signature_.partials.empty(); }

  /// Transposed operands of elementwise kernels are walked in blocks, so that a cache line that was
  /// fetched for one row is still there for the next.
  bool IsBlocked() const;

  /// The row axis along which the transposed operands of a blocked kernel lie side by side, so that tiles of
  /// them can be transposed in registers; -1 if there is none.
  int TileAxis() const;
  bool IsTransposed(const runtime::Access& access) const;

  /// Can packets that begin anywhere be put together to whole lines in a register?
  bool PutsLinesTogether() const {
    return RegisterBytes(options_.target) >= 32 && options_.spelling == Spelling::kPackets;
  }

  /// Does the target load and store parts of a packet as fast as all of it?
  bool HasMasks() const { return options_.target == Target::kAvx512; }

  /// Are several packets of the phase worked on side by side? That hides the latency of a polynomial's
  /// long chain, and makes more than a few bytes of a packet of a narrow dtype.
  /// `needed`: of the phase, if it is not all of it.
  bool GoesSideBySide(const plan::Phase& phase, const std::set<int>* needed = nullptr) const;

  static int AxisDim(const runtime::Access& access, int axis) {
    return access.dim_of_axis[static_cast<std::size_t>(axis)];
  }

  /// Does the operand's address depend on the axis? A launch may cut an elementwise kernel's memory
  /// into rows anew, so axis 0 moves all that the vector axis moves.
  virtual bool Moves(const runtime::Access& access, int axis) const;

  /// Is the vector axis the last dimension of the operand's buffer?
  bool IsContiguousByPlan(const runtime::Access& access) const;

  /// runtime::IsBaked
  bool IsBaked(int axis) const { return runtime::IsBaked(signature_, axis); }

  std::string ExtentName(int axis) const;

  /// The first axis that is walked within a packet, or a row.
  int FirstInner() const { return columns_ ? vector_axis_ + 1 : signature_.row_axes; }

 private:
  // By value: is it an i64 made of the i32 that columns were reduced to, as positions are? Once for a column it may
  // take several registers.
  std::vector<bool> WidenedResults() const;
  void MarkPositional();
  void MarkOfDataToo();
  bool IsMadeOfDataToo(const plan::Value& v) const;
  void MarkPackets();
  void MarkPacket(int id);
  bool FindDataOf(int position, int* left, std::vector<int>* data) const;

  std::vector<bool> positional_, of_data_too_, packets_;
  bool narrow_;  // do packets have nothing wider than 16 bits?

 protected:
  Runs runs_;  ///< of the vector loop that is being written
  const plan::Plan& plan_;
  const plan::Kernel& kernel_;
  const runtime::KernelSignature& signature_;
  const SourceOptions& options_;
  int vector_axis_;
  bool columns_;  ///< is the vector axis a row axis?

 private:
  std::vector<bool> moves_;  // by value: along the vector axis
};

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_KERNEL_SHAPE_H_
