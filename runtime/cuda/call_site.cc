#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <vector>

#include "runtime/cuda/gemm.h"
#include "runtime/cuda/library.h"
#include "runtime/cuda/program.h"
#include "runtime/cuda/stream.h"
#include "runtime/operands.h"
#include "runtime/overlap.h"
#include "runtime/shape.h"
#include "runtime/side_by_side.h"
#include "umbra/error.h"

namespace umbra::runtime {

namespace {

constexpr std::uintptr_t kAlignment = 16;  // what launches look at in addresses
constexpr std::size_t kTemporaryAlignment = 256;

std::size_t RoundUp(std::size_t bytes) {
  return (bytes + kTemporaryAlignment - 1) / kTemporaryAlignment * kTemporaryAlignment;
}

std::uintptr_t Address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

// Which buffers some step reads or writes; of the others only the shape is asked for.
std::vector<bool> Touched(const Program& program) {
  std::vector<bool> touched(program.buffers.size(), false);
  for (const auto& step : program.steps) {
    if (const auto* kernel = std::get_if<KernelStep>(&step)) {
      for (const Access& access : kernel->signature.operands) touched[static_cast<std::size_t>(access.buffer)] = true;
    } else {
      const auto& gemm = std::get<GemmStep>(step);
      for (const int buffer : {gemm.a, gemm.b, gemm.c}) touched[static_cast<std::size_t>(buffer)] = true;
    }
  }
  return touched;
}

// Everything that follows from shapes, strides, the alignment of addresses and which of them are equal, and from
// whether TF32 is allowed.
struct Prepared {
  Prepared(const Program& program, const Arguments& arguments, int device, Layout layout, cuda::StreamHandle stream);

  bool Fits(int on, void* const* data, Layout layout, const umbra_scalar* scalars) const;
  void Run(const Program& program, void* const* data, const umbra_scalar* scalars, cuda::StreamHandle stream) const;
  // Says of each buffer whether nobody needs it: the result of a product that goes on to another at once.
  std::vector<bool> MakeSteps(const Program& program, const std::vector<TensorRef>& buffers,
                              const std::vector<index_t>& symbols, cuda::StreamHandle stream);
  // Puts pieces of the product, which is the last step, with its epilogue or without, and of the kernel behind it in
  // its place, if that is possible.
  bool AddPieces(const Program& program, const GemmStep& product, bool is_whole, const KernelStep& kernel,
                 const std::vector<TensorRef>& buffers, const std::vector<index_t>& symbols, cuda::StreamHandle stream);
  void Launch(void* const* data, const umbra_scalar* scalars, void* scratch_memory, cuda::StreamHandle stream) const;
  // Is a buffer no operand that shares memory with another, of which one is written?
  bool IsAlone(int buffer) const;

  struct Operand {
    std::ptrdiff_t first = 0;  // the bytes that it touches begin here, from its address on
    std::size_t bytes = 0;
    std::uintptr_t alignment = kAlignment, misalignment = 0;  // what was decided holds for addresses like this one
    mutable std::atomic<const void*> seen{nullptr};  // an address that was found to be the device's
  };

