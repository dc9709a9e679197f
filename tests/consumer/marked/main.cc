// Calls the functions as if nothing had happened to them, and compares them with loops in double.
#include <cmath>
#include <cstdio>

#include "kernels.h"

int main() {
  using namespace umbra;
  const index_t rows = 37, columns = 101;
  TensorContainer<cpu, 2> x(Shape2(rows, columns)), y(x.shape_), w(x.shape_, 1.0f), v(x.shape_, 2.0f);
  TensorContainer<cpu, 1> bias(Shape1(columns));
  TensorContainer<cpu, 1, double> d(Shape1(5), -8.0);
  int failures = 0;
  const auto check = [&](bool good, const char* what) {
    if (!good) std::printf("failed: %s\n", what), ++failures;
  };
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) {
      x[i][j] = static_cast<float>((i * 7 + j * 3) % 23) / 8 - 1;
      bias[j] = static_cast<float>(j % 5) / 4;
    }
  nn::bias_swish(y, x, bias, 1.5f);
  nn::momentum(w, v, x, 0.25f);
  bool swish = true, momentum = true;
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) {
      const double s = double{x[i][j]} + bias[j], step = 1 - 0.25 * x[i][j];
      swish = swish && std::abs(y[i][j] - s / (1 + std::exp(-1.5 * s))) < 1e-6;
      momentum = momentum && v[i][j] == static_cast<float>(step) && w[i][j] == 1 + v[i][j];
    }
  check(swish, "bias_swish");
  check(momentum, "momentum");
  scale(y, x);
#ifdef NDEBUG
  check(y[3][5] == x[3][5] * 3, "scale");
#else
  check(y[3][5] == x[3][5] * 6, "scale");
#endif
  TensorContainer<cpu, 1> loss(Shape1(rows));
  losses::squared(loss, x, y);
  bool squared = true;
  for (index_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (index_t j = 0; j < columns; ++j) sum += (double{x[i][j]} - y[i][j]) * (double{x[i][j]} - y[i][j]);
    squared = squared && std::abs(loss[i] - sum / columns) < 1e-6 * (1 + sum / columns);
  }
  check(squared, "squared");
  nn::activate<double>(d, d);
  std::printf("activate %g\n", d[3]);
  nn::looped(bias, 3);
  check(bias[1] == 3.25f, "looped");
  nn::halve<float>(bias, bias);
  losses::halved(bias);
  halved(bias);
  check(bias[1] == 3.25f / 8, "halve");
  shift(bias);
  check(bias[1] == 3.25f / 8 + 0.5f, "shift");
  try {
    nn::momentum(w, w, x, 0.25f);
    std::printf("overlap: none\n");
  } catch (const Error& error) { std::printf("overlap: %s\n", error.what()); }
  std::printf("done\n");
  return failures;
}
