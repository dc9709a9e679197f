#include "tools/umbra/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "umbra/error.h"

namespace umbra::tools {

namespace {

// Writes all of it and closes the file. Returns what went wrong, as errno has it, or 0.
int WriteAndClose(int file, std::string_view content) {
  int reason = 0;
  while (reason == 0 && !content.empty()) {
    const ssize_t count = write(file, content.data(), content.size());
    if (count >= 0) content.remove_prefix(static_cast<std::size_t>(count));
    else if (errno != EINTR) reason = errno;
  }
  if (close(file) != 0 && reason == 0) reason = errno;
  return reason;
}

}  // namespace

std::string ReadFile(const std::string& path) {
  std::error_code ignored;
  Require(!std::filesystem::is_directory(path, ignored), "cannot read ", path, ": it is a folder");
  std::ifstream file(path, std::ios::binary);
  Require(static_cast<bool>(file), "cannot read ", path, ": ", std::strerror(errno));
  std::string content{std::istreambuf_iterator<char>(file), {}};
  Require(!file.bad(), "cannot read ", path);
  return content;
}

void WriteFile(const std::string& path, std::string_view content) {
  if (path.empty() || path == "-" || path == "/dev/stdout") {
    const bool good =
        std::fwrite(content.data(), 1, content.size(), stdout) == content.size() && std::fflush(stdout) == 0;
    const int reason = errno;
    Require(good, "cannot write to standard output: ", std::strerror(reason));
    return;
  }
  // Devices and pipes are written as they are; a link is followed, not replaced.
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    Require(!std::filesystem::is_directory(status), "cannot write ", path, ": it is a folder");
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    const int reason = file < 0 ? errno : WriteAndClose(file, content);
    if (reason != 0) throw Error("cannot write " + path + ": " + std::strerror(reason));
    return;
  }
  std::string target = std::filesystem::weakly_canonical(path, ignored).string();
  if (ignored) target = path;
  std::string temporary = target + ".XXXXXX";
  const int file = mkstemp(temporary.data());
  Require(file >= 0, "cannot write ", path, ": ", std::strerror(errno));
  const mode_t mask = umask(0);
  umask(mask);
  int reason = fchmod(file, 0666 & ~mask) == 0 ? 0 : errno;
  if (const int failed = WriteAndClose(file, content); reason == 0) reason = failed;
  if (reason == 0 && std::rename(temporary.c_str(), target.c_str()) != 0) reason = errno;
  if (reason == 0) return;
  unlink(temporary.c_str());
  throw Error("cannot write " + path + ": " + std::strerror(reason));
}

void UpdateFile(const std::string& path, std::string_view content) {
  std::ifstream file(path, std::ios::binary);
  if (file && std::string{std::istreambuf_iterator<char>(file), {}} == content) return;
  WriteFile(path, content);
}

}  // namespace umbra::tools
