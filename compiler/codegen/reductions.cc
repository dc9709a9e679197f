#include "compiler/codegen/reductions.h"

#include <utility>

#include "compiler/codegen/literal.h"

namespace umbra::codegen {

namespace {

struct Words {
  const char *accumulator, *joiner;
  graph::Op op;
};

// By reducer.
constexpr Words kWords[] = {{"total", "Sum", graph::Op::plus},
                            {"most", "Maximum", graph::Op::maximum},
                            {"least", "Minimum", graph::Op::minimum},
                            {"prod", "Product", graph::Op::mul}};

const Words& WordsOf(const plan::Reduction& reduction) { return kWords[static_cast<int>(reduction.kind)]; }

const plan::Value& ResultOf(const plan::Kernel& kernel, const plan::Reduction& reduction) {
  return kernel.values[static_cast<std::size_t>(reduction.result)];
}

}  // namespace

plan::Reduction JoinedBy(const plan::Kernel& kernel, int scanned) {
  const plan::Value& v = kernel.values[static_cast<std::size_t>(scanned)];
  return {v.reducer, v.args[0], scanned, false};
}

const char* CarryName(const plan::Reduction& scan) { return WordsOf(scan).accumulator; }

std::string AccumulatorName(const plan::Kernel& kernel, const plan::Reduction& reduction) {
  const std::string& label = ResultOf(kernel, reduction).label;
  return label.empty() ? WordsOf(reduction).accumulator : label;
}

std::string Identity(const plan::Kernel& kernel, const plan::Reduction& reduction) {
  return IdentityLiteral(reduction.kind, ResultOf(kernel, reduction).type);
}

const char* Joiner(const plan::Reduction& reduction) { return WordsOf(reduction).joiner; }

graph::Op JoinOp(const plan::Reduction& reduction) { return WordsOf(reduction).op; }

std::string Join(const Speller& speller, const plan::Kernel& kernel, const plan::Reduction& reduction,
                 const Expr& total, const Expr& element) {
  const graph::Op op = JoinOp(reduction);
  std::vector<Expr> operands = {total, element};
  // Extremes test their first operand for NaN: the newcomer's test waits for nothing.
  if (op == graph::Op::maximum || op == graph::Op::minimum) std::swap(operands[0], operands[1]);
  return speller.Map(op, ResultOf(kernel, reduction).type, operands, {false, false}).text;
}

}  // namespace umbra::codegen
