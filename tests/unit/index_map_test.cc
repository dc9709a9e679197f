// Index maps: the eager evaluation, the interpreter and every dialect agree, alone and inside a larger
// expression, with each saver.
#include "tests/unit/index_map_common.h"

namespace umbra {
namespace {

TEST(IndexMap, RankKeeping) {
  for (const Shape<2> shape : {Shape2(1, 1), Shape2(3, 37), Shape2(5, 64), Shape2(17, 2)}) {
    const auto x = Drawn<2>(shape, 1);
    Check<2>("flip 0", [&] { return flip(x, 0); });
    CheckSavers<2>("flip 1", [&] { return flip(x, 1); });
    Check<2>("mirror", [&] { return mirror(x * 3.0f); });
    Check<2>("swapaxis", [&] { return swapaxis<1, 0>(x); });
    Check<2>("slice", [&] { return slice<1>(x, 1 < shape[1] ? 1 : 0, shape[1]); });
    Check<2>("pad", [&] { return pad(x, 2, 3); });
    Check<2>("upsampling", [&] { return upsampling_nearest(x, 3); });
    Check<2>("crop", [&] { return crop(x, Shape2((shape[0] + 1) / 2, (shape[1] + 1) / 2)); });
  }
}

TEST(IndexMap, OfExpressions) {
  const auto x = Drawn<3>(Shape3(2, 5, 33), 2), y = Drawn<3>(Shape3(2, 5, 33), 3);
  Check<3>("flip of a sum", [&] { return flip(x + y, 2); });
  Check<3>("pad by nothing", [&] { return pad(x, 0, 0) * pad(x, 0, 0); });
  Check<3>("map of a map", [&] { return pad(flip(x, 1) - y, 1, 1); });
  Check<2>("reshape", [&] { return reshape(x * y, Shape2(11, 30)); });
  Check<1>("to a vector", [&] { return reshape(x, Shape1(330)); });
}

TEST(IndexMap, SeveralSources) {
  const auto a = Drawn<2>(Shape2(3, 21), 4), b = Drawn<2>(Shape2(3, 40), 5), c = Drawn<2>(Shape2(7, 21), 6);
  CheckSavers<2>("concat 1", [&] { return concat<1>(a, b); });
  Check<2>("concat 0", [&] { return concat<0>(a, c + 1.0f); });
  const auto v = Drawn<1>(Shape1(19), 7);
  Check<2>("repmat", [&] { return repmat(v, 4); });
}

// Rows of several groups of packets, which functions and narrow dtypes are computed in.
TEST(IndexMap, OfWideRows) {
  for (const index_t n : {index_t{37}, index_t{64}, index_t{130}, index_t{300}}) {
    const auto x = Drawn<2>(Shape2(3, n), 1), y = Drawn<2>(Shape2(2, n), 2), z = Drawn<2>(Shape2(3, n + 5), 3);
    const auto i = Drawn<2, std::int8_t>(Shape2(3, n), 1), j = Drawn<2, std::int8_t>(Shape2(2, n), 2),
               k = Drawn<2, std::int8_t>(Shape2(3, n + 5), 3);
    const std::string of = " of " + std::to_string(n);
    Check<2>("exp(concat<0>)" + of, [&] { return exp(expr::concat<0>(x, y)); });
    Check<2>("exp(concat<1>)" + of, [&] { return exp(expr::concat<1>(x, z)); });
    Check<2>("tanh(pad)" + of, [&] { return tanh(expr::pad(x, 2, 3) + 1.0f); });
    Check<2>("exp(flip(pad))" + of, [&] { return exp(expr::flip(expr::pad(x, 1, 7), 1)); });
    Check<2>("exp(slice)" + of, [&] { return exp(expr::slice<1>(x, 3, n - 2)); });
    Check<2>("exp(concat of flip and pad)" + of,
             [&] { return exp(expr::concat<1>(expr::flip(x, 1), expr::slice<0>(expr::pad(x, 1), 1, 4))); });
    Check<2, std::int8_t>("concat<0> of i8" + of, [&] { return expr::concat<0>(i, j); });
    Check<2, std::int8_t>("concat<1> of i8" + of, [&] { return expr::concat<1>(i, k); });
    Check<2, std::int8_t>("pad of i8" + of, [&] { return expr::pad(i, 2, 3); });
    Check<2, std::int8_t>("slice of i8" + of, [&] { return expr::slice<1>(i, 3, n - 2); });
  }
}

TEST(IndexMap, Scans) {
  for (const Shape<2> shape : {Shape2(1, 1), Shape2(3, 37), Shape2(19, 64)}) {
    const auto x = Drawn<2>(shape, 1);
    for (const int axis : {0, 1}) {
      CheckSavers<2>("sum", [&] { return scan<red::sum>(x, axis); });
      Check<2>("maximum of an expression", [&] { return scan<red::maximum>(x * x - x, axis); });
      Check<2>("minimum", [&] { return scan<red::minimum>(x, axis); });
      Check<2>("mean", [&] { return scan<red::mean>(x, axis); });
      Check<2>("scan of a scan", [&] { return scan<red::maximum>(scan<red::sum>(x, 1), axis); });
    }
    const auto i = Drawn<2, std::int32_t>(shape, 2);
    const auto j = Drawn<2, std::int8_t>(shape, 3);
    Check<2, std::int32_t>("product of i32", [&] { return scan<red::product>(i, 1); });
    Check<2, std::int8_t>("sum of i8", [&] { return scan<red::sum>(j, 0); });
  }
  const auto x = Drawn<3>(Shape3(2, 7, 33), 4);
  Check<3>("a middle axis", [&] { return scan<red::sum>(x, 1); });
  const auto v = Drawn<1>(Shape1(100), 5);
  Check<1>("a vector", [&] { return scan<red::maximum>(v, 0); });
}

TEST(IndexMap, Pooling) {
  for (const Shape<4> shape : {Shape4(2, 3, 6, 8), Shape4(1, 2, 7, 37), Shape4(1, 1, 3, 3)}) {
    const auto x = Drawn<4>(shape, 8);
    CheckSavers<4>("max", [&] { return pool<red::maximum>(x, 2, 2, 2, 2); });
    Check<4>("sum", [&] { return pool<red::sum>(x, 3, 2, 1, 2); });
    Check<4>("min of an expression", [&] { return pool<red::minimum>(x * x, 3, 3, 2); });
    TensorContainer<cpu, 4> pooled(
        expr::ShapeCheck<4, decltype(pool<red::maximum>(x, 2, 3, 1, 2))>::Check(pool<red::maximum>(x, 2, 3, 1, 2)));
    pooled = pool<red::maximum>(x, 2, 3, 1, 2);
    const auto grad = Drawn<4>(pooled.shape_, 9);
    CheckSavers<4>("unpool max", [&] { return unpool<red::maximum>(x, pooled, grad, 2, 3, 1, 2); });
    Check<4>("unpool sum", [&] { return unpool<red::sum>(x, pooled, grad, 2, 3, 1, 2); });
  }
}

TEST(IndexMap, OtherDtypes) {
  const auto d = Drawn<2, double>(Shape2(5, 19), 10);
  Check<2, double>("flip f64", [&] { return flip(d, 1); });
  Check<2, double>("pad f64", [&] { return pad(d, 1, 2); });
  const auto i = Drawn<2, std::int32_t>(Shape2(5, 19), 11);
  CheckSavers<2, std::int32_t>("flip i32", [&] { return flip(i, 0); });
  Check<2, std::int32_t>("pool i32", [&] { return pool<red::maximum>(i, 2, 3, 1, 1); });
}

// The R of windows that are cut, of elements all to one side of 0: what lies beyond them joins nothing.
template <typename R, typename T>
void CheckCutWindows(T sign) {
  TensorContainer<cpu, 3, T> x(Shape3(3, 5, 5)), y(Shape3(3, 3, 3));
  for (index_t i = 0; i < 75; ++i) x.dptr_[i / 5 * x.stride_ + i % 5] = static_cast<T>(sign * static_cast<T>(i + 1));
  Check<3, T>("pool", [&] { return pool<R>(x, Shape2(3, 3), 2, 2, 2, 2); });
  Check<3, T>("chpool", [&] { return chpool<R>(x, 3, 2, 1); });
  Check<3, T>("ada_pool", [&] { return ada_pool<R>(x, 2, 3); });
  y = pool<R>(x, Shape2(3, 3), 2, 2, 2, 2);
  EXPECT_EQ(y[2][2][2], x[2][4][4]);
  for (const T limit : {std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max()}) {
    x = limit;
    y = pool<R>(x, Shape2(3, 3), 2, 2, 2, 2);
    EXPECT_EQ(y[2][2][2], limit);
  }
}

TEST(IndexMap, CutWindowsOfEveryDtype) {
  CheckCutWindows<red::maximum, std::int8_t>(-1);
  CheckCutWindows<red::minimum, std::int8_t>(1);
  CheckCutWindows<red::minimum, std::uint8_t>(1);
  CheckCutWindows<red::maximum, std::int64_t>(-1);
  CheckCutWindows<red::minimum, std::int64_t>(1);
}

TEST(IndexMap, Values) {
  TensorContainer<cpu, 2> x(Shape2(2, 3)), y(Shape2(4, 5));
  for (int i = 0; i < 6; ++i) x[i / 3][i % 3] = static_cast<float>(i + 1);
  y = pad(x, 1, 1);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 5; ++j)
      EXPECT_EQ(y[i][j], i >= 1 && i <= 2 && j >= 1 && j <= 3 ? static_cast<float>((i - 1) * 3 + j) : 0.0f);
  TensorContainer<cpu, 2> p(Shape2(1, 2));
  p = pool<red::maximum>(x, Shape2(1, 2), 2, 2, 2, 2);
  EXPECT_EQ(p[0][0], 5.0f);
  EXPECT_EQ(p[0][1], 6.0f);
}

TEST(IndexMap, BadUse) {
  const auto x = Drawn<2>(Shape2(3, 4), 1);
  TensorContainer<cpu, 2> y(Shape2(3, 4));
  EXPECT_NE(MessageOf([&] { y = flip(x, 2); }).find("flip: axis 2 of a tensor of rank 2"), std::string::npos);
  EXPECT_NE(MessageOf([&] { y = slice<1>(x, 2, 9); }).find("slice: an extent of 4, but 9"), std::string::npos);
  EXPECT_NE(MessageOf([&] { y = reshape(x, Shape2(5, 5)); }).find("reshape: the extents 12 and 25 differ"),
            std::string::npos);
  EXPECT_NE(MessageOf([&] { y = pad(x, 1, 1); }).find("shape"), std::string::npos);
  // In the graph the extents may be known at the call only.
  const auto graph = graph::ParseText("kernel k(x: f32[n, m]) -> (y: f32[n, p]) { y = slice(x, 1, 2, 9) }")[0];
  const Function f = Compile(graph);
  TensorContainer<cpu, 2> out(Shape2(3, 7));
  const auto ref = [](Tensor<cpu, 2>& t) {
    return runtime::TensorRef{t.dptr_, DType::kFloat32, {t.shape_[0], t.shape_[1]}, {t.stride_, 1}};
  };
  auto in = Drawn<2>(Shape2(3, 4), 1);
  EXPECT_NE(MessageOf([&] { f({{ref(in)}, {ref(out)}, {}}); }).find("an input is too small"), std::string::npos);
  // A result over its own source.
  EXPECT_NE(MessageOf([&] { y = flip(y, 0); }), "no error");
  EXPECT_NE(MessageOf([&] { jit(y) = flip(y, 0); }), "no error");
}

}  // namespace
}  // namespace umbra
