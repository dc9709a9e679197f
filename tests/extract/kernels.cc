// Kernels of every form that umbra-extract reads. They are run eagerly, and their graphs beside them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "umbra/tensor.h"

using namespace umbra;
using namespace umbra::expr;

UMBRA_OP(swish, (x, beta), x / (1 + exp(-beta * x)))

// User operators of mshadow's style.
struct addone {
  static float Map(float a) { return a + 1.0f; }
};
struct maxoftwo {
  template <typename DType>
  static DType Map(DType a, DType b) {
    if (a > b) return a;
    return b;
  }
};
struct huber {
  template <typename DType>
  static DType Map(DType x, DType delta) {
    const DType size = std::abs(x);
    DType result = size * size;
    if (size > delta) {
      DType linear = delta * (size + size - delta);
      result = linear;
    } else if (size == delta) {
      result -= DType(0);
    }
    return result / 2;
  }
};
struct horner {
  static float Map(float x) {
    constexpr float kCoefficients[] = {1.0f, 0.5f, 0.25f, 0.125f};
    float sum = 0;
    for (int k = 3; k >= 0; --k) sum = sum * x + kCoefficients[k];
    return x < -1 ? std::floor(x) : x > 1 ? std::min(sum, 4.0f) : sum;
  }
};
struct logistic {
  static double Map(double a) { return 1.0 / (1.0 + std::exp(-a)); }
};
struct twice_logistic {
  static float Map(float a) { return static_cast<float>(2 * logistic::Map(a)) + op::square::Map(a); }
};
struct bucket {
  static int Map(int a) { return (a % 7 + (a > 0 && a < 20)) * 3; }
};

constexpr float Scale(int n) { return n <= 1 ? 1.0f : 0.5f * Scale(n - 1); }
constexpr float Mix(float a, float b) { return a * 0.75f + b * Scale(3); }

UMBRA_KERNEL void bias_swish(Tensor<cpu, 2> y, Tensor<cpu, 2> x, Tensor<cpu, 1> bias, float beta) {
  y = F<swish>(x + broadcast<1>(bias, x.shape_), scalar(beta));
}

UMBRA_KERNEL void arithmetic(Tensor<cpu, 2> y, const Tensor<cpu, 2>& a, const Tensor<cpu, 2>& b) {
  y = (a * 2.0f - b) / (1.5f + F<op::abs>(b));
}

// Several statements: later ones read what earlier ones wrote.
UMBRA_KERNEL void momentum(Tensor<cpu, 2> weight, Tensor<cpu, 2> velocity, Tensor<cpu, 2> gradient, float rate,
                           float decay) {
  velocity *= decay;
  velocity -= rate * gradient;
  weight += velocity;
}

UMBRA_KERNEL void layer_norm(Tensor<cpu, 2> y, Tensor<cpu, 2> x, Tensor<cpu, 1> gain, Tensor<cpu, 1> mean) {
  mean = reduce_with_axis<red::mean>(x, 1);
  TensorContainer<cpu, 2> centred(x.shape_);
  centred = x - broadcast<0>(mean, x.shape_);
  TensorContainer<cpu, 1> deviation(mean.shape_);
  deviation = F<op::sqrt>(reduce_with_axis<red::mean>(centred * centred, 1) + 1e-5f);
  y = centred / broadcast<0>(deviation, x.shape_) * broadcast<1>(gain, x.shape_);
}

UMBRA_KERNEL void softmax(Tensor<cpu, 2> y, Tensor<cpu, 2> x) {
  y = F<op::exp>(x - broadcast<0>(reduce_with_axis<red::maximum>(x, 1), x.shape_));
  TensorContainer<cpu, 1> sum(Shape1(y.size(0)));
  sum = reduce_with_axis<red::sum>(y, 1);
  y /= broadcast<0>(sum, y.shape_);
}

UMBRA_KERNEL void dense(Tensor<cpu, 2> y, Tensor<cpu, 2> x, Tensor<cpu, 2> weight, Tensor<cpu, 1> bias) {
  y = dot(x, weight.T());
  y = F<op::relu>(y + broadcast<1>(bias, y.shape_));
}

