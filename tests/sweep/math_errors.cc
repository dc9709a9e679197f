// The largest error of the prelude's polynomials over every f32 argument whose result is normal, in units
// in the last place, against the C library in f64: the table of docs/numerics.md.
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
void Report(const char* name, Function function, Reference reference) {
  const unsigned parts = std::max(1u, std::thread::hardware_concurrency());
  std::vector<double> worst(parts);
  std::vector<std::thread> threads;
  for (unsigned part = 0; part < parts; ++part)
    threads.emplace_back([&, part] { worst[part] = WorstOf(part, parts, function, reference); });
  for (std::thread& thread : threads) thread.join();
  double most = 0;
  for (double w : worst) most = std::max(most, w);
  std::printf("| %s | %.2f |\n", name, most);
  std::fflush(stdout);
}

}  // namespace

#define UMBRA_REPORT(name) \
  Report(#name, [](V x) { return umbra::simd::name(x); }, [](double x) { return std::name(x); })

int main() {
  UMBRA_REPORT(exp);
  UMBRA_REPORT(expm1);
  UMBRA_REPORT(log);
  UMBRA_REPORT(log1p);
  UMBRA_REPORT(tanh);
}
