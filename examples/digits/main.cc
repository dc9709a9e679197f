// digits: trains a small network on real handwritten digits, eagerly or through fused kernels.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <set>

#include "compiler/codegen/cuda/dense.h"
#include "compiler/codegen/cuda/generate.h"
#include "compiler/driver/lower.h"
#include "compiler/driver/target.h"
#include "examples/digits/network.h"
#include "runtime/blas.h"
#include "umbra/jit.h"

namespace digits {
namespace {

struct Options {
  std::string device = "cpu", engine = "jit", sources = "digits-kernels";
  int epochs = 60, threads = 0;
  unsigned seed = 1;
};

/// dst = exp, element by element as the C++ compiler of this program sees it.
struct Eager {
  template <int dim, typename E>
  void operator()(umbra::Tensor<cpu, dim> dst, const E& exp) const {
    dst = exp;
  }
  template <int dim, typename E>
  void operator()(const std::string&, umbra::Tensor<cpu, dim> dst, const E& exp) const {
    dst = exp;
  }
};

/// jit(dst) = exp; the source of each named step goes to a file once.
class Compiled {
 public:
  Compiled(std::filesystem::path folder, bool cuda) : folder_(std::move(folder)), cuda_(cuda) {
    std::filesystem::create_directories(folder_);
  }
  template <typename Dst, typename E>
  void operator()(const Dst& dst, const E& exp) const {
    umbra::jit(dst) = exp;
  }
  template <typename Dst, typename E>
  void operator()(const std::string& name, const Dst& dst, const E& exp) {
    if (written_.insert(name).second) Write(name, *umbra::MakeGraph(exp, name));
    umbra::jit(dst) = exp;
  }

 private:
  void Write(const std::string& name, const umbra::graph::Graph& graph) const {
    const umbra::plan::Plan plan = umbra::Lower(graph);
    const std::filesystem::path path = folder_ / (name + (cuda_ ? ".cu" : ".cc"));
    std::ofstream file(path);
    if (cuda_) {
      for (const auto& step : plan.steps)
        if (const auto* kernel = std::get_if<umbra::plan::Kernel>(&step))
          file << umbra::codegen::GenerateCuda(plan, *kernel, umbra::codegen::TypicalCudaVariant(plan, *kernel)).kernel;
    } else {
      umbra::codegen::SourceOptions options;
      options.target = umbra::HostTarget();
      file << umbra::codegen::Generate(plan, options).text;
    }
    umbra::Require(file.flush().good(), "cannot write ", path.string());
  }

  std::filesystem::path folder_;
  bool cuda_;
  std::set<std::string> written_;
};

int CountCorrect(const Data& data, const Matrix& probabilities) {
  int correct = 0;
  for (index_t row = 0; row < probabilities.size(0); ++row) {
    const float* p = probabilities[row].dptr_;
    const auto best = std::max_element(p, p + kClasses) - p;
    correct += best == data.labels[static_cast<std::size_t>(kTrainRows + row)];
  }
  return correct;
}

template <typename Device, typename Assign>
void Train(const Options& options, Assign assign) {
  const Data data(DIGITS_DATA);
  std::mt19937 random(options.seed);
  umbra::Stream<Device> stream;
  Container<Device> all_pixels(data.pixels.shape_, &stream), all_onehot(data.onehot.shape_, &stream);
  umbra::Copy<2, float>(all_pixels, data.pixels);
  umbra::Copy<2, float>(all_onehot, data.onehot);
  Network<Device, Assign> network(assign, &random, &stream);
  Container<Device> pixels(Shape2(kBatch, kPixels), &stream), onehot(Shape2(kBatch, kClasses), &stream);
  Activations<Device> full(kBatch, &stream), last(kTrainRows % kBatch, &stream);
  Container<Device, 1> order(Shape1(kTrainRows), &stream), losses(Shape1(kTrainRows), &stream);
  umbra::TensorContainer<cpu, 1> shuffled(Shape1(kTrainRows)), computed(Shape1(kTrainRows));
  std::iota(shuffled.dptr_, shuffled.dptr_ + kTrainRows, 0.0f);

  const auto start = std::chrono::steady_clock::now();
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    std::shuffle(shuffled.dptr_, shuffled.dptr_ + kTrainRows, random);
    umbra::Copy<1, float>(order, shuffled, &stream);
    for (int begin = 0; begin < kTrainRows; begin += kBatch) {
      const int rows = std::min(kBatch, kTrainRows - begin);
      const View<Device> x = pixels.Slice(0, rows), classes = onehot.Slice(0, rows);
      const View<Device, 1> chosen = order.Slice(begin, begin + rows);
      assign(x, umbra::expr::take(chosen, all_pixels));
      assign(classes, umbra::expr::take(chosen, all_onehot));
      Activations<Device>* a = rows == kBatch ? &full : &last;
      network.Forward(x, a);
      network.Loss(classes, a, losses.Slice(begin, begin + rows));
      network.Learn(x, classes, a);
    }
    umbra::Copy<1, float>(computed, losses, &stream);  // the only thing in an epoch that waits
    const double loss = std::accumulate(computed.dptr_, computed.dptr_ + kTrainRows, 0.0);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (epoch % 5 == 0 || epoch == 1 || epoch == options.epochs) {
      fmt::print("epoch {:2}  loss {:.6f}  {:.2f} s since the start\n", epoch, loss / kTrainRows, time.count());
      std::fflush(stdout);
    }
  }

