// dmlc's parameters by Umbra's.
#ifndef DMLC_PARAMETER_H_
#define DMLC_PARAMETER_H_

#include "umbra/parameter.h"

namespace dmlc {
using umbra::Error;
using umbra::GetEnv;
using umbra::nullopt;
using umbra::nullopt_t;
using umbra::optional;
using umbra::Parameter;
using umbra::ParamError;
using umbra::ParamFieldInfo;
using umbra::SetEnv;
using umbra::type_name;
namespace parameter = umbra::parameter;
}  // namespace dmlc

#define DMLC_DECLARE_TYPE_NAME(Type, Name) UMBRA_DECLARE_TYPE_NAME(Type, Name)
#define DMLC_DECLARE_PARAMETER(PType) UMBRA_DECLARE_PARAMETER(PType)
#define DMLC_DECLARE_FIELD(FieldName) UMBRA_DECLARE_FIELD(FieldName)
#define DMLC_DECLARE_ALIAS(FieldName, AliasName) UMBRA_DECLARE_ALIAS(FieldName, AliasName)
#define DMLC_REGISTER_PARAMETER(PType) UMBRA_REGISTER_PARAMETER(PType)

#endif  // DMLC_PARAMETER_H_
