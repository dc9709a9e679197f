// Kernels that were compiled ahead of time, on GPUs: which image is taken, what calls say that do not fit, and a
// generated library against the code of the same library for the CPU.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "compiler/aot/aot.h"
#include "compiler/codegen/cuda/generate.h"
#include "compiler/driver/lower.h"
#include "compiler/driver/nvrtc.h"
#include "compiler/graph/parse.h"
#include "compiler/plan/build.h"
#include "runtime/program_text.h"
#include "tests/support/cuda_stand_in.h"
#include "tests/support/on_gpu.h"
#include "tests/support/testing.h"
#include "umbra/kernel_call.h"

namespace umbra {
namespace {

namespace fs = std::filesystem;
using cuda::Architecture;
using cuda::Image;
using cuda::ImageForm;

const int kChosen = on_gpu::UseStandIns();

Image Of(const char* architecture, ImageForm form, std::string bytes = "image of scale") {
  return {Architecture::Parse(architecture), form, std::move(bytes)};
}

// y = x * s, by hand: its images are for the stand-in, in one variant of each kind of operands.
class ScaleKernel {
 public:
  explicit ScaleKernel(const std::vector<Image>& images, int num_targets = 0) : images_(cuda::PackImages(images)) {
    const plan::Plan plan =
        Lower(*graph::Parse("kernel scale(x: f32[n], s: f32) -> (y: f32[n]) { y = x * s }", "test").at(0));
    program_ = runtime::ProgramToText(plan::ToProgram(plan));
    const auto& kernel = std::get<plan::Kernel>(plan.steps.at(0));
    const runtime::CudaSchedule schedule = codegen::ScheduleForCuda(plan, kernel);
    schedules_ = runtime::SchedulesToText({schedule});
    for (const runtime::CudaVariant& variant : codegen::CudaVariants(kernel.signature, schedule))
      codes_.push_back({0, variant.index(), "scale", images_.data(), images_.size()});
    gpu_ = {"", program_.c_str(), schedules_.c_str(), codes_.data(), static_cast<int>(codes_.size())};
    desc = {"scale", "", "test:1", 1, 1, 1, num_targets, kOperands, kScalars, nullptr, "", &state_, &gpu_};
  }
  ScaleKernel(const ScaleKernel&) = delete;

  void Call(const umbra_tensor* x, const umbra_tensor* y) const {
    umbra_scalar scalar;
    scalar.f32 = 3;
    const umbra_tensor* const operands[] = {x, y};
    detail::Check(umbra_call(&desc, operands, &scalar, 0));
  }

  umbra_kernel_desc desc{};

 private:
  static constexpr std::int64_t kShape[] = {-1};
  static constexpr umbra_operand_desc kOperands[] = {{"x", UMBRA_DTYPE_f32, 1, kShape},
                                                     {"y", UMBRA_DTYPE_f32, 1, kShape}};
  static constexpr umbra_scalar_desc kScalars[] = {{"s", UMBRA_DTYPE_f32}};
  std::string images_, program_, schedules_;
  std::vector<umbra_gpu_code> codes_;
  umbra_gpu_desc gpu_{};
  void* state_ = nullptr;
};

class CudaAheadOfTime : public on_gpu::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(kChosen, 0);
    on_gpu::Test::SetUp();
    stand_in::SetKernel("scale", [this](const stand_in::Launch& launch) {
      launches_.push_back(launch);
      return 0;
    });
  }

  void TearDown() override {
    x_ = y_ = TensorContainer<gpu, 1>();
    on_gpu::Test::TearDown();
  }

  TensorContainer<gpu, 1> x_{Shape1(8), 2.0f}, y_{Shape1(8), 0.0f};
  std::vector<stand_in::Launch> launches_;  // as they were run
};

