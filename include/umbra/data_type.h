// Type flags: element types as numbers, with mshadow's values, and the switch over them.
#ifndef UMBRA_DATA_TYPE_H_
#define UMBRA_DATA_TYPE_H_

#include <cstdint>

#include "umbra/dtype.h"

namespace umbra {

/// Element types as mshadow and MXNet number them.
enum TypeFlag {
#define UMBRA_DTYPE(dtype, name, type, compute, wide, flag_name, flag, number) flag = number,
#include "umbra/dtypes.def"
};

/// Flag and lanes of an element type.
template <typename T>
struct DataType {
  using ScalarType = T;
  /// The TypeFlag, and elements of it that make one number.
  static constexpr int kFlag = detail::RowOf(DTypeOf<T>::value).number, kLanes = 1;
};

/// The dtype of a flag, if it is one.
constexpr std::optional<DType> FindFlag(int flag) {
  for (const DType type : kAllDTypes)
    if (detail::RowOf(type).number == flag) return type;
  return std::nullopt;
}

/// Name of a flag; "?" for none.
inline const char* TypeFlagName(int flag) {
  const auto type = FindFlag(flag);
  return type ? detail::RowOf(*type).flag_name.data() : "?";
}
/// Bytes of an element. Throws umbra::Error for a number that is no flag.
inline std::size_t SizeOfFlag(int flag) {
  const auto type = FindFlag(flag);
  Require(type.has_value(), "type flag ", flag, " is none; they are 0 to ", int{kInt16}, " and ", int{kBfloat16});
  return SizeOf(*type);
}

}  // namespace umbra

#define UMBRA_TYPE_CASE(flag, DType, type, ...) \
  case ::umbra::flag: {                         \
    using DType = type;                         \
    __VA_ARGS__                                 \
  } break;
#define UMBRA_NO_TYPE_CASE(flag, what) \
  default:                             \
    throw ::umbra::Error("type flag " + std::to_string(flag) + " (" + ::umbra::TypeFlagName(flag) + ") " what);
#define UMBRA_REAL_TYPE_CASES(DType, ...)                        \
  UMBRA_TYPE_CASE(kFloat32, DType, float, __VA_ARGS__)           \
  UMBRA_TYPE_CASE(kFloat64, DType, double, __VA_ARGS__)          \
  UMBRA_TYPE_CASE(kFloat16, DType, ::umbra::half_t, __VA_ARGS__) \
  UMBRA_TYPE_CASE(kBfloat16, DType, ::umbra::bf16_t, __VA_ARGS__)
#define UMBRA_INTEGER_TYPE_CASES(DType, ...)                \
  UMBRA_TYPE_CASE(kUint8, DType, std::uint8_t, __VA_ARGS__) \
  UMBRA_TYPE_CASE(kInt8, DType, std::int8_t, __VA_ARGS__)   \
  UMBRA_TYPE_CASE(kInt16, DType, std::int16_t, __VA_ARGS__) \
  UMBRA_TYPE_CASE(kInt32, DType, std::int32_t, __VA_ARGS__) \
  UMBRA_TYPE_CASE(kInt64, DType, std::int64_t, __VA_ARGS__)

/// Runs the statements with `DType` as the C++ type of `flag`. Throws umbra::Error for another flag.
#define UMBRA_TYPE_SWITCH(flag, DType, ...)             \
  switch (flag) {                                       \
    UMBRA_REAL_TYPE_CASES(DType, __VA_ARGS__)           \
    UMBRA_INTEGER_TYPE_CASES(DType, __VA_ARGS__)        \
    UMBRA_TYPE_CASE(kBool, DType, bool, __VA_ARGS__)    \
    UMBRA_NO_TYPE_CASE(flag, "cannot be computed with") \
  }
/// The same for floating-point types, 16-bit ones included.
#define UMBRA_REAL_TYPE_SWITCH(flag, DType, ...)             \
  switch (flag) {                                            \
    UMBRA_REAL_TYPE_CASES(DType, __VA_ARGS__)                \
    UMBRA_NO_TYPE_CASE(flag, "is not a floating-point type") \
  }
/// The same for integer types.
#define UMBRA_INTEGER_TYPE_SWITCH(flag, DType, ...)    \
  switch (flag) {                                      \
    UMBRA_INTEGER_TYPE_CASES(DType, __VA_ARGS__)       \
    UMBRA_NO_TYPE_CASE(flag, "is not an integer type") \
  }

#endif  // UMBRA_DATA_TYPE_H_
