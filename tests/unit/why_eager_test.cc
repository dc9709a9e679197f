// What the compiler does not know is evaluated eagerly where UMBRA_JIT_EXPRESSIONS is defined, and is said.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "umbra/jit.h"

UMBRA_OP(plus_three, (a), a + 3)

// mshadow's style: functions of C++.
struct addone {
  template <typename DType>
  static DType Map(DType a) {
    return a + DType(1);
  }
};
struct larger {
  static float Map(float a, float b) { return a > b ? a : b; }
};
struct longest {
  template <typename DType>
  static void Reduce(DType& a, DType b) {
    a = a > b ? a : b;
  }
  template <typename DType>
  static void SetInitValue(DType& a) {
    a = DType(-1e30f);
  }
};

namespace umbra {
namespace expr {
// A program's own extension: x shifted by one column.
template <typename SrcExp, typename DType>
struct ShiftExp : MakeTensorExp<ShiftExp<SrcExp, DType>, SrcExp, 2, DType> {
  SrcExp src_;
  explicit ShiftExp(const SrcExp& src) : src_(src) { this->shape_ = ShapeCheck<2, SrcExp>::Check(src); }
};
template <typename SrcExp, typename DType>
struct Plan<ShiftExp<SrcExp, DType>, DType> {
  explicit Plan(const ShiftExp<SrcExp, DType>& e) : src_(e.src_) {}
  DType Eval(index_t y, index_t x) const { return x == 0 ? DType(0) : src_.Eval(y, x - 1); }
  Plan<SrcExp, DType> src_;
};
}  // namespace expr

namespace {

using Matrix = TensorContainer<cpu, 2>;

const std::string kNoText =
    " is a function of C++ with no text to generate code from: define it with UMBRA_OP(name, (args), expression), ";
const std::string kText = kNoText + "or mark a function that uses it UMBRA_KERNEL, for umbra-extract";
const std::string kOfReducer = kNoText + "or use a reducer of umbra::red";

TEST(WhyEager, IsEmptyForWhatIsCompiled) {
  const Matrix a(Shape2(2, 3), 1.0f);
  const TensorContainer<cpu, 1> v(Shape1(3), 1.0f);
  EXPECT_EQ(jit::WhyEager(F<op::sigmoid>(a * 2.0f) + broadcast<1>(v, a.shape_)), "");
  EXPECT_EQ(jit::WhyEager(F<plus_three>(a)), "");
  EXPECT_EQ(jit::WhyEager(F<op::select>(F<op::lt>(a, scalar(0.0f)), tcast<float>(a), flip(a, 1))), "");
  EXPECT_EQ(jit::WhyEager(F<op::relu>(dot(a, a.T())) * 2.0f), "");
  EXPECT_EQ(jit::WhyEager(reduce_with_axis<red::argmax>(a, 1) + sum_rows(a.T())), "");
  EXPECT_EQ(jit::WhyEager(pool<red::mean>(a, 1, 1, 1) - implicit_dot(a, a.T())), "");
}

TEST(WhyEager, NamesOperatorsReducersAndClassesOnce) {
  const Matrix a(Shape2(2, 3), 1.0f);
  EXPECT_EQ(jit::WhyEager(F<addone>(a)), "'addone'" + kText);
  EXPECT_EQ(jit::WhyEager(F<larger>(F<addone>(a) + 2.0f, F<addone>(tcast<float>(a)))),
            "'larger'" + kText + "\n'addone'" + kText);
  EXPECT_EQ(jit::WhyEager(F<op::exp>(reduce_except_dim<0, longest>(a))), "'longest'" + kOfReducer);
  EXPECT_EQ(jit::WhyEager(pool<longest>(a, 1, 1, 1)), "'longest'" + kOfReducer);
  EXPECT_EQ(jit::WhyEager(flip(F<addone>(a), 0) * a), "'addone'" + kText);
  const expr::ShiftExp<Tensor<cpu, 2>, float> shift(a);
  const std::string why = jit::WhyEager(F<op::exp>(shift));
  EXPECT_EQ(why.find("'umbra::expr::ShiftExp<"), 0u) << why;
  EXPECT_NE(why.find("' is a class of expressions that the compiler does not know"), std::string::npos) << why;
}

// Assignments as UMBRA_JIT_EXPRESSIONS makes them.
template <typename Saver, typename E>
std::string Traced(Matrix* dst, const E& exp) {
  testing::internal::CaptureStderr();
  detail::AssignCompiled<Saver>(static_cast<Tensor<cpu, 2>*>(dst), exp);
  return testing::internal::GetCapturedStderr();
}

TEST(WhyEager, IsTracedOnceAnOperator) {
  Matrix a(Shape2(2, 3), 1.0f), b(a.shape_, 5.0f);
  unsetenv("UMBRA_TRACE");
  EXPECT_EQ(Traced<sv::saveto>(&b, F<addone>(a)), "");
  EXPECT_EQ(b[1][2], 2.0f);
  setenv("UMBRA_TRACE", "1", 1);
  EXPECT_EQ(Traced<sv::plusto>(&b, F<addone>(a)), "--- eager: 'addone'" + kText + "\n");
  EXPECT_EQ(b[1][2], 4.0f);
  EXPECT_EQ(Traced<sv::saveto>(&b, F<larger>(F<addone>(a), a)), "--- eager: 'larger'" + kText + "\n");
  EXPECT_EQ(Traced<sv::saveto>(&b, F<addone>(F<larger>(a, a))), "");
  EXPECT_EQ(Traced<sv::saveto>(&b, F<plus_three>(a)).find("--- eager"), std::string::npos);
  EXPECT_EQ(b[1][2], 4.0f);
  unsetenv("UMBRA_TRACE");
}

}  // namespace
}  // namespace umbra
