#include "runtime/overlap.h"

#include <algorithm>
#include <map>
#include <optional>

#include "runtime/shape.h"
#include "runtime/views.h"
#include "umbra/error.h"
#include "umbra/region.h"

namespace umbra::runtime {

namespace {

// Strides of extents of 1 say nothing.
bool SameMemory(const TensorRef& a, const TensorRef& b) {
  if (a.data != b.data || a.dtype != b.dtype || a.shape != b.shape) return false;
  for (std::size_t d = 0; d < a.shape.size(); ++d)
    if (a.shape[d] != 1 && a.stride[d] != b.stride[d]) return false;
  return true;
}

// The rows of a tensor that lie one pitch apart; nothing if its elements lie otherwise.
std::optional<expr::Region> RegionOf(const TensorRef& tensor) {
  const auto size = static_cast<index_t>(SizeOf(tensor.dtype));
  expr::Region region{static_cast<const char*>(tensor.data), 1, size, 0};
  index_t pitch = 1;  // in elements, for which the next dimension goes on a row, or with rows
  bool within_row = true;
  for (std::size_t d = tensor.shape.size(); d-- > 0;) {
    if (tensor.shape[d] == 1) continue;
    if (within_row && tensor.stride[d] == pitch) {
      region.width *= tensor.shape[d];
      pitch *= tensor.shape[d];
      continue;
    }
    if (tensor.stride[d] <= 0 || (!within_row && tensor.stride[d] != pitch)) return std::nullopt;
    within_row = false;
    if (region.rows == 1) region.pitch = tensor.stride[d] * size;
    region.rows *= tensor.shape[d];
    pitch = tensor.stride[d] * tensor.shape[d];
  }
  return region;
}

// Parts of one matrix may lie between each other's rows.
bool Apart(const TensorRef& a, const TensorRef& b) {
  const auto one = RegionOf(a), other = RegionOf(b);
  return one && other && one->Apart(*other);
}

struct StepUse {
  bool reads = false, writes = false, in_place = false;
};

// How one step uses an output and an input buffer.
StepUse UseOf(const Program& program, const GemmStep& gemm, int output, int input) {
  return {.reads = HomeOf(program.buffers, gemm.a) == input || HomeOf(program.buffers, gemm.b) == input,
          .writes = HomeOf(program.buffers, gemm.c) == output,
          .in_place = false};
}
StepUse UseOf(const Program& program, const KernelStep& kernel, int output, int input) {
  const KernelSignature& signature = kernel.signature;
  const auto is_read = [&](const Access& access) {
    return !access.store && HomeOf(program.buffers, access.buffer) == input;
  };
  StepUse use;
  use.in_place = true;
  for (std::size_t k = 0; k < signature.operands.size(); ++k) {
    const Access& store = signature.operands[k];
    if (is_read(store)) use.reads = true;
    if (!store.store || HomeOf(program.buffers, store.buffer) != output) continue;
    use.writes = true;
    for (std::size_t l = 0; l < signature.operands.size(); ++l) {
      if (!is_read(signature.operands[l])) continue;
      const auto& allowed = signature.in_place[k];
      use.in_place = use.in_place && std::ranges::find(allowed, static_cast<int>(l)) != allowed.end();
    }
  }
  return use;
}
StepUse UseOf(const Program& program, const std::variant<KernelStep, GemmStep>& step, int output, int input) {
  const auto* gemm = std::get_if<GemmStep>(&step);
  return gemm != nullptr ? UseOf(program, *gemm, output, input)
                         : UseOf(program, *std::get_if<KernelStep>(&step), output, input);
}

}  // namespace

bool MayShare(const Program& program, int output, int input) {
  if (IsWrittenInParts(program.buffers, static_cast<std::size_t>(output))) return true;  // to a copy
  bool written = false;
  for (const auto& step : program.steps) {
    if (const auto* kernel = std::get_if<KernelStep>(&step); kernel != nullptr && !kernel->signature.replaces.empty())
      continue;
    const StepUse use = UseOf(program, step, output, input);
    if (use.reads && (written || (use.writes && !use.in_place))) return false;
    written = written || use.writes;
  }
  return true;
}

bool MayShare(const Program& program, const KernelStep& step, int output, int input) {
  const StepUse use = UseOf(program, step, output, input);
  return !use.reads || !use.writes || use.in_place;
}

bool MeetLater(const Program& program, const KernelStep& kernel, int begin, int end, int output, int input) {
  if (!UseOf(program, kernel, output, input).reads) return false;
  const auto writes = [&](const auto& step) { return UseOf(program, step, output, input).writes; };
  return std::any_of(program.steps.begin() + begin, program.steps.begin() + end, writes);
}

OperandPairs Overlapping(const std::vector<Bytes>& operands, std::size_t first_output) {
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < operands.size(); ++k)
    if (operands[k].first < operands[k].second) order.push_back(k);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(operands[a].first, a) < std::pair(operands[b].first, b);
  });
  OperandPairs pairs;
  std::vector<std::size_t> inputs, outputs;  // those that began before and have not ended
  for (const std::size_t k : order) {
    const bool output = k >= first_output;
    const auto meet = [&](std::vector<std::size_t>* open) {
      open->erase(std::remove_if(open->begin(), open->end(),
                                 [&](std::size_t o) { return operands[o].second <= operands[k].first; }),
                  open->end());
      for (const std::size_t o : *open) pairs.emplace_back(std::max(o, k), std::min(o, k));
    };
    meet(&outputs);
    if (output) meet(&inputs);
    (output ? outputs : inputs).push_back(k);
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

OperandPairs CheckOverlaps(const Program& program, const std::vector<TensorRef>& buffers) {
  std::vector<Bytes> bytes;
  std::size_t inputs = 0;
  for (std::size_t k = 0; k < buffers.size(); ++k) {
    bytes.push_back(ByteRange(buffers[k]));
    if (program.buffers[k].kind == Buffer::Kind::kInput) ++inputs;
  }
  OperandPairs pairs = Overlapping(bytes, inputs);
  for (const auto& [out, other] : pairs) {
    if (Apart(buffers[out], buffers[other])) continue;
    const bool both = program.buffers[other].kind == Buffer::Kind::kOutput;
    Require(!both, "kernel '", program.name, "': the outputs '", program.buffers[other].name, "' and '",
            program.buffers[out].name, "' overlap in memory");
    Require(
        SameMemory(buffers[out], buffers[other]) && MayShare(program, static_cast<int>(out), static_cast<int>(other)),
        "kernel '", program.name, "': output '", program.buffers[out].name, "' overlaps input '",
        program.buffers[other].name, "' in a way that would change the result; write to memory of its own");
  }
  return pairs;
}

bool AllowsOverlaps(const Program& program, const std::vector<TensorRef>& buffers, const OperandPairs& pairs) {
  return std::all_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
    return Apart(buffers[pair.first], buffers[pair.second]) ||
           MayShare(program, static_cast<int>(pair.first), static_cast<int>(pair.second));
  });
}

