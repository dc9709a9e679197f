// mshadow's TShape and TBlob by Umbra.
#ifndef MSHADOW_TENSOR_BLOB_H_
#define MSHADOW_TENSOR_BLOB_H_

#include "mshadow/base.h"
#include "umbra/tblob.h"

#endif  // MSHADOW_TENSOR_BLOB_H_
