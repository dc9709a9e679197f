// The handwritten digits as tensors.
#ifndef UMBRA_EXAMPLES_DIGITS_DATA_H_
#define UMBRA_EXAMPLES_DIGITS_DATA_H_

#include <string>
#include <vector>

#include "umbra/tensor.h"

namespace digits {

using Matrix = umbra::TensorContainer<umbra::cpu, 2>;

constexpr int kPixels = 64, kClasses = 10;
constexpr int kTrainRows = 1437;  ///< the rows after these are for the test

struct Data {
  /// Reads rows of 64 pixels and a class; throws umbra::Error if the file is not like that.
  explicit Data(const std::string& path);
  Data(const Data&) = delete;

  Matrix pixels;  ///< one image a row, scaled to 0..1
  Matrix onehot;  ///< 1 at the image's class
  std::vector<int> labels;
};

}  // namespace digits

#endif  // UMBRA_EXAMPLES_DIGITS_DATA_H_
