// mshadow's packets by Umbra.
#ifndef MSHADOW_PACKET_INL_H_
#define MSHADOW_PACKET_INL_H_

#include "mshadow/base.h"
#include "umbra/tensor.h"

#endif  // MSHADOW_PACKET_INL_H_
