// Expressions of a GPU's tensors, which generated code evaluates.
#ifndef UMBRA_GENERATED_H_
#define UMBRA_GENERATED_H_

#include "umbra/device.h"
#include "umbra/error.h"

namespace umbra {
template <typename Device, int dimension, typename DType>
struct Tensor;
}  // namespace umbra

namespace umbra::expr {

/// How expressions of a GPU's tensors are evaluated: by generated kernels, once umbra/jit.h is included. A file whose
/// marked functions are generated (UMBRA_KERNELS_AHEAD_OF_TIME) compiles without it; what of it is not generated is
/// evaluated if the program compiles that expression elsewhere.
template <typename Device>
struct Generated {
#ifdef UMBRA_KERNELS_AHEAD_OF_TIME
  static constexpr bool kMayLack = true;  ///< may Assign be null?
  /// `dst Saver= exp`, in the stream of `dst`; null where nothing generates it.
  template <typename Saver, int dim, typename DType, typename E>
  static void Assign(const Tensor<Device, dim, DType>&, const E&) __attribute__((weak));
#else
  static constexpr bool kMayLack = false;  ///< may Assign be null?
  /// `dst Saver= exp`, in the stream of `dst`.
  template <typename Saver, int dim, typename DType, typename E>
  static void Assign(const Tensor<Device, dim, DType>&, const E&) {
    static_assert(sizeof(E) == 0,
                  "umbra: expressions of a GPU's tensors are computed by generated kernels: include umbra/jit.h "
                  "before this assignment and link umbra_compiler, or copy the tensors to the CPU");
  }
#endif
};

/// dst Saver= exp on a GPU. Throws umbra::Error if no code was generated for it.
template <typename Saver, typename Device, int dim, typename DType, typename E>
inline void AssignGenerated(const Tensor<Device, dim, DType>& dst, const E& exp) {
  if constexpr (Generated<Device>::kMayLack) {
    auto* volatile assign =
        &Generated<Device>::template Assign<Saver, dim, DType, E>;  // g++ takes for granted that it is there
    Require(assign != nullptr,
            "an expression of a GPU's tensors was not compiled ahead of time, as its function is not marked "
            "UMBRA_KERNEL, or stays eager for what umbra-extract says of it");
  }
  Generated<Device>::template Assign<Saver>(dst, exp);
}

}  // namespace umbra::expr

#endif  // UMBRA_GENERATED_H_
