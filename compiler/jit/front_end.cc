#include "compiler/jit/front_end.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>

#include "compiler/codegen/prelude.h"
#include "compiler/jit/compiled_functions.h"
#include "compiler/jit/precompiled.h"
#include "compiler/jit/reader.h"
#include "runtime/environment.h"
#include "umbra/error.h"

namespace umbra {

std::string TargetCpu(codegen::Target) { return "x86-64"; }

std::vector<std::string> TargetFeatures(codegen::Target target) {
  switch (target) {
    case codegen::Target::kPlain:
    case codegen::Target::kSse2: return {"+sse2"};
    case codegen::Target::kAvx2: return {"+avx2", "+fma", "+f16c", "+bmi", "+bmi2", "+lzcnt", "+popcnt"};
    case codegen::Target::kAvx512:
      return {"+avx2",   "+fma",     "+f16c",     "+bmi",      "+bmi2",     "+lzcnt",
              "+popcnt", "+avx512f", "+avx512bw", "+avx512dq", "+avx512vl", "+avx512cd"};
  }
  return {};
}

namespace {

// Clang's words after those for all sources.
std::vector<std::string> LastArguments(std::vector<std::string> arguments, const ParseOptions& options) {
  if (!options.value_names) arguments.push_back(kNoNames);
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
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
  const BorrowedReader reader(target, prelude.files, LastArguments({"-include-pch", kPrecompiledTree}, options));
  const std::string text =
      options.compiled_functions ? DeclareCompiledFunctions(source, target) + source.text : source.text;
  auto module = reader->Read({options.file, text}, context, bodies->get(), log);
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
  Reader reader(target, FilesInMemory(files), LastArguments({}, options));
  auto module = reader.Read({options.file, source.text}, context, nullptr, &log);
  Require(module != nullptr, "Clang cannot compile a generated kernel:\n", log);
  if (precompiled != nullptr) {
    ForgetPrecompiledPrelude(target);
    if (runtime::ReadEnvironment().trace)
      llvm::errs() << "--- the precompiled prelude is of no use to this Clang\n" << refused;
  }
  return module;
}

}  // namespace umbra
