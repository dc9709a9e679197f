// Trains a 64-128-10 network on handwritten digits. Every elementwise step, reduction and softmax
// is an expression, written once; --engine says who runs it: the header-only evaluation (eager),
// the plan interpreter, or kernels that Clang (jit) or the system's compiler (system) made of it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "compiler/codegen/source.h"
#include "compiler/driver/lower.h"
#include "compiler/driver/target.h"
#include "examples/digits/data.h"
#include "umbra/jit.h"

namespace digits {

using namespace umbra;
using Matrix = Tensor<cpu, 2>;
using Vector = Tensor<cpu, 1>;

// The gradient passes where the activation was positive.
UMBRA_OP(relu_gradient, (h, g), select(h > 0, g, 0))

constexpr int kInputs = 64, kHidden = 128, kClasses = 10, kBatch = 32;

// dst = exp, evaluated at once.
struct Eager {
  template <int dim, typename E>
  void operator()(Tensor<cpu, dim> dst, const E& exp) const {
    dst = exp;
  }
};

// dst = exp, by a compiled kernel. The first time a step is seen, its source is left in a folder.
class Compiled {
 public:
  explicit Compiled(std::string folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
  }
  template <int dim, typename E>
  void operator()(Tensor<cpu, dim> dst, const E& exp) const {
    jit(dst) = exp;
  }

  template <typename E>
  void Keep(const char* name, const E& exp) const {
    const plan::Plan plan = Lower(*MakeGraph(exp, name));
    std::ofstream(folder_ + "/" + name + ".cc")
        << codegen::Generate(plan, {HostTarget(), codegen::Spelling::kPackets, {}}).text;
  }

 private:
  std::string folder_;
};

struct Layer {
  TensorContainer<cpu, 2> w, w_gradient, w_momentum;
  TensorContainer<cpu, 1> b, b_gradient, b_momentum;
  Layer(int inputs, int outputs, std::mt19937* random)
      : w(Shape2(inputs, outputs)),
        w_gradient(Shape2(inputs, outputs)),
        w_momentum(Shape2(inputs, outputs), 0.0f),
        b(Shape1(outputs), 0.0f),
        b_gradient(Shape1(outputs)),
        b_momentum(Shape1(outputs), 0.0f) {
    std::normal_distribution<float> draw(0, std::sqrt(2.0f / static_cast<float>(inputs)));
    for (int i = 0; i < inputs; ++i)
      for (int j = 0; j < outputs; ++j) w[i][j] = draw(*random);
  }
};

class Network {
 public:
  explicit Network(std::mt19937* random)
      : first(kInputs, kHidden, random),
        second(kHidden, kClasses, random),
        hidden_(Shape2(kBatch, kHidden)),
        hidden_gradient_(Shape2(kBatch, kHidden)),
        logits_(Shape2(kBatch, kClasses)),
        shifted_(Shape2(kBatch, kClasses)),
        probabilities_(Shape2(kBatch, kClasses)),
        gradient_(Shape2(kBatch, kClasses)),
        losses_(Shape1(kBatch)) {}

  // Class scores of up to kBatch images.
  template <typename Assign>
  Matrix Forward(const Assign& assign, Matrix x) {
    const index_t n = x.size(0);
    Matrix hidden = hidden_.Slice(0, n), logits = logits_.Slice(0, n);
    assign(hidden, dot(x, first.w));
    assign(hidden, F<op::relu>(hidden + broadcast<1>(first.b, hidden.shape_)));
    assign(logits, dot(hidden, second.w));
    assign(logits, logits + broadcast<1>(second.b, logits.shape_));
    return logits;
  }

