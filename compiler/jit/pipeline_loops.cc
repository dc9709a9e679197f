#include "compiler/jit/pipeline_loops.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "compiler/codegen/source.h"

namespace umbra {

namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;
using Copies = llvm::DenseMap<const Value*, Value*>;

// Cycles of a chain that is worth it: log has 43, exp2 45.
constexpr int kLongChain = 40;
// Registers that may be taken from half to half; one that sums counts as three, as it must not wait in memory: with
// more, some functions are slower (log2 and sinh with AVX-512), and with AVX2 sums of exponentials by a seventh.
constexpr int kMostRegisters = 14, kSum = 3;
// A half has an eighth of the instructions at least. Two of equal length are as good as so many registers less.
constexpr int kLeastPart = 8;
constexpr double kEqualHalves = 24;

// Cycles until a result is there, roughly those of any processor of today.
int Latency(const Instruction& step) {
  switch (step.getOpcode()) {
    case Instruction::FAdd:
    case Instruction::FSub:
    case Instruction::FMul:
    case Instruction::FCmp: return 3;
    case Instruction::Call: return 4;
    case Instruction::Load: return 5;
    case Instruction::FDiv: return 12;
    case Instruction::ShuffleVector:
    case Instruction::BitCast: return 0;  // of whole registers
    default: return 1;
  }
}

int Bits(const Value& value) { return static_cast<int>(value.getType()->getPrimitiveSizeInBits().getFixedValue()); }

bool IsMask(const Value& value) { return value.getType()->isVectorTy() && value.getType()->isIntOrIntVectorTy(1); }

// Is it had again for less than the register that would keep it?
bool IsHadAgain(const Instruction& step) {
  return llvm::isa<llvm::LoadInst, llvm::ShuffleVectorInst, llvm::BitCastInst>(step) || IsMask(step);
}

// A loop of one block.
class Loop {
 public:
  Loop(BasicBlock* body, int register_bits) : body_(body), register_bits_(register_bits) {}

  void Pipeline() {
    if (IsOverGroups() && FindCounting() && FindSteps() && ChooseHalves()) Write();
  }

 private:
  struct Step {
    Instruction* at = nullptr;
    std::vector<int> operands, users;  // among the steps
    int depth = 0;  // cycles from the start of an iteration until it is done
    int registers = 0, instructions = 0;  // that it is, once packets are registers
    bool early = false;  // it needs nothing of another iteration
    bool beyond = false;  // the next iteration, or what comes behind the loop, needs it
  };

  struct Halves {
    std::vector<bool> first, second;  // by step; some are in both
    std::vector<Instruction*> kept;  // results of the first that the second takes
    int registers = 0;  // of those
    int instructions[2] = {0, 0};
  };

  int Registers(const Value& value) const { return (Bits(value) + register_bits_ - 1) / register_bits_; }

  bool IsInBody(const Value* value) const {
    const auto* step = llvm::dyn_cast<Instruction>(value);
    return step != nullptr && step->getParent() == body_;
  }

  bool IsOverGroups() {
    branch_ = llvm::dyn_cast<llvm::BranchInst>(body_->getTerminator());
    if (branch_ == nullptr || !branch_->isConditional() || llvm::count(branch_->successors(), body_) != 1) return false;
    after_ = branch_->getSuccessor(branch_->getSuccessor(0) == body_ ? 1 : 0);
    for (BasicBlock* from : llvm::predecessors(body_)) {
      if (from == body_) continue;
      if (before_ != nullptr) return false;
      before_ = from;
    }
    return before_ != nullptr && llvm::any_of(*body_, [&](const Instruction& step) {
             return step.getType()->isVectorTy() && Registers(step) >= codegen::kGroupSize;
           });
  }

  // Counts or is the same for all iterations.
  bool IsCounting(const Value* value) const { return !IsInBody(value) || counting_.contains(value); }

