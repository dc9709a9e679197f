// Sizes and offsets of index maps that only the call knows, against the same maps with literals.
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "tests/unit/index_map_common.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

struct Result {
  std::vector<index_t> shape;
  std::vector<float> elements;
  bool operator==(const Result& other) const { return shape == other.shape && elements == other.elements; }
};

// `map` of x: [6, 8], v: [8], the numbers n and k, and c, which is k as an i32.
class Call {
 public:
  Call(const std::string& map, int rank, const CompileOptions& options) {
    std::string shape = "?";
    for (int d = 1; d < rank; ++d) shape += ", ?";
    function_ = Compile(graph::ParseText("kernel sized(x: f32[?, ?], v: f32[?], n: i64, k: i64, c: i32) -> (y: f32[" +
                                         shape + "]) { y = " + map + " }")[0],
                        options);
    std::iota(x_.begin(), x_.end(), 0.0f);
    std::iota(v_.begin(), v_.end(), 100.0f);
  }
  Result operator()(index_t n, index_t k) {
    runtime::Arguments arguments;
    arguments.inputs = {runtime::TensorRef::Dense(x_.data(), DType::kFloat32, {6, 8}),
                        runtime::TensorRef::Dense(v_.data(), DType::kFloat32, {8})};
    arguments.scalars.resize(3);
    arguments.scalars[0].i64 = n;
    arguments.scalars[1].i64 = k;
    arguments.scalars[2].i32 = static_cast<int>(k);
    Result result;
    result.shape = runtime::OutputShapes(function_.program(), arguments.inputs, arguments.scalars)[0];
    index_t count = 1;
    for (const index_t extent : result.shape) count *= extent;
    result.elements.resize(static_cast<std::size_t>(count));
    arguments.outputs = {runtime::TensorRef::Dense(result.elements.data(), DType::kFloat32, result.shape)};
    function_(arguments);
    return result;
  }

 private:
  Function function_;
  std::vector<float> x_ = std::vector<float>(48), v_ = std::vector<float>(8);
};

TEST(IndexMapSizes, FollowFromExtentsAndNumbersOfTheCall) {
  const struct {
    int rank;
    const char *open, *literal;  // the same for n = 3, k = 2
  } maps[] = {
      {2, "repmat(v, extent<0>(x))", "repmat(v, 6)"},
      {2, "repmat(v * 2, n * k)", "repmat(v * 2, 6)"},
      {2, "slice(x, 1, n, n + k)", "slice(x, 1, 3, 5)"},
      {2, "slice(x + 1, 0, k - 1, extent<0>(x) - n)", "slice(x + 1, 0, 1, 3)"},
      {2, "slice(x, 0, c, c + 3)", "slice(x, 0, 2, 5)"},
      {2, "crop(x, k, n, n, k)", "crop(x, 2, 3, 3, 2)"},
      {2, "pad(x, k, n)", "pad(x, 2, 3)"},
      {2, "upsampling_nearest(x, k)", "upsampling_nearest(x, 2)"},
      {3, "reshape(x, n, extent<0>(x) / n, extent<1>(x))", "reshape(x, 3, 2, 8)"},
      {1, "reshape(x, extent<0>(x) * extent<1>(x))", "reshape(x, 48)"},
      {2, "slice_ex(x, k, 1, 6, extent<1>(x), k, n)", "slice_ex(x, 2, 1, 6, 8, 2, 3)"},
      {3, "broadcast_with_axis(x, 0, n)", "broadcast_with_axis(x, 0, 3)"},
      {2, "one_hot_encode(v - 100, k * 4)", "one_hot_encode(v - 100, 8)"},
      {2, "broadcast_multi_axes(reshape(v, 1, extent<0>(v)), 0, n)",
       "broadcast_multi_axes(reshape(v, 1, extent<0>(v)), 0, 3)"},
      {2, "slice(pad(x, n, n), 1, n, n + extent<1>(x))", "slice(pad(x, 3, 3), 1, 3, 11)"},
  };
  for (const CompileOptions& options : Routes())
    for (const auto& map : maps) {
      SCOPED_TRACE(map.open);
      Call open(map.open, map.rank, options), literal(map.literal, map.rank, options);
      EXPECT_EQ(open(3, 2), literal(3, 2));
    }
}

TEST(IndexMapSizes, AnotherNumberIsAnotherCall) {
  for (const CompileOptions& options : Routes()) {
    Call window("slice(x, 1, n, n + k)", 2, options);
    for (index_t n = 0; n < 6; ++n)
      for (index_t k = 1; k < 3; ++k) {
        const Result result = window(n, k);
        ASSERT_EQ(result.shape, (std::vector<index_t>{6, k}));
        EXPECT_EQ(result.elements[0], static_cast<float>(n));
      }
  }
}

