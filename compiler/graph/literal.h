// The printer of literals for text that people read; sources have their own.
#ifndef UMBRA_COMPILER_GRAPH_LITERAL_H_
#define UMBRA_COMPILER_GRAPH_LITERAL_H_

#include <string>

namespace umbra::graph {

/// Shortest decimal that reads back as `value`; inf, -inf and nan by name.
std::string LiteralText(double value);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_GRAPH_LITERAL_H_
