#include "umbra/program.h"

#include <algorithm>
#include <cstddef>

namespace umbra::runtime {

bool IsBaked(const KernelSignature& signature, int axis) {
  const bool columns = signature.vector_axis < signature.row_axes;
  const int first = columns ? signature.vector_axis + 1 : signature.row_axes;
  if (signature.elementwise || axis < first || !signature.axes[static_cast<std::size_t>(axis)].is_static())
    return false;
  if (std::count(signature.ranged.begin(), signature.ranged.end(), axis) > 0) return false;
  return columns || signature.positional || static_cast<int>(signature.axes.size()) - signature.row_axes == 1;
}

std::vector<int> CutAxes(const KernelSignature& signature) {
  std::vector<int> axes{signature.row_axes};
  if (signature.vector_axis > signature.row_axes) axes.push_back(signature.vector_axis);
  return axes;
}

}  // namespace umbra::runtime
