#include "umbra/program.h"

#include <algorithm>
#include <cstddef>

namespace umbra::runtime {

bool IsBaked(const KernelSignature& signature, int axis) {
  if (signature.elementwise || axis < signature.row_axes || !signature.axes[static_cast<std::size_t>(axis)].is_static()) return false;
  if (std::count(signature.ranged.begin(), signature.ranged.end(), axis) > 0) return false;
  const bool columns = signature.vector_axis < signature.row_axes;
  return columns || signature.positional || static_cast<int>(signature.axes.size()) - signature.row_axes == 1;
}

std::vector<int> CutAxes(const KernelSignature& signature) {
  std::vector<int> axes{signature.row_axes};
  if (signature.vector_axis > signature.row_axes) axes.push_back(signature.vector_axis);
  return axes;
}

}  // namespace umbra::runtime
