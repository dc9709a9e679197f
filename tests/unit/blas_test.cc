// The machine's BLAS as it is opened.
#include "runtime/blas.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/cpu_info.h"

namespace umbra::runtime {
namespace {

// OpenBLAS takes processors that it does not know for this one.
TEST(Blas, HasTheKernelsOfThisCpu) {
  if (BlasCore().empty()) GTEST_SKIP() << "the BLAS of this machine is not OpenBLAS";
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr) GTEST_SKIP() << "OPENBLAS_CORETYPE has chosen them";
  if (CpuRuns("avx2")) { EXPECT_NE(BlasCore(), "Prescott"); }
  EXPECT_EQ(std::getenv("OPENBLAS_CORETYPE"), nullptr);
}

TEST(Blas, Multiplies) {
  const double a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 2, -1, 0, 3};  // 2x3, 3x2
  double c[4];
  Gemm(0, 0, 2, 2, 3, 1.0, a, 3, b, 2, 0.0, c, 2);
  EXPECT_EQ(c[0], 5);
  EXPECT_EQ(c[1], 7);
  EXPECT_EQ(c[2], 14);
  EXPECT_EQ(c[3], 13);
}

}  // namespace
}  // namespace umbra::runtime
