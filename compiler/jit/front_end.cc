#include "compiler/jit/front_end.h"

#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/DiagnosticOptions.h>
#include <clang/AST/ASTConsumer.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/DeclGroup.h>
#include <clang/AST/GlobalDecl.h>
#include <clang/CodeGen/ModuleBuilder.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/FrontendAction.h>
#include <clang/Frontend/MultiplexConsumer.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>

#include "compiler/codegen/prelude.h"
#include "compiler/jit/precompiled.h"
#include "runtime/environment.h"
#include "umbra/error.h"

namespace umbra {

namespace {

std::vector<std::string> Arguments(codegen::Target target) {
  std::vector<std::string> args = {
      "-triple", "x86_64-pc-linux-gnu", "-emit-llvm-only", "-disable-llvm-passes",
      "-O2", "-x", "c++", "-std=c++17", "-I", "/include", "-nostdsysteminc", "-nobuiltininc",
      "-nostdinc++", "-relaxed-aliasing", "-disable-lifetime-markers", "-ffp-contract=off", "-fwrapv", "-mrelocation-model", "pic", "-pic-level",
      "2", "-w", "-fno-rtti", "-funwind-tables=0", "-fgnuc-version=4.2.1", "-fpch-instantiate-templates",
      // Clang refuses what was precompiled from another text.
      "-DUMBRA_PRELUDE=" + codegen::PreludeId(), "-target-cpu", TargetCpu(target)};
  for (const std::string& feature : TargetFeatures(target)) {
    args.push_back("-target-feature");
    args.push_back(feature);
  }
  if (target == codegen::Target::kAvx512) args.push_back("-mprefer-vector-width=512");
  return args;
}

// Leaves out the functions of a precompiled header whose bodies are there as bitcode.
class ModuleConsumer : public clang::MultiplexConsumer {
 public:
  // Owns the generator.
  ModuleConsumer(clang::CodeGenerator* generator, const llvm::Module* bodies)
      : MultiplexConsumer(Alone(generator)), generator_(generator), bodies_(bodies) {}

  void HandleInterestingDecl(clang::DeclGroupRef read) override {
    if (read.isSingleDecl() && HasBody(llvm::dyn_cast<clang::FunctionDecl>(read.getSingleDecl()))) return;
    MultiplexConsumer::HandleInterestingDecl(read);
  }

 private:
  static std::vector<std::unique_ptr<clang::ASTConsumer>> Alone(clang::ASTConsumer* consumer) {
    std::vector<std::unique_ptr<clang::ASTConsumer>> all;
    all.emplace_back(consumer);
    return all;
  }

  bool HasBody(const clang::FunctionDecl* function) {
    if (bodies_ == nullptr || function == nullptr || llvm::isa<clang::CXXMethodDecl>(function)) return false;
    const llvm::Function* const body = bodies_->getFunction(generator_->GetMangledName(clang::GlobalDecl(function)));
    return body != nullptr && !body->isDeclaration();
  }

  clang::CodeGenerator* generator_;
  const llvm::Module* bodies_;
};

// Source to module and no further: Clang's own actions set up a back end besides.
class ModuleAction : public clang::ASTFrontendAction {
 public:
  ModuleAction(llvm::LLVMContext* context, const llvm::Module* bodies) : context_(context), bodies_(bodies) {}
  std::unique_ptr<llvm::Module> TakeModule() { return std::move(module_); }

 protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& instance,
                                                        llvm::StringRef file) override {
    generator_ = clang::CreateLLVMCodeGen(instance.getDiagnostics(), file, &instance.getVirtualFileSystem(),
                                          instance.getHeaderSearchOpts(), instance.getPreprocessorOpts(),
                                          instance.getCodeGenOpts(), *context_);
    return std::make_unique<ModuleConsumer>(generator_, bodies_);
  }
  void EndSourceFileAction() override { module_.reset(generator_->ReleaseModule()); }

 private:
  llvm::LLVMContext* context_;
  const llvm::Module* bodies_;
  clang::CodeGenerator* generator_ = nullptr;
  std::unique_ptr<llvm::Module> module_;
};

// What Clang makes of its words, which most kernels have in common; null if it does not take them.
std::shared_ptr<clang::CompilerInvocation> Invocation(const std::vector<std::string>& words, clang::DiagnosticsEngine* diagnostics) {
  thread_local std::pair<std::vector<std::string>, std::unique_ptr<clang::CompilerInvocation>> last;
  if (last.second == nullptr || last.first != words) {
    std::vector<const char*> args;
    for (const std::string& word : words) args.push_back(word.c_str());
    auto made = std::make_unique<clang::CompilerInvocation>();
    if (!clang::CompilerInvocation::CreateFromArgs(*made, args, *diagnostics)) return nullptr;
    last = {words, std::move(made)};
  }
  return std::make_shared<clang::CompilerInvocation>(*last.second);
}

}  // namespace

std::string TargetCpu(codegen::Target) { return "x86-64"; }

