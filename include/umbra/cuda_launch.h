// How a generated CUDA kernel is launched: which form of it fits the operands, the grid, the memory
// that it needs. The code generator and the runtime share what is here; neither knows the other.
//
// A kernel is `extern "C" __global__ void NAME(const NAME_args args)`. NAME_args has entries of 8
// bytes only, those that are empty left out, in this order: the base address of each operand, a row
// of strides (elements, one an axis) for each operand, the extents of the axes followed by the
// signature's numbers, the scalars, and the address of the scratch memory. Forms that split a
// reduction have a second kernel, NAME_finish, which takes the same arguments after the first.
// A variant for several launches is NAME_several, whose arguments are those of each launch, behind
// where in the grid each one's blocks are (see JoinCudaLaunches).
#ifndef UMBRA_CUDA_LAUNCH_H_
#define UMBRA_CUDA_LAUNCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "umbra/function.h"

namespace umbra::runtime {

/// How the threads of a grid share the work of a kernel.
enum class CudaForm : std::uint8_t {
  kElements,  ///< no reduction: a thread computes packets of elements
  kTiles,  ///< no reduction: transposed operands go through square tiles in shared memory
  kRowPerWarp,  ///< a reduction along the vector axis: a warp works on a row
  kRowPerBlock,  ///< the same: a block works on a row
  kRowSplit,  ///< the same: several blocks work on a row; NAME_finish joins what they found
  kColumn,  ///< the vector axis is kept: a thread reduces a column
  kColumnPerBlock,  ///< the same: the threads of a block that share threadIdx.x reduce a column
  kColumnSplit,  ///< the same: those of several blocks; NAME_finish joins what they found
};

/// Which text of a kernel a launch needs.
struct CudaVariant {
  CudaForm form = CudaForm::kElements;  ///< what a thread, a warp or a block works on
  bool vector = false;  ///< operands are read and written in packets of up to 16 bytes
  bool strided = false;  ///< operands may have any stride along the vector axis
  bool wide_index = false;  ///< positions need 64 bits, and so do offsets
  bool rows_in_scratch = false;  ///< what is kept of a row is too large for shared memory: inputs are read again
  bool several = false;  ///< it runs several launches as one
  bool wide_offset = false;  ///< offsets need 64 bits, and positions do not; of kElements that compute with positions
  bool many = false;  ///< of several: those whose arguments take more than every driver has room for

