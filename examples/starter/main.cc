#include <algorithm>
#include <chrono>
#include <cstdio>

#include "kernels.h"

// The shortest of 20 runs, in milliseconds.
template <typename Run>
double Milliseconds(const Run& run) {
  double best = 1e9;
  for (int k = 0; k < 20; ++k) {
    const auto start = std::chrono::steady_clock::now();
    run();
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

int main() {
  using namespace umbra;
  const index_t rows = 4096, columns = 1024;
  TensorContainer<cpu, 2> x(Shape2(rows, columns)), y(x.shape_);
  TensorContainer<cpu, 1> bias(Shape1(columns), 0.5f), mean(Shape1(rows)), scale(Shape1(rows));
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) x[i][j] = static_cast<float>((i + j * j) % 17) - 8;

  const double swish = Milliseconds([&] { bias_swish(y, x, bias, 1.5f); });
  std::printf("bias_swish   y[0][0] = %8.5f   %6.2f ms\n", y[0][0], swish);
  const double standard = Milliseconds([&] { standardize(y, mean, scale, x); });
  std::printf("standardize  y[0][0] = %8.5f   %6.2f ms\n", y[0][0], standard);

  try {
    bias_swish(y, x, mean, 1.5f);  // as many biases as rows
  } catch (const Error& error) { std::printf("a mistake:   %s\n", error.what()); }
}
