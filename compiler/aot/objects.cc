// Sources of kernels to objects, so that the speed of the code does not depend on the compiler of the build.
#include "compiler/aot/aot.h"
#include "compiler/codegen/prelude.h"
#include "compiler/driver/backend.h"
#include "runtime/disk_cache.h"
#include "runtime/side_by_side.h"
#include "umbra/error.h"

namespace umbra::aot {

namespace {

std::string MakeObject(const File& file, const ObjectOptions& options) {
  const codegen::Target target = *file.target;
  const std::string backend = ClangBackendId();
  std::vector<std::string_view> parts = {"object",
                                         backend,
                                         Name(target),
                                         codegen::PreludeId(),
                                         file.text,
                                         options.file,
                                         options.line_table ? "lines" : ""};
  parts.insert(parts.end(), options.prefix_maps.begin(), options.prefix_maps.end());
  const std::string key = runtime::CacheKey(parts);
  if (const auto kept = runtime::DiskCache::Default().Read(key)) return {kept->begin(), kept->end()};
  const std::vector<char> made = ClangBackend().MakeObject({file.text, {}}, target, options);
  std::string object(made.begin(), made.end());
  runtime::DiskCache::Default().Write(key, object);
  return object;
}

}  // namespace

void RequireObjectsFor(const std::string& machine) {
  Require(machine == "x86_64-linux", "no objects can be made for the machine '", machine,
          "', only for x86_64-linux; compile the sources with its compiler (--as sources)");
}

std::vector<File> MakeObjects(const std::vector<File>& files, const Objects& objects) {
  RequireObjectsFor(objects.machine);
  std::vector<const File*> sources;
  for (const File& file : files)
    if (file.target) sources.push_back(&file);
  std::vector<File> made(sources.size());
  runtime::SideBySide(sources.size(), [&](std::size_t k) {
    const File& source = *sources[k];
    made[k] = {source.name.substr(0, source.name.rfind('.')) + ".o",
               MakeObject(source, {source.name, objects.line_tables, objects.prefix_maps}),
               {}};
  });
  return made;
}

}  // namespace umbra::aot