  int device;
  bool tf32 = cuda::Tf32Allowed();
  std::vector<index_t> words;
  GivenExtents given;
  std::vector<Operand> operands;
  Meetings meetings;
  std::vector<std::size_t> temporaries;  // where they begin in the memory that a call takes
  std::size_t temporary_bytes = 0;  // that memory; scratch is at its end
  std::size_t scratch = 0;
  bool has_temporaries = false;
  bool lasts = true;  // or was something decided that cuBLASLt may say otherwise of later?
  std::vector<CudaStep> steps;
};

Prepared::Prepared(const Program& program, const Arguments& arguments, int on, Layout layout, cuda::StreamHandle stream)
    : device(on),
      words(layout.words, layout.words + layout.size),
      given(program, arguments.scalars.data()),
      operands(arguments.inputs.size() + arguments.outputs.size()) {
  const cuda::DeviceProperties& properties = cuda::library::Properties(device);
  const std::vector<index_t> symbols = CheckArguments(program, arguments);
  std::vector<TensorRef> buffers = BuffersOf(arguments);
  meetings = Meetings(buffers, arguments.inputs.size(), CheckOverlaps(program, buffers));
  const std::vector<bool> touched = Touched(program);
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const auto [first, last] = ByteRange(buffers[k]);
    operands[k].bytes = touched[k] ? static_cast<std::size_t>(last - first) : 0;
    operands[k].first = operands[k].bytes == 0 ? 0 : first - static_cast<const char*>(buffers[k].data);
  }
  std::vector<std::size_t> bytes;  // of temporaries
  for (std::size_t k = operands.size(); k < program.buffers.size(); ++k) {
    const Buffer& buffer = program.buffers[k];
    std::vector<index_t> shape = Resolve(buffer.shape, symbols);
    bytes.push_back(static_cast<std::size_t>(CountElements(shape, SizeOf(buffer.dtype), buffer.name)) *
                    SizeOf(buffer.dtype));
    buffers.push_back(
        TensorRef::Dense(reinterpret_cast<void*>(kTemporaryAlignment * k), buffer.dtype, std::move(shape)));
  }
  const std::vector<bool> left_out = MakeSteps(program, buffers, symbols, stream);
  for (std::size_t k = 0; k < bytes.size(); ++k) {
    temporaries.push_back(temporary_bytes);
    if (!left_out[operands.size() + k]) temporary_bytes += RoundUp(bytes[k]);
  }
  has_temporaries = std::find(left_out.begin() + static_cast<std::ptrdiff_t>(operands.size()), left_out.end(), false) !=
                    left_out.end();
  std::size_t scratch_bytes = 0;
  for (const CudaStep& step : steps) scratch_bytes = std::max(scratch_bytes, step.scratch_bytes());
  scratch = temporary_bytes;
  temporary_bytes += scratch_bytes;
  for (std::size_t k = 0; k < operands.size(); ++k)
    operands[k].misalignment = Address(buffers[k].data) % operands[k].alignment;
  // Most of the time of a first call is spent here.
  SideBySide(steps.size(), [&](std::size_t k) { steps[k].MakeCode(properties); });
}

std::vector<bool> Prepared::MakeSteps(const Program& program, const std::vector<TensorRef>& buffers,
                                      const std::vector<index_t>& symbols, cuda::StreamHandle stream) {
  const cuda::DeviceProperties& properties = cuda::library::Properties(device);
  std::vector<bool> left_out(buffers.size(), false);
  std::vector<std::optional<CudaStep>> instead(
      program.steps.size());  // products with what kernels do, in the places of these
  std::vector<const GemmStep*> product_of(program.steps.size());  // those products, of such kernels
  std::vector<bool> idle(program.steps.size(), false);  // steps behind products that do without an epilogue
  const auto add_product = [&](const GemmStep& gemm) {
    const ProductEpilogue& epilogue = gemm.epilogue;
    std::optional<CudaStep> whole;
    if (epilogue.kernel >= 0 && IsAlone(gemm.a) && IsAlone(gemm.b) && (epilogue.bias < 0 || IsAlone(epilogue.bias)))
      whole = CudaStep::WithEpilogue(gemm, buffers, program.name);
    const std::optional<bool> is_there = whole ? whole->IsThere(buffers, stream) : false;
    lasts = lasts && is_there.has_value();
    if (!is_there.value_or(false)) {
      if (epilogue.behind >= 0) idle[static_cast<std::size_t>(epilogue.behind)] = true;
      steps.emplace_back(gemm, buffers, program.name);
      return;
    }
    instead[static_cast<std::size_t>(epilogue.kernel)] = std::move(whole);
    product_of[static_cast<std::size_t>(epilogue.kernel)] = &gemm;
    left_out[static_cast<std::size_t>(gemm.c)] = true;
    for (const int read_or_written : {gemm.a, gemm.b, epilogue.bias, epilogue.result})
      if (const auto at = static_cast<std::size_t>(read_or_written); read_or_written >= 0 && at < operands.size())
        operands[at].alignment = cuda::kGemmAlignment;
  };
  const GemmStep* latest = nullptr;  // of the last step, if that is a product
  bool is_whole = false;  // with its epilogue
  for (const StepGroup& group : program.groups) {
    std::vector<CudaStep> kernels;  // and what runs instead of some
    const GemmStep* product = nullptr;
    for (auto k = static_cast<std::size_t>(group.begin); k < static_cast<std::size_t>(group.end); ++k) {
      const auto* kernel = std::get_if<KernelStep>(&program.steps[k]);
      product = kernel == nullptr ? &std::get<GemmStep>(program.steps[k]) : product_of[k];
      const bool alone = group.end - group.begin == 1;
      if (kernel == nullptr) add_product(*product);
      else if (instead[k]) kernels.push_back(*std::move(instead[k]));
      else if (!idle[k] && !StoresNothing(*kernel, buffers) &&
               !(alone && latest != nullptr &&
                 AddPieces(program, *latest, is_whole, *kernel, buffers, symbols, stream)))
        kernels.emplace_back(*kernel, buffers, symbols, properties);
    }
    if (kernels.size() > 1 && !Conflict(program, group, buffers)) kernels = CudaStep::Joined(kernels, properties);
    is_whole = !kernels.empty();
    const bool is_there = group.end - group.begin == 1 && product != nullptr &&
                          (is_whole || !left_out[static_cast<std::size_t>(product->c)]);
    latest = is_there ? product : nullptr;
    std::move(kernels.begin(), kernels.end(), std::back_inserter(steps));
  }
  return left_out;
}

bool Prepared::AddPieces(const Program& program, const GemmStep& product, bool is_whole, const KernelStep& kernel,
                         const std::vector<TensorRef>& buffers, const std::vector<index_t>& symbols,
                         cuda::StreamHandle stream) {
  if (!IsAlone(product.a) || !IsAlone(product.b)) return false;
  for (const Access& access : kernel.signature.operands)
    if (!IsAlone(access.buffer)) return false;
  std::vector<CudaStep> pieces =
      CudaStep::InPieces(product, is_whole, kernel, buffers, symbols, program.name, cuda::library::Properties(device));
  for (const CudaStep& piece : pieces) {
    if (piece.IsAside()) continue;
    const std::optional<bool> is_there = piece.IsThere(buffers, stream);
    lasts = lasts && is_there.has_value();
    if (!is_there.value_or(false)) return false;
  }
  if (pieces.empty()) return false;
  for (const int factor_or_result : {product.a, product.b, is_whole ? product.epilogue.result : product.c})
    if (const auto at = static_cast<std::size_t>(factor_or_result); at < operands.size())
      operands[at].alignment = cuda::kGemmAlignment;
  steps.pop_back();  // the whole product
  std::move(pieces.begin(), pieces.end(), std::back_inserter(steps));
  return true;
}

bool Prepared::IsAlone(int buffer) const {
  const auto k = static_cast<std::size_t>(buffer);
  const OperandPairs& shared = meetings.shared();
  return std::none_of(shared.begin(), shared.end(),
                      [k](const auto& pair) { return pair.first == k || pair.second == k; });
}

bool Prepared::Fits(int on, void* const* data, Layout layout, const umbra_scalar* scalars) const {
  if (on != device || tf32 != cuda::Tf32Allowed() || words.size() != layout.size) return false;
  index_t different = 0;
  for (std::size_t k = 0; k < layout.size; ++k) different |= words[k] ^ layout.words[k];
  if (different != 0 || !given.Fit(scalars)) return false;
  if (meetings.Are(data)) return true;
  for (std::size_t k = 0; k < operands.size(); ++k)
    if (Address(data[k]) % operands[k].alignment != operands[k].misalignment ||
        (data[k] == nullptr && operands[k].bytes != 0))
      return false;
  return meetings.Alike(data);
}

void Prepared::Run(const Program& program, void* const* data, const umbra_scalar* scalars,
                   cuda::StreamHandle stream) const {
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const Operand& operand = operands[k];
    if (operand.bytes == 0 || operand.seen.load(std::memory_order_relaxed) == data[k]) continue;
    const Buffer& buffer = program.buffers[k];
    const std::string what = "kernel '" + program.name + "', " +
                             (buffer.kind == Buffer::Kind::kOutput ? "output '" : "input '") + buffer.name + "',";
    cuda::library::CheckDeviceMemory(static_cast<const char*>(data[k]) + operand.first, operand.bytes, device,
                                     what.c_str());
    operand.seen.store(data[k], std::memory_order_relaxed);
  }
  if (temporary_bytes == 0 && !has_temporaries) {
    Launch(data, scalars, nullptr, stream);
    return;
  }
  struct Memory {
    Memory(std::size_t bytes, cuda::StreamHandle in)
        : stream(in),
          data(static_cast<char*>(cuda::library::AllocateInOrder(bytes, in))) {}
    ~Memory() { cuda::library::FreeInOrder(data, stream); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    cuda::StreamHandle stream;
    char* data;
  };
  const Memory memory(std::max<std::size_t>(temporary_bytes, 1), stream);
  std::vector<void*> all(data, data + operands.size());
  for (const std::size_t begin : temporaries) all.push_back(memory.data + begin);
  Launch(all.data(), scalars, memory.data + scratch, stream);
}

void Prepared::Launch(void* const* data, const umbra_scalar* scalars, void* scratch_memory,
                      cuda::StreamHandle stream) const {
  cuda::Aside aside(stream);
  for (const CudaStep& step : steps) {
    if (!step.IsAside() && !step.GoesOn()) aside.End();
    step.Launch(data, scalars, scratch_memory, step.IsAside() ? aside.Begin() : stream);
  }
  aside.End();
}

class CallSiteOnGpu final : public CudaCallSite::State {
 public:
  explicit CallSiteOnGpu(std::shared_ptr<const Program> program) : program_(std::move(program)) {
    for (const Buffer& buffer : program_->buffers) {
      if (buffer.kind == Buffer::Kind::kInput) ++num_inputs_;
      if (buffer.kind <= Buffer::Kind::kOutput) ++num_operands_;
    }
  }

