#include "compiler/jit/precompiled.h"

#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendAction.h>
#include <clang/Serialization/ASTWriter.h>
#include <fmt/format.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/Support/raw_ostream.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include "compiler/codegen/prelude.h"
#include "compiler/graph/op.h"
#include "compiler/jit/compiled_functions.h"
#include "compiler/jit/machine_code.h"
#include "runtime/opened_library.h"
#include "umbra/error.h"

namespace umbra {

namespace {

using codegen::Target;

constexpr std::size_t kTargets = std::size(codegen::kAllTargets);
constexpr std::size_t Place(Target target) { return static_cast<std::size_t>(target); }

constexpr const char *kSource = "/prelude.h", *kTree = "pch", *kCode = "bc", *kObject = "o";
constexpr const char* kUse = "_ZN5umbra4simd3useE";  // how names of `use` begin

// Calls what kernels do that reduce rows of `packet`, of f32.
std::string UseReductions(const std::string& packet, int width) {
  std::string text = fmt::format(
      "inline void use(const float* p, float* q, i64 n, {0} a, {0}w group) {{\n"
      "  const Divisor by(*p);\n"
      "  store(q + rows_at_once(n, n) + rows_ahead<float>(n, n, n), keep(a, n, 0.0f) / by);\n",
      packet);
  for (const int partials : {32, 64})
    for (const char* const join : {"Sum", "Maximum"})
      text += fmt::format("  {{ {0} parts[{1}]; join_group<{2}>(parts, group, 0); *q++ = fold<{2}>(parts); }}\n",
                          packet, partials / width, join);
  return text + "}\n";
}

// Calls every function of an operator, and what loads and stores, for the packets of f32. (Clang reads all instances of
// a template that it needs one of: more of them cost more than they save.)
std::string Instances(Target target) {
  std::string text;
  std::set<std::string_view> headers = {"reduce", "scan", "panel", "tile"};
  std::string calls;
  for (const graph::OpInfo& op : graph::Primitives()) {
    if (op.types != graph::OpTypes::kFloat && op.types != graph::OpTypes::kNumeric) continue;
    headers.insert(op.header);
    calls += "  (void)(" + fmt::format(fmt::runtime(op.text), "a", "b", "c") + ");\n";
    if (op.name == "exp" || op.name == "exp2") calls += fmt::format("  (void){}_beside_1(a);\n", op.name);
  }
  for (const std::string_view header : headers)
    if (!header.empty()) text += fmt::format("#include \"umbra/prelude/{}.h\"\n", header);
  text = "#include \"umbra/kernel_prelude.h\"\n" + text + "namespace umbra::simd {\n";
  const int bytes = codegen::RegisterBytes(target);
  const std::string packet = bytes == 0 ? "float" : fmt::format("f32x{}", bytes / 4);
  for (const std::string& type : {packet, packet + "w"}) {
    if (bytes == 0 && type != packet) continue;
    text += fmt::format("inline void use(const float* p, float* q, i64 n, {0} a, {0} b, {0} c) {{\n", type) +
            fmt::format("  store(q, load<{0}>(p));\n  store_head(q, load_head<{0}>(p, n), n);\n", type) + calls + "}\n";
  }
  if (bytes > 0) text += UseReductions(packet, bytes / 4);
  return text + "}\n";
}

// The files of the prelude, and `instances` of it.
std::vector<SourceFile> Sources(llvm::StringRef instances) {
  std::vector<SourceFile> files = PreludeSources();
  files.push_back({kSource, instances});
  return files;
}

class PrecompileAction : public clang::ASTFrontendAction {
 public:
  PrecompileAction() : bytes_(std::make_shared<clang::PCHBuffer>()) {}
  const clang::PCHBuffer& bytes() const { return *bytes_; }

 protected:
  clang::TranslationUnitKind getTranslationUnitKind() override { return clang::TU_Prefix; }
  bool BeginSourceFileAction(clang::CompilerInstance& instance) override {
    instance.getLangOpts().CompilingPCH = true;
    return true;
  }
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& instance, llvm::StringRef) override {
    return std::make_unique<clang::PCHGenerator>(instance.getPreprocessor(), instance.getModuleCache(), "", "", bytes_,
                                                 llvm::ArrayRef<std::shared_ptr<clang::ModuleFileExtension>>(),
                                                 /*AllowASTWithErrors=*/false, /*IncludeTimestamps=*/false);
  }

