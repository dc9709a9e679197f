// Complex numbers of the expression API: pairs (real, imaginary) along the last axis, which throws umbra::Error if it
// is odd, as mshadow's; what each function means is said once, in umbra/index_map/complex.h. Operands have one dtype,
// any of the ten, and so has the result; extents must fit together, or umbra::Error is thrown, as it is by an
// assignment if the destination overlaps an operand.
#ifndef UMBRA_EXTENSION_COMPLEX_H_
#define UMBRA_EXTENSION_COMPLEX_H_

#include "umbra/extension/index_map.h"

namespace umbra::expr {

/// Conjugates. mshadow's conj.
template <typename E, typename DType, int etype>
inline auto conj(const Exp<E, DType, etype>& z) {
  return IndexMapExp<index_map::conj, DType, ExpInfo<E>::kDim, E>({}, z.self());
}
/// Real and imaginary parts exchanged. mshadow's complex_exchange.
template <typename E, typename DType, int etype>
inline auto complex_exchange(const Exp<E, DType, etype>& z) {
  return IndexMapExp<index_map::complex_exchange, DType, ExpInfo<E>::kDim, E>({}, z.self());
}
/// Real parts; the last axis has half the extent. mshadow's complex_toreal.
template <typename E, typename DType, int etype>
inline auto complex_toreal(const Exp<E, DType, etype>& z) {
  return IndexMapExp<index_map::complex_toreal, DType, ExpInfo<E>::kDim, E>({}, z.self());
}
/// Imaginary parts; the last axis has half the extent. Umbra's own.
template <typename E, typename DType, int etype>
inline auto complex_toimag(const Exp<E, DType, etype>& z) {
  return IndexMapExp<index_map::complex_toimag, DType, ExpInfo<E>::kDim, E>({}, z.self());
}
/// Squared moduli; the last axis has half the extent. mshadow's complex_abs_square.
template <typename E, typename DType, int etype>
inline auto complex_abs_square(const Exp<E, DType, etype>& z) {
  return IndexMapExp<index_map::complex_abs_square, DType, ExpInfo<E>::kDim, E>({}, z.self());
}
/// Moduli, of floating dtypes; the last axis has half the extent. Umbra's own.
template <typename E, typename DType, int etype>
inline auto complex_abs(const Exp<E, DType, etype>& z) {
  return F<op::sqrt>(complex_abs_square(z));
}
/// Real parts plus imaginary parts; the last axis has half the extent. mshadow's complex_sum_real_imag.
template <typename E, typename DType, int etype>
inline auto complex_sum_real_imag(const Exp<E, DType, etype>& z) {
  return IndexMapExp<index_map::complex_sum_real_imag, DType, ExpInfo<E>::kDim, E>({}, z.self());
}
/// Complex numbers with these real parts and imaginary parts of 0; the last axis doubles. mshadow's complex_pad_imag,
/// which refuses an odd last axis.
template <typename E, typename DType, int etype>
inline auto complex_pad_imag(const Exp<E, DType, etype>& re) {
  return IndexMapExp<index_map::complex_pad_imag, DType, ExpInfo<E>::kDim, E>({}, re.self());
}
/// Complex numbers of their real and imaginary parts, two tensors of one shape; the last axis doubles. Umbra's own.
template <typename A, typename B, typename DType, int atype, int btype>
inline auto complex_pack(const Exp<A, DType, atype>& re, const Exp<B, DType, btype>& im) {
  return IndexMapExp<index_map::complex_pack, DType, ExpInfo<A>::kDim, A, B>({}, re.self(), im.self());
}
/// Products of the complex numbers of two tensors of one shape. mshadow's complex_mul_cc.
template <typename A, typename B, typename DType, int atype, int btype>
inline auto complex_mul_cc(const Exp<A, DType, atype>& a, const Exp<B, DType, btype>& b) {
  return IndexMapExp<index_map::complex_mul_cc, DType, ExpInfo<A>::kDim, A, B>({}, a.self(), b.self());
}
/// Products of complex numbers and real ones, of which `b` has half as many along the last axis. mshadow's
/// complex_mul_cr, where the real numbers have imaginary parts of 0: infinity times one is no number there.
template <typename A, typename B, typename DType, int atype, int btype>
inline auto complex_mul_cr(const Exp<A, DType, atype>& a, const Exp<B, DType, btype>& b) {
  return IndexMapExp<index_map::complex_mul_cr, DType, ExpInfo<A>::kDim, A, B>({}, a.self(), b.self());
}
/// Products of real numbers and complex ones, as complex_mul_cr. mshadow's complex_mul_rc.
template <typename A, typename B, typename DType, int atype, int btype>
inline auto complex_mul_rc(const Exp<A, DType, atype>& a, const Exp<B, DType, btype>& b) {
  return IndexMapExp<index_map::complex_mul_rc, DType, ExpInfo<A>::kDim, A, B>({}, a.self(), b.self());
}
/// Quotients of the complex numbers of two tensors of one shape, by the squared modulus of the divisor, which must be
/// in the range of the dtype; 0 of integers where it is 0. mshadow's complex_div_cc.
template <typename A, typename B, typename DType, int atype, int btype>
inline auto complex_div_cc(const Exp<A, DType, atype>& a, const Exp<B, DType, btype>& b) {
  return IndexMapExp<index_map::complex_div_cc, DType, ExpInfo<A>::kDim, A, B>({}, a.self(), b.self());
}
/// Quotients of complex numbers and real ones, of which `b` has half as many along the last axis. mshadow's
/// complex_div_cr, which takes the square of the divisor.
template <typename A, typename B, typename DType, int atype, int btype>
inline auto complex_div_cr(const Exp<A, DType, atype>& a, const Exp<B, DType, btype>& b) {
  return IndexMapExp<index_map::complex_div_cr, DType, ExpInfo<A>::kDim, A, B>({}, a.self(), b.self());
}
/// Quotients of real numbers and complex ones, as complex_div_cc. mshadow's complex_div_rc.
template <typename A, typename B, typename DType, int atype, int btype>
inline auto complex_div_rc(const Exp<A, DType, atype>& a, const Exp<B, DType, btype>& b) {
  return IndexMapExp<index_map::complex_div_rc, DType, ExpInfo<A>::kDim, A, B>({}, a.self(), b.self());
}

}  // namespace umbra::expr

namespace umbra {
using expr::complex_abs;
using expr::complex_abs_square;
using expr::complex_div_cc;
using expr::complex_div_cr;
using expr::complex_div_rc;
using expr::complex_exchange;
using expr::complex_mul_cc;
using expr::complex_mul_cr;
using expr::complex_mul_rc;
using expr::complex_pack;
using expr::complex_pad_imag;
using expr::complex_sum_real_imag;
using expr::complex_toimag;
using expr::complex_toreal;
using expr::conj;
}  // namespace umbra

#endif  // UMBRA_EXTENSION_COMPLEX_H_
