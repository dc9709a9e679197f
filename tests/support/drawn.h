// Graphs and operands drawn at random, and comparisons of results.
#ifndef UMBRA_TESTS_SUPPORT_DRAWN_H_
#define UMBRA_TESTS_SUPPORT_DRAWN_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "umbra/function.h"
#include "umbra/graph.h"

namespace umbra::drawn {

using graph::Value;
using runtime::TensorRef;

// A tensor with some slack between rows and around it, so that a write outside is seen.
struct Tensor {
  DType dtype;
  std::vector<char> bytes;
  TensorRef ref;

  Tensor(DType type, std::vector<index_t> shape, index_t padding, std::mt19937* random) : dtype(type) {
    std::vector<index_t> memory = shape;
    if (!memory.empty()) memory.back() += padding;
    index_t count = 1;
    for (index_t extent : memory) count *= extent;
    constexpr index_t kGuard = 16;
    bytes.assign(static_cast<std::size_t>(count + 2 * kGuard) * SizeOf(type) + 64, 0x5a);
    auto base = reinterpret_cast<std::uintptr_t>(bytes.data());
    base = (base + 63) / 64 * 64 + static_cast<std::size_t>(kGuard) * SizeOf(type);
    ref = TensorRef::Dense(reinterpret_cast<void*>(base), type, memory);
    ref.shape = std::move(shape);
    if (random != nullptr) Fill(count, random);
  }
  Tensor(const Tensor&) = delete;

  void Fill(index_t count, std::mt19937* random) {
    std::uniform_real_distribution<double> draw(-3, 3);
    SwitchDType(dtype, [&](auto tag) {
      using T = decltype(tag);
      auto* p = static_cast<T*>(ref.data);
      for (index_t i = 0; i < count; ++i) {
        const double drawn = dtype == DType::kInt32 ? std::floor(draw(*random) * 5) : draw(*random);
        if constexpr (std::is_integral_v<T>) p[i] = static_cast<T>(static_cast<index_t>(drawn));  // unsigned ones wrap
        else p[i] = static_cast<T>(drawn);
      }
    });
  }

  double At(const std::vector<index_t>& index) const {
    index_t offset = 0;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * ref.stride[d];
    return SwitchDType(
        dtype, [&](auto tag) { return static_cast<double>(static_cast<const decltype(tag)*>(ref.data)[offset]); });
  }
};

template <typename Body>
void ForEachIndex(const std::vector<index_t>& shape, const Body& body) {
  std::vector<index_t> index(shape.size(), 0);
  for (index_t extent : shape)
    if (extent == 0) return;
  while (true) {
    body(index);
    std::size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

// Draws an expression over x, y (full shape), row (one value a row), column (a vector of columns).
class Drawer {
 public:
  Drawer(std::mt19937* random, DType dtype, std::vector<Value> leaves, int rank)
      : random_(*random),
        dtype_(dtype),
        leaves_(std::move(leaves)),
        rank_(rank) {}

  Value Draw(int depth) {
    if (depth == 0 || Pick(6) == 0) {
      if (Pick(5) == 0) return Value(Pick(2) ? 1.5 - (dtype_ == DType::kInt32 ? 0.5 : 0) : 2.0) * leaves_[0];
      return leaves_[static_cast<std::size_t>(Pick(static_cast<int>(leaves_.size())))];
    }
    const bool is_float = dtype_ != DType::kInt32;
    switch (Pick(is_float ? 10 : 7)) {
      case 0: return Draw(depth - 1) + Draw(depth - 1);
      case 1: return Draw(depth - 1) - Draw(depth - 1);
      case 2: return Draw(depth - 1) * Draw(depth - 1);
      case 3: return graph::Apply("maximum", {Draw(depth - 1), Draw(depth - 1)});
      case 4: return graph::Apply("select", {Draw(depth - 1) > Draw(depth - 1), Draw(depth - 1), Draw(depth - 1)});
      case 5: return is_float ? graph::Apply("abs", {Draw(depth - 1)}) : Draw(depth - 1) / Draw(depth - 1);
      case 6: {
        static constexpr const char* kScans[] = {"scan<maximum>", "scan<minimum>"};
        return graph::IndexMap(kScans[Pick(2)], {Draw(depth - 1)}, {Value(Pick(rank_))});
      }
      case 7: {
        static constexpr const char* kOps[] = {"sigmoid", "tanh", "floor", "rint", "relu", "square"};
        return graph::Apply(kOps[Pick(6)], {Draw(depth - 1)});
      }
      case 8: {
        // Row fusion: a reduction over the last axis, back over the row.
        if (rank_ < 2) return graph::Apply("negative", {Draw(depth - 1)});
        const Value value = Draw(depth - 1);
        static constexpr const char* kReducers[] = {"maximum", "minimum"};
        return value - graph::Broadcast(0, graph::Reduce(kReducers[Pick(2)], value, {rank_ - 1}), value);
      }
      default: return graph::Apply("exp", {graph::Apply("minimum", {Draw(depth - 1), Value(1.0)})});
    }
  }

  int Pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

 private:
  std::mt19937& random_;
  DType dtype_;
  std::vector<Value> leaves_;
  int rank_;
};

// A graph over x, y (full shape), column (a vector of columns) and the scalar s, dynamic in all extents.
inline std::shared_ptr<const graph::Graph> DrawGraph(std::mt19937* random, DType dtype, int rank) {
  graph::Builder builder("drawn");
  const Value x = builder.Input("x", dtype, PartialShape::dynamic(rank));
  const Value y = builder.Input("y", dtype, PartialShape::dynamic(rank));
  const Value column = builder.Input("column", dtype, PartialShape::dynamic(1));
  const Value s = builder.Scalar("s", dtype);
  Drawer drawer(random, dtype, {x, y, graph::Broadcast(rank - 1, column, x), x * s}, rank);
  const Value value = drawer.Draw(3);
  // Anchors every operand in the graph.
  builder.Output("z", value + x * 0.0 + y * 0.0 + graph::Broadcast(rank - 1, column, x) * 0.0 + (x * 0.0) * s);
  return builder.Build();
}

// Is the result what was meant? Comparisons of nearly equal values may go either way, so a few
// elements may differ where the expression has a jump; sums differ by their order.
inline void ExpectSame(const Tensor& expected, const Tensor& got, double tolerance, const std::string& what) {
  index_t bad = 0, count = 0;
  std::string first;
  ForEachIndex(expected.ref.shape, [&](const std::vector<index_t>& index) {
    const double e = expected.At(index), g = got.At(index);
    ++count;
    if (e == g || (std::isnan(e) && std::isnan(g))) return;
    if (std::fabs(e - g) <= tolerance * (1 + std::fabs(e))) return;
    if (bad++ == 0) first = "expected " + std::to_string(e) + ", got " + std::to_string(g);
  });
  EXPECT_LE(bad, count / 50) << what << ": " << bad << " of " << count << " differ; " << first;
}

inline bool SameBits(const Tensor& a, const Tensor& b) {
  bool same = true;
  ForEachIndex(a.ref.shape, [&](const std::vector<index_t>& index) {
    const double x = a.At(index), y = b.At(index);
    same = same && (std::memcmp(&x, &y, sizeof x) == 0 || (std::isnan(x) && std::isnan(y)));
  });
  return same;
}

}  // namespace umbra::drawn

#endif  // UMBRA_TESTS_SUPPORT_DRAWN_H_
