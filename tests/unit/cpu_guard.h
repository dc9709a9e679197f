// A test program for an instruction set that this CPU lacks has nothing to say.
#ifndef UMBRA_TESTS_UNIT_CPU_GUARD_H_
#define UMBRA_TESTS_UNIT_CPU_GUARD_H_

#include <gtest/gtest.h>

inline bool CpuRunsThisProgram() {
#if defined(__AVX512F__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#elif defined(__AVX2__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return true;
#endif
}

#define REQUIRE_CPU() \
  if (!CpuRunsThisProgram()) GTEST_SKIP() << "this CPU lacks the instruction set"

#endif  // UMBRA_TESTS_UNIT_CPU_GUARD_H_
