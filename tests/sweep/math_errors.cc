// The largest error of the prelude's polynomials, in units in the last place, where the result is normal:
// over every f32 argument against the C library in f64, and over 16 million f64 arguments from the first bit
// pattern to the last against it in extended precision. The table of docs/numerics.md.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "umbra/kernel_prelude.h"
#include "umbra/prelude/math.h"

namespace {

using V = umbra::simd::f32x16;

// Arguments are the bit patterns part, part + parts, ... in groups of sixteen.
template <typename Function, typename Reference>
double WorstOf(unsigned part, unsigned parts, Function function, Reference reference) {
  double worst = 0;
  for (unsigned long long group = part; group < (1ull << 28); group += parts) {
    V x;
    for (unsigned k = 0; k < 16; ++k) {
      const unsigned bits = static_cast<unsigned>(group) * 16 + k;
      float argument;
      std::memcpy(&argument, &bits, sizeof argument);
      x[k] = argument;
    }
    const V y = function(x);
    for (int k = 0; k < 16; ++k) {
      const double exact = reference(static_cast<double>(x[k]));
      if (!std::isnormal(static_cast<float>(exact))) continue;
      int exponent;
      std::frexp(exact, &exponent);
      const double error = std::fabs(static_cast<double>(y[k]) - exact) / std::ldexp(1.0, exponent - 24);
      if (!(error <= worst)) worst = std::isnan(error) ? HUGE_VAL : error;
    }
  }
  return worst;
}

template <typename Function, typename Reference>
double WorstOfDoubles(unsigned part, unsigned parts, Function function, Reference reference) {
  double worst = 0;
  for (unsigned long long k = part; k < (1ull << 24); k += parts) {
    const unsigned long long bits = k * ((1ull << 40) + 12345);
    double x;
    std::memcpy(&x, &bits, sizeof x);
    const long double exact = reference(static_cast<long double>(x));
    if (!std::isnormal(static_cast<double>(exact))) continue;
    int exponent;
    std::frexp(exact, &exponent);
    const auto error = static_cast<double>(std::fabs(function(x) - exact) / std::ldexp(1.0L, exponent - 53));
    if (!(error <= worst)) worst = std::isnan(error) ? HUGE_VAL : error;
  }
  return worst;
}

// Runs part(k, parts) on every processor; the largest of the results.
template <typename Part>
double OnAllProcessors(const Part& part) {
  const unsigned parts = std::max(1u, std::thread::hardware_concurrency());
  std::vector<double> worst(parts);
  std::vector<std::thread> threads;
  for (unsigned k = 0; k < parts; ++k) threads.emplace_back([&, k] { worst[k] = part(k, parts); });
  for (std::thread& thread : threads) thread.join();
  return *std::max_element(worst.begin(), worst.end());
}

template <typename Function, typename Reference>
void Report(const char* name, Function function, Reference reference) {
  const double f32 = OnAllProcessors([&](unsigned k, unsigned parts) { return WorstOf(k, parts, function, reference); });
  const double f64 =
      OnAllProcessors([&](unsigned k, unsigned parts) { return WorstOfDoubles(k, parts, function, reference); });
  std::printf("| %s | %.2f | %.2f |\n", name, f32, f64);
  std::fflush(stdout);
}

}  // namespace

#define UMBRA_REPORT(name) \
  Report(#name, [](auto x) { return umbra::simd::name(x); }, [](auto x) { return std::name(x); })

int main() {
  UMBRA_REPORT(exp);
  UMBRA_REPORT(expm1);
  UMBRA_REPORT(log);
  UMBRA_REPORT(log1p);
  UMBRA_REPORT(tanh);
}