std::vector<std::string> TargetFeatures(codegen::Target target) {
  switch (target) {
    case codegen::Target::kPlain:
    case codegen::Target::kSse2: return {"+sse2"};
    case codegen::Target::kAvx2: return {"+avx2", "+fma", "+f16c", "+bmi", "+bmi2", "+lzcnt", "+popcnt"};
    case codegen::Target::kAvx512:
      return {"+avx2", "+fma", "+f16c", "+bmi", "+bmi2", "+lzcnt", "+popcnt", "+avx512f", "+avx512bw",
              "+avx512dq", "+avx512vl", "+avx512cd"};
  }
  return {};
}

Files FilesInMemory(const std::vector<SourceFile>& files) {
  auto made = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  for (const SourceFile& file : files) made->addFile(file.name, 0, llvm::MemoryBuffer::getMemBuffer(file.text, file.name, false));
  return made;
}

Files WithFile(Files files, const SourceFile& file) {
  auto both = llvm::makeIntrusiveRefCnt<llvm::vfs::OverlayFileSystem>(std::move(files));
  both->pushOverlay(FilesInMemory({file}));
  return both;
}

bool RunClang(clang::FrontendAction* action, codegen::Target target, Files files,
              const std::vector<std::string>& last_arguments, std::string* log) {
  llvm::raw_string_ostream log_stream(*log);
  auto options = llvm::makeIntrusiveRefCnt<clang::DiagnosticOptions>();
  clang::TextDiagnosticPrinter printer(log_stream, options.get());
  clang::DiagnosticsEngine diagnostics(llvm::makeIntrusiveRefCnt<clang::DiagnosticIDs>(), options,
                                       &printer, false);
  std::vector<std::string> words = Arguments(target);
  words.insert(words.end(), last_arguments.begin(), last_arguments.end());
  std::shared_ptr<clang::CompilerInvocation> invocation = Invocation(words, &diagnostics);
  Require(invocation != nullptr, "Clang does not take its options:\n", *log);
  clang::CompilerInstance instance;
  instance.setInvocation(std::move(invocation));
  instance.createDiagnostics(&printer, false);
  instance.setFileManager(new clang::FileManager(clang::FileSystemOptions(), std::move(files)));
  return instance.ExecuteAction(*action);
}

std::unique_ptr<llvm::Module> ClangModule(llvm::LLVMContext* context, codegen::Target target, Files files,
                                          const std::vector<std::string>& last_arguments, const llvm::Module* bodies,
                                          std::string* log) {
  ModuleAction action(context, bodies);
  return RunClang(&action, target, std::move(files), last_arguments, log) ? action.TakeModule() : nullptr;
}

namespace {

// Clang's words after those for all sources, by which it reads the kernel's file.
std::vector<std::string> LastArguments(std::vector<std::string> arguments, const ParseOptions& options) {
  if (!options.for_reader) arguments.push_back(kNoNames);
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  arguments.push_back(options.file);
  return arguments;
}

// Null, with a reason in `log`, if this Clang or LLVM cannot use what was precompiled.
std::unique_ptr<llvm::Module> ParseAfter(const PrecompiledPrelude& prelude, const codegen::Source& source,
                                         codegen::Target target, llvm::LLVMContext* context,
                                         const ParseOptions& options, std::string* log) {
  auto bodies = llvm::getLazyBitcodeModule(prelude.code->getMemBufferRef(), *context);
  if (!bodies) {
    *log = llvm::toString(bodies.takeError());
    return nullptr;
  }
  if ((*bodies)->getSourceFileName() != codegen::PreludeId()) {
    *log = "the bitcode is of another prelude\n";
    return nullptr;
  }
  if (options.whole_prelude) bodies->reset();  // it has no lines
  auto module = ClangModule(context, target, WithFile(prelude.files, {options.file, source.text}),
                            LastArguments({"-include-pch", kPrecompiledTree}, options), bodies->get(), log);
  if (module != nullptr && *bodies != nullptr &&
      llvm::Linker::linkModules(*module, std::move(*bodies), llvm::Linker::LinkOnlyNeeded)) {
    *log = "the bitcode cannot be linked\n";
    return nullptr;
  }
  return module;
}

}  // namespace

std::unique_ptr<llvm::Module> ParseToModule(const codegen::Source& source, codegen::Target target,
                                            llvm::LLVMContext* context, const ParseOptions& options) {
  std::string log, refused;
  const PrecompiledPrelude* const precompiled = FindPrecompiledPrelude(target);
  if (precompiled != nullptr)
    if (auto module = ParseAfter(*precompiled, source, target, context, options, &refused)) return module;
  const std::vector<codegen::PreludeFile> needed = codegen::NeededPrelude(source.text);
  std::vector<SourceFile> files;
  const auto add = [&](const auto& file) { files.push_back({"/include/" + std::string(file.name), file.text}); };
  if (options.whole_prelude) std::ranges::for_each(codegen::PreludeFiles(), add);
  else std::ranges::for_each(needed, add);
  files.push_back({options.file, source.text});
  auto module = ClangModule(context, target, FilesInMemory(files), LastArguments({}, options), nullptr, &log);
  Require(module != nullptr, "Clang cannot compile a generated kernel:\n", log);
  if (precompiled != nullptr) {
    ForgetPrecompiledPrelude(target);
    if (runtime::ReadEnvironment().trace) llvm::errs() << "--- the precompiled prelude is of no use to this Clang\n" << refused;
  }
  return module;
}

}  // namespace umbra
