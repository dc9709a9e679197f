#include "compiler/codegen/divisors.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "umbra/prelude/arith.h"

namespace umbra::codegen {

namespace {

__extension__ typedef __int128 Wide;

// The number by which 2^shift is to be multiplied to be 1 modulo the odd number.
std::int64_t InverseOfPower(int shift, std::int64_t odd) {
  std::int64_t inverse = 1;
  for (int k = 0; k < shift; ++k) inverse = (inverse % 2 == 0 ? inverse : inverse + odd) / 2;
  return inverse % odd;
}

// Of dividends x and divisors d with p bits, as whole numbers: where a quotient x / d of p bits is rounded otherwise
// than just below, x * 2^s is an odd multiple of d, for s = p or, of smaller dividends, p + 1. How close a quotient
// comes to that is by how much x * 2^s is no such multiple, which is a whole number.
template <typename T>
bool IsNearest(T divisor) {
  constexpr int p = std::numeric_limits<T>::digits;
  constexpr std::int64_t kMost =
      16;  // 2^-(2p - 3) of a quotient, which is less than 2^(p + 1), times d; and as much again
  int exponent;
  const auto d = static_cast<std::int64_t>(std::ldexp(std::frexp(divisor, &exponent), p));
  std::int64_t odd = d, power = 1;
  while (odd % 2 == 0) odd /= 2, power *= 2;
  const std::int64_t least = std::int64_t{1} << (p - 1);
  const simd::KnownDivisor<T> known(divisor);
  const auto quotient = [&](T dividend) { return std::fma(dividend, known.high, dividend * known.low); };  // on any CPU
  for (const int shift : {p, p + 1})
    for (std::int64_t away = -kMost; away <= kMost; ++away) {
      if (away == 0 || away % power != 0)
        continue;  // x * 2^s and multiples of d are multiples of it; no odd one is the same
      const std::int64_t inverse = InverseOfPower(shift, odd);
      auto x = static_cast<std::int64_t>(static_cast<Wide>(inverse) * (away % odd) % odd);
      if (x < 0) x += odd;
      for (x += (least - x + odd - 1) / odd * odd; x < 2 * least; x += odd)
        if (quotient(static_cast<T>(x)) != static_cast<T>(x) / divisor) return false;
    }
  return true;
}

}  // namespace

bool IsWorthDivisor(double number, DType type) {
  int exponent;
  const double limit = type == DType::kFloat32 ? 0x1p30 : 0x1p200;
  return std::frexp(number, &exponent) != 0.5 && number >= 1 / limit && number <= limit;
}

bool IsKnownDivisor(double number, DType type) {
  return type == DType::kFloat32 ? IsNearest(static_cast<float>(number)) : IsNearest(number);
}

}  // namespace umbra::codegen