UMBRA_KERNEL void scaled_dot(Tensor<cpu, 2> y, Tensor<cpu, 2> a, Tensor<cpu, 2> b, float alpha) {
  y += 0.5f * dot(a, b);
  y -= alpha * dot(a, b);
}

UMBRA_KERNEL void batches(Tensor<cpu, 3> y, Tensor<cpu, 3> a, Tensor<cpu, 3> b) { y = batch_dot<false, true>(a, b); }

UMBRA_KERNEL void user_operators(Tensor<cpu, 2> y, Tensor<cpu, 2> a, Tensor<cpu, 2> b) {
  y = F<maxoftwo>(F<addone>(a) + 2.0f, b) + F<huber>(a, 0.75f) * F<horner>(b);
}

UMBRA_KERNEL void conversions(Tensor<cpu, 2> y, Tensor<cpu, 2> x) { y = F<logistic>(x) + F<twice_logistic>(x); }

UMBRA_KERNEL void integers(Tensor<cpu, 2, int> y, Tensor<cpu, 2, int> x, int shift) {
  y = F<bucket>(x + shift) - tcast<int>(tcast<float>(x) * 0.3f);
}

// Locals, helpers, loops and conditions that are known.
template <int kSteps, bool kClamp>
UMBRA_KERNEL void iterate(Tensor<cpu, 2> y, Tensor<cpu, 2> x, float rate) {
  const float step = Mix(rate, Scale(4));
  const auto moved = x * step;
  TensorContainer<cpu, 2> state(x.shape_, 0.25f);
  for (int k = 0; k < kSteps; ++k) {
    if (k % 2 == 0) state = state + moved;
    else state *= 1.0f - step;
  }
  if (kClamp) y = F<op::minimum>(1, state);
  else y = F<op::identity>(state);
  y += 1.0f / static_cast<float>(x.size(1));
}
template UMBRA_KERNEL void iterate<3, true>(Tensor<cpu, 2>, Tensor<cpu, 2>, float);
template UMBRA_KERNEL void iterate<4, false>(Tensor<cpu, 2>, Tensor<cpu, 2>, float);

// Conditions on numbers of the call choose among results.
UMBRA_KERNEL void choose(Tensor<cpu, 1> y, Tensor<cpu, 1> x, float threshold) {
  float factor = 2.0f;
  y = x * 1.0f;
  if (threshold > 0) {
    factor = threshold;
    y = x + 1.0f;
  } else {
    factor *= 3.0f;
  }
  y = x * factor;
  if (threshold < -1) return;
  y += 10.0f;
}

template <typename xpu, typename DType>
UMBRA_KERNEL void axpy(Tensor<xpu, 1, DType> y, Tensor<xpu, 1, DType> x, DType a) {
  y += a * x;
}
template UMBRA_KERNEL void axpy<cpu, float>(Tensor<cpu, 1, float>, Tensor<cpu, 1, float>, float);
template UMBRA_KERNEL void axpy<cpu, double>(Tensor<cpu, 1, double>, Tensor<cpu, 1, double>, double);

UMBRA_KERNEL void both(Tensor<cpu, 1> y, Tensor<cpu, 1> x) {
  axpy(y, x, 2.0f);
  Tensor<cpu, 1> alias = y;
  alias = alias * alias;
}

UMBRA_KERNEL void halves(Tensor<cpu, 2, half_t> y, Tensor<cpu, 2, half_t> x) {
  y = x * x;
  y = y + x;
}

UMBRA_KERNEL void maps(Tensor<cpu, 2> y, Tensor<cpu, 2> x) {
  y = flip(x, 1) +
      mirror(pad(slice<1>(crop(x, Shape2(4, 5), 1, 1), 1, 5), 1)) * swapaxis<0, 1>(transpose(x, Shape2(1, 0)));
}

UMBRA_KERNEL void pooling(Tensor<cpu, 3> y, Tensor<cpu, 3> x) {
  y = pool<red::maximum>(upsampling_nearest(x, 2), 2, 2, 2) + pool<red::sum>(x, 1, 1, 1, 1);
}

