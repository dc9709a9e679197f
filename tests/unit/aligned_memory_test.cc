// Memory of tensors: where it begins, and what the system is asked for.
#include "umbra/aligned_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "umbra/tensor.h"

namespace umbra {
namespace {

using Block = std::unique_ptr<void, decltype(&std::free)>;

TEST(AlignedMemory, BeginsAtMultiples) {
  for (const std::size_t align : {8, 64, 4096})
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{5} << 20}) {
      const Block block(AlignedMemory(bytes, align), &std::free);
      ASSERT_NE(block, nullptr) << bytes;
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.get()) % align, 0u) << bytes << " at " << align;
      std::memset(block.get(), 1, bytes);
    }
}

TEST(AlignedMemory, IsNullWhereThereIsNone) {
  EXPECT_EQ(AlignedMemory(SIZE_MAX), nullptr);
  EXPECT_EQ(AlignedMemory(SIZE_MAX / 2), nullptr);
}

// Of the mapping that `address` lies in, as Linux tells.
std::string FlagsOfMapping(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    if (std::istringstream range(line); range >> std::hex >> begin >> dash >> end && dash == '-')
      inside = begin <= at && at < end;
    else if (inside && line.rfind("VmFlags:", 0) == 0) return line + ' ';
  }
  return "";
}

TEST(AlignedMemory, LargeTensorsAskForLargePages) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"))
    GTEST_SKIP() << "this system has no transparent huge pages";
  TensorContainer<cpu, 1> large(Shape1(2 << 20));
  const std::string flags = FlagsOfMapping(large.dptr_ + large.size(0) / 2);
  EXPECT_NE(flags.find(" hg "), std::string::npos) << flags;
}

}  // namespace
}  // namespace umbra
