// Rows of elements of 1 and 2 bytes that end within a packet, at the end of a page after which nothing can be read: the
// bits of the interpreter by every instruction set.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/index_map_common.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

// Memory whose last byte is the last that may be read.
class EndOfPage {
 public:
  static constexpr std::size_t kSize = 4 * 4096;
  EndOfPage() : space_(static_cast<char*>(mmap(nullptr, kSize + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    if (space_ == MAP_FAILED || mprotect(space_, kSize, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  }
  ~EndOfPage() { munmap(space_, kSize + 4096); }
  EndOfPage(const EndOfPage&) = delete;
  char* Last(std::size_t bytes) const { return space_ + kSize - bytes; }

 private:
  char* space_;
};

struct Kernel {
  const char *result, *body;
};

// Random bits; of floats no NaN, whose bits no one has to keep.
void Draw(DType type, char* data, index_t count, std::mt19937* random) {
  for (index_t k = 0; k < count; ++k) {
    auto bits = static_cast<std::uint16_t>((*random)());
    if (type == DType::kFloat16 && (bits & 0x7c00) == 0x7c00) bits &= 0xfc00;
    if (type == DType::kBFloat16 && (bits & 0x7f80) == 0x7f80) bits &= 0xff80;
    std::memcpy(data + k * static_cast<index_t>(SizeOf(type)), &bits, SizeOf(type));
  }
}

void ExpectSameBits(DType type, const std::vector<Kernel>& kernels) {
  const EndOfPage page, results;
  for (const Kernel& kernel : kernels) {
    const std::string name(Name(type));
    std::string text = "kernel k(x: T[?, ?]) -> (y: " + std::string(kernel.result) + ") { y = " + kernel.body + " }";
    for (std::size_t at; (at = text.find("T[")) != std::string::npos;) text.replace(at, 1, name);
    for (std::size_t at; (at = text.find("<T>")) != std::string::npos;) text.replace(at + 1, 1, name);
    std::vector<Function> routes;
    for (const CompileOptions& options : Routes()) routes.push_back(Compile(graph::ParseText(text)[0], options));
    std::mt19937 random(7);
    for (index_t columns = 2; columns < 70; ++columns) {
      const index_t rows = 3;
      char* const x = page.Last(static_cast<std::size_t>(rows * columns) * SizeOf(type));
      Draw(type, x, rows * columns, &random);
      std::vector<char> expected;
      for (std::size_t k = 0; k < routes.size(); ++k) {
        runtime::Arguments arguments;
        arguments.inputs = {runtime::TensorRef::Dense(x, type, {rows, columns})};
        const auto shape = runtime::OutputShapes(routes[k].program(), arguments.inputs, {})[0];
        const DType of_result = routes[k].program().buffers[1].dtype;
        std::size_t bytes = SizeOf(of_result);
        for (const index_t extent : shape) bytes *= static_cast<std::size_t>(extent);
        char* const y = results.Last(bytes);
        arguments.outputs = {runtime::TensorRef::Dense(y, of_result, shape)};
        routes[k](arguments);
        if (k == 0) expected.assign(y, y + bytes);
        ASSERT_EQ(std::memcmp(y, expected.data(), bytes), 0) << text << " of " << columns << " columns by route " << k;
      }
    }
  }
}

const std::vector<Kernel> kOfAll = {
    {"T[?]", "reduce_with_axis<maximum>(x, 1)"},
    {"i64[?]", "reduce_with_axis<argmin>(x, 1)"},
    {"T[?, ?]", "maximum(x, flip(x, 0))"},
    {"bool[?, ?]", "x < flip(x, 1)"},
    {"T[?, ?]", "x > 0 ? x : flip(x, 0)"},
    {"T[?, ?]", "pad(x, 1, 2)"},
    {"T[?, ?]", "flip(x, 1)"},
    {"T[?, ?]", "concat(x, flip(x, 1), 1)"},
    {"T[?, ?]", "upsampling_nearest(x, 2)"},
    {"T[?, ?]", "x.T"},
    {"i32[?, ?]", "tcast<i32>(x) * 3"},
};

TEST(NarrowRows, OfIntegers) {
  for (const DType type : {DType::kInt8, DType::kUInt8, DType::kInt16}) {
    ExpectSameBits(type, kOfAll);
    ExpectSameBits(type, {{"i32[?]", "reduce_with_axis<sum>(tcast<i32>(x), 1)"},
                          {"T[?]", "tcast<T>(reduce_with_axis<sum>(x, 1))"},
                          {"T[?, ?]", "x * 2 + broadcast<0>(reduce_with_axis<maximum>(x, 1), x)"}});
  }
}

TEST(NarrowRows, OfFloats) {
  for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
    ExpectSameBits(type, kOfAll);
    ExpectSameBits(type,
                   {{"T[?, ?]", "x * 0.5"}, {"T[?, ?]", "sign(x) - broadcast<0>(reduce_with_axis<minimum>(x, 1), x)"}});
  }
}

}  // namespace
}  // namespace umbra
