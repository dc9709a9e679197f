// What a test tells the stand-in for cuBLASLt, and what it asks of it.
#ifndef UMBRA_TESTS_SUPPORT_CUBLAS_STAND_IN_H_
#define UMBRA_TESTS_SUPPORT_CUBLAS_STAND_IN_H_

#include <cstdint>
#include <vector>

namespace umbra::stand_in {

/// A product that was put into a stream.
struct Product {
  std::uint32_t epilogue;  ///< cublasLtEpilogue_t
  const void* bias;        ///< if the epilogue has one
  const void* result;
  int batch;
};
/// Those since the last call.
std::vector<Product> TakeProducts();
/// From now on, are there no algorithms for products with an epilogue?
void RefuseEpilogues(bool refuse);

}  // namespace umbra::stand_in

#endif  // UMBRA_TESTS_SUPPORT_CUBLAS_STAND_IN_H_
