#include "umbra/compile.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "compiler/codegen/source.h"
#include "compiler/driver/backend.h"
#include "compiler/driver/kernel_cache.h"
#include "compiler/driver/lower.h"
#include "compiler/driver/target.h"
#include "compiler/plan/interpret.h"
#include "runtime/parallel.h"
#include "umbra/call_site.h"

namespace umbra {

struct Function::Impl {
  plan::Plan plan;
  std::shared_ptr<const runtime::Program> program;
  std::unique_ptr<runtime::CallSite> calls;  // none if interpreted
};

namespace {

runtime::Program MakeProgram(const std::shared_ptr<const plan::Plan>& plan,
                             const CompileOptions& options, codegen::Target target) {
  runtime::Program program;
  program.name = plan->name;
  program.buffers = plan->buffers;
  program.scalars = plan->scalars;
  program.num_symbols = static_cast<int>(plan->symbols.size());
  program.derived = plan->derived;
  if (options.engine == Engine::kInterpreter) return program;
  for (std::size_t k = 0; k < plan->steps.size(); ++k) {
    if (const auto* gemm = std::get_if<plan::Gemm>(&plan->steps[k])) {
      program.steps.emplace_back(gemm->step);
      continue;
    }
    const bool system = options.engine == Engine::kSystem;
    const bool disk = options.use_disk_cache;
    runtime::CodeProvider code = [plan, k, system, disk, target](const runtime::Variant& variant) {
      return MakeKernelCode(*plan, std::get<plan::Kernel>(plan->steps[k]),
                            {target, codegen::Spelling::kPackets, variant}, system, disk);
    };
    // The common variant is made now, so that a failing compile is seen where it was asked for.
    code({});
    program.steps.emplace_back(
        runtime::KernelStep{std::get<plan::Kernel>(plan->steps[k]).signature, std::move(code)});
  }
  return program;
}

}  // namespace

Function Compile(const std::shared_ptr<const graph::Graph>& graph, const CompileOptions& options) {
  Require(graph != nullptr, "Compile: the graph is null; Builder::Build and ParseText make one");
  const codegen::Target target = ResolveTarget(options.target);
  using Key = std::tuple<std::uint64_t, codegen::Target, Engine, bool>;
  static std::mutex mutex;
  static std::multimap<Key, std::pair<std::string, Function>> functions;

  const auto& [hash, text] = graph->identity();
  const Key key{hash, target, options.engine, options.use_disk_cache};
  {
    const std::lock_guard lock(mutex);
    for (auto [entry, end] = functions.equal_range(key); entry != end; ++entry)
      if (entry->second.first == text) return entry->second.second;
  }
  auto impl = std::make_shared<Function::Impl>();
  impl->plan = Lower(*graph);
  // The program's code providers share the plan, not the function, which owns the program.
  impl->program = std::make_shared<const runtime::Program>(
      MakeProgram(std::make_shared<const plan::Plan>(impl->plan), options, target));
  if (options.engine != Engine::kInterpreter)
    impl->calls = std::make_unique<runtime::CallSite>(impl->program);
  Function function;
  function.impl_ = std::move(impl);
  const std::lock_guard lock(mutex);
  functions.emplace(key, std::make_pair(text, function));
  return function;
}

void Function::operator()(const runtime::Arguments& arguments,
                          const runtime::RunOptions& options) const {
  Require(impl_ != nullptr, "call of an empty Function: assign the result of Compile() to it first");
  runtime::RequireThreads(options.threads);
  if (impl_->calls == nullptr) {
    plan::Interpret(impl_->plan, arguments);
    return;
  }
  constexpr std::size_t kInline = 16;
  runtime::Operand operands[kInline];
  std::size_t count = 0;
  bool regular = arguments.inputs.size() + arguments.outputs.size() <= kInline &&
                 impl_->calls->Takes(arguments.inputs.size(), arguments.outputs.size(),
                                     arguments.scalars.size());
  const auto add = [&](const runtime::TensorRef& tensor) {
    regular = regular && tensor.stride.size() == tensor.shape.size();
    operands[count++] = {tensor.data, tensor.shape.data(), tensor.stride.data(),
                         static_cast<int>(tensor.shape.size()), tensor.dtype};
  };
  if (regular) {
    for (const runtime::TensorRef& tensor : arguments.inputs) add(tensor);
    for (const runtime::TensorRef& tensor : arguments.outputs) add(tensor);
  }
  if (regular) impl_->calls->Run(operands, arguments.scalars.data(), options.threads);
  else runtime::Run(*impl_->program, arguments, options);
}

const runtime::Program& Function::program() const { return *shared_program(); }

std::shared_ptr<const runtime::Program> Function::shared_program() const {
  Require(impl_ != nullptr, "an empty Function has no program: assign the result of Compile() first");
  return impl_->program;
}

bool Function::interpreted() const { return impl_ != nullptr && impl_->calls == nullptr; }

}  // namespace umbra