TEST(IndexMapSizes, WhatDoesNotFitIsSaid) {
  for (const CompileOptions& options : Routes()) {
    Call window("slice(x, 1, n, n + k)", 2, options);
    EXPECT_SAYS("scalar 'n' is -1, but stands for an extent or a position: it must be 0 or more", window(-1, 2));
    EXPECT_SAYS("slice of 'x': an extent is 8, but must be at least 9: an input is too small", window(7, 2));
    EXPECT_SAYS("must be at least", window(index_t{1} << 40, 2));
    Call back("slice(x, 1, n, k)", 2, options);
    EXPECT_SAYS("an extent is 2, but must be at least 3", back(3, 2));
    Call blocks("reshape(x, n, 8)", 2, options);
    EXPECT_SAYS("reshape of 'x'", blocks(5, 0));
    EXPECT_EQ(blocks(6, 0).shape, (std::vector<index_t>{6, 8}));
  }
}

TEST(IndexMapSizes, WhatHasToBeKnownIsSaid) {
  const CompileOptions options;
  EXPECT_SAYS("slice: number 1 after its tensors has to be known when the kernel is compiled; use a literal",
              Call("slice(x, n, 0, 2)", 2, options));
  EXPECT_SAYS("number 2 of slice(x, axis, begin, end) is a tensor of rank 1; numbers stand behind all tensors",
              Call("slice(x, 1, tcast<i64>(v), 2)", 2, options));
  EXPECT_SAYS("number 2 of slice(x, axis, begin, end) does not follow from the extents of operands",
              Call("slice(x, 1, tcast<i64>(reduce_with_axis<sum>(v, 0)), 2)", 2, options));
  EXPECT_SAYS("is 1.5; it has to be a whole number", Call("repmat(v, 1.5)", 2, options));
  EXPECT_SAYS("extent: axis 2 of a tensor of rank 2", Call("repmat(v, extent<2>(x))", 2, options));
}

TEST(IndexMapSizes, OfTheBuilder) {
  graph::Builder builder("rows");
  const graph::Value x = builder.Input("x", DType::kFloat32, {Dimension(), Dimension()});
  const graph::Value v = builder.Input("v", DType::kFloat32, {Dimension()});
  builder.Output("y", x + graph::IndexMap("repmat", {v}, {graph::Extent(x, 0)}));
  const Function rows = Compile(builder.Build());
  std::vector<float> x_data(6, 1), v_data = {1, 2, 3}, y(6);
  rows({{runtime::TensorRef::Dense(x_data.data(), DType::kFloat32, {2, 3}),
         runtime::TensorRef::Dense(v_data.data(), DType::kFloat32, {3})},
        {runtime::TensorRef::Dense(y.data(), DType::kFloat32, {2, 3})},
        {}});
  EXPECT_EQ(y, (std::vector<float>{2, 3, 4, 2, 3, 4}));
}

