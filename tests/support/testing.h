// What several tests need.
#ifndef UMBRA_TESTS_SUPPORT_TESTING_H_
#define UMBRA_TESTS_SUPPORT_TESTING_H_

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>

#include "umbra/error.h"

namespace umbra {

/// The message of the umbra::Error that `call` throws, or "no error".
inline std::string MessageOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) { return error.what(); }
  return "no error";
}

#define EXPECT_SAYS(part, ...)                                                         \
  {                                                                                    \
    const std::string said = ::umbra::MessageOf([&] { (void)(__VA_ARGS__); });         \
    EXPECT_NE(said.find(part), std::string::npos) << "the error is: '" << said << "'"; \
  }

/// Bytes in memory that can be written and read like a file.
struct MemoryStream {
  std::string bytes;
  std::size_t at = 0;
  void Write(const void* p, std::size_t n) { bytes.append(static_cast<const char*>(p), n); }
  std::size_t Read(void* p, std::size_t n) {
    n = std::min(n, bytes.size() - at);
    std::memcpy(p, bytes.data() + at, n);
    at += n;
    return n;
  }
};

}  // namespace umbra

#endif  // UMBRA_TESTS_SUPPORT_TESTING_H_
