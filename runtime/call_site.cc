#include "umbra/call_site.h"

#include <algorithm>
#include <cstdint>

#include "runtime/cpu_info.h"
#include "runtime/operands.h"
#include "runtime/overlap.h"
#include "runtime/prepared.h"
#include "runtime/shape.h"
#include "umbra/error.h"

namespace umbra::runtime {

namespace {

std::atomic<int> g_threads{0};

// The threads of a call: what it asks for, or else what SetThreads has said; 0: all.
int Wanted(int threads) { return threads > 0 ? threads : g_threads.load(std::memory_order_relaxed); }

// Word by word, as what was just written in words is slow to read in packets; four for each jump back.
template <typename A, typename B>
bool Same(const A* a, const B* b, std::size_t count) {
  std::size_t k = 0;
  for (; k + 4 <= count; k += 4)
    if (a[k] != b[k] || a[k + 1] != b[k + 1] || a[k + 2] != b[k + 2] || a[k + 3] != b[k + 3]) return false;
  for (; k < count; ++k)
    if (a[k] != b[k]) return false;
  return true;
}

constexpr std::ptrdiff_t kLarge = 1 << 20;  // bytes of an operand beside which preparing a call is nothing
constexpr std::size_t kFew = 16;  // operands, and numbers, that have room on the stack

}  // namespace

// Everything that follows from shapes, pitches and from which pointers are equal.
struct [[gnu::visibility("hidden")]] CallSite::Prepared : Known {
  std::vector<index_t> words;  // of the layout
  GivenExtents given;
  std::vector<std::uintptr_t> misaligned;  // of each operand: bits that are 0 in the pointers that the launch takes
  Meetings meetings;
  bool off_lines = false;  // a large output begins within a line of the cache: where none does, other stores are faster
  int threads = 0;
  std::shared_ptr<const Program> faster;  // that runs in place of the site's, or null
  std::unique_ptr<const PreparedProgram> program;
  const PreparedProgram::Kernel* plain = nullptr;  // if the program is one call of a kernel with few operands
  bool as_given = false;  // `plain` takes operands and numbers in the order of the call
  std::size_t num_inputs = 0;

