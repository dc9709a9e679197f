#include "tools/umbra-extract/kernel.h"

#include <clang/AST/Mangle.h>

#include <cctype>

#include "compiler/driver/lower.h"
#include "compiler/plan/build.h"
#include "runtime/overlap.h"
#include "tools/umbra-extract/interpreter.h"

namespace umbra::extract {

namespace {

std::string Identifier(const std::string& text) {
  std::string name;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') name += c;
    else if (!name.empty() && name.back() != '_') name += '_';
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name;
}

void AppendArgument(const clang::TemplateArgument& argument, const clang::PrintingPolicy& policy, std::string* name) {
  if (argument.getKind() == clang::TemplateArgument::Pack) {
    for (const clang::TemplateArgument& part : argument.pack_elements()) AppendArgument(part, policy, name);
    return;
  }
  std::string text;
  if (argument.getKind() == clang::TemplateArgument::Type && argument.getAsType()->getAsCXXRecordDecl() != nullptr)
    text = argument.getAsType()->getAsCXXRecordDecl()->getNameAsString();
  else {
    llvm::raw_string_ostream out(text);
    argument.print(policy, out, false);
  }
  *name += "_" + Identifier(text.substr(0, 1) == "-" ? "minus" + text.substr(1) : text);
}

clang::PrintingPolicy Policy(const clang::ASTContext& context) {
  clang::PrintingPolicy policy(context.getLangOpts());
  policy.SuppressDefaultTemplateArgs = false;
  policy.Bool = true;
  return policy;
}

class KernelReader {
 public:
  KernelReader(clang::Sema* sema, const clang::FunctionDecl* function)
      : context_(sema->getASTContext()),
        function_(*function),
        policy_(Policy(context_)),
        graph_(Name()),
        composer_(&graph_),
        interpreter_(sema, &composer_) {}

  clang::SourceLocation here() const {
    return interpreter_.here().isValid() ? interpreter_.here() : place_.isValid() ? place_ : function_.getLocation();
  }

  ExtractedKernel Run(std::set<const clang::FunctionDecl*>* called) {
    const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(&function_);
    if (method != nullptr && method->isInstance())
      throw Unsupported("a member function has an object that the kernel does not know",
                        "make it static, or a free function");
    if (function_.isVariadic()) throw Unsupported("a function with '...' is no kernel", "give each parameter a type");
    std::vector<Cell> arguments;
    for (const clang::ParmVarDecl* parameter : function_.parameters()) {
      place_ = parameter->getLocation();
      arguments.push_back(Declare(*parameter));
    }
    place_ = {};
    interpreter_.Call(&function_, arguments, nullptr);
    Describe();
    Outputs();
    RequireInPlace();
    kernel_.statements = interpreter_.statements();
    called->insert(interpreter_.called().begin(), interpreter_.called().end());
    kernel_.graph = std::make_shared<const graph::Graph>(graph_);
    return std::move(kernel_);
  }

 private:
  std::string Name() const {
    std::string name = Identifier(function_.getQualifiedNameAsString());
    if (const auto* arguments = function_.getTemplateSpecializationArgs())
      for (const clang::TemplateArgument& argument : arguments->asArray()) AppendArgument(argument, policy_, &name);
    return name;
  }

  Cell Declare(const clang::ParmVarDecl& declaration) {
    Parameter parameter;
    parameter.name = declaration.getNameAsString();
    if (parameter.name.empty()) parameter.name = "arg" + std::to_string(kernel_.parameters.size());
    const clang::QualType type = declaration.getType();
    parameter.type = type.getCanonicalType().getAsString(policy_);
    Numbers& numbers = interpreter_.numbers();
    Cell cell;
    std::shared_ptr<Memory> memory;
    if (const auto* tensor = TensorClass(type)) {
      const auto arguments = tensor->getTemplateArgs().asArray();
      parameter.tensor = true;
      parameter.device = arguments[0].getAsType()->getAsCXXRecordDecl()->getNameAsString();
      parameter.rank = static_cast<int>(arguments[1].getAsIntegral().getExtValue());
      parameter.dtype = numbers.TypeOf(arguments[2].getAsType());
      memory = std::make_shared<Memory>();
      memory->name = parameter.name;
      memory->dtype = parameter.dtype;
      memory->parameter = static_cast<int>(kernel_.parameters.size());
      std::vector<Dimension> dims;
      for (int d = 0; d < parameter.rank; ++d) dims.push_back(Dimension::WithSymbol(graph_.NewSymbol()));
      memory->shape = PartialShape(std::move(dims));
      if (tensor->getName() == "TensorContainer" && !type->isReferenceType())
        throw Unsupported("parameter '" + parameter.name + "' is a copy of a container",
                          "take it by reference, or take a Tensor");
      if (type->isRValueReferenceType())
        throw Unsupported("parameter '" + parameter.name + "' is a reference to a temporary", "take a Tensor by value");
      cell = MakeCell(Tensor{memory, {}});
    } else if (const clang::QualType natural = type.getNonReferenceType();
               natural->isUnsignedIntegerType() && !natural->isBooleanType() && context_.getTypeSize(natural) > 8) {
      throw Unsupported(
          "parameter '" + parameter.name + "' has type '" + type.getAsString() + "', which a kernel does not take",
          natural->isEnumeralType()
              ? "give the enumeration a signed type, as `enum Kind : int` does: kernels have no unsigned numbers"
              : "take int or index_t: kernels have no unsigned numbers");
    } else if (numbers.IsNumber(type)) {
      if (type->isReferenceType() && !type.getNonReferenceType().isConstQualified())
        throw Unsupported("parameter '" + parameter.name + "' is a number that is passed by reference, to be changed",
                          "take it by value; results of a kernel are tensors");
      const clang::QualType bare = type.getNonReferenceType();
      parameter.dtype = ComputeType(numbers.TypeOf(numbers.ComputeOf(bare)));
      parameter.scalar = static_cast<int>(graph_.scalars().size());
      const int node = graph_.Scalar(parameter.name, parameter.dtype);
      cell = MakeCell(numbers.Convert(numbers.Node(node, numbers.ComputeOf(bare)), bare));
    } else if (type->isPointerType() || type->isArrayType()) {
      throw Unsupported("parameter '" + parameter.name + "' is a pointer", "take a Tensor or a number");
    } else {
      throw Unsupported(
          "parameter '" + parameter.name + "' has type '" + type.getAsString() + "', which a kernel does not take",
          "kernels take tensors and numbers");
    }
    kernel_.parameters.push_back(std::move(parameter));
    memories_.push_back(std::move(memory));
    return cell;
  }

