// mshadow's expressions by Umbra.
#ifndef MSHADOW_EXPRESSION_H_
#define MSHADOW_EXPRESSION_H_

#include "mshadow/base.h"
#include "umbra/tensor.h"

#endif  // MSHADOW_EXPRESSION_H_
