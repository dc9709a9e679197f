#include <fmt/format.h>

#include "compiler/graph/op.h"
#include "tools/umbra/commands.h"

namespace umbra::tools {

namespace {

std::string_view Dtypes(graph::OpTypes types) {
  switch (types) {
    case graph::OpTypes::kNumeric: return "f32 f64 i32";
    case graph::OpTypes::kFloat: return "f32 f64";
    case graph::OpTypes::kBool: return "bool";
    case graph::OpTypes::kAny: return "any";
  }
  return "";
}

}  // namespace

void Operators(bool markdown) {
  if (markdown) {
    fmt::print("# Elementwise operators\n\nThe same names everywhere: `F<op::name>(...)`, "
               "`graph::Apply(\"name\", ...)`, `name(...)` in text. Written by `umbra ops "
               "--markdown` from `include/umbra/ops.def`.\n\n"
               "| operator | operands | dtypes | result | meaning |\n|---|---|---|---|---|\n");
    for (const graph::OpInfo& op : graph::Primitives())
      fmt::print("| `{}` | {} | {} | {} | {} |\n", op.name, op.arity, Dtypes(op.types),
                 op.result == graph::OpResult::kBool ? "bool" : "same", op.doc);
    fmt::print("\nThese are written in terms of others, as `UMBRA_OP` defines a user's:\n\n"
               "| operator | definition | meaning |\n|---|---|---|\n");
    for (const graph::Composite& op : graph::Composites())
      fmt::print("| `{}{}` | `{}` | {} |\n", op.name, op.args, op.text, op.doc);
    return;
  }
  for (const graph::OpInfo& op : graph::Primitives())
    fmt::print("{:<14} {} operand{}, {:<12} {}\n", op.name, op.arity, op.arity == 1 ? " " : "s",
               Dtypes(op.types), op.doc);
  for (const graph::Composite& op : graph::Composites())
    fmt::print("{:<14} = {}\n", fmt::format("{}{}", op.name, op.args), op.text);
}

}  // namespace umbra::tools
