#include "tools/umbra-extract/extract.h"

#include <clang/AST/ASTConsumer.h>
#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/Driver/Options.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendAction.h>
#include <clang/Frontend/Utils.h>
#include <clang/Sema/SemaConsumer.h>
#include <clang/Tooling/CompilationDatabase.h>
#include <clang/Tooling/Tooling.h>
#include <llvm/Option/ArgList.h>
#include <llvm/Option/OptTable.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/LineIterator.h>
#include <llvm/Support/MemoryBuffer.h>

#include <algorithm>
#include <filesystem>
#include <list>
#include <map>
#include <set>
#include <tuple>

#include "tools/umbra-extract/interpreter.h"
#include "tools/umbra-extract/kernel.h"

namespace umbra::extract {

namespace {

// Is this a function that makes expressions or shapes? Its body is run.
bool MakesExpressions(const clang::FunctionDecl* function) {
  const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(function);
  const bool named = function->getDeclName().isIdentifier();
  if (method != nullptr) {
    static constexpr llvm::StringLiteral kClasses[] = {"Exp", "RValueExp", "Tensor", "TransposeExp", "Shape"};
    if (method->getParent()->getName() == "Shape") return true;
    return named && llvm::is_contained(kClasses, method->getParent()->getName()) && function->getName() != "__assign";
  }
  const auto* space = llvm::dyn_cast<clang::NamespaceDecl>(function->getDeclContext());
  if (space == nullptr) return false;
  for (const llvm::StringRef inner : {"functions", "detail"})
    if (const auto* outer = llvm::dyn_cast<clang::NamespaceDecl>(space->getParent());
        outer != nullptr && space->getName() == inner)
      space = outer;
  if (space->getName() != "expr") return named && function->getName().starts_with("Shape");
  static constexpr llvm::StringLiteral kEvaluate[] = {"MapExp",        "MapPlan", "MapPacketPlan",
                                                      "AssignEagerly", "EvalDot", "EvalMatrixDot"};
  return !named || !llvm::is_contained(kEvaluate, function->getName());
}

class Consumer : public clang::SemaConsumer {
 public:
  Consumer(const ExtractOptions* options, Extraction* extraction) : options_(*options), extraction_(*extraction) {}

  void InitializeSema(clang::Sema& sema) override {
    sema_ = &sema;
    sema.getDiagnostics().setIgnoreAllWarnings(true);  // they are for the compiler to give
  }
  void ForgetSema() override { sema_ = nullptr; }

  // What evaluates expressions is neither read nor instantiated.
  bool shouldSkipFunctionBody(clang::Decl* decl) override {
    const auto* function = decl->getAsFunction();
    if (function == nullptr) return false;
    if (IsUmbra(function)) return !MakesExpressions(function);
    return sema_->getSourceManager().isInSystemHeader(decl->getLocation());
  }

  void HandleTranslationUnit(clang::ASTContext& context) override {
    clang::DiagnosticsEngine& diagnostics = context.getDiagnostics();
    if (diagnostics.hasErrorOccurred()) return;
    diagnostics.setIgnoreAllWarnings(false);
    diagnostics.setWarningsAsErrors(false);
    Find(context.getTranslationUnitDecl());
    clang::SourceManager& sources = context.getSourceManager();
    found_.sort([&](const auto* a, const auto* b) {
      return sources.isBeforeInTranslationUnit(a->getLocation(), b->getLocation());
    });
    const auto level = options_.strict ? clang::DiagnosticsEngine::Error : clang::DiagnosticsEngine::Warning;
    std::map<std::string, const clang::FunctionDecl*> names;
    for (const clang::FunctionDecl* function : found_) {
      auto kernel = ExtractKernel(sema_, function, level, &called_);
      if (!kernel) {
        ++extraction_.eager;
        continue;
      }
      if (const auto [other, fresh] = names.emplace(kernel->name, function); !fresh) {
        diagnostics.Report(function->getLocation(),
                           diagnostics.getCustomDiagID(clang::DiagnosticsEngine::Error, "two kernels are called '%0'"))
            << kernel->name;
        diagnostics.Report(other->second->getLocation(),
                           diagnostics.getCustomDiagID(clang::DiagnosticsEngine::Note,
                                                       "the other is here; overloads need names of their own"));
        continue;
      }
      extraction_.kernels.push_back(std::move(*kernel));
    }
    // An operator's Map may have instantiated what it calls. Of what a kernel that stays eager calls nothing is known.
    for (const clang::FunctionTemplateDecl* family : families_)
      if (family->spec_begin() == family->spec_end() &&
          (extraction_.eager == 0 || family->getTemplatedDecl()->getReturnType()->isVoidType()))
        Warn(
            family,
            "nothing in this file instantiates %0, so no kernel is made of it; ask for one: `template void f<float>(...);`");
    for (const clang::FunctionDecl* function : helpers_)
      if (extraction_.eager == 0 && called_.count(function->getCanonicalDecl()) == 0)
        Warn(function,
             "%0 returns a value, so it serves kernels that call it, and none here does; no kernel is made of it");
  }

