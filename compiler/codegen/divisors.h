// How packets are divided by a number that is known.
#ifndef UMBRA_COMPILER_CODEGEN_DIVISORS_H_
#define UMBRA_COMPILER_CODEGEN_DIVISORS_H_

#include "umbra/dtype.h"

namespace umbra::codegen {

/// Does a division by the constant take long, and Divisor of the prelude take it? Compilers multiply by the inverse of
/// a power of two.
bool IsWorthDivisor(double number, DType type);

/// Does KnownDivisor of the prelude give the nearest quotient for every dividend? `number`: such that IsWorthDivisor.
///
/// Its quotient is less than 2^-(2p - 3) of itself away from the one that is not rounded, where floats have p bits. The
/// dividends for which that one is as close to a place where rounding changes are few, and all of them are tried.
bool IsKnownDivisor(double number, DType type);

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_DIVISORS_H_
