#include "examples/digits/data.h"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <vector>

#include "umbra/error.h"

namespace digits {

namespace {

std::string ReadCompressed(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  umbra::Require(file != nullptr, "cannot read the digits: ", path);
  std::string text;
  char buffer[1 << 16];
  int count = 0;
  while ((count = gzread(file.get(), buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<std::size_t>(count));
  int code = Z_OK;
  const char* reason = gzerror(file.get(), &code);
  umbra::Require(count == 0 && code == Z_OK, path, ": ", reason);
  return text;
}

}  // namespace

Data ReadData(const std::string& path) {
  const std::string text = ReadCompressed(path);
  const auto lines = static_cast<umbra::index_t>(std::count(text.begin(), text.end(), '\n'));
  umbra::Require(lines > 0, path, ": expected a row for every digit, but the file is empty");
  Data data{Matrix(umbra::Shape2(lines, kPixels)), Matrix(umbra::Shape2(lines, kClasses), 0.0f)};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (umbra::index_t line = 0; line < lines; ++line) {
    for (umbra::index_t column = 0; column <= kPixels; ++column) {
      int value = -1;
      const auto [next, error] = std::from_chars(at, end, value);
      const bool last = column == kPixels;
      umbra::Require(error == std::errc() && next != end && *next == (last ? '\n' : ',') &&
                         value >= 0 && value <= (last ? 9 : 16),
                     path, ":", line + 1, ": expected ", kPixels,
                     " pixels of 0 to 16 and a class of 0 to 9, separated by commas");
      if (last)
        data.label[line][value] = 1.0f;
      else
        data.image[line][column] = static_cast<float>(value);
      at = next + 1;
    }
  }
  return data;
}

void Gather(const Matrix& from, const umbra::index_t* rows, umbra::index_t count, Matrix* to) {
  to->Resize(umbra::Shape2(count, from.shape_[1]));
  for (umbra::index_t k = 0; k < count; ++k)
    std::copy_n(from[rows[k]].dptr_, from.shape_[1], (*to)[k].dptr_);
}

}  // namespace digits
