/* The kernels from C: every one of the table is listed, one is called. */
#include <stdio.h>
#include <string.h>

#include "nn.h"

int main(void) {
  float x[2][3] = {{1, 2, 3}, {4, 5, 6}}, bias[3] = {0, 0, 0}, y[2][3];
  const int64_t matrix[] = {2, 3}, vector[] = {3};
  const umbra_tensor tx = {.data = x, .shape = matrix, .rank = 2, .dtype = UMBRA_DTYPE_f32};
  const umbra_tensor tb = {.data = bias, .shape = vector, .rank = 1, .dtype = UMBRA_DTYPE_f32};
  umbra_tensor ty = {.data = y, .shape = matrix, .rank = 2, .dtype = UMBRA_DTYPE_f32};
  for (const umbra_kernel_desc* kernel = nn_kernels; kernel->name != NULL; ++kernel)
    printf("%s %s%s: %d targets\n", kernel->origin, kernel->name, kernel->signature, kernel->num_targets);
  if (nn_bias_swish(&tx, &tb, 0, &ty) != UMBRA_OK) return 1;
  if (y[1][2] != 3) return 2; /* 6 / (1 + exp(0)) */
  ty.dtype = UMBRA_DTYPE_f64;
  if (nn_bias_swish(&tx, &tb, 0, &ty) != UMBRA_ERROR || strstr(umbra_error_message(), "expected dtype f32, got f64") == NULL)
    return 3;
  if (nn_bias_swish(&tx, NULL, 0, &tx) != UMBRA_ERROR || strstr(umbra_error_message(), "'bias'") == NULL) return 4;
  if (umbra_set_target("avx9") != UMBRA_ERROR) return 5;
  if (umbra_set_target("sse2") != UMBRA_OK || strcmp(umbra_kernel_target(nn_kernels), "sse2") != 0) return 6;
  printf("C host: done\n");
  return 0;
}