  // One step of gradient descent with momentum; returns the mean loss before it.
  template <typename Assign>
  float Train(const Assign& assign, Matrix x, Matrix one_hot, float rate, float momentum) {
    const index_t n = x.size(0);
    const float inverse = 1.0f / static_cast<float>(n);
    Matrix logits = Forward(assign, x), hidden = hidden_.Slice(0, n),
           shifted = shifted_.Slice(0, n), probabilities = probabilities_.Slice(0, n),
           gradient = gradient_.Slice(0, n), hidden_gradient = hidden_gradient_.Slice(0, n);
    Vector losses = losses_.Slice(0, n);

    assign(shifted,
           logits - broadcast<0>(reduce_with_axis<red::maximum>(logits, 1), logits.shape_));
    assign(probabilities,
           F<op::exp>(shifted) /
               broadcast<0>(reduce_with_axis<red::sum>(F<op::exp>(shifted), 1), shifted.shape_));
    assign(losses, reduce_with_axis<red::sum>(one_hot * F<op::log>(probabilities), 1) * -1.0f);
    assign(gradient, (probabilities - one_hot) * inverse);

    assign(second.w_gradient, dot(hidden.T(), gradient));
    assign(second.b_gradient, sum_rows(gradient));
    assign(hidden_gradient, dot(gradient, second.w.T()));
    // The destination is one of the operands, at the same point.
    assign(hidden_gradient, F<relu_gradient>(hidden, hidden_gradient));
    assign(first.w_gradient, dot(x.T(), hidden_gradient));
    assign(first.b_gradient, sum_rows(hidden_gradient));
    for (Layer* layer : {&first, &second}) {
      Step(assign, layer->w, layer->w_gradient, layer->w_momentum, rate, momentum);
      Step(assign, layer->b, layer->b_gradient, layer->b_momentum, rate, momentum);
    }
    float loss = 0;
    for (index_t k = 0; k < n; ++k) loss += losses[k];
    return loss * inverse;
  }

  // Leaves the source of each step in the folder of `compiled`.
  void KeepSources(const Compiled& compiled) {
    Matrix x = logits_, h = hidden_;
    compiled.Keep("relu_bias", F<op::relu>(h + broadcast<1>(first.b, h.shape_)));
    compiled.Keep("bias", x + broadcast<1>(second.b, x.shape_));
    compiled.Keep("shift", x - broadcast<0>(reduce_with_axis<red::maximum>(x, 1), x.shape_));
    compiled.Keep(
        "softmax",
        F<op::exp>(x) / broadcast<0>(reduce_with_axis<red::sum>(F<op::exp>(x), 1), x.shape_));
    compiled.Keep("loss", reduce_with_axis<red::sum>(gradient_ * F<op::log>(x), 1) * -1.0f);
    compiled.Keep("gradient", (x - gradient_) * 0.5f);
    compiled.Keep("bias_gradient", sum_rows(x));
    compiled.Keep("relu_gradient", F<relu_gradient>(h, hidden_gradient_));
    compiled.Keep("momentum", first.w_momentum * 0.9f - first.w_gradient * 0.1f);
    compiled.Keep("update", first.w + first.w_momentum);
  }

 private:
  template <typename Assign, int dim>
  static void Step(const Assign& assign, Tensor<cpu, dim> w, Tensor<cpu, dim> gradient,
                   Tensor<cpu, dim> velocity, float rate, float momentum) {
    assign(velocity, velocity * momentum - gradient * rate);
    assign(w, w + velocity);
  }