Meetings::Meetings(const std::vector<TensorRef>& operands, std::size_t first_output, OperandPairs shared)
    : first_output_(first_output),
      shared_(std::move(shared)) {
  std::vector<Bytes> bytes;
  for (const TensorRef& operand : operands) {
    data_.push_back(operand.data);
    bytes.push_back(ByteRange(operand));
    const auto [first, last] = bytes.back();
    const char* const begin = static_cast<const char*>(operand.data);
    reach_.push_back(first == last ? Reach{0, 0} : Reach{first - begin, last - begin});
  }
  if (operands.size() > kFew) return;
  for (std::size_t output = first_output; output < operands.size(); ++output)
    for (std::size_t other = 0; other < output; ++other) {
      if (bytes[output].first == bytes[output].second || bytes[other].first == bytes[other].second) continue;
      // They overlap if `other`, moved by d, begins before this ends and ends after this begins. Where they do, they
      // were found harmless as they lie: any other place has to be looked at.
      const std::uintptr_t distance = Address(data_[other]) - Address(data_[output]);
      const std::uintptr_t nearest = distance + Address(bytes[output].first) - Address(bytes[other].second) + 1;
      const std::uintptr_t farthest = distance + Address(bytes[output].second) - Address(bytes[other].first);
      const bool meet = distance - nearest < farthest - nearest;
      pairs_.push_back(meet ? Pair{output, other, distance + 1, ~std::uintptr_t{0}}
                            : Pair{output, other, nearest, farthest - nearest});
    }
}

bool Meetings::SharedAlike(void* const* data) const {
  for (const auto& [output, other] : shared_)
    if (Address(data[other]) - Address(data[output]) != Address(data_[other]) - Address(data_[output])) return false;
  std::vector<Bytes> bytes;
  for (std::size_t k = 0; k < data_.size(); ++k) {
    const char* const begin = static_cast<const char*>(data[k]);
    bytes.emplace_back(begin + reach_[k].first, begin + reach_[k].last);
  }
  return Overlapping(bytes, first_output_) == shared_;
}

bool Conflict(const Program& program, const StepGroup& group, const std::vector<TensorRef>& buffers) {
  std::map<const void*, int> writer;
  const auto each = [&](bool stores, const auto& body) {
    for (int k = group.begin; k < group.end; ++k)
      for (const Access& access : std::get<KernelStep>(program.steps[static_cast<std::size_t>(k)]).signature.operands)
        if (const void* data = buffers[static_cast<std::size_t>(access.buffer)].data;
            access.store == stores && data != nullptr)
          body(data, k);
  };
  each(true, [&](const void* data, int step) { writer[data] = step; });
  bool conflict = false;
  each(false, [&](const void* data, int step) {
    const auto found = writer.find(data);
    conflict = conflict || (found != writer.end() && found->second != step);
  });
  return conflict;
}

}  // namespace umbra::runtime
