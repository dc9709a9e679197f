#include "compiler/jit/front_end.h"

#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/DiagnosticOptions.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Support/raw_ostream.h>

#include "compiler/codegen/prelude.h"
#include "umbra/error.h"

namespace umbra {

namespace {

constexpr const char* kFile = "/kernel.cc";

llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> FilesOf(const codegen::Source& source) {
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  files->addFile(kFile, 0, llvm::MemoryBuffer::getMemBuffer(source.text, kFile));
  for (const codegen::PreludeFile& file : codegen::NeededPrelude(source.text))
    files->addFile("/include/" + std::string(file.name), 0,
                   llvm::MemoryBuffer::getMemBufferCopy(file.text));
  return files;
}

std::vector<std::string> Arguments(codegen::Target target, bool for_reader) {
  std::vector<std::string> args = {
      "-triple", "x86_64-pc-linux-gnu", "-emit-llvm-only", "-disable-llvm-passes",
      "-O2", "-x", "c++", "-std=c++17", "-I", "/include", "-nostdsysteminc", "-nobuiltininc",
      "-nostdinc++", "-relaxed-aliasing", "-disable-lifetime-markers", "-ffp-contract=off", "-fwrapv", "-mrelocation-model", "pic", "-pic-level",
      "2", "-w", "-fno-rtti", "-funwind-tables=0", "-fgnuc-version=4.2.1",
      "-target-cpu", TargetCpu(target)};
  for (const std::string& feature : TargetFeatures(target)) {
    args.push_back("-target-feature");
    args.push_back(feature);
  }
  if (target == codegen::Target::kAvx512) args.push_back("-mprefer-vector-width=512");
  if (!for_reader) args.push_back("-discard-value-names");
  args.push_back(kFile);
  return args;
}

}  // namespace

std::string TargetCpu(codegen::Target) { return "x86-64"; }

std::vector<std::string> TargetFeatures(codegen::Target target) {
  switch (target) {
    case codegen::Target::kPlain:
    case codegen::Target::kSse2: return {"+sse2"};
    case codegen::Target::kAvx2: return {"+avx2", "+fma", "+bmi", "+bmi2", "+lzcnt", "+popcnt"};
    case codegen::Target::kAvx512:
      return {"+avx2", "+fma", "+bmi", "+bmi2", "+lzcnt", "+popcnt", "+avx512f", "+avx512bw",
              "+avx512dq", "+avx512vl", "+avx512cd"};
  }
  return {};
}

std::unique_ptr<llvm::Module> ParseToModule(const codegen::Source& source, codegen::Target target,
                                            llvm::LLVMContext* context, bool for_reader) {
  std::string log;
  llvm::raw_string_ostream log_stream(log);
  auto options = llvm::makeIntrusiveRefCnt<clang::DiagnosticOptions>();
  clang::TextDiagnosticPrinter printer(log_stream, options.get());
  clang::DiagnosticsEngine diagnostics(llvm::makeIntrusiveRefCnt<clang::DiagnosticIDs>(), options,
                                       &printer, false);
  const std::vector<std::string> words = Arguments(target, for_reader);
  std::vector<const char*> args;
  for (const std::string& word : words) args.push_back(word.c_str());

  clang::CompilerInstance instance;
  auto invocation = std::make_shared<clang::CompilerInvocation>();
  Require(clang::CompilerInvocation::CreateFromArgs(*invocation, args, diagnostics),
          "Clang does not take its options:\n", log);
  instance.setInvocation(std::move(invocation));
  instance.createDiagnostics(&printer, false);
  instance.setFileManager(new clang::FileManager(clang::FileSystemOptions(), FilesOf(source)));

  clang::EmitLLVMOnlyAction action(context);
  const bool done = instance.ExecuteAction(action);
  std::unique_ptr<llvm::Module> module = done ? action.takeModule() : nullptr;
  log_stream.flush();
  Require(module != nullptr, "Clang cannot compile a generated kernel:\n", log);
  return module;
}

}  // namespace umbra
