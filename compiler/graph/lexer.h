// Words of the text form.
#ifndef UMBRA_COMPILER_GRAPH_LEXER_H_
#define UMBRA_COMPILER_GRAPH_LEXER_H_

#include <string>
#include <string_view>

#include "compiler/graph/ast.h"

namespace umbra::graph {

struct Token {
  enum class Kind { kEnd, kName, kNumber, kSymbol };
  Kind kind = Kind::kEnd;
  std::string text;
  double number = 0;
  LiteralType literal = LiteralType::kReal;  ///< of a number
  Position position;
};

/// Whose numbers a text has.
enum class Language { kText, kCpp };

/// A text with a name, for messages.
class SourceText {
 public:
  SourceText(std::string_view text, std::string_view name) : text_(text), name_(name) {}
  std::string_view text() const { return text_; }
  /// Throws ParseError with `name:line:column: error: message`, the line and a caret.
  [[noreturn]] void Fail(Position position, const std::string& message) const;
  /// The message of a ParseError, with `name:line:column: note: note`, the line and a caret behind it.
  std::string Note(const std::string& message, Position position, const std::string& note) const;

 private:
  std::string Shown(Position position, std::string_view kind, const std::string& message) const;

  std::string_view text_, name_;
};

class Lexer {
 public:
  Lexer(const SourceText& source, Language language) : source_(source), language_(language) {}
  Token Next();

 private:
  bool AtEnd() const { return at_ >= source_.text().size(); }
  char Peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.text().size() ? source_.text()[at_ + ahead] : '\0';
  }
  void Advance();
  void SkipBlanks();
  void Number(Token* token);
  void CppNumber(Token* token);

  const SourceText& source_;
  const Language language_;
  std::size_t at_ = 0;
  Position position_;
};

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_GRAPH_LEXER_H_
