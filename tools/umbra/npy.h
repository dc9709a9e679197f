// NumPy's .npy files.
#ifndef UMBRA_TOOLS_UMBRA_NPY_H_
#define UMBRA_TOOLS_UMBRA_NPY_H_

#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "umbra/aligned_memory.h"
#include "umbra/function.h"

namespace umbra::tools {

/// AlignedMemory for a std::vector: kernels run as fast as on a program's own tensors.
template <typename T>
struct AlignedAllocator {
  using value_type = T;
  T* allocate(std::size_t count) {
    void* const memory = AlignedMemory(count * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) { std::free(memory); }
  bool operator==(const AlignedAllocator&) const { return true; }
};

/// A tensor that owns its bytes.
struct Array {
  DType dtype = DType::kFloat32;
  std::vector<index_t> shape;
  std::vector<index_t> stride;  ///< in elements; Fortran order is kept as it is in the file
  std::vector<char, AlignedAllocator<char>> bytes;

  runtime::TensorRef Ref();
};

/// A zeroed dense array.
Array MakeArray(DType dtype, std::vector<index_t> shape);

/// The array in `bytes`, the content of a version 1, 2 or 3 file of f4, f8 or i4, little-endian.
/// `name` stands for the file in messages. Throws umbra::Error on anything else; a file that is cut
/// short or claims more than it holds is an error, never a crash.
Array ParseNpy(std::string_view bytes, const std::string& name);
/// The content of a file with `array`, which is dense.
std::string FormatNpy(const Array& array);

}  // namespace umbra::tools

#endif  // UMBRA_TOOLS_UMBRA_NPY_H_
