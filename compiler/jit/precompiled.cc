#include "compiler/jit/precompiled.h"

#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendAction.h>
#include <clang/Serialization/ASTWriter.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>

#include "compiler/codegen/prelude.h"
#include "compiler/graph/op.h"
#include "runtime/opened_library.h"
#include "umbra/error.h"

namespace umbra {

namespace {

using codegen::Target;

constexpr std::size_t kTargets = std::size(codegen::kAllTargets);
constexpr std::size_t Place(Target target) { return static_cast<std::size_t>(target); }

// Calls every function of an operator, and what loads and stores, for the packets of f32. (Clang reads all instances of
// a template that it needs one of: more of them cost more than they save.)
std::string Instances(Target target) {
  std::string text;
  std::set<std::string_view> headers = {"reduce"};
  std::string calls;
  for (const graph::OpInfo& op : graph::Primitives()) {
    if (op.types != graph::OpTypes::kFloat && op.types != graph::OpTypes::kNumeric) continue;
    headers.insert(op.header);
    calls += "  (void)(" + fmt::format(fmt::runtime(op.text), "a", "b", "c") + ");\n";
  }
  for (const std::string_view header : headers)
    if (!header.empty()) text += fmt::format("#include \"umbra/prelude/{}.h\"\n", header);
  text = "#include \"umbra/kernel_prelude.h\"\n" + text + "namespace umbra::simd {\n";
  const int bytes = codegen::RegisterBytes(target);
  const std::string packet = bytes == 0 ? "float" : fmt::format("f32x{}", bytes / 4);
  for (const std::string& type : {packet, "group<" + packet + ", 4>"}) {
    if (bytes == 0 && type != packet) continue;
    text += fmt::format("inline void use(const float* p, float* q, i64 n, {0} a, {0} b, {0} c) {{\n", type) +
            fmt::format("  store(q, load<{0}>(p));\n  store_head(q, load_head<{0}>(p, n), n);\n", type) + calls + "}\n";
  }
  return text + "}\n";
}

struct Sources {
  explicit Sources(Target target) : instances(Instances(target)) {
    for (const codegen::EmbeddedFile& file : codegen::PreludeFiles()) files.push_back({"/include/" + std::string(file.name), file.text});
    files.push_back({"/prelude.h", instances});
  }
  std::string instances;
  std::vector<SourceFile> files;
};

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

std::string FileName(Target target) { return "prelude-" + std::string(Name(target)) + ".pch"; }

std::array<std::atomic<bool>, kTargets> unusable;

}  // namespace

const std::vector<SourceFile>& PrecompiledSources(Target target) {
  static const std::array<Sources, kTargets>& all =
      *new std::array<Sources, kTargets>{Sources(Target::kPlain), Sources(Target::kSse2), Sources(Target::kAvx2), Sources(Target::kAvx512)};
  return all[Place(target)].files;
}

std::vector<char> PrecompilePrelude(Target target) {
  std::string log;
  PrecompileAction action;
  const bool done = RunClang(&action, target, PrecompiledSources(target), {"/prelude.h"}, &log);
  Require(done && action.bytes().IsComplete, "Clang cannot precompile the prelude:\n", log);
  return {action.bytes().Data.begin(), action.bytes().Data.end()};
}

const llvm::MemoryBuffer* PrecompiledPrelude(Target target) {
  using Files = std::array<std::unique_ptr<llvm::MemoryBuffer>, kTargets>;
  static const Files& files = *[] {
    auto* const found = new Files;
    const std::string folder = runtime::FolderOf(reinterpret_cast<void*>(&PrecompilePrelude)) + "umbra/";
    for (const Target one : codegen::kAllTargets)
      if (auto file = llvm::MemoryBuffer::getFile(folder + FileName(one), false, false)) (*found)[Place(one)] = std::move(*file);
    return found;
  }();
  return unusable[Place(target)] ? nullptr : files[Place(target)].get();
}

void ForgetPrecompiledPrelude(Target target) { unusable[Place(target)] = true; }

}  // namespace umbra

// Writes the precompiled preludes of all targets into `folder`. Returns 0, or says on standard error what failed.
extern "C" __attribute__((visibility("default"))) int umbra_precompile_preludes(const char* folder) {
  try {
    for (const umbra::codegen::Target target : umbra::codegen::kAllTargets) {
      const std::vector<char> bytes = umbra::PrecompilePrelude(target);
      const std::filesystem::path path = std::filesystem::path(folder) / umbra::FileName(target);
      std::ofstream file(path, std::ios::binary);
      file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      file.close();
      umbra::Require(file.good(), "cannot write ", path.string());
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "umbra_precompile: {}\n", error.what());
    return 1;
  }
}
