#include "tools/umbra/library.h"

#include <filesystem>

#include "tools/umbra/files.h"
#include "tools/umbra/symbols.h"
#include "umbra/error.h"

namespace umbra::tools {

namespace {

namespace fs = std::filesystem;

// A path as a makefile writes it.
std::string Escaped(const std::string& path) {
  std::string text;
  for (const char c : path) {
    if (c == ' ' || c == '#' || c == '\\') text += '\\';
    if (c == '$') text += '$';
    text += c;
  }
  return text;
}

}  // namespace

void DescribeTargets(parameter::FieldEntry<std::string>* field) {
  field->set_default("sse2,avx2,avx512")
      .describe("Instruction sets, with commas between: plain, sse2, avx2, avx512; cuda:sm_80,sm_90 for GPUs");
}
void DescribeMachine(parameter::FieldEntry<std::string>* field) {
  field->set_default(aot::Objects().machine).describe("Processor and system that objects are for");
}
void DescribeDebug(parameter::FieldEntry<bool>* field) {
  field->set_default(false).describe("Objects have line tables, for debuggers and profilers");
}
void DescribePrefixMap(parameter::FieldEntry<std::vector<std::string>>* field) {
  field->set_default({}).describe("OLD=NEW: files in line tables that begin with OLD begin with NEW");
}

void WriteLibrary(const aot::Library& library, const std::string& folder, const Records& records,
                  const std::optional<aot::Objects>& objects) {
  if (objects) aot::RequireObjectsFor(objects->machine);  // before anything takes time
  std::vector<aot::File> files = aot::Emit(library);
  if (objects)
    for (aot::File& object : aot::MakeObjects(files, *objects)) files.push_back(std::move(object));
  std::error_code error;
  fs::create_directories(folder, error);
  Require(!error, "cannot make the folder ", folder, ": ", error.message());
  for (const aot::File& file : files) UpdateFile((fs::path(folder) / file.name).string(), file.text);
  const std::string stamp = (fs::path(folder) / (library.name + ".stamp")).string();
  if (!records.symbols.empty()) UpdateFile(records.symbols, SymbolsText(library));
  if (!records.depfile.empty()) {
    std::string rule = Escaped(stamp) + ":";
    for (const std::string& input : records.inputs) rule += " " + Escaped(input);
    WriteFile(records.depfile, rule + "\n");
  }
  WriteFile(stamp, "");
}

}  // namespace umbra::tools
