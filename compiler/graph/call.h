// Calls of the text form that are neither elementwise operators nor index maps, for the parser and for the tables.
#ifndef UMBRA_COMPILER_GRAPH_CALL_H_
#define UMBRA_COMPILER_GRAPH_CALL_H_

#include <span>
#include <string>
#include <string_view>

namespace umbra::graph {

struct CallInfo {
  std::string_view form;  ///< as the text writes it: `broadcast<axis>(v, like)`
  std::string_view doc;
  std::string_view name() const { return form.substr(0, form.find_first_of("<(")); }
  /// Does it take something in angle brackets?
  bool parametrised() const { return form[name().size()] == '<'; }
};
std::span<const CallInfo> Calls();
/// The call of that name; null if there is none.
const CallInfo* FindCall(std::string_view name);

/// A name of the expression API that it writes in terms of index maps.
struct MapName {
  std::string_view form, definition;
};
std::span<const MapName> MapNames();

/// What is said of a name that no operator, call or index map has: "unknown operator 'gleu'; did you mean 'gelu'?"
std::string UnknownOperator(std::string_view name);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_GRAPH_CALL_H_
