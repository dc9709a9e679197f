// An extension, a product and checks of a program's own, added to mshadow's namespaces in its style.
#include <cstdio>

#include "mshadow/tensor.h"
#include "mshadow/tensor_blob.h"

namespace mshadow {
namespace expr {
// Every element of a row is the sum of those up to it.
template <typename SrcExp, typename DType, int dim>
struct CumulateExp : public MakeTensorExp<CumulateExp<SrcExp, DType, dim>, SrcExp, dim, DType> {
  const SrcExp& src_;
  explicit CumulateExp(const SrcExp& src) : src_(src) { this->shape_ = ShapeCheck<dim, SrcExp>::Check(src_); }
};
template <typename SrcExp, typename DType, int etype>
inline CumulateExp<SrcExp, DType, ExpInfo<SrcExp>::kDim> cumulate(const Exp<SrcExp, DType, etype>& src) {
  TypeCheckPass<(ExpInfo<SrcExp>::kDim >= 2)>::Error_Expression_Does_Not_Meet_Dimension_Req();
  return CumulateExp<SrcExp, DType, ExpInfo<SrcExp>::kDim>(src.self());
}
template <typename SrcExp, typename DType, int dim>
struct Plan<CumulateExp<SrcExp, DType, dim>, DType> {
 public:
  explicit Plan(const CumulateExp<SrcExp, DType, dim>& e) : src_(MakePlan(e.src_)) {}
  MSHADOW_XINLINE DType Eval(index_t i, index_t j) const {
    DType sum = 0;
    for (index_t k = 0; k <= j; ++k) sum += src_.Eval(i, k);
    return sum;
  }

 private:
  expr::Plan<SrcExp, DType> src_;
};

// The rows of a matrix joined two by two, by any reducer, mshadow's own among them.
template <typename Reducer, typename SrcExp, typename DType>
struct JoinPairsExp : public MakeTensorExp<JoinPairsExp<Reducer, SrcExp, DType>, SrcExp, 2, DType> {
  const SrcExp& src_;
  explicit JoinPairsExp(const SrcExp& src) : src_(src) {
    this->shape_ = ShapeCheck<2, SrcExp>::Check(src_);
    this->shape_[0] /= 2;
  }
};
template <typename Reducer, typename SrcExp, typename DType, int etype>
inline JoinPairsExp<Reducer, SrcExp, DType> join_pairs(const Exp<SrcExp, DType, etype>& src) {
  return JoinPairsExp<Reducer, SrcExp, DType>(src.self());
}
template <typename Reducer, typename SrcExp, typename DType>
struct Plan<JoinPairsExp<Reducer, SrcExp, DType>, DType> {
 public:
  explicit Plan(const JoinPairsExp<Reducer, SrcExp, DType>& e) : src_(MakePlan(e.src_)) {}
  MSHADOW_XINLINE DType Eval(index_t i, index_t j) const {
    DType joined;
    Reducer::SetInitValue(joined);
    for (index_t k = 0; k < 2; ++k) Reducer::Reduce(joined, src_.Eval(2 * i + k, j));
    return joined;
  }

 private:
  expr::Plan<SrcExp, DType> src_;
};

// An expression that derives from Exp alone and says itself what is known of it: the same number everywhere.
template <typename DType>
struct FilledExp : public Exp<FilledExp<DType>, DType, type::kMapper> {
  Shape<2> shape_;
  DType value_;
  FilledExp(Shape<2> shape, DType value) : shape_(shape), value_(value) {}
};
template <typename DType>
struct ExpInfo<FilledExp<DType>> {
  static const int kDim = 2;
  static const int kDevMask = cpu::kDevMask;
};
template <int dim, typename DType>
struct ShapeCheck<dim, FilledExp<DType>> {
  inline static Shape<dim> Check(const FilledExp<DType>& e) { return e.shape_; }
};
template <typename DType>
struct Plan<FilledExp<DType>, DType> {
 public:
  explicit Plan(const FilledExp<DType>& e) : value_(e.value_) {}
  MSHADOW_XINLINE DType Eval(index_t, index_t) const { return value_; }