UMBRA_KERNEL void running(Tensor<cpu, 2> y, Tensor<cpu, 2> x) {
  y = scan<red::sum>(x, 1) - scan<red::maximum>(x + 1.0f, 0);
}

UMBRA_KERNEL void positions(Tensor<cpu, 1> y, Tensor<cpu, 2> x, Tensor<cpu, 1> ramp) {
  y = reduce_with_axis<red::maximum, true>(x, 1) + sumall_except_dim<0>(x) + sum_rows(x.T());
  ramp = range(1.0f, 4.0f, 0.5f) + reshape(slice_ex(x, Shape2(0, 0), Shape2(2, 6), Shape2(1, 2)), Shape1(6));
}

UMBRA_KERNEL void parts(Tensor<cpu, 2> y, Tensor<cpu, 1> a, Tensor<cpu, 1> b, Tensor<cpu, 2> x) {
  slice<1>(y, 1, 3) += 10.0f * slice<1>(x, 0, 2);
  concat<0>(a, b) = x[1] * 2.0f + x[0][2];
  concat<0>(b, a, y[4]) += concat<0>(slice<0>(x[3], 1, 4), x[0] * 2.0f, slice<0>(x[1], 0, 3));
  flip(y, 1) -= slice(x, Shape2(0, 0), y.shape_);
  slice(y, Shape2(1, 0), Shape2(y.size(0), 2)) *= 2.0f;
}

// Parts of parts, of two tensors and of handles.
UMBRA_KERNEL void parts_of_parts(Tensor<cpu, 2> y, Tensor<cpu, 2, half_t> a, Tensor<cpu, 2, half_t> b, Tensor<cpu, 2> x,
                                 index_t from) {
  slice<0>(slice<1>(y, from, 5), 1, 3) = slice<1>(slice<0>(x, 0, 2), 1, 6 - from);
  slice<1>(flip(y, 1), 0, 2) *= 3.0f;
  slice<1>(concat<1>(a, flip(b, 0)), 2, 5) -= half_t(2.0f);
  concat<0>(slice<0>(y, 4, 5), slice<0>(y, 0, 1)) += slice<0>(x, 2, 4);
  y.Slice(1, 3) *= 0.5f;
  y[3] = x[0] + x[1];
  slice<0>(y[2], 1, from + 2) = 7.0f;
}

UMBRA_KERNEL void norm(Tensor<cpu, 1> y, Tensor<cpu, 2> x) {
  MapReduceKeepHighDim<sv::saveto, red::maximum, 0>(&y, x * 2.0f, 0.5f);
  const Shape<1> shape = Shape1(x.shape_[0]);
  TensorContainer<cpu, 1> first(Shape1(1));
  first = slice<0>(y, 0, 1);
  y -= broadcast_scalar(first, shape);
}

// In place.
UMBRA_KERNEL void normalise(Tensor<cpu, 2> y, Tensor<cpu, 1> mean) {
  mean = sum_rows(y) * 0.1f;
  y -= broadcast<1>(mean, y.shape_);
  TensorContainer<cpu, 1> size(Shape1(y.size(0)));
  size = reduce_with_axis<red::maximum>(F<op::abs>(y), 1);
  y /= broadcast<0>(size, y.shape_);
}

// Arrays, range loops, rank-0 values, index maps with operands of several kinds.
UMBRA_KERNEL float Squared(float a) { return a * a; }
UMBRA_KERNEL void table(TensorContainer<cpu, 2>& y, const TensorContainer<cpu, 2>& x, float a) {
  float weights[2][2] = {{1, 2}, {3, a}};
  int k = 0;
  while (true) {
    if (++k > 4) break;
    if (k == 2) continue;
    weights[1][1] *= weights[0][k % 2];
  }
  for (const float w : weights[1]) y = x * Squared(w);
  TensorContainer<cpu, 2> copy(x);
  copy += y;
  y = copy;
}
struct nested {
  static float Map(float a, float b) {
    float r = 0;
    if (a > 0) {
      if (b > 0) return 1;
      r = 2;
    } else if (b < -1) {
      r = 3;
      return r + a;
    }
    r += 5;
    return r;
  }
};
UMBRA_KERNEL void returns(Tensor<cpu, 2> y, Tensor<cpu, 2> x) { y = F<nested>(x, y); }

