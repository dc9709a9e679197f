// The handwritten digits.
#ifndef UMBRA_EXAMPLES_DIGITS_DATA_H_
#define UMBRA_EXAMPLES_DIGITS_DATA_H_

#include <string>
#include <vector>

namespace digits {

struct Images {
  std::vector<float> pixels;  ///< 64 an image, 0 to 1
  std::vector<int> classes;   ///< 0 to 9
  int count() const { return static_cast<int>(classes.size()); }
};

/// Reads the compressed table. Throws umbra::Error if it is missing or not what it should be.
Images Load(const std::string& path);

}  // namespace digits

#endif  // UMBRA_EXAMPLES_DIGITS_DATA_H_
