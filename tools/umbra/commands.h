// The commands of the tool.
#ifndef UMBRA_TOOLS_UMBRA_COMMANDS_H_
#define UMBRA_TOOLS_UMBRA_COMMANDS_H_

#include <string>
#include <vector>

namespace umbra::tools {

struct EmitOptions {
  std::string input;  ///< a .umb file, or an expression
  std::string target, form = "source", spelling = "packets", kernel, output;
  std::vector<std::string> scalars;  ///< names in an expression that are numbers
};
void Emit(const EmitOptions& options);

struct RunOptions {
  std::string input, kernel, target, compiler = "clang";
  std::vector<std::string> in, out, scalars;  ///< name=value
  bool time = false;
  int threads = 0;
};
void Run(const RunOptions& options);

/// The table of operators, for a terminal or as the Markdown of docs/operators.md.
void Operators(bool markdown);

/// Says what this machine has, and how to get what it lacks.
void Doctor();

/// `folder`, `usage` or `clear`.
void Cache(const std::string& action);

}  // namespace umbra::tools

#endif  // UMBRA_TOOLS_UMBRA_COMMANDS_H_
