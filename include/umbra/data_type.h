// Type flags: element types as numbers, with mshadow's values, and the switch over them.
#ifndef UMBRA_DATA_TYPE_H_
#define UMBRA_DATA_TYPE_H_

#include <cstdint>

#include "umbra/dtype.h"

namespace umbra {

/// Element types as mshadow numbers them.
enum TypeFlag { kFloat32 = 0, kFloat64 = 1, kFloat16 = 2, kUint8 = 3, kInt32 = 4, kInt8 = 5, kInt64 = 6 };

/// Flag and lanes of an element type.
template <typename T>
struct DataType;
template <>
struct DataType<float> { static constexpr int kFlag = kFloat32, kLanes = 1; };
template <>
struct DataType<double> { static constexpr int kFlag = kFloat64, kLanes = 1; };
template <>
struct DataType<std::int32_t> { static constexpr int kFlag = kInt32, kLanes = 1; };
template <>
struct DataType<std::int64_t> { static constexpr int kFlag = kInt64, kLanes = 1; };
template <>
struct DataType<std::uint8_t> { static constexpr int kFlag = kUint8, kLanes = 1; };
template <>
struct DataType<std::int8_t> { static constexpr int kFlag = kInt8, kLanes = 1; };

/// Name of a flag; "?" for none.
inline const char* TypeFlagName(int flag) {
  static constexpr const char* kNames[] = {"float32", "float64", "float16", "uint8", "int32", "int8", "int64"};
  return flag >= 0 && flag <= kInt64 ? kNames[flag] : "?";
}
/// Bytes of an element. Throws umbra::Error for a number that is no flag.
inline std::size_t SizeOfFlag(int flag) {
  static constexpr std::size_t kSizes[] = {4, 8, 2, 1, 4, 1, 8};
  Require(flag >= 0 && flag <= kInt64, "type flag ", flag, " is none; they are 0 to ", int{kInt64});
  return kSizes[flag];
}

}  // namespace umbra

/// Runs the statements with `DType` as the C++ type of `flag`. Throws umbra::Error for another flag.
#define UMBRA_TYPE_SWITCH(flag, DType, ...)                                                   \
  switch (flag) {                                                                            \
    case ::umbra::kFloat32: { using DType = float; __VA_ARGS__ } break;                       \
    case ::umbra::kFloat64: { using DType = double; __VA_ARGS__ } break;                      \
    case ::umbra::kUint8: { using DType = std::uint8_t; __VA_ARGS__ } break;                  \
    case ::umbra::kInt8: { using DType = std::int8_t; __VA_ARGS__ } break;                    \
    case ::umbra::kInt32: { using DType = std::int32_t; __VA_ARGS__ } break;                  \
    case ::umbra::kInt64: { using DType = std::int64_t; __VA_ARGS__ } break;                  \
    default: throw ::umbra::Error("type flag " + std::to_string(flag) + " (" +                \
                                  ::umbra::TypeFlagName(flag) + ") cannot be computed with"); \
  }
/// The same for floating-point types.
#define UMBRA_REAL_TYPE_SWITCH(flag, DType, ...)                                              \
  switch (flag) {                                                                            \
    case ::umbra::kFloat32: { using DType = float; __VA_ARGS__ } break;                       \
    case ::umbra::kFloat64: { using DType = double; __VA_ARGS__ } break;                      \
    default: throw ::umbra::Error("type flag " + std::to_string(flag) + " (" +                \
                                  ::umbra::TypeFlagName(flag) + ") is not float32 or float64"); \
  }

#endif  // UMBRA_DATA_TYPE_H_
