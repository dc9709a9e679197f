// Plans whose kernels run as CUDA text in the emulator. Many kernels are compiled as one file, which a test fills
// before it runs the first of them.
#ifndef UMBRA_TESTS_SUPPORT_EMULATED_H_
#define UMBRA_TESTS_SUPPORT_EMULATED_H_

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compiler/codegen/cuda/generate.h"
#include "compiler/driver/lower.h"
#include "compiler/plan/interpret.h"
#include "runtime/environment.h"
#include "umbra/error.h"

namespace umbra::emulated {

/// Host C++ with CUDA text behind the emulator, compiled and loaded.
inline void* Load(const std::string& text) {
  static int libraries = 0;  // a name that was loaded before would give what was loaded then
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      ("umbra-emulated-" + std::to_string(getpid()) + "-" + std::to_string(libraries++));
  std::filesystem::create_directories(folder);
  const std::string source = folder / "kernels.cc", library = folder / "kernels.so", log = folder / "log";
  std::ofstream(source) << text;
  const std::string command =
      runtime::ReadEnvironment().cxx +
      " -std=c++20 -O1 -w -shared -fPIC -ffp-contract=off "
      "-fno-strict-aliasing -fvisibility=hidden -fsanitize=alignment -fsanitize-undefined-trap-on-error -o " +
      library + " " + source + " >" + log + " 2>&1";
  const int status = std::system(command.c_str());
  std::ifstream said(log);
  const std::string words((std::istreambuf_iterator<char>(said)), {});
  void* const handle = status == 0 ? dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  const bool kept = std::getenv("UMBRA_KEEP_EMULATED") != nullptr;
  if (!kept) std::filesystem::remove_all(folder);
  Ensure(handle != nullptr, "the emulated kernels do not compile: ", words.substr(0, 4000));
  return handle;
}

/// What of the prelude `kernels` need, for the host.
inline std::string HostPrelude(const std::string& kernels) {
  std::string prelude = codegen::CudaPrelude(kernels);
  const std::string outside = "extern __shared__ __align__(16)";  // __shared__ is static within functions
  return prelude.replace(prelude.find(outside), outside.size(), "extern");
}

/// Kernels on their way to machine code of the host.
class Library {
 public:
  ~Library() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  /// The number of a kernel. The same text is one kernel.
  int Add(const codegen::CudaSource& source) {
    for (std::size_t k = 0; k < sources_.size(); ++k)
      if (sources_[k].kernel == source.kernel) return static_cast<int>(k);
    sources_.push_back(source);
    return static_cast<int>(sources_.size()) - 1;
  }

  void Build() {
    std::string kernels, calls;
    for (std::size_t k = 0; k < sources_.size(); ++k) {
      const codegen::CudaSource& source = sources_[k];
      const std::string& name = source.function;
      std::string undefine;
      for (const std::string& word : {name, name + "_args", name + "_finish"}) {
        kernels += "#define " + word + " k" + std::to_string(k) + "_" + word + "\n";
        undefine += "#undef " + word + "\n";
      }
      kernels += source.kernel + "std::string run_" + std::to_string(k) +
                 "(const void* args, bool finish, uint3 grid, uint3 block, std::size_t shared, bool reverse) {\n"
                 "  const auto& a = *static_cast<const " +
                 name +
                 "_args*>(args);\n"
                 "  return emulator::Launch(grid, block, shared, reverse, [&] { " +
                 (source.finish.empty() ? "" : "if (finish) " + source.finish + "(a); else ") + name + "(a); });\n}\n" +
                 undefine;
      calls += "    case " + std::to_string(k) + ": said = umbra::simd::run_" + std::to_string(k) +
               "(args, finish, grid, block, shared, reverse); break;\n";
    }
    handle_ = Load(
        "#include \"" UMBRA_EMULATOR "\"\n" + HostPrelude(kernels) + "namespace umbra::simd {\n" + kernels +
        "}\nextern \"C\" [[gnu::visibility(\"default\")]] const char* emulate(int kernel, const void* args, bool finish, const unsigned* g, "
        "const unsigned* b, std::size_t shared, bool reverse) {\n  static std::string said;\n"
        "  const uint3 grid{g[0], g[1], g[2]}, block{b[0], b[1], b[2]};\n  switch (kernel) {\n" +
        calls + "  }\n  return said.c_str();\n}\n");
    emulate_ = reinterpret_cast<Emulate>(dlsym(handle_, "emulate"));
  }

