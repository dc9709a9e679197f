// One body over every route: eager, interpreter, and every dialect that this CPU runs.
#ifndef UMBRA_TESTS_UNIT_INDEX_MAP_COMMON_H_
#define UMBRA_TESTS_UNIT_INDEX_MAP_COMMON_H_

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/testing.h"
#include "umbra/jit.h"

namespace umbra {

inline std::vector<CompileOptions> Routes() {
  std::vector<CompileOptions> routes;
  CompileOptions options;
  options.use_disk_cache = false;
  options.engine = Engine::kInterpreter;
  routes.push_back(options);
  options.engine = Engine::kJit;
  options.target = "plain";
  routes.push_back(options);
  options.target = "sse2";
  routes.push_back(options);
  if (__builtin_cpu_supports("avx2")) options.target = "avx2", routes.push_back(options);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
    options.target = "avx512", routes.push_back(options);
  return routes;
}

// Has a launch of the function taken the form?
inline bool HasTaken(const Function& function, const runtime::Variant& variant) {
  for (const auto& step : function.program().steps)
    if (std::get<runtime::KernelStep>(step).slots->function[static_cast<std::size_t>(variant.index())].load() !=
        nullptr)
      return true;
  return false;
}

template <int dim, typename DType = float>
TensorContainer<cpu, dim, DType> Drawn(Shape<dim> shape, unsigned seed) {
  TensorContainer<cpu, dim, DType> t(shape);
  std::mt19937 random(seed);
  auto flat = t.shape_.FlatTo2D();
  for (index_t y = 0; y < flat[0]; ++y)
    for (index_t x = 0; x < flat[1]; ++x)
      t.dptr_[y * t.stride_ + x] = static_cast<DType>(static_cast<int>(random() % 41) - 20) / DType(4);
  return t;
}

template <int dim, typename DType>
void ExpectSame(const Tensor<cpu, dim, DType>& a, const Tensor<cpu, dim, DType>& b, const std::string& what) {
  const auto flat = a.shape_.FlatTo2D();
  for (index_t y = 0; y < flat[0]; ++y)
    for (index_t x = 0; x < flat[1]; ++x) {
      const DType wanted = a.dptr_[y * a.stride_ + x], got = b.dptr_[y * b.stride_ + x];
      ASSERT_TRUE(wanted == got || (wanted != wanted && got != got))
          << what << " at " << y << ", " << x << ": " << wanted << " and " << got;
    }
}

/// `make()` gives the map's expression. It is compared alone, within `f(map) * 2 + other`, and, if `savers`, with each
/// saver.
template <int dim, typename DType = float, bool savers = false, typename Make>
void Check(const std::string& name, const Make& make) {
  const auto shape = expr::ShapeCheck<dim, decltype(make())>::Check(make());
  const auto other = Drawn<dim, DType>(shape, 99);
  TensorContainer<cpu, dim, DType> eager(shape), compiled(shape);
  for (const CompileOptions& route : Routes()) {
    jit::SetOptions(route);
    const std::string what = name + " " + (route.engine == Engine::kInterpreter ? "interpreter" : route.target);
    eager = make();
    jit(compiled) = make();
    ExpectSame(eager, compiled, what);
    eager = make() * DType(2) + other;
    jit(compiled) = make() * DType(2) + other;
    ExpectSame(eager, compiled, what + " in an expression");
    if constexpr (savers) {
      eager += make();
      jit(compiled) += make();
      ExpectSame(eager, compiled, what + " +=");
      eager -= make() - other;
      jit(compiled) -= make() - other;
      ExpectSame(eager, compiled, what + " -=");
      eager *= make();
      jit(compiled) *= make();
      ExpectSame(eager, compiled, what + " *=");
      eager /= make() * make() + DType(1);
      jit(compiled) /= make() * make() + DType(1);
      ExpectSame(eager, compiled, what + " /=");
    }
  }
  jit::SetOptions({});
}
template <int dim, typename DType = float, typename Make>
void CheckSavers(const std::string& name, const Make& make) {
  Check<dim, DType, true>(name, make);
}

}  // namespace umbra

#endif  // UMBRA_TESTS_UNIT_INDEX_MAP_COMMON_H_