  bool Fits(void* const* data_now, Layout layout_now, const umbra_scalar* scalars, int threads_now) const;
  bool FitsBut(void* const* data_now, const umbra_scalar* scalars, int threads_now) const;
  bool OutputsBeginLines(void* const* data_now) const;
  void Run(void* const* data_now, const umbra_scalar* scalars) const;
};

// Could a call be run as this one was?
bool CallSite::Prepared::Fits(void* const* data_now, Layout layout_now, const umbra_scalar* scalars,
                              int threads_now) const {
  return words.size() == layout_now.size && Same(layout, layout_now.words, layout_now.size) &&
         FitsBut(data_now, scalars, threads_now);
}

// But for the layout.
bool CallSite::Prepared::FitsBut(void* const* data_now, const umbra_scalar* scalars, int threads_now) const {
  if (threads != threads_now || !given.Fit(scalars)) return false;
  if (meetings.Are(data_now)) return true;
  const auto address = [data_now](std::size_t k) { return reinterpret_cast<std::uintptr_t>(data_now[k]); };
  for (std::size_t k = 0; k < misaligned.size(); ++k)
    if ((address(k) & misaligned[k]) != 0 || address(k) == 0) return false;
  if (off_lines && OutputsBeginLines(data_now)) return false;
  return meetings.Alike(data_now);
}

bool CallSite::Prepared::OutputsBeginLines(void* const* data_now) const {
  return std::all_of(data_now + num_inputs, data_now + misaligned.size(),
                     [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 64 == 0; });
}

void CallSite::Prepared::Run(void* const* data_now, const umbra_scalar* scalars) const {
  if (plain == nullptr) return program->Run(data_now, scalars);
  void* own_data[kFew];
  umbra_scalar own_scalars[kFew];
  if (!as_given) {
    void** next = own_data;
    for (const std::size_t buffer : plain->buffer) *next++ = data_now[buffer];
    umbra_scalar* next_scalar = own_scalars;
    for (const int scalar : *plain->scalars) *next_scalar++ = scalars[scalar];
    data_now = own_data;
    scalars = own_scalars;
  }
  const LaunchPlan& launch = plain->plan;
  static_assert(sizeof(index_t) == sizeof(long long));
  const umbra_args args = {data_now,
                           reinterpret_cast<const long long*>(launch.stride.data()),
                           reinterpret_cast<const long long*>(launch.extent.data()),
                           scalars,
                           nullptr,
                           launch.prefetch_ahead};
  launch.function(&args, 0, launch.extent[0]);
}

CallSite::CallSite(std::shared_ptr<const Program> program) : program_(std::move(program)) {
  for (const Buffer& buffer : program_->buffers) {
    if (buffer.kind == Buffer::Kind::kInput) ++num_inputs_;
    if (buffer.kind <= Buffer::Kind::kOutput) ++num_operands_;
  }
  num_scalars_ = program_->scalars.size();
}

CallSite::~CallSite() = default;

void CallSite::SetThreads(int threads) { g_threads.store(threads, std::memory_order_relaxed); }

void CallSite::Run(void* const* data, Layout layout, const umbra_scalar* scalars, int threads) {
  threads = Wanted(threads);
  const Prepared* prepared = static_cast<const Prepared*>(Latest());
  if (prepared == nullptr || !prepared->Fits(data, layout, scalars, threads)) {
    prepared = Prepare(data, layout, scalars, threads);
    if (prepared == nullptr) return;  // it ran the general way
  }
  prepared->Run(data, scalars);
}

bool CallSite::RunAlike(const Known& known, void* const* data, const umbra_scalar* scalars) {
  const auto& prepared = static_cast<const Prepared&>(known);
  if (!prepared.FitsBut(data, scalars, Wanted(0))) return false;
  prepared.Run(data, scalars);
  return true;
}

Arguments CallSite::ArgumentsOf(void* const* data, Layout layout, const umbra_scalar* scalars) const {
  Arguments arguments;
  for (std::size_t k = 0; k < num_operands_; ++k)
    (k < num_inputs_ ? arguments.inputs : arguments.outputs).push_back(layout.Next(data[k]));
  arguments.scalars.assign(scalars, scalars + num_scalars_);
  return arguments;
}

// Of those seen before. The caller holds the lock.
const CallSite::Prepared* CallSite::Find(void* const* data, Layout layout, const umbra_scalar* scalars, int threads) {
  for (const auto& prepared : all_)
    if (prepared->Fits(data, layout, scalars, threads)) {
      latest_.store(prepared.get(), std::memory_order_release);
      return prepared.get();
    }
  return nullptr;
}

std::string CallSite::Refusal(void* const* data, Layout layout, const umbra_scalar* scalars, int threads) {
  threads = Wanted(threads);
  const Prepared* prepared = static_cast<const Prepared*>(Latest());
  if (prepared != nullptr && prepared->Fits(data, layout, scalars, threads)) return {};
  const std::lock_guard lock(mutex_);
  if (Find(data, layout, scalars, threads) != nullptr) return {};
  try {
    const Arguments arguments = ArgumentsOf(data, layout, scalars);
    CheckArguments(*program_, arguments);
    CheckOverlaps(*program_, BuffersOf(arguments));
    return {};
  } catch (const Error& error) { return error.what(); }
}

const CallSite::Prepared* CallSite::Prepare(void* const* data, Layout layout, const umbra_scalar* scalars,
                                            int threads) {
  std::unique_lock lock(mutex_);
  if (const Prepared* found = Find(data, layout, scalars, threads)) return found;
  lock.unlock();  // others need not wait for a compile
  const Arguments arguments = ArgumentsOf(data, layout, scalars);
  std::vector<index_t> symbols = CheckArguments(*program_, arguments);
  std::vector<TensorRef> buffers = BuffersOf(arguments);
  OperandPairs overlaps = CheckOverlaps(*program_, buffers);
  const Program::Faster faster = FasterFor(*program_, symbols, buffers, overlaps);
  lock.lock();
  if (const Prepared* found = Find(data, layout, scalars, threads)) return found;
  if (all_.size() >= kMaxPrepared || faster.pending) {
    lock.unlock();
    runtime::Run(*program_, arguments, {threads});
    return nullptr;
  }
  const Program& program = faster.program == nullptr ? *program_ : *faster.program;
  if (faster.program != nullptr) symbols = CheckArguments(program, arguments);
  auto prepared = std::make_unique<Prepared>();
  prepared->faster = faster.program;
  prepared->meetings = Meetings(buffers, num_inputs_, std::move(overlaps));
  prepared->threads = threads;
  prepared->num_inputs = num_inputs_;
  prepared->given = GivenExtents(*program_, scalars);
  prepared->words.assign(layout.words, layout.words + layout.size);
  prepared->layout = prepared->words.data();
  for (std::size_t k = 0; k < num_operands_; ++k) {
    const auto [first, last] = ByteRange(buffers[k]);
    const bool output = k >= num_inputs_, packed = output && reinterpret_cast<std::uintptr_t>(data[k]) % 64 == 0;
    prepared->off_lines = prepared->off_lines || (output && !packed && last - first >= kLarge);
    prepared->misaligned.push_back((packed ? 64 : SizeOf(buffers[k].dtype)) - 1);
  }
  prepared->program = std::make_unique<PreparedProgram>(
      program, std::move(buffers), symbols, prepared->meetings.shared(), threads > 0 ? threads : NumProcessors());
  if (const auto* kernel = prepared->program->OnlyKernel()) {
    const LaunchPlan& launch = kernel->plan;
    if (launch.parts == 1 && launch.scratch_bytes == 0 && launch.remainder == 0 && kernel->buffer.size() <= kFew &&
        kernel->scalars->size() <= kFew)
      prepared->plain = kernel;
    bool& as_given = prepared->as_given = true;
    for (std::size_t k = 0; k < kernel->buffer.size(); ++k) as_given = as_given && kernel->buffer[k] == k;
    for (std::size_t k = 0; k < kernel->scalars->size(); ++k)
      as_given = as_given && (*kernel->scalars)[k] == static_cast<int>(k);
  }
  all_.push_back(std::move(prepared));
  const Prepared* const last = all_.back().get();
  latest_.store(last, std::memory_order_release);
  return last;
}

}  // namespace umbra::runtime
