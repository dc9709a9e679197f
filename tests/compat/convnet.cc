// A convolution by patch2col, a pooling layer, and their gradients, against plain loops.
#include <cmath>
#include <cstdio>

#include "mshadow/random.h"
#include "mshadow/tensor.h"

using namespace mshadow;
using namespace mshadow::expr;

struct relu {
  MSHADOW_XINLINE static real_t Map(real_t a) { return a > 0 ? a : 0; }
};
struct relu_grad {
  MSHADOW_XINLINE static real_t Map(real_t a) { return a > 0 ? 1 : 0; }
};

int main(void) {
  const index_t num = 3, channels = 2, height = 8, width = 9, filters = 4, ksize = 3;
  const index_t oh = height - ksize + 1, ow = width - ksize + 1;
  Random<cpu, real_t> rnd(5);
  TensorContainer<cpu, 4, real_t> in(Shape4(num, channels, height, width));
  TensorContainer<cpu, 2, real_t> kernel(Shape2(filters, channels * ksize * ksize));
  rnd.SampleUniform(&in, -1.0f, 1.0f);
  rnd.SampleUniform(&kernel, -1.0f, 1.0f);

  TensorContainer<cpu, 2, real_t> col(Shape2(channels * ksize * ksize, num * oh * ow));
  TensorContainer<cpu, 2, real_t> dst(Shape2(filters, num * oh * ow));
  TensorContainer<cpu, 4, real_t> conv(Shape4(num, filters, oh, ow)), act(conv.shape_);
  col = unpack_patch2col(in, ksize, ksize, 1, 1, 1, 1);
  dst = dot(kernel, col);
  conv = swapaxis<1, 0>(reshape(dst, Shape4(filters, num, oh, ow)));
  act = F<relu>(conv);
  TensorContainer<cpu, 4, real_t> pooled(Shape4(num, filters, (oh + 1) / 2, (ow + 1) / 2));
  pooled = pool<red::maximum>(act, Shape2(pooled.size(2), pooled.size(3)), 2, 2, 2, 2);  // windows at the edge are cut

  int wrong = 0;
  for (index_t n = 0; n < num; ++n)
    for (index_t f = 0; f < filters; ++f)
      for (index_t y = 0; y < oh; ++y)
        for (index_t x = 0; x < ow; ++x) {
          double sum = 0;
          for (index_t c = 0; c < channels; ++c)
            for (index_t i = 0; i < ksize; ++i)
              for (index_t j = 0; j < ksize; ++j)
                sum += static_cast<double>(kernel[f][(c * ksize + i) * ksize + j]) *
                       static_cast<double>(in[n][c][y + i][x + j]);
          wrong += std::fabs(sum - static_cast<double>(conv[n][f][y][x])) > 1e-5;
        }
  for (index_t n = 0; n < num; ++n)
    for (index_t f = 0; f < filters; ++f)
      for (index_t y = 0; y < oh; y += 2)
        for (index_t x = 0; x < ow; x += 2) {
          float most = 0;
          for (index_t i = y; i < oh && i < y + 2; ++i)
            for (index_t j = x; j < ow && j < x + 2; ++j) most = std::max(most, act[n][f][i][j]);
          wrong += pooled[n][f][y / 2][x / 2] != most;
        }

  // The gradient of the sum of `pooled` by the input, against a difference quotient.
  TensorContainer<cpu, 4, real_t> gpool(pooled.shape_, 1.0f), gact(act.shape_), gin(in.shape_);
  gact = unpool<red::maximum>(act, pooled, gpool, 2, 2, 2, 2) * F<relu_grad>(conv);
  dst = reshape(swapaxis<1, 0>(gact), dst.shape_);
  col = dot(kernel.T(), dst);
  gin = pack_col2patch(col, in.shape_, ksize, ksize, 1, 1, 1, 1);
  const float h = 1e-3f;
  const auto loss = [&]() {
    col = unpack_patch2col(in, ksize, ksize, 1, 1, 1, 1);
    dst = dot(kernel, col);
    pooled = pool<red::maximum>(F<relu>(swapaxis<1, 0>(reshape(dst, Shape4(filters, num, oh, ow)))),
                                Shape2(pooled.size(2), pooled.size(3)), 2, 2, 2, 2);
    double sum = 0;
    for (index_t n = 0; n < num; ++n)
      for (index_t f = 0; f < filters; ++f)
        for (index_t y = 0; y < pooled.size(2); ++y)
          for (index_t x = 0; x < pooled.size(3); ++x) sum += static_cast<double>(pooled[n][f][y][x]);
    return sum;
  };
  const double before = loss();
  for (index_t k = 0; k < 8; ++k) {
    float& element = in[k % num][k % channels][k][(3 * k) % width];
    const float kept = element;
    element += h;
    const double quotient = (loss() - before) / static_cast<double>(h);
    element = kept;
    wrong += std::fabs(quotient - static_cast<double>(gin[k % num][k % channels][k][(3 * k) % width])) > 0.05;
  }
  std::printf(wrong == 0 ? "convnet: done\n" : "convnet: %d wrong\n", wrong);
  return wrong != 0;
}