// Images that are not the right ones know no kernel of this name.
TEST_F(CudaAheadOfTime, TheImageOfTheDeviceIsTaken) {
  const std::string other = "image of others";
  const std::vector<std::vector<Image>> tables = {
      {Of("sm_80", ImageForm::kCubin, other), Of("sm_90", ImageForm::kCubin), Of("sm_90", ImageForm::kPtx, other)},
      {Of("sm_100", ImageForm::kCubin, other), Of("sm_80", ImageForm::kCubin, other), Of("sm_80", ImageForm::kPtx)}};
  for (const auto& images : tables) {
    const ScaleKernel kernel(images);
    for (int round = 0; round < 2; ++round) kernel.Call(detail::CallOperand(x_), detail::CallOperand(y_));
    const int loads = stand_in::Calls("cuModuleLoadDataEx");
    kernel.Call(detail::CallOperand(TBlob(x_)), detail::CallOperand(TBlob(y_)));
    EXPECT_EQ(stand_in::Calls("cuModuleLoadDataEx"), loads);
  }
  cuda::Wait(nullptr);
  EXPECT_EQ(launches_.size(), 6u);
}

TEST_F(CudaAheadOfTime, WhatDoesNotFitIsSaid) {
  const ScaleKernel none(
      {Of("sm_80", ImageForm::kCubin), Of("sm_100", ImageForm::kCubin), Of("sm_100", ImageForm::kPtx)});
  EXPECT_SAYS(
      "kernel 'scale' has no image for a GPU of compute capability 9.0: there is sm_80, sm_100, sm_100 (PTX); compile it for sm_90 as well",
      none.Call(detail::CallOperand(x_), detail::CallOperand(y_)));
  const ScaleKernel kernel({Of("sm_90", ImageForm::kCubin)});
  TensorContainer<cpu, 1> here(Shape1(8), 1.0f);
  EXPECT_SAYS("kernel 'scale': operand 'x' is in memory of a GPU, but 'y' is not; copy one of them",
              kernel.Call(detail::CallOperand(x_), detail::CallOperand(here)));
  EXPECT_SAYS(
      "kernel 'scale' was compiled for GPUs alone, and its operands are in memory of the CPU: add an instruction set",
      kernel.Call(detail::CallOperand(here), detail::CallOperand(here)));
  EXPECT_SAYS("output 'y': dimension 0 of shape [4] must be 8",
              kernel.Call(detail::CallOperand(x_), detail::CallOperand(y_.Slice(0, 4))));
  const detail::CallOperand x(x_);
  umbra_tensor wrong = *static_cast<const umbra_tensor*>(x);
  wrong.device = 7;
  EXPECT_SAYS("operand 'x': 7 is no umbra_device", kernel.Call(&wrong, detail::CallOperand(y_)));
  ScaleKernel cpu_only({});
  cpu_only.desc.gpu = nullptr;
  EXPECT_SAYS(
      "kernel 'scale' has no code for GPUs, and its operands are in memory of one: add a target such as cuda:sm_90",
      cpu_only.Call(detail::CallOperand(x_), detail::CallOperand(y_)));
  ScaleKernel damaged({Of("sm_90", ImageForm::kCubin)});
  umbra_gpu_desc gpu_desc = *damaged.desc.gpu;
  std::vector<umbra_gpu_code> codes(gpu_desc.codes, gpu_desc.codes + gpu_desc.num_codes);
  for (umbra_gpu_code& one : codes) one.image_bytes -= 1;
  gpu_desc.codes = codes.data();
  damaged.desc.gpu = &gpu_desc;
  EXPECT_SAYS("no table of GPU images, or are damaged", damaged.Call(detail::CallOperand(x_), detail::CallOperand(y_)));
  const std::string no_schedule = runtime::SchedulesToText({});
  gpu_desc.schedules = no_schedule.c_str();
  ScaleKernel fewer({Of("sm_90", ImageForm::kCubin)});
  fewer.desc.gpu = &gpu_desc;
  EXPECT_SAYS("generate it anew", fewer.Call(detail::CallOperand(x_), detail::CallOperand(y_)));
  EXPECT_TRUE(launches_.empty());
}

