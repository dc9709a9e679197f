// mshadow's extensions by Umbra.
#ifndef MSHADOW_EXTENSION_H_
#define MSHADOW_EXTENSION_H_

#include "mshadow/base.h"
#include "umbra/tensor.h"

#endif  // MSHADOW_EXTENSION_H_
