// Reading and writing whole files.
#ifndef UMBRA_TOOLS_UMBRA_FILES_H_
#define UMBRA_TOOLS_UMBRA_FILES_H_

#include <string>
#include <string_view>

namespace umbra::tools {

/// Throws umbra::Error with the system's reason.
std::string ReadFile(const std::string& path);
/// Writes beside the file and renames, so that no half-written file is left. "" and "-" mean
/// standard output.
void WriteFile(const std::string& path, std::string_view content);

/// Writes a regular file as WriteFile does, unless it holds `content` already.
void UpdateFile(const std::string& path, std::string_view content);

}  // namespace umbra::tools

#endif  // UMBRA_TOOLS_UMBRA_FILES_H_
