#include "compiler/codegen/cuda/kept.h"

#include <algorithm>

namespace umbra::codegen {

namespace {

struct Reads {
  int first, last;  // phases
};

// The phases that read elements of each input, of those that bring a row of their own.
std::map<int, Reads> ReadsOfRows(const plan::Kernel& kernel) {
  std::map<int, Reads> reads;
  const auto& signature = kernel.signature;
  if (kernel.rank() - signature.row_axes != 1 || !kernel.vector_axis_is_inner()) return reads;
  for (int p = 0; p < static_cast<int>(kernel.phases.size()); ++p)
    for (const int id : kernel.phases[static_cast<std::size_t>(p)].element_values) {
      const plan::Value& v = kernel.values[static_cast<std::size_t>(id)];
      if (v.kind != plan::Value::Kind::kLoad) continue;
      const auto& dims = signature.operands[static_cast<std::size_t>(v.index)].dim_of_axis;
      const bool by_row =
          std::any_of(dims.begin(), dims.begin() + signature.row_axes, [](int dim) { return dim >= 0; });
      if (by_row && dims.back() >= 0) reads.emplace(v.index, Reads{p, p}).first->second.last = p;
    }
  return reads;
}

}  // namespace

KeptRows RowsKept(const plan::Plan& plan, const plan::Kernel& kernel, bool with_inputs) {
  KeptRows kept;
  std::map<int, int> last_read;  // of the arrays of inputs, while nothing else has them
  const auto add = [&](DType type) {
    kept.types.push_back(type);
    return static_cast<int>(kept.types.size()) - 1;
  };
  if (with_inputs)
    for (const auto& [operand, phases] : ReadsOfRows(kernel)) {
      if (phases.first == phases.last) continue;
      const auto& access = kernel.signature.operands[static_cast<std::size_t>(operand)];
      kept.of_operand[operand] = add(plan.buffers[static_cast<std::size_t>(access.buffer)].dtype);
      last_read[kept.of_operand[operand]] = phases.last;
    }
  const bool scans = plan::HasScans(kernel);  // then other threads' elements are read, too
  kept.of_row_buffer.resize(kernel.signature.row_buffers.size());
  for (int p = 0; p < static_cast<int>(kernel.phases.size()); ++p)
    for (const plan::Stage& stage : kernel.phases[static_cast<std::size_t>(p)].stages) {
      const DType type = kernel.signature.row_buffers[static_cast<std::size_t>(stage.row_buffer)];
      const auto free = std::find_if(last_read.begin(), last_read.end(), [&](const auto& array) {
        return array.second < p + (scans ? 0 : 1) && kept.types[static_cast<std::size_t>(array.first)] == type;
      });
      kept.of_row_buffer[static_cast<std::size_t>(stage.row_buffer)] =
          free == last_read.end() ? add(type) : free->first;
      if (free != last_read.end()) last_read.erase(free);
    }
  return kept;
}

}  // namespace umbra::codegen
