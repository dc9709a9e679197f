// mshadow's TensorContainer by Umbra.
#ifndef MSHADOW_TENSOR_CONTAINER_H_
#define MSHADOW_TENSOR_CONTAINER_H_

#include "mshadow/base.h"
#include "umbra/tensor.h"

#endif  // MSHADOW_TENSOR_CONTAINER_H_
