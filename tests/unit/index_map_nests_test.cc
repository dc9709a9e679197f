// Drawn nests of index maps and functions, in every dialect: the bits are the interpreter's.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/index_map_common.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

struct Nest {
  std::string text;
  index_t rows, columns;
};

constexpr index_t kMostElements = 4000;

class Drawing {
 public:
  explicit Drawing(unsigned seed) : random_(seed) {}
  index_t Below(index_t n) { return static_cast<index_t>(random_() % static_cast<unsigned>(n)); }

  // Of x and y of the same shape.
  Nest Draw(int depth, bool floats, index_t rows, index_t columns) {
    if (depth == 0 || Below(8) == 0) return {Below(2) == 0 ? "x" : "y", rows, columns};
    const Nest e = Draw(depth - 1, floats, rows, columns), f = Draw(depth - 1, floats, rows, columns);
    const auto cut = [&](int axis, index_t extent) {
      const index_t begin = Below(extent), count = 1 + Below(extent - begin);
      return Nest{Call("slice", e.text, axis, begin, begin + count), axis == 0 ? count : e.rows,
                  axis == 1 ? count : e.columns};
    };
    switch (Below(floats ? 15 : 12)) {
      case 0: return f.rows == e.rows ? Nest{Call("concat", e.text, f.text, 1), e.rows, e.columns + f.columns} : e;
      case 1: return f.columns == e.columns ? Nest{Call("concat", e.text, f.text, 0), e.rows + f.rows, e.columns} : e;
      case 2: {
        const index_t above = Below(4), beside = Below(9);
        return {Call("pad", e.text, above, beside), e.rows + 2 * above, e.columns + 2 * beside};
      }
      case 3: return cut(0, e.rows);
      case 4: return cut(1, e.columns);
      case 5: return {Call("flip", e.text, Below(2)), e.rows, e.columns};
      case 6: return {"(1 - " + e.text + " * 2)", e.rows, e.columns};
      case 7: {
        const index_t times = 2 + Below(3);
        if (e.rows * e.columns * times * times > kMostElements) return e;
        return {Call("upsampling_nearest", e.text, times), e.rows * times, e.columns * times};
      }
      case 8: {
        const index_t size = e.rows * e.columns;
        index_t columns_now = 1 + Below(std::min<index_t>(size, 70));
        while (size % columns_now != 0) --columns_now;
        return {Call("reshape", e.text, size / columns_now, columns_now), size / columns_now, columns_now};
      }
      case 9: return {e.text + ".T", e.columns, e.rows};
      case 10: {  // what two maps make of the same elements, in one loop
        const index_t size = e.rows * e.columns, all = f.rows * f.columns;
        if (all < size) return f;
        const std::string other = Call("slice", Call("reshape", f.text, all), 0, all - size, all);
        return {"(" + e.text + " + " + Call("reshape", other, e.rows, e.columns) + ")", e.rows, e.columns};
      }
      case 11: {
        const index_t size = 1 + Below(3), step = 1 + Below(2);
        if (e.rows < size || e.columns < size) return e;
        const auto windows = [&](index_t extent) { return (extent - size) / step + 1; };
        return {Call("pool<maximum>", e.text, size, size, step, step), windows(e.rows), windows(e.columns)};
      }
      case 12: return {"exp(" + e.text + " * 0.125)", e.rows, e.columns};
      case 13: return {"tanh(" + e.text + ")", e.rows, e.columns};
      default: return {"select(" + e.text + " > 0, " + e.text + ", 0.5)", e.rows, e.columns};
    }
  }

 private:
  static std::string Text(const std::string& text) { return text; }
  static std::string Text(index_t number) { return std::to_string(number); }
  template <typename... Arg>
  static std::string Call(const std::string& name, const std::string& first, const Arg&... arg) {
    return name + "(" + first + ((", " + Text(arg)) + ...) + ")";
  }
  std::mt19937 random_;
};

