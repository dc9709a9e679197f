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

int Threads(int wanted) {
  if (wanted > 0) return wanted;
  const int chosen = g_threads.load(std::memory_order_relaxed);
  return chosen > 0 ? chosen : NumProcessors();
}

constexpr std::size_t kMaxPrepared = 64;  // beyond this many different shapes, calls are prepared anew

TensorRef ToTensor(const Operand& operand) {
  return {operand.data, operand.dtype, {operand.shape, operand.shape + operand.rank},
          {operand.stride, operand.stride + operand.rank}};
}

index_t Kind(const Operand& operand) {
  return operand.rank * 256 + static_cast<index_t>(operand.dtype);
}

}  // namespace

// Everything that follows from shapes, pitches and from which pointers are equal.
struct CallSite::Prepared {
  std::vector<index_t> key;              // of each operand: rank and dtype, shape, strides
  struct Reach {
    std::ptrdiff_t first, last;  // bytes from the data pointer
  };
  std::vector<Reach> reach;              // of each operand
  std::vector<std::size_t> alignment;    // of each operand: what the launch takes it to have
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
  for (const Buffer& buffer : program_->buffers) {
    if (buffer.kind == Buffer::Kind::kInput) ++num_inputs_;
    if (buffer.kind != Buffer::Kind::kTemporary) ++num_operands_;
  }
  num_scalars_ = program_->scalars.size();
}

CallSite::~CallSite() = default;

void CallSite::SetThreads(int threads) { g_threads.store(threads, std::memory_order_relaxed); }

bool CallSite::Fits(const Prepared& prepared, const Operand* operands, int threads) const {
  if (prepared.threads != threads) return false;
  const index_t* key = prepared.key.data();
  for (std::size_t k = 0; k < num_operands_; ++k) {
    const Operand& operand = operands[k];
    if (*key++ != Kind(operand)) return false;
    for (int d = 0; d < operand.rank; ++d)
      if (*key++ != operand.shape[d]) return false;
    for (int d = 0; d < operand.rank; ++d)
      if (*key++ != operand.stride[d]) return false;
    if (operand.data == nullptr) return false;
    if ((reinterpret_cast<std::uintptr_t>(operand.data) & (prepared.alignment[k] - 1)) != 0)
      return false;
  }
  for (const auto& pair : prepared.pairs) {
    const char* a = static_cast<const char*>(operands[pair.output].data);
    const char* b = static_cast<const char*>(operands[pair.other].data);
    const Prepared::Reach &of_a = prepared.reach[pair.output], &of_b = prepared.reach[pair.other];
    if (pair.same ? a != b : a + of_a.first < b + of_b.last && b + of_b.first < a + of_a.last)
      return false;
  }
  return true;
}

void CallSite::Run(const Operand* operands, const umbra_scalar* scalars, int threads) {
  threads = Threads(threads);
  const Prepared* prepared = latest_.load(std::memory_order_acquire);
  if (prepared == nullptr || !Fits(*prepared, operands, threads)) {
    prepared = Prepare(operands, scalars, threads);
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

const CallSite::Prepared* CallSite::Prepare(const Operand* operands, const umbra_scalar* scalars,
                                            int threads) {
  std::unique_lock lock(mutex_);
  for (const auto& prepared : all_)
    if (Fits(*prepared, operands, threads)) {
      latest_.store(prepared.get(), std::memory_order_release);
      return prepared.get();
    }
  Arguments arguments;
  for (std::size_t k = 0; k < num_operands_; ++k) {
    const Buffer& buffer = program_->buffers[k];
    (buffer.kind == Buffer::Kind::kInput ? arguments.inputs : arguments.outputs)
        .push_back(ToTensor(operands[k]));
  }
  arguments.scalars.assign(scalars, scalars + program_->scalars.size());
  const bool one_kernel = program_->steps.size() == 1 &&
                          std::holds_alternative<KernelStep>(program_->steps[0]) &&
                          program_->buffers.size() == num_operands_;
  if (!one_kernel || all_.size() >= kMaxPrepared) {
    lock.unlock();
    runtime::Run(*program_, arguments, {threads});
    return nullptr;
  }
  const std::vector<index_t> symbols = CheckArguments(*program_, arguments);
  std::vector<TensorRef> buffers = arguments.inputs;
  buffers.insert(buffers.end(), arguments.outputs.begin(), arguments.outputs.end());
  CheckOverlaps(*program_, buffers);

  const auto& step = std::get<KernelStep>(program_->steps[0]);
  auto prepared = std::make_unique<Prepared>();
  prepared->threads = threads;
  for (std::size_t k = 0; k < num_operands_; ++k) {
    prepared->key.push_back(Kind(operands[k]));
    prepared->key.insert(prepared->key.end(), buffers[k].shape.begin(), buffers[k].shape.end());
    prepared->key.insert(prepared->key.end(), buffers[k].stride.begin(), buffers[k].stride.end());
    const auto [first, last] = ByteRange(buffers[k]);
    const char* data = static_cast<const char*>(buffers[k].data);
    prepared->reach.push_back(first == last ? Prepared::Reach{0, 0}
                                            : Prepared::Reach{first - data, last - data});
    const bool output = program_->buffers[k].kind == Buffer::Kind::kOutput;
    const bool packed = output && reinterpret_cast<std::uintptr_t>(operands[k].data) % 64 == 0;
    prepared->alignment.push_back(packed ? 64 : SizeOf(buffers[k].dtype));
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
