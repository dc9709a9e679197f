/* Kernels that were compiled ahead of time, for callers in C and in languages that call C. */
#ifndef UMBRA_KERNEL_DESC_H_
#define UMBRA_KERNEL_DESC_H_

#include <stdint.h>

#include "umbra/kernel_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Element types: UMBRA_DTYPE_f32, UMBRA_DTYPE_f64 and so on, in the order of umbra/dtypes.def. */
typedef enum umbra_dtype {
#define UMBRA_DTYPE(dtype, name, type, compute, wide, flag_name, flag, number) UMBRA_DTYPE_##name,
#include "umbra/dtypes.def"
} umbra_dtype;

/** What a call returns. Unless it is UMBRA_OK, umbra_error_message() says more. */
typedef enum umbra_status {
  UMBRA_OK = 0,
  UMBRA_ERROR = 1, /**< an operand does not fit, or the machine lacks something */
  UMBRA_INTERNAL_ERROR = 2, /**< a defect of Umbra */
  UMBRA_OUT_OF_MEMORY = 3
} umbra_status;

/** Where a tensor is. */
typedef enum umbra_device { UMBRA_DEVICE_CPU = 0, UMBRA_DEVICE_GPU = 1 } umbra_device;

/** A tensor in memory. */
typedef struct umbra_tensor {
  void* data;
  const int64_t* shape; /**< `rank` extents */
  const int64_t* stride; /**< elements from one index to the next, by dimension; null: dense, row-major */
  int rank;
  int dtype; /**< an umbra_dtype */
  int device; /**< an umbra_device */
  void* stream; /**< of a tensor on a GPU: the CUstream in which its work is; null: the default one of the thread's
                   device */
} umbra_tensor;

/** A tensor operand of a kernel. An extent below 0 is one that a call brings: equal numbers stand
 * for equal extents. */
typedef struct umbra_operand_desc {
  const char* name;
  int dtype;
  int rank;
  const int64_t* shape;
} umbra_operand_desc;

/** A number that a call passes in the member of umbra_scalar for its dtype. */
typedef struct umbra_scalar_desc {
  const char* name;
  int dtype;
} umbra_scalar_desc;

/** The code of a kernel for one instruction set. */
typedef struct umbra_target_desc {
  const char* name; /**< plain, sse2, avx2 or avx512 */
  const umbra_kernel_fn* functions; /**< by step and variant; null where there is none */
} umbra_target_desc;

/** The code of a kernel's step for GPUs, in the form that some of its launches need. */
typedef struct umbra_gpu_code {
  int step; /**< which of the kernel's steps that run code */
  int variant; /**< what it is for, as umbra/cuda_launch.h numbers it */
  const char* function; /**< in the images */
  const void* images; /**< for several GPUs, packed */
  uint64_t image_bytes;
} umbra_gpu_code;

/** How GPUs run a kernel. */
typedef struct umbra_gpu_desc {
  const char* architectures; /**< machine code is for these, and PTX of the last for later ones: "sm_80, sm_90" */
  const char* program; /**< how it is computed there, for the runtime */
  const char* schedules; /**< how its steps are launched, for the runtime */
  const umbra_gpu_code* codes;
  int num_codes;
} umbra_gpu_desc;

/** A kernel of a library. */
typedef struct umbra_kernel_desc {
  const char* name;
  const char* signature; /**< as the text form has it: (x: f32[n, 1024]) -> (y: f32[n, 1024]) */
  const char* origin; /**< file and line of its definition */
  int num_inputs, num_outputs, num_scalars, num_targets;
  const umbra_operand_desc* operands; /**< the inputs, then the outputs */
  const umbra_scalar_desc* scalars;
  const umbra_target_desc* targets; /**< from the narrowest to the widest */
  const char* program; /**< how it is computed, for the runtime */
  void** state; /**< of the runtime; null at first */
  const umbra_gpu_desc* gpu; /**< null: it has no code for GPUs */
} umbra_kernel_desc;

/** Runs a kernel: `operands` are its inputs, then its outputs, all in memory of the CPU or all in that of one GPU.
 * On the CPU `threads` work at most, or 0 for as many as the machine has; the code is the one for the widest
 * instruction set that this CPU runs, unless umbra_set_target or the environment variable UMBRA_TARGET says otherwise.
 * On a GPU the work is put into the stream of the first output that has one, or else of the first input that has one,
 * and is not waited for; the code is the best for the GPU of that stream. Never throws. */
umbra_status umbra_call(const umbra_kernel_desc* kernel, const umbra_tensor* const* operands,
                        const umbra_scalar* scalars, int threads);

/** What went wrong in the last call of this thread that did not return UMBRA_OK. */
const char* umbra_error_message(void);

/** Makes all later calls use the code for the instruction set `name`; null or "" for what
 * UMBRA_TARGET says, or else the widest that this CPU runs. An error if there is none of this name or the
 * CPU does not run it. */
umbra_status umbra_set_target(const char* name);

/** The name of the instruction set that a call of `kernel` would use now; null if it could not be
 * called, which umbra_error_message() explains. */
const char* umbra_kernel_target(const umbra_kernel_desc* kernel);

#ifdef __cplusplus
}
#endif

#endif /* UMBRA_KERNEL_DESC_H_ */
