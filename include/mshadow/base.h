// mshadow's names by Umbra: types, devices and macros.
#ifndef MSHADOW_BASE_H_
#define MSHADOW_BASE_H_

#include "umbra/data_type.h"
#include "umbra/shape.h"

namespace umbra {
/// The default element type under its older name.
using real_t = default_real_t;
}  // namespace umbra

namespace mshadow {
using namespace umbra;  // NOLINT: one library under two names
namespace half {
using half_t = ::umbra::half_t;
}
namespace bfloat {
using bf16_t = ::umbra::bf16_t;
}
/// Bytes of an element of a type flag.
inline std::size_t mshadow_sizeof(int type_flag) { return SizeOfFlag(type_flag); }
}  // namespace mshadow

#define MSHADOW_FORCE_INLINE inline __attribute__((always_inline))
#define MSHADOW_XINLINE inline
#define MSHADOW_CINLINE inline
/// For umbra/packet.h.
#define MSHADOW_DEFAULT_PACKET ::umbra::packet::kDefaultArch
#define MSHADOW_DEFAULT_DTYPE = ::umbra::default_real_t
#define MSHADOW_TYPE_SWITCH(type, DType, ...) UMBRA_TYPE_SWITCH(type, DType, __VA_ARGS__)
#define MSHADOW_TYPE_SWITCH_WITH_BOOL(type, DType, ...) UMBRA_TYPE_SWITCH(type, DType, __VA_ARGS__)
#define MSHADOW_IDX_TYPE_SWITCH(type, DType, ...) UMBRA_INTEGER_TYPE_SWITCH(type, DType, __VA_ARGS__)
#define MSHADOW_REAL_TYPE_SWITCH(type, DType, ...) UMBRA_REAL_TYPE_SWITCH(type, DType, __VA_ARGS__)

#endif  // MSHADOW_BASE_H_
