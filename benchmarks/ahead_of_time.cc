// The same kernels compiled ahead of time by the build's compiler and by the JIT, in one interleaved run on one
// thread: time of the one over time of the other, by kernel and size. The first argument is the folder of
// ahead_of_time.umb, the second how often each is timed.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "ahead_of_time_bench.h"
#include "umbra/call_site.h"
#include "umbra/compile.h"
#include "umbra/error.h"
#include "umbra/graph.h"

namespace {

using umbra::index_t;
using umbra::runtime::TensorRef;

// Operands of one call of a kernel, dense; extents that the call brings are those of `sizes` in turn.
struct Operands {
  Operands(const umbra::runtime::Program& program, const std::vector<index_t>& sizes) {
    std::vector<std::vector<index_t>> shapes;
    std::map<int, index_t> extents;
    const auto allocate = [this](umbra::DType dtype, const std::vector<index_t>& shape) {
      index_t count = 1;
      for (const index_t extent : shape) count *= extent;
      memory.emplace_back(static_cast<std::size_t>(count) * 8 + 64);
      auto* data = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(memory.back().data()) + 63) / 64 * 64);
      for (index_t k = 0; k < count; ++k) {
        const double value = 0.5 + 0.25 * static_cast<double>(k * 7919 % 1024) / 1024;
        if (dtype == umbra::DType::kFloat64) reinterpret_cast<double*>(data)[k] = value;
        else if (dtype == umbra::DType::kFloat16) reinterpret_cast<std::uint16_t*>(data)[k] = static_cast<std::uint16_t>(0x3800 + k % 512);
        else reinterpret_cast<float*>(data)[k] = static_cast<float>(value);
      }
      return TensorRef::Dense(data, dtype, shape);
    };
    for (const auto& buffer : program.buffers) {
      if (buffer.kind != umbra::runtime::Buffer::Kind::kInput) continue;
      std::vector<index_t> shape;
      for (const auto& extent : buffer.shape)
        shape.push_back(extent.is_static() ? extent.value : extents.emplace(extent.symbol, sizes[extents.size() % sizes.size()]).first->second);
      tensors.push_back(allocate(buffer.dtype, shape));
    }
    inputs = tensors.size();
    for (const auto& [name, dtype] : program.scalars) {
      umbra_scalar scalar{};
      if (dtype == umbra::DType::kFloat64) scalar.f64 = 0.75;
      else scalar.f32 = 0.75f;
      scalars.push_back(scalar);
    }
    std::size_t k = inputs;
    for (const auto& shape : umbra::runtime::OutputShapes(program, tensors, scalars)) tensors.push_back(allocate(program.buffers[k++].dtype, shape));
    for (const TensorRef& t : tensors) {
      data.push_back(t.data);
      words.push_back(umbra::runtime::Layout::Kind(static_cast<int>(t.shape.size()), t.dtype));
      words.insert(words.end(), t.shape.begin(), t.shape.end());
      words.insert(words.end(), t.stride.begin(), t.stride.end());
      plain.push_back({t.data, reinterpret_cast<const std::int64_t*>(t.shape.data()), nullptr, static_cast<int>(t.shape.size()), static_cast<int>(t.dtype), 0, nullptr});
    }
    for (const umbra_tensor& t : plain) pointers.push_back(&t);
  }

  std::vector<std::vector<char>> memory;
  std::vector<TensorRef> tensors;
  std::size_t inputs = 0;
  std::vector<umbra_scalar> scalars;
  std::vector<void*> data;
  std::vector<index_t> words;
  std::vector<umbra_tensor> plain;
  std::vector<const umbra_tensor*> pointers;
};

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename Call>
double Time(const Call& call, int calls) {
  const double start = Seconds();
  for (int k = 0; k < calls; ++k) call();
  return (Seconds() - start) / calls;
}

struct Ratio {
  double best, median;
};

// Ahead of time over JIT: of the shortest times, and the median of the pairs'.
template <typename A, typename B>
Ratio Compare(const A& a, const B& b, int rounds) {
  a(), b();
  const int calls = std::max(1, static_cast<int>(2e-4 / Time(b, 3)));
  double best_a = HUGE_VAL, best_b = HUGE_VAL;
  std::vector<double> ratios;
  for (int round = 0; round < rounds; ++round) {
    double time_a, time_b;
    if (round % 2 == 0) time_a = Time(a, calls), time_b = Time(b, calls);
    else time_b = Time(b, calls), time_a = Time(a, calls);
    best_a = std::min(best_a, time_a);
    best_b = std::min(best_b, time_b);
    ratios.push_back(time_a / time_b);
  }
  std::nth_element(ratios.begin(), ratios.begin() + rounds / 2, ratios.end());
  return {best_a / best_b, ratios[static_cast<std::size_t>(rounds / 2)]};
}

int Run(const std::string& path, int rounds) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  std::printf("%-18s %14s %10s %10s\n", "kernel", "size", "best/best", "median");
  double product = 1, worst = 0;
  int count = 0;
  for (const auto& graph : umbra::graph::ParseText(text.str(), path)) {
    umbra::CompileOptions options;
    options.use_disk_cache = false;
    const umbra::Function function = umbra::Compile(graph, options);
    const umbra::runtime::Program& program = function.program();
    const umbra_kernel_desc* kernel = ahead_of_time_bench_kernels;
    while (kernel->name != nullptr && program.name != kernel->name) ++kernel;
    umbra::Require(kernel->name != nullptr, "kernel '", program.name, "' was not compiled ahead of time");
    const std::size_t rank = program.buffers[0].shape.size();
    const std::vector<std::vector<index_t>> all_sizes = {{64, 512}, {512, 1000}, {1024, 4096}};
    for (const auto& sizes : all_sizes) {
      const index_t rows = sizes[0], columns = sizes[1];
      Operands operands(program, rank == 1 ? std::vector{rows * columns} : rank == 3 ? std::vector{index_t{4}, rows / 4, columns} : sizes);
      umbra::runtime::CallSite site(std::shared_ptr<const umbra::runtime::Program>(&program, [](const auto*) {}));
      const auto jit = [&] {
        site.Run(operands.data.data(), {operands.words.data(), operands.words.size()}, operands.scalars.data(), 1);
      };
      const auto built = [&] {
        umbra::Require(umbra_call(kernel, operands.pointers.data(), operands.scalars.data(), 1) == UMBRA_OK, umbra_error_message());
      };
      const Ratio ratio = Compare(built, jit, rounds);
      std::printf("%-18s %6lld x %5lld %10.3f %10.3f\n", kernel->name, static_cast<long long>(sizes[0]), static_cast<long long>(sizes[1]), ratio.best, ratio.median);
      std::fflush(stdout);
      product *= ratio.best;
      worst = std::max(worst, ratio.best);
      ++count;
    }
  }
  std::printf("geometric mean %.3f, slowest %.3f, target %s\n", std::pow(product, 1.0 / count), worst, umbra_kernel_target(ahead_of_time_bench_kernels));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(std::string(argc > 1 ? argv[1] : ".") + "/ahead_of_time.umb", argc > 2 ? std::atoi(argv[2]) : 31);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ahead_of_time_bench: %s\n", error.what());
    return 1;
  }
}
