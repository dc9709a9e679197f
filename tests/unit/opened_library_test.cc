// Which of NVIDIA's libraries is taken where several are installed.
#include "runtime/opened_library.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace umbra {
namespace {

// The names in the order in which they are tried by a process whose driver supports this CUDA.
std::vector<std::string> Tried(int driver) {
  std::vector<std::string> tried;
  const auto use = [&](const std::string& name) {
    tried.push_back(name);
    return "it is not there";
  };
  const runtime::OpenedLibrary none =
      runtime::OpenWanted({{"libx.so.13", "libx.so.12", "/usr/local/cuda/lib64/libx.so"},
                           "UMBRA_X",
                           "there is no X",
                           "; install it",
                           driver},
                          "", use);
  EXPECT_EQ(none.problem, "there is no X; install it");
  return tried;
}

TEST(OpenWanted, NoLaterThanTheDriver) {
  const std::vector<std::string> latest_first = {"libx.so.13", "libx.so.12", "/usr/local/cuda/lib64/libx.so"};
  EXPECT_EQ(Tried(13000), latest_first);
  EXPECT_EQ(Tried(14010), latest_first);
  EXPECT_EQ(Tried(0), latest_first);  // not known
  EXPECT_EQ(Tried(12090), (std::vector<std::string>{"libx.so.12", "/usr/local/cuda/lib64/libx.so", "libx.so.13"}));
}

}  // namespace
}  // namespace umbra