  /// Runs a launch, both passes of it. Returns what the emulator says if it cannot end.
  std::string Try(int kernel, const runtime::CudaLaunch& launch, const std::vector<std::uint64_t>& arguments,
                  bool reverse) const {
    std::string said = Pass(kernel, arguments, false, launch.grid, launch.block, launch.shared_bytes, reverse);
    if (launch.finishes()) said += Pass(kernel, arguments, true, launch.finish_grid, launch.finish_block, 0, reverse);
    return said;
  }

  const codegen::CudaSource& source(int kernel) const { return sources_[static_cast<std::size_t>(kernel)]; }

 private:
  using Emulate = const char* (*)(int, const void*, bool, const unsigned*, const unsigned*, std::size_t, bool);

  std::string Pass(int kernel, const std::vector<std::uint64_t>& arguments, bool finish, const runtime::CudaDims& grid,
                   const runtime::CudaDims& block, std::size_t shared, bool reverse) const {
    const unsigned g[] = {grid.x, grid.y, grid.z}, b[] = {block.x, block.y, block.z};
    return emulate_(kernel, arguments.data(), finish, g, b, shared, reverse);
  }

  std::vector<codegen::CudaSource> sources_;
  void* handle_ = nullptr;
  Emulate emulate_ = nullptr;
};

/// The variant that stands for others ahead of time.
inline void General(runtime::CudaVariant* variant) { *variant = variant->General(); }

/// A graph on given operands: its kernels are put into a library now and run later.
class Call {
 public:
  /// `change`: makes other variants of those that launches ask for.
  Call(Library* library, const graph::Graph& graph, const runtime::Arguments& arguments,
       const runtime::CudaLimits& limits = {}, void (*change)(runtime::CudaVariant*) = nullptr)
      : library_(*library),
        plan_(Lower(graph, true)),
        arguments_(arguments) {
    runtime::Program face;
    face.buffers = plan_.buffers;
    face.scalars = plan_.scalars;
    face.num_symbols = static_cast<int>(plan_.symbols.size());
    face.derived = plan_.derived;
    symbols_ = runtime::CheckArguments(face, arguments);
    buffers_ = arguments.inputs;
    buffers_.insert(buffers_.end(), arguments.outputs.begin(), arguments.outputs.end());
    for (std::size_t k = buffers_.size(); k < plan_.buffers.size(); ++k) {
      std::vector<index_t> shape;
      index_t size = 1;
      for (const runtime::Extent& extent : plan_.buffers[k].shape) {
        shape.push_back(extent.is_static() ? extent.value : symbols_[static_cast<std::size_t>(extent.symbol)]);
        size *= shape.back();
      }
      temporaries_.emplace_back(static_cast<std::size_t>(size + 2));
      buffers_.push_back(
          runtime::TensorRef::Dense(Aligned(&temporaries_.back()), plan_.buffers[k].dtype, std::move(shape)));
    }
    for (const auto& step : plan_.steps) {
      const auto* kernel = std::get_if<plan::Kernel>(&step);
      if (kernel == nullptr) {
        kernels_.push_back(-1);
        launches_.emplace_back();
        continue;
      }
      launches_.push_back(runtime::PlanCudaLaunch(kernel->signature, codegen::ScheduleForCuda(plan_, *kernel), buffers_,
                                                  symbols_, limits));
      runtime::CudaVariant& variant = launches_.back().variant;
      const auto known = codegen::CudaVariants(kernel->signature, codegen::ScheduleForCuda(plan_, *kernel));
      EXPECT_TRUE(std::find(known.begin(), known.end(), variant) != known.end() ||
                  std::find(known.begin(), known.end(), variant.General()) != known.end())
          << "variant " << variant.index();
      if (change != nullptr) change(&variant);
      kernels_.push_back(library->Add(codegen::GenerateCuda(plan_, *kernel, launches_.back().variant)));
    }
  }

