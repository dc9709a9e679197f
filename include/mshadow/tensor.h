// mshadow's tensors by Umbra.
#ifndef MSHADOW_TENSOR_H_
#define MSHADOW_TENSOR_H_

#include "mshadow/base.h"
#include "umbra/layout.h"
#include "umbra/random.h"
#include "umbra/tblob.h"
#include "umbra/tensor.h"
#include "umbra/tensor_functions.h"
#include "umbra/tensor_io.h"

#endif  // MSHADOW_TENSOR_H_
