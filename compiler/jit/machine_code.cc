#include "compiler/jit/machine_code.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
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
#include "compiler/jit/pipeline_loops.h"
#include "umbra/error.h"

namespace umbra {

namespace {

constexpr const char* kTriple = "x86_64-pc-linux-gnu";

std::unique_ptr<llvm::TargetMachine> MakeTargetMachine(codegen::Target target, bool fast) {
  std::string features;
  for (const std::string& feature : TargetFeatures(target)) features += (features.empty() ? "" : ",") + feature;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = fast ? llvm::FPOpFusion::Fast : llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(X86()->createTargetMachine(kTriple, TargetCpu(target), features, options,
                                                                         llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                                         llvm::CodeGenOptLevel::Default));
}

// Leaves out what costs a kernel more than it gives: one index into all operands is what x86 addresses
// best, so the search for better ones changes nothing, and masks are where they are used already.
class KernelPasses : public llvm::OptPassGate {
 public:
  bool isEnabled() const override { return true; }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef) override {
    return pass != "Loop Strength Reduction" && pass != "X86 Domain Reassignment Pass";
  }
};

// The passes from a module to `stream`.
void AddPasses(llvm::legacy::PassManager* passes, llvm::TargetMachine* machine, llvm::raw_pwrite_stream* stream,
               llvm::CodeGenFileType type) {
  Require(!machine->addPassesToEmitFile(*passes, *stream, nullptr, type, /*DisableVerify=*/true),
          "this LLVM cannot write machine code");
}

void Run(llvm::legacy::PassManager* passes, llvm::Module* module) {
  static KernelPasses chosen;
  module->getContext().setOptPassGate(chosen);
  passes->run(*module);
}

}  // namespace

const llvm::Target* X86() {
  static const llvm::Target* const target = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    std::string error;
    const llvm::Target* found = llvm::TargetRegistry::lookupTarget(kTriple, error);
    Require(found != nullptr, "this LLVM cannot make x86-64 code: ", error);
    return found;
  }();
  return target;
}

struct BorrowedMachine::Machine {
  Machine(codegen::Target target, bool fast) : made(MakeTargetMachine(target, fast)), stream(bytes) {
    AddPasses(&passes, made.get(), &stream, llvm::CodeGenFileType::ObjectFile);
  }
  std::unique_ptr<llvm::TargetMachine> made;
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream;
  llvm::legacy::PassManager passes;
};

struct BorrowedMachine::Pool {
  std::mutex mutex;
  std::map<std::pair<codegen::Target, bool>, std::vector<std::unique_ptr<Machine>>> idle;
};

// Never destroyed: threads may outlive static objects.
BorrowedMachine::Pool& BorrowedMachine::Idle() {
  static Pool* const pool = new Pool;
  return *pool;
}

BorrowedMachine::BorrowedMachine(codegen::Target target, bool fast) : kind_(target, fast) {
  {
    const std::lock_guard lock(Idle().mutex);
    auto& idle = Idle().idle[kind_];
    if (!idle.empty()) {
      machine_ = std::move(idle.back());
      idle.pop_back();
    }
  }
  if (machine_ == nullptr) machine_ = std::make_unique<Machine>(target, fast);
}

BorrowedMachine::~BorrowedMachine() {
  const std::lock_guard lock(Idle().mutex);
  Idle().idle[kind_].push_back(std::move(machine_));
}

llvm::TargetMachine* BorrowedMachine::get() const { return machine_->made.get(); }

std::vector<char> BorrowedMachine::Emit(llvm::Module* module) const {
  machine_->bytes.clear();
  Run(&machine_->passes, module);
  return {machine_->bytes.begin(), machine_->bytes.end()};
}

namespace {

// Runs what `choose` makes of a builder of passes.
template <typename Choose>
void RunPasses(llvm::Module* module, llvm::TargetMachine* machine, const llvm::PipelineTuningOptions& tuning,
               Choose choose) {
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

// Loops over loops of any length are not unrolled. LLVM finds that out from the size of all that is within each of
// them, which for the outer ones is the whole kernel every time.
class LeaveOuterLoops : public llvm::PassInfoMixin<LeaveOuterLoops> {
 public:
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    for (llvm::Loop* const loop : analyses.getResult<llvm::LoopAnalysis>(function)) Leave(loop);
    return llvm::PreservedAnalyses::all();
  }

 private:
  // Is the loop of any length, or one within it?
  static bool Leave(llvm::Loop* loop) {
    bool within = false;
    for (llvm::Loop* const inner : loop->getSubLoops()) within = Leave(inner) || within;
    const bool open = IsOpen(*loop);
    if (open && within) loop->setLoopAlreadyUnrolled();
    return open || within;
  }

  // Does it end where something else than a constant says?
  static bool IsOpen(const llvm::Loop& loop) {
    llvm::SmallVector<llvm::BasicBlock*, 4> exiting;
    loop.getExitingBlocks(exiting);
    return llvm::none_of(exiting, [](const llvm::BasicBlock* block) {
      const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
      const auto* const compare = branch == nullptr || !branch->isConditional()
                                      ? nullptr
                                      : llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition());
      return compare == nullptr ||
             llvm::any_of(compare->operands(), [](const llvm::Use& use) { return llvm::isa<llvm::ConstantInt>(use); });
    });
  }
};

