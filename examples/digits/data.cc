#include "examples/digits/data.h"

#include <zlib.h>

#include <sstream>

#include "umbra/error.h"

namespace digits {

Images Load(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  umbra::Require(file != nullptr, "cannot read ", path);
  std::string text;
  char buffer[65536];
  int got;
  while ((got = gzread(file, buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<std::size_t>(got));
  gzclose(file);
  umbra::Require(got == 0, path, " is damaged");
  Images images;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::vector<int> values;
    for (std::string field; std::getline(fields, field, ',');) values.push_back(std::stoi(field));
    umbra::Require(values.size() == 65, path, ": a row of ", values.size(), " values, expected 65");
    for (int k = 0; k < 64; ++k)
      images.pixels.push_back(static_cast<float>(values[static_cast<std::size_t>(k)]) / 16);
    images.classes.push_back(values[64]);
  }
  return images;
}

}  // namespace digits