  Layer first, second;
  TensorContainer<cpu, 2> hidden_, hidden_gradient_, logits_, shifted_, probabilities_, gradient_;
  TensorContainer<cpu, 1> losses_;
};

struct Settings {
  std::string engine = "jit", sources = "digits-kernels", data = DIGITS_DATA;
  int epochs = 60, threads = 0;
  unsigned seed = 1;
};

template <typename Assign>
void TrainAll(const Assign& assign, Network* network, const Images& images,
              const Settings& settings, std::mt19937* random) {
  constexpr int kTrain = 1437;
  const int test = images.count() - kTrain;
  std::vector<int> order(kTrain);
  std::iota(order.begin(), order.end(), 0);
  TensorContainer<cpu, 2> x(Shape2(kBatch, kInputs)), one_hot(Shape2(kBatch, kClasses));
  const auto load = [&](Matrix rows, Matrix targets, auto image_of) {
    targets = 0.0f;
    for (index_t k = 0; k < rows.size(0); ++k) {
      const int image = image_of(k);
      for (int p = 0; p < kInputs; ++p)
        rows[k][p] = images.pixels[static_cast<std::size_t>(image * kInputs + p)];
      targets[k][images.classes[static_cast<std::size_t>(image)]] = 1;
    }
  };
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (int epoch = 1; epoch <= settings.epochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), *random);
    double loss = 0;
    for (int first = 0; first < kTrain; first += kBatch) {
      const int n = std::min(kBatch, kTrain - first);
      Matrix rows = x.Slice(0, n), targets = one_hot.Slice(0, n);
      load(rows, targets, [&](index_t k) { return order[static_cast<std::size_t>(first + k)]; });
      loss += static_cast<double>(network->Train(assign, rows, targets, 0.1f, 0.9f)) * n;
    }
    if (epoch == 1 || epoch % 5 == 0 || epoch == settings.epochs)
      fmt::print("epoch {:3}  loss {:.6f}  {:.2f} s\n", epoch, loss / kTrain, seconds());
  }
  int right = 0;
  for (int first = 0; first < test; first += kBatch) {
    const int n = std::min(kBatch, test - first);
    Matrix rows = x.Slice(0, n), targets = one_hot.Slice(0, n);
    load(rows, targets, [&](index_t k) { return kTrain + first + static_cast<int>(k); });
    const Matrix scores = network->Forward(assign, rows);
    for (int k = 0; k < n; ++k) {
      int best = 0;
      for (int c = 1; c < kClasses; ++c)
        if (scores[k][c] > scores[k][best]) best = c;
      right += best == images.classes[static_cast<std::size_t>(kTrain + first + k)];
    }
  }
  fmt::print("test accuracy: {:.1f} % ({} of {})\n", 100.0 * right / test, right, test);
}

void Main(const Settings& settings) {
  const Images images = Load(settings.data);
  fmt::print("{} images; network {}-{}-{}; engine {}\n", images.count(), kInputs, kHidden, kClasses,
             settings.engine);
  std::mt19937 random(settings.seed);
  Network network(&random);
  runtime::CallSite::SetThreads(settings.threads);
  if (settings.engine == "eager") {
    TrainAll(Eager(), &network, images, settings, &random);
    return;
  }
  CompileOptions options;
  options.engine = settings.engine == "interpreter" ? Engine::kInterpreter
                   : settings.engine == "system"    ? Engine::kSystem
                                                    : Engine::kJit;
  umbra::jit::SetOptions(options);
  const Compiled compiled(settings.sources);
  TrainAll(compiled, &network, images, settings, &random);
  network.KeepSources(compiled);
  const CompileStatistics statistics = GetCompileStatistics();
  fmt::print("kernels: {} compiled, {} from the disk cache\n", statistics.compiled,
             statistics.disk_hits);
  fmt::print("generated sources: {}\n", std::filesystem::absolute(settings.sources).string());
}

}  // namespace digits

int main(int argc, char** argv) {
  digits::Settings settings;
  CLI::App app("Trains a small network on handwritten digits with kernels that Umbra generates.");
  app.add_option("--engine", settings.engine, "Who evaluates the expressions (default: jit)")
      ->check(CLI::IsMember({"eager", "interpreter", "jit", "system"}));
  app.add_option("--epochs", settings.epochs, "Passes over the training images (default: 60)");
  app.add_option("--seed", settings.seed, "Seed of the start and the order of images (default: 1)");
  app.add_option("--threads", settings.threads, "At most this many threads (default: all)");
  app.add_option("--sources", settings.sources,
                 "Folder for the generated sources (default: digits-kernels)");
  app.add_option("--data", settings.data, "The table of digits");
  CLI11_PARSE(app, argc, argv);
  try {
    digits::Main(settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "digits: error: {}\n", error.what());
    return 1;
  }
  return 0;
}
