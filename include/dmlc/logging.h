// dmlc's checks by Umbra: a condition that does not hold, or LOG(FATAL), throws dmlc::Error with file, line, condition,
// values and what was streamed; nothing aborts. The other severities write a line to standard error.
#ifndef DMLC_LOGGING_H_
#define DMLC_LOGGING_H_

#include <iostream>
#include <sstream>
#include <string>

#include "umbra/error.h"

// A macro, since only so programs can add to the namespace: their own field types specialise
// dmlc::parameter::FieldEntry.
#define dmlc umbra

namespace umbra::detail {

/// What is said about one place in a program.
struct Said {
  Said(const char* file, int line) { text << file << ':' << line << ": "; }
  template <typename T>
  Said& operator<<(const T& part) {
    text << part;
    return *this;
  }
  std::ostringstream text;
};
/// Binds less than `<<`, so that all has been said.
struct ThrowSaid {
  [[noreturn]] void operator&(const Said& said) const { throw Error(said.text.str()); }
};
struct PrintSaid {
  void operator&(Said& said) const { std::cerr << said.text.str() + '\n'; }
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
/// Empty if the comparison holds, else both values.
#define UMBRA_COMPARISON(name, op)                                     \
  template <typename A, typename B>                                    \
  std::string name(const A& a, const B& b) {                           \
    return a op b ? std::string() : Concat(" (", a, " vs. ", b, ") "); \
  }
UMBRA_COMPARISON(CheckEQ, ==)
UMBRA_COMPARISON(CheckNE, !=)
UMBRA_COMPARISON(CheckLT, <)
UMBRA_COMPARISON(CheckLE, <=)
UMBRA_COMPARISON(CheckGT, >)
UMBRA_COMPARISON(CheckGE, >=)
#undef UMBRA_COMPARISON
#pragma GCC diagnostic pop

}  // namespace umbra::detail

#if !defined(CHECK) && !defined(LOG)
#define UMBRA_SAID ::umbra::detail::Said(__FILE__, __LINE__)
#define CHECK(condition) \
  (condition) ? void() : ::umbra::detail::ThrowSaid() & UMBRA_SAID << "Check failed: " #condition " "
#define UMBRA_CHECK_COMPARED(name, op, a, b)                                                          \
  for (const ::std::string umbra_failed = ::umbra::detail::Check##name(a, b); !umbra_failed.empty();) \
  ::umbra::detail::ThrowSaid() & UMBRA_SAID << "Check failed: " #a " " #op " " #b << umbra_failed
#define CHECK_EQ(a, b) UMBRA_CHECK_COMPARED(EQ, ==, a, b)
#define CHECK_NE(a, b) UMBRA_CHECK_COMPARED(NE, !=, a, b)
#define CHECK_LT(a, b) UMBRA_CHECK_COMPARED(LT, <, a, b)
#define CHECK_LE(a, b) UMBRA_CHECK_COMPARED(LE, <=, a, b)
#define CHECK_GT(a, b) UMBRA_CHECK_COMPARED(GT, >, a, b)
#define CHECK_GE(a, b) UMBRA_CHECK_COMPARED(GE, >=, a, b)
#define LOG(severity) UMBRA_LOG_##severity
#define UMBRA_LOG_INFO ::umbra::detail::PrintSaid() & UMBRA_SAID << "INFO: "
#define UMBRA_LOG_WARNING ::umbra::detail::PrintSaid() & UMBRA_SAID << "WARNING: "
#define UMBRA_LOG_ERROR ::umbra::detail::PrintSaid() & UMBRA_SAID << "ERROR: "
#define UMBRA_LOG_FATAL ::umbra::detail::ThrowSaid() & UMBRA_SAID
#endif

#endif  // DMLC_LOGGING_H_
