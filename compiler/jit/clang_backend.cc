// The Clang + ORC backend, as libumbra_jit gives it to the compiler.
#include <clang/Basic/Version.h>
#include <llvm/Support/raw_ostream.h>

#include <chrono>

#include "compiler/driver/backend.h"
#include "compiler/jit/front_end.h"
#include "compiler/jit/linker.h"
#include "compiler/jit/machine_code.h"
#include "umbra/error.h"

namespace umbra {

namespace {

class Stopwatch {
 public:
  double Lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double, std::milli> lap = now - last_;
    last_ = now;
    return lap.count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

class ClangOrc : public Backend {
 public:
  std::string Id() const override { return "clang-" CLANG_VERSION_STRING; }

  ObjectCode Compile(const codegen::Source& source, codegen::Target target) override {
    ObjectCode result;
    Stopwatch watch;
    llvm::LLVMContext context;
    const auto module = ParseToModule(source, target, &context, /*for_reader=*/false);
    result.times.front_end = watch.Lap();
    const BorrowedMachine machine(target);
    Optimise(module.get(), machine.get(), target);
    result.times.optimise = watch.Lap();
    result.bytes = Emit(module.get(), machine.get(), false);
    result.times.codegen = watch.Lap();
    return result;
  }

  runtime::KernelCode Load(const ObjectCode& object, const std::string& function) override {
    return LinkObject(object.bytes, function);
  }

  std::string Print(const codegen::Source& source, codegen::Target target,
                    const std::string& form) override {
    Require(form == "llvm" || form == "asm", "unknown form '", form, "': expected llvm or asm");
    llvm::LLVMContext context;
    const auto module = ParseToModule(source, target, &context, /*for_reader=*/true);
    const BorrowedMachine machine(target);
    Optimise(module.get(), machine.get(), target);
    if (form == "asm") {
      const std::vector<char> text = Emit(module.get(), machine.get(), true);
      return {text.begin(), text.end()};
    }
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream, nullptr);
    return text;
  }
};

}  // namespace

}  // namespace umbra

extern "C" __attribute__((visibility("default"))) umbra::Backend* umbra_clang_backend() {
  static umbra::ClangOrc backend;
  return &backend;
}