template <typename T>
void ExpectTheSame(unsigned seed, int cases) {
  Drawing drawing(seed);
  const DType type = DTypeOf<T>::value;
  for (int k = 0; k < cases; ++k) {
    const index_t rows = 1 + drawing.Below(4), columns = 1 + drawing.Below(k % 3 == 0 ? 40 : 300);
    const Nest nest = drawing.Draw(1 + static_cast<int>(drawing.Below(5)), std::is_floating_point_v<T>, rows, columns);
    // Every other time with extents that the compiler knows.
    const auto tensor = [&, known = k % 2 == 0](const char* name, const char* extents, index_t r, index_t c) {
      return std::string(name) + ": " + std::string(Name(type)) + "[" +
             (known ? std::to_string(r) + ", " + std::to_string(c) : extents) + "]";
    };
    const std::string text = "kernel t(" + tensor("x", "?, ?", rows, columns) + ", " +
                             tensor("y", "?, ?", rows, columns) + ") -> (" +
                             tensor("z", "p, q", nest.rows, nest.columns) + ") { z = " + nest.text + " }";
    std::vector<T> x, y, expected;
    for (index_t i = 0; i < rows * columns; ++i) {
      x.push_back(static_cast<T>(static_cast<T>(drawing.Below(41) - 20) / T(4)));
      y.push_back(static_cast<T>(static_cast<T>(drawing.Below(41) - 20) / T(4)));
    }
    for (const CompileOptions& route : Routes()) {
      std::vector<T> z(static_cast<std::size_t>(nest.rows * nest.columns), T(77));
      const auto operand = [&](std::vector<T>& v, index_t r, index_t c) {
        return runtime::TensorRef::Dense(v.data(), type, {r, c});
      };
      Compile(graph::ParseText(text)[0], route)(
          {{operand(x, rows, columns), operand(y, rows, columns)}, {operand(z, nest.rows, nest.columns)}, {}});
      if (expected.empty()) expected = z;
      ASSERT_TRUE(z == expected) << route.target << ": " << text << " of " << rows << " x " << columns;
    }
  }
}

TEST(IndexMapNests, OfF32) { ExpectTheSame<float>(1, 80); }
TEST(IndexMapNests, OfF64) { ExpectTheSame<double>(2, 40); }
TEST(IndexMapNests, OfI8) { ExpectTheSame<std::int8_t>(3, 40); }

// A tensor read at its own positions, some of which a guard leaves out.
TEST(IndexMapNests, OfOneRowOfANarrowDtype) {
  for (const std::string dtype : {"bf16", "f16", "i8", "f32"})
    for (const index_t row : {0, 1}) {
      const std::string text = "kernel t(x: " + dtype + "[1, m], y: " + dtype +
                               "[1, m]) -> (z: f32[1, m]) { z = tcast<f32>(slice(concat(x, y, 0), 0, " +
                               std::to_string(row) + ", " + std::to_string(row + 1) + ")) }";
      for (const CompileOptions& route : Routes()) {
        const std::string widen = "kernel w(a: f32[1, m], b: f32[1, m]) -> (x: " + dtype + "[1, m], y: " + dtype +
                                  "[1, m]) { x = tcast<" + dtype + ">(a)  y = tcast<" + dtype + ">(b) }";
        std::vector<float> a, b, z(70);
        for (int k = 0; k < 70; ++k) a.push_back(static_cast<float>(k)), b.push_back(static_cast<float>(-k));
        std::vector<char> x(70 * 4), y(70 * 4);
        const DType type = *FindDType(dtype);
        const auto floats = [](std::vector<float>& v) {
          return runtime::TensorRef::Dense(v.data(), DType::kFloat32, {1, 70});
        };
        const auto narrow = [type](std::vector<char>& v) { return runtime::TensorRef::Dense(v.data(), type, {1, 70}); };
        Compile(graph::ParseText(widen)[0], route)({{floats(a), floats(b)}, {narrow(x), narrow(y)}, {}});
        Compile(graph::ParseText(text)[0], route)({{narrow(x), narrow(y)}, {floats(z)}, {}});
        EXPECT_EQ(z, row == 0 ? a : b) << route.target << ": " << text;
      }
    }
}
TEST(IndexMapNests, OfI64) { ExpectTheSame<std::int64_t>(4, 40); }

}  // namespace
}  // namespace umbra
