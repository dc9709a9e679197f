// mshadow's names by Umbra: types, devices and macros.
#ifndef MSHADOW_BASE_H_
#define MSHADOW_BASE_H_

#include "dmlc/logging.h"
#include "umbra/data_type.h"
#include "umbra/shape.h"

// A macro, since only so programs can add to the namespace: their own extensions specialise templates in mshadow::expr.
#define mshadow umbra

namespace mshadow {
/// The default element type under its older name.
using real_t = default_real_t;
/// The type flag of default_real_t.
constexpr int default_type_flag = DataType<default_real_t>::kFlag;
namespace half {
/// A 16-bit IEEE number.
using half_t = ::umbra::half_t;
}  // namespace half
namespace bfloat {
/// The upper half of a 32-bit IEEE number.
using bf16_t = ::umbra::bf16_t;
}  // namespace bfloat
/// Bytes of an element of a type flag. Throws umbra::Error for a number that is no flag.
inline std::size_t mshadow_sizeof(int type_flag) { return SizeOfFlag(type_flag); }
}  // namespace mshadow

#define MSHADOW_FORCE_INLINE inline __attribute__((always_inline))
#define MSHADOW_XINLINE inline
#define MSHADOW_CINLINE inline
/// For umbra/packet.h.
#define MSHADOW_DEFAULT_PACKET ::umbra::packet::kDefaultArch
#define MSHADOW_DEFAULT_DTYPE = ::umbra::default_real_t
/// Whether rows are padded where a program leaves it to mshadow.
#define MSHADOW_ALLOC_PAD true
#define MSHADOW_IN_CXX11 1
#define MSHADOW_TYPE_SWITCH(type, DType, ...) UMBRA_TYPE_SWITCH(type, DType, __VA_ARGS__)
#define MSHADOW_TYPE_SWITCH_WITH_BOOL(type, DType, ...) UMBRA_TYPE_SWITCH(type, DType, __VA_ARGS__)
#define MSHADOW_IDX_TYPE_SWITCH(type, DType, ...) UMBRA_INTEGER_TYPE_SWITCH(type, DType, __VA_ARGS__)
#define MSHADOW_REAL_TYPE_SWITCH(type, DType, ...) UMBRA_REAL_TYPE_SWITCH(type, DType, __VA_ARGS__)

#endif  // MSHADOW_BASE_H_
