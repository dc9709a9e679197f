// dmlc's parameters by Umbra's.
#ifndef DMLC_PARAMETER_H_
#define DMLC_PARAMETER_H_

#include <type_traits>

#include "dmlc/logging.h"
#include "umbra/parameter.h"

namespace dmlc {
/// Is T a number? Such fields have ranges.
template <typename T>
using is_arithmetic = std::is_arithmetic<T>;
/// Then if the condition holds, else Else.
template <bool condition, typename Then, typename Else>
struct IfThenElseType {
  using Type = std::conditional_t<condition, Then, Else>;
};
}  // namespace dmlc

/// Names a class for messages; stands in namespace dmlc.
#define DMLC_DECLARE_TYPE_NAME(Type, Name) \
  template <>                              \
  inline const char* type_name<Type>() {   \
    return Name;                           \
  }
#define DMLC_USE_CXX11 1
#define DMLC_ATTRIBUTE_UNUSED [[maybe_unused]]
#define DMLC_DECLARE_PARAMETER(PType) UMBRA_DECLARE_PARAMETER(PType)
#define DMLC_DECLARE_FIELD(FieldName) UMBRA_DECLARE_FIELD(FieldName)
#define DMLC_DECLARE_ALIAS(FieldName, AliasName) UMBRA_DECLARE_ALIAS(FieldName, AliasName)
#define DMLC_REGISTER_PARAMETER(PType) UMBRA_REGISTER_PARAMETER(PType)

#endif  // DMLC_PARAMETER_H_
