// Trains a small network on handwritten digits; every elementwise step, reduction and softmax runs
// in kernels that Umbra generates, matrix products run in BLAS.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <vector>

#include "examples/digits/data.h"
#include "examples/digits/engine.h"
#include "examples/digits/network.h"
#include "umbra/error.h"

namespace digits {

namespace {

// The file's first rows train; the last, which other people wrote, test.
constexpr umbra::index_t kTrainingRows = 1437, kBatch = 32;

struct Options {
  std::string engine = "jit", data = DIGITS_DATA, sources = "digits-kernels";
  int epochs = 60, threads = 1;
  unsigned seed = 1;
  float rate = 0.1f, momentum = 0.9f;
};

// Evaluates by `engine`, and keeps the source of every kernel.
template <typename Engine>
struct Recorded {
  Engine engine;
  SourceFolder* sources;
  template <typename Destination, typename E, int etype>
  void operator()(const char* name, const Destination& dst,
                  const umbra::expr::Exp<E, float, etype>& exp) const {
    sources->Add(name, exp);
    engine(name, dst, exp);
  }
};

void Shuffle(std::mt19937* random, std::vector<umbra::index_t>* rows) {
  for (std::size_t k = rows->size(); k > 1; --k)
    std::swap((*rows)[k - 1], (*rows)[(*random)() % k]);
}

template <typename Engine>
void Run(const Options& options) {
  const Data data = ReadData(options.data);
  const umbra::index_t rows = data.image.shape_[0];
  umbra::Require(rows > kTrainingRows, options.data, ": expected more than ", kTrainingRows,
                 " digits, got ", rows);
  std::vector<umbra::index_t> training(kTrainingRows), test(rows - kTrainingRows);
  std::iota(training.begin(), training.end(), 0);
  std::iota(test.begin(), test.end(), kTrainingRows);
  Matrix image, label, test_image, test_label;
  Gather(data.image, test.data(), rows - kTrainingRows, &test_image);
  Gather(data.label, test.data(), rows - kTrainingRows, &test_label);

  std::printf("digits: %d train, %d test; network 64-128-10; engine %s, seed %u\n",
              static_cast<int>(kTrainingRows), static_cast<int>(rows - kTrainingRows),
              options.engine.c_str(), options.seed);
  SourceFolder sources(options.sources);
  std::mt19937 random(options.seed);
  Network<Recorded<Engine>> network({Engine(), &sources}, &random);
  const auto start = std::chrono::steady_clock::now();
  int correct = 0;
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    Shuffle(&random, &training);
    double loss = 0;
    for (umbra::index_t first = 0; first < kTrainingRows; first += kBatch) {
      const umbra::index_t count = std::min(kBatch, kTrainingRows - first);
      Gather(data.image, training.data() + first, count, &image);
      Gather(data.label, training.data() + first, count, &label);
      loss += network.Train(image, label, options.rate, options.momentum);
    }
    if (epoch == 1 || epoch % 5 == 0 || epoch == options.epochs) {
      correct = network.CountCorrect(test_image, test_label);
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
      std::printf("epoch %3d/%d  loss %.6f  test %.1f %%  %.2f s\n", epoch, options.epochs,
                  loss / kTrainingRows, 100.0 * correct / static_cast<double>(test.size()),
                  time.count());
      std::fflush(stdout);
    }
  }
  std::printf("test accuracy: %.1f %% (%d of %d)\n",
              100.0 * correct / static_cast<double>(test.size()), correct,
              static_cast<int>(test.size()));
  const umbra::CompileStatistics statistics = umbra::GetCompileStatistics();
  std::printf(
      "kernels: %d compiled in %.0f ms, %d from the disk cache\n", statistics.compiled,
      statistics.front_end_ms + statistics.optimise_ms + statistics.codegen_ms + statistics.link_ms,
      statistics.disk_hits);
  std::printf("generated sources: %s (%d files)\n", sources.path().c_str(),
              static_cast<int>(sources.size()));
}

}  // namespace

}  // namespace digits

int main(int argc, char** argv) {
  digits::Options options;
  CLI::App app("Trains a 64-128-10 network on handwritten digits with generated kernels.");
  app.add_option("--engine", options.engine, "Who evaluates the expressions")
      ->check(CLI::IsMember({"eager", "interpreter", "jit", "system"}))
      ->capture_default_str();
  app.add_option("--epochs", options.epochs, "Passes over the training digits")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of initial weights and order")->capture_default_str();
  app.add_option("--threads", options.threads, "At most this many threads; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--rate", options.rate, "Learning rate")->capture_default_str();
  app.add_option("--momentum", options.momentum)->capture_default_str();
  app.add_option("--data", options.data, "The digits")->capture_default_str();
  app.add_option("--sources", options.sources, "Folder for the generated sources")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    digits::ChooseEngine(options.engine, options.threads);
    if (options.engine == "eager")
      digits::Run<digits::Eager>(options);
    else
      digits::Run<digits::Compiled>(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "digits: error: %s\n", error.what());
    return 1;
  }
  return 0;
}