  void Run(void* const* data, Layout layout, const umbra_scalar* scalars, cuda::StreamHandle stream) override;
  void Run(const Arguments& arguments, const RunOptions& options) override;

 private:
  std::shared_ptr<const Prepared> Known(int device, void* const* data, Layout layout, const umbra_scalar* scalars);
  std::shared_ptr<const Prepared> Find(int device, void* const* data, Layout layout, const umbra_scalar* scalars,
                                       cuda::StreamHandle stream);

  std::shared_ptr<const Program> program_;
  std::size_t num_inputs_ = 0, num_operands_ = 0;
  std::atomic<const Prepared*> latest_{nullptr};
  std::mutex mutex_;
  std::vector<std::shared_ptr<const Prepared>> all_;
};

void CallSiteOnGpu::Run(void* const* data, Layout layout, const umbra_scalar* scalars, cuda::StreamHandle stream) {
  const int device = stream == nullptr ? cuda::library::CurrentDevice() : cuda::library::DeviceOf(stream);
  const Prepared* const latest = latest_.load(std::memory_order_acquire);
  if (latest != nullptr && latest->Fits(device, data, layout, scalars))
    return latest->Run(*program_, data, scalars, stream);
  Find(device, data, layout, scalars, stream)->Run(*program_, data, scalars, stream);
}

// One of those seen before. The caller holds the lock.
std::shared_ptr<const Prepared> CallSiteOnGpu::Known(int device, void* const* data, Layout layout,
                                                     const umbra_scalar* scalars) {
  for (const auto& prepared : all_)
    if (prepared->Fits(device, data, layout, scalars)) {
      latest_.store(prepared.get(), std::memory_order_release);
      return prepared;
    }
  return nullptr;
}

std::shared_ptr<const Prepared> CallSiteOnGpu::Find(int device, void* const* data, Layout layout,
                                                    const umbra_scalar* scalars, cuda::StreamHandle stream) {
  std::unique_lock lock(mutex_);
  if (auto known = Known(device, data, layout, scalars)) return known;
  lock.unlock();  // others need not wait for a compile
  Arguments arguments;
  Layout rest = layout;
  for (std::size_t k = 0; k < num_operands_; ++k)
    (k < num_inputs_ ? arguments.inputs : arguments.outputs).push_back(rest.Next(data[k]));
  arguments.scalars.assign(scalars, scalars + program_->scalars.size());
  auto prepared = std::make_shared<const Prepared>(*program_, arguments, device, layout, stream);
  lock.lock();
  if (auto known = Known(device, data, layout, scalars)) return known;  // another thread was as fast
  if (all_.size() >= kMaxPrepared || !prepared->lasts) return prepared;
  all_.push_back(prepared);
  latest_.store(prepared.get(), std::memory_order_release);
  return prepared;
}

void CallSiteOnGpu::Run(const Arguments& arguments, const RunOptions& options) {
  bool fits = arguments.inputs.size() == num_inputs_ && num_inputs_ + arguments.outputs.size() == num_operands_ &&
              arguments.scalars.size() == program_->scalars.size();
  for (const auto* tensors : {&arguments.inputs, &arguments.outputs})
    for (const TensorRef& tensor : *tensors) fits = fits && tensor.shape.size() == tensor.stride.size();
  if (!fits) (void)CheckArguments(*program_, arguments);  // says what does not
  Operands operands;
  for (const auto* tensors : {&arguments.inputs, &arguments.outputs})
    for (const TensorRef& tensor : *tensors)
      operands.Add(tensor.data, tensor.dtype, static_cast<int>(tensor.shape.size()), tensor.shape.data(),
                   tensor.stride.data());
  Run(operands.data(), operands.layout(), arguments.scalars.data(), options.stream);
}

}  // namespace

}  // namespace umbra::runtime

std::shared_ptr<umbra::runtime::CudaCallSite::State> umbra::cuda::library::NewCallSite(
    std::shared_ptr<const runtime::Program> program) {
  return std::make_shared<runtime::CallSiteOnGpu>(std::move(program));
}
