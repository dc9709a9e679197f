// digits: trains a small network on real handwritten digits, eagerly or through fused kernels.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "compiler/driver/lower.h"
#include "compiler/driver/target.h"
#include "examples/digits/network.h"
#include "runtime/blas.h"
#include "umbra/jit.h"

namespace digits {
namespace {

struct Options {
  std::string engine = "jit", sources = "digits-kernels";
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
  explicit Compiled(std::filesystem::path folder) : folder_(std::move(folder)) {
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
    umbra::codegen::SourceOptions options;
    options.target = umbra::HostTarget();
    const std::filesystem::path path = folder_ / (name + ".cc");
    std::ofstream file(path);
    file << umbra::codegen::Generate(umbra::Lower(graph), options).text;
    umbra::Require(file.flush().good(), "cannot write ", path.string());
  }

  std::filesystem::path folder_;
  std::set<std::string> written_;
};

/// Copies the rows of `from` that `order` names.
void Gather(const Matrix& from, const int* order, const MatrixView& to) {
  for (index_t row = 0; row < to.size(0); ++row)
    umbra::Copy<1, float>(to[row], from[order[row]]);
}

int CountCorrect(const Data& data, const Matrix& probabilities) {
  int correct = 0;
  for (index_t row = 0; row < probabilities.size(0); ++row) {
    const float* p = probabilities[row].dptr_;
    const auto best = std::max_element(p, p + kClasses) - p;
    correct += best == data.labels[static_cast<std::size_t>(kTrainRows + row)];
  }
  return correct;
}

template <typename Assign>
void Train(const Options& options, Assign assign) {
  const Data data(DIGITS_DATA);
  std::mt19937 random(options.seed);
  Network<Assign> network(std::move(assign), &random);
  Matrix pixels(Shape2(kBatch, kPixels)), onehot(Shape2(kBatch, kClasses));
  Activations full(kBatch), last(kTrainRows % kBatch);
  std::vector<int> order(kTrainRows);
  std::iota(order.begin(), order.end(), 0);

  const auto start = std::chrono::steady_clock::now();
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    double loss = 0;
    for (int begin = 0; begin < kTrainRows; begin += kBatch) {
      const int rows = std::min(kBatch, kTrainRows - begin);
      const MatrixView x = pixels.Slice(0, rows), classes = onehot.Slice(0, rows);
      Gather(data.pixels, &order[static_cast<std::size_t>(begin)], x);
      Gather(data.onehot, &order[static_cast<std::size_t>(begin)], classes);
      Activations* a = rows == kBatch ? &full : &last;
      network.Forward(x, a);
      loss += network.Loss(classes, a);
      network.Learn(x, classes, a);
    }
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (epoch % 5 == 0 || epoch == 1 || epoch == options.epochs) {
      fmt::print("epoch {:2}  loss {:.6f}  {:.2f} s since the start\n", epoch, loss / kTrainRows, time.count());
      std::fflush(stdout);
    }
  }

  const index_t rows = data.pixels.size(0);
  Activations test(rows - kTrainRows);
  network.Forward(data.pixels.Slice(kTrainRows, rows), &test);
  const int correct = CountCorrect(data, test.probabilities);
  fmt::print("test accuracy: {:.1f} % ({} of {})\n",
             100.0 * correct / static_cast<double>(rows - kTrainRows), correct, rows - kTrainRows);
}

void Run(const Options& options) {
  umbra::runtime::CallSite::SetThreads(options.threads);
  const umbra::runtime::BlasThreads blas_threads(options.threads);
  if (options.engine == "eager") return Train(options, Eager());

  umbra::CompileOptions compile;
  compile.engine = options.engine == "jit"      ? umbra::Engine::kJit
                   : options.engine == "system" ? umbra::Engine::kSystem
                                                : umbra::Engine::kInterpreter;
  umbra::jit::SetOptions(compile);
  Train(options, Compiled(options.sources));
  const umbra::CompileStatistics statistics = umbra::GetCompileStatistics();
  fmt::print("kernels: {} compiled, {} from the cache on disk\n", statistics.compiled,
             statistics.disk_hits);
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
  app.add_option("--epochs", options.epochs, "Passes over the training rows")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Seed of the weights and of the shuffles")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads to use; 0: as many as the machine has")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--sources", options.sources, "Folder for the generated sources")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    digits::Run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "digits: error: {}\n", error.what());
    return 1;
  }
}
