// Small helpers over shapes and strides.
#ifndef UMBRA_RUNTIME_SHAPE_H_
#define UMBRA_RUNTIME_SHAPE_H_

#include <string>
#include <vector>

#include "umbra/function.h"

namespace umbra::runtime {

/// `[3, 1024]`.
std::string ShapeText(const std::vector<index_t>& shape);
/// The number of elements; throws umbra::Error if it overflows, naming `what`.
index_t CountElements(const std::vector<index_t>& shape, std::size_t element_size, const std::string& what);
/// The bytes [first, last) that a tensor touches; empty if it has no element.
std::pair<const char*, const char*> ByteRange(const TensorRef& tensor);
/// A scalar of an integer dtype.
inline index_t WholeNumber(DType dtype, const umbra_scalar& scalar) {
  return dtype == DType::kInt64 ? static_cast<index_t>(scalar.i64) : scalar.i32;
}
/// The scalars of a call that extents follow from: with others, what was prepared for it does not fit.
class GivenExtents {
 public:
  GivenExtents() = default;
  GivenExtents(const Program& program, const umbra_scalar* scalars);
  bool Fit(const umbra_scalar* scalars) const {
    for (const Given& given : all_)
      if (WholeNumber(given.dtype, scalars[given.scalar]) != given.value) return false;
    return true;
  }

 private:
  struct Given {
    std::size_t scalar;
    DType dtype;
    index_t value;
  };
  std::vector<Given> all_;
};
/// Extents of a buffer's shape with the symbols filled in.
std::vector<index_t> Resolve(const std::vector<Extent>& shape, const std::vector<index_t>& symbols);

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_SHAPE_H_
