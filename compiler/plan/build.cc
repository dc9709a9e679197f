#include "compiler/plan/build.h"

#include <map>
#include <set>

#include "compiler/plan/fuse.h"
#include "compiler/plan/group_steps.h"
#include "compiler/plan/lower_kernel.h"
#include "compiler/plan/merge_units.h"
#include "umbra/error.h"

namespace umbra::plan {

using graph::Graph;
using graph::Node;
using Kind = graph::Node::Kind;
using runtime::Buffer;
using runtime::Extent;

namespace {

class Builder {
 public:
  Builder(const Graph& graph, bool on_gpu) : graph_(graph), on_gpu_(on_gpu), fusion_(Fuse(graph, on_gpu)) {}

  Plan Run() {
    plan_.name = graph_.name();
    for (int id : graph_.scalars()) {
      memory_.scalar[id] = static_cast<int>(plan_.scalars.size());
      plan_.scalars.emplace_back(graph_.node(id).name, graph_.node(id).dtype);
    }
    for (int id : graph_.inputs()) memory_.read[id] = AddBuffer(graph_.node(id).name, Buffer::Kind::kInput, id);
    for (const graph::Output& output : graph_.outputs()) {
      const int buffer = AddBuffer(output.name, Buffer::Kind::kOutput, output.node);
      memory_.write[output.node].push_back(buffer);
      memory_.read.emplace(output.node, buffer);
    }
    // A root whose readers have all joined its unit needs no memory.
    std::set<int> read;
    for (const Unit& unit : fusion_.units) read.merge(NodesRead(graph_, fusion_, unit));
    for (auto written = fusion_.views.writes.rbegin(); written != fusion_.views.writes.rend(); ++written) {
      const auto& [holder, parts] = *written;  // after what it is written to itself
      if (fusion_.roots.count(holder) == 0) continue;
      if (memory_.write.count(holder) == 0) AddTemporary(holder);
      for (const int buffer : std::vector<int>(memory_.write.at(holder)))
        for (const auto& [root, view] : parts) {
          const int place = AddView(buffer, root, view);
          memory_.write[root].push_back(place);
          memory_.read.emplace(root, place);
        }
    }
    for (int root : fusion_.roots) {
      if (memory_.write.count(root)) continue;
      if (const auto view = fusion_.views.reads.find(root); view != fusion_.views.reads.end())
        memory_.read.emplace(root, AddView(memory_.read.at(graph_.node(root).inputs[0]), root, view->second));
      else if (read.count(root)) AddTemporary(root);
      else memory_.write[root] = {};
    }
    std::size_t kernels = 0;
    for (const Unit& unit : fusion_.units) kernels += unit.gemm ? 0 : 1;
    std::size_t index = 0;
    std::vector<std::string> names;  // of the units
    for (const Unit& unit : fusion_.units) {
      if (unit.gemm) {
        AddGemm(unit.roots[0].node);
        names.push_back(StepName(plan_, plan_.steps.back()));
        continue;
      }
      const std::string suffix = kernels > 1 ? "_" + std::to_string(index++) : "";
      Kernel kernel = LowerKernel(
          graph_, fusion_, unit, memory_, [this](const Dimension& dim) { return ToExtent(dim); }, plan_.name + suffix,
          on_gpu_);
      kernel.summary = Summarize(plan_, kernel);
      plan_.steps.emplace_back(std::move(kernel));
      names.push_back(StepName(plan_, plan_.steps.back()));
    }
    for (const Neighbours& pair : fusion_.apart)
      plan_.apart.push_back(
          {names[static_cast<std::size_t>(pair.first)], names[static_cast<std::size_t>(pair.second)], pair.why});
    for (const auto& [node, choice] : fusion_.choices)
      if (choice.why == Why::kCheap || memory_.read.count(node)) AddChoice(choice);
    for (const Graph::Derived& derived : graph_.derived())
      plan_.derived.push_back({ToExtent(derived.result), derived.op, ToExtent(derived.a), ToExtent(derived.b)});
    GroupSteps(&plan_);
    return std::move(plan_);
  }

 private:
  Extent ToExtent(const Dimension& dim) {
    const Dimension known = graph_.Known(dim);
    if (known.is_static()) return Extent::Static(static_cast<std::int64_t>(known));
    const auto [found, fresh] = symbols_.emplace(known.symbol(), static_cast<int>(plan_.symbols.size()));
    if (fresh) {
      const std::string& name = graph_.symbol_name(known.symbol());
      plan_.symbols.push_back(name.empty() ? UnnamedExtent(plan_.symbols.size()) : name);
    }
    return Extent::Symbol(found->second);
  }

