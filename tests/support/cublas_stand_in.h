// What a test tells the stand-in for cuBLASLt, and what it asks of it.
#ifndef UMBRA_TESTS_SUPPORT_CUBLAS_STAND_IN_H_
#define UMBRA_TESTS_SUPPORT_CUBLAS_STAND_IN_H_

#include <cstdint>
#include <vector>

namespace umbra::stand_in {

/// A product that was put into a stream.
struct Product {
  std::uint32_t epilogue;  ///< cublasLtEpilogue_t
  const void* bias;  ///< if the epilogue has one
  const void* result;
  int batch;
};
/// Those since the last call.
std::vector<Product> TakeProducts();
/// From now on, the status of asking for algorithms of products with an epilogue; 0: there are some.
void RefuseEpilogues(int status);
/// The same for all products.
void RefuseAlgorithms(int status);

}  // namespace umbra::stand_in

#endif  // UMBRA_TESTS_SUPPORT_CUBLAS_STAND_IN_H_
