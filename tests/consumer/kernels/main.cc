// Runs the kernels, compares them with loops in double, and says what it ran.
#include <cmath>
#include <cstdio>
#include <vector>

#include "nn.h"

namespace {

int failures = 0;

void Check(bool good, const char* what) {
  if (good) return;
  std::printf("failed: %s\n", what);
  ++failures;
}

bool Near(double a, double b, double relative) { return std::abs(a - b) <= relative * std::abs(b); }

}  // namespace

int main() {
  using namespace umbra;
  const index_t rows = 37, columns = 101, depth = 19;
  TensorContainer<cpu, 2> x(Shape2(rows, columns)), y(Shape2(rows, columns)), a(Shape2(rows, depth)),
      w(Shape2(depth, columns));
  TensorContainer<cpu, 1> bias(Shape1(columns));
  TensorContainer<cpu, 2, double> z(Shape2(rows, columns)), s(Shape2(rows, columns));
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) {
      x[i][j] = static_cast<float>((i * 7 + j * 3) % 23) / 8 - 1;
      z[i][j] = x[i][j];
      bias[j] = static_cast<float>(j % 5) / 4;
      if (j < depth) a[i][j] = static_cast<float>((i + j) % 7);
      if (i < depth) w[i][j] = static_cast<float>((i * j) % 11) - 5;
    }

  const float beta = 1.5f;
  nn::bias_swish(x, bias, beta, y);
  bool swish = true;
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) {
      const double v = double{x[i][j]} + bias[j];
      swish = swish && (v == 0 ? y[i][j] == 0 : Near(y[i][j], v / (1 + std::exp(-beta * v)), 1e-6));
    }
  Check(swish, "bias_swish");

  TensorContainer<cpu, 1> angles(Shape1(columns)), waves(Shape1(columns));
  for (index_t j = 0; j < columns; ++j) angles[j] = static_cast<float>(j) * 123456.7f;
  nn::wave(angles, waves);
  bool wave = true;
  for (index_t j = 0; j < columns; ++j) wave = wave && std::abs(waves[j] - std::sin(double{angles[j]})) < 1e-6;
  Check(wave, "wave");

  double total = 0;
  nn::row_softmax(z, s, &total);
  bool softmax = true;
  for (index_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (index_t j = 0; j < columns; ++j) sum += std::exp(z[i][j]);
    for (index_t j = 0; j < columns; ++j) softmax = softmax && Near(s[i][j], std::exp(z[i][j]) / sum, 1e-12);
  }
  Check(softmax && Near(total, static_cast<double>(rows), 1e-12), "row_softmax");

  nn::layer(TBlob(a), TBlob(w), TBlob(bias), TBlob(y));
  bool layer = true;
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) {
      double v = bias[j];
      for (index_t k = 0; k < depth; ++k) v += double{a[i][k]} * w[k][j];
      layer = layer && Near(y[i][j], v > 0 ? v : 0, 1e-6);
    }
  Check(layer, "layer");

  try {
    nn::bias_swish(x, Tensor<cpu, 1>(bias.dptr_, Shape1(3)), beta, y);
    Check(false, "an operand that does not fit is an error");
  } catch (const Error& error) { std::printf("%s\n", error.what()); }
  std::printf("%s %.4f\n", umbra_kernel_target(&nn_kernels[0]), static_cast<double>(s[0][0]));
  return failures;
}