  void Run(bool reverse) {
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      if (kernels_[k] >= 0) RunKernel(std::get<plan::Kernel>(plan_.steps[k]), launches_[k], kernels_[k], reverse);
      else RunGemm(std::get<plan::Gemm>(plan_.steps[k]).step);
    }
  }

  const plan::Plan& plan() const { return plan_; }
  const std::vector<runtime::CudaLaunch>& launches() const { return launches_; }
  /// Of the plan.
  const std::vector<runtime::TensorRef>& buffers() const { return buffers_; }
  const std::vector<index_t>& symbols() const { return symbols_; }

 private:
  static void* Aligned(std::vector<double>* memory) {
    return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(memory->data()) + 15) / 16 * 16);
  }

  // Nothing to do if all that is stored is empty.
  bool StoresNothing(const plan::Kernel& kernel) const {
    for (const auto& access : kernel.signature.operands) {
      if (!access.store) continue;
      const auto& shape = buffers_[static_cast<std::size_t>(access.buffer)].shape;
      if (std::find(shape.begin(), shape.end(), 0) == shape.end()) return false;
    }
    return true;
  }

  void RunKernel(const plan::Kernel& kernel, const runtime::CudaLaunch& launch, int number, bool reverse) {
    if (StoresNothing(kernel)) return;
    std::vector<void*> data;
    for (const auto& access : kernel.signature.operands)
      data.push_back(buffers_[static_cast<std::size_t>(access.buffer)].data);
    std::vector<umbra_scalar> scalars;
    for (int index : kernel.signature.scalars) scalars.push_back(arguments_.scalars[static_cast<std::size_t>(index)]);
    std::vector<double> scratch(launch.scratch_bytes / 8 + 4, -1e300);
    // A thread takes several rows, too, as it does in large launches.
    runtime::CudaLaunch own = launch;
    if (reverse && own.variant.form == runtime::CudaForm::kElements) own.grid.y = (own.grid.y + 4) / 5;
    EXPECT_EQ(library_.Try(number, own, runtime::CudaArguments(launch, data, scalars, Aligned(&scratch)), reverse), "")
        << library_.source(number).kernel;
  }

  void RunGemm(runtime::GemmStep step) {
    plan::Plan product;
    runtime::Arguments arguments;
    const int operands[] = {step.a, step.b, step.c};
    for (int k = 0; k < 3; ++k) {
      const runtime::TensorRef& tensor = buffers_[static_cast<std::size_t>(operands[k])];
      runtime::Buffer buffer;
      buffer.name = std::string(1, "abc"[k]);
      buffer.kind = k < 2 ? runtime::Buffer::Kind::kInput : runtime::Buffer::Kind::kOutput;
      buffer.dtype = tensor.dtype;
      for (index_t extent : tensor.shape) buffer.shape.push_back(runtime::Extent::Static(extent));
      product.buffers.push_back(std::move(buffer));
      (k < 2 ? arguments.inputs : arguments.outputs).push_back(tensor);
    }
    step.a = 0, step.b = 1, step.c = 2;
    product.steps.emplace_back(plan::Gemm{step, {}});
    plan::Interpret(product, arguments);
  }

  const Library& library_;
  plan::Plan plan_;
  runtime::Arguments arguments_;
  std::vector<runtime::TensorRef> buffers_;
  std::vector<index_t> symbols_;
  std::vector<std::vector<double>> temporaries_;
  std::vector<runtime::CudaLaunch> launches_;
  std::vector<int> kernels_;
};

}  // namespace umbra::emulated

#endif  // UMBRA_TESTS_SUPPORT_EMULATED_H_
