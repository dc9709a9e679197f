// The functions that this library gives, under their own names; those of umbra/cuda.h lead here through a table.
#ifndef UMBRA_RUNTIME_CUDA_LIBRARY_FUNCTIONS_H_
#define UMBRA_RUNTIME_CUDA_LIBRARY_FUNCTIONS_H_

#include "runtime/cuda_library.h"

namespace umbra::cuda::library {

#define UMBRA_DECLARE_FUNCTION(name, result, parameters, arguments) result name parameters;
UMBRA_CUDA_FUNCTIONS_OF_USERS(UMBRA_DECLARE_FUNCTION)
UMBRA_CUDA_FUNCTIONS_OF_UMBRA(UMBRA_DECLARE_FUNCTION)
#undef UMBRA_DECLARE_FUNCTION
#define UMBRA_DECLARE_FUNCTION(name, result, parameters, arguments) result name parameters noexcept;
UMBRA_CUDA_FUNCTIONS_THAT_DO_NOT_THROW(UMBRA_DECLARE_FUNCTION)
#undef UMBRA_DECLARE_FUNCTION

}  // namespace umbra::cuda::library

#endif  // UMBRA_RUNTIME_CUDA_LIBRARY_FUNCTIONS_H_
