#include "runtime/cuda/library.h"

extern "C" const umbra::cuda::Library* umbra_cuda_library() {
  using namespace umbra::cuda;
#define UMBRA_NAME_FUNCTION(name, result, parameters, arguments) library::name,
  static constexpr Library functions = {UMBRA_CUDA_FUNCTIONS_OF_USERS(UMBRA_NAME_FUNCTION)
                                            UMBRA_CUDA_FUNCTIONS_THAT_DO_NOT_THROW(UMBRA_NAME_FUNCTION)
                                                UMBRA_CUDA_FUNCTIONS_OF_UMBRA(UMBRA_NAME_FUNCTION)};
#undef UMBRA_NAME_FUNCTION
  return &functions;
}
