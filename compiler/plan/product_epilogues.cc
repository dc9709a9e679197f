#include "compiler/plan/product_epilogues.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/graph/parse.h"
#include "compiler/plan/build.h"
#include "umbra/error.h"

namespace umbra::plan {

namespace {

using cuda::Epilogue;
using graph::Graph;
using graph::Node;
using graph::Op;
using runtime::Buffer;
using runtime::ProductEpilogue;

// What cuBLASLt does to v, which is a product, or that and a bias.
struct Activation {
  Epilogue alone, with_bias;
  const char* text;  // of a kernel
  const char* differs;  // where cuBLASLt computes something else; null if it does not
  const char* behind;  // what is the same of v rounded to 16 bits, rounded again; null if that is another number
};
constexpr std::array<Activation, 4> kActivations = {{
    {Epilogue::kNone, Epilogue::kBias, "v", nullptr, nullptr},
    {Epilogue::kRelu, Epilogue::kBiasRelu, "v > 0 ? v : 0", nullptr, nullptr},
    {Epilogue::kRelu, Epilogue::kBiasRelu, "relu(v)", "its relu makes 0 of NaN", "relu(v)"},
    {Epilogue::kGelu, Epilogue::kBiasGelu, "gelu(v)", "how exact its gelu is, is not known", nullptr},
}};

// An epilogue as a graph over a product and a bias.
struct Known {
  Epilogue kind;
  std::shared_ptr<const Graph> graph;
  const char* differs;
  const char* behind;
  Epilogue before;  // what `behind` may follow
};
Known ToKnown(const Activation& activation, bool bias, DType dtype) {
  const std::string text =
      fmt::format("kernel epilogue(p: {0}[m, n], b: {0}[n]) -> (y: {0}[m, n]) {{\n  v = p{1}\n  y = {2}\n}}",
                  Name(dtype), bias ? " + broadcast<1>(b)" : "", activation.text);
  return {bias ? activation.with_bias : activation.alone, graph::Parse(text, "epilogue").at(0), activation.differs,
          activation.behind, bias ? Epilogue::kBias : Epilogue::kNone};
}

bool Commutes(Op op) { return op == Op::plus || op == Op::mul || op == Op::maximum || op == Op::minimum; }

// The values of a kernel beside the nodes of a graph over a product p and a bias b: are they the same?
class Comparison {
 public:
  Comparison(const Kernel& kernel, int product, const Graph& graph)
      : kernel_(kernel),
        product_(product),
        graph_(graph) {}

  bool Equal(int value, int node) {
    const Value& v = kernel_.values[static_cast<std::size_t>(value)];
    const Node& n = graph_.node(node);
    switch (n.kind) {
      case Node::Kind::kInput:
        return node == graph_.inputs()[0] ? SameAs(&found_.p, value) && IsProduct(v)
                                          : SameAs(&found_.b, value) && IsBias(v);
      case Node::Kind::kBroadcast: return Equal(value, n.inputs[0]);
      case Node::Kind::kConstant:
        return v.kind == Value::Kind::kConstant &&
               (n.dtype == DType::kFloat32 ? static_cast<float>(v.constant) == static_cast<float>(n.constant)
                                           : v.constant == n.constant);
      case Node::Kind::kMap: {
        if (v.kind != Value::Kind::kMap || v.op != n.op) return false;
        const Found before = found_;
        if (std::equal(v.args.begin(), v.args.end(), n.inputs.begin(),
                       [this](int arg, int input) { return Equal(arg, input); }))
          return true;
        found_ = before;
        return Commutes(n.op) && Equal(v.args[0], n.inputs[1]) && Equal(v.args[1], n.inputs[0]);
      }
      default: return false;
    }
  }

  /// What was found of the product and the bias.
  const ProductEpilogue& epilogue() const { return found_.epilogue; }

 private:
  struct Found {
    int p = -1, b = -1;  // values
    ProductEpilogue epilogue;
  };

  static bool SameAs(int* known, int value) {
    if (*known < 0) *known = value;
    return *known == value;
  }

  const Value& value(int id) const { return kernel_.values[static_cast<std::size_t>(id)]; }
  const runtime::Access& Loaded(const Value& v) const {
    return kernel_.signature.operands[static_cast<std::size_t>(v.index)];
  }

