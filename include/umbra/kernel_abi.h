// The calling convention between a generated kernel and the runtime.
// Plain C, no system header: this text is part of the embedded prelude.
#ifndef UMBRA_KERNEL_ABI_H_
#define UMBRA_KERNEL_ABI_H_

#ifdef __cplusplus
extern "C" {
#endif

/// One run-time scalar operand; the kernel reads the member of the operand's dtype.
typedef union umbra_scalar {
  float f32;
  double f64;
  int i32;
  long long i64;
} umbra_scalar;

/// Everything a kernel reads besides the range of its outermost loop.
typedef struct umbra_args {
  /// Base address of each memory operand, in the order of the kernel's operand list.
  void* const* data;
  /// Strides in elements, one row of `rank` (number of kernel axes) entries per memory operand:
  /// stride[operand * rank + axis]. An axis that an operand does not depend on has stride 0.
  const long long* stride;
  /// Extent of each kernel axis, `rank` entries; then what else the launch counts: the kernel's numbers; of one that
  /// computes with positions, where each axis after the first begins that has a range; of one whose rows are shared out
  /// in blocks, the phase, the blocks of a row and the length of a block along each cut axis; of one whose rows share
  /// columns, the steps of a part; of one that keeps columns in scratch, those of a block.
  const long long* extent;
  /// Run-time scalars, in the order of the kernel's scalar list.
  const umbra_scalar* scalar;
  /// Memory private to this call, 64-byte aligned, of the size that the kernel asks for per call.
  void* scratch;
  /// How many bytes ahead a kernel that stores past the caches prefetches what it reads; 0 on processors that read
  /// sooner without.
  long long prefetch_ahead;
} umbra_args;

/// A generated kernel: computes the part [begin, end) of its outermost axis.
typedef void (*umbra_kernel_fn)(const umbra_args* args, long long begin, long long end);

#ifdef __cplusplus
}
#endif

#endif  // UMBRA_KERNEL_ABI_H_
