// mshadow's tensors by Umbra.
#ifndef MSHADOW_TENSOR_H_
#define MSHADOW_TENSOR_H_

#include "mshadow/base.h"
#include "umbra/tblob.h"
#include "umbra/tensor.h"

#endif  // MSHADOW_TENSOR_H_
