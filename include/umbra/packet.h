// Packets of the eager route: several elements side by side in one register, by default the widest
// that the compiler's flags allow. Names and meaning as mshadow's.
#ifndef UMBRA_PACKET_H_
#define UMBRA_PACKET_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "umbra/aligned_memory.h"
#include "umbra/op.h"

namespace umbra::packet {

/// How packets are made; plain has one element.
enum PacketArch { kPlain, kSSE2, kAVX2, kAVX512 };

/// Bytes of a packet; 0 for one element of any size.
constexpr int Bytes(PacketArch arch) { return arch == kAVX512 ? 64 : arch == kAVX2 ? 32 : arch == kSSE2 ? 16 : 0; }

#if defined(__AVX512F__)
/// The widest packets of the instruction set that the program is compiled for.
inline constexpr PacketArch kDefaultArch = kAVX512;
#elif defined(__AVX2__)
inline constexpr PacketArch kDefaultArch = kAVX2;
#elif defined(__SSE2__)
inline constexpr PacketArch kDefaultArch = kSSE2;
#else
inline constexpr PacketArch kDefaultArch = kPlain;
#endif

/// The prelude's vector type that holds a packet of DType: f32, f64, i32 or i64.
template <typename DType, PacketArch Arch = kDefaultArch>
using Vector = simd::packet<DType, (Arch == kPlain ? 1 : Bytes(Arch) / static_cast<int>(sizeof(DType)))>;

/// Memory for `lines` rows of `bytes` each, every row 64-byte aligned; `*pitch` receives the
/// distance of rows in bytes. Throws umbra::Error if the size overflows or memory runs out.
inline void* AlignedMallocPitch(std::size_t* pitch, std::size_t bytes, std::size_t lines) {
  constexpr std::size_t kAlign = 64;
  std::size_t total = 0;
  *pitch = (bytes + kAlign - 1) & ~(kAlign - 1);
  const bool overflow =
      *pitch < bytes || __builtin_mul_overflow(*pitch, lines, &total) || total > static_cast<std::size_t>(INT64_MAX);
  Require(!overflow, lines, " rows of ", bytes, " bytes are more than memory can have");
  void* memory = AlignedMemory(total, kAlign);
  Require(memory != nullptr, "out of memory: ", total, " bytes for a tensor");
  return memory;
}
/// Gives back what AlignedMallocPitch gave; null is allowed.
inline void AlignedFree(void* memory) { std::free(memory); }

/// Aligned addresses of packets of Arch are multiples of 1 << value bytes: an exponent, as in mshadow, despite
/// the name. Packets load and store at any address; aligned ones may be faster.
template <PacketArch Arch = kDefaultArch>
struct AlignBytes {
  static constexpr index_t value = Arch == kAVX512 ? 6
                                   : Arch == kAVX2 ? 5
                                                   : 4;  ///< 4, 5 or 6: multiples of 16, 32 or 64 bytes
};
/// Is a pitch in bytes, or an address, a multiple of 1 << AlignBytes?
template <PacketArch Arch = kDefaultArch>
inline bool CheckAlign(std::size_t pitch) {
  return pitch % (std::size_t{1} << AlignBytes<Arch>::value) == 0;
}
template <PacketArch Arch = kDefaultArch>
inline bool CheckAlign(const void* address) {
  return CheckAlign<Arch>(reinterpret_cast<std::size_t>(address));
}
/// The least number of elements, not below `size`, that fill whole packets.
template <typename DType, PacketArch Arch = kDefaultArch>
inline index_t UpperAlign(index_t size) {
  constexpr index_t kLanes = simd::kWidth<Vector<DType, Arch>>;
  return (size + kLanes - 1) / kLanes * kLanes;
}
/// The largest number of elements, not above `size`, that fill whole packets.
template <typename DType, PacketArch Arch = kDefaultArch>
inline index_t LowerAlign(index_t size) {
  constexpr index_t kLanes = simd::kWidth<Vector<DType, Arch>>;
  return size / kLanes * kLanes;
}

/// A packet of DType: f32, f64, i32 or i64.
template <typename DType, PacketArch Arch = kDefaultArch>
struct Packet {
  static constexpr index_t kSize = simd::kWidth<Vector<DType, Arch>>;  ///< elements side by side
  Vector<DType, Arch> data_;  ///< the register

  Packet() = default;
  /// A register's elements.
  explicit Packet(Vector<DType, Arch> data) : data_(data) {}
  /// All elements become `s`.
  Packet& operator=(DType s) { return *this = Fill(s); }

  /// All elements `s`.
  static Packet Fill(DType s) { return Packet(simd::fill<Vector<DType, Arch>>(s)); }
  /// From any address; alignment is not needed.
  static Packet Load(const DType* p) { return Packet(simd::load<Vector<DType, Arch>>(p)); }
  /// The same: from any address.
  static Packet LoadUnAligned(const DType* p) { return Load(p); }
  /// The first n lanes, the others zero; nothing past p + n is read.
  static Packet LoadHead(const DType* p, index_t n) { return Packet(simd::load_head<Vector<DType, Arch>>(p, n)); }
  /// All lanes, to any address.
  void Store(DType* p) const { simd::store(p, data_); }
  /// The same: to any address.
  void StoreUnAligned(DType* p) const { Store(p); }
  /// The first n lanes; nothing past p + n is written.
  void StoreHead(DType* p, index_t n) const { simd::store_head(p, data_, n); }
  /// Of all lanes, lane i with lane i + half first.
  DType Sum() const { return simd::across<simd::Sum>(data_); }

