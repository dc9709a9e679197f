#include <fmt/format.h>

#include "compiler/graph/call.h"
#include "compiler/graph/index_map.h"
#include "compiler/graph/op.h"
#include "tools/umbra/commands.h"

namespace umbra::tools {

UMBRA_REGISTER_PARAMETER(OpsOptions);

namespace {

std::string_view Dtypes(graph::OpTypes types) {
  switch (types) {
    case graph::OpTypes::kNumeric: return "f32 f64 i32 i64";
    case graph::OpTypes::kFloat: return "f32 f64";
    case graph::OpTypes::kInteger: return "i32 i64";
    case graph::OpTypes::kBool: return "bool";
    case graph::OpTypes::kInt64: return "i64";
    case graph::OpTypes::kAny: return "any";
  }
  return "";
}

std::string_view Result(graph::OpResult result) {
  switch (result) {
    case graph::OpResult::kSame: return "same";
    case graph::OpResult::kBool: return "bool";
    case graph::OpResult::kFloat32: return "f32";
    case graph::OpResult::kFloat64: return "f64";
  }
  return "";
}

// The forms of the index maps, those with several reducers once.
std::vector<std::string_view> Forms() {
  std::vector<std::string_view> forms;
  for (const graph::IndexMapInfo& map : graph::IndexMaps())
    if (forms.empty() || forms.back() != map.form) forms.push_back(map.form);
  return forms;
}

std::string_view MeaningOf(std::string_view form) {
  for (const graph::IndexMapInfo& map : graph::IndexMaps())
    if (map.form == form) return map.doc;
  return "";
}

}  // namespace

void Operators(const OpsOptions& options) {
  if (options.markdown) {
    fmt::print(
        "# Elementwise operators\n\nThe same names everywhere: `name(...)` of expressions, of values of graphs and in "
        "text, also `F<op::name>(...)`, as mshadow has it, and `graph::Apply(\"name\", ...)`. Written by `umbra ops "
        "--markdown` from `include/umbra/ops.def`.\n\n"
        "| operator | operands | dtypes | result | meaning |\n|---|---|---|---|---|\n");
    for (const graph::OpInfo& op : graph::Primitives())
      fmt::print("| `{}` | {} | {} | {} | {} |\n", op.name, op.arity, Dtypes(op.types), Result(op.result), op.doc);
    fmt::print(
        "\nThese are written in terms of others, as `UMBRA_OP` defines a user's:\n\n"
        "| operator | definition | meaning |\n|---|---|---|\n");
    for (const graph::Composite& op : graph::Composites())
      fmt::print("| `{}{}` | `{}` | {} |\n", op.name, op.args, op.text, op.doc);
    fmt::print(
        "\n# Broadcasts, reductions and products\n\nAs the text form writes them. The expression API gives "
        "broadcast a shape in place of `like`, and has broadcast_scalar, of a vector of one element, and "
        "reduce_except_dim<axis, R>, which joins by any R.\n\n| call | result |\n|---|---|\n");
    for (const graph::CallInfo& call : graph::Calls()) fmt::print("| `{}` | {} |\n", call.form, call.doc);
    fmt::print(
        "\n# Index maps\n\nWhich element of which tensor stands where: `map(...)` of the "
        "expression API, `graph::IndexMap(\"map\", ...)`, `map(...)` in text. Written from "
        "`include/umbra/index_maps.def`; R is sum, maximum, minimum, mean or product, of gradients none but product. The tensors of a map have one "
        "dtype; an `index` has its own, and its fractions are cut off.\n\n"
        "| index map | meaning |\n|---|---|\n");
    for (std::string_view form : Forms()) fmt::print("| `{}` | {} |\n", form, MeaningOf(form));
    fmt::print("\nThe expression API writes these in terms of them:\n\n| name | definition |\n|---|---|\n");
    for (const graph::MapName& name : graph::MapNames()) fmt::print("| `{}` | `{}` |\n", name.form, name.definition);
    return;
  }
  for (const graph::OpInfo& op : graph::Primitives())
    fmt::print("{:<14} {} operand{}, {:<12} {}\n", op.name, op.arity, op.arity == 1 ? " " : "s", Dtypes(op.types),
               op.doc);
  for (const graph::Composite& op : graph::Composites())
    fmt::print("{:<14} = {}\n", fmt::format("{}{}", op.name, op.args), op.text);
  for (const graph::CallInfo& call : graph::Calls()) fmt::print("{:<50} {}\n", call.form, call.doc);
  for (std::string_view form : Forms()) fmt::print("{:<50} {}\n", form, MeaningOf(form));
}

}  // namespace umbra::tools
