// A program with everything decided that follows from shapes, strides and the number of threads: what is
// left for a call are the base pointers.
#ifndef UMBRA_RUNTIME_PREPARED_H_
#define UMBRA_RUNTIME_PREPARED_H_

#include <variant>
#include <vector>

#include "runtime/launch.h"
#include "runtime/overlap.h"
#include "runtime/views.h"

namespace umbra::runtime {

/// What runs in place of `program` for the extents `symbols`, if it may on operands that overlap so (CheckOverlaps).
Program::Faster FasterFor(const Program& program, const std::vector<index_t>& symbols,
                          const std::vector<TensorRef>& operands, const OperandPairs& overlaps);

class [[gnu::visibility("hidden")]] PreparedProgram {
 public:
  /// A launch of a kernel.
  struct Kernel {
    LaunchPlan plan;
    std::vector<std::size_t> buffer;  ///< of each operand
    std::vector<std::size_t> element_size;  ///< of each operand
    std::vector<int> row_dim;  ///< of each operand: the dimension that axis 0 moves it along, or -1
    const std::vector<int>* scalars = nullptr;
  };

  /// `operands` are checked inputs and outputs (CheckArguments, CheckOverlaps); `shared` are
  /// the outputs and inputs that share memory. What calls pass has the same alignment to cache lines, and the same
  /// operands share memory. `program` outlives this.
  [[gnu::visibility("default")]] PreparedProgram(const Program& program, std::vector<TensorRef> operands,
                                                 const std::vector<index_t>& symbols, OperandPairs shared, int threads);

  /// Runs on base pointers of the inputs and outputs, in their order, and the program's scalars.
  [[gnu::visibility("default")]] void Run(void* const* data, const umbra_scalar* scalars) const;

  /// Memory that a call takes besides its operands.
  std::size_t temporary_bytes() const { return temporary_bytes_ + copies_.bytes(); }
  /// The kernel that is all there is to run; null if there is none or more.
  [[gnu::visibility("default")]] const Kernel* OnlyKernel() const;

 private:
  using Step = std::variant<Kernel, const GemmStep*>;

  struct Temporary {
    int place = -1;  ///< the buffer that it lives in, or -1
    std::size_t bytes = 0;  ///< of one copy
    int copies = 1;  ///< one for each part
    bool block = false;  ///< does it hold the rows of a block only?
    std::size_t offset = 0;  ///< in bytes: of the first copy in the memory of temporaries, or in `place`
  };

  // From the step that uses a temporary first to the one that uses it last; alone: no other step runs at that time.
  struct Life {
    int first = -1, last = -1;
    bool first_alone = false, last_alone = false;
  };

  struct Group {
    StepGroup::Kind kind{};
    std::vector<Step> steps;  ///< kRows: for whole blocks
    std::vector<Step> last_steps;  ///< kRows: for the last block, if it has fewer rows
    index_t rows = 1, block = 1;  ///< kRows: blocks of `block` rows
    int parts = 1;  ///< kRows: ranges of blocks that run at the same time
    int product_parts = 1;  ///< kRows: ranges of rows of a block's products that run at the same time
    index_t product_rows = 1;  ///< kRows: of such a range
    int blas_threads = 1;  ///< kRows: of each product
  };

  void PlaceTemporaries();
  void AddTemporaries(const std::vector<index_t>& symbols);
  void AddIndependent(const StepGroup& group, const std::vector<index_t>& symbols);
  void AddRows(const StepGroup& group, const std::vector<index_t>& symbols);
  std::vector<Step> Prepare(const StepGroup& group, const std::vector<index_t>& symbols, int threads, index_t rows)
      const;
  void ChooseSteps(const std::vector<index_t>& symbols);
  bool IsFaster(const KernelStep& sum, std::size_t step, const std::vector<index_t>& symbols) const;
  bool IsOneKernel(const StepGroup& group) const;
  bool HasKernelByColumns(const StepGroup& group) const;
  bool MayTakeOver(std::size_t made, std::size_t read, const std::vector<Life>& lives) const;
  index_t BlockRows(const StepGroup& group, index_t rows) const;
  bool SharesRowsOut(const StepGroup& group, index_t rows) const;

  void RunIndependent(const Group& group, void* const* data, const umbra_scalar* scalars) const;
  void RunRows(const Group& group, void* const* data, const umbra_scalar* scalars) const;
  void RunBlock(const Group& group, index_t begin, int part, void* const* data, const umbra_scalar* scalars) const;
  int Home(int buffer) const;
  int SameBase(int buffer) const;
  void* AtRow(std::size_t buffer, int dim, index_t row, int part, void* const* data) const;
  TensorRef Rows(int buffer, int dim, index_t begin, index_t count, int part, void* const* data) const;

  const Program& program_;
  std::vector<TensorRef> buffers_;  ///< of the program; local temporaries have the shape of a block
  std::size_t operands_ = 0;  ///< the first buffers; temporaries follow
  DenseCopies copies_;  ///< of operands
  OperandPairs shared_;  ///< outputs and inputs that share memory
  std::vector<bool> runs_;  ///< by step of the program: does this call run it, or another instead?
  std::vector<Temporary> temporaries_;
  std::size_t temporary_bytes_ = 0;
  int threads_ = 1;
  std::vector<Group> groups_;
};

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_PREPARED_H_
