// The tour of the tutorial: handles, expressions, scalars, broadcasting, reductions.
#include <cstdio>

#include "mshadow/tensor.h"

using namespace mshadow;
using namespace mshadow::expr;

static int failures = 0;
static void check(bool condition, const char* what) {
  if (!condition) {
    std::printf("FAILED: %s\n", what);
    ++failures;
  }
}

int main(void) {
  InitTensorEngine<cpu>();
  float data[20];
  Tensor<cpu, 2> ts(data, Shape2(5, 4));
  ts = 1.0f;
  check(ts[2][3] == 1.0f, "fill");
  Tensor<cpu, 2, real_t> mat = NewTensor<cpu>(Shape2(5, 4), real_t(2), MSHADOW_ALLOC_PAD);
  mat += 1.0f;
  ts = 10.0f + mat / 2.0f - ts;
  check(data[7] == 10.5f, "scalar arithmetic");
  ts = mat;  // a handle now, not a copy
  check(ts.dptr_ == mat.dptr_, "assignment of a handle");
  Tensor<cpu, 1> row = mat[3];
  row = 7.0f;
  check(mat[3][0] == 7.0f && mat[2][0] == 3.0f, "sub-tensors share memory");

  TensorContainer<cpu, 2> lhs(Shape2(5, 4)), rhs(Shape2(5, 4)), out(Shape2(5, 4));
  TensorContainer<cpu, 1> bias(Shape1(4)), sums(Shape1(4));
  lhs = 2.0f;
  rhs = 3.0f;
  for (index_t i = 0; i < 4; ++i) bias[i] = static_cast<float>(i);
  out = lhs * rhs + broadcast<1>(bias, out.shape_);
  check(out[4][3] == 9.0f, "broadcast");
  out = lhs * rhs + repmat(bias, 5);
  check(out[1][2] == 8.0f, "repmat");
  sums = sum_rows(out);
  check(sums[3] == 45.0f, "sum_rows");
  sums += 0.5f * sumall_except_dim<1>(out);
  check(sums[0] == 45.0f, "sumall_except_dim");
  TensorContainer<cpu, 2> small(Shape2(4, 4));
  small = dot(lhs.T(), rhs);
  check(small[1][2] == 30.0f, "dot with a transpose");
  small += 2.0f * dot(lhs.T(), rhs);
  check(small[0][0] == 90.0f, "scaled dot");
  out = F<op::right>(lhs, out) + F<op::right>(out, scalar(1.0f));
  check(out[4][2] == 9.0f, "the right operand");
  out = out.T().T();
  Copy(lhs, rhs);
  check(lhs[0][0] == 3.0f, "Copy");
  FreeSpace(&mat);
  TensorContainer<cpu, 1> keys(Shape1(3)), values(Shape1(3));
  for (index_t i = 0; i < 3; ++i) keys[i] = values[i] = static_cast<float>(i * i % 3);
  SortByKey(keys, values);
  check(keys[0] == 0.0f && keys[2] == 1.0f && values[1] == 1.0f, "SortByKey");

  TensorContainer<cpu, 2> left(Shape2(5, 1)), right(Shape2(5, 3));
  concat<1>(left, right) = lhs + broadcast<1>(bias, lhs.shape_);
  check(left[4][0] == 3.0f && right[0][2] == 6.0f, "concat on the left");
  concat<1>(left, right) *= lhs;
  concat<1>(left, right) -= 1.0f;
  check(left[4][0] == 8.0f && right[0][2] == 17.0f, "concat on the left with a saver");
  rhs = concat<1>(left, right);
  slice<0>(rhs, 1, 3) += slice<0>(rhs, 0, 2) * 2.0f;
  check(rhs[0][3] == 17.0f && rhs[2][3] == 51.0f && rhs[3][3] == 17.0f, "slice on the left");
  slice<1>(rhs, 0, 2) = mirror(slice<1>(rhs, 0, 2));
  check(rhs[0][0] == 11.0f && rhs[0][1] == 8.0f, "slice of what it reads");

  TBlob blob(lhs);
  check(blob.ndim() == 2 && blob.FlatTo2D<cpu, real_t>()[1][1] == 3.0f, "TBlob");
  MSHADOW_TYPE_SWITCH(blob.type_flag_, DType, {
    Tensor<cpu, 2, DType> typed = blob.get<cpu, 2, DType>();
    check(typed.size(0) == 5, "type switch");
  });
  MSHADOW_IDX_TYPE_SWITCH(kInt64, IType, { check(sizeof(IType) == mshadow_sizeof(kInt64), "index type switch"); });
  static_assert(std::is_same_v<mshadow::half::half_t, half_t> && packet::AlignBytes<MSHADOW_DEFAULT_PACKET>::value > 0);
  ShutdownTensorEngine<cpu>();
  if (failures == 0) std::printf("tutorial: done\n");
  return failures;
}
