// What the compiler hands to the runtime: a program is the steps that compute a graph's outputs,
// and what has to be known of the operands to run and to check them. No compiler is needed to run it.
#ifndef UMBRA_PROGRAM_H_
#define UMBRA_PROGRAM_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "umbra/cuda_gemm.h"
#include "umbra/dtype.h"
#include "umbra/kernel_abi.h"

namespace umbra::runtime {

/// An extent: a number known when compiling, or a symbol whose value comes from the operands.
struct Extent {
  index_t value = 0;  ///< of a static extent
  int symbol = -1;  ///< index into the program's symbols, or -1 for a static extent

  /// A number.
  static Extent Static(index_t value) { return {value, -1}; }
  /// The value of a symbol.
  static Extent Symbol(int symbol) { return {0, symbol}; }
  /// Is it a number?
  bool is_static() const { return symbol < 0; }
  /// The same number, or the same symbol?
  bool operator==(const Extent& other) const { return symbol == other.symbol && (symbol >= 0 || value == other.value); }
};

/// Arithmetic of extents; quotients are rounded down, and those by 0 are 0. kScalar is what the call passes
/// as the program's scalar number a.
enum class ExtentOp : std::uint8_t { kPlus, kMinus, kTimes, kOver, kMinimum, kMaximum, kScalar };

/// a op b of any but kScalar. Throws umbra::Error if it overflows.
index_t Compute(ExtentOp op, index_t a, index_t b);

/// An operation on extents and what asks for it, for messages: "slice: axis 1 of 'x'".
struct TracedOp {
  ExtentOp kind{};  ///< the operation
  std::string origin;  ///< for messages
};

/// An extent that follows from others: result = a op b.
struct DerivedExtent {
  Extent result;  ///< a symbol
  TracedOp op;  ///< which operation
  Extent a, b;  ///< its operands
};

/// A tensor in memory that a program reads or writes.
struct Buffer {
  /// Who gives the memory: the caller, to be read or written, or the call; a view lies in the memory of another buffer.
  enum class Kind { kInput, kOutput, kTemporary, kView };
  std::string name;  ///< of the operand, as in the graph
  Kind kind = Kind::kInput;  ///< whose memory it is
  DType dtype = DType::kFloat32;  ///< of the elements
  std::vector<Extent> shape;  ///< one extent per dimension
  /// kTemporary: an output of the same shape and dtype whose memory may hold it, as the kernel that
  /// stores the output reads it at the same point; or -1. kView: the buffer that it lies in, which comes before it.
  int place = -1;
  /// kView: bit d says that dimension d goes on with dimension d - 1, in the view and in `place`; others begin the next
  /// part of both, which has the same elements in the same order. A part of one dimension of `place` is divided. Of
  /// more it is joined: where those of an operand do not follow each other in memory, a call works on a dense copy of
  /// it.
  std::uint32_t goes_on = 0, place_goes_on = 0;
  /// kView: the dimension of `place` of which it has the indices from `begin` on, as many as its own extent there is;
  /// or -1: it has all elements.
  int part = -1;
  Extent begin;  ///< of a part
};

/// The number of the buffer in whose memory another one is: that of a view, or its own.
inline int HomeOf(const std::vector<Buffer>& buffers, int buffer) {
  const Buffer& of = buffers[static_cast<std::size_t>(buffer)];
  return of.kind == Buffer::Kind::kView ? HomeOf(buffers, of.place) : buffer;
}

/// How a kernel walks a buffer: for each kernel axis the dimension of the buffer that it moves
/// along, or -1 where the buffer does not depend on the axis.
struct Access {
  int buffer = 0;  ///< index into the program's buffers
  std::vector<int> dim_of_axis;  ///< by kernel axis: the dimension, or -1
  bool store = false;  ///< written, not read
  bool gathered = false;  ///< read at computed positions; no axis moves it
  bool dense = false;  ///< what several lanes have of it follows each other in memory, as do the elements of each
  /// The last dimension that an axis moves along, in which elements lie side by side if they do at all; those behind it
  /// have one index. -1: none.
  int LastDim() const { return dim_of_axis.empty() ? -1 : *std::max_element(dim_of_axis.begin(), dim_of_axis.end()); }
  /// The same buffer, walked in the same way?
  bool operator==(const Access& other) const {
    return buffer == other.buffer && dim_of_axis == other.dim_of_axis && store == other.store &&
           gathered == other.gathered && dense == other.dense;
  }
};

/// A number that a kernel gets besides the extents of its axes: an extent, or the stride of a
/// gathered operand along one of its dimensions.
struct Number {
  Extent extent;  ///< if it is an extent
  int operand = -1, dim = -1;  ///< else: the gathered operand and the dimension whose stride it is
  /// The same extent, or the same stride?
  bool operator==(const Number& other) const {
    return extent == other.extent && operand == other.operand && dim == other.dim;
  }
};

/// A position that a kernel computes with, for a launch to see whether 32 bits hold it.
struct Position {
  /// The index along axis a, number a, a itself, or what is made of the positions number a and b of the list; kRest is
  /// what the quotient leaves of a, kEither is one of both.
  enum class Kind : std::uint8_t {
    kAxis,
    kNumber,
    kConstant,
    kPlus,
    kMinus,
    kTimes,
    kOver,
    kRest,
    kMinimum,
    kMaximum,
    kEither
  };
  Kind kind{};  ///< how it is made
  index_t a = 0, b = 0;  ///< of what
};

/// The face of a kernel: its axes, operands and scalars, in the order of `umbra_args`.
struct KernelSignature {
  std::string name;  ///< the function's in the source
  std::vector<Extent> axes;  ///< axis 0 is the one that [begin, end) ranges over
  int row_axes = 1;  ///< the first axes, which one result or one row belongs to
  int vector_axis = 0;  ///< the axis whose elements lie side by side in a packet
  /// Are packets of row axes, the last of which they go along, so that each lane is a column?
  bool goes_along_columns() const { return vector_axis + 1 == row_axes; }
  /// Do they go along a row axis before the last one, so that each lane has all that belongs to an index of it, as of a
  /// batch?
  bool goes_across_batch() const { return vector_axis + 1 < row_axes; }
  std::vector<Access> operands;  ///< loads and stores, by buffer
  std::vector<int> scalars;  ///< indices into the program's scalars
  std::vector<Number> numbers;  ///< follow the axes in umbra_args::extent
  bool positional = false;  ///< it computes with positions: its axes stay as they are
  std::vector<Position>
      positions;  ///< these, each after those that it is made of; 32-bit numbers of variants without wide_index
  /// Of a positional kernel for CPUs: the axes after the first of which a launch may ask for a range. After `numbers`
  /// umbra_args::extent has where each begins; its extent is where it ends.
  std::vector<int> ranged;
  /// One program over every element, no reduction: axes may be merged and re-blocked at launch.
  /// No extent is baked into such a kernel.
  bool elementwise = false;
  /// Dtypes of the row buffers kept in scratch; each holds extent(vector_axis) elements rounded up
  /// to 16, one after the other; so for each of the rows that are walked at a time.
  std::vector<DType> row_buffers;
  /// Dtypes of the kernel's reductions, phase by phase, if a launch may share out the blocks of its rows; else
  /// empty. Such a launch has further numbers after `numbers`: the phase, the number of blocks of a row and,
  /// for each of CutAxes(), the length of a block.
  std::vector<DType> partials;
  int phases = 1;  ///< of the kernel
  /// What a launch may have a copy of in scratch, kPanelBytes for each index of the innermost axis, as the rows of a
  /// tile share its columns (Variant::packed): the columns of an operand, or -1: what is computed of operands. Such a
  /// kernel has two more numbers after `numbers`: how many of these indices are summed for all rows before the next
  /// (what is summed so far takes kPanelBytes of scratch for each row where columns are copied, else 8 bytes for each
  /// row and column), and whether rows go by bands, a tile's rows through all columns at a time, 1 or 0.
  std::vector<int> panels;
  int sums = 0;  ///< of a kernel with panels: its reductions
  /// Estimated cost of one point of the domain, in units of one addition.
  double cost = 1;
  /// The steps of the program that it runs instead of where that is faster: the product of matrices before it, the
  /// kernel that makes the right factor for that alone, the one behind it; of a turned one, the kernel that is none,
  /// too. Empty: it is none that computes the same as others.
  std::vector<int> replaces;
  /// Of one that runs instead of a product: its rows are the product's columns, and its columns the product's rows.
  bool turned = false;
  /// Columns that are reduced may be few (AreFewColumns), and lie one step behind the other (Variant::few_columns).
  bool few_columns = false;
  /// Dtypes of what a launch may keep in scratch of a block of columns (Variant::packed), as several phases go through
  /// it: each holds an element for each step and column of the block. Such a launch has one more number after
  /// `numbers`, the columns of a block.
  std::vector<DType> column_buffers;
  /// It sums, and sums squares of what elements are away from what follows from that sum. The blocks of a row that is
  /// shared out find both at once, so that long rows are read once.
  bool moments = false;
  /// For each (store operand, load operand): may both be the very same memory?
  /// in_place[k] lists the load operands that store operand k (index into `operands`) may overwrite.
  std::vector<std::vector<int>> in_place;
};

/// So few rows, or packets of columns, have ways of their own.
inline constexpr index_t kFewRows = 16;

/// Bytes of the columns that a tile reads at a time, of one operand and at most.
inline constexpr index_t kPanelBytes = 192;

/// As many steps of few columns are worked on as one: packets of any width are full then.
inline constexpr index_t kStepsOfFew = 16;

/// More columns than the first are not few; kStepsOfFew and more are, if they have as many steps as the second: it
/// takes a while to begin and end them.
inline constexpr index_t kMostFewColumns = 47, kStepsOfMore = 256;

/// Are columns few that have so many steps, of elements of so many bytes, and such that a row of them does not fill
/// packets?
constexpr bool AreFewColumns(index_t columns, index_t steps, std::size_t element_size) {
  if (columns < kStepsOfFew) return columns > 0 && steps >= kStepsOfFew;
  return columns <= kMostFewColumns && steps >= kStepsOfMore && element_size >= 4 &&
         columns % (64 / static_cast<index_t>(element_size)) != 0;
}

/// So few indices of the innermost axis are always summed without a break.
inline constexpr index_t kLeastSteps = 128;

/// Is the extent of `axis` written into the source, so that a launch may not merge the axis? Of rows of several axes it
/// is not: those that lie one after the other are one axis.
bool IsBaked(const KernelSignature& signature, int axis);

/// The axes that a launch may cut into blocks: the outermost one that is reduced, and the one along packets if it
/// is another one that is reduced.
std::vector<int> CutAxes(const KernelSignature& signature);

/// Machine code of one kernel; variants are compiled on first need.
struct KernelCode {
  umbra_kernel_fn function = nullptr;  ///< to be called with umbra_args; see umbra/kernel_abi.h
  std::shared_ptr<void> owner;  ///< keeps the code mapped
};

/// Bytes ahead that kernels prefetch what they read: two pages, where no processor looks by itself.
inline constexpr index_t kPrefetchAhead = 8192;

/// How a kernel stores its results.
enum class Stores {
  kCached,  ///< into the caches
  kStreamed,  ///< past the caches, rows that begin at cache lines
  kJoined,  ///< past the caches, rows that begin anywhere, each where the one before it ends
};

/// Which form of a kernel a launch needs.
struct Variant {
  Stores stores = Stores::kCached;  ///< how results are stored
  bool strided = false;  ///< operands may have any stride along the vector axis
  bool split = false;  ///< several threads work on each row; the range is one of blocks of all rows
  bool packed = false;  ///< rows read copies of columns that they share, or phases what was kept of columns; neither
                        ///< strided nor split, and of shared ones not kJoined
  bool wide_index = false;  ///< positions need 64 bits in packets, too; of positional kernels, which are never packed
  bool few_columns = false;  ///< columns are few (AreFewColumns), and each step begins where the one before it ends;
                             ///< kCached, split or not
  /// A number below kCount that tells variants apart.
  int index() const {
    if (few_columns) return split ? 27 : 26;
    if (packed && stores == Stores::kJoined) return 28;
    return static_cast<int>(stores) + (packed ? 12 : 0) + (strided ? 3 : 0) + (split ? 6 : 0) + (wide_index ? 14 : 0);
  }
  static constexpr int kCount = 29;  ///< of variants
};

/// Makes the machine code of a kernel variant. Thread-safe; may throw umbra::Error.
using CodeProvider = std::function<KernelCode(const Variant&)>;

/// What a product on a GPU may be given to do itself, instead of the kernel that alone reads it.
struct ProductEpilogue {
  cuda::Epilogue kind = cuda::Epilogue::kNone;  ///< of the product, scaled
  double scale = 1;  ///< factor beside the product's own
  int scalar = -1;  ///< index into the program's scalars of a further factor, or -1
  int bias = -1;  ///< buffer of the vector that is added to each row, or -1
  int result = -1;  ///< buffer that the kernel writes
  int kernel = -1;  ///< its step, or -1: there is none that an epilogue computes
  /// Step of a kernel that finishes the result in its place, or -1. It runs behind this product only, and would change
  /// nothing behind the step `kernel`.
  int behind = -1;
};

/// c = alpha * op(a) * op(b), matrices of one float dtype; a vector operand is a row (left) or a
/// column (right) matrix; operands of rank 3 are batches of matrices.
struct GemmStep {
  int a = 0, b = 0, c = 0;  ///< buffers
  bool transpose_a = false, transpose_b = false;  ///< of a and b as they lie in memory
  double alpha = 1;  ///< factor of the product
  ProductEpilogue epilogue;  ///< for a launch to choose, where cuBLASLt has it for the operands
};

/// The extents of a product of matrices, or of each of a batch.
struct ProductShape {
  index_t rows = 0, columns = 0;  ///< of the result
  index_t inner = 0;  ///< of which each sum is
  bool transposed_a = false, transposed_b = false;  ///< does memory hold the factor's columns side by side?
  std::size_t element_size = 4;  ///< in bytes
  bool made_b = false;  ///< would a BLAS have the right factor made for it in memory, but not a kernel?
  bool batched = false;  ///< is it one of many, each of which a BLAS is called for?
};

/// Of a product, or one of a batch, that the kernel may replace; `loops` are the extents of the kernel's axes. Of a
/// turned one it is the shape of the product turned.
ProductShape ShapeOf(const GemmStep& product, const KernelSignature& kernel, const std::vector<index_t>& loops,
                     DType dtype);

/// How a product is computed.
enum class ProductWay {
  kBlas,  ///< by a BLAS, which copies its factors into an order of its own
  kAsTheyLie,  ///< by a generated kernel, its factors read where they lie: few rows or columns
  kInPanels,  ///< by one whose rows share a copy of the columns of a tile
};

/// The way that takes least time with kernels for `target` (plain, sse2, avx2 or avx512); for any target, if that is
/// empty.
ProductWay FastestWay(const ProductShape& shape, std::string_view target);

/// Is it one of a generated kernel?
inline bool SumIsFaster(const ProductShape& shape, std::string_view target) {
  return FastestWay(shape, target) != ProductWay::kBlas;
}

/// Does a kernel run instead of the product that it replaces, of that shape (ShapeOf)? A turned one comes before the
/// other.
inline bool RunsInstead(const KernelSignature& kernel, const ProductShape& shape, std::string_view target) {
  return SumIsFaster(shape, target) && (!kernel.turned || (shape.rows <= kFewRows && shape.columns > kFewRows));
}

/// The step of that product, of a kernel that is step `at`.
inline std::size_t ProductBefore(const KernelSignature& kernel, std::size_t at) { return at - (kernel.turned ? 2 : 1); }

struct CudaKernel;  // runtime/cuda_kernel.h

/// A step that runs a kernel, whose code is made when a call first needs a variant of it.
struct KernelStep {
  KernelSignature signature;  ///< what the kernel takes
  CodeProvider code;  ///< makes its machine code
  std::shared_ptr<const CudaKernel> cuda;  ///< instead of `code`, of a program for GPUs

