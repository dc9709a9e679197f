// The text form, file extension .umb, to graphs.
//
//   kernel bias_gelu(x: f32[?, 1024], bias: f32[1024]) -> (y: f32[?, 1024]) {
//     y = gelu(x + broadcast<1>(bias))
//   }
#ifndef UMBRA_COMPILER_GRAPH_PARSE_H_
#define UMBRA_COMPILER_GRAPH_PARSE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/graph.h"
#include "umbra/error.h"

namespace umbra::graph {

/// What is wrong with a text, where: `file:line:column: error: message`, the line and a caret.
class ParseError : public Error {
 public:
  ParseError(const std::string& message, int line, int column) : Error(message), line_(line), column_(column) {}
  int line() const { return line_; }
  int column() const { return column_; }

 private:
  int line_, column_;
};

/// The kernels of a text, in order; `name` stands for the file in messages. Throws ParseError.
std::vector<std::shared_ptr<const Graph>> Parse(std::string_view text, std::string_view name);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_GRAPH_PARSE_H_