 private:
  DType value_;
};

// A matrix times a diagonal: evaluated as a whole, with an engine of its own.
template <typename TA, typename DType>
struct ScaleRowsExp : public Exp<ScaleRowsExp<TA, DType>, DType, type::kComplex> {
  const TA& a_;
  DType factor_;
  ScaleRowsExp(const TA& a, DType factor) : a_(a), factor_(factor) {}
};
template <typename SV, typename Device, typename DType>
struct ExpComplexEngine<SV, Tensor<Device, 2, DType>, ScaleRowsExp<Tensor<Device, 2, DType>, DType>, DType> {
  inline static void Eval(Tensor<Device, 2, DType>* dst, const ScaleRowsExp<Tensor<Device, 2, DType>, DType>& e) {
    CHECK_EQ(dst->shape_, e.a_.shape_) << "ScaleRows";
    for (index_t y = 0; y < dst->size(0); ++y)
      for (index_t x = 0; x < dst->size(1); ++x) SV::Save((*dst)[y][x], e.a_[y][x] * e.factor_ * static_cast<DType>(y));
  }
};
}  // namespace expr
}  // namespace mshadow

using namespace mshadow;
using namespace mshadow::expr;

// A reducer of the program's own: the largest absolute value.
struct maxabs {
  template <typename DType>
  MSHADOW_XINLINE static void Reduce(volatile DType& dst, volatile DType src) {
    const DType a = src < 0 ? -src : src;
    if (dst < a) dst = a;
  }
  template <typename DType>
  MSHADOW_XINLINE static void SetInitValue(DType& initv) {
    initv = 0;
  }
};

static int failures = 0;
static void check(bool condition, const char* what) {
  if (condition) return;
  std::printf("FAILED: %s\n", what);
  ++failures;
}

template <typename Body>
static std::string said(const Body& body) {
  try {
    body();
  } catch (const dmlc::Error& e) { return e.what(); }
  return "";
}