  /// The variants made so far.
  struct Slots {
    std::array<std::atomic<umbra_kernel_fn>, Variant::kCount> function{};  ///< by Variant::index(); null until made
    std::mutex mutex;  ///< of `owners`
    std::vector<std::shared_ptr<void>> owners;  ///< of the functions, so that they stay mapped
  };
  std::shared_ptr<Slots> slots = std::make_shared<Slots>();  ///< shared by the copies of a program
};

/// Steps [begin, end) of a program that run as one.
struct StepGroup {
  enum class Kind {
    kIndependent,  ///< kernels of which none needs another: one parallel region runs them all
    kRows,  ///< each needs only those rows (dimension 0) of the others' results that it is at:
            ///< they may run one after the other for a block of rows, then for the next
  };
  Kind kind = Kind::kIndependent;  ///< why they run as one
  int begin = 0, end = 0;  ///< the first step, and the one behind the last
  Extent rows;  ///< kRows: how many there are
  std::vector<int> local;  ///< kRows: temporaries that nothing else uses, so that a block's rows suffice
};

/// What a compiled graph is to the runtime: operands, scalars, extents and the steps that compute the outputs.
struct Program {
  std::string name;  ///< of the graph; in messages
  bool on_gpu = false;  ///< its operands are in the memory of a GPU, which runs it
  std::string target;  ///< what its kernels are compiled for: plain, sse2, avx2 or avx512, if it is known
  std::vector<Buffer> buffers;  ///< inputs, then outputs, then temporaries
  std::vector<std::pair<std::string, DType>> scalars;  ///< names and dtypes of the numbers that a call passes
  int num_symbols = 0;  ///< symbols of the shapes; see Extent
  std::vector<DerivedExtent> derived;  ///< in an order in which they can be computed
  std::vector<std::variant<KernelStep, GemmStep>> steps;  ///< in the order in which they run
  std::vector<StepGroup> groups;  ///< all steps, in order

  /// A program of the same operands that computes the same, but for the order of sums, if all extents are the ones that
  /// were asked for, and is faster for them. Other operands may share memory than with this one.
  struct Faster {
    std::shared_ptr<const Program> program;  ///< null: there is none
    bool pending = false;  ///< it is still being compiled
  };
  /// Finds one for the extents, by symbol; empty if there never is one. Thread-safe.
  std::function<Faster(const std::vector<index_t>& symbols)> for_extents;
};

}  // namespace umbra::runtime

#endif  // UMBRA_PROGRAM_H_
