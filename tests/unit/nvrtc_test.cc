// NVRTC for real, where it is installed; no GPU is needed.
#include "compiler/driver/nvrtc.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "runtime/disk_cache.h"
#include "tests/support/testing.h"

namespace umbra {
namespace {

using cuda::Architecture;
using cuda::ImageForm;

#define NEEDS_NVRTC() \
  if (FindNvrtc().name.empty()) GTEST_SKIP() << FindNvrtc().problem

std::string Scale(const std::string& name, const std::string& factor) {
  return "struct " + name +
         "_args { float* data; long long extent; };\n"
         "extern \"C\" __global__ void " +
         name + "(const " + name +
         "_args args) {\n"
         "  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n"
         "  if (i < args.extent) args.data[i] = args.data[i] * " +
         factor +
         " + 1.0f;\n"
         "}\n";
}

CudaTarget For(const char* architecture, ImageForm form) { return {Architecture::Parse(architecture), form}; }

TEST(Nvrtc, CompilesToPtxAndCubin) {
  NEEDS_NVRTC();
  for (const char* architecture : {"sm_80", "sm_90"}) {
    const cuda::Image ptx = CompileCuda(Scale("scale", "2.0f"), "scale", For(architecture, ImageForm::kPtx), false);
    EXPECT_NE(ptx.bytes.find(".entry scale"), std::string::npos);
    EXPECT_NE(ptx.bytes.find(std::string(".target ") + architecture), std::string::npos);
    EXPECT_NE(ptx.bytes.back(), '\0');
    const cuda::Image cubin = CompileCuda(Scale("scale", "2.0f"), "scale", For(architecture, ImageForm::kCubin), false);
    EXPECT_EQ(cubin.bytes.substr(0, 4), "\177ELF");
  }
}

TEST(Nvrtc, ArithmeticIsStrictUnlessContracted) {
  NEEDS_NVRTC();
  CudaTarget target = For("sm_90", ImageForm::kPtx);
  const std::string source = Scale("scale", "3.0f");
  EXPECT_EQ(CompileCuda(source, "scale", target, false).bytes.find("fma.rn.f32"), std::string::npos);
  target.fast = true;
  EXPECT_NE(CompileCuda(source, "scale", target, false).bytes.find("fma.rn.f32"), std::string::npos);
}

TEST(Nvrtc, AnErrorHasTheLogAndTheLine) {
  NEEDS_NVRTC();
  const std::string said =
      MessageOf([] { CompileCuda(Scale("wrong", "no_such_factor"), "wrong", For("sm_90", ImageForm::kCubin), false); });
  EXPECT_NE(said.find("cannot compile 'wrong' for sm_90"), std::string::npos) << said;
  EXPECT_NE(said.find("wrong.cu(4): error: identifier \"no_such_factor\" is undefined"), std::string::npos) << said;
  EXPECT_NE(said.find("     4 |   if (i < args.extent) args.data[i] = args.data[i] * no_such_factor + 1.0f;"),
            std::string::npos)
      << said;
}

TEST(Nvrtc, ArchitecturesThatAreNone) {
  for (const char* text : {"90", "sm_", "sm_9x", "compute_90", "sm_90b", "sm_99999", ""})
    EXPECT_SAYS("is no GPU architecture; one is written like sm_80", Architecture::Parse(text));
  EXPECT_EQ(Architecture::Parse("sm_100a").Name(), "sm_100a");
  NEEDS_NVRTC();
  EXPECT_SAYS("does not compile for sm_35; it compiles for sm_",
              CompileCuda("", "old", For("sm_35", ImageForm::kCubin), false));
}

// Threads compile side by side, each its own kernel and all the same one.
TEST(Nvrtc, ManyThreads) {
  NEEDS_NVRTC();
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int k = 0; k < 8; ++k)
    threads.emplace_back([k, &right] {
      const std::string name = "k" + std::to_string(k % 4);
      const cuda::Image image =
          CompileCuda(Scale(name, std::to_string(k % 4) + ".5f"), name, For("sm_90", ImageForm::kPtx), false);
      right += image.bytes.find(".entry " + name + "(") != std::string::npos;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 8);
}

TEST(Nvrtc, ImagesAreKeptOnDisk) {
  NEEDS_NVRTC();
  const auto folder = std::filesystem::temp_directory_path() / ("umbra-nvrtc-test-" + std::to_string(getpid()));
  setenv("UMBRA_CACHE_DIR", folder.c_str(), 1);
  auto& cache = runtime::DiskCache::Default();
  ASSERT_EQ(cache.folder(), folder) << "a test before has used the cache";
  const std::string source = Scale("kept", "7.0f");
  const CudaTarget target = For("sm_90", ImageForm::kCubin);
  const std::string first = CompileCuda(source, "kept", target).bytes;
  EXPECT_EQ(cache.Usage().first, 1u);
  EXPECT_EQ(CompileCuda(source, "kept", target).bytes, first);
  EXPECT_EQ(cache.Usage().first, 1u);
  CompileCuda(source, "kept", For("sm_80", ImageForm::kCubin));
  CompileCuda(source, "kept", For("sm_90", ImageForm::kPtx));
  EXPECT_EQ(cache.Usage().first, 3u);
  std::filesystem::remove_all(folder);
}

// Each in a process of its own, which opens its libraries anew.
void Compile(const char* library) {
  setenv("UMBRA_NVRTC", library, 1);
  std::fputs(MessageOf([] { CompileCuda("", "x", For("sm_90", ImageForm::kPtx), false); }).c_str(), stderr);
  std::exit(0);
}
TEST(NvrtcDeathTest, WithoutNvrtc) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(Compile("/none.so"), ::testing::ExitedWithCode(0),
              "UMBRA_NVRTC=/none.so cannot be used: .*install NVRTC 12 or 13");
  EXPECT_EXIT(Compile("libm.so.6"), ::testing::ExitedWithCode(0), "libm.so.6 has no nvrtcVersion");
}

// The library that NVRTC opens by name when it compiles lies beside it, and not where the system looks.
void CompileWithBuiltins(const char* minor) {
  setenv("STAND_IN_BUILTINS", minor, 1);
  Compile(UMBRA_NVRTC_STAND_IN);
}
TEST(NvrtcDeathTest, FindsWhatLiesBesideIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(CompileWithBuiltins("999"), ::testing::ExitedWithCode(0), "no error");
  EXPECT_EXIT(CompileWithBuiltins("998"), ::testing::ExitedWithCode(0),
              "its library libnvrtc-builtins.so.13.998 is missing beside it");
}

}  // namespace
}  // namespace umbra
