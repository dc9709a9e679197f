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

// The threads of a call: what it asks for, or else what SetThreads has said; 0: all.
int Wanted(int threads) { return threads > 0 ? threads : g_threads.load(std::memory_order_relaxed); }

constexpr std::size_t kMaxPrepared = 64;  // beyond this many different shapes, calls are prepared anew

constexpr std::size_t kPlain = 16;  // operands, and numbers, of a call that has room for them on the stack

}  // namespace

// Everything that follows from shapes, pitches and from which pointers are equal.
struct CallSite::Prepared {
  std::vector<index_t> layout;
  std::vector<std::uintptr_t> misaligned;  // of each operand: bits that are 0 in the pointers that the launch takes
  struct Pair {
    std::size_t output, other;
    std::uintptr_t first, count;  // distances in bytes from output to other, from `first` on, that do not fit
  };
  std::vector<Pair> pairs;
  bool empty = false;
  int threads = 0;
  LaunchPlan launch;
  std::vector<std::size_t> buffer_of;    // of each kernel operand
  std::vector<int> scalar_of;
  std::vector<std::size_t> element_size;
  bool plain = false;     // one call of the kernel, with few operands
  bool as_given = false;  // the kernel takes operands and numbers in the order of the call
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

bool CallSite::Fits(const Prepared& prepared, void* const* data, Layout layout, int threads) {
  if (prepared.threads != threads || prepared.layout.size() != layout.size) return false;
  index_t different = 0;
  for (std::size_t k = 0; k < layout.size; ++k) different |= prepared.layout[k] ^ layout.words[k];
  if (different != 0) return false;
  const auto address = [data](std::size_t k) { return reinterpret_cast<std::uintptr_t>(data[k]); };
  for (std::size_t k = 0; k < prepared.misaligned.size(); ++k)
    if ((address(k) & prepared.misaligned[k]) != 0 || address(k) == 0) return false;
  for (const auto& pair : prepared.pairs)
    if (address(pair.other) - address(pair.output) - pair.first < pair.count) return false;
  return true;
}

void CallSite::Run(void* const* data, Layout layout, const umbra_scalar* scalars, int threads) {
  threads = Wanted(threads);
  const Prepared* prepared = latest_.load(std::memory_order_acquire);
  if (prepared == nullptr || !Fits(*prepared, data, layout, threads)) {
    prepared = Prepare(data, layout, scalars, threads);
    if (prepared == nullptr) return;  // it ran the general way
  }
  if (!prepared->plain) {
    if (!prepared->empty) LaunchPrepared(*prepared, data, scalars);
    return;
  }
  void* own_data[kPlain];
  umbra_scalar own_scalars[kPlain];
  if (!prepared->as_given) {
    void** next = own_data;
    for (const std::size_t buffer : prepared->buffer_of) *next++ = data[buffer];
    umbra_scalar* next_scalar = own_scalars;
    for (const int scalar : prepared->scalar_of) *next_scalar++ = scalars[scalar];
    data = own_data;
    scalars = own_scalars;
  }
  const LaunchPlan& launch = prepared->launch;
  static_assert(sizeof(index_t) == sizeof(long long));
  const umbra_args args = {data, reinterpret_cast<const long long*>(launch.stride.data()),
                           reinterpret_cast<const long long*>(launch.extent.data()), scalars, nullptr};
  launch.function(&args, 0, launch.extent[0]);
}

void CallSite::LaunchPrepared(const Prepared& prepared, void* const* data, const umbra_scalar* scalars) {
  std::vector<void*> own_data;
  std::vector<umbra_scalar> own;
  for (const std::size_t buffer : prepared.buffer_of) own_data.push_back(data[buffer]);
  for (const int scalar : prepared.scalar_of) own.push_back(scalars[scalar]);
  Launch(prepared.launch, own_data.data(), prepared.element_size, own.data());
}

const CallSite::Prepared* CallSite::Prepare(void* const* data, Layout layout, const umbra_scalar* scalars,
                                            int threads) {
  std::unique_lock lock(mutex_);
  for (const auto& prepared : all_)
    if (Fits(*prepared, data, layout, threads)) {
      latest_.store(prepared.get(), std::memory_order_release);
      return prepared.get();
    }
  Arguments arguments;
  Layout rest = layout;
  for (std::size_t k = 0; k < num_operands_; ++k)
    (k < num_inputs_ ? arguments.inputs : arguments.outputs).push_back(rest.Next(data[k]));
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
  prepared->layout.assign(layout.words, layout.words + layout.size);
  for (std::size_t k = 0; k < num_operands_; ++k) {
    const auto [first, last] = ByteRange(buffers[k]);
    const bool output = program_->buffers[k].kind == Buffer::Kind::kOutput;
    const bool packed = output && reinterpret_cast<std::uintptr_t>(data[k]) % 64 == 0;
    prepared->misaligned.push_back((packed ? 64 : SizeOf(buffers[k].dtype)) - 1);
    if (output && first == last) prepared->empty = true;
    if (!output) continue;
    const auto address = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
    for (std::size_t other = 0; other < k; ++other) {
      const auto [other_first, other_last] = ByteRange(buffers[other]);
      const std::uintptr_t distance = address(data[other]) - address(data[k]);
      if (first != last && distance == 0) {
        // The very same memory, found harmless: any other place has to be looked at.
        prepared->pairs.push_back({k, other, 1, ~std::uintptr_t{0}});
      } else if (first != last && other_first != other_last) {
        // They overlap if `other`, moved by d, begins before this ends and ends after this begins.
        const std::uintptr_t nearest = distance + address(first) - address(other_last) + 1;
        const std::uintptr_t farthest = distance + address(last) - address(other_first);
        prepared->pairs.push_back({k, other, nearest, farthest - nearest});
      }
    }
  }
  if (!prepared->empty) {
    prepared->launch = PrepareLaunch(step, buffers, symbols, threads > 0 ? threads : NumProcessors());
    prepared->plain = prepared->launch.parts == 1 && prepared->launch.scratch_bytes == 0 &&
                      prepared->launch.remainder == 0 && step.signature.operands.size() <= kPlain &&
                      step.signature.scalars.size() <= kPlain;
  }
  for (const Access& access : step.signature.operands) {
    prepared->buffer_of.push_back(static_cast<std::size_t>(access.buffer));
    prepared->element_size.push_back(
        SizeOf(program_->buffers[static_cast<std::size_t>(access.buffer)].dtype));
  }
  prepared->scalar_of = step.signature.scalars;
  bool& as_given = prepared->as_given = true;
  for (std::size_t k = 0; k < prepared->buffer_of.size(); ++k) as_given = as_given && prepared->buffer_of[k] == k;
  for (std::size_t k = 0; k < prepared->scalar_of.size(); ++k)
    as_given = as_given && prepared->scalar_of[k] == static_cast<int>(k);
  all_.push_back(std::move(prepared));
  latest_.store(all_.back().get(), std::memory_order_release);
  return all_.back().get();
}

}  // namespace umbra::runtime
