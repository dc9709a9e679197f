#include "umbra/program.h"

#include <cstddef>

#include "runtime/rows_together.h"

namespace umbra::runtime {

bool IsOneWithNext(const KernelSignature& signature, int axis) {
  if (axis < 0 || axis + 1 == static_cast<int>(signature.axes.size())) return false;
  for (const Access& access : signature.operands) {
    const int dim = access.dim_of_axis[static_cast<std::size_t>(axis)],
              next = access.dim_of_axis[static_cast<std::size_t>(axis) + 1];
    if (next != (dim < 0 ? -1 : dim + 1)) return false;
  }
  return true;
}

bool IsBaked(const KernelSignature& signature, int axis) {
  const bool columns = signature.vector_axis < signature.row_axes;
  const int first = columns ? signature.vector_axis + 1 : signature.row_axes;
  if (signature.elementwise || axis < first || !signature.axes[static_cast<std::size_t>(axis)].is_static())
    return false;
  for (const int ranged : signature.ranged)
    if (ranged == axis) return false;
  if (columns || signature.positional || static_cast<int>(signature.axes.size()) - signature.row_axes == 1) return true;
  return axis == signature.vector_axis && !IsOneWithNext(signature, axis - 1);  // which may grow
}

std::vector<int> CutAxes(const KernelSignature& signature) {
  std::vector<int> axes{signature.row_axes};
  if (signature.vector_axis > signature.row_axes) axes.push_back(signature.vector_axis);
  return axes;
}

}  // namespace umbra::runtime
