// A place in a program that runs one compiled program again and again: what was decided for the
// shapes of one call is kept for the next.
#ifndef UMBRA_CALL_SITE_H_
#define UMBRA_CALL_SITE_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "umbra/function.h"

namespace umbra::runtime {

/// A tensor operand of a call site: rows of `shape[rank - 1]` elements that lie `pitch` elements
/// apart; the higher dimensions are dense over the rows.
struct PitchedOperand {
  void* data = nullptr;
  const index_t* shape = nullptr;
  index_t pitch = 0;
  int rank = 0;
};

/// Thread-safe. A call with shapes and pitches that were seen before, on a program of one kernel,
/// allocates nothing and takes no lock.
class CallSite {
 public:
  explicit CallSite(std::shared_ptr<const Program> program);
  ~CallSite();
  CallSite(const CallSite&) = delete;
  CallSite& operator=(const CallSite&) = delete;

  /// Operands in the order of the program's buffers: inputs, then outputs. Checks and errors are
  /// those of runtime::Run.
  void Run(const PitchedOperand* operands, const umbra_scalar* scalars);

  /// Threads that calls from all sites may use; 0: as many as the machine has.
  static void SetThreads(int threads);

 private:
  struct Prepared;
  const Prepared* Prepare(const PitchedOperand* operands, const umbra_scalar* scalars);
  bool Fits(const Prepared& prepared, const PitchedOperand* operands) const;

  std::shared_ptr<const Program> program_;
  std::size_t num_operands_ = 0;
  std::atomic<const Prepared*> latest_{nullptr};
  std::mutex mutex_;
  std::vector<std::unique_ptr<const Prepared>> all_;
};

}  // namespace umbra::runtime

#endif  // UMBRA_CALL_SITE_H_
