#include "compiler/codegen/prelude.h"

#include <algorithm>
#include <cctype>
#include <unordered_set>

namespace umbra::codegen {

namespace {

using Words = std::unordered_set<std::string_view>;

bool IsWordChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Calls visit(word) for each identifier or number of the text outside of comments.
template <typename Visit>
void ForEachWord(std::string_view text, Visit visit) {
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i, 2) == "//") i = std::min(text.find('\n', i), text.size() - 1);
    if (!IsWordChar(text[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && IsWordChar(text[end])) ++end;
    visit(text.substr(i, end - i));
    i = end;
  }
}

// Lines that stand or fall together: what blank lines outside of braces separate. A block without
// names is always needed.
struct Block {
  std::string_view text;
  std::vector<std::string_view> names;  // of the functions and types that it defines
  Words words;
};

std::string_view LastWord(std::string_view text) {
  std::string_view last;
  ForEachWord(text, [&](std::string_view word) { last = word; });
  return last;
}

// What a line defines, in the prelude's style: `UMBRA_INLINE type name(`, `struct name`, `using name =`.
std::string_view DefinedBy(std::string_view line) {
  if (const auto at = line.find("UMBRA_INLINE "); at != std::string_view::npos)
    return LastWord(line.substr(at, line.find('(', at) - at));
  if (const auto at = line.find("struct "); at != std::string_view::npos) {
    const std::string_view rest = line.substr(at + 7);
    return rest.substr(0, static_cast<std::size_t>(std::find_if_not(rest.begin(), rest.end(), IsWordChar) - rest.begin()));
  }
  if (const auto equals = line.find(" = "); equals != std::string_view::npos && line.substr(0, 6) == "using ")
    return LastWord(line.substr(0, equals));
  return {};
}

std::vector<Block> BlocksOf(std::string_view text) {
  std::vector<Block> blocks;
  std::size_t begin = 0, at = 0;
  int depth = 0;
  bool functions = false;
  const auto finish = [&](std::size_t end) {
    Block block{text.substr(begin, end - begin), {}, {}};
    std::string_view rest = block.text;
    while (functions && !rest.empty()) {
      const std::size_t size = std::min(rest.find('\n'), rest.size() - 1) + 1;
      const std::string_view line = rest.substr(0, size);
      if (const std::string_view name = DefinedBy(line); !name.empty() && line[0] != '#')
        block.names.push_back(name);
      rest.remove_prefix(size);
    }
    ForEachWord(block.text, [&](std::string_view word) { block.words.insert(word); });
    if (!block.text.empty()) blocks.push_back(std::move(block));
    begin = end;
    depth = 0;
    functions = false;
  };
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line = text.substr(at, end - at);
    const bool scope = line.substr(0, 9) == "namespace" || line.substr(0, 13) == "}  // namespa";
    if (scope || (depth == 0 && line == "\n")) {
      finish(at);
      if (scope) finish(end);
    } else {
      depth += static_cast<int>(std::count(line.begin(), line.end(), '{')) -
               static_cast<int>(std::count(line.begin(), line.end(), '}'));
      const bool macro = line[0] == '#';
      functions = functions || (!macro && !DefinedBy(line).empty());
    }
    at = end;
  }
  finish(text.size());
  return blocks;
}

const std::vector<std::vector<Block>>& Parsed() {
  static const std::vector<std::vector<Block>> files = [] {
    std::vector<std::vector<Block>> result;
    for (const EmbeddedFile& file : PreludeFiles()) result.push_back(BlocksOf(file.text));
    return result;
  }();
  return files;
}

}  // namespace

std::vector<PreludeFile> NeededPrelude(std::string_view source) {
  const auto& files = Parsed();
  Words reached;
  const auto reach = [&](std::string_view word) { reached.insert(word); };
  ForEachWord(source, reach);
  std::unordered_set<const Block*> kept;
  for (bool grows = true; grows;) {
    grows = false;
    for (const auto& blocks : files)
      for (const Block& block : blocks) {
        const bool needed = block.names.empty() ||
                            std::any_of(block.names.begin(), block.names.end(),
                                        [&](std::string_view name) { return reached.count(name) != 0; });
        if (!needed || !kept.insert(&block).second) continue;
        reached.insert(block.words.begin(), block.words.end());
        grows = true;
      }
  }
  std::vector<PreludeFile> result;
  for (std::size_t k = 0; k < files.size(); ++k) {
    PreludeFile file{PreludeFiles()[k].name, {}};
    for (const Block& block : files[k])
      if (kept.count(&block) != 0) file.text += block.text;
    result.push_back(std::move(file));
  }
  return result;
}

}  // namespace umbra::codegen
