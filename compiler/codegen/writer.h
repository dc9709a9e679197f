// Lines of generated source with their indentation.
#ifndef UMBRA_COMPILER_CODEGEN_WRITER_H_
#define UMBRA_COMPILER_CODEGEN_WRITER_H_

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace umbra::codegen {

class Writer {
 public:
  /// One line.
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    Indent();
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += std::exchange(remark_, {}) + '\n';
  }
  /// Ends the next line.
  void Remark(std::string text) { remark_ = std::move(text); }
  /// A line that opens a block; `{` is added.
  template <typename... Args>
  void Open(fmt::format_string<Args...> format, Args&&... args) {
    Indent();
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += text_.empty() || text_.back() == ' ' ? "{\n" : " {\n";
    ++depth_;
  }
  void Close(std::string_view end = "}") {
    --depth_;
    Indent();
    text_ += end;
    text_ += '\n';
  }
  /// Ends one block and begins the next: `} else {`.
  void Middle(std::string_view text) {
    Close(text);
    ++depth_;
  }
  void Blank() { text_ += '\n'; }

  std::string Take() { return std::move(text_); }

 private:
  void Indent() { text_.append(static_cast<std::size_t>(depth_) * 2, ' '); }

  std::string text_, remark_;
  int depth_ = 0;
};

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_WRITER_H_
