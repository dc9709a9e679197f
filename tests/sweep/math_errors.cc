// The largest error of the prelude's functions and of operators made of them, in units in the last place, where the
// result is normal: over every f32 argument (pairs: a sample) against f64, and over a sample of f64 arguments against
// extended precision. The tables of docs/numerics.md. Arguments name the functions to measure; without one, all. After
// `--every N`, one in N groups of sixteen neighbouring arguments is taken.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/sweep/reference.h"
#include "umbra/packet.h"

namespace {

namespace op = umbra::op;
namespace simd = umbra::simd;
using simd::f32x16;
constexpr int kParts = sizeof(simd::f64x16) / sizeof(Doubles);

// A reference on sixteen numbers.
template <typename Reference, typename... Wide>
simd::f64x16 BySixteen(Reference reference, Wide... operands) {
  Doubles parts[kParts];
  for (int k = 0; k < kParts; ++k) {
    const auto part = [k](const simd::f64x16& x) {
      Doubles p;
      std::memcpy(&p, reinterpret_cast<const char*>(&x) + static_cast<std::size_t>(k) * sizeof p, sizeof p);
      return p;
    };
    parts[k] = reference(part(operands)...);
  }
  simd::f64x16 result;
  std::memcpy(&result, parts, sizeof result);
  return result;
}

// Errors of y in the last place of `of`; 0 where that is not a normal f32, infinity for a NaN on one side only.
simd::f64x16 Errors(f32x16 y, simd::f64x16 exact, simd::f64x16 of) {
  const simd::f64x16 size = simd::abs(of), got = __builtin_convertvector(y, simd::f64x16);
  const auto exponent = simd::bits(of) & 0x7ff0000000000000LL;
  const auto unit = simd::from_bits<simd::f64x16>(exponent - (23LL << 52));
  const simd::f64x16 error = simd::abs(got - exact) / unit;
  const simd::f64x16 infinite = simd::fill<simd::f64x16>(HUGE_VAL), zero{};
  const auto normal = size >= 0x1p-126 && size <= 0x1.fffffep127;
  const simd::f64x16 of_number = error == error ? error : infinite;
  const simd::f64x16 of_nan = (exact == exact) != (got == got) ? infinite : zero;
  return normal ? of_number : of_nan;
}

double Largest(simd::f64x16 worst) {
  double largest = 0;
  for (int k = 0; k < 16; ++k) largest = std::max(largest, worst[k]);
  return largest;
}

f32x16 Floats(unsigned first, unsigned step) {
  const auto lanes = simd::iota<simd::i32x16>() * static_cast<int>(step) + static_cast<int>(first);
  return simd::from_bits<f32x16>(lanes);
}

// Whose last place is the unit of an error.
enum class Of { kResult, kArgument };

// Arguments are the bit patterns part, part + parts, ... below `end` in groups of sixteen.
template <typename Function, typename Reference>
double WorstOf(unsigned part, unsigned parts, unsigned long long end, Function function, Reference reference,
               Of of = Of::kResult) {
  simd::f64x16 worst{};
  for (unsigned long long group = part; group < end / 16; group += parts) {
    const f32x16 x = Floats(static_cast<unsigned>(group) * 16, 1);
    const simd::f64x16 wide = __builtin_convertvector(x, simd::f64x16), exact = BySixteen(reference, wide);
    const simd::f64x16 error = Errors(function(x), exact, of == Of::kResult ? exact : wide);
    worst = error > worst ? error : worst;
  }
  return Largest(worst);
}

// 2^28 pairs, every second one of numbers between 2^-8 and 2^8.
template <typename Function, typename Reference>
double WorstOfPairs(unsigned part, unsigned parts, Function function, Reference reference) {
  simd::f64x16 worst{};
  for (unsigned group = part; group < (1u << 24); group += parts) {
    f32x16 x = Floats(group * 2654435761u, 40503u), y = Floats(group * 2246822519u, 3266489917u);
    if (group % 2 == 1) {
      const auto moderate = [](f32x16 v) { return simd::from_bits<f32x16>((simd::bits(v) & 0x7ffffff) + 0x3b800000); };
      x = group % 4 == 1 ? moderate(x) : simd::abs(moderate(x));
      y = group % 8 < 4 ? moderate(y) : -moderate(y);
    }
    const simd::f64x16 exact =
        BySixteen(reference, __builtin_convertvector(x, simd::f64x16), __builtin_convertvector(y, simd::f64x16));
    const simd::f64x16 error = Errors(function(x, y), exact, exact);
    worst = error > worst ? error : worst;
  }
  return Largest(worst);
}

double ErrorOf(double got, long double exact, long double of) {
  if (!std::isnormal(static_cast<double>(of))) return std::isnan(exact) == std::isnan(got) ? 0 : HUGE_VAL;
  int exponent;
  std::frexp(of, &exponent);
  const auto error = static_cast<double>(std::fabs(got - exact) / std::ldexp(1.0L, exponent - 53));
  return std::isnan(error) ? HUGE_VAL : error;
}

// Half of them bit patterns from the first to the last, the others between 2^-6 and 2^10 in size.
double Double(unsigned long long k, unsigned long long stride) {
  unsigned long long bits = k * stride;
  if (k % 2 == 1) bits = (bits & 0x80ffffffffffffffull) + (1017ull << 52);
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

template <typename Function, typename Reference>
double WorstOfDoubles(unsigned part, unsigned parts, Function function, Reference reference, Of of = Of::kResult) {
  double worst = 0;
  for (unsigned long long k = part; k < (1ull << 24); k += parts) {
    const double x = Double(k, (1ull << 40) + 12345);
    const long double exact = reference(static_cast<long double>(x));
    worst = std::max(worst, ErrorOf(function(x), exact, of == Of::kResult ? exact : x));
  }
  return worst;
}

template <typename Function, typename Reference>
double WorstOfDoublePairs(unsigned part, unsigned parts, Function function, Reference reference) {
  double worst = 0;
  for (unsigned long long k = part; k < (1ull << 24); k += parts) {
    const double x = Double(k, 0x9e3779b97f4a7c15ull), y = Double(k, 0xc2b2ae3d27d4eb4full);
    const long double exact = reference(static_cast<long double>(x), static_cast<long double>(y));
    worst = std::max(worst, ErrorOf(function(x, y), exact, exact));
  }
  return worst;
}

unsigned every = 1;

// Runs part(k, parts) on every processor; the largest of the results.
template <typename Part>
double OnAllProcessors(const Part& part) {
  const unsigned parts = std::max(1u, std::thread::hardware_concurrency());
  std::vector<double> worst(parts);
  std::vector<std::thread> threads;
  for (unsigned k = 0; k < parts; ++k) threads.emplace_back([&, k] { worst[k] = part(k, parts * every); });
  for (std::thread& thread : threads) thread.join();
  return *std::max_element(worst.begin(), worst.end());
}

std::vector<std::string> chosen;

template <typename Single, typename Double>
void Report(const char* name, const Single& single, const Double& wide) {
  if (!chosen.empty() && std::find(chosen.begin(), chosen.end(), name) == chosen.end()) return;
  std::printf("| %s | %.2f |", name, OnAllProcessors(single));
  std::printf(" %.2f |\n", OnAllProcessors(wide));
  std::fflush(stdout);
}

}  // namespace

// Newton's method from the prelude's result gives what the library has no function for.
namespace reference {

inline Doubles erfinv(Doubles x) {
  const Doubles y = simd::erfinv(x), size = simd::abs(x), half = simd::abs(y);
  const Doubles off = size < 0.5 ? erf(half) - size : (1 - size) - erfc(half);
  const Doubles root = half - off * exp(half * half) * 0.886226925452758013649;
  return (size < 1.0) & (size > 1e-100) ? simd::detail::with_sign_of(root, x) : y;
}

inline Doubles lgamma(Doubles x) {
  Doubles y;
  for (std::size_t k = 0; k < sizeof x / sizeof x[0]; ++k) {
    int sign;
    y[k] = lgamma_r(x[k], &sign);
  }
  return y;
}

inline Doubles tgamma(Doubles x) {
  Doubles y;
  for (std::size_t k = 0; k < sizeof x / sizeof x[0]; ++k) y[k] = std::tgamma(x[k]);
  return y;
}

inline long double erfinv(long double x) {
  const double start = simd::erfinv(static_cast<double>(x));
  if (!std::isfinite(start) || std::fabs(start) < 1e-100) return start;
  const long double y = std::fabs(start), size = std::fabs(x);
  const long double off = size < 0.5L ? std::erf(y) - size : (1 - size) - std::erfc(y);
  return std::copysign(y - off * std::exp(y * y) * 0.886226925452758013649083741670572591L, x);
}

}  // namespace reference

#define UMBRA_REPORT_CALLS(name, end, function, wide)                                                      \
  Report(                                                                                                  \
      #name,                                                                                               \
      [](unsigned k, unsigned parts) {                                                                     \
        return WorstOf(                                                                                    \
            k, parts, end, [](auto x) { return function(x); }, [](auto x) { return reference::name(x); }); \
      },                                                                                                   \
      [](unsigned k, unsigned parts) {                                                                     \
        return WorstOfDoubles(                                                                             \
            k, parts, [](auto x) { return function(x); }, [](auto x) { return wide(x); });                 \
      })
#define UMBRA_REPORT_BELOW(name, end) UMBRA_REPORT_CALLS(name, end, simd::name, std::name)
#define UMBRA_REPORT(name) UMBRA_REPORT_BELOW(name, 1ull << 32)
// Of an odd or even function that works on |x|: positive numbers do.
#define UMBRA_REPORT_HALF(name) UMBRA_REPORT_BELOW(name, 1ull << 31)
// An operator of the table; of a composite its expression as a whole.
#define UMBRA_REPORT_OPERATOR(name) UMBRA_REPORT_CALLS(name, 1ull << 32, op::name::MapPacket, reference::name)

#define UMBRA_REPORT_PAIRS(name)                                       \
  Report(                                                              \
      #name,                                                           \
      [](unsigned k, unsigned parts) {                                 \
        return WorstOfPairs(                                           \
            k, parts, [](auto x, auto y) { return simd::name(x, y); }, \
            [](auto x, auto y) { return reference::name(x, y); });     \
      },                                                               \
      [](unsigned k, unsigned parts) {                                 \
        return WorstOfDoublePairs(                                     \
            k, parts, [](auto x, auto y) { return simd::name(x, y); }, \
            [](auto x, auto y) { return std::name(x, y); });           \
      })

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "--every") == 0) {
    every = static_cast<unsigned>(std::max(1, std::atoi(argv[2])));
    argv += 2;
    argc -= 2;
  }
  chosen.assign(argv + 1, argv + argc);
  UMBRA_REPORT(exp);
  UMBRA_REPORT(expm1);
  UMBRA_REPORT(exp2);
  UMBRA_REPORT(log);
  UMBRA_REPORT(log1p);
  UMBRA_REPORT(log2);
  UMBRA_REPORT_HALF(sin);
  UMBRA_REPORT_HALF(cos);
  UMBRA_REPORT_HALF(tan);
  UMBRA_REPORT_HALF(asin);
  UMBRA_REPORT(acos);
  UMBRA_REPORT_HALF(atan);
  UMBRA_REPORT_HALF(sinh);
  UMBRA_REPORT_HALF(cosh);
  UMBRA_REPORT_HALF(tanh);
  UMBRA_REPORT_HALF(cbrt);
  UMBRA_REPORT_HALF(erf);
  UMBRA_REPORT(erfc);
  Report(
      "erfinv",
      [](unsigned k, unsigned parts) {
        return WorstOf(
            k, parts, 1ull << 31, [](auto x) { return simd::erfinv(x); }, [](auto x) { return reference::erfinv(x); });
      },
      [](unsigned k, unsigned parts) {
        return WorstOfDoubles(
            k, parts, [](auto x) { return simd::erfinv(x); }, [](auto x) { return reference::erfinv(x); });
      });
  UMBRA_REPORT_HALF(asinh);
  UMBRA_REPORT_HALF(acosh);
  UMBRA_REPORT_HALF(atanh);
  Report(
      "lgamma",
      [](unsigned k, unsigned parts) {  // one in sixteen: the reference is slow
        return WorstOf(
            k, 16 * parts, 1ull << 32, [](auto x) { return simd::lgamma(x); },
            [](auto x) { return reference::lgamma(x); });
      },
      [](unsigned k, unsigned parts) {  // of |x|: below 0 there are zeros at which f64 has no more digits
        return WorstOfDoubles(
            k, parts, [](auto x) { return simd::lgamma(simd::abs(x)); },
            [](auto x) { return std::lgamma(std::fabs(x)); });
      });
  Report(
      "tgamma",
      [](unsigned k, unsigned parts) {  // one in sixteen, too
        return WorstOf(
            k, 16 * parts, 1ull << 32, [](auto x) { return simd::tgamma(x); },
            [](auto x) { return reference::tgamma(x); });
      },
      [](unsigned k, unsigned parts) {
        return WorstOfDoubles(
            k, parts, [](auto x) { return simd::tgamma(x); }, [](auto x) { return std::tgamma(x); });
      });
  UMBRA_REPORT_PAIRS(pow);
  UMBRA_REPORT_PAIRS(atan2);
  UMBRA_REPORT_OPERATOR(rsqrt);
  UMBRA_REPORT_OPERATOR(sigmoid);
  UMBRA_REPORT_OPERATOR(log_sigmoid);
  UMBRA_REPORT_OPERATOR(softplus);
  UMBRA_REPORT_OPERATOR(silu);
  UMBRA_REPORT_OPERATOR(mish);
  UMBRA_REPORT_OPERATOR(gelu_erf);
  Report(
      "gelu",
      [](unsigned k, unsigned parts) {  // from -10 on, whose pattern this is: a little below exp2 overflows
        return WorstOf(
            k, parts, 0xc1200000u, [](auto x) { return op::gelu::MapPacket(x); },
            [](auto x) { return reference::gelu(x); });
      },
      [](unsigned k, unsigned parts) {  // from -21 on
        return WorstOfDoubles(
            k, parts, [](auto x) { return op::gelu::Map(std::max(x, -21.0)); },
            [](auto x) { return reference::gelu(std::max(x, -21.0L)); });
      });
  Report(
      "gelu/argument",
      [](unsigned k, unsigned parts) {
        return WorstOf(
            k, parts, 1ull << 32, [](auto x) { return op::gelu::MapPacket(x); },
            [](auto x) { return reference::gelu(x); }, Of::kArgument);
      },
      [](unsigned k, unsigned parts) {
        return WorstOfDoubles(
            k, parts, [](auto x) { return op::gelu::Map(x); }, [](auto x) { return reference::gelu(x); },
            Of::kArgument);
      });
}