// The stream is the output's; without one, an input's.
TEST_F(CudaAheadOfTime, WorkGoesToTheStreamOfAnOperand) {
  const ScaleKernel kernel({Of("sm_90", ImageForm::kCubin)});
  Stream<gpu> first, second;
  const auto call = [&](Stream<gpu>* of_x, Stream<gpu>* of_y) {
    x_.set_stream(of_x);
    y_.set_stream(of_y);
    kernel.Call(detail::CallOperand(x_), detail::CallOperand(y_));
  };
  call(&first, &second);
  EXPECT_TRUE(first.CheckIdle());
  EXPECT_FALSE(second.CheckIdle());
  second.Wait();
  EXPECT_EQ(launches_.size(), 1u);
  call(&first, nullptr);
  EXPECT_FALSE(first.CheckIdle());
  first.Wait();
  EXPECT_EQ(launches_.size(), 2u);
  x_.set_stream(nullptr);
}

// A library as it is shipped, for the CPU and for GPUs; NVRTC's stand-in makes images that the emulator runs.
TEST_F(CudaAheadOfTime, ALibraryComputesWhatItComputesOnTheCpu) {
  aot::Library library;
  library.name = "lib";
  library.targets = aot::ParseTargets("plain,cuda:sm_90");
  const char* const texts[] = {
      "kernel scaled(x: f32[n, m], b: f32[m], s: f32) -> (y: f32[n, m]) { y = relu(x * s + broadcast<1>(b)) }",
      "kernel softmax(x: f32[n, 64]) -> (y: f32[n, 64], largest: f32[n]) {\n  largest = reduce_with_axis<maximum>(x, 1)\n"
      "  e = exp(x - broadcast<0>(largest))\n  y = e / broadcast<0>(reduce_with_axis<sum>(e, 1))\n}",
      "kernel updates(a: f32[n], b: f32[m], s: f32) -> (x: f32[n], y: f32[m]) {\n  x = a * s + 1\n  y = b * s + 1\n}",
      "kernel weighted(x: f16[n, k], w: f16[k, m], b: f16[m], s: f32) -> (y: f16[n, m]) { y = relu(s * dot(x, w) + broadcast<1>(b)) }"};
  // More updates than have room in the 4 KiB of arguments that a library's launches have.
  constexpr int kMany = 40;
  std::string inputs, outputs, statements;
  for (int k = 0; k < kMany; ++k) {
    const std::string n = std::to_string(k), of = n + ": f32[n" + n + "], ";
    inputs += "a" + of;
    outputs += "y" + of;
    statements += "  y" + n + " = a" + n + " * s + 1\n";
  }
  const std::string many =
      "kernel weights(" + inputs + "s: f32) -> (" + outputs.substr(0, outputs.size() - 2) + ") {\n" + statements + "}";
  for (const std::string& text :
       {std::string(texts[0]), std::string(texts[1]), std::string(texts[2]), std::string(texts[3]), many}) {
    aot::Kernel kernel;
    kernel.graph = graph::Parse(text, "test").at(0);
    kernel.name = kernel.graph->name();
    kernel.file = "test.umb";
    library.kernels.push_back(std::move(kernel));
  }
  const fs::path folder = fs::path(testing::TempDir()) / ("umbra-cuda-aot-" + std::to_string(getpid()));
  fs::create_directories(folder);
  std::string sources, names;
  const std::vector<aot::File> files = aot::Emit(library);
  for (const aot::File& file : files) {
    std::ofstream(folder / file.name) << file.text;
    names += file.name + " ";
    if (file.name.back() == 'c') sources += " " + (folder / file.name).string();
  }
  EXPECT_EQ(names, "lib.cc lib.cuda.cc lib.h lib.plain.cc ");
  const std::vector<aot::File> again = aot::Emit(library);
  for (std::size_t k = 0; k < files.size(); ++k) EXPECT_EQ(files[k].text, again[k].text) << files[k].name;
  const std::string object = (folder / "lib.so").string();
  const std::string command =
      std::string(UMBRA_CXX_COMPILER
                  " -std=c++17 -Wall -Wextra -Werror -O1 -ffp-contract=off -fwrapv -w -fPIC -shared -I " UMBRA_ROOT
                  "/include -o ") +
      object + sources + " -L " UMBRA_LIBRARIES " -lumbra_runtime -Wl,-rpath," UMBRA_LIBRARIES;
  ASSERT_EQ(std::system(command.c_str()), 0);
  void* const handle = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  fs::remove_all(folder);
  ASSERT_NE(handle, nullptr) << dlerror();
  const auto* kernels = static_cast<const umbra_kernel_desc*>(dlsym(handle, "lib_kernels"));
  ASSERT_NE(kernels, nullptr);
  EXPECT_STREQ(kernels[0].gpu->architectures, "sm_90");

  std::mt19937 random(7);
  umbra_scalar scalar;
  scalar.f32 = 0.75f;
  const auto compare = [&](const umbra_kernel_desc& kernel, const std::vector<std::vector<index_t>>& shapes,
                           index_t padding, DType type = DType::kFloat32, double tolerance = 1e-6) {
    std::vector<std::unique_ptr<drawn::Tensor>> here, back;
    std::vector<std::unique_ptr<on_gpu::There>> there;
    std::vector<umbra_tensor> tensors[2];
    for (const auto& shape : shapes) {
      std::mt19937 same = random;
      here.push_back(std::make_unique<drawn::Tensor>(type, shape, shape.size() == 2 ? padding : 0, &same));
      back.push_back(std::make_unique<drawn::Tensor>(type, shape, shape.size() == 2 ? padding : 0, &random));
      there.push_back(std::make_unique<on_gpu::There>(*back.back()));
    }
    for (std::size_t k = 0; k < shapes.size(); ++k)
      for (const int device : {UMBRA_DEVICE_CPU, UMBRA_DEVICE_GPU}) {
        const runtime::TensorRef& ref = device == UMBRA_DEVICE_GPU ? there[k]->ref : here[k]->ref;
        tensors[device].push_back({ref.data, ref.shape.data(), ref.stride.data(), static_cast<int>(ref.shape.size()),
                                   type == DType::kFloat32 ? UMBRA_DTYPE_f32 : UMBRA_DTYPE_f16, device, nullptr});
      }
    for (const auto& of_device : tensors) {
      std::vector<const umbra_tensor*> operands;
      for (const umbra_tensor& tensor : of_device) operands.push_back(&tensor);
      ASSERT_EQ(umbra_call(&kernel, operands.data(), &scalar, 0), UMBRA_OK) << umbra_error_message();
    }
    for (std::size_t k = static_cast<std::size_t>(kernel.num_inputs); k < shapes.size(); ++k) {
      there[k]->CopyBack(back[k].get());
      drawn::ExpectSame(*here[k], *back[k], tolerance, kernel.name);
    }
  };
  // In packets and without; rows that lie apart are operands of any stride where they do not divide.
  for (const index_t m : {64, 7})
    for (const index_t padding : {0, 1, 4}) compare(kernels[0], {{5, m}, {m}, {5, m}}, padding);
  for (const index_t padding : {0, 1}) compare(kernels[1], {{19, 64}, {19, 64}, {19}}, padding);
  // Equal kernels have their code in common, and run as one launch.
  const int launches = stand_in::Calls("cuLaunchKernel");
  compare(kernels[2], {{5}, {4000}, {5}, {4000}}, 0);
  EXPECT_EQ(stand_in::Calls("cuLaunchKernel"), launches + 1);
  // A product with its bias, and what is behind it.
  compare(kernels[3], {{7, 13}, {13, 6}, {6}, {7, 6}}, 1, DType::kFloat16, 4e-3);
  EXPECT_EQ(stand_in::Calls("cuLaunchKernel"), launches + 2);
  std::vector<std::vector<index_t>> shapes;
  for (int k = 0; k < 2 * kMany; ++k) shapes.push_back({1 + k % kMany * 3});
  compare(kernels[4], shapes, 0);
  EXPECT_EQ(stand_in::Calls("cuLaunchKernel"), launches + 4);
  std::set<const void*> images;
  for (int k = 0; k < kernels[2].gpu->num_codes; ++k) images.insert(kernels[2].gpu->codes[k].images);
  EXPECT_EQ(static_cast<int>(images.size()) * 2, kernels[2].gpu->num_codes);
}

}  // namespace
}  // namespace umbra
