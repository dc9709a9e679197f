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

/// A tensor operand of a call: TensorRef without memory of its own.
struct Operand {
  void* data = nullptr;
  const index_t* shape = nullptr;
  const index_t* stride = nullptr;  ///< in elements, one per dimension
  int rank = 0;
  DType dtype = DType::kFloat32;
};

/// Thread-safe. A call with shapes and strides that were seen before, on a program of one kernel,
/// allocates nothing and takes no lock.
class CallSite {
 public:
  explicit CallSite(std::shared_ptr<const Program> program);
  ~CallSite();
  CallSite(const CallSite&) = delete;
  CallSite& operator=(const CallSite&) = delete;

  /// Does the program take so many operands? Run expects it.
  bool Takes(std::size_t inputs, std::size_t outputs, std::size_t scalars) const {
    return inputs == num_inputs_ && inputs + outputs == num_operands_ && scalars == num_scalars_;
  }

  /// Operands in the order of the program's buffers: inputs, then outputs. Checks and errors are
  /// those of runtime::Run; `threads` as in RunOptions, 0 leaving the choice to SetThreads.
  void Run(const Operand* operands, const umbra_scalar* scalars, int threads = 0);

  /// Threads that calls from all sites may use; 0: as many as the machine has.
  static void SetThreads(int threads);

 private:
  struct Prepared;
  const Prepared* Prepare(const Operand* operands, const umbra_scalar* scalars, int threads);
  bool Fits(const Prepared& prepared, const Operand* operands, int threads) const;

  std::shared_ptr<const Program> program_;
  std::size_t num_inputs_ = 0, num_operands_ = 0, num_scalars_ = 0;
  std::atomic<const Prepared*> latest_{nullptr};
  std::mutex mutex_;
  std::vector<std::unique_ptr<const Prepared>> all_;
};

}  // namespace umbra::runtime

#endif  // UMBRA_CALL_SITE_H_
