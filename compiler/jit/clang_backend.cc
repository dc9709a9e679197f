// The Clang + ORC backend, as libumbra_jit gives it to the compiler.
#include <clang/Basic/Version.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/IPO/Internalize.h>

#include <chrono>

#include "compiler/driver/backend.h"
#include "compiler/jit/compiled_functions.h"
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
    ParseOptions options;
    options.compiled_functions = true;
    const auto module = ParseToModule(source, target, &context, options);
    CopyCompiledFunctions(module.get(), target);
    result.times.front_end = watch.Lap();
    const BorrowedMachine machine(target, source.fast);
    Optimise(module.get(), machine.get(), target);
    result.times.optimise = watch.Lap();
    result.bytes = machine.Emit(module.get());
    result.times.codegen = watch.Lap();
    return result;
  }

  std::vector<char> MakeObject(const codegen::Source& source, codegen::Target target,
                               const ObjectOptions& options) override {
    ParseOptions parse;
    parse.file = options.file;
    parse.whole_prelude = options.line_table;
    // Whoever links the object may unwind through it. Columns would be those of the generated text.
    parse.arguments = {"-main-file-name",
                       options.file,
                       "-funwind-tables=2",
                       "-fdebug-compilation-dir=.",
                       "-fdebug-prefix-map=/include/=",
                       "-gno-column-info"};
    if (options.line_table)
      parse.arguments.insert(parse.arguments.end(),
                             {"-debug-info-kind=line-tables-only", "-dwarf-version=5", "-debugger-tuning=gdb"});
    for (const std::string& map : options.prefix_maps) parse.arguments.push_back("-fdebug-prefix-map=" + map);
    llvm::LLVMContext context;
    const auto module = ParseToModule(source, target, &context, parse);
    // What the linker could merge with the same of another instruction set stays inside.
    llvm::internalizeModule(*module, [](const llvm::GlobalValue& value) { return !value.isWeakForLinker(); });
    const BorrowedMachine machine(target, source.fast);
    Optimise(module.get(), machine.get(), target);
    return machine.Emit(module.get());
  }

  runtime::KernelCode Load(const ObjectCode& object, const std::string& function) override {
    return LinkObject(object.bytes, function);
  }

  std::string Print(const codegen::Source& source, codegen::Target target, const std::string& form) override {
    Require(form == "llvm" || form == "asm", "unknown form '", form, "': expected llvm or asm");
    llvm::LLVMContext context;
    ParseOptions options;
    options.value_names = true;
    const auto module = ParseToModule(source, target, &context, options);
    const BorrowedMachine machine(target, source.fast);
    Optimise(module.get(), machine.get(), target);
    if (form == "asm") return Assembly(module.get(), machine.get());
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
