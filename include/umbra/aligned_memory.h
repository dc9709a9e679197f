// Memory of tensors on the CPU.
#ifndef UMBRA_ALIGNED_MEMORY_H_
#define UMBRA_ALIGNED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace umbra {

/// At least `bytes` bytes at a multiple of `align`, a power of two; std::free gives them back. Null if memory runs out.
/// Linux is asked to put blocks of 4 MiB and more on large pages: fewer addresses have to be translated.
inline void* AlignedMemory(std::size_t bytes, std::size_t align = 64) {
  const std::size_t rounded = (bytes + align - 1) / align * align;
  if (rounded < bytes || rounded > PTRDIFF_MAX) return nullptr;
  void* const memory = std::aligned_alloc(align, rounded == 0 ? align : rounded);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::size_t kLarge = std::size_t{4} << 20, kPage = 4096;
  if (memory != nullptr && rounded >= kLarge) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory), first = (begin + kPage - 1) / kPage * kPage;
    (void)madvise(reinterpret_cast<void*>(first), (begin + rounded - first) / kPage * kPage, MADV_HUGEPAGE);  // a wish
  }
#endif
  return memory;
}

}  // namespace umbra

#endif  // UMBRA_ALIGNED_MEMORY_H_