int main(void) {
  TensorContainer<cpu, 2> a(Shape2(3, 5)), b(Shape2(3, 5));
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 5; ++j) a[i][j] = static_cast<real_t>(i * 5 + j);
  b = cumulate(a);
  check(b[1][2] == 5 + 6 + 7, "an extension");
  b = cumulate(a * 2.0f) + 1.0f;
  check(b[2][4] == 2 * (10 + 11 + 12 + 13 + 14) + 1, "an extension of and in an expression");
  b -= F<op::negative>(cumulate(a));
  check(b[0][1] == 2 * 1 + 1 + 1, "an extension with a saver");
  b = FilledExp<real_t>(b.shape_, 3.0f) * a + 1.0f;
  check(b[2][4] == 43.0f, "an expression with an ExpInfo and a ShapeCheck of its own");
  check(said([&] { b = a + FilledExp<real_t>(Shape2(3, 4), 0.0f); }).find("(3,4)") != std::string::npos,
        "its shape is checked");
  static_assert(TypeCheck<cpu, 2, real_t, CumulateExp<Tensor<cpu, 2>, real_t, 2>>::kMapPass);
  static_assert(!PacketCheck<CumulateExp<Tensor<cpu, 2>, real_t, 2>, packet::kSSE2>::kPass);

  TensorContainer<cpu, 2> pairs(Shape2(1, 5));
  pairs = join_pairs<red::maximum>(a) * 10.0f - join_pairs<red::sum>(a) + join_pairs<red::minimum>(a) -
          join_pairs<maxabs>(a - 9.0f);
  check(pairs[0][4] == 10 * 9 - (4 + 9) + 4 - 5, "an extension that joins by reducers");
  TensorContainer<cpu, 1> rows(Shape1(3));
  rows = reduce_with_axis<maxabs, false>(a - 10.0f, 1);
  check(rows[1] == 5, "a reducer along an axis");
  rows = reduce_except_dim<0, maxabs>(a - 10.0f);
  check(rows[0] == 10, "a reducer over all axes but one");
  TensorContainer<cpu, 2> windows(Shape2(2, 3));
  windows = pool<maxabs>(a - 10.0f, windows.shape_, 2, 2, 2, 2);
  check(windows[0][0] == 10 && windows[1][2] == 4, "a reducer of windows");

  TensorContainer<cpu, 2> half(Shape2(2, 3)), part(Shape2(2, 2));
  half = pool<red::sum>(a, half.shape_, 2, 2, 2, 2);
  check(half[1][2] == 14, "pooling to a shape");
  part = pool<red::maximum>(a, 2, 2, 1, 2);
  check(part[1][1] == 13, "pooling without one");
  part = slice(a, Shape2(1, 2), Shape2(3, 4));
  check(part[1][0] == 12, "a part");
  slice(b, Shape2(0, 0), Shape2(2, 2)) = part;
  flip(b, 0) += a;
  check(b[1][1] == 13 + 6, "a part and a reverse that are assigned to");
  TensorContainer<cpu, 1, int> index(Shape1(2), 1);
  half = one_hot_encode(index, 3);
  check(half[1][1] == 1 && half[1][2] == 0, "numbers of the default type for any index");
  TensorContainer<cpu, 2> z(Shape2(2, 4), 2.0f), w(Shape2(2, 4));
  w = complex_div_cr(complex_mul_cc(conj(z), complex_exchange(z)), part * 0.0f + 4.0f) + complex_pad_imag(part * 0.0f);
  check(w[0][0] == 2 && w[1][1] == 0, "complex numbers");
  part = complex_sum_real_imag(z) - complex_abs_square(z);
  check(part[1][1] == -4, "what they become");
  TensorContainer<cpu, 2> thin(Shape2(1, 5), 3.0f);
  b = broadcast_to(thin, TShape(b.shape_)) + broadcast_multi_axes(thin, TShape(Shape1(0)), TShape(Shape1(3)));
  check(b[2][4] == 6, "broadcasts of several axes");
  SmoothSoftmaxGrad(half, half, TensorContainer<cpu, 1>(Shape1(2), 1.0f), 0.5f);
  check(half[0][1] == 0.5f && half[0][0] == -0.25f, "smooth labels");

  b = 1.0f;
  b += ScaleRowsExp<Tensor<cpu, 2>, real_t>(a, 10.0f);
  check(b[2][4] == 281.0f, "an engine");
  TensorContainer<cpu, 2> small(Shape2(2, 5));
  const std::string message = said([&] { small = ScaleRowsExp<Tensor<cpu, 2>, real_t>(a, 10.0f); });
  check(message.find("extension.cc:") != std::string::npos, "where a check failed");
  check(message.find("(2,5) vs. (3,5)") != std::string::npos && message.find("ScaleRows") != std::string::npos,
        "which and what");

  CHECK(a.CheckContiguous() || a.stride_ > 5) << "never said";
  check(said([&] { CHECK(a.size(0) == 4) << "rows " << a.size(0); }).find("Check failed: a.size(0) == 4 rows 3") !=
            std::string::npos,
        "CHECK");
  int calls = 0;
  if (calls == 0) CHECK_LE(++calls, 1U) << "an else belongs to the if";
  else check(false, "CHECK_LE is one statement");
  CHECK_NE(calls, 2);
  CHECK_LT(0, calls);
  CHECK_GE(calls, 1);
  check(calls == 1, "operands are evaluated once");
  check(!said([] { CHECK_GT(1, 1); }).empty(), "CHECK_GT");
  check(said([] { LOG(FATAL) << "Invalid layout " << 7; }).find("Invalid layout 7") != std::string::npos, "LOG(FATAL)");
  LOG(INFO) << "extension: a line of the log";
  static_assert(default_type_flag == kFloat32 && (1 << packet::AlignBytes<packet::kSSE2>::value) == 16);
  if (failures == 0) std::printf("extension: done\n");
  return failures;
}
