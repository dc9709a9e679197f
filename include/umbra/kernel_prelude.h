// What a generated kernel stands on: packets as vector-extension types, with named operations for
// what the language's operators do not say. No system header. Scalars take part everywhere as
// packets of width one, so that one text gives the same bits at every width. Reductions and functions
// are in headers of their own (umbra/prelude/reduce.h, math.h, trig.h, power.h, special.h, random.h), which a
// kernel that uses them includes.
#ifndef UMBRA_KERNEL_PRELUDE_H_
#define UMBRA_KERNEL_PRELUDE_H_

#include "umbra/kernel_abi.h"
#include "umbra/prelude/arith.h"
#include "umbra/prelude/columns.h"
#include "umbra/prelude/memory.h"
#include "umbra/prelude/spans.h"
#include "umbra/prelude/types.h"

// What comes before a kernel; a source that makes kernels known by a table says static.
#ifndef UMBRA_KERNEL_FN
#define UMBRA_KERNEL_FN extern "C" __attribute__((visibility("default")))
#endif

// Of a kernel that has more packets than there are registers. Clang puts them on the stack as its caller left it,
// aligned to 16 bytes, and a packet across two pages makes a loop much slower; GCC aligns the stack by itself.
#if defined(__clang__) && defined(__AVX__)
#define UMBRA_ALIGNED_STACK __attribute__((force_align_arg_pointer))
#else
#define UMBRA_ALIGNED_STACK
#endif

#endif  // UMBRA_KERNEL_PRELUDE_H_
