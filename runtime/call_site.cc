#include "umbra/call_site.h"

#include <cstdint>

#include "runtime/cpu_info.h"
#include "runtime/launch.h"
#include "runtime/overlap.h"
#include "runtime/shape.h"
#include "umbra/error.h"

namespace umbra::runtime {

namespace {

std::atomic<int> g_threads{0};

int Threads() {
  const int chosen = g_threads.load(std::memory_order_relaxed);
  return chosen > 0 ? chosen : NumProcessors();
}

constexpr std::size_t kMaxPrepared = 64;  // beyond this many different shapes, calls are prepared anew

TensorRef ToTensor(const Buffer& buffer, const PitchedOperand& operand) {
  TensorRef tensor;
  tensor.data = operand.data;
  tensor.dtype = buffer.dtype;
  tensor.shape.assign(operand.shape, operand.shape + operand.rank);
  tensor.stride.assign(tensor.shape.size(), 1);
  for (int d = operand.rank - 2; d >= 0; --d)
    tensor.stride[static_cast<std::size_t>(d)] =
        d == operand.rank - 2 ? operand.pitch
                              : tensor.stride[static_cast<std::size_t>(d) + 1] * operand.shape[d + 1];
  return tensor;
}

}  // namespace

// Everything that follows from shapes, pitches and from which pointers are equal.
struct CallSite::Prepared {
  std::vector<index_t> key;              // shapes and pitches, one after the other
  std::vector<std::ptrdiff_t> bytes;     // reach of each operand
  std::vector<bool> aligned_output;      // outputs that the launch takes to be 64-byte aligned
  struct Pair {
    std::size_t output, other;
    bool same;  // the very same memory, found harmless
  };
  std::vector<Pair> pairs;
  bool empty = false;
  int threads = 0;
  LaunchPlan launch;
  std::vector<std::size_t> buffer_of;    // of each kernel operand
  std::vector<int> scalar_of;
  std::vector<std::size_t> element_size;
};

CallSite::CallSite(std::shared_ptr<const Program> program) : program_(std::move(program)) {
  for (const Buffer& buffer : program_->buffers)
    if (buffer.kind != Buffer::Kind::kTemporary) ++num_operands_;
}

CallSite::~CallSite() = default;

void CallSite::SetThreads(int threads) { g_threads.store(threads, std::memory_order_relaxed); }

bool CallSite::Fits(const Prepared& prepared, const PitchedOperand* operands) const {
  if (prepared.threads != Threads()) return false;
  const index_t* key = prepared.key.data();
  for (std::size_t k = 0; k < num_operands_; ++k) {
    const PitchedOperand& operand = operands[k];
    for (int d = 0; d < operand.rank; ++d)
      if (*key++ != operand.shape[d]) return false;
    if (*key++ != operand.pitch) return false;
    if (operand.data == nullptr) return false;
    if (prepared.aligned_output[k] && reinterpret_cast<std::uintptr_t>(operand.data) % 64 != 0)
      return false;
  }
  for (const auto& pair : prepared.pairs) {
    const char* a = static_cast<const char*>(operands[pair.output].data);
    const char* b = static_cast<const char*>(operands[pair.other].data);
    if (pair.same ? a != b
                  : a < b + prepared.bytes[pair.other] && b < a + prepared.bytes[pair.output])
      return false;
  }
  return true;
}

void CallSite::Run(const PitchedOperand* operands, const umbra_scalar* scalars) {
  const Prepared* prepared = latest_.load(std::memory_order_acquire);
  if (prepared == nullptr || !Fits(*prepared, operands)) {
    prepared = Prepare(operands, scalars);
    if (prepared == nullptr) return;  // it ran the general way
  }
  if (prepared->empty) return;
  constexpr std::size_t kInline = 16;
  void* inline_data[kInline];
  umbra_scalar inline_scalars[kInline];
  std::vector<void*> more_data;
  std::vector<umbra_scalar> more_scalars;
  void** data = inline_data;
  umbra_scalar* own = inline_scalars;
  if (prepared->buffer_of.size() > kInline) {
    more_data.resize(prepared->buffer_of.size());
    data = more_data.data();
  }
  if (prepared->scalar_of.size() > kInline) {
    more_scalars.resize(prepared->scalar_of.size());
    own = more_scalars.data();
  }
  for (std::size_t k = 0; k < prepared->buffer_of.size(); ++k)
    data[k] = operands[prepared->buffer_of[k]].data;
  for (std::size_t k = 0; k < prepared->scalar_of.size(); ++k)
    own[k] = scalars[prepared->scalar_of[k]];
  Launch(prepared->launch, data, prepared->element_size, own);
}

const CallSite::Prepared* CallSite::Prepare(const PitchedOperand* operands,
                                            const umbra_scalar* scalars) {
  std::unique_lock lock(mutex_);
  for (const auto& prepared : all_)
    if (Fits(*prepared, operands)) {
      latest_.store(prepared.get(), std::memory_order_release);
      return prepared.get();
    }
  Arguments arguments;
  for (std::size_t k = 0; k < num_operands_; ++k) {
    const Buffer& buffer = program_->buffers[k];
    (buffer.kind == Buffer::Kind::kInput ? arguments.inputs : arguments.outputs)
        .push_back(ToTensor(buffer, operands[k]));
  }
  arguments.scalars.assign(scalars, scalars + program_->scalars.size());
  const bool one_kernel = program_->steps.size() == 1 &&
                          std::holds_alternative<KernelStep>(program_->steps[0]) &&
                          program_->buffers.size() == num_operands_;
  if (!one_kernel || all_.size() >= kMaxPrepared) {
    lock.unlock();
    runtime::Run(*program_, arguments, {Threads()});
    return nullptr;
  }
  const std::vector<index_t> symbols = CheckArguments(*program_, arguments);
  std::vector<TensorRef> buffers = arguments.inputs;
  buffers.insert(buffers.end(), arguments.outputs.begin(), arguments.outputs.end());
  CheckOverlaps(*program_, buffers);

  const auto& step = std::get<KernelStep>(program_->steps[0]);
  auto prepared = std::make_unique<Prepared>();
  prepared->threads = Threads();
  for (std::size_t k = 0; k < num_operands_; ++k) {
    prepared->key.insert(prepared->key.end(), buffers[k].shape.begin(), buffers[k].shape.end());
    prepared->key.push_back(operands[k].pitch);
    const auto [first, last] = ByteRange(buffers[k]);
    prepared->bytes.push_back(last - first);
    const bool output = program_->buffers[k].kind == Buffer::Kind::kOutput;
    prepared->aligned_output.push_back(
        output && reinterpret_cast<std::uintptr_t>(operands[k].data) % 64 == 0);
    if (output && first == last) prepared->empty = true;
    if (!output) continue;
    for (std::size_t other = 0; other < k; ++other)
      prepared->pairs.push_back(
          {k, other, first != last && operands[other].data == operands[k].data});
  }
  if (!prepared->empty) prepared->launch = PrepareLaunch(step, buffers, symbols, prepared->threads);
  for (const Access& access : step.signature.operands) {
    prepared->buffer_of.push_back(static_cast<std::size_t>(access.buffer));
    prepared->element_size.push_back(
        SizeOf(program_->buffers[static_cast<std::size_t>(access.buffer)].dtype));
  }
  prepared->scalar_of = step.signature.scalars;
  all_.push_back(std::move(prepared));
  latest_.store(all_.back().get(), std::memory_order_release);
  return all_.back().get();
}

}  // namespace umbra::runtime
