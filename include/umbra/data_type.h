// Type flags: element types as numbers, with mshadow's values, and the switch over them.
#ifndef UMBRA_DATA_TYPE_H_
#define UMBRA_DATA_TYPE_H_

#include <cstdint>

#include "umbra/dtype.h"

namespace umbra {

/// Element types as mshadow and MXNet number them.
enum TypeFlag {
  kFloat32 = 0, kFloat64 = 1, kFloat16 = 2, kUint8 = 3, kInt32 = 4, kInt8 = 5, kInt64 = 6, kBool = 7, kInt16 = 8,
  kBfloat16 = 12
};

/// Flag and lanes of an element type.
template <typename T>
struct DataType;
#define UMBRA_DATA_TYPE(type, flag) \
  template <>                       \
  struct DataType<type> { static constexpr int kFlag = flag, kLanes = 1; }
UMBRA_DATA_TYPE(float, kFloat32);
UMBRA_DATA_TYPE(double, kFloat64);
UMBRA_DATA_TYPE(half_t, kFloat16);
UMBRA_DATA_TYPE(bf16_t, kBfloat16);
UMBRA_DATA_TYPE(std::uint8_t, kUint8);
UMBRA_DATA_TYPE(std::int8_t, kInt8);
UMBRA_DATA_TYPE(std::int16_t, kInt16);
UMBRA_DATA_TYPE(std::int32_t, kInt32);
UMBRA_DATA_TYPE(std::int64_t, kInt64);
UMBRA_DATA_TYPE(bool, kBool);
#undef UMBRA_DATA_TYPE

namespace detail {
struct FlagRow {
  const char* name;
  std::size_t size;
};
inline FlagRow RowOfFlag(int flag) {
  switch (flag) {
    case kFloat32: return {"float32", 4};
    case kFloat64: return {"float64", 8};
    case kFloat16: return {"float16", 2};
    case kUint8: return {"uint8", 1};
    case kInt32: return {"int32", 4};
    case kInt8: return {"int8", 1};
    case kInt64: return {"int64", 8};
    case kBool: return {"bool", 1};
    case kInt16: return {"int16", 2};
    case kBfloat16: return {"bfloat16", 2};
    default: return {"?", 0};
  }
}
}  // namespace detail

/// Name of a flag; "?" for none.
inline const char* TypeFlagName(int flag) { return detail::RowOfFlag(flag).name; }
/// Bytes of an element. Throws umbra::Error for a number that is no flag.
inline std::size_t SizeOfFlag(int flag) {
  const std::size_t size = detail::RowOfFlag(flag).size;
  Require(size > 0, "type flag ", flag, " is none; they are 0 to ", int{kInt16}, " and ", int{kBfloat16});
  return size;
}

}  // namespace umbra

/// Runs the statements with `DType` as the C++ type of `flag`. Throws umbra::Error for another flag.
#define UMBRA_TYPE_SWITCH(flag, DType, ...)                                                   \
  switch (flag) {                                                                            \
    case ::umbra::kFloat32: { using DType = float; __VA_ARGS__ } break;                       \
    case ::umbra::kFloat64: { using DType = double; __VA_ARGS__ } break;                      \
    case ::umbra::kFloat16: { using DType = ::umbra::half_t; __VA_ARGS__ } break;             \
    case ::umbra::kBfloat16: { using DType = ::umbra::bf16_t; __VA_ARGS__ } break;            \
    case ::umbra::kBool: { using DType = bool; __VA_ARGS__ } break;                           \
    case ::umbra::kInt16: { using DType = std::int16_t; __VA_ARGS__ } break;                  \
    case ::umbra::kUint8: { using DType = std::uint8_t; __VA_ARGS__ } break;                  \
    case ::umbra::kInt8: { using DType = std::int8_t; __VA_ARGS__ } break;                    \
    case ::umbra::kInt32: { using DType = std::int32_t; __VA_ARGS__ } break;                  \
    case ::umbra::kInt64: { using DType = std::int64_t; __VA_ARGS__ } break;                  \
    default: throw ::umbra::Error("type flag " + std::to_string(flag) + " (" +                \
                                  ::umbra::TypeFlagName(flag) + ") cannot be computed with"); \
  }
/// The same for floating-point types, 16-bit ones included.
#define UMBRA_REAL_TYPE_SWITCH(flag, DType, ...)                                              \
  switch (flag) {                                                                            \
    case ::umbra::kFloat32: { using DType = float; __VA_ARGS__ } break;                       \
    case ::umbra::kFloat64: { using DType = double; __VA_ARGS__ } break;                      \
    case ::umbra::kFloat16: { using DType = ::umbra::half_t; __VA_ARGS__ } break;             \
    case ::umbra::kBfloat16: { using DType = ::umbra::bf16_t; __VA_ARGS__ } break;            \
    default: throw ::umbra::Error("type flag " + std::to_string(flag) + " (" +                \
                                  ::umbra::TypeFlagName(flag) + ") is not a floating-point type"); \
  }

#endif  // UMBRA_DATA_TYPE_H_