// Windows that lie inside, or reach out at either side, in rows of whole packets, with rests and without: the same bits
// by every route.
TEST(IndexMapSizes, WindowsOfAnyWidth) {
  const auto patches = [](const std::string& numbers) {
    const std::string extents = "extent<0>(x), extent<1>(x), extent<2>(x)";
    return "reshape(pack_col2patch(unpack_patch2col(reshape(x, 1, " + extents + "), " + numbers + "), 1, " + extents +
           ", " + numbers + "), " + extents + ")";
  };
  const std::string maps[] = {
      "pool<maximum>(x, 2, 2, 2, 2)", "pool<maximum>(x, 3, 3, 2, 2)", "pool<sum>(x, 3, 2, 1, 1)",
      "pool<minimum>(x, 1, 2, 1, 4)", "pool<maximum>(pad(x, 1, 1), 3, 3, 1, 1)", "chpool<maximum>(x, 3, 1, 1)",
      "unpool<maximum>(x, slice(x, 2, 0, extent<2>(x) / 2), slice(x, 2, 0, extent<2>(x) / 2), 1, 2, 1, 2)",
      "unpool<sum>(x, slice(x, 2, 0, extent<2>(x) / 4), slice(x, 2, 0, extent<2>(x) / 4), 1, 4, 1, 4)",
      // windows and patches that leave gaps, or overlap by less than a stride
      "unpool<maximum>(x, pool<maximum>(x, 2, 3, 1, 2), pool<sum>(x, 2, 3, 1, 2), 2, 3, 1, 2)",
      "unpool<sum>(x, pool<sum>(x, 3, 4, 2, 3), pool<minimum>(x, 3, 4, 2, 3), 3, 4, 2, 3)",
      "unpool<mean>(x, pool<mean>(x, 1, 2, 2, 4), pool<minimum>(x, 1, 2, 2, 4), 1, 2, 2, 4)",
      "unpool<minimum>(x, pool<minimum>(x, 3, 3, 2, 2), pool<minimum>(x, 3, 3, 2, 2), 3, 3, 2, 2) + x",
      patches("2, 2, 2, 2, 1, 1"), patches("3, 3, 1, 2, 1, 1"), patches("1, 2, 3, 2, 1, 3"),
      patches("2, 4, 1, 3, 2, 1"), "upsampling_nearest(x, 2)", "upsampling_nearest(slice(x, 2, 1, extent<2>(x)), 3)",
      "upsampling_nearest(x, 4)"};
  for (const std::string& map : maps) {
    std::vector<Function> routes;
    for (const CompileOptions& options : Routes())
      routes.push_back(
          Compile(graph::ParseText("kernel w(x: f32[?, ?, ?]) -> (y: f32[?, ?, ?]) { y = " + map + " }")[0], options));
    for (const index_t width : {4, 7, 15, 16, 17, 31, 32, 33, 34, 47, 48, 56, 63, 64, 65, 66, 80, 96, 130}) {
      std::vector<float> x(static_cast<std::size_t>(6 * width));
      std::mt19937 random(static_cast<unsigned>(width));
      for (float& value : x) {
        const unsigned drawn = random() % 64;
        value = drawn == 0   ? -0.0f
                : drawn == 1 ? std::nanf("")
                : drawn == 2 ? -INFINITY
                             : static_cast<float>(drawn / 8) - 4;
      }
      std::vector<float> expected;
      for (const Function& function : routes) {
        runtime::Arguments arguments;
        arguments.inputs = {runtime::TensorRef::Dense(x.data(), DType::kFloat32, {2, 3, width})};
        const auto shape = runtime::OutputShapes(function.program(), arguments.inputs, arguments.scalars)[0];
        std::vector<float> y(static_cast<std::size_t>(shape[0] * shape[1] * shape[2]));
        arguments.outputs = {runtime::TensorRef::Dense(y.data(), DType::kFloat32, shape)};
        function(arguments);
        if (expected.empty()) expected = y;
        EXPECT_EQ(std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)), 0)
            << map << " of width " << width << " by route " << &function - routes.data();
      }
    }
  }
}

// An extent that no machine can count: where it comes from is said.
TEST(IndexMapSizes, Overflowing) {
  const Function f = Compile(
      graph::ParseText("kernel k(x: f32[n, m], a: i64) -> (y: f32[?, ?]) { y = pad(x, a, 1) }")[0], Routes()[0]);
  float x = 0;
  umbra_scalar a;
  a.i64 = index_t{1} << 62;
  EXPECT_SAYS("kernel 'k': pad of 'x': an extent computed from 4611686018427387904 and 2 does not fit 64 bits",
              runtime::OutputShapes(f.program(), {runtime::TensorRef::Dense(&x, DType::kFloat32, {1, 1})}, {a}));
}

