// What every tool does with its options and with what is thrown.
// Exit codes: 0 done, 1 an error of the input or the machine, 2 wrong usage, 3 a defect of Umbra.
#ifndef UMBRA_TOOLS_UMBRA_USAGE_H_
#define UMBRA_TOOLS_UMBRA_USAGE_H_

#include <functional>
#include <string>

#include "umbra/error.h"
#include "umbra/parameter.h"

namespace umbra::tools {

/// Throws ParamError, wrong usage, unless `condition` holds: for options that do not fit each other.
template <typename... Parts>
void RequireUsage(bool condition, const Parts&... parts) {
  if (!condition) umbra::detail::Throw<ParamError>(parts...);
}

/// Says on standard error what is wrong, as the tool `tool`, and returns `code`.
int Fail(const std::string& tool, const std::string& what, int code);

/// The exit code of `body`, which returns its own, or of what it throws, which is said.
int RunTool(const std::string& tool, const std::function<int()>& body);

}  // namespace umbra::tools

#endif  // UMBRA_TOOLS_UMBRA_USAGE_H_
