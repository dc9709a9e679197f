#include "tools/umbra/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "umbra/error.h"

namespace umbra::tools {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Require(static_cast<bool>(file), "cannot read ", path, ": ", std::strerror(errno));
  std::string content{std::istreambuf_iterator<char>(file), {}};
  Require(!file.bad(), "cannot read ", path);
  return content;
}

void WriteFile(const std::string& path, std::string_view content) {
  if (path.empty() || path == "-") {
    Require(std::fwrite(content.data(), 1, content.size(), stdout) == content.size() &&
                std::fflush(stdout) == 0,
            "cannot write to standard output: ", std::strerror(errno));
    return;
  }
  std::string temporary = path + ".XXXXXX";
  const int file = mkstemp(temporary.data());
  Require(file >= 0, "cannot write ", path, ": ", std::strerror(errno));
  FILE* stream = fdopen(file, "wb");
  const bool written = std::fwrite(content.data(), 1, content.size(), stream) == content.size();
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(file, 0666 & ~mask);
  const bool closed = std::fclose(stream) == 0;
  if (!written || !closed || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const std::string reason = std::strerror(errno);
    unlink(temporary.c_str());
    throw Error("cannot write " + path + ": " + reason);
  }
}

}  // namespace umbra::tools
