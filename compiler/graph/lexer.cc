#include "compiler/graph/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "compiler/graph/parse.h"

namespace umbra::graph {

namespace {
constexpr std::size_t kShownColumns = 160;

bool IsNameStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
}  // namespace

void SourceText::Fail(Position position, const std::string& message) const {
  std::string_view rest = text_;
  for (int line = 1; line < position.line && !rest.empty(); ++line) {
    const std::size_t newline = rest.find('\n');
    rest = newline == std::string_view::npos ? std::string_view() : rest.substr(newline + 1);
  }
  std::string shown;
  for (char c : rest.substr(0, rest.find('\n')))
    shown += std::isprint(static_cast<unsigned char>(c)) != 0 || c == '\t' ? c : ' ';
  auto before = static_cast<std::size_t>(position.column - 1);
  // Of a long line the part around the caret.
  if (shown.size() > kShownColumns) {
    const std::size_t first = std::min(before > kShownColumns / 2 ? before - kShownColumns / 2 : 0,
                                       shown.size() - kShownColumns);
    const bool cut = first + kShownColumns < shown.size();
    shown = (first > 0 ? "..." : "") + shown.substr(first, kShownColumns) + (cut ? "..." : "");
    before = before - first + (first > 0 ? 3 : 0);
  }
  std::string caret(before, ' ');
  for (std::size_t k = 0; k < caret.size() && k < shown.size(); ++k)
    if (shown[k] == '\t') caret[k] = '\t';
  throw ParseError(fmt::format("{}:{}:{}: error: {}\n{}\n{}^", name_, position.line,
                               position.column, message, shown, caret),
                   position.line, position.column);
}

void Lexer::Advance() {
  if (Peek() == '\n') {
    ++position_.line;
    position_.column = 1;
  } else {
    ++position_.column;
  }
  ++at_;
}

void Lexer::SkipBlanks() {
  while (!AtEnd()) {
    const char c = Peek();
    if (c == '#' || (c == '/' && Peek(1) == '/')) {
      while (!AtEnd() && Peek() != '\n') Advance();
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      Advance();
    } else {
      return;
    }
  }
}

Token Lexer::Next() {
  SkipBlanks();
  Token token;
  token.position = position_;
  if (AtEnd()) return token;
  const char c = Peek();
  if (IsNameStart(c)) {
    token.kind = Token::Kind::kName;
    while (IsNameStart(Peek()) || IsDigit(Peek())) {
      token.text += Peek();
      Advance();
    }
    return token;
  }
  if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) {
    token.kind = Token::Kind::kNumber;
    const std::string_view rest = source_.text().substr(at_);
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), token.number);
    if (error != std::errc()) source_.Fail(position_, "this number is out of range");
    token.text = std::string(rest.data(), end);
    for (std::size_t k = 0; k < token.text.size(); ++k) Advance();
    // C++ writes 1.f and 0.5f; the dtype follows from the other operand all the same.
    if ((Peek() == 'f' || Peek() == 'F') && !IsNameStart(Peek(1)) && !IsDigit(Peek(1))) Advance();
    return token;
  }
  token.kind = Token::Kind::kSymbol;
  static constexpr std::string_view kPairs[] = {"->", "<=", ">=", "==", "!=", "&&", "||", "::"};
  for (std::string_view pair : kPairs)
    if (c == pair[0] && Peek(1) == pair[1]) token.text = pair;
  if (token.text.empty()) {
    if (std::string_view("()[]{}<>,:=+-*/?.!;").find(c) == std::string_view::npos)
      source_.Fail(position_, std::isprint(static_cast<unsigned char>(c)) != 0
                                  ? fmt::format("unexpected character '{}'; the operators are + - * / < <= > >= == != && || ! "
                                                "?: .T, others are called, as in pow(a, b)", c)
                                  : fmt::format("unexpected byte 0x{:02x}",
                                                static_cast<unsigned>(static_cast<unsigned char>(c))));
    token.text = c;
  }
  for (std::size_t k = 0; k < token.text.size(); ++k) Advance();
  return token;
}

}  // namespace umbra::graph
