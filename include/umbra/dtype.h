// Element types: the run-time tag and its C++ types.
#ifndef UMBRA_DTYPE_H_
#define UMBRA_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "umbra/error.h"
#include "umbra/half.h"

namespace umbra {

/// Signed 64-bit index of elements, extents and strides.
using index_t = std::int64_t;

/// Element type of a tensor. f16, bf16, i8, u8 and i16 are only stored: see ComputeType.
enum class DType : std::uint8_t {
#define UMBRA_DTYPE(dtype, ...) dtype,
#include "umbra/dtypes.def"
};

namespace detail {
struct DTypeRow {
  std::string_view name;
  std::size_t size;
  DType compute;
  std::string_view flag_name;
  int number;
};
/// In the order of the enumerators.
inline constexpr DTypeRow kDTypeRows[] = {
#define UMBRA_DTYPE(dtype, name, type, compute, wide, flag_name, flag, number) \
  {#name, sizeof(type), DType::compute, #flag_name, number},
#include "umbra/dtypes.def"
};
constexpr const DTypeRow& RowOf(DType type) { return kDTypeRows[static_cast<std::size_t>(type)]; }

template <typename T>
struct ComputeTrait {
  using Type = T;
};
}  // namespace detail

/// Every dtype, in the order of umbra/dtypes.def.
inline constexpr DType kAllDTypes[] = {
#define UMBRA_DTYPE(dtype, ...) DType::dtype,
#include "umbra/dtypes.def"
};

/// Short name as in the text form: f32, f64, f16, bf16, i8, u8, i16, i32, i64, bool.
constexpr std::string_view Name(DType type) { return detail::RowOf(type).name; }

/// The dtype called `name`, if there is one.
constexpr std::optional<DType> FindDType(std::string_view name) {
  for (const DType type : kAllDTypes)
    if (Name(type) == name) return type;
  return std::nullopt;
}

/// Size of one element in bytes.
constexpr std::size_t SizeOf(DType type) { return detail::RowOf(type).size; }

/// What values of the dtype are computed in: narrow types widen when they are loaded, f16 and bf16 to
/// f32, i8, u8 and i16 to i32, and are rounded or wrapped once, at the store.
constexpr DType ComputeType(DType type) { return detail::RowOf(type).compute; }
/// f16 or bf16.
constexpr bool IsHalf(DType type) { return type == DType::kFloat16 || type == DType::kBFloat16; }
/// f32 or f64.
constexpr bool IsFloat(DType type) { return type == DType::kFloat32 || type == DType::kFloat64; }

/// DTypeOf<float>::value is DType::kFloat32, and so on; does not compile for other element types.
template <typename T>
struct DTypeOf {
  static_assert(
      sizeof(T) == 0,
      "umbra: no dtype is of this C++ type: there are float, double, half_t, bf16_t, bool, std::uint8_t, "
      "std::int8_t, std::int16_t, std::int32_t and std::int64_t (which `long long` is not, where that is long)");
};
#define UMBRA_DTYPE(dtype, name, type, ...)      \
  template <>                                    \
  struct DTypeOf<type> {                         \
    static constexpr DType value = DType::dtype; \
  };
#include "umbra/dtypes.def"

namespace detail {
#define UMBRA_DTYPE(dtype, name, type, compute, wide, ...) \
  template <>                                              \
  struct ComputeTrait<type> {                              \
    using Type = wide;                                     \
  };
#include "umbra/dtypes.def"
}  // namespace detail

/// The type that expressions compute elements of T in: a narrow one widens when it is read, f16 and bf16
/// to float, i8, u8, i16 and bool to std::int32_t.
template <typename T>
using ComputeOf = typename detail::ComputeTrait<T>::Type;

/// Calls `body(T{})` with the C++ type of the dtype.
template <typename Body>
decltype(auto) SwitchDType(DType type, Body&& body) {
  switch (type) {
#define UMBRA_DTYPE(dtype, name, type, ...) \
  case DType::dtype: {                      \
    return body(type{});                    \
  }
#include "umbra/dtypes.def"
  }
  return body(float{});
}

}  // namespace umbra

#endif  // UMBRA_DTYPE_H_