  // The product, or a number times it.
  bool IsProduct(const Value& v) {
    if (v.kind == Value::Kind::kLoad) return Loaded(v).buffer == product_;
    if (v.kind != Value::Kind::kMap || v.op != Op::mul) return false;
    for (const std::size_t k : {0, 1}) {
      const Value &factor = value(v.args[k]), &p = value(v.args[1 - k]);
      if (p.kind != Value::Kind::kLoad || Loaded(p).buffer != product_) continue;
      if (factor.kind == Value::Kind::kConstant) found_.epilogue.scale = factor.constant;
      else if (factor.kind == Value::Kind::kScalar)
        found_.epilogue.scalar = kernel_.signature.scalars[static_cast<std::size_t>(factor.index)];
      else return false;
      return true;
    }
    return false;
  }

  // A vector along the columns, of any dtype.
  bool IsBias(const Value& v) {
    const Value& loaded = v.kind == Value::Kind::kCast ? value(v.args[0]) : v;
    if (loaded.kind != Value::Kind::kLoad) return false;
    std::vector<int> along(kernel_.signature.axes.size(), -1);
    along.back() = 0;
    found_.epilogue.bias = Loaded(loaded).buffer;
    return Loaded(loaded).dim_of_axis == along;
  }

  const Kernel& kernel_;
  const int product_;
  const Graph& graph_;
  Found found_;
};

class Epilogues {
 public:
  Epilogues(Plan* plan, bool fast) : plan_(*plan), fast_(fast) {}

  void Run() {
    for (auto& step : plan_.steps)
      if (auto* gemm = std::get_if<Gemm>(&step)) gemm->why_alone = Find(&gemm->step);
    // From the last one, so that the steps before each stay where they are.
    for (auto behind = behind_.rbegin(); behind != behind_.rend(); ++behind) Insert(behind->first, behind->second);
  }

 private:
  const Buffer& buffer(int id) const { return plan_.buffers[static_cast<std::size_t>(id)]; }

  // Says why there is none, if there is none and a kernel follows.
  std::string Find(runtime::GemmStep* gemm) {
    const Kernel* reader = nullptr;
    int at = -1, readers = buffer(gemm->c).kind == Buffer::Kind::kOutput ? 1 : 0;
    for (std::size_t k = 0; k < plan_.steps.size(); ++k) {
      if (const auto* other = std::get_if<Gemm>(&plan_.steps[k])) {
        readers += other->step.a == gemm->c || other->step.b == gemm->c ? 1 : 0;
        continue;
      }
      const auto& kernel = std::get<Kernel>(plan_.steps[k]);
      const auto& operands = kernel.signature.operands;
      if (std::none_of(operands.begin(), operands.end(),
                       [&](const auto& access) { return !access.store && access.buffer == gemm->c; }))
        continue;
      reader = &kernel;
      at = static_cast<int>(k);
      ++readers;
    }
    if (reader == nullptr) return {};
    if (readers > 1) return "the product itself is wanted, too";
    if (IsHalf(buffer(gemm->c).dtype))
      return fmt::format("the product is rounded to {} first", Name(buffer(gemm->c).dtype));
    const auto result = ResultOf(*reader, gemm->c);
    if (!result) return "it has no epilogue for that";
    const DType dtype = buffer(result->buffer).dtype;
    if (dtype != buffer(gemm->c).dtype && dtype != buffer(gemm->a).dtype)
      return fmt::format("products of {} have no result of {}", Name(buffer(gemm->a).dtype), Name(dtype));
    std::string why = "it has no epilogue for that";
    for (const Known& known : KnownOf(buffer(gemm->c).dtype)) {
      Comparison comparison(*reader, gemm->c, *known.graph);
      if (!comparison.Equal(result->value, known.graph->outputs()[0].node)) continue;
      ProductEpilogue epilogue = comparison.epilogue();
      epilogue.kind = known.kind;
      epilogue.result = result->buffer;
      epilogue.kernel = at;
      if (epilogue.bias >= 0 && buffer(epilogue.bias).dtype != dtype) {
        why = fmt::format("a bias of {} is not of the result's dtype, {}", Name(buffer(epilogue.bias).dtype),
                          Name(dtype));
      } else if (known.differs != nullptr && !fast_ && known.behind != nullptr && IsHalf(dtype)) {
        epilogue.kind = known.before;
        gemm->epilogue = epilogue;
        behind_[at] = known.behind;
        return {};
      } else if (known.differs != nullptr && !fast_) {
        why = fmt::format("{}; fast math takes it", known.differs);
      } else {
        gemm->epilogue = epilogue;
        return {};
      }
    }
    return why;
  }