  std::vector<Extent> ToExtents(const PartialShape& shape) {
    std::vector<Extent> extents;
    for (std::size_t d = 0; d < shape.size(); ++d) extents.push_back(ToExtent(shape[d]));
    return extents;
  }

  void AddChoice(const Choice& choice) {
    const Node& node = graph_.node(choice.node);
    ChosenValue value{
        std::string(graph_.label(choice.node)),
        node.dtype,
        ToExtents(node.shape),
        {choice.node, choice.why, choice.readers, choice.of_rows, {}, ToExtents(choice.spread), choice.repeated}};
    for (const auto& [cost, shape] : choice.work) value.choice.work.emplace_back(cost, ToExtents(shape));
    const auto buffer = memory_.read.find(choice.node);
    if (buffer != memory_.read.end() && memory_.views.count(buffer->second) != 0) return;  // of what it lies in
    if (buffer != memory_.read.end()) value.name = plan_.buffers[static_cast<std::size_t>(buffer->second)].name;
    else if (value.name.empty())
      value.name =
          "some " + std::string(node.kind == Kind::kMap                                  ? graph::Info(node.op).name
                                : node.kind == Kind::kReduce || node.kind == Kind::kScan ? graph::Name(node.reducer)
                                                                                         : std::string_view("tcast"));
    plan_.choices.push_back(std::move(value));
  }

  int AddBuffer(std::string name, Buffer::Kind kind, int node) {
    Buffer buffer;
    buffer.name = std::move(name);
    buffer.kind = kind;
    buffer.dtype = graph_.node(node).dtype;
    buffer.shape = ToExtents(graph_.node(node).shape);
    plan_.buffers.push_back(std::move(buffer));
    return static_cast<int>(plan_.buffers.size()) - 1;
  }

  void AddTemporary(int root) {
    const std::string label(graph_.label(root));
    const int buffer =
        AddBuffer(label.empty() ? "tmp" + std::to_string(temporaries_++) : label, Buffer::Kind::kTemporary, root);
    memory_.write[root].push_back(buffer);
    memory_.read.emplace(root, buffer);
  }

  // The memory of the buffer `place` with the dimensions of `node`.
  int AddView(int place, int node, const View& view) {
    std::string name(view.part < 0 ? std::string_view() : graph_.label(node));
    if (name.empty()) {
      name = plan_.buffers[static_cast<std::size_t>(place)].name;
      if (view.part >= 0) name += "_part" + std::to_string(parts_++);
    }
    const int id = AddBuffer(std::move(name), Buffer::Kind::kView, node);
    Buffer& buffer = plan_.buffers.back();
    buffer.place = place;
    buffer.goes_on = view.goes_on;
    buffer.place_goes_on = view.place_goes_on;
    buffer.part = view.part;
    if (view.part >= 0) buffer.begin = ToExtent(view.begin);
    memory_.views.emplace(id, view);
    return id;
  }

  void AddGemm(int id) {
    const Node& node = graph_.node(id);
    Gemm gemm;
    gemm.step.alpha = node.constant;
    const DotOperand a = DotOperandOf(graph_, node.inputs[0]), b = DotOperandOf(graph_, node.inputs[1]);
    gemm.step.a = memory_.read.at(a.node);
    gemm.step.b = memory_.read.at(b.node);
    gemm.step.transpose_a = node.transpose_a != a.transposed;
    gemm.step.transpose_b = node.transpose_b != b.transposed;
    for (int buffer : memory_.write.at(id)) {
      gemm.step.c = buffer;
      plan_.steps.emplace_back(gemm);
    }
  }

  const Graph& graph_;
  const bool on_gpu_;
  Fusion fusion_;
  Plan plan_;
  MemoryMap memory_;
  std::map<int, int> symbols_;
  int temporaries_ = 0, parts_ = 0;
};

}  // namespace

Plan Build(const Graph& graph, bool on_gpu) { return Builder(graph, on_gpu).Run(); }

runtime::Program ToProgram(const Plan& plan) {
  runtime::Program program;
  program.name = plan.name;
  program.buffers = plan.buffers;
  program.scalars = plan.scalars;
  program.num_symbols = static_cast<int>(plan.symbols.size());
  program.derived = plan.derived;
  program.groups = plan.groups;
  for (const auto& step : plan.steps) {
    if (const auto* gemm = std::get_if<Gemm>(&step)) {
      program.steps.emplace_back(gemm->step);
      continue;
    }
    runtime::KernelStep kernel;
    kernel.signature = std::get<Kernel>(step).signature;
    program.steps.emplace_back(std::move(kernel));
  }
  return program;
}

}  // namespace umbra::plan
