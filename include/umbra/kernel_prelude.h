// What a generated kernel stands on: packets as vector-extension types, with named operations for
// what the language's operators do not say. No system header. Scalars take part everywhere as
// packets of width one, so that one text gives the same bits at every width.
#ifndef UMBRA_KERNEL_PRELUDE_H_
#define UMBRA_KERNEL_PRELUDE_H_

#include "umbra/kernel_abi.h"
#include "umbra/prelude/types.h"
#include "umbra/prelude/memory.h"
#include "umbra/prelude/arith.h"
#include "umbra/prelude/reduce.h"
#include "umbra/prelude/math.h"
#include "umbra/prelude/libmvec.h"

#define UMBRA_KERNEL_FN extern "C" __attribute__((visibility("default")))

#endif  // UMBRA_KERNEL_PRELUDE_H_