  // Finds the whole numbers and addresses that follow from themselves; whether the loop goes on must be one.
  bool FindCounting() {
    for (PHINode& phi : body_->phis())
      if (phi.getType()->isIntOrPtrTy()) counting_.insert(&phi);
    for (bool settled = false; !settled;) {
      for (Instruction& step : *body_)
        if (!llvm::isa<PHINode>(step) && step.getType()->isIntOrPtrTy() && !step.mayReadOrWriteMemory() &&
            llvm::all_of(step.operand_values(), [&](const Value* operand) { return IsCounting(operand); }))
          counting_.insert(&step);
      settled = true;
      for (PHINode& phi : body_->phis()) {
        if (!counting_.contains(&phi) || IsCounting(phi.getIncomingValueForBlock(body_))) continue;
        // It does not, and so what follows from it does not.
        settled = false;
        counting_.remove(&phi);
      }
      if (!settled) counting_.remove_if([](const Value* value) { return !llvm::isa<PHINode>(value); });
    }
    return IsCounting(branch_->getCondition());
  }

  // Another iteration may read it before this one has stored.
  bool IsEarlyLoad(const llvm::LoadInst& load) const {
    return load.isSimple() && counting_.contains(load.getPointerOperand()) &&
           !llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(load.getPointerOperand()));
  }

