#include "examples/digits/data.h"

#include <charconv>
#include <fstream>

namespace digits {

Data::Data(const std::string& path) {
  std::ifstream file(path);
  umbra::Require(file.is_open(), "cannot open ", path);
  std::vector<int> numbers;
  std::string line;
  std::size_t rows = 0;
  while (std::getline(file, line)) {
    ++rows;
    const char* const end = line.data() + line.size();
    for (const char* at = line.data(); at < end && *at != '\r';) {
      const auto [next, error] = std::from_chars(at, end, numbers.emplace_back());
      umbra::Require(error == std::errc(), path, ", line ", rows, ": a number was expected");
      at = next < end && *next == ',' ? next + 1 : next;
    }
    umbra::Require(numbers.size() == rows * (kPixels + 1), path, ", line ", rows, ": expected ", kPixels,
                   " pixels and a class");
    umbra::Require(numbers.back() >= 0 && numbers.back() < kClasses, path, ", line ", rows,
                   ": the class is not a digit");
  }
  umbra::Require(rows > kTrainRows, path, " has ", rows, " rows; more than ", kTrainRows, " are needed");

  const auto count = static_cast<umbra::index_t>(rows);
  pixels.Resize(umbra::Shape2(count, kPixels));
  onehot.Resize(umbra::Shape2(count, kClasses));
  onehot = 0.0f;
  const int* number = numbers.data();
  for (umbra::index_t row = 0; row < count; ++row) {
    for (int k = 0; k < kPixels; ++k) pixels[row][k] = static_cast<float>(*number++) / 16.0f;
    onehot[row][*number] = 1.0f;
    labels.push_back(*number++);
  }
}

}  // namespace digits
