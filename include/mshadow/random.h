// mshadow's Random by Umbra.
#ifndef MSHADOW_RANDOM_H_
#define MSHADOW_RANDOM_H_

#include "mshadow/base.h"
#include "umbra/random.h"

#endif  // MSHADOW_RANDOM_H_
