// Marking functions as kernels, for umbra-extract (docs/extract.md).
#ifndef UMBRA_KERNEL_H_
#define UMBRA_KERNEL_H_

/// Marks a function over tensors as a kernel: `UMBRA_KERNEL void f(Tensor<cpu, 2> y, ...) { ... }`. It
/// compiles and runs as it stands; code generated for it has the same symbol and takes its place when
/// both are linked, so the function itself is weak.
#if defined(__clang__)
#define UMBRA_KERNEL \
  __attribute__((annotate("umbra::kernel"), weak))  // weak: neither static nor in an unnamed namespace
#else
#define UMBRA_KERNEL __attribute__((weak))
#endif

#endif  // UMBRA_KERNEL_H_
