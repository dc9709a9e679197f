#include "examples/digits/engine.h"

#include <filesystem>
#include <fstream>

#include "compiler/codegen/source.h"
#include "compiler/driver/lower.h"
#include "compiler/driver/target.h"
#include "umbra/call_site.h"
#include "umbra/error.h"

namespace digits {

SourceFolder::SourceFolder(std::string path) : path_(std::move(path)) {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  umbra::Require(!error, "cannot make the folder ", path_,
                 " for the generated sources: ", error.message(),
                 "; choose another with --sources");
}

void SourceFolder::Write(const std::string& name,
                         const std::shared_ptr<const umbra::graph::Graph>& graph) {
  umbra::codegen::SourceOptions options;
  options.target = umbra::HostTarget();
  const std::string file = path_ + "/" + name + ".cc";
  std::ofstream stream(file);
  stream << umbra::codegen::Generate(umbra::Lower(*graph), options).text;
  stream.close();
  umbra::Require(static_cast<bool>(stream), "cannot write ", file);
  names_.insert(name);
}

void ChooseEngine(const std::string& name, int threads) {
  umbra::CompileOptions options;
  if (name == "interpreter") options.engine = umbra::Engine::kInterpreter;
  if (name == "system") options.engine = umbra::Engine::kSystem;
  umbra::jit.SetOptions(options);
  umbra::runtime::CallSite::SetThreads(threads);
}

}  // namespace digits
