#include "compiler/graph/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>

#include "compiler/graph/parse.h"

namespace umbra::graph {

namespace {
constexpr std::size_t kShownColumns = 160;

bool IsNameStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
// What is called where other languages have the character as an operator.
std::string_view CallFor(char c) {
  switch (c) {
    case '%': return "fmod(a, b), or, of integers, a - a / b * b";
    case '&': return "bit_and(a, b)";
    case '|': return "bit_or(a, b)";
    case '^': return "bit_xor(a, b), or pow(a, b)";
    case '~': return "bit_not(a)";
    case '@': return "dot(a, b)";
    default: return "pow(a, b)";
  }
}
bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
}  // namespace

void SourceText::Fail(Position position, const std::string& message) const {
  throw ParseError(Shown(position, "error", message), position.line, position.column);
}

std::string SourceText::Note(const std::string& message, Position position, const std::string& note) const {
  return message + "\n" + Shown(position, "note", note);
}

std::string SourceText::Shown(Position position, std::string_view kind, const std::string& message) const {
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
    const std::size_t first =
        std::min(before > kShownColumns / 2 ? before - kShownColumns / 2 : 0, shown.size() - kShownColumns);
    const bool cut = first + kShownColumns < shown.size();
    shown = (first > 0 ? "..." : "") + shown.substr(first, kShownColumns) + (cut ? "..." : "");
    before = before - first + (first > 0 ? 3 : 0);
  }
  std::string caret(before, ' ');
  for (std::size_t k = 0; k < caret.size() && k < shown.size(); ++k)
    if (shown[k] == '\t') caret[k] = '\t';
  return fmt::format("{}:{}:{}: {}: {}\n{}\n{}^", name_, position.line, position.column, kind, message, shown, caret);
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

void Lexer::Number(Token* token) {
  const std::string_view rest = source_.text().substr(at_);
  const char* const last = rest.data() + rest.size();
  const bool hex = Peek() == '0' && (Peek(1) == 'x' || Peek(1) == 'X');
  std::uint64_t whole = 0;
  const auto [end, error] =
      hex ? std::from_chars(rest.data() + 2, last, whole, 16) : std::from_chars(rest.data(), last, token->number);
  if (error == std::errc::invalid_argument) source_.Fail(position_, "expected digits after 0x, as in 0xff");
  if (error != std::errc() || whole >= std::uint64_t{1} << 53)
    source_.Fail(position_, hex ? "this number is out of range: pass one of 2^53 or more as a scalar or a tensor"
                                : "this number is out of range");
  if (hex) token->number = static_cast<double>(whole);
  token->text = std::string(rest.data(), end);
  for (std::size_t k = 0; k < token->text.size(); ++k) Advance();
  if (hex) return;
  // C++ writes 1.f and 0.5f; the dtype follows from the other operand all the same.
  if ((Peek() == 'f' || Peek() == 'F') && !IsNameStart(Peek(1)) && !IsDigit(Peek(1))) Advance();
}

// 10, 0x1p3, 010, 1'000, 2.5f: with all that C++ takes for one number, but for suffixes of users.
void Lexer::CppNumber(Token* token) {
  const Position begin = position_;
  std::string digits;
  const bool hex = Peek() == '0' && (Peek(1) == 'x' || Peek(1) == 'X');
  const auto exponent = [&](char c) { return hex ? c == 'p' || c == 'P' : c == 'e' || c == 'E'; };
  bool real = false;
  while (IsNameStart(Peek()) || IsDigit(Peek()) || Peek() == '.' || Peek() == '\'' ||
         ((Peek() == '+' || Peek() == '-') && exponent(token->text.back()))) {
    real = real || Peek() == '.' || exponent(Peek());
    token->text += Peek();
    if (Peek() != '\'') digits += Peek();
    Advance();
  }
  const std::size_t suffix = digits.find_last_not_of(real ? "fFlL" : "lLzZ") + 1;
  const std::string_view ending = std::string_view(digits).substr(suffix);
  const bool suits = ending.size() <= 1 || (!real && (ending == "ll" || ending == "LL"));
  const bool is_float = real && (ending == "f" || ending == "F");
  const bool binary = digits.size() > 1 && digits[0] == '0' && (digits[1] == 'b' || digits[1] == 'B');
  const int base = hex ? 16 : binary ? 2 : digits[0] == '0' ? 8 : 10;
  const char* first = digits.data() + (hex || binary ? 2 : 0);
  const char* const last = digits.data() + suffix;
  std::from_chars_result read{};
  if (real) {
    const auto format = hex ? std::chars_format::hex : std::chars_format::general;
    float narrow = 0;
    read =
        is_float ? std::from_chars(first, last, narrow, format) : std::from_chars(first, last, token->number, format);
    if (is_float) token->number = static_cast<double>(narrow);
    token->literal = is_float ? LiteralType::kFloat : LiteralType::kReal;
  } else {
    std::uint64_t number = 0;
    read = std::from_chars(first, last, number, base);
    token->number = static_cast<double>(number);
    token->literal = LiteralType::kInteger;
  }
  const bool is_unsigned = !real && base != 10 && ending.empty() && token->number >= 0x1p31 && token->number < 0x1p32;
  if (is_unsigned || (!real && token->number >= 0x1p53))
    source_.Fail(begin, fmt::format("'{}' is {} in C++: write it with a point", token->text,
                                    is_unsigned ? "an unsigned number" : "a whole number of 2^53 or more"));
  if (read.ec == std::errc::result_out_of_range) source_.Fail(begin, fmt::format("'{}' is out of range", token->text));
  if (read.ec != std::errc() || read.ptr != last || !suits)
    source_.Fail(begin,
                 fmt::format("'{}' is no number that generated code knows: expected one such as 10, 0x10, 1e-3, 2.5f",
                             token->text));
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
    if (language_ == Language::kCpp) CppNumber(&token);
    else Number(&token);
    return token;
  }
  token.kind = Token::Kind::kSymbol;
  static constexpr std::string_view kPairs[] = {"->", "<=", ">=", "==", "!=", "&&", "||", "::"};
  for (std::string_view pair : kPairs)
    if (c == pair[0] && Peek(1) == pair[1]) token.text = pair;
  if (token.text.empty()) {
    if (std::string_view("()[]{}<>,:=+-*/?.!;").find(c) == std::string_view::npos)
      source_.Fail(position_,
                   std::isprint(static_cast<unsigned char>(c)) != 0
                       ? fmt::format("unexpected character '{}'; the operators are + - * / < <= > >= == != && || ! "
                                     "?: .T, others are called, as in {}",
                                     c, CallFor(c))
                       : fmt::format("unexpected byte 0x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c))));
    token.text = c;
  }
  for (std::size_t k = 0; k < token.text.size(); ++k) Advance();
  return token;
}

}  // namespace umbra::graph