// Functions of <cmath> and <algorithm> that are made of others, and memory that is written before it is read.
struct functions {
  template <typename DType>
  static DType Map(DType a, DType b) {
    DType parts[5];
    parts[0] = std::log10(std::abs(a) + 1) + std::asinh(a) + std::acosh(std::abs(b) + 1) + std::atanh(b / 4);
    parts[1] = std::hypot(a, b) + std::hypot(a, b, DType(2)) + std::tgamma(a) / 16 - std::fdim(a, b) +
               std::hypot(DType(0), b - b) + std::lgamma(std::abs(a) + DType(0.5));
    parts[2] = std::copysign(a, b) + (std::signbit(b) ? DType(1) : a) + std::copysign(DType(2), DType(0) * a);
    parts[3] = std::min({a, b, DType(0.5)}) + std::max({a, b}) + std::clamp(a, DType(-1), b > 0 ? b : DType(1));
    parts[4] = static_cast<DType>(std::lround(a) +
                                  std::lrint(b) * (std::isinf(a) || !std::isfinite(b) || std::isnan(b) ? 3 : 1));
    DType sum = std::fmin(a, b) - std::fmax(b, DType(1));
    for (const DType part : parts) sum += part;
    return sum;
  }
};
UMBRA_KERNEL void calls(Tensor<cpu, 2> y, Tensor<cpu, 2> x) { y = F<functions>(x, y); }
UMBRA_KERNEL void calls_wide(Tensor<cpu, 2, double> y, Tensor<cpu, 2, double> x) { y = F<functions>(x, y); }

// Structs of numbers, enumerations, and a switch that is known.
struct Layer {
  float slope;
  int repeats[2];
};
constexpr Layer kLayer = {0.25f, {2, 3}};
struct Gain {
  float by;
};
struct Step {
  float scale = 1.5f, offset;
  constexpr float Of(float a) const { return a * scale + offset; }
};
enum class Kind : int { kPlain, kLeaky = 5, kSteep };
template <Kind kind>
UMBRA_KERNEL void layer(Tensor<cpu, 1> y, Tensor<cpu, 1> x, Kind other) {
  for (int k = 0; k < std::max(kLayer.repeats[1] - 1, 1); ++k) {
    switch (kind) {
      case Kind::kPlain: y = x * 1.0f; break;
      case Kind::kSteep: y += 3.0f; [[fallthrough]];
      case Kind::kLeaky: {
        y += x * kLayer.slope;
        if (k == 0) continue;
        break;
      }
      default: y = 0.0f;
    }
    y *= 2.0f;
  }
  Step step, next{2.0f, 3.0f};
  step.offset = static_cast<float>(x.size(0));
  if (other == Kind::kSteep) {
    next.scale -= 1.0f;
    step = next;
  }
  const Gain gain{0.75f};
  y += x * step.Of(gain.by) - Step{}.offset;
}
template UMBRA_KERNEL void layer<Kind::kPlain>(Tensor<cpu, 1>, Tensor<cpu, 1>, Kind);
template UMBRA_KERNEL void layer<Kind::kLeaky>(Tensor<cpu, 1>, Tensor<cpu, 1>, Kind);
template UMBRA_KERNEL void layer<Kind::kSteep>(Tensor<cpu, 1>, Tensor<cpu, 1>, Kind);
UMBRA_KERNEL void lookup(Tensor<cpu, 2> y, Tensor<cpu, 1> index, Tensor<cpu, 2> x) {
  y = take(index, x) + mask(index, x) * complex_abs(complex_pack(x, x));
}
UMBRA_KERNEL void narrow(Tensor<cpu, 2, half_t> y, Tensor<cpu, 2, half_t> x, Tensor<cpu, 2, uint8_t> m, bool up,
                         signed char c) {
  y = x * half_t(0.3f);
  if (up && c < 3) y += tcast<half_t>(m);
  m += m;
}
template <typename E, typename DType, int etype>
constexpr auto Softcap(const Exp<E, DType, etype>& x, DType cap) {
  return F<op::tanh>(x / cap) * cap;
}
UMBRA_KERNEL void capped(Tensor<cpu, 1> y, Tensor<cpu, 2> x) {
  y = 1.0f / static_cast<float>(x.shape_.Size());
  y += Softcap(x[0] + x[1][2], 2.0f);
}

