// Philox as its authors write it, beside which the prelude's is held.
#ifndef UMBRA_TESTS_SUPPORT_PHILOX_H_
#define UMBRA_TESTS_SUPPORT_PHILOX_H_

#include <array>
#include <cstdint>

namespace umbra {

/// Four random words of block `counter` of the sequence of `key`: Philox 4x32-10 (Salmon et al., "Parallel random
/// numbers: as easy as 1, 2, 3", 2011), whose counter's upper half is 0.
inline std::array<std::uint32_t, 4> Philox(std::uint64_t key, std::uint64_t counter) {
  std::array<std::uint32_t, 4> c = {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0,
                                    0};
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0], p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

}  // namespace umbra

#endif  // UMBRA_TESTS_SUPPORT_PHILOX_H_
