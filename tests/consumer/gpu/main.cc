// The same calls on the CPU and on a GPU.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "kernels.h"
#include "nn.h"

int main(int argc, char** argv) {
  using namespace umbra;
  const index_t rows = 7, columns = 33;
  TensorContainer<cpu, 2> x(Shape2(rows, columns)), y(x.shape_), back(x.shape_);
  TensorContainer<cpu, 1> bias(Shape1(columns), 0.25f);
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) x[i][j] = static_cast<float>((i * 7 + j * 3) % 23) / 8 - 1;
  int failures = 0;
  const auto compare = [&](const char* what) {
    float most = 0;
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j) most = std::fmax(most, std::fabs(y[i][j] - back[i][j]));
    if (most < 1e-6f) return;
    std::printf("failed: %s differs by %g\n", what, static_cast<double>(most));
    ++failures;
  };
  bias_swish(y, x, bias, 1.5f);
  if (std::fabs(y[0][0] + 0.75f / (1 + std::exp(0.75f * 1.5f))) > 1e-6f)
    std::printf("failed: bias_swish\n"), ++failures;
  if (argc > 1 && std::strcmp(argv[1], "cpu") == 0) return std::printf("cpu\n"), failures;
  try {
    Stream<gpu> stream;
    TensorContainer<gpu, 2> gx(x.shape_), gy(x.shape_);
    TensorContainer<gpu, 1> gbias(bias.shape_);
    gx.set_stream(&stream), gy.set_stream(&stream), gbias.set_stream(&stream);
    Copy<2, float>(gx, x, &stream);
    Copy<1, float>(gbias, bias, &stream);
    bias_swish(gy, gx, gbias, 1.5f);
    Copy<2, float>(back, gy, &stream);
    compare("bias_swish");
    nn::scale(x, 3.0f, y);
    nn::scale(gx, 3.0f, gy);
    Copy<2, float>(back, gy, &stream);
    compare("scale of tensors");
    nn::scale(TBlob(y), 2.0f, TBlob(y));
    stream.Wait();
    nn::scale(TBlob(gy), 2.0f, TBlob(gy));
    Copy<2, float>(back, gy);
    compare("scale of blobs");
    try {
      nn::scale(TBlob(gy), 2.0f, TBlob(y));
      ++failures;
    } catch (const Error& error) { std::printf("%s\n", error.what()); }
    try {
      looped(gy, 3);
      ++failures;
    } catch (const Error& error) { std::printf("%s\n", error.what()); }
  } catch (const Error& error) {
    std::printf("no GPU: %s\n", error.what());
    return failures + 1;
  }
  std::printf("cpu and gpu, sm_%s\n", nn_kernels[0].gpu->architectures + 3);
  return failures;
}
