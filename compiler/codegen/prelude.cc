#include "compiler/codegen/prelude.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <unordered_map>

#include "runtime/disk_cache.h"

namespace umbra::codegen {

namespace {

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
  std::size_t file;
  std::string_view text;
  std::vector<std::string_view> names;  // of the functions and types that it defines
  std::vector<std::size_t> uses;  // the blocks that define a word of it
};

std::string_view LastWord(std::string_view text) {
  std::string_view last;
  ForEachWord(text, [&](std::string_view word) { last = word; });
  return last;
}

// What a line defines, in the prelude's style: `UMBRA_INLINE type name(`, `struct name`, `using name =`.
std::string_view DefinedBy(std::string_view line) {
  for (const std::string_view mark : {"UMBRA_INLINE ", "UMBRA_OUTLINE ", "UMBRA_IN_REGISTERS "})
    if (const auto at = line.find(mark); at != std::string_view::npos)
      return LastWord(line.substr(at, line.find('(', at) - at));
  if (const auto at = line.find("struct "); at != std::string_view::npos) {
    const std::string_view rest = line.substr(at + 7);
    return rest.substr(0,
                       static_cast<std::size_t>(std::find_if_not(rest.begin(), rest.end(), IsWordChar) - rest.begin()));
  }
  if (const auto equals = line.find(" = "); equals != std::string_view::npos && line.substr(0, 6) == "using ")
    return LastWord(line.substr(0, equals));
  return {};
}

// The braces that a line opens, less those that it closes.
int Depth(std::string_view line) {
  return static_cast<int>(std::count(line.begin(), line.end(), '{') - std::count(line.begin(), line.end(), '}'));
}

void AppendBlocks(std::size_t file, std::string_view text, std::vector<Block>* blocks) {
  std::size_t begin = 0, at = 0;
  int depth = 0;
  bool functions = false;
  const auto finish = [&](std::size_t end) {
    Block block{file, text.substr(begin, end - begin), {}, {}};
    std::string_view rest = block.text;
    depth = 0;
    while (functions && !rest.empty()) {
      const std::size_t size = std::min(rest.find('\n'), rest.size() - 1) + 1;
      const std::string_view line = rest.substr(0, size);
      // Who calls a member names its type.
      if (const std::string_view name = DefinedBy(line); !name.empty() && line[0] != '#' && depth == 0)
        block.names.push_back(name);
      depth += Depth(line);
      rest.remove_prefix(size);
    }
    if (!block.text.empty()) blocks->push_back(std::move(block));
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
      depth += Depth(line);
      const bool macro = line[0] == '#';
      functions = functions || (!macro && !DefinedBy(line).empty());
    }
    at = end;
  }
  finish(text.size());
}

// The blocks of all files, and who defines what.
struct Library {
  Library() {
    for (std::size_t k = 0; k < PreludeFiles().size(); ++k) AppendBlocks(k, PreludeFiles()[k].text, &blocks);
    for (std::size_t k = 0; k < blocks.size(); ++k) {
      for (const std::string_view name : blocks[k].names) definers[name].push_back(k);
      if (blocks[k].names.empty()) always.push_back(k);
    }
    for (Block& block : blocks) block.uses = UsedBy(block.text);
  }

  std::vector<std::size_t> UsedBy(std::string_view text) const {
    std::set<std::size_t> used;
    ForEachWord(text, [&](std::string_view word) {
      if (const auto found = definers.find(word); found != definers.end())
        used.insert(found->second.begin(), found->second.end());
    });
    return {used.begin(), used.end()};
  }

  std::vector<Block> blocks;
  std::vector<std::size_t> always;
  std::unordered_map<std::string_view, std::vector<std::size_t>> definers;
};

}  // namespace

const std::string& PreludeId() {
  static const std::string id = [] {
    std::vector<std::string_view> texts;
    for (const EmbeddedFile& file : PreludeFiles()) texts.push_back(file.text);
    return runtime::CacheKey(texts);
  }();
  return id;
}

std::vector<PreludeFile> NeededPrelude(std::string_view source) {
  static const Library library;
  std::vector<bool> kept(library.blocks.size());
  std::vector<std::size_t> open = library.UsedBy(source);
  open.insert(open.end(), library.always.begin(), library.always.end());
  while (!open.empty()) {
    const std::size_t block = open.back();
    open.pop_back();
    if (kept[block]) continue;
    kept[block] = true;
    open.insert(open.end(), library.blocks[block].uses.begin(), library.blocks[block].uses.end());
  }
  std::vector<PreludeFile> result;
  for (const EmbeddedFile& file : PreludeFiles()) result.push_back({file.name, {}});
  for (std::size_t k = 0; k < kept.size(); ++k)
    if (kept[k]) result[library.blocks[k].file].text += library.blocks[k].text;
  return result;
}

}  // namespace umbra::codegen
