// mshadow's binary tensors by Umbra.
#ifndef MSHADOW_IO_H_
#define MSHADOW_IO_H_

#include "mshadow/base.h"
#include "umbra/tensor_io.h"

#endif  // MSHADOW_IO_H_
