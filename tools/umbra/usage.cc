#include "tools/umbra/usage.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <new>

#include "compiler/graph/parse.h"

namespace umbra::tools {

int Fail(const std::string& tool, const std::string& what, int code) {
  const bool colour = isatty(STDERR_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  std::fprintf(stderr, colour ? "\033[1m%s: \033[31merror:\033[0m %s\n" : "%s: error: %s\n", tool.c_str(),
               what.c_str());
  return code;
}

int RunTool(const std::string& tool, const std::function<int()>& body) {
  try {
    return body();
  } catch (const ParamError& error) {
    Fail(tool, error.what(), 2);
    std::fprintf(stderr, "Run with --help for more information.\n");
    return 2;
  } catch (const graph::ParseError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  } catch (const InternalError& error) { return Fail(tool, error.what(), 3); } catch (const std::bad_alloc&) {
    return Fail(tool, "out of memory", 1);
  } catch (const Error& error) { return Fail(tool, error.what(), 1); } catch (const std::exception& error) {
    return Fail(tool, error.what(), 3);
  }
}

}  // namespace umbra::tools
