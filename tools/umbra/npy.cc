#include "tools/umbra/npy.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>

#include "runtime/shape.h"
#include "umbra/error.h"

namespace umbra::tools {

namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

// How NumPy describes element types. It has no bf16.
struct Description {
  std::string_view descr;
  DType dtype;
};
constexpr Description kDescriptions[] = {{"<f4", DType::kFloat32}, {"<f8", DType::kFloat64}, {"<f2", DType::kFloat16},
                                         {"|i1", DType::kInt8},    {"|u1", DType::kUInt8},   {"<i2", DType::kInt16},
                                         {"<i4", DType::kInt32},   {"<i8", DType::kInt64},   {"|b1", DType::kBool}};

// The header: a Python dictionary with exactly the keys descr, fortran_order and shape.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  void Run() {
    Expect('{');
    while (!Accept('}')) {
      const std::string key = String();
      Expect(':');
      if (key == "descr") descr = String();
      else if (key == "fortran_order") fortran = Boolean();
      else if (key == "shape") Shape();
      else Fail("unknown key '" + key + "'");
      if (!Accept(',')) {
        Expect('}');
        break;
      }
    }
    if (descr.empty() || !has_shape) Fail("descr or shape is missing");
  }

  std::string descr;
  bool fortran = false, has_shape = false;
  std::vector<index_t> shape;

 private:
  [[noreturn]] void Fail(const std::string& what) const { throw Error(name_ + ": malformed .npy header: " + what); }
  void Skip() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_[0])) != 0) rest_.remove_prefix(1);
  }
  bool Accept(char c) {
    Skip();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void Expect(char c) {
    if (!Accept(c)) Fail(std::string("expected '") + c + "'");
  }
  std::string String() {
    Skip();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) Fail("expected a string");
    const std::size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) Fail("a string has no end");
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool Boolean() {
    Skip();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (rest_.substr(0, word.size()) != word) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    Fail("expected True or False");
  }
  void Shape() {
    has_shape = true;
    Expect('(');
    while (!Accept(')')) {
      Skip();
      index_t extent = 0;
      if (rest_.empty() || std::isdigit(static_cast<unsigned char>(rest_[0])) == 0) Fail("expected an extent");
      while (!rest_.empty() && std::isdigit(static_cast<unsigned char>(rest_[0])) != 0) {
        if (__builtin_mul_overflow(extent, index_t{10}, &extent) ||
            __builtin_add_overflow(extent, index_t{rest_[0] - '0'}, &extent))
          Fail("an extent is out of range");
        rest_.remove_prefix(1);
      }
      if (shape.size() == 32) Fail("more than 32 dimensions");
      shape.push_back(extent);
      if (!Accept(',')) {
        Expect(')');
        break;
      }
    }
  }

  std::string_view rest_;
  const std::string& name_;
};

}  // namespace

runtime::TensorRef Array::Ref() { return {bytes.data(), dtype, shape, stride}; }

Array MakeArray(DType dtype, std::vector<index_t> shape) {
  Array array;
  array.dtype = dtype;
  const index_t count = runtime::CountElements(shape, SizeOf(dtype), "an array");
  array.stride = runtime::TensorRef::Dense(nullptr, dtype, shape).stride;
  array.shape = std::move(shape);
  array.bytes.resize(static_cast<std::size_t>(count) * SizeOf(dtype));
  return array;
}

Array ParseNpy(std::string_view bytes, const std::string& name) {
  Require(bytes.substr(0, 6) == kMagic, name, ": not a .npy file: it does not begin with \\x93NUMPY");
  Require(bytes.size() >= 10, name, ": cut short in the header");
  const int version = static_cast<unsigned char>(bytes[6]);
  Require(version >= 1 && version <= 3, name, ": .npy version ", version, " is not known; expected 1, 2 or 3");
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  Require(bytes.size() >= 8 + length_bytes, name, ": cut short in the header");
  std::size_t length = 0;
  for (std::size_t k = 0; k < length_bytes; ++k)
    length |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[8 + k])) << (8 * k);
  const std::size_t start = 8 + length_bytes;
  Require(bytes.size() - start >= length, name, ": cut short in the header: ", length, " bytes announced, ",
          bytes.size() - start, " there");
  HeaderParser header(bytes.substr(start, length), name);
  header.Run();
  Array array;
  const auto row = std::find_if(std::begin(kDescriptions), std::end(kDescriptions),
                                [&](const Description& d) { return header.descr == d.descr; });
  if (row == std::end(kDescriptions)) {
    std::string known;
    for (const Description& d : kDescriptions) known += (known.empty() ? "" : ", ") + std::string(d.descr);
    throw Error(name + ": dtype '" + header.descr + "' is not supported; expected one of " + known +
                " (save x.astype('float32'))");
  }
  array.dtype = row->dtype;
  const index_t count = runtime::CountElements(header.shape, SizeOf(array.dtype), name);
  const std::string_view data = bytes.substr(start + length);
  Require(data.size() == static_cast<std::size_t>(count) * SizeOf(array.dtype), name, ": the shape needs ",
          static_cast<std::size_t>(count) * SizeOf(array.dtype), " bytes, the file has ", data.size());
  array.bytes.assign(data.begin(), data.end());
  array.shape = header.shape;
  array.stride = runtime::TensorRef::Dense(nullptr, array.dtype, array.shape).stride;
  if (header.fortran) {
    index_t stride = 1;
    for (std::size_t d = 0; d < array.shape.size(); ++d) {
      array.stride[d] = stride;
      stride *= array.shape[d];
    }
  }
  return array;
}

std::string FormatNpy(const Array& array) {
  const auto row = std::find_if(std::begin(kDescriptions), std::end(kDescriptions),
                                [&](const Description& d) { return array.dtype == d.dtype; });
  Require(row != std::end(kDescriptions), "a .npy file cannot hold ", Name(array.dtype),
          ": NumPy has no such dtype; write tcast<f32>(...)");
  const std::string descr(row->descr);
  std::string header = std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (";
  for (std::size_t d = 0; d < array.shape.size(); ++d) header += (d ? ", " : "") + std::to_string(array.shape[d]);
  header += array.shape.size() == 1 ? ",), }" : "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string text(kMagic);
  text += '\x01';
  text += '\0';
  text += static_cast<char>(header.size() & 0xff);
  text += static_cast<char>(header.size() >> 8);
  text += header;
  text.append(array.bytes.begin(), array.bytes.end());
  return text;
}

}  // namespace umbra::tools
