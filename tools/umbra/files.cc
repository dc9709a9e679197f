#include "tools/umbra/files.h"

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
    Require(std::fwrite(content.data(), 1, content.size(), stdout) == content.size() &&
                std::fflush(stdout) == 0,
            "cannot write to standard output: ", std::strerror(errno));
    return;
  }
  // Devices and pipes are written as they are; a link is followed, not replaced.
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    Require(!std::filesystem::is_directory(status), "cannot write ", path, ": it is a folder");
    std::ofstream file(path, std::ios::binary);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    file.close();
    Require(static_cast<bool>(file), "cannot write ", path, ": ", std::strerror(errno));
    return;
  }
  std::string target = std::filesystem::weakly_canonical(path, ignored).string();
  if (ignored) target = path;
  std::string temporary = target + ".XXXXXX";
  const int file = mkstemp(temporary.data());
  Require(file >= 0, "cannot write ", path, ": ", std::strerror(errno));
  const mode_t mask = umask(0);
  umask(mask);
  bool good = fchmod(file, 0666 & ~mask) == 0;
  for (std::size_t done = 0; good && done < content.size();) {
    const ssize_t count = write(file, content.data() + done, content.size() - done);
    if (count >= 0)
      done += static_cast<std::size_t>(count);
    else
      good = errno == EINTR;
  }
  int reason = good ? 0 : errno;
  if (close(file) != 0 && good) good = false, reason = errno;
  if (good && std::rename(temporary.c_str(), target.c_str()) != 0) good = false, reason = errno;
  if (good) return;
  unlink(temporary.c_str());
  throw Error("cannot write " + path + ": " + std::strerror(reason));
}

void UpdateFile(const std::string& path, std::string_view content) {
  std::ifstream file(path, std::ios::binary);
  if (file && std::string{std::istreambuf_iterator<char>(file), {}} == content) return;
  WriteFile(path, content);
}

}  // namespace umbra::tools
