#include "compiler/codegen/names.h"

#include <cctype>

#include "compiler/graph/op.h"

namespace umbra::codegen {

namespace {

const std::set<std::string, std::less<>>& Keywords() {
  static const std::set<std::string, std::less<>> words = {
        "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char",
        "class", "const", "constexpr", "continue", "decltype", "default", "delete", "do", "double",
        "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto",
        "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "nullptr",
        "operator", "or", "private", "protected", "public", "register", "return", "short",
        "signed", "sizeof", "static", "struct", "switch", "template", "this", "throw", "true",
        "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void",
        "volatile", "while", "xor", "concept", "requires", "compl", "typeof", "restrict"};
  return words;
}

// Keywords, words of the prelude, and the names that the emitter itself uses.
const std::set<std::string>& Reserved() {
  static const std::set<std::string> words = [] {
    std::set<std::string> set(Keywords().begin(), Keywords().end());
    set.insert({
        "umbra", "simd", "load", "store", "load_head", "store_head", "gather", "gather_head",
        "scatter", "scatter_head", "stream", "stream_fence", "fill", "iota", "cast", "cast_mask",
        "convert", "bits", "from_bits", "keep", "across", "fold", "add_product", "packet", "detail", "Sum",
        "Product", "Maximum", "Minimum", "Traits", "Elem", "Bits", "Mask", "Rebind", "i64",
        "begin", "end", "args", "k", "j", "lanes", "by_lane", "by_lane_head", "ramp", "random_uniform", "random_gaussian", "at", "linux", "unix", "main", "widen", "apply", "kGroup",
        "smaller", "larger", "joined", "lanes_below", "load_even", "load_even_span", "load_of_pairs", "load_of_pairs_head", "load_repeated_span", "load_span",
        "load_transposed", "load_pack", "load_pack_head", "load_reversed", "load_reversed_span", "gather_span", "store_pack",
        "store_pack_head", "choice_run", "quotient_at", "quotient_run", "lanes_between", "whole", "narrow", "block_all",
        "column_all", "warp_all", "fetch", "fetch_lines", "fetch_rows", "rows_ahead", "QuotientWalk", "StreamedRow"});
    for (std::string_view name : graph::OperatorNames()) set.emplace(name);
    for (const char* element : {"f32", "f64", "i32", "i64"})
      for (const char* lanes : {"x2", "x4", "x8", "x16"})
        for (const char* group : {"", "w"}) set.insert(std::string(element) + lanes + group);
    for (int axis = 0; axis < 16; ++axis) {
      set.insert("i" + std::to_string(axis));
      set.insert("j" + std::to_string(axis));
      set.insert("n" + std::to_string(axis));
    }
    return set;
  }();
  return words;
}

}  // namespace

bool IsKeyword(std::string_view word) { return Keywords().count(word) != 0; }

std::string Names::Make(std::string_view wanted) {
  std::string name;
  for (char c : wanted)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 || name[0] == '_')
    name = "v" + name;
  std::string unique = name;
  for (int suffix = 1; Reserved().count(unique) != 0 || !taken_.insert(unique).second; ++suffix)
    unique = name + "_" + std::to_string(suffix);
  return unique;
}

}  // namespace umbra::codegen