  // Where a chain of steps is long.
  bool FindSteps() {
    llvm::DenseMap<const Value*, int> index;
    for (Instruction& at : *body_) {
      if (llvm::isa<PHINode>(at) || at.isTerminator() || counting_.contains(&at)) continue;
      const auto* load = llvm::dyn_cast<llvm::LoadInst>(&at);
      const auto* store = llvm::dyn_cast<llvm::StoreInst>(&at);
      // The same place in each iteration: what one stores, the next may read.
      if (store != nullptr && !IsInBody(store->getPointerOperand()) &&
          !llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(store->getPointerOperand())))
        return false;
      Step step;
      step.at = &at;
      step.early = load != nullptr ? IsEarlyLoad(*load) : !at.mayReadOrWriteMemory() && !at.mayHaveSideEffects();
      const int own = static_cast<int>(steps_.size());
      for (const Value* operand : at.operand_values()) {
        if (IsCounting(operand)) continue;
        const auto found = index.find(operand);
        step.early = step.early && found != index.end();
        if (found == index.end()) continue;  // what a register keeps from iteration to iteration
        Step& source = steps_[static_cast<std::size_t>(found->second)];
        step.depth = std::max(step.depth, source.depth);
        step.early = step.early && source.early;
        step.operands.push_back(found->second);
        source.users.push_back(own);
      }
      step.depth += Latency(at);
      step.beyond =
          llvm::any_of(at.users(), [&](const Value* user) { return !IsInBody(user) || llvm::isa<PHINode>(user); });
      chain_ = std::max(chain_, step.depth);
      if (at.getType()->isVectorTy()) step.registers = Registers(at);
      if (Latency(at) > 0) step.instructions = step.registers;
      index[&at] = own;
      steps_.push_back(std::move(step));
    }
    return chain_ >= kLongChain;
  }

  // The first half has the steps that are done after `depth` cycles.
  Halves Cut(int depth) const {
    Halves halves;
    halves.first.resize(steps_.size());
    halves.second.resize(steps_.size());
    for (std::size_t k = 0; k < steps_.size(); ++k) {
      const Step& step = steps_[k];
      halves.first[k] = step.early && step.depth <= depth && llvm::all_of(step.operands, [&](int source) {
                          return halves.first[static_cast<std::size_t>(source)];
                        });
    }
    // From the last to the first: each is looked at after all that takes its result.
    for (std::size_t k = steps_.size(); k-- > 0;) {
      const Step& step = steps_[k];
      const auto taken_by = [&](const std::vector<bool>& half) {
        return llvm::any_of(step.users, [&](int user) { return half[static_cast<std::size_t>(user)]; });
      };
      if (!halves.first[k]) {
        halves.second[k] = true;
      } else if (step.beyond || taken_by(halves.second)) {
        if (IsHadAgain(*step.at)) {
          halves.second[k] = true;
          halves.first[k] = taken_by(halves.first);
        } else {
          halves.kept.push_back(step.at);
          halves.registers += step.registers;
        }
      }
      halves.instructions[0] += halves.first[k] ? step.instructions : 0;
      halves.instructions[1] += halves.second[k] ? step.instructions : 0;
    }
    std::reverse(halves.kept.begin(), halves.kept.end());
    return halves;
  }

  // About as much in each, and few registers between them.
  bool ChooseHalves() {
    std::vector<int> depths;
    for (const Step& step : steps_)
      if (step.early) depths.push_back(step.depth);
    llvm::sort(depths);
    depths.erase(std::unique(depths.begin(), depths.end()), depths.end());
    int sums = 0;
    for (const PHINode& phi : body_->phis())
      if (phi.getType()->isVectorTy()) sums += Registers(phi);
    double best = std::numeric_limits<double>::infinity();
    for (const int depth : depths) {
      Halves halves = Cut(depth);
      const double less = std::min(halves.instructions[0], halves.instructions[1]),
                   all = halves.instructions[0] + halves.instructions[1];
      const double cost = halves.registers - kEqualHalves * 2 * less / all;
      if (halves.kept.empty() || halves.registers + kSum * sums > kMostRegisters || less * kLeastPart < all ||
          cost >= best)
        continue;
      best = cost;
      halves_ = std::move(halves);
    }
    return !halves_.kept.empty();
  }

  // A value's copy in the block `at` stands at; what counts is copied when something needs it.
  Value* Copy(Value* value, Copies* copies, llvm::IRBuilder<>* at) const {
    if (!IsInBody(value)) return value;
    if (Value* found = copies->lookup(value)) return found;
    Instruction* made = llvm::cast<Instruction>(value)->clone();
    for (llvm::Use& use : made->operands()) use.set(Copy(use.get(), copies, at));
    at->Insert(made);
    return (*copies)[value] = made;
  }

  void CopyAll(const std::vector<bool>& half, Copies* copies, llvm::IRBuilder<>* at) const {
    for (std::size_t k = 0; k < steps_.size(); ++k)
      if (half[k]) Copy(steps_[k].at, copies, at);
  }

  // What replaces the body passes once more than it did:
  //   head:   to `first` if there is another iteration, else to `second`
  //   first:  the first half of that iteration; in the first pass to `tail`
  //   second: the second half of the iteration before
  //   tail:   back to the head, but not after a pass that began no iteration
  void Write() {
    llvm::LLVMContext& context = body_->getContext();
    const auto block = [&](const char* name) {
      return BasicBlock::Create(context, body_->getName() + name, body_->getParent(), body_);
    };
    BasicBlock *head = block(".head"), *first = block(".first"), *second = block(".second"), *tail = block(".tail");
    const auto is_ours = [&](const BasicBlock* other) {
      return llvm::is_contained({body_, head, first, second, tail}, other);
    };
    const auto phi_at = [](llvm::IRBuilder<>* at, llvm::Type* type) { return at->CreatePHI(type, 2); };
    const auto poison = [](const Value* value) { return llvm::PoisonValue::get(value->getType()); };

    // The iteration to begin, the one to finish, and the one after both.
    Copies next, now, later;
    llvm::IRBuilder<> at(head);
    PHINode* more = phi_at(&at, at.getInt1Ty());
    PHINode* begun = phi_at(&at, at.getInt1Ty());
    std::vector<PHINode*> counts, sums;
    for (PHINode& phi : body_->phis()) (counting_.contains(&phi) ? counts : sums).push_back(&phi);
    for (PHINode* phi : counts) {
      next[phi] = later[phi] = phi_at(&at, phi->getType());
      now[phi] = phi_at(&at, phi->getType());
    }
    for (PHINode* phi : sums) now[phi] = phi_at(&at, phi->getType());
    for (Instruction* step : halves_.kept) now[step] = phi_at(&at, step->getType());
    at.CreateCondBr(more, first, second);

    at.SetInsertPoint(first);
    CopyAll(halves_.first, &next, &at);
    at.CreateCondBr(begun, second, tail);

    at.SetInsertPoint(second);
    Copies kept;
    for (Instruction* step : halves_.kept) {
      PHINode* phi = phi_at(&at, step->getType());
      phi->addIncoming(poison(step), head);
      phi->addIncoming(next.lookup(step), first);
      kept[step] = phi;
    }
    CopyAll(halves_.second, &now, &at);
    llvm::SetVector<Instruction*> outside;
    for (Instruction& step : *body_)
      if (llvm::any_of(step.users(), [&](Value* user) { return !is_ours(llvm::cast<Instruction>(user)->getParent()); }))
        outside.insert(&step);
    for (Instruction* step : outside) Copy(step, &now, &at);
    for (PHINode* phi : sums) Copy(phi->getIncomingValueForBlock(body_), &now, &at);
    at.CreateBr(tail);

    at.SetInsertPoint(tail);
    const auto meet = [&](Value* from_first, Value* from_second) {
      PHINode* phi = phi_at(&at, from_first->getType());
      phi->addIncoming(from_first, first);
      phi->addIncoming(from_second, second);
      return phi;
    };
    const auto carry = [&](Value* to, Value* initial, Value* carried) {
      llvm::cast<PHINode>(to)->addIncoming(initial, before_);
      llvm::cast<PHINode>(to)->addIncoming(carried, tail);
    };
    for (PHINode* phi : sums)
      carry(now[phi], phi->getIncomingValueForBlock(before_),
            meet(now[phi], Copy(phi->getIncomingValueForBlock(body_), &now, &at)));
    for (Instruction* step : halves_.kept) carry(now[step], poison(step), meet(next[step], kept[step]));
    for (Instruction* step : outside) {
      PHINode* met = meet(poison(step), now[step]);
      step->replaceUsesWithIf(
          met, [&](llvm::Use& use) { return !is_ours(llvm::cast<Instruction>(use.getUser())->getParent()); });
    }
    for (PHINode* phi : counts) {
      carry(now[phi], poison(phi), next[phi]);
      carry(next[phi], phi->getIncomingValueForBlock(before_), Copy(phi->getIncomingValueForBlock(body_), &later, &at));
    }
    Value* condition = Copy(branch_->getCondition(), &later, &at);
    carry(more, at.getTrue(), branch_->getSuccessor(0) == body_ ? condition : at.CreateNot(condition));
    carry(begun, at.getFalse(), at.getTrue());
    at.CreateCondBr(more, head, after_)
        ->setMetadata(llvm::LLVMContext::MD_loop, branch_->getMetadata(llvm::LLVMContext::MD_loop));

    after_->replacePhiUsesWith(body_, tail);
    before_->getTerminator()->replaceSuccessorWith(body_, head);
    body_->dropAllReferences();
    body_->eraseFromParent();
  }

  BasicBlock* const body_;
  const int register_bits_;
  BasicBlock *before_ = nullptr, *after_ = nullptr;
  llvm::BranchInst* branch_ = nullptr;
  llvm::SetVector<const Value*> counting_;
  std::vector<Step> steps_;  // of the body, but for what counts
  int chain_ = 0;  // cycles of the longest chain of steps
  Halves halves_;
};

}  // namespace

void PipelineLoops(llvm::Module* module, int register_bits) {
  for (llvm::Function& function : *module) {
    std::vector<BasicBlock*> blocks;
    for (BasicBlock& block : function) blocks.push_back(&block);
    for (BasicBlock* block : blocks) Loop(block, register_bits).Pipeline();
  }
}

}  // namespace umbra
