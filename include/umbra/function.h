// Running a compiled graph on operands in memory.
#ifndef UMBRA_FUNCTION_H_
#define UMBRA_FUNCTION_H_

#include <vector>

#include "umbra/cuda.h"
#include "umbra/program.h"

namespace umbra::runtime {

/// A tensor in memory as a call sees it. Strides are in elements, one per dimension; they are ignored for extents of 1.
/// What is read may have any, zero and negative ones included; of what is written, each element has a place of its own.
struct TensorRef {
  void* data = nullptr;  ///< the first element; may be null if there is none
  DType dtype = DType::kFloat32;  ///< of the elements
  std::vector<index_t> shape;  ///< extents, in elements
  std::vector<index_t> stride;  ///< elements from one index to the next, of each dimension

  /// A dense row-major tensor.
  static TensorRef Dense(void* data, DType dtype, std::vector<index_t> shape);
  /// The sub-tensor at `index` of axis 0.
  TensorRef At(index_t index) const;
};

/// The operands of one call, in the order of the program's inputs, outputs and scalars.
struct Arguments {
  std::vector<TensorRef> inputs;  ///< read; as many as the program has
  std::vector<TensorRef> outputs;  ///< written; as many as the program has
  std::vector<umbra_scalar> scalars;  ///< the numbers of the call
};

/// How a call runs.
struct RunOptions {
  int threads = 0;  ///< at most this many threads; 0: as many as the machine has
  cuda::StreamHandle stream =
      nullptr;  ///< of a program for GPUs; null: the stream of the thread's device that waits for all
};

/// Values of the program's symbols as the operands determine them. Throws umbra::Error if a dtype,
/// rank or extent does not fit, naming the operand, what was expected and what was given; if a
/// pointer is null (for a non-empty tensor) or not aligned to its element; if a product of extents
/// overflows.
std::vector<index_t> CheckArguments(const Program& program, const Arguments& arguments);

/// The shapes of the outputs for inputs like these, which are checked as CheckArguments does, and for all
/// scalars of the call, which are needed only if extents follow from them. Throws umbra::Error if an extent is
/// free to choose.
std::vector<std::vector<index_t>> OutputShapes(const Program& program, const std::vector<TensorRef>& inputs,
                                               const std::vector<umbra_scalar>& scalars = {});

/// Runs the steps of `program` one after the other. Empty outputs are a no-op. An output that
/// overlaps an input in a way that would change the result is an error. Of a program for GPUs the operands are
/// device addresses, and the steps have been put into the stream when the call returns.
void Run(const Program& program, const Arguments& arguments, const RunOptions& options = {});

}  // namespace umbra::runtime

#endif  // UMBRA_FUNCTION_H_
