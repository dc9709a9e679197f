#include "compiler/jit/machine_code.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetOptions.h>

#include "compiler/jit/front_end.h"
#include "umbra/error.h"

namespace umbra {

namespace {

constexpr const char* kTriple = "x86_64-pc-linux-gnu";

const llvm::Target* FindX86() {
  static const llvm::Target* const target = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    std::string error;
    const llvm::Target* found = llvm::TargetRegistry::lookupTarget(kTriple, error);
    Require(found != nullptr, "this LLVM cannot make x86-64 code: ", error);
    return found;
  }();
  return target;
}

}  // namespace

std::unique_ptr<llvm::TargetMachine> MakeTargetMachine(codegen::Target target) {
  std::string features;
  for (const std::string& feature : TargetFeatures(target))
    features += (features.empty() ? "" : ",") + feature;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(FindX86()->createTargetMachine(
      kTriple, TargetCpu(target), features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      llvm::CodeGenOptLevel::Default));
}

void Optimise(llvm::Module* module, llvm::TargetMachine* machine, codegen::Target target) {
  llvm::PipelineTuningOptions tuning;
  // Packets are vectors already; only plain sources have loops to vectorise.
  tuning.LoopVectorization = target == codegen::Target::kPlain;
  tuning.SLPVectorization = false;
  tuning.LoopInterleaving = tuning.LoopVectorization;
  llvm::PassBuilder builder(machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(target == codegen::Target::kPlain ? llvm::OptimizationLevel::O2 : llvm::OptimizationLevel::O1).run(*module, modules);
}

std::vector<char> Emit(llvm::Module* module, llvm::TargetMachine* machine, bool assembly) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  const auto type = assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
  Require(!machine->addPassesToEmitFile(passes, stream, nullptr, type),
          "this LLVM cannot write machine code");
  passes.run(*module);
  return {bytes.begin(), bytes.end()};
}

}  // namespace umbra