  const index_t rows = data.pixels.size(0);
  Activations<Device> test(rows - kTrainRows, &stream);
  network.Forward(all_pixels.Slice(kTrainRows, rows), &test);
  Matrix probabilities(test.probabilities.shape_);
  umbra::Copy<2, float>(probabilities, test.probabilities, &stream);
  const int correct = CountCorrect(data, probabilities);
  fmt::print("test accuracy: {:.1f} % ({} of {})\n", 100.0 * correct / static_cast<double>(rows - kTrainRows), correct,
             rows - kTrainRows);
}

void Run(const Options& options) {
  umbra::runtime::CallSite::SetThreads(options.threads);
  const umbra::runtime::BlasThreads blas_threads(options.threads);
  const bool on_gpu = options.device == "gpu";
  umbra::Require(!on_gpu || options.engine == "jit",
                 "on a GPU there is --engine jit only: its kernels are compiled by NVRTC");
  if (options.engine == "eager") return Train<cpu>(options, Eager());

  umbra::CompileOptions compile;
  compile.engine = options.engine == "jit"      ? umbra::Engine::kJit
                   : options.engine == "system" ? umbra::Engine::kSystem
                                                : umbra::Engine::kInterpreter;
  umbra::jit::SetOptions(compile);
  if (on_gpu) Train<umbra::gpu>(options, Compiled(options.sources, true));
  else Train<cpu>(options, Compiled(options.sources, false));
  const umbra::CompileStatistics statistics = umbra::GetCompileStatistics();
  fmt::print("kernels: {} compiled, {} from the cache on disk\n", statistics.compiled, statistics.disk_hits);
  fmt::print("sources of the kernels: {}\n", options.sources);
}

}  // namespace
}  // namespace digits

int main(int argc, char** argv) {
  digits::Options options;
  CLI::App app("Trains a 64-128-10 network on 1,437 handwritten digits and tests it on 360 others.");
  app.add_option("--engine", options.engine, "How expressions are evaluated")
      ->check(CLI::IsMember({"eager", "interpreter", "jit", "system"}))
      ->capture_default_str();
  app.add_option("--device", options.device, "Where the network is trained")
      ->check(CLI::IsMember({"cpu", "gpu"}))
      ->capture_default_str();
  app.add_option("--epochs", options.epochs, "Passes over the training rows")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Seed of the weights and of the shuffles")->capture_default_str();
  app.add_option("--threads", options.threads, "Threads to use; 0: as many as the machine has")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()))
      ->capture_default_str();
  app.add_option("--sources", options.sources, "Folder for the generated sources")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    digits::Run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "digits: error: {}\n", error.what());
    return 1;
  }
}
