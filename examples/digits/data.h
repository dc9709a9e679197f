// The handwritten digits as tensors.
#ifndef UMBRA_EXAMPLES_DIGITS_DATA_H_
#define UMBRA_EXAMPLES_DIGITS_DATA_H_

#include <string>

#include "umbra/tensor.h"

namespace digits {

using Matrix = umbra::TensorContainer<umbra::cpu, 2, float>;

constexpr umbra::index_t kPixels = 64, kClasses = 10;

struct Data {
  Matrix image;  ///< [n, kPixels], integers 0 to 16
  Matrix label;  ///< [n, kClasses], 1 in the column of the digit's class, else 0
};

/// Reads a gzip-compressed file with kPixels values and the class in every row. Throws umbra::Error
/// with the file and line of what is wrong.
Data ReadData(const std::string& path);

/// Copies the rows `rows[0 .. count)` of `from` to `to`, which takes their number.
void Gather(const Matrix& from, const umbra::index_t* rows, umbra::index_t count, Matrix* to);

}  // namespace digits

#endif  // UMBRA_EXAMPLES_DIGITS_DATA_H_