// Numbers that are known wrap and divide as the machine's do.
constexpr int Halved(int n) { return n / 2; }
UMBRA_KERNEL void folded(Tensor<cpu, 1> y, Tensor<cpu, 1> x) {
  const std::size_t most = ~std::size_t{0} / 2 >> 60;
  const std::int8_t narrow = static_cast<std::int8_t>(200);
  int least = -2147483647 - 1, minus = -1;
  const int wrapped = (least + minus) % 1000;
  y = x * static_cast<float>(most) + static_cast<float>(narrow + Halved(-7)) - static_cast<float>(wrapped) * 0.5f;
  y += static_cast<float>(std::floor(-3) + std::sqrt(4));
}

// Sizes and offsets that only the call knows.
UMBRA_KERNEL void sized(Tensor<cpu, 2> y, Tensor<cpu, 3> x, Tensor<cpu, 1> v) {
  const Shape<2> flat = Shape2(x.size(0) * x.size(1), x.size(2));
  TensorContainer<cpu, 2> rows(flat);
  rows = reshape(x, flat) * 2.0f;
  y = reshape(x, y.shape_) + rows + repmat(v, y.size(0));
}
UMBRA_KERNEL void window(Tensor<cpu, 2> y, Tensor<cpu, 2> x, index_t from, index_t step) {
  y = slice<1>(x.Slice(step - 1, step - 1 + y.size(0)), from * 2, from * 2 + y.size(1));
  y += broadcast<1>(slice<0>(x[from / 2], step, step + y.size(1)), y.shape_);
  slice<1>(y, from, from + step) *= 3.0f;
}

// Functions that are exact or rounded once, to be had to the bit.
template <int function>
struct exact {
  template <typename DType>
  static DType Map(DType a, DType b) {
    int exponent = 0;
    DType whole;
    if constexpr (function == 0) return std::fma(a, b, a) + std::fma(b, DType(3), -a);
    if constexpr (function == 1) return std::fma(a, a, -(a * a));
    if constexpr (function == 2) return std::remainder(a, b);
    if constexpr (function == 3) return std::copysign(a, b);
    if constexpr (function == 4) return std::nextafter(a, b);
    if constexpr (function == 5) return std::logb(a);
    if constexpr (function == 6)
      return std::ldexp(a, static_cast<int>(std::fmin(std::fmax(b, DType(-3000)), DType(3000))));
    if constexpr (function == 7) return std::scalbn(a, -126) + std::scalbln(b, 7L);
    if constexpr (function == 8) return static_cast<DType>(std::ilogb(a));
    if constexpr (function == 9) return std::frexp(a, &exponent) + static_cast<DType>(exponent);
    if constexpr (function == 10) return std::modf(a, &whole);
    if constexpr (function == 11) {
      std::modf(a, &whole);
      return whole;
    }
    if constexpr (function == 12) return std::nearbyint(a) + std::fdim(a, b) + std::fmod(a, b);
    if constexpr (function == 13)
      return static_cast<DType>(std::isgreater(a, b) + 2 * std::isless(a, b) + 4 * std::isunordered(a, b));
    if constexpr (function == 14)
      return static_cast<DType>(std::islessgreater(a, b) + 2 * std::islessequal(a, b) + 4 * std::isgreaterequal(a, b));
    if constexpr (function == 16)
      return std::isinf(a) || std::isinf(b) ? std::hypot(a, b) : std::tgamma(-std::fabs(std::trunc(a)));
    if constexpr (function == 15)
      return static_cast<DType>(std::signbit(a) + 2 * std::isnan(a) + 4 * std::isinf(a) + 8 * std::isfinite(a));
    return a;
  }
};
constexpr int kExact = 17;
template <typename DType>
UMBRA_KERNEL void exactly(Tensor<cpu, 2, DType> y, Tensor<cpu, 1, DType> a, Tensor<cpu, 1, DType> b) {
  y[0] = F<exact<0>>(a, b);
  y[1] = F<exact<1>>(a, b);
  y[2] = F<exact<2>>(a, b);
  y[3] = F<exact<3>>(a, b);
  y[4] = F<exact<4>>(a, b);
  y[5] = F<exact<5>>(a, b);
  y[6] = F<exact<6>>(a, b);
  y[7] = F<exact<7>>(a, b);
  y[8] = F<exact<8>>(a, b);
  y[9] = F<exact<9>>(a, b);
  y[10] = F<exact<10>>(a, b);
  y[11] = F<exact<11>>(a, b);
  y[12] = F<exact<12>>(a, b);
  y[13] = F<exact<13>>(a, b);
  y[14] = F<exact<14>>(a, b);
  y[15] = F<exact<15>>(a, b);
  y[16] = F<exact<16>>(a, b);
}
template UMBRA_KERNEL void exactly<float>(Tensor<cpu, 2, float>, Tensor<cpu, 1, float>, Tensor<cpu, 1, float>);
template UMBRA_KERNEL void exactly<double>(Tensor<cpu, 2, double>, Tensor<cpu, 1, double>, Tensor<cpu, 1, double>);

