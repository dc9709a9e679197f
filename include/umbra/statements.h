// Assignments of fused streams: they wait, and those that wait together run as one program.
#ifndef UMBRA_STATEMENTS_H_
#define UMBRA_STATEMENTS_H_

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "umbra/biased_mutex.h"
#include "umbra/bridge.h"
#include "umbra/compile.h"

namespace umbra::detail {

/// What the type of an assignment tells, of one that may wait.
struct StatementType {
  AssignmentType assignment;
  void (*run)(Gathered*);  ///< runs the assignment alone; its operands as Statements::Next has them
};

/// The statements of a thread's fused streams that wait.
class Statements final : public Waiting {
 public:
  /// Those of the calling thread.
  static Statements& OfThread() {
    if (known_ == nullptr) known_ = MakeOfThread();
    return *known_;
  }
  ~Statements() override;

  /// Where the operands of one more are to be written down, those that it reads, then its destination; Give comes
  /// after.
  Gathered& Next(const StatementType& type) {
    if (next_ == nullptr) MakeNext();
    next_->type = &type;
    return next_->operands;
  }
  /// Gives what Next was told to the stream that `givers` belongs to; `earlier` is the call that it is like, or null.
  void Give(const runtime::CallSite::Known* earlier, Givers* givers) {
    next_->earlier = earlier;
    of_thread = this;
    GiveNext(givers);
  }
  /// Runs them, as one program where nothing speaks against it. A reason that does is said where UMBRA_TRACE is set.
  void Run() override;
  void Finish(bool keep_error) noexcept override;

 private:
  struct Entry {
    const StatementType* type;
    const runtime::CallSite::Known* earlier;  ///< that it is like, or null
    Gathered operands;
  };
  class Thread;
  struct Form;
  struct Scratch;
  Statements();
  static Statements* MakeOfThread();
  void MakeNext();
  void GiveNext(Givers* givers);
  void End() noexcept;
  void RunAll();
  void Forget();
  void RunOne(std::size_t k);
  void Run(std::size_t begin, std::size_t end);
  bool RunTogether(std::size_t begin, std::size_t end, std::size_t* cut);
  std::shared_ptr<Form> FormOf(std::size_t begin, std::size_t end);
  std::shared_ptr<Form> MakeForm(std::size_t begin, std::size_t end);

  std::unique_ptr<Entry> next_;  ///< the statement that is made; no other thread knows it
  BiasedMutex alone_;  ///< of statements that no other thread knows
  std::shared_ptr<Giver> giver_;  ///< the thread, as others know it; null from its end on
  BiasedMutex* mutex_ = &alone_;  ///< of all below; the thread is its owner
  std::vector<std::unique_ptr<Entry>> all_;  ///< the first count_ of them wait
  std::size_t count_ = 0;
  std::size_t running_ = 0;  ///< how many run now; for messages
  std::exception_ptr error_;  ///< for the next Run
  std::unique_ptr<Scratch> scratch_;
  static inline thread_local Statements* known_ = nullptr;
};

}  // namespace umbra::detail

#endif  // UMBRA_STATEMENTS_H_
