// A network of two layers, 64-128-10, and its training, written in tensor expressions. `Assign` is
// a callable that evaluates them: assign(name, destination, expression).
#ifndef UMBRA_EXAMPLES_DIGITS_NETWORK_H_
#define UMBRA_EXAMPLES_DIGITS_NETWORK_H_

#include <cmath>
#include <random>

#include "examples/digits/data.h"
#include "umbra/tensor.h"

namespace digits {

using Vector = umbra::TensorContainer<umbra::cpu, 1, float>;

UMBRA_OP(relu_gradient, (value, gradient), select(value > 0, gradient, 0));

constexpr umbra::index_t kHidden = 128;

/// A parameter, its gradient, and the velocity that momentum keeps.
template <typename Tensor>
struct Parameter {
  template <typename Shape>
  explicit Parameter(const Shape& shape)
      : value(shape, 0.0f), gradient(shape, 0.0f), velocity(shape, 0.0f) {}
  Tensor value, gradient, velocity;
};

/// Fills a tensor with numbers from [-limit, limit); the same on every machine.
inline void FillUniform(float limit, std::mt19937* random, Matrix* matrix) {
  for (umbra::index_t y = 0; y < matrix->shape_[0]; ++y)
    for (umbra::index_t x = 0; x < matrix->shape_[1]; ++x) {
      const float unit = static_cast<float>((*random)() >> 8) * 0x1p-24f;
      (*matrix)[y][x] = (2 * unit - 1) * limit;
    }
}

template <typename Assign>
class Network {
 public:
  Network(Assign assign, std::mt19937* random) : assign_(std::move(assign)) {
    FillUniform(std::sqrt(6.0f / kPixels), random, &w1_.value);               // He
    FillUniform(std::sqrt(6.0f / (kHidden + kClasses)), random, &w2_.value);  // Glorot
  }

  /// One step of gradient descent with momentum on the images of a batch. Returns the sum of their
  /// losses.
  float Train(const Matrix& image, const Matrix& label, float rate, float momentum) {
    Forward(image);
    const float loss = Loss(label);
    Backward(label);
    Update("weight_velocity", "weight", &w1_, rate, momentum);
    Update("bias_velocity", "bias", &b1_, rate, momentum);
    Update("weight_velocity", "weight", &w2_, rate, momentum);
    Update("bias_velocity", "bias", &b2_, rate, momentum);
    return loss;
  }

  /// The number of images whose largest score is that of their class.
  int CountCorrect(const Matrix& image, const Matrix& label) {
    using namespace umbra;
    Forward(image);
    per_image_.Resize(Shape1(label.shape_[0]));
    assign_("correct", per_image_,
            F<op::eq>(reduce_with_axis<red::maximum>(score_, 1),
                      reduce_with_axis<red::sum>(score_ * label, 1)));
    assign_("sum", total_, reduce_with_axis<red::sum>(per_image_, 0));
    return static_cast<int>(total_[0]);
  }

 private:
  /// Scores of the classes: relu(x . w1 + b1) . w2 + b2 with pixels scaled to [0, 1].
  void Forward(const Matrix& image) {
    using namespace umbra;
    const index_t count = image.shape_[0];
    for (Matrix* matrix : {&hidden_, &hidden_gradient_}) matrix->Resize(Shape2(count, kHidden));
    for (Matrix* matrix : {&score_, &score_gradient_}) matrix->Resize(Shape2(count, kClasses));
    x_.Resize(image.shape_);
    assign_("scale", x_, image * (1.0f / 16));
    assign_("dot", hidden_, dot(x_, w1_.value));
    assign_("bias_relu", hidden_, F<op::relu>(hidden_ + broadcast<1>(b1_.value, hidden_.shape_)));
    assign_("dot", score_, dot(hidden_, w2_.value));
    assign_("add_bias", score_, score_ + broadcast<1>(b2_.value, score_.shape_));
  }

  /// Cross-entropy of softmax(score_): log(sum(exp(score))) - score of the class, both relative to
  /// the largest score of the image.
  float Loss(const Matrix& label) {
    using namespace umbra;
    per_image_.Resize(Shape1(label.shape_[0]));
    const auto largest = broadcast<0>(reduce_with_axis<red::maximum>(score_, 1), score_.shape_);
    assign_("loss", per_image_,
            F<op::log>(reduce_with_axis<red::sum>(F<op::exp>(score_ - largest), 1)) -
                reduce_with_axis<red::sum>(label * (score_ - largest), 1));
    assign_("sum", total_, reduce_with_axis<red::sum>(per_image_, 0));
    return total_[0];
  }

  /// Gradients of the mean loss.
  void Backward(const Matrix& label) {
    using namespace umbra;
    const auto shape = score_.shape_;
    const auto largest = broadcast<0>(reduce_with_axis<red::maximum>(score_, 1), shape);
    const auto power = F<op::exp>(score_ - largest);
    const auto softmax = power / broadcast<0>(reduce_with_axis<red::sum>(power, 1), shape);
    assign_("softmax_gradient", score_gradient_,
            (softmax - label) * (1.0f / static_cast<float>(shape[0])));
    assign_("dot", w2_.gradient, dot(hidden_.T(), score_gradient_));
    assign_("sum_rows", b2_.gradient, sum_rows(score_gradient_));
    assign_("dot", hidden_gradient_, dot(score_gradient_, w2_.value.T()));
    assign_("relu_gradient", hidden_gradient_, F<relu_gradient>(hidden_, hidden_gradient_));
    assign_("dot", w1_.gradient, dot(x_.T(), hidden_gradient_));
    assign_("sum_rows", b1_.gradient, sum_rows(hidden_gradient_));
  }

  template <typename Tensor>
  void Update(const char* velocity_name, const char* value_name, Parameter<Tensor>* p, float rate,
              float momentum) {
    assign_(velocity_name, p->velocity, p->velocity * momentum - p->gradient * rate);
    assign_(value_name, p->value, p->value + p->velocity);
  }

  Assign assign_;
  Parameter<Matrix> w1_{umbra::Shape2(kPixels, kHidden)}, w2_{umbra::Shape2(kHidden, kClasses)};
  Parameter<Vector> b1_{umbra::Shape1(kHidden)}, b2_{umbra::Shape1(kClasses)};
  Matrix x_, hidden_, score_, hidden_gradient_, score_gradient_;
  Vector per_image_, total_{umbra::Shape1(1)};
};

}  // namespace digits

#endif  // UMBRA_EXAMPLES_DIGITS_NETWORK_H_