// More than 2^31 elements, of which the last are there.
TEST(IndexMapSizes, PositionsBeyond32Bits) {
  constexpr index_t kThere = 4096, kCount = (index_t{1} << 31) + 3 * kThere, kColumns = 4, kRows = kCount / kColumns;
  void* const space =
      mmap(nullptr, static_cast<std::size_t>(kCount), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(space, MAP_FAILED);
  auto* const bytes = static_cast<std::uint8_t*>(space);
  constexpr index_t kFirst = kCount - kThere;
  ASSERT_EQ(mprotect(bytes + kFirst, static_cast<std::size_t>(kThere), PROT_READ | PROT_WRITE), 0);
  for (index_t k = kFirst; k < kCount; ++k) bytes[k] = static_cast<std::uint8_t>(k % 251);
  const auto at = [](index_t k) { return static_cast<std::uint8_t>(k % 251); };
  const Tensor<cpu, 1, std::uint8_t> line(bytes, Shape1(kCount));
  const Tensor<cpu, 2, std::uint8_t> matrix(bytes, Shape2(kRows, kColumns));
  constexpr index_t kBegin = kFirst + 100, kRow = kFirst / kColumns + 9;
  TensorContainer<cpu, 1, std::uint8_t> part(Shape1(37));
  TensorContainer<cpu, 2, std::uint8_t> rows(Shape2(3, kColumns));
  TensorContainer<cpu, 1, std::int64_t> index(Shape1(3), std::int64_t{kRow});
  const auto check = [&](const std::string& route, const auto& assign) {
    assign(part, slice<0>(line, kBegin, kBegin + 37));
    for (index_t k = 0; k < 37; ++k) ASSERT_EQ(part[k], at(kBegin + k)) << route;
    assign(rows, flip(slice<0>(matrix, kRow, kRow + 3), 1));
    for (index_t k = 0; k < 3 * kColumns; ++k)
      ASSERT_EQ(rows[k / kColumns][kColumns - 1 - k % kColumns], at(kRow * kColumns + k)) << route;
    assign(rows, take(index, matrix));
    for (index_t k = 0; k < kColumns; ++k) ASSERT_EQ(rows[2][k], at(kRow * kColumns + k)) << route;
  };
  check("eager", [](auto& to, const auto& from) { to = from; });
  for (const CompileOptions& route : Routes()) {
    jit::SetOptions(route);
    check(route.engine == Engine::kInterpreter ? "interpreter" : route.target,
          [](auto& to, const auto& from) { jit(to) = from; });
  }
  jit::SetOptions({});
  munmap(space, static_cast<std::size_t>(kCount));
}

TEST(IndexMapSizes, StepsOfADTypeThatHasThemAreExact) {
  constexpr index_t kFirst = (index_t{1} << 40) + 1;
  for (const CompileOptions& route : Routes()) {
    for (const char* dtype : {"i64", "f64"}) {
      const std::string steps = "steps<" + std::string(dtype) + ">(n + 3, 1)";
      const Function f = Compile(
          graph::ParseText("kernel k(n: i64) -> (y: i64[?]) { y = tcast<i64>(slice(" + steps + ", 0, n, n + 3)) }")[0],
          route);
      index_t y[3] = {};
      umbra_scalar n;
      n.i64 = kFirst;
      f({{}, {runtime::TensorRef::Dense(y, DType::kInt64, {3})}, {n}});
      for (index_t k = 0; k < 3; ++k) EXPECT_EQ(y[k], kFirst + k) << route.target << " " << dtype;
    }
  }
  EXPECT_SAYS("steps takes a dtype between < and >, or nothing: f32",
              graph::ParseText("kernel k(n: i64) -> (y: f32[?]) { y = steps<sum>(n, 1) }"));
  EXPECT_SAYS("steps takes one dtype between < and >, 2 given",
              graph::ParseText("kernel k(n: i64) -> (y: f32[?]) { y = steps<f32, i64>(n, 1) }"));
  EXPECT_NO_THROW(graph::ParseText("kernel k(steps: f32[n], x: f32[n]) -> (y: bool[n]) { y = steps < x }"));
}

// Parts that have no element, which is known or a call tells.
TEST(IndexMapSizes, OfNoElements) {
  for (const CompileOptions& route : Routes())
    for (
        const char* text :
        {"kernel k(a: f32[4, 2], b: f32[4, 0]) -> (y: f32[4, 2]) { y = concat(a * broadcast<0>(reduce_with_axis<maximum>(a, 1)), exp(b) * 2, 1) }",
         "kernel k(a: f32[n, m], b: f32[n, p]) -> (y: f32[n, ?]) { y = concat(a * broadcast<0>(reduce_with_axis<maximum>(a, 1)), exp(b) * 2, 1) }"}) {
      std::vector<float> a = {1, 2, 3, 4, 5, 6, 7, 8}, y(8);
      const Function f = Compile(graph::ParseText(text)[0], route);
      f({{runtime::TensorRef::Dense(a.data(), DType::kFloat32, {4, 2}),
          runtime::TensorRef::Dense(a.data(), DType::kFloat32, {4, 0})},
         {runtime::TensorRef::Dense(y.data(), DType::kFloat32, {4, 2})},
         {}});
      EXPECT_EQ(y, (std::vector<float>{2, 4, 12, 16, 30, 36, 56, 64})) << route.target << "\n" << text;
    }
  const Function f = Compile(graph::ParseText("kernel k(b: i8[3, 0]) -> (y: i8[?, ?]) { y = pad(b, 1, 1) }")[0]);
  std::vector<std::int8_t> y(10, 7);
  f({{runtime::TensorRef::Dense(y.data(), DType::kInt8, {3, 0})},
     {runtime::TensorRef::Dense(y.data(), DType::kInt8, {5, 2})},
     {}});
  EXPECT_EQ(y, std::vector<std::int8_t>(10, 0));
}

}  // namespace
}  // namespace umbra
