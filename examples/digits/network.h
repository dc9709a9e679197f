// A network of two layers, 64-128-10, and one step of its training. Every step is written once; `Device` says
// where, and `Assign` whether it is evaluated eagerly or through compiled kernels.
#ifndef UMBRA_EXAMPLES_DIGITS_NETWORK_H_
#define UMBRA_EXAMPLES_DIGITS_NETWORK_H_

#include <cmath>
#include <random>
#include <string>

#include "examples/digits/data.h"

namespace digits {

using umbra::broadcast;
using umbra::cpu;
using umbra::dot;
using umbra::F;
using umbra::index_t;
using umbra::reduce_with_axis;
using umbra::scalar;
using umbra::Shape1;
using umbra::Shape2;
using umbra::sum_rows;
namespace op = umbra::op;
namespace red = umbra::red;

constexpr int kHidden = 128, kBatch = 32;
constexpr float kLearningRate = 0.1f, kMomentum = 0.9f;

template <typename Device, int dim = 2>
using View = umbra::Tensor<Device, dim>;

/// Memory for a tensor whose work is done in the order of `stream`.
template <typename Device, int dim = 2>
struct Container : umbra::TensorContainer<Device, dim> {
  Container(umbra::Shape<dim> shape, umbra::Stream<Device>* stream, float initial = 0)
      : umbra::TensorContainer<Device, dim>(shape, initial) {
    this->set_stream(stream);
  }
};

/// A tensor that is learnt: its values, their gradient and its momentum.
template <typename Device, int dim>
struct Parameter {
  Parameter(umbra::Shape<dim> shape, umbra::Stream<Device>* stream)
      : value(shape, stream),
        gradient(shape, stream),
        velocity(shape, stream) {}
  Container<Device, dim> value, gradient, velocity;
};

/// What one pass over some rows computes.
template <typename Device>
struct Activations {
  Activations(index_t rows, umbra::Stream<Device>* stream)
      : hidden(Shape2(rows, kHidden), stream),
        logits(Shape2(rows, kClasses), stream),
        exponentials(Shape2(rows, kClasses), stream),
        probabilities(Shape2(rows, kClasses), stream),
        logits_gradient(Shape2(rows, kClasses), stream),
        hidden_gradient(Shape2(rows, kHidden), stream) {}
  Container<Device> hidden, logits, exponentials, probabilities, logits_gradient, hidden_gradient;
};

template <typename Device, typename Assign>
class Network {
 public:
  using MatrixView = View<Device>;

  Network(Assign assign, std::mt19937* random, umbra::Stream<Device>* stream)
      : assign_(std::move(assign)),
        w1_(Shape2(kPixels, kHidden), stream),
        w2_(Shape2(kHidden, kClasses), stream),
        b1_(Shape1(kHidden), stream),
        b2_(Shape1(kClasses), stream) {
    Initialise(&w1_.value, random);
    Initialise(&w2_.value, random);
  }

  /// The probabilities of the classes, a row for each row of `x`.
  void Forward(const MatrixView& x, Activations<Device>* a) {
    const MatrixView &hidden = a->hidden, &logits = a->logits, &e = a->exponentials;
    assign_(hidden, dot(x, w1_.value));
    assign_("relu_bias", hidden, F<op::relu>(hidden + broadcast<1>(b1_.value, hidden.shape_)));
    assign_(logits, dot(hidden, w2_.value));
    assign_("bias", logits, logits + broadcast<1>(b2_.value, logits.shape_));
    assign_("exponentials", e, F<op::exp>(logits - broadcast<0>(reduce_with_axis<red::maximum>(logits, 1), e.shape_)));
    assign_("softmax", a->probabilities, e / broadcast<0>(reduce_with_axis<red::sum>(e, 1), e.shape_));
  }

  /// -log p[class] of the rows that Forward has seen.
  void Loss(const MatrixView& onehot, Activations<Device>* a, const View<Device, 1>& losses) {
    const MatrixView& p = a->probabilities;
    assign_("loss", losses, F<op::log>(reduce_with_axis<red::sum>(p * onehot, 1)) * -1.0f);
  }

  /// Learns from the rows that Forward has seen.
  void Learn(const MatrixView& x, const MatrixView& onehot, Activations<Device>* a) {
    const MatrixView &hidden = a->hidden, &dlogits = a->logits_gradient, &dhidden = a->hidden_gradient;
    assign_("gradient", dlogits, (a->probabilities - onehot) * (1.0f / static_cast<float>(x.size(0))));
    assign_(w2_.gradient, dot(hidden.T(), dlogits));
    assign_("bias_gradient", b2_.gradient, sum_rows(dlogits));
    assign_(dhidden, dot(dlogits, w2_.value.T()));
    assign_("relu_gradient", dhidden, F<op::select>(F<op::gt>(hidden, scalar(0.0f)), dhidden, scalar(0.0f)));
    assign_(w1_.gradient, dot(x.T(), dhidden));
    assign_("bias_gradient", b1_.gradient, sum_rows(dhidden));
    Step(&w1_, "matrix");
    Step(&w2_, "matrix");
    Step(&b1_, "vector");
    Step(&b2_, "vector");
  }

 private:
  /// He initialisation: variance 2 / inputs.
  static void Initialise(Container<Device>* weights, std::mt19937* random) {
    Matrix drawn(weights->shape_);
    std::normal_distribution<float> normal(0.0f, std::sqrt(2.0f / static_cast<float>(weights->size(0))));
    for (index_t i = 0; i < weights->size(0); ++i)
      for (index_t j = 0; j < weights->size(1); ++j) drawn[i][j] = normal(*random);
    umbra::Copy<2, float>(*weights, drawn);
  }

  template <int dim>
  void Step(Parameter<Device, dim>* p, const std::string& kind) {
    assign_("momentum_" + kind, p->velocity, p->velocity * kMomentum - p->gradient * kLearningRate);
    assign_("update_" + kind, p->value, p->value + p->velocity);
  }

  Assign assign_;
  Parameter<Device, 2> w1_, w2_;
  Parameter<Device, 1> b1_, b2_;
};

}  // namespace digits

#endif  // UMBRA_EXAMPLES_DIGITS_NETWORK_H_
