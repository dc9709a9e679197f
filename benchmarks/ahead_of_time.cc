// The same kernels compiled ahead of time, to objects by Umbra's tool and from sources by the build's compiler, and by
// the JIT, in one interleaved run on one thread: time of each over time of the JIT, by kernel and size, as a table in
// Markdown. The first argument is the folder of ahead_of_time.umb, the second how often each is timed.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <sstream>
#include <vector>

#include "as_objects.h"
#include "as_sources.h"
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
        else if (dtype == umbra::DType::kFloat16)
          reinterpret_cast<std::uint16_t*>(data)[k] = static_cast<std::uint16_t>(0x3800 + k % 512);
        else reinterpret_cast<float*>(data)[k] = static_cast<float>(value);
      }
      return TensorRef::Dense(data, dtype, shape);
    };
    for (const auto& buffer : program.buffers) {
      if (buffer.kind != umbra::runtime::Buffer::Kind::kInput) continue;
      std::vector<index_t> shape;
      for (const auto& extent : buffer.shape)
        shape.push_back(extent.is_static()
                            ? extent.value
                            : extents.emplace(extent.symbol, sizes[extents.size() % sizes.size()]).first->second);
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
    for (const auto& shape : umbra::runtime::OutputShapes(program, tensors, scalars))
      tensors.push_back(allocate(program.buffers[k++].dtype, shape));
    for (const TensorRef& t : tensors) {
      plain.push_back({t.data, reinterpret_cast<const std::int64_t*>(t.shape.data()), nullptr,
                       static_cast<int>(t.shape.size()), static_cast<int>(t.dtype), 0, nullptr});
    }
    for (const umbra_tensor& t : plain) pointers.push_back(&t);
    const auto outputs = tensors.begin() + static_cast<std::ptrdiff_t>(inputs);
    arguments = {{tensors.begin(), outputs}, {outputs, tensors.end()}, scalars};
  }

  std::vector<std::vector<char>> memory;
  std::vector<TensorRef> tensors;
  std::size_t inputs = 0;
  std::vector<umbra_scalar> scalars;
  umbra::runtime::Arguments arguments;
  std::vector<umbra_tensor> plain;
  std::vector<const umbra_tensor*> pointers;
};

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <typename Call>
double Time(const Call& call, int calls) {
  const double start = Seconds();
  for (int k = 0; k < calls; ++k) call();
  return (Seconds() - start) / calls;
}

// One way to run a kernel, and how long it took.
struct Way {
  std::function<void()> call;
  std::vector<double> times;
};

// Times the ways in turns, each round beginning with another.
void TimeInTurns(std::vector<Way>* ways, int rounds) {
  for (Way& way : *ways) way.call();
  const int calls = std::max(1, static_cast<int>(2e-4 / Time(ways->back().call, 3)));
  for (int round = 0; round < rounds; ++round)
    for (std::size_t k = 0; k < ways->size(); ++k) {
      Way& way = (*ways)[(k + static_cast<std::size_t>(round)) % ways->size()];
      way.times.push_back(Time(way.call, calls));
    }
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Of the shortest times, and the median of the pairs'.
struct Ratio {
  Ratio(const Way& a, const Way& b)
      : best(*std::min_element(a.times.begin(), a.times.end()) / *std::min_element(b.times.begin(), b.times.end())) {
    std::vector<double> pairs;
    for (std::size_t k = 0; k < a.times.size(); ++k) pairs.push_back(a.times[k] / b.times[k]);
    median = Median(std::move(pairs));
  }
  double best, median;
};

const umbra_kernel_desc* Find(const umbra_kernel_desc* kernel, const std::string& name) {
  while (kernel->name != nullptr && name != kernel->name) ++kernel;
  umbra::Require(kernel->name != nullptr, "kernel '", name, "' was not compiled ahead of time");
  return kernel;
}

int Run(const std::string& path, int rounds) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const umbra_kernel_desc* const libraries[] = {as_objects_kernels, as_sources_kernels};
  constexpr std::size_t kLibraries = std::size(libraries);
  std::printf(
      "| kernel | size | objects / jit, best | objects / jit, median | sources / jit, best | sources / jit, median |\n|---|---|---|---|---|---|\n");
  std::vector<double> best[kLibraries], median[kLibraries];
  for (const auto& graph : umbra::graph::ParseText(text.str(), path)) {
    umbra::CompileOptions options;
    options.use_disk_cache = false;
    options.target = umbra_kernel_target(as_objects_kernels);
    const umbra::Function function = umbra::Compile(graph, options);
    const umbra::runtime::Program& program = function.program();
    const std::size_t rank = program.buffers[0].shape.size();
    const std::vector<std::vector<index_t>> all_sizes = {{64, 512}, {512, 1000}, {1024, 4096}};
    for (const auto& sizes : all_sizes) {
      const index_t rows = sizes[0], columns = sizes[1];
      Operands operands(program, rank == 1   ? std::vector{rows * columns}
                                 : rank == 3 ? std::vector{index_t{4}, rows / 4, columns}
                                             : sizes);
      std::vector<Way> ways;
      for (const umbra_kernel_desc* library : libraries)
        ways.push_back({[&operands, kernel = Find(library, program.name)] {
                          if (umbra_call(kernel, operands.pointers.data(), operands.scalars.data(), 1) != UMBRA_OK)
                            throw umbra::Error(umbra_error_message());
                        },
                        {}});
      ways.push_back({[&] { function(operands.arguments, {1}); }, {}});
      TimeInTurns(&ways, rounds);
      std::printf("| %s | %lldx%lld |", program.name.c_str(), static_cast<long long>(sizes[0]),
                  static_cast<long long>(sizes[1]));
      for (std::size_t k = 0; k < kLibraries; ++k) {
        const Ratio ratio(ways[k], ways.back());
        std::printf(" %.3f | %.3f |", ratio.best, ratio.median);
        best[k].push_back(ratio.best);
        median[k].push_back(ratio.median);
      }
      std::printf("\n");
      std::fflush(stdout);
    }
  }
  const auto line = [&](const char* name, const auto& of) {
    std::printf("| %s | |", name);
    for (std::size_t k = 0; k < kLibraries; ++k) std::printf(" %.3f | %.3f |", of(best[k]), of(median[k]));
    std::printf("\n");
  };
  line("geometric mean", [](const std::vector<double>& ratios) {
    double logarithms = 0;
    for (const double ratio : ratios) logarithms += std::log(ratio);
    return std::exp(logarithms / static_cast<double>(ratios.size()));
  });
  line("slowest", [](const std::vector<double>& ratios) { return *std::max_element(ratios.begin(), ratios.end()); });
  std::printf("\nFor %s; best: shortest time over shortest time, median: of the pairs of one round.\n",
              umbra_kernel_target(as_objects_kernels));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(std::string(argc > 1 ? argv[1] : ".") + "/ahead_of_time.umb", argc > 2 ? std::atoi(argv[2]) : 201);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ahead_of_time_bench: %s\n", error.what());
    return 1;
  }
}
