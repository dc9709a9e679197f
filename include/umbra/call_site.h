// A place in a program that runs one compiled program again and again: what was decided for the
// shapes of one call is kept for the next.
#ifndef UMBRA_CALL_SITE_H_
#define UMBRA_CALL_SITE_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "umbra/function.h"

namespace umbra::runtime {

/// What calls have in common whose operands have the same dtypes, shapes and strides: of each operand a
/// number for its rank and dtype, its extents, its strides in elements.
struct Layout {
  const index_t* words;  ///< of all operands, one after the other: kind, extents, strides
  std::size_t size;  ///< how many words there are

  /// The number that tells ranks and dtypes apart.
  static constexpr index_t Kind(int rank, DType dtype) { return rank * 256 + static_cast<index_t>(dtype); }
  /// Words of an operand of that rank.
  static constexpr std::size_t SizeOf(int rank) { return 1 + 2 * static_cast<std::size_t>(rank); }
  /// The rank that Kind was given.
  static constexpr int RankOf(index_t kind) { return static_cast<int>(kind / 256); }
  /// Takes the first operand off, whose elements are at `data`.
  TensorRef Next(void* data) {
    const int rank = RankOf(words[0]);
    const index_t* shape = words + 1;
    const TensorRef tensor = {
        data, static_cast<DType>(words[0] % 256), {shape, shape + rank}, {shape + rank, shape + 2 * rank}};
    words += SizeOf(rank);
    size -= SizeOf(rank);
    return tensor;
  }
};

/// Thread-safe. A call with the shapes and strides of the latest one takes no lock and decides nothing, and on a
/// program of one kernel allocates nothing either; others that were seen before are looked up under a lock.
class CallSite {
 public:
  /// A place that runs `program`, which must not be null.
  explicit CallSite(std::shared_ptr<const Program> program);
  ~CallSite();
  CallSite(const CallSite&) = delete;
  CallSite& operator=(const CallSite&) = delete;

  /// Does the program take so many operands? Run expects it.
  bool Takes(std::size_t inputs, std::size_t outputs, std::size_t scalars) const {
    return inputs == num_inputs_ && inputs + outputs == num_operands_ && scalars == num_scalars_;
  }

  /// The data of the operands in the order of the program's buffers: inputs, then outputs. Checks and errors are
  /// those of runtime::Run; `threads` as in RunOptions, 0 leaving the choice to SetThreads.
  void Run(void* const* data, Layout layout, const umbra_scalar* scalars, int threads = 0);

  /// What is kept of a call for those like it.
  struct Known {
    const index_t* layout = nullptr;  ///< the words of its layout
  };
  /// Of the call that was prepared last, or null; it lives as long as the site.
  const Known* Latest() const { return latest_.load(std::memory_order_acquire); }
  /// Run of the site that `known` is of, for a caller who has seen that the layout is the same. False if other things
  /// differ that count: then nothing was done.
  static bool RunAlike(const Known& known, void* const* data, const umbra_scalar* scalars);

  /// What Run would throw an umbra::Error about before it runs anything; empty if the operands suit.
  std::string Refusal(void* const* data, Layout layout, const umbra_scalar* scalars, int threads = 0);

  /// Threads that calls from all sites may use; 0: as many as the machine has.
  static void SetThreads(int threads);

 private:
  struct Prepared;
  const Prepared* Find(void* const* data, Layout layout, const umbra_scalar* scalars, int threads);
  const Prepared* Prepare(void* const* data, Layout layout, const umbra_scalar* scalars, int threads);
  Arguments ArgumentsOf(void* const* data, Layout layout, const umbra_scalar* scalars) const;

  std::shared_ptr<const Program> program_;
  std::size_t num_inputs_ = 0, num_operands_ = 0, num_scalars_ = 0;
  std::atomic<const Known*> latest_{nullptr};
  std::mutex mutex_;
  std::vector<std::unique_ptr<const Prepared>> all_;
};

}  // namespace umbra::runtime

#endif  // UMBRA_CALL_SITE_H_