 private:
  std::shared_ptr<clang::PCHBuffer> bytes_;
};

// The syntax tree, for -include-pch.
std::vector<char> PrecompiledTree(Target target) {
  std::string log;
  PrecompileAction action;
  const std::string instances = Instances(target);
  const bool done = RunClang(&action, target, FilesInMemory(Sources(instances)), {kSource}, &log);
  Require(done && action.bytes().IsComplete, "Clang cannot precompile the prelude:\n", log);
  return {action.bytes().Data.begin(), action.bytes().Data.end()};
}

// What `use` calls, simplified as far as it can be without the kernel that it will be part of.
std::vector<char> PrecompiledCode(Target target) {
  std::string log;
  llvm::LLVMContext context;
  const std::string instances = Instances(target);
  Reader reader(target, FilesInMemory(Sources(instances)), {"-femit-all-decls", kNoNames});
  const auto module = reader.Read({kSource, instances}, &context, nullptr, &log);
  Require(module != nullptr, "Clang cannot compile the prelude:\n", log);
  std::vector<llvm::Function*> users;
  std::set<llvm::Function*> called;
  for (llvm::Function& function : *module) {
    if (!function.getName().starts_with(kUse)) continue;
    users.push_back(&function);
    for (const llvm::Instruction& instruction : llvm::instructions(function))
      if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction))
        if (llvm::Function* const callee = call->getCalledFunction(); callee != nullptr && !callee->isDeclaration())
          called.insert(callee);
  }
  for (llvm::Function* const user : users) user->eraseFromParent();
  const auto set_linkage = [](llvm::GlobalObject* object, llvm::GlobalValue::LinkageTypes linkage) {
    if (object->isDeclaration()) return;
    object->setComdat(nullptr);
    object->setLinkage(linkage);
  };
  for (llvm::Function& function : *module)
    set_linkage(&function,
                called.count(&function) > 0 ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage);
  for (llvm::GlobalVariable& variable : module->globals()) set_linkage(&variable, llvm::GlobalValue::InternalLinkage);
  const BorrowedMachine machine(target, /*fast=*/false);
  SimplifyPrelude(module.get(), machine.get());
  for (llvm::Function* const function : called) set_linkage(function, llvm::GlobalValue::LinkOnceODRLinkage);
  module->setSourceFileName(codegen::PreludeId());
  if (llvm::NamedMDNode* const compiler = module->getNamedMetadata("llvm.ident"))
    compiler->eraseFromParent();  // the kernel says it
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::WriteBitcodeToFile(*module, stream);
  return {bytes.begin(), bytes.end()};
}

std::string FileName(Target target, const char* kind) { return fmt::format("prelude-{}.{}", Name(target), kind); }

void WriteFile(const std::filesystem::path& path, const std::vector<char>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  Require(file.good(), "cannot write ", path.string());
}

std::array<std::atomic<bool>, kTargets> unusable;

struct Found {
  explicit Found(Target target) {
    prelude.tree = ReadBeside(target, kTree);
    prelude.code = ReadBeside(target, kCode);
    if (prelude.tree == nullptr || prelude.code == nullptr) return;
    instances = Instances(target);
    std::vector<SourceFile> files = Sources(instances);
    files.push_back({kPrecompiledTree, prelude.tree->getBuffer()});
    prelude.files = FilesInMemory(files);
  }
  std::string instances;
  PrecompiledPrelude prelude;
};

}  // namespace

std::vector<SourceFile> PreludeSources() {
  std::vector<SourceFile> files;
  for (const codegen::EmbeddedFile& file : codegen::PreludeFiles())
    files.push_back({"/include/" + std::string(file.name), file.text});
  return files;
}

std::unique_ptr<llvm::MemoryBuffer> ReadBeside(Target target, const char* kind) {
  const std::string folder = runtime::FolderOf(reinterpret_cast<void*>(&FindPrecompiledPrelude)) + "umbra/";
  auto file = llvm::MemoryBuffer::getFile(folder + FileName(target, kind), false, false);
  return file ? std::move(*file) : nullptr;
}

const PrecompiledPrelude* FindPrecompiledPrelude(Target target) {
  static std::array<std::once_flag, kTargets> once;
  static std::array<const Found*, kTargets> found;  // never destroyed: threads may outlive static objects
  std::call_once(once[Place(target)], [&] { found[Place(target)] = new Found(target); });
  const PrecompiledPrelude& prelude = found[Place(target)]->prelude;
  return unusable[Place(target)] || prelude.files == nullptr ? nullptr : &prelude;
}

void ForgetPrecompiledPrelude(Target target) { unusable[Place(target)] = true; }

}  // namespace umbra

// Writes the precompiled preludes of all targets into `folder`. Returns 0, or says on standard error what failed.
extern "C" __attribute__((visibility("default"))) int umbra_precompile_preludes(const char* folder) {
  try {
    for (const umbra::codegen::Target target : umbra::codegen::kAllTargets) {
      const std::filesystem::path into = folder;
      umbra::WriteFile(into / umbra::FileName(target, umbra::kTree), umbra::PrecompiledTree(target));
      umbra::WriteFile(into / umbra::FileName(target, umbra::kCode), umbra::PrecompiledCode(target));
      umbra::WriteFile(into / umbra::FileName(target, umbra::kObject), umbra::CompileFunctions(target));
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "umbra_precompile: {}\n", error.what());
    return 1;
  }
}
