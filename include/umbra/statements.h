// Assignments of fused streams: they wait, and those that wait together run as one program.
#ifndef UMBRA_STATEMENTS_H_
#define UMBRA_STATEMENTS_H_

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "umbra/biased_mutex.h"
#include "umbra/bridge.h"
#include "umbra/compile.h"

namespace umbra::detail {

/// What the type of an assignment tells.
struct StatementType {
  int rank;    ///< of the destination
  graph::Value (*build)(GraphWalk*);  ///< what is written
  void (*run)(Gathered*);  ///< runs the assignment alone; its operands as Statements::Add takes them
};

/// Where the options of compiles from expressions are, and how one sees that they have changed.
struct StatementOptions {
  CompileOptions (*get)();
  int (*generation)();
};

/// The statements of a thread's fused streams that wait.
class Statements final : public Waiting {
 public:
  /// Those of the calling thread.
  static Statements& OfThread(const StatementOptions& options) {
    if (known_ == nullptr) known_ = MakeOfThread(options);
    return *known_;
  }
  ~Statements() override;

  /// One more, given to the stream that `givers` belongs to: gather(Gathered*) writes down the operands that it reads, then
  /// its destination, and returns the earlier call that it is like, if there is one.
  template <typename Gather>
  void Add(const StatementType& type, Givers* givers, const Gather& gather) {
    if (next_ == nullptr) MakeNext();
    next_->type = &type;
    next_->earlier = gather(&next_->operands);  // may wait for other streams
    const std::lock_guard<BiasedMutex> lock(*mutex_);
    if (count_ == all_.size()) MakeRoom();
    all_[count_++].swap(next_);
    of_thread = this;
    givers->Note(giver_);
  }
  /// Runs them, as one program where nothing speaks against it. A reason that does is said where UMBRA_TRACE is set.
  void Run() override;
  void Finish(bool keep_error) noexcept override;

 private:
  struct Entry {
    const StatementType* type;
    EarlierCall earlier;  ///< if it is like one
    Gathered operands;
  };
  class Thread;
  struct Form;
  struct Scratch;
  explicit Statements(const StatementOptions& options);
  static Statements* MakeOfThread(const StatementOptions& options);
  void MakeNext();
  void MakeRoom();
  void End() noexcept;
  void RunAll();
  void Forget();
  void RunOne(std::size_t k);
  void Run(std::size_t begin, std::size_t end);
  bool RunTogether(std::size_t begin, std::size_t end, std::size_t* cut);
  std::shared_ptr<Form> FormOf(std::size_t begin, std::size_t end);
  std::shared_ptr<Form> MakeForm(std::size_t begin, std::size_t end);

  StatementOptions options_;
  std::unique_ptr<Entry> next_;     ///< the statement that is made; no other thread knows it
  BiasedMutex alone_;               ///< of statements that no other thread knows
  std::shared_ptr<Giver> giver_;    ///< the thread, as others know it; null from its end on
  BiasedMutex* mutex_ = &alone_;    ///< of all below; the thread is its owner
  std::vector<std::unique_ptr<Entry>> all_;  ///< the first count_ of them wait
  std::size_t count_ = 0;
  std::size_t running_ = 0;  ///< how many run now; for messages
  std::exception_ptr error_;  ///< for the next Run
  std::unique_ptr<Scratch> scratch_;
  static inline thread_local Statements* known_ = nullptr;
};

}  // namespace umbra::detail

#endif  // UMBRA_STATEMENTS_H_
