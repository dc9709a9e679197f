#include "examples/digits/data.h"

#include <zlib.h>

#include <charconv>
#include <cstring>
#include <memory>

namespace digits {

Data::Data(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  umbra::Require(file != nullptr, "cannot open ", path);
  std::vector<int> numbers;
  char line[1024];
  std::size_t rows = 0;
  while (gzgets(file.get(), line, sizeof line) != nullptr) {
    ++rows;
    const char* const end = line + std::strlen(line);
    for (const char* at = line; at < end && *at != '\n' && *at != '\r';) {
      const auto [next, error] = std::from_chars(at, end, numbers.emplace_back());
      umbra::Require(error == std::errc(), path, ", line ", rows, ": a number was expected");
      at = next < end && *next == ',' ? next + 1 : next;
    }
    umbra::Require(numbers.size() == rows * (kPixels + 1), path, ", line ", rows, ": expected ",
                   kPixels, " pixels and a class");
    umbra::Require(numbers.back() >= 0 && numbers.back() < kClasses, path, ", line ", rows,
                   ": the class is not a digit");
  }
  umbra::Require(rows > kTrainRows, path, " has ", rows, " rows; more than ", kTrainRows,
                 " are needed");

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