  // Inserts the step behind a product whose epilogue takes the place of `kernel`, which computes `text` of v, its
  // result.
  void Insert(int kernel, const std::string& text) {
    const auto own_group = std::find_if(plan_.groups.begin(), plan_.groups.end(),
                                        [kernel](const auto& group) { return kernel < group.end; });
    const int place = own_group->end;
    for (auto& step : plan_.steps) {
      auto* gemm = std::get_if<Gemm>(&step);
      if (gemm == nullptr) continue;
      for (int* other : {&gemm->step.epilogue.kernel, &gemm->step.epilogue.behind})
        if (*other >= place) ++*other;
      if (gemm->step.epilogue.kernel == kernel) gemm->step.epilogue.behind = place;
    }
    const Kernel& instead = std::get<Kernel>(plan_.steps[static_cast<std::size_t>(kernel)]);
    const int result = instead.signature.operands[static_cast<std::size_t>(instead.phases[0].stores[0].operand)].buffer;
    const std::string shape = buffer(result).shape.size() == 3 ? "[l, m, n]" : "[m, n]",
                      dtype(Name(buffer(result).dtype));
    const Plan own = Build(
        *graph::Parse(fmt::format("kernel behind(v: {0}{1}) -> (y: {0}{1}) {{\n  y = {2}\n}}", dtype, shape, text),
                      "behind")
             .at(0),
        true);
    Kernel behind = std::get<Kernel>(own.steps[0]);
    behind.signature.name = instead.signature.name + "_behind";  // of a graph that may have any name
    behind.signature.axes = buffer(result).shape;
    for (auto& access : behind.signature.operands) access.buffer = result;
    plan_.steps.insert(plan_.steps.begin() + place, std::move(behind));
    for (auto group = own_group + 1; group != plan_.groups.end(); ++group) {
      ++group->begin;
      ++group->end;
    }
    plan_.groups.insert(own_group + 1, {runtime::StepGroup::Kind::kIndependent, place, place + 1, {}, {}});
  }

  const std::vector<Known>& KnownOf(DType dtype) {
    std::vector<Known>& known = known_[dtype];
    if (known.empty())
      for (const Activation& activation : kActivations)
        for (const bool bias : {false, true}) known.push_back(ToKnown(activation, bias, dtype));
    return known;
  }

  struct Result {
    int buffer, value;  // the value is of the product's dtype
  };
  // What the kernel stores, if it makes one tensor of the product's shape, element by element; its rounding aside.
  std::optional<Result> ResultOf(const Kernel& kernel, int product) const {
    if (kernel.phases.size() != 1) return std::nullopt;
    const Phase& phase = kernel.phases[0];
    if (!phase.reductions.empty() || phase.stores.size() != 1 || !kernel.final_stores.empty()) return std::nullopt;
    const auto& operands = kernel.signature.operands;
    const auto& store = operands[static_cast<std::size_t>(phase.stores[0].operand)];
    const auto same = [&](const runtime::Access& access) {
      return access.buffer != product || access.dim_of_axis == store.dim_of_axis;
    };
    if (buffer(store.buffer).shape != buffer(product).shape || kernel.signature.axes != buffer(product).shape ||
        !std::is_sorted(store.dim_of_axis.begin(), store.dim_of_axis.end()) ||
        !std::all_of(operands.begin(), operands.end(), same) || buffer(product).shape.size() < 2)
      return std::nullopt;
    const Value& stored = kernel.values[static_cast<std::size_t>(phase.stores[0].value)];
    const bool rounds = stored.kind == Value::Kind::kCast && stored.type == buffer(store.buffer).dtype &&
                        stored.type != buffer(product).dtype;
    return Result{store.buffer, rounds ? stored.args[0] : phase.stores[0].value};
  }

  Plan& plan_;
  const bool fast_;
  std::map<DType, std::vector<Known>> known_;
  std::map<int, std::string> behind_;  // by kernel that an epilogue computes but for this
};

}  // namespace

void AddEpilogues(Plan* plan, bool fast) { Epilogues(plan, fast).Run(); }

}  // namespace umbra::plan