  void Describe() {
    kernel_.name = graph_.name();
    kernel_.symbol = clang::ASTNameGenerator(context_).getName(&function_);
    std::string name;
    llvm::raw_string_ostream out(name);
    function_.getNameForDiagnostic(out, policy_, true);
    kernel_.signature = function_.getReturnType().getCanonicalType().getAsString(policy_) + " " + name + "(";
    for (std::size_t k = 0; k < kernel_.parameters.size(); ++k)
      kernel_.signature += (k == 0 ? "" : ", ") + kernel_.parameters[k].type + " " + kernel_.parameters[k].name;
    kernel_.signature += ")";
    const clang::PresumedLoc place = context_.getSourceManager().getPresumedLoc(function_.getLocation());
    kernel_.file = place.getFilename();
    kernel_.line = static_cast<int>(place.getLine());
    kernel_.instance = function_.isTemplateInstantiation();
  }

  void Outputs() {
    const auto& inputs = graph_.inputs();
    int outputs = 0;
    for (std::size_t k = 0; k < memories_.size(); ++k) {
      const Memory* memory = memories_[k].get();
      if (memory == nullptr) continue;
      for (std::size_t n = 0; n < inputs.size(); ++n)
        if (graph_.node(inputs[n]).name == memory->name) kernel_.parameters[k].input = static_cast<int>(n);
      if (memory->written == 0) continue;
      kernel_.parameters[k].output = outputs++;
      graph_.AddOutput(memory->name, memory->node);
      for (std::size_t other = 0; other < memories_.size(); ++other)
        if (other != k && memories_[other] && memories_[other]->last_use > memory->written)
          kernel_.apart.emplace_back(static_cast<int>(k), static_cast<int>(other));
    }
    if (outputs == 0)
      throw Unsupported("'" + function_.getNameAsString() + "' assigns to no tensor of its parameters",
                        "`y = x` between tensors copies the handle; `y = F<op::identity>(x)` copies the elements");
    for (const Parameter& parameter : kernel_.parameters)
      if (parameter.tensor && parameter.device != kernel_.parameters[0].device && kernel_.parameters[0].tensor)
        throw Unsupported("the tensors are on different devices", "give all of them the same device");
  }

  // A tensor that is read and written is one piece of memory; the kernels must not need it twice.
  void RequireInPlace() const {
    const runtime::Program program = plan::ToProgram(Lower(graph_));
    for (const Parameter& p : kernel_.parameters)
      if (p.input >= 0 && p.output >= 0 &&
          !runtime::MayShare(program, static_cast<int>(graph_.inputs().size()) + p.output, p.input))
        throw Unsupported("'" + p.name + "' is needed as it was after its new elements are written",
                          "assign to a tensor of its own");
  }

  clang::ASTContext& context_;
  const clang::FunctionDecl& function_;
  clang::PrintingPolicy policy_;
  graph::Graph graph_;
  graph::Composer composer_;
  Interpreter interpreter_;
  ExtractedKernel kernel_;
  std::vector<std::shared_ptr<Memory>> memories_;
  clang::SourceLocation place_;
};

}  // namespace

std::optional<ExtractedKernel> ExtractKernel(clang::Sema* sema, const clang::FunctionDecl* function,
                                             clang::DiagnosticsEngine::Level level,
                                             std::set<const clang::FunctionDecl*>* called) {
  clang::DiagnosticsEngine& diagnostics = sema->getDiagnostics();
  KernelReader reader(sema, function);
  const auto show = [&](const Error& error) {
    std::string name;
    llvm::raw_string_ostream out(name);
    function->getNameForDiagnostic(out, sema->getPrintingPolicy(), true);
    const auto format = diagnostics.getCustomDiagID(level, "%0; kernel '%1' %select{stays eager|cannot be generated}2");
    diagnostics.Report(reader.here(), format)
        << error.what() << name << (level == clang::DiagnosticsEngine::Error ? 1 : 0);
    const auto* unsupported = dynamic_cast<const Unsupported*>(&error);
    const bool fix = unsupported != nullptr && unsupported->place().isValid();
    auto note = diagnostics.Report(fix ? unsupported->place() : reader.here(),
                                   diagnostics.getCustomDiagID(clang::DiagnosticsEngine::Note, "%0"));
    note << (unsupported != nullptr ? unsupported->hint()
                                    : "docs/extract.md and docs/operators.md have what kernels take");
    if (fix) note << clang::FixItHint::CreateInsertion(unsupported->place(), unsupported->text());
  };
  try {
    return reader.Run(called);
  } catch (const Error& error) { show(error); }
  return std::nullopt;
}

}  // namespace umbra::extract
