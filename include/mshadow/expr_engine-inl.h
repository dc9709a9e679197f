// mshadow's plans, checks and engine of expressions by Umbra.
#ifndef MSHADOW_EXPR_ENGINE_INL_H_
#define MSHADOW_EXPR_ENGINE_INL_H_

#include "mshadow/base.h"
#include "umbra/tensor.h"

#endif  // MSHADOW_EXPR_ENGINE_INL_H_
