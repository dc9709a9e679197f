// Element types: the run-time tag and its C++ types.
#ifndef UMBRA_DTYPE_H_
#define UMBRA_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "umbra/error.h"

namespace umbra {

/// Signed 64-bit index of elements, extents and strides.
using index_t = std::int64_t;

/// Element type of a tensor. `kBool` and `kInt64` appear only inside expressions: results of
/// comparisons, and positions in index maps.
enum class DType : std::uint8_t { kFloat32, kFloat64, kInt32, kBool, kInt64 };

/// Short name as in the text form: f32, f64, i32, bool, i64.
constexpr std::string_view Name(DType type) {
  switch (type) {
    case DType::kFloat32: return "f32";
    case DType::kFloat64: return "f64";
    case DType::kInt32: return "i32";
    case DType::kBool: return "bool";
    case DType::kInt64: return "i64";
  }
  return "?";
}

/// Size of one element in bytes.
constexpr std::size_t SizeOf(DType type) {
  return type == DType::kFloat64 || type == DType::kInt64 ? 8 : type == DType::kBool ? 1 : 4;
}

constexpr bool IsFloat(DType type) {
  return type == DType::kFloat32 || type == DType::kFloat64;
}

/// DTypeOf<float>::value is DType::kFloat32, and so on; undefined for unsupported element types.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> { static constexpr DType value = DType::kFloat32; };
template <>
struct DTypeOf<double> { static constexpr DType value = DType::kFloat64; };
template <>
struct DTypeOf<std::int32_t> { static constexpr DType value = DType::kInt32; };
template <>
struct DTypeOf<bool> { static constexpr DType value = DType::kBool; };
template <>
struct DTypeOf<std::int64_t> { static constexpr DType value = DType::kInt64; };

/// Calls `body(T{})` with the C++ type of a storable dtype (f32, f64, i32).
template <typename Body>
decltype(auto) SwitchDType(DType type, Body&& body) {
  switch (type) {
    case DType::kFloat64: return body(double{});
    case DType::kInt32: return body(std::int32_t{});
    case DType::kBool:
    case DType::kInt64:
      throw Error("dtype " + std::string(Name(type)) +
                  " cannot be stored in a tensor; cast it to f32, f64 or i32");
    case DType::kFloat32: break;
  }
  return body(float{});
}

}  // namespace umbra

#endif  // UMBRA_DTYPE_H_
