#include "compiler/jit/front_end.h"

#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/DiagnosticOptions.h>
#include <clang/AST/ASTConsumer.h>
#include <clang/CodeGen/ModuleBuilder.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/FrontendAction.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Support/raw_ostream.h>

#include "compiler/codegen/prelude.h"
#include "compiler/jit/precompiled.h"
#include "runtime/environment.h"
#include "umbra/error.h"

namespace umbra {

namespace {

constexpr const char* kFile = "/kernel.cc";
constexpr const char* kPrecompiled = "/prelude.pch";

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

// Source to module and no further: Clang's own actions set up a back end besides.
class ModuleAction : public clang::ASTFrontendAction {
 public:
  explicit ModuleAction(llvm::LLVMContext* context) : context_(context) {}
  std::unique_ptr<llvm::Module> TakeModule() { return std::move(module_); }

 protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& instance,
                                                        llvm::StringRef file) override {
    generator_ = clang::CreateLLVMCodeGen(instance.getDiagnostics(), file, &instance.getVirtualFileSystem(),
                                          instance.getHeaderSearchOpts(), instance.getPreprocessorOpts(),
                                          instance.getCodeGenOpts(), *context_);
    return std::unique_ptr<clang::ASTConsumer>(generator_);
  }
  void EndSourceFileAction() override { module_.reset(generator_->ReleaseModule()); }

 private:
  llvm::LLVMContext* context_;
  clang::CodeGenerator* generator_ = nullptr;
  std::unique_ptr<llvm::Module> module_;
};

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

bool RunClang(clang::FrontendAction* action, codegen::Target target, const std::vector<SourceFile>& files,
              const std::vector<std::string>& last_arguments, std::string* log) {
  llvm::raw_string_ostream log_stream(*log);
  auto options = llvm::makeIntrusiveRefCnt<clang::DiagnosticOptions>();
  clang::TextDiagnosticPrinter printer(log_stream, options.get());
  clang::DiagnosticsEngine diagnostics(llvm::makeIntrusiveRefCnt<clang::DiagnosticIDs>(), options,
                                       &printer, false);
  std::vector<std::string> words = Arguments(target);
  words.insert(words.end(), last_arguments.begin(), last_arguments.end());
  std::vector<const char*> args;
  for (const std::string& word : words) args.push_back(word.c_str());

  clang::CompilerInstance instance;
  auto invocation = std::make_shared<clang::CompilerInvocation>();
  Require(clang::CompilerInvocation::CreateFromArgs(*invocation, args, diagnostics),
          "Clang does not take its options:\n", *log);
  instance.setInvocation(std::move(invocation));
  instance.createDiagnostics(&printer, false);
  auto in_memory = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  for (const SourceFile& file : files) in_memory->addFile(file.name, 0, llvm::MemoryBuffer::getMemBuffer(file.text, file.name, false));
  instance.setFileManager(new clang::FileManager(clang::FileSystemOptions(), std::move(in_memory)));
  return instance.ExecuteAction(*action);
}

std::unique_ptr<llvm::Module> ParseToModule(const codegen::Source& source, codegen::Target target,
                                            llvm::LLVMContext* context, bool for_reader) {
  context->setDiscardValueNames(!for_reader);
  const auto parse = [&](std::vector<SourceFile> files, const std::vector<std::string>& arguments, std::string* log) {
    files.push_back({kFile, source.text});
    ModuleAction action(context);
    return RunClang(&action, target, files, arguments, log) ? action.TakeModule() : nullptr;
  };
  std::string log, refused;
  const llvm::MemoryBuffer* const precompiled = PrecompiledPrelude(target);
  if (precompiled != nullptr) {
    std::vector<SourceFile> files = PrecompiledSources(target);
    files.push_back({kPrecompiled, precompiled->getBuffer()});
    if (auto module = parse(std::move(files), {"-include-pch", kPrecompiled, kFile}, &log)) return module;
    log.swap(refused);
  }
  const std::vector<codegen::PreludeFile> needed = codegen::NeededPrelude(source.text);
  std::vector<SourceFile> files;
  for (const codegen::PreludeFile& file : needed) files.push_back({"/include/" + std::string(file.name), file.text});
  auto module = parse(std::move(files), {kFile}, &log);
  Require(module != nullptr, "Clang cannot compile a generated kernel:\n", log);
  if (precompiled != nullptr) {
    ForgetPrecompiledPrelude(target);
    if (runtime::ReadEnvironment().trace) llvm::errs() << "--- the precompiled prelude is of no use to this Clang\n" << refused;
  }
  return module;
}

}  // namespace umbra
