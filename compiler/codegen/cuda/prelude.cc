// The prelude as a CUDA source has it: what the kernels reach, with the conditions on the compiler decided and
// without what only files need.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/cuda/generate.h"
#include "compiler/codegen/prelude.h"

namespace umbra::codegen {

namespace {

bool StartsWith(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

// Decides `#if defined(__CUDACC__)` and its kin: a CUDA compiler is none of the others.
class Conditions {
 public:
  // Is the line to be kept?
  bool Keep(std::string_view line) {
    if (StartsWith(line, "#if")) {
      const bool cuda = line.find("__CUDACC__") != std::string_view::npos;
      const bool open =
          StartsWith(line, "#if ") && !cuda && line.find("defined(__CUDA_ARCH__)") != std::string_view::npos;
      levels_.push_back({open, open || Holds(line)});
      return open && IsTaken(1);
    }
    if (StartsWith(line, "#else")) {
      if (levels_.back().open) return IsTaken(1);
      levels_.back().taken = !levels_.back().taken;
      return false;
    }
    if (StartsWith(line, "#endif")) {
      const bool keep = levels_.back().open && IsTaken(1);
      levels_.pop_back();
      return keep;
    }
    return IsTaken(0);
  }

 private:
  struct Level {
    bool open;  // left to the compiler
    bool taken;
  };
  // Do all conditions of the line, `defined(...)` or its negation, hold for a CUDA compiler?
  static bool Holds(std::string_view line) {
    constexpr std::string_view kDefined = "defined(";
    bool holds = true;
    for (std::size_t at = line.find(kDefined); at != std::string_view::npos; at = line.find(kDefined, at + 1))
      holds = holds && StartsWith(line.substr(at + kDefined.size()), "__CUDACC__)") != (line[at - 1] == '!');
    return holds;
  }
  bool IsTaken(std::size_t but) const {
    for (std::size_t k = 0; k + but < levels_.size(); ++k)
      if (!levels_[k].taken) return false;
    return true;
  }
  std::vector<Level> levels_;
};

// Has the text more than comments and namespaces?
bool DefinesAnything(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    if (line != "\n" && line[0] != '#' && !StartsWith(line, "//") && !StartsWith(line, "namespace") && line[0] != '}')
      return true;
  }
  return false;
}

// At most one empty line after another, and none at the beginning.
std::string WithFewBlanks(std::string_view text) {
  std::string result;
  int ends = 2;
  for (const char c : text) {
    ends = c == '\n' ? ends + 1 : 0;
    if (ends <= 2) result += c;
  }
  return result;
}

void RemoveAll(std::string_view piece, std::string* text) {
  for (std::size_t at = text->find(piece); at != std::string::npos; at = text->find(piece, at))
    text->erase(at, piece.size());
}

}  // namespace

std::string CudaPrelude(std::string_view kernels) {
  std::string text;
  Conditions conditions;
  const bool halves = kernels.find("f16") != std::string_view::npos;
  for (const PreludeFile& file : NeededPrelude(kernels)) {
    const bool base = file.name == "umbra/kernel_abi.h" || file.name == "umbra/kernel_prelude.h";
    if (base || (file.name == "umbra/prelude/half.h" && !halves)) continue;
    std::string own;
    std::string_view rest = file.text;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
      const std::string_view line = rest.substr(0, end);
      rest.remove_prefix(end);
      const bool guard = line.find("UMBRA_PRELUDE_") != std::string_view::npos || StartsWith(line, "#include \"");
      if (!guard && conditions.Keep(line)) own += line;
    }
    if (DefinesAnything(own)) text += own;
  }
  text = WithFewBlanks(text);
  RemoveAll("namespace detail {\n}  // namespace detail\n\n", &text);
  RemoveAll("namespace detail {\n\n}  // namespace detail\n\n", &text);
  return text;
}

}  // namespace umbra::codegen