 private:
  // Definitions in the file itself, and instantiations that it asks for.
  void Find(const clang::DeclContext* scope) {
    const clang::SourceManager& sources = sema_->getSourceManager();
    for (const clang::Decl* decl : scope->decls()) {
      if (const auto* function = llvm::dyn_cast<clang::FunctionDecl>(decl)) {
        if (function->isThisDeclarationADefinition() && !function->isDependentContext() &&
            sources.isInMainFile(sources.getExpansionLoc(function->getLocation())) && IsMarked(function))
          Add(function);
      } else if (const auto* family = llvm::dyn_cast<clang::FunctionTemplateDecl>(decl)) {
        if (family != family->getCanonicalDecl() || !IsMarked(family->getTemplatedDecl())) continue;
        if (sources.isInMainFile(sources.getExpansionLoc(family->getLocation()))) families_.push_back(family);
        for (const clang::FunctionDecl* function : family->specializations())
          if (const auto* definition = function->getDefinition())
            if (sources.isInMainFile(sources.getExpansionLoc(definition->getPointOfInstantiation().isValid()
                                                                 ? definition->getPointOfInstantiation()
                                                                 : definition->getLocation())))
              Add(definition);
      } else if (llvm::isa<clang::NamespaceDecl>(decl) || llvm::isa<clang::LinkageSpecDecl>(decl) ||
                 (llvm::isa<clang::CXXRecordDecl>(decl) &&
                  !llvm::cast<clang::CXXRecordDecl>(decl)->isDependentContext())) {
        const auto* space = llvm::dyn_cast<clang::NamespaceDecl>(decl);
        if (space == nullptr || !(space->isStdNamespace() || IsUmbra(space) || space->getName() == "umbra"))
          Find(llvm::cast<clang::DeclContext>(decl));
      }
    }
  }
  // A function that returns something serves kernels; it is none itself.
  void Add(const clang::FunctionDecl* function) {
    if (seen_.insert(function->getCanonicalDecl()).second)
      (function->getReturnType()->isVoidType() ? found_ : helpers_).push_back(function);
  }
  template <unsigned n>
  void Warn(const clang::NamedDecl* function, const char (&text)[n]) {
    clang::DiagnosticsEngine& diagnostics = sema_->getDiagnostics();
    diagnostics.Report(function->getLocation(), diagnostics.getCustomDiagID(clang::DiagnosticsEngine::Warning, text))
        << function;
  }

  const ExtractOptions& options_;
  Extraction& extraction_;
  clang::Sema* sema_ = nullptr;
  std::list<const clang::FunctionDecl*> found_, helpers_;
  std::list<const clang::FunctionTemplateDecl*> families_;
  std::set<const clang::FunctionDecl*> seen_, called_;
};

class Action : public clang::ASTFrontendAction {
 public:
  Action(const ExtractOptions* options, Extraction* extraction) : options_(options), extraction_(extraction) {}

  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler, llvm::StringRef) override {
    compiler.getFrontendOpts().SkipFunctionBodies = true;
    dependencies_.attachToPreprocessor(compiler.getPreprocessor());
    return std::make_unique<Consumer>(options_, extraction_);
  }
  void EndSourceFileAction() override {
    if (getCompilerInstance().getDiagnostics().hasErrorOccurred()) extraction_->failed = true;
    for (const std::string& file : dependencies_.getDependencies()) extraction_->dependencies.push_back(file);
  }

 private:
  const ExtractOptions* options_;
  Extraction* extraction_;
  clang::DependencyCollector dependencies_;
};

class Factory : public clang::tooling::FrontendActionFactory {
 public:
  Factory(const ExtractOptions* options, Extraction* extraction) : options_(options), extraction_(extraction) {}
  std::unique_ptr<clang::FrontendAction> create() override { return std::make_unique<Action>(options_, extraction_); }