// Bits of integers; lambdas, which see what they capture.
struct scramble {
  template <typename DType>
  static DType Map(DType a, DType b) {
    DType h = (a ^ (a >> 3)) & ~b;
    h |= (b & 0x55) << 2;
    h ^= b >> (a & 7);
    h <<= 1;
    h %= 1000;
    h &= ((a > b) | (a < -b)) != 0 ? 255 : 127;
    return h;
  }
};
template <typename DType>
UMBRA_KERNEL void bits(Tensor<cpu, 2, DType> y, Tensor<cpu, 2, DType> x, int mask) {
  y = F<scramble>(x, y) + scalar<DType>(static_cast<DType>((mask & 6) | 1));
}
template UMBRA_KERNEL void bits<int>(Tensor<cpu, 2, int>, Tensor<cpu, 2, int>, int);
template UMBRA_KERNEL void bits<std::int64_t>(Tensor<cpu, 2, std::int64_t>, Tensor<cpu, 2, std::int64_t>, int);
template UMBRA_KERNEL void bits<std::int8_t>(Tensor<cpu, 2, std::int8_t>, Tensor<cpu, 2, std::int8_t>, int);
template UMBRA_KERNEL void bits<std::uint8_t>(Tensor<cpu, 2, std::uint8_t>, Tensor<cpu, 2, std::uint8_t>, int);

template <typename Function>
constexpr float Twice(Function function, float x) {
  return function(function(x));
}
struct captures {
  static float Map(float a, float b) {
    float sum = 0;
    const float parts[] = {a, b};
    const auto add = [&](float x) {
      if (x < 0) return;
      sum += x;
    };
    for (const float part : parts) add(part);
    auto scaled = [a, half = b / 2](auto x) -> float { return x > a ? x * half : std::exp(-std::abs(x)); };
    const auto both = [=](float x) { return scaled(x) + scaled(1); };
    sum += Twice(std::move(both), sum) + [] { return 0.5f; }();
    float low = a, high = b;
    if (low > high) std::swap(low, high);
    sum += high - 3 * low;
    return [&]() -> float& { return sum; }() *= 2;
  }
};
UMBRA_KERNEL void lambdas(Tensor<cpu, 2> y, Tensor<cpu, 2> x, float scale) {
  const auto scaled = [&](const auto& e, float by) { return e * (by * scale); };
  const auto store = [&y](const auto& e) { y = e; };
  store(scaled(F<captures>(x, y), 3.0f));
  if (scale > 0) store(y + scaled(x, 0.5f));
}
