// A library that defines a marked function of the user's: its eager body, a weak definition, gives way.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "compiler/aot/aot.h"
#include "compiler/graph/parse.h"
#include "umbra/error.h"

namespace umbra {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = R"(
#include <umbra/tensor.h>
#include <cstdio>
namespace user {
// What the user wrote, but for the body, which would show if it ran.
__attribute__((weak)) void add_to(umbra::Tensor<umbra::cpu, 2, float> y, const umbra::Tensor<umbra::cpu, 1, float>& b, float s) {
  std::printf("eager %d %f", static_cast<int>(y.shape_[0] + b.shape_[0]), static_cast<double>(s));
}
}
int main() {
  using namespace umbra;
  TensorContainer<cpu, 2> y(Shape2(3, 5), 1.0f);
  TensorContainer<cpu, 1> b(Shape1(5), 10.0f);
  user::add_to(y, b, 100.0f);
  try {
    user::add_to(y, Tensor<cpu, 1>(b.dptr_, Shape1(4)), 1.0f);
  } catch (const Error& error) {
    std::printf("%g %s", static_cast<double>(y[2][4]), error.what());
  }
}
)";

aot::Library Marked() {
  aot::Kernel kernel;
  kernel.name = "add_to";
  kernel.graph =
      graph::Parse(
          "kernel add_to(y: f32[n, m], b: f32[m], s: f32) -> (y_1: f32[n, m]) { y_1 = y + broadcast<1>(b) * s }",
          "user.cc")
          .at(0);
  kernel.file = "/somewhere/user.cc";
  kernel.line = 6;
  aot::CppFunction function;
  function.symbol = "_ZN4user6add_toEN5umbra6TensorINS0_3cpuELi2EfEERKNS1_IS2_Li1EfEEf";
  function.parameters = {{"umbra::Tensor<umbra::cpu, 2, float>", "y", 0, 0, -1},
                         {"const umbra::Tensor<umbra::cpu, 1, float>&", "b", 1, -1, -1},
                         {"float", "s", -1, -1, 0}};
  kernel.function = std::move(function);
  return {"user", {kernel}, {{codegen::Target::kPlain}, {}}};
}

TEST(MarkedFunction, IsDefinedByTheLibrary) {
  const fs::path folder = fs::path(testing::TempDir()) / ("umbra-marked-" + std::to_string(getpid()));
  fs::create_directories(folder);
  std::string sources = (folder / "main.cc").string();
  std::ofstream(folder / "main.cc") << kProgram;
  for (const aot::File& file : aot::Emit(Marked())) {
    std::ofstream(folder / file.name) << file.text;
    if (file.name.back() == 'c') sources += " " + (folder / file.name).string();
  }
  const std::string said = (folder / "said").string(), program = (folder / "program").string();
  const std::string command =
      std::string(UMBRA_CXX_COMPILER " -std=c++17 -Wall -Wextra -Werror -O1 -I " UMBRA_ROOT "/include -o ") + program +
      " " + sources + " -L " UMBRA_LIBRARIES " -lumbra_runtime -Wl,-rpath," UMBRA_LIBRARIES " >" + said + " 2>&1 && " +
      program + " >" + said + " 2>&1";
  const int status = std::system(command.c_str());
  std::ifstream file(said);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(status, 0) << text;
  EXPECT_EQ(
      text,
      "1001 kernel 'add_to', input 'b': dimension 0 of shape [4] must be 5 as dimension 1 of input 'y' with shape [3, 5]");
  fs::remove_all(folder);
}

TEST(MarkedFunction, NamesAreChecked) {
  aot::Library library = Marked();
  library.kernels.push_back(library.kernels[0]);
  EXPECT_THROW(aot::Emit(library), Error);
  library = Marked();
  library.kernels[0].name = "add to";
  EXPECT_THROW(aot::Emit(library), Error);
  library = Marked();
  library.name = "std";
  EXPECT_THROW(aot::Emit(library), Error);
}

TEST(MarkedFunction, ALibraryMayHaveNone) {
  const std::vector<aot::File> files = aot::Emit({"none", {}, {{codegen::Target::kPlain, codegen::Target::kSse2}, {}}});
  std::string names;
  for (const aot::File& file : files) names += file.name + " ";
  EXPECT_EQ(names, "none.cc none.h none.plain.cc none.sse2.cc ");
}

}  // namespace
}  // namespace umbra