 private:
  const ExtractOptions* options_;
  Extraction* extraction_;
};

std::unique_ptr<clang::tooling::CompilationDatabase> Commands(const ExtractOptions& options, const std::string& file) {
  using clang::tooling::CompilationDatabase;
  if (options.has_flags) return std::make_unique<clang::tooling::FixedCompilationDatabase>(".", options.flags);
  std::string why;
  auto database = options.database.empty() ? CompilationDatabase::autoDetectFromSource(file, why)
                                           : CompilationDatabase::loadFromDirectory(options.database, why);
  Require(database != nullptr, "no compile commands for ", file,
          options.database.empty() ? "" : " in " + options.database,
          ": name the folder of compile_commands.json with --database, or give the compiler's flags after --");
  return database;
}

// The folder of Clang's own headers: the one that the arguments name, or that of the Clang that this is.
std::string ClangHeaders(const clang::tooling::CommandLineArguments& arguments) {
  std::string folder = UMBRA_CLANG_RESOURCES;
  for (std::size_t k = 1; k < arguments.size(); ++k) {
    const llvm::StringRef argument = arguments[k];
    if (argument.starts_with("-resource-dir=")) folder = argument.drop_front(14).str();
    else if (argument == "-resource-dir" && k + 1 < arguments.size()) folder = arguments[++k];
  }
  return folder;
}

void RequireClangHeaders(const clang::tooling::CompilationDatabase& database, const std::string& file) {
  for (const auto& command : database.getCompileCommands(file)) {
    const std::string header = ClangHeaders(command.CommandLine) + "/include/stddef.h";
    std::error_code ignored;
    Require(std::filesystem::is_regular_file(header, ignored), "Clang's own headers are missing: there is no file ",
            header, "; install the Debian package libclang-common-", LLVM_VERSION_MAJOR,
            "-dev, or name their folder with -resource-dir=FOLDER");
  }
}

// The arguments of any compiler as Clang takes them: without those that it does not know, as g++ has for its optimiser
// and its warnings, which are for that compiler to give; and with the place of Clang's own headers, unless one is
// given.
clang::tooling::CommandLineArguments ForClang(const clang::tooling::CommandLineArguments& arguments, llvm::StringRef) {
  namespace options = clang::driver::options;
  std::vector<const char*> given;
  for (const std::string& argument : arguments) given.push_back(argument.c_str());
  unsigned index = 0, count = 0;
  const llvm::opt::InputArgList parsed = clang::driver::getDriverOptTable().ParseArgs(
      llvm::ArrayRef(given).drop_front(), index, count, llvm::opt::Visibility(options::ClangOption));
  std::set<std::size_t> unknown;
  for (const llvm::opt::Arg* argument : parsed.filtered(options::OPT_UNKNOWN)) unknown.insert(argument->getIndex() + 1);
  clang::tooling::CommandLineArguments known = {arguments[0], "-w", "-resource-dir=" + ClangHeaders(arguments)};
  for (std::size_t k = 1; k < arguments.size(); ++k)
    if (unknown.count(k) == 0) known.push_back(arguments[k]);
  return known;
}

}  // namespace

std::vector<std::string> ReadFlags(const std::string& path) {
  const auto text = llvm::MemoryBuffer::getFile(path, true);
  Require(static_cast<bool>(text), "cannot read the flags in ", path, ": ", text.getError().message());
  llvm::BumpPtrAllocator memory;
  llvm::StringSaver saver(memory);
  llvm::SmallVector<const char*> flags;
  for (llvm::line_iterator line(**text); !line.is_at_eof(); ++line) {
    if (llvm::StringRef several = *line; several.consume_front("SHELL:"))
      llvm::cl::TokenizeGNUCommandLine(several, saver, flags);
    else flags.push_back(saver.save(*line).data());
  }
  return {flags.begin(), flags.end()};
}

Extraction Extract(const ExtractOptions& options) {
  Extraction extraction;
  for (const std::string& file : options.files) {
    std::error_code ignored;
    Require(std::filesystem::is_regular_file(file, ignored), "there is no file ", file);
    const auto database = Commands(options, file);
    RequireClangHeaders(*database, file);
    clang::tooling::ClangTool tool(*database, {file});
    tool.appendArgumentsAdjuster(ForClang);
    Factory factory(&options, &extraction);
    if (tool.run(&factory) != 0) extraction.failed = true;
  }
  // A file that has several compile commands gives its kernels once.
  std::set<std::tuple<std::string, std::string, int>> known;
  std::erase_if(extraction.kernels,
                [&](const ExtractedKernel& k) { return !known.emplace(k.symbol, k.file, k.line).second; });
  std::map<std::string, const ExtractedKernel*> names;
  for (const ExtractedKernel& kernel : extraction.kernels) {
    const auto [other, fresh] = names.emplace(kernel.name, &kernel);
    if (fresh) continue;
    extraction.failed = true;
    llvm::errs() << kernel.file << ":" << kernel.line << ": error: two kernels are called '" << kernel.name
                 << "'; the other is in " << other->second->file << ":" << other->second->line << "; rename one\n";
  }
  std::sort(extraction.dependencies.begin(), extraction.dependencies.end());
  extraction.dependencies.erase(std::unique(extraction.dependencies.begin(), extraction.dependencies.end()),
                                extraction.dependencies.end());
  return extraction;
}

}  // namespace umbra::extract
