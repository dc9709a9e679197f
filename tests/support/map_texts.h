// Kernels as text: every index map of umbra/index_maps.def, with operands, and more transposed operands than usual.
#ifndef UMBRA_TESTS_SUPPORT_MAP_TEXTS_H_
#define UMBRA_TESTS_SUPPORT_MAP_TEXTS_H_

#include <string>
#include <vector>

#include "umbra/dtype.h"

namespace umbra::drawn {

struct MapText {
  std::string call;  ///< T is the operands' dtype
  std::vector<std::vector<index_t>> shapes;  ///< of operands a, b, c
  int rank;  ///< of the result
};

inline const std::vector<MapText>& MapTexts() {
  static const std::vector<MapText> texts = {
      {"flip(a * 2, 1)", {{5, 70}}, 2},
      {"swapaxis(a, 0, 2)", {{5, 9, 40}}, 3},
      {"slice(a, 1, 3, 40)", {{7, 50}}, 2},
      {"crop(a, 2, 1, 5, 40)", {{9, 47}}, 2},
      {"pad(a, 2, 3) * 2 + 1", {{9, 47}}, 2},
      {"upsampling_nearest(a, 3)", {{7, 20}}, 2},
      {"repmat(a, 6)", {{45}}, 2},
      {"concat(a, b, 1)", {{6, 20}, {6, 33}}, 2},
      {"concat(a, b + 1, 0)", {{6, 20}, {4, 20}}, 2},
      {"slice_ex(a, 0, 1, 9, 44, 1, 3)", {{9, 47}}, 2},
      {"permute(a, 1, 2, 0)", {{5, 9, 40}}, 3},
      {"broadcast_with_axis(a, 0, 4)", {{5, 30}}, 3},
      {"broadcast_with_axis(a, -1, 4)", {{5, 30}}, 3},
      {"broadcast_multi_axes(a, 0, 5, 2, 40)", {{1, 7, 1}}, 3},
      {"transpose_indices(a, 4, 5, 1, 0)", {{60}}, 1},
      {"broadcast_keepdim(a, 1, 40)", {{5, 1}}, 2},
      {"a + tcast<T>(steps(60, 1))", {{60}}, 1},
      {"a + tcast<T>(slice(steps<i64>(16777277, 1), 0, 16777217, 16777277) - 16777216)", {{60}}, 1},
      {"take(a, b)", {{300}, {11, 20}}, 2},
      {"take_grad(a, b, 7)", {{30}, {30, 20}}, 2},
      {"tcast<T>(one_hot_encode(a, 12))", {{30}}, 2},
      {"mat_choose_row_element(a, b)", {{30, 9}, {30}}, 1},
      {"mat_fill_row_element(a, b, c)", {{30, 9}, {30}, {30}}, 2},
      {"mask(a, b)", {{30}, {30, 20}}, 2},
      {"implicit_dot(a, b)", {{13, 20}, {20, 17}}, 2},
      {"unpack_patch2col(a, 3, 3, 1, 2, 1, 1)", {{2, 3, 9, 11}}, 2},
      {"pack_col2patch(a, 2, 3, 6, 7, 3, 3, 1, 1, 1, 1)", {{27, 40}}, 4},
      {"conj(a)", {{7, 20}}, 2},
      {"complex_exchange(a)", {{7, 20}}, 2},
      {"complex_toreal(a)", {{7, 20}}, 2},
      {"complex_toimag(a)", {{7, 20}}, 2},
      {"complex_abs_square(a)", {{7, 20}}, 2},
      {"complex_sum_real_imag(a)", {{7, 20}}, 2},
      {"complex_pad_imag(a)", {{7, 20}}, 2},
      {"complex_pack(a, b)", {{7, 20}, {7, 20}}, 2},
      {"complex_mul_cc(a, b)", {{7, 20}, {7, 20}}, 2},
      {"complex_mul_cr(a, b)", {{7, 20}, {7, 10}}, 2},
      {"complex_mul_rc(a, b)", {{7, 10}, {7, 20}}, 2},
      {"complex_div_cc(a, b)", {{7, 20}, {7, 20}}, 2},
      {"complex_div_cr(a, b)", {{7, 20}, {7, 10}}, 2},
      {"complex_div_rc(a, b)", {{7, 10}, {7, 20}}, 2},
      {"reshape(a * b, 11, 30)", {{5, 6, 11}, {5, 6, 11}}, 2},
      {"pool<maximum>(a, 3, 3, 2, 2)", {{2, 3, 15, 40}}, 4},
      {"pool<maximum>(a, 8, 20, 3, 3, 2, 2)", {{2, 3, 15, 40}}, 4},
      {"pool<mean>(a, 8, 20, 3, 3, 2, 2)", {{2, 3, 15, 40}}, 4},
      {"pool<sum>(a * a, 2, 3, 1, 2)", {{2, 3, 15, 40}}, 4},
      {"scan<maximum>(a - 1, 1) + a", {{5, 70}}, 2},
      {"scan<sum>(a, 0)", {{40, 9}}, 2},
      {"scan<minimum>(a, 1)", {{3, 9, 20}}, 3},
      {"scan<mean>(a, 0)", {{75}}, 1},
      {"chpool<maximum>(a, 3, 2, 1)", {{2, 7, 5, 9}}, 4},
      {"ch_unpool<maximum>(a, b, c, 3, 1, 1)", {{2, 7, 5, 9}, {2, 7, 5, 9}, {2, 7, 5, 9}}, 4},
      {"ada_pool<sum>(a, 3, 4)", {{2, 3, 15, 20}}, 4},
      {"unpool<maximum>(a, b, c, 2, 2, 2, 2)", {{2, 3, 8, 10}, {2, 3, 4, 5}, {2, 3, 4, 5}}, 4},
  };
  return texts;
}

inline std::string KernelOf(const MapText& map, const std::string& dtype) {
  std::string text = "kernel mapped(";
  const auto dims = [](std::size_t rank) {
    std::string dims;
    for (std::size_t d = 0; d < rank; ++d) dims += d == 0 ? "?" : ", ?";
    return "[" + dims + "]";
  };
  for (std::size_t k = 0; k < map.shapes.size(); ++k)
    text += (k == 0 ? "" : ", ") + std::string(1, "abc"[k]) + ": " + dtype + dims(map.shapes[k].size());
  std::string call = map.call;
  if (const std::size_t at = call.find("<T>"); at != std::string::npos) call.replace(at + 1, 1, dtype);
  return text + ") -> (y: " + dtype + dims(static_cast<std::size_t>(map.rank)) + ") {\n  y = " + call + "\n}";
}

/// A kernel that reads so many operands across their lines.
inline std::string SumOfTransposed(const std::string& dtype, int count) {
  std::string operands, sum;
  for (int k = 0; k < count; ++k) {
    const std::string name = "a" + std::to_string(k);
    operands += name + ": " + dtype + "[p, q], ";
    sum += " + " + name + ".T * " + std::to_string(k + 1);
  }
  return "kernel k(" + operands + "b: " + dtype + "[q, p]) -> (y: " + dtype + "[q, p]) { y = b" + sum + " }";
}

}  // namespace umbra::drawn

#endif  // UMBRA_TESTS_SUPPORT_MAP_TEXTS_H_