void RunPasses(llvm::Module* module, llvm::TargetMachine* machine, const char* text) {
  RunPasses(module, machine, {}, [&](llvm::PassBuilder* builder) {
    builder->registerPipelineParsingCallback([](llvm::StringRef name, llvm::FunctionPassManager& passes,
                                                llvm::ArrayRef<llvm::PassBuilder::PipelineElement>) {
      if (name != "leave-outer-loops") return false;
      passes.addPass(LeaveOuterLoops());
      return true;
    });
    llvm::ModulePassManager passes;
    if (llvm::Error error = builder->parsePassPipeline(passes, text))
      throw InternalError("LLVM does not take the passes of packet kernels: " + llvm::toString(std::move(error)));
    return passes;
  });
}

// Lambdas are inlined as the rest of the prelude is: a call of one for each lane would cost more than what it does.
void InlineLambdas(llvm::Module* module) {
  for (llvm::Function& function : *module)
    if (!function.isDeclaration() && function.isDiscardableIfUnused() &&
        !function.hasFnAttribute(llvm::Attribute::NoInline))
      function.addFnAttr(llvm::Attribute::AlwaysInline);
}

// Loops lie to the lines of the cache as they do in a kernel that is compiled alone, wherever functions of one object
// end up.
void AlignToLines(llvm::Module* module) {
  for (llvm::Function& function : *module)
    if (!function.isDeclaration()) function.setAlignment(llvm::Align(64));
}

// What orders instructions and is none itself changes no flag, though Clang says so of all assembly, and LLVM looks
// through all registers of the target for each flag.
void ForgetFlags(llvm::Module* module) {
  for (llvm::Function& function : *module)
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      const auto* const assembly =
          call == nullptr ? nullptr : llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand());
      if (assembly == nullptr || !assembly->getAsmString().empty()) continue;
      llvm::SmallVector<llvm::StringRef, 8> constraints;
      llvm::StringRef(assembly->getConstraintString()).split(constraints, ',');
      llvm::erase_if(constraints, [](llvm::StringRef constraint) {
        return constraint.starts_with("~{") && constraint != "~{memory}";
      });
      call->setCalledOperand(llvm::InlineAsm::get(assembly->getFunctionType(), "", llvm::join(constraints, ","),
                                                  assembly->hasSideEffects(), assembly->isAlignStack(),
                                                  assembly->getDialect(), assembly->canThrow()));
    }
}

// What packets a function has at least is of no use where they are as wide as registers are, and LLVM sets up a target
// (most of a millisecond) for each answer.
void ShareTarget(llvm::Module* module) {
  for (llvm::Function& function : *module) function.removeFnAttr("min-legal-vector-width");
}

}  // namespace

void SimplifyPrelude(llvm::Module* module, llvm::TargetMachine* machine) {
  InlineLambdas(module);
  RunPasses(module, machine, "function(sroa),always-inline,globaldce,function(sroa,early-cse<memssa>)");
}

void Optimise(llvm::Module* module, llvm::TargetMachine* machine, codegen::Target target) {
  AlignToLines(module);
  ShareTarget(module);
  ForgetFlags(module);
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
  // inlined is copied) and their short loops unrolled, to one block, as steps are moved from block to
  // block. The default pipeline gives the same code and takes twice as long.
  RunPasses(module, machine,
            "function(sroa),always-inline,globaldce,function(sroa,early-cse<memssa>,simplifycfg,"
            "loop-mssa(loop-rotate,licm),leave-outer-loops,loop(loop-unroll-full),sroa,early-cse<memssa>,simplifycfg,"
            "instcombine<no-verify-fixpoint>,loop-mssa(licm),simplifycfg,adce)");
  // Which product goes into which sum follows from what else stands in a block; so that an element is the same wherever
  // in a row it stands, loops that contract them are left whole.
  if (machine->Options.AllowFPOpFusion != llvm::FPOpFusion::Fast)
    PipelineLoops(module, 8 * codegen::RegisterBytes(target));
}

std::string Assembly(llvm::Module* module, llvm::TargetMachine* machine) {
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  AddPasses(&passes, machine, &stream, llvm::CodeGenFileType::AssemblyFile);
  Run(&passes, module);
  return {text.begin(), text.end()};
}

}  // namespace umbra