  friend Packet operator+(Packet a, Packet b) { return Packet(a.data_ + b.data_); }
  friend Packet operator-(Packet a, Packet b) { return Packet(a.data_ - b.data_); }
  friend Packet operator*(Packet a, Packet b) { return Packet(a.data_ * b.data_); }
  friend Packet operator/(Packet a, Packet b) { return Packet(simd::div(a.data_, b.data_)); }
};

namespace detail {
template <typename OP, typename... V>
struct Takes {
  template <typename O>
  static auto Test(int) -> decltype(O::MapPacket(std::declval<V>()...), std::true_type());
  template <typename O>
  static std::false_type Test(...);
  static constexpr bool value = decltype(Test<OP>(0))::value;
};
}  // namespace detail

/// OP on packets; kEnabled says whether it has them: all of umbra/ops.def, and a user's operator unless it is
/// written with `?:`. For an operator that has none, one with no more than Map, a program may specialise this, with
/// kEnabled true and a Map of as many Packet<DType, Arch> as OP has operands; expressions then run in packets.
template <typename OP, typename DType, PacketArch Arch = kDefaultArch>
struct PacketOp {
  using V = Vector<DType, Arch>;
  /// Is there a Map?
  static constexpr bool kEnabled = detail::Takes<OP, V>::value || detail::Takes<OP, V, V>::value ||
                                   detail::Takes<OP, V, V, V>::value || detail::Takes<OP, V, V, V, V>::value;
  /// OP of one to four packets, lane by lane.
  template <typename... Rest, typename = std::enable_if_t<detail::Takes<OP, V, decltype(Rest::data_)...>::value>>
  static Packet<DType, Arch> Map(Packet<DType, Arch> first, Rest... rest) {
    return Packet<DType, Arch>(OP::MapPacket(first.data_, rest.data_...));
  }
};

namespace detail {
template <typename OP, typename... P>
struct TakesPackets;
template <typename OP, typename DType, PacketArch Arch, typename... Rest>
struct TakesPackets<OP, Packet<DType, Arch>, Rest...> {
  using First = Packet<DType, Arch>;
  template <typename Op>
  static auto Test(int) -> decltype(Op::Map(std::declval<First>(), std::declval<Rest>()...), std::true_type());
  template <typename Op>
  static std::false_type Test(...);
  using Op = PacketOp<OP, DType, Arch>;
  static constexpr bool value = Op::kEnabled && decltype(Test<Op>(0))::value;
};

/// The lanes of v from `begin` on, as many as P has; zero beyond v.
template <typename P, typename V>
inline P Lanes(V v, index_t begin) {
  simd::Elem<V> lanes[simd::kWidth<V>];
  simd::store(lanes, v);
  return P::LoadHead(lanes + begin, std::min<index_t>(P::kSize, simd::kWidth<V> - begin));
}
}  // namespace detail

/// Does OP take operands of the types V, by packets of its own or by its PacketOp?
template <typename OP, typename... V>
inline constexpr bool kTakes =
    detail::Takes<OP, V...>::value || detail::TakesPackets<OP, Packet<simd::Elem<V>>...>::value;

/// OP lane by lane, by packets of its own or by its PacketOp. Registers need not be as wide as a Packet: beside a cast
/// they have as many lanes as the other type.
template <typename OP, typename V, typename... Rest>
inline V MapLanes(V first, Rest... rest) {
  if constexpr (detail::Takes<OP, V, Rest...>::value) {
    return OP::MapPacket(first, rest...);
  } else {
    using T = simd::Elem<V>;
    using P = Packet<T>;
    if constexpr (P::kSize == simd::kWidth<V>) {
      return PacketOp<OP, T>::Map(P(first), P(rest)...).data_;
    } else {
      T result[simd::kWidth<V>];
      for (index_t k = 0; k < simd::kWidth<V>; k += P::kSize)
        PacketOp<OP, T>::Map(detail::Lanes<P>(first, k), detail::Lanes<P>(rest, k)...)
            .StoreHead(result + k, std::min<index_t>(P::kSize, simd::kWidth<V> - k));
      return simd::load<V>(result);
    }
  }
}

/// Joins a packet with what lies at the destination, all of it or its first n lanes.
template <typename SV, typename DType, PacketArch Arch = kDefaultArch>
struct Saver {
  /// *dst SV= src for kSize elements.
  static void Save(DType* dst, Packet<DType, Arch> src) {
    PacketOp<typename SV::OPType, DType, Arch>::Map(Packet<DType, Arch>::Load(dst), src).Store(dst);
  }
  /// The same for the first n; nothing past dst + n is read or written.
  static void SaveHead(DType* dst, Packet<DType, Arch> src, index_t n) {
    PacketOp<typename SV::OPType, DType, Arch>::Map(Packet<DType, Arch>::LoadHead(dst, n), src).StoreHead(dst, n);
  }
};
template <typename DType, PacketArch Arch>
struct Saver<sv::saveto, DType, Arch> {
  static void Save(DType* dst, Packet<DType, Arch> src) { src.Store(dst); }
  static void SaveHead(DType* dst, Packet<DType, Arch> src, index_t n) { src.StoreHead(dst, n); }
};

}  // namespace umbra::packet

#endif  // UMBRA_PACKET_H_