  /// A number that tells variants apart.
  int index() const {
    return static_cast<int>(form) * 16 + (vector ? 1 : 0) + (strided ? 2 : 0) + (wide_index ? 4 : 0) +
           (rows_in_scratch ? 8 : 0) + (several ? 8 * 16 : 0) + (many ? 2 * 8 * 16 : 0) +
           (wide_offset ? 4 * 8 * 16 : 0);
  }
  /// Is there a second pass, NAME_finish?
  bool finishes() const { return form == CudaForm::kRowSplit || form == CudaForm::kColumnSplit; }
  /// The variant that a launch of this one may take instead: of the same grid and memory, but for operands of any
  /// stride and size.
  CudaVariant General() const { return {form, vector, !vector, true, rows_in_scratch, several, false, many}; }
  /// The same form and the same properties?
  bool operator==(const CudaVariant& other) const { return index() == other.index(); }
};

/// Threads of a warp; elements of a reduction that are worth a block of their own.
inline constexpr index_t kCudaWarp = 32, kCudaShare = 16384;

/// What the code generator knows of a kernel whatever the variant.
struct CudaSchedule {
  bool reduces = false;  ///< there is a reduction
  bool splits = false;  ///< one pass over memory tells all, so that several blocks may share a reduction
  int lanes = 4;  ///< elements of a packet
  int warp_row = 1024;  ///< elements of a row that a warp has to itself at most
  index_t lone_column = kCudaWarp;  ///< elements of a column that a thread has to itself at most
  bool packs_results = false;  ///< of what computes with positions: a thread of kElements or kColumn may store what it
                               ///< computes in packets
  int packets = 1;  ///< packets of an operand that a thread loads at once, of kElements: 1 or 2
  int rows = 1;  ///< rows that a thread of kElements without packets, of kTiles or of kColumn takes at a time
  int tile_side = 32;  ///< rows and columns of a tile of kTiles: 32 or 64
  int tile_axis = -1;  ///< the row axis along which transposed operands lie side by side
  int tile_lanes = 1;  ///< elements of a packet of kTiles: 1 or 2
  std::vector<DType>
      kept;  ///< dtypes of what is kept of a row in shared memory: inputs that are read again, row buffers
  std::vector<DType> partials;  ///< dtypes of what a block finds of each reduction, if it splits
};

/// What a device allows a launch.
struct CudaLimits {
  std::size_t shared_bytes = 48 * 1024;  ///< dynamic shared memory that a block may have
};

/// Threads of a block across a tile of transposed operands, and down.
inline constexpr int kCudaTile = 32, kCudaTileRows = 8;

/// Threads along x, y and z.
struct CudaDims {
  unsigned x = 1, y = 1, z = 1;  ///< how many of each, 1 or more
};

/// A launch with everything decided but the addresses.
struct CudaLaunch {
  CudaVariant variant;  ///< the text to launch
  std::vector<index_t> stride;  ///< operand-major, as NAME_args wants it
  std::vector<index_t> extent;  ///< of the axes, then the numbers
  CudaDims grid, block;  ///< blocks of the launch, threads of a block
  std::size_t shared_bytes =
      0;  ///< dynamic shared memory of a block; above 48 KiB less the kernel's own it has to be asked for
  std::size_t scratch_bytes = 0;  ///< device memory, 16-byte aligned, private to the launch
  CudaDims finish_grid, finish_block;  ///< of NAME_finish, where the form splits
  /// Is NAME_finish launched after it?
  bool finishes() const { return variant.finishes(); }
};

/// Decides a launch on `buffers` (all of the program, in order), of which something is stored: a
/// kernel whose outputs are empty must not be launched. The result depends on extents, strides,
/// addresses and limits alone, so that the same call gives the same bits.
CudaLaunch PlanCudaLaunch(const KernelSignature& signature, const CudaSchedule& schedule,
                          const std::vector<TensorRef>& buffers, const std::vector<index_t>& symbols,
                          const CudaLimits& limits);

/// Bytes of arguments that drivers of CUDA 12.1 and later take for devices from capability 7.0 on (CUDA's release
/// notes; nobody can be asked), and compilers of that version.
inline constexpr std::size_t kCudaManyArgumentBytes = 32764;
/// Words of arguments that every driver takes, 4 KiB, and those take.
inline constexpr std::size_t kCudaArgumentWords = 512, kCudaManyArgumentWords = kCudaManyArgumentBytes / 8;

/// Of how many launches, with so many words of arguments each, one has room for the arguments; `many`: see CudaVariant.
inline constexpr std::size_t CudaMostLaunches(std::size_t argument_words, bool many) {
  return ((many ? kCudaManyArgumentWords : kCudaArgumentWords) - 1) / (argument_words + 1);
}

/// May blocks of both be blocks of one launch? Both are launches of one text; those that fill a GPU by themselves gain
/// nothing by it.
bool CudaLaunchesJoin(const CudaLaunch& a, const CudaLaunch& b);

/// The launch that has the blocks of all `launches`, of which any two join, and where in it each one's are: the first
/// words of the arguments of NAME_several, one more than there are places, after which those of each launch, of so many
/// words, follow.
CudaLaunch JoinCudaLaunches(const std::vector<CudaLaunch>& launches, std::size_t argument_words,
                            std::vector<std::uint64_t>* places);

/// The bytes of NAME_args for a launch: `data` are the operands' addresses in the signature's
/// order, `scalars` those that the kernel reads.
std::vector<std::uint64_t> CudaArguments(const CudaLaunch& launch, const std::vector<void*>& data,
                                         const std::vector<umbra_scalar>& scalars, void* scratch);

}  // namespace umbra::runtime

#endif  // UMBRA_CUDA_LAUNCH_H_
