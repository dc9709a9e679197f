// The two kinds of failure: what a caller did wrong, and what we did wrong.
#ifndef UMBRA_ERROR_H_
#define UMBRA_ERROR_H_

#include <sstream>
#include <stdexcept>
#include <string>

namespace umbra {

/// A user's mistake or a condition of the machine: the message says what was expected, what was
/// given, where, and what to do.
class Error : public std::runtime_error {
 public:
  /// An error that says `message`.
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

/// A defect of Umbra itself. Worth a bug report; never the caller's fault.
class InternalError : public std::logic_error {
 public:
  /// A defect described by `message`.
  explicit InternalError(const std::string& message) : std::logic_error("internal error in Umbra: " + message) {}
};

namespace detail {
// Not for the hot path: small rather than fast.
template <typename... Parts>
[[gnu::cold, gnu::noinline]] std::string Concat(const Parts&... parts) {
  std::ostringstream text;
  ((text << parts), ...);
  return text.str();
}

template <typename Kind>
[[noreturn, gnu::cold, gnu::noinline]] void ThrowText(const std::ostringstream& text) {
  throw Kind(text.str());
}
template <typename Kind, typename... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void Throw(const Parts&... parts) {
  std::ostringstream text;
  ((text << parts), ...);
  ThrowText<Kind>(text);
}
}  // namespace detail

/// Throws umbra::Error with the parts streamed into one message, unless `condition` holds.
template <typename... Parts>
inline void Require(bool condition, const Parts&... parts) {
  if (!condition) detail::Throw<Error>(parts...);
}

/// Throws umbra::InternalError with the parts streamed into one message, unless `condition` holds.
template <typename... Parts>
inline void Ensure(bool condition, const Parts&... parts) {
  if (!condition) detail::Throw<InternalError>(parts...);
}

}  // namespace umbra

#endif  // UMBRA_ERROR_H_
