// What tests of fused streams share.
#ifndef UMBRA_TESTS_UNIT_FUSED_STREAM_COMMON_H_
#define UMBRA_TESTS_UNIT_FUSED_STREAM_COMMON_H_

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <type_traits>
#include <vector>

#include "tests/support/testing.h"
#include "umbra/jit.h"
#include "umbra/kernel_call.h"
#include "umbra/tensor.h"

namespace umbra {

using Owner = std::unique_ptr<Stream<cpu>, void (*)(Stream<cpu>*)>;
inline Owner Make(Execution execution) { return {NewStream<cpu>(execution), DeleteStream<cpu>}; }

template <int dim, typename DType = float>
struct Held : TensorContainer<cpu, dim, DType> {
  Held(Stream<cpu>* stream, const Shape<dim>& shape, int seed) : TensorContainer<cpu, dim, DType>(shape) {
    std::mt19937 random(static_cast<unsigned>(seed));
    for (index_t y = 0; y < shape.FlatTo2D()[0]; ++y)
      for (index_t x = 0; x < shape[dim - 1]; ++x)
        this->dptr_[y * this->stride_ + x] =
            DType(static_cast<float>(random() % 200) / 50 - (std::is_unsigned_v<DType> ? 0 : 2));
    this->set_stream(stream);
  }
  using TensorContainer<cpu, dim, DType>::operator=;
  std::vector<DType> Elements() const {
    std::vector<DType> all;
    for (index_t y = 0; y < this->shape_.FlatTo2D()[0]; ++y)
      for (index_t x = 0; x < this->shape_[dim - 1]; ++x) all.push_back(this->dptr_[y * this->stride_ + x]);
    return all;
  }
};

// A tensor of which two statements wait.
struct Waits {
  Owner stream = Make(Execution::kFused);
  Held<1> a{stream.get(), Shape1(5), 1}, b{nullptr, Shape1(5), 2};
  Waits() {
    a = 1.0f;
    jit(a) = a + 1.0f;
    jit(a) = a * 2.0f;
  }
};

}  // namespace umbra

#endif  // UMBRA_TESTS_UNIT_FUSED_STREAM_COMMON_H_
