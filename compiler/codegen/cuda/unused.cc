#include "compiler/codegen/cuda/unused.h"

#include <cctype>
#include <set>
#include <vector>

namespace umbra::codegen {

namespace {

std::vector<std::string_view> Words(std::string_view text) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    const bool member = i > 0 && text[i - 1] == '.';
    if (end > i && !member) words.push_back(text.substr(i, end - i));
    i = end + 1;
  }
  return words;
}

// What `type name = value;` declares.
std::string_view Declared(std::string_view line) {
  const std::size_t equals = line.find(" = ");
  if (equals == std::string_view::npos || line.substr(line.size() - 2) != ";\n") return {};
  const std::string_view left = line.substr(0, equals);
  if (left.find_first_of("([.{") != std::string_view::npos) return {};
  const std::vector<std::string_view> words = Words(left);
  return words.size() < 2 ? std::string_view() : words.back();
}

}  // namespace

std::string WithoutUnused(std::string_view text) {
  std::vector<std::string_view> lines, kept;
  while (!text.empty()) {
    const std::size_t end = text.find('\n') + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  std::set<std::string_view> read;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const std::string_view name = Declared(*line);
    if (!name.empty() && read.count(name) == 0) continue;
    for (const std::string_view word : Words(*line)) read.insert(word);
    if (line->substr(0, 6) == "extern") read.clear();
    kept.push_back(*line);
  }
  std::string result;
  for (auto line = kept.rbegin(); line != kept.rend(); ++line) result += *line;
  return result;
}

}  // namespace umbra::codegen
