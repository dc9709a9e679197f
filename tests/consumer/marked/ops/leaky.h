#ifndef OPS_LEAKY_H_
#define OPS_LEAKY_H_
constexpr float kSlope = 0.125f;
struct leaky {
  template <typename DType>
  static DType Map(DType a) {
    if (a > 0) return a;
    return a * DType(kSlope);
  }
};
#endif
