// Which operands may share memory.
#ifndef UMBRA_RUNTIME_OVERLAP_H_
#define UMBRA_RUNTIME_OVERLAP_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "umbra/function.h"

namespace umbra::runtime {

/// Bytes [first, last) in memory.
using Bytes = std::pair<const char*, const char*>;

/// Pairs of an output and an operand before it, ascending.
using OperandPairs = std::vector<std::pair<std::size_t, std::size_t>>;

/// Which operands of a call overlap in memory; `first_output` operands are inputs, the others outputs. Takes
/// n log n steps.
OperandPairs Overlapping(const std::vector<Bytes>& operands, std::size_t first_output);

/// May the buffer `output` of `program` be the very memory of its buffer `input`? One that is written part by part is
/// copied then (DenseCopies).
bool MayShare(const Program& program, int output, int input);

/// The same of a kernel that replaces other steps, which MayShare of the program leaves out.
bool MayShare(const Program& program, const KernelStep& step, int output, int input);

/// Does a step of [begin, end) write an output whose memory is that of an input which a kernel behind them reads?
bool MeetLater(const Program& program, const KernelStep& kernel, int begin, int end, int output, int input);

/// Throws umbra::Error if two outputs overlap, or if an output overlaps an input in a way that
/// would change the result. The very same memory is fine where every kernel that writes the output
/// reads the input only at the point that it writes, and no later step reads the input; so are operands whose rows lie
/// between each other's. Returns which do, and which lie so.
OperandPairs CheckOverlaps(const Program& program, const std::vector<TensorRef>& buffers);

/// May `program` run on these buffers, whose overlaps `pairs` are those that CheckOverlaps has found harmless to a
/// program of the same operands?
bool AllowsOverlaps(const Program& program, const std::vector<TensorRef>& buffers, const OperandPairs& pairs);

/// How the operands of a call lie in memory, for the calls that follow.
class Meetings {
 public:
  Meetings() = default;
  /// `shared`: which of the operands overlap, found harmless as they lie. `first_output` of them are inputs.
  Meetings(const std::vector<TensorRef>& operands, std::size_t first_output, OperandPairs shared);

  /// Are operands at these addresses the very same memory?
  bool Are(void* const* data) const {
    for (std::size_t k = 0; k < data_.size(); ++k)
      if (data_[k] != data[k]) return false;
    return true;
  }
  /// Do they overlap where these do, in the same way, and nowhere else?
  bool Alike(void* const* data) const {
    if (data_.size() > kFew) return SharedAlike(data);
    for (const Pair& pair : pairs_)
      if (Address(data[pair.other]) - Address(data[pair.output]) - pair.first < pair.count) return false;
    return true;
  }
  const OperandPairs& shared() const { return shared_; }

 private:
  static constexpr std::size_t kFew = 16;  // operands of which every two are compared
  static std::uintptr_t Address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }
  bool SharedAlike(void* const* data) const;

  struct Pair {
    std::size_t output, other;
    std::uintptr_t first, count;  // distances in bytes from output to other, from `first` on, that are not alike
  };
  struct Reach {
    std::ptrdiff_t first, last;  // bytes from an operand's address
  };
  std::size_t first_output_ = 0;
  std::vector<const void*> data_;
  OperandPairs shared_;
  std::vector<Pair> pairs_;  // of few operands
  std::vector<Reach> reach_;  // of many
};

/// Does a kernel of the group, whose kernels do not need each other, write the memory of an operand that another one of
/// them reads? Then they may run one after the other only.
bool Conflict(const Program& program, const StepGroup& group, const std::vector<TensorRef>& buffers);

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_OVERLAP_H_
