// Packets of the eager route: several elements side by side in one register, the widest that the
// compiler's flags allow.
#ifndef UMBRA_PACKET_H_
#define UMBRA_PACKET_H_

#include "umbra/op.h"

namespace umbra {

namespace packet_arch {
/// Register bytes of an instruction set; plain has one element.
struct kPlain { static constexpr int kBytes = 0; };
struct kSSE2 { static constexpr int kBytes = 16; };
struct kAVX2 { static constexpr int kBytes = 32; };
struct kAVX512 { static constexpr int kBytes = 64; };
#if defined(__AVX512F__)
using kDefault = kAVX512;
#elif defined(__AVX2__)
using kDefault = kAVX2;
#elif defined(__SSE2__)
using kDefault = kSSE2;
#else
using kDefault = kPlain;
#endif
}  // namespace packet_arch

/// The prelude's vector type that holds a packet of DType.
template <typename DType, typename Arch = packet_arch::kDefault>
using PacketVector =
    simd::packet<DType, (Arch::kBytes == 0 ? 1 : Arch::kBytes / static_cast<int>(sizeof(DType)))>;

/// A packet of DType: f32, f64 or i32.
template <typename DType, typename Arch = packet_arch::kDefault>
struct Packet {
  using Vector = PacketVector<DType, Arch>;
  static constexpr int kSize = simd::kWidth<Vector>;
  Vector data_;

  Packet() = default;
  explicit Packet(Vector data) : data_(data) {}
  static Packet Fill(DType s) { return Packet(simd::fill<Vector>(s)); }
  /// From any address; alignment is not needed.
  static Packet Load(const DType* p) { return Packet(simd::load<Vector>(p)); }
  static Packet LoadUnAligned(const DType* p) { return Load(p); }
  /// The first n lanes, the others zero.
  static Packet LoadHead(const DType* p, index_t n) { return Packet(simd::load_head<Vector>(p, n)); }
  void Store(DType* p) const { simd::store(p, data_); }
  void StoreUnAligned(DType* p) const { Store(p); }
  void StoreHead(DType* p, index_t n) const { simd::store_head(p, data_, n); }
  /// Of all lanes, lane i with lane i + half first.
  DType Sum() const { return simd::across<simd::Sum>(data_); }

  friend Packet operator+(Packet a, Packet b) { return Packet(a.data_ + b.data_); }
  friend Packet operator-(Packet a, Packet b) { return Packet(a.data_ - b.data_); }
  friend Packet operator*(Packet a, Packet b) { return Packet(a.data_ * b.data_); }
  friend Packet operator/(Packet a, Packet b) { return Packet(simd::div(a.data_, b.data_)); }
};

}  // namespace umbra

#endif  // UMBRA_PACKET_H_
