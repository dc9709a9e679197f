// expect: umbra: an index map of a program's own is evaluated eagerly
#include "umbra/jit.h"
using namespace umbra;
struct unmoved : index_map::Elementwise {
  static constexpr int kParams = 0;
  explicit unmoved(const index_t*) {}
  void Check(const int*) const {}
  template <typename D>
  void Shape(const index_map::Extents<D>& in, D* out) const {
    for (int d = 0; d < in.rank[0]; ++d) out[d] = in(0, d);
  }
  template <typename C>
  auto Value(C& c) const {
    return c.Load(0, index_map::Here(c));
  }
};
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b) {
  const expr::IndexMapExp<unmoved, float, 2, Tensor<cpu, 2>> map({}, b);
  a = map;
#ifdef FAIL
  jit(a) = map;
#endif
}
