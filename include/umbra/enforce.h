// Conditions that throw with their text, values, file and line, as caffe2's CAFFE_ENFORCE.
#ifndef UMBRA_ENFORCE_H_
#define UMBRA_ENFORCE_H_

#include <sstream>
#include <string>

#include "umbra/error.h"

namespace umbra {

/// A condition that did not hold: where, which, and what was said about it.
class EnforceNotMet : public Error {
 public:
  /// At `line` of `file`, `condition` as it is written, and what was said about it; all stand in what().
  EnforceNotMet(const char* file, int line, const std::string& condition, const std::string& message)
      : Error(Text(file, line, condition, message)),
        file_(file),
        line_(line),
        condition_(condition),
        message_(message),
        what_(Error::what()) {}
  const char* what() const noexcept override { return what_.c_str(); }
  /// The source file, as the compiler named it.
  const char* file() const { return file_; }
  /// The line, from 1.
  int line() const { return line_; }
  /// The text of the condition.
  const std::string& condition() const { return condition_; }
  /// What was said about it, and by AppendMessage since.
  const std::string& message() const { return message_; }
  /// Adds what an outer function knows of the cause.
  void AppendMessage(const std::string& text) {
    message_ += text;
    what_ = Text(file_, line_, condition_, message_);
  }

 private:
  static std::string Text(const char* file, int line, const std::string& condition, const std::string& message) {
    return detail::Concat("[enforce fail at ", file, ":", line, "] ", condition, ". ", message);
  }
  const char* file_;
  int line_;
  std::string condition_, message_, what_;
};

namespace detail {
template <typename A, typename B>
std::string Compared(const A& a, const B& b) {
  return Concat(a, " vs ", b, ". ");
}
}  // namespace detail

}  // namespace umbra

#define UMBRA_ENFORCE(condition, ...)                                                                     \
  do {                                                                                                    \
    if (!(condition))                                                                                     \
      throw ::umbra::EnforceNotMet(__FILE__, __LINE__, #condition, ::umbra::detail::Concat(__VA_ARGS__)); \
  } while (false)
#define UMBRA_ENFORCE_COMPARED(a, op, b, ...)                                                  \
  do {                                                                                         \
    const auto& umbra_a = (a);                                                                 \
    const auto& umbra_b = (b);                                                                 \
    if (!(umbra_a op umbra_b))                                                                 \
      throw ::umbra::EnforceNotMet(                                                            \
          __FILE__, __LINE__, #a " " #op " " #b,                                               \
          ::umbra::detail::Compared(umbra_a, umbra_b) + ::umbra::detail::Concat(__VA_ARGS__)); \
  } while (false)
#define UMBRA_ENFORCE_EQ(a, b, ...) UMBRA_ENFORCE_COMPARED(a, ==, b, __VA_ARGS__)
#define UMBRA_ENFORCE_NE(a, b, ...) UMBRA_ENFORCE_COMPARED(a, !=, b, __VA_ARGS__)
#define UMBRA_ENFORCE_LT(a, b, ...) UMBRA_ENFORCE_COMPARED(a, <, b, __VA_ARGS__)
#define UMBRA_ENFORCE_LE(a, b, ...) UMBRA_ENFORCE_COMPARED(a, <=, b, __VA_ARGS__)
#define UMBRA_ENFORCE_GT(a, b, ...) UMBRA_ENFORCE_COMPARED(a, >, b, __VA_ARGS__)
#define UMBRA_ENFORCE_GE(a, b, ...) UMBRA_ENFORCE_COMPARED(a, >=, b, __VA_ARGS__)

#endif  // UMBRA_ENFORCE_H_
