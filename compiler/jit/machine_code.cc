#include "compiler/jit/machine_code.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetOptions.h>

#include <map>
#include <mutex>
#include <vector>

#include "compiler/jit/front_end.h"
#include "umbra/error.h"

namespace umbra {

namespace {

constexpr const char* kTriple = "x86_64-pc-linux-gnu";

std::unique_ptr<llvm::TargetMachine> MakeTargetMachine(codegen::Target target, bool fast) {
  std::string features;
  for (const std::string& feature : TargetFeatures(target))
    features += (features.empty() ? "" : ",") + feature;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = fast ? llvm::FPOpFusion::Fast : llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(X86()->createTargetMachine(
      kTriple, TargetCpu(target), features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      llvm::CodeGenOptLevel::Default));
}

struct Pool {
  std::mutex mutex;
  std::map<std::pair<codegen::Target, bool>, std::vector<std::unique_ptr<llvm::TargetMachine>>> idle;
};

// Leaves out what costs a kernel more than it gives: one index into all operands is what x86 addresses
// best, so the search for better ones changes nothing.
class KernelPasses : public llvm::OptPassGate {
 public:
  bool isEnabled() const override { return true; }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef) override {
    return pass != "Loop Strength Reduction";
  }
};

// Never destroyed: threads may outlive static objects.
Pool& Machines() {
  static Pool* const pool = new Pool;
  return *pool;
}

}  // namespace

const llvm::Target* X86() {
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

BorrowedMachine::BorrowedMachine(codegen::Target target, bool fast) : kind_(target, fast) {
  {
    const std::lock_guard lock(Machines().mutex);
    auto& idle = Machines().idle[kind_];
    if (!idle.empty()) {
      machine_ = std::move(idle.back());
      idle.pop_back();
    }
  }
  if (machine_ == nullptr) machine_ = MakeTargetMachine(target, fast);
}

BorrowedMachine::~BorrowedMachine() {
  const std::lock_guard lock(Machines().mutex);
  Machines().idle[kind_].push_back(std::move(machine_));
}

namespace {

// Runs what `choose` makes of a builder of passes.
template <typename Choose>
void RunPasses(llvm::Module* module, llvm::TargetMachine* machine, const llvm::PipelineTuningOptions& tuning, Choose choose) {
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
  choose(&builder).run(*module, modules);
}

void RunPasses(llvm::Module* module, llvm::TargetMachine* machine, const char* text) {
  RunPasses(module, machine, {}, [&](llvm::PassBuilder* builder) {
    llvm::ModulePassManager passes;
    if (llvm::Error error = builder->parsePassPipeline(passes, text))
      throw InternalError("LLVM does not take the passes of packet kernels: " + llvm::toString(std::move(error)));
    return passes;
  });
}

// Lambdas are inlined as the rest of the prelude is: a call of one for each lane would cost more than what it does.
void InlineLambdas(llvm::Module* module) {
  for (llvm::Function& function : *module)
    if (!function.isDeclaration() && function.isDiscardableIfUnused() && !function.hasFnAttribute(llvm::Attribute::NoInline))
      function.addFnAttr(llvm::Attribute::AlwaysInline);
}

}  // namespace

void SimplifyPrelude(llvm::Module* module, llvm::TargetMachine* machine) {
  InlineLambdas(module);
  RunPasses(module, machine, "function(sroa),always-inline,globaldce,function(sroa,early-cse<memssa>)");
}

void Optimise(llvm::Module* module, llvm::TargetMachine* machine, codegen::Target target) {
  if (target == codegen::Target::kPlain) {
    llvm::PipelineTuningOptions tuning;
    tuning.LoopVectorization = tuning.LoopInterleaving = true;  // packets are vectors already
    tuning.SLPVectorization = false;
    return RunPasses(module, machine, tuning, [](llvm::PassBuilder* builder) {
      return builder->buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2);
    });
  }
  InlineLambdas(module);
  // Packet sources need their prelude inlined, their locals in registers (before, too: what is
  // inlined is copied) and their short loops unrolled. The default pipeline gives the same code and
  // takes twice as long.
  RunPasses(module, machine,
            "function(sroa),always-inline,globaldce,function(sroa,early-cse<memssa>,simplifycfg,"
            "loop-mssa(loop-rotate,licm),loop(loop-unroll-full),sroa,early-cse<memssa>,"
            "instcombine<no-verify-fixpoint>,loop-mssa(licm),simplifycfg,dce)");
}

std::vector<char> Emit(llvm::Module* module, llvm::TargetMachine* machine, bool assembly) {
  static KernelPasses chosen;
  module->getContext().setOptPassGate(chosen);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  const auto type = assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
  Require(!machine->addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true),
          "this LLVM cannot write machine code");
  passes.run(*module);
  return {bytes.begin(), bytes.end()};
}

}  // namespace umbra
