#include "compiler/codegen/prelude.h"
#include "compiler/driver/kernel_cache.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>

#include "compiler/driver/backend.h"
#include "runtime/disk_cache.h"
#include "runtime/object_loader.h"
#include "umbra/compile.h"
#include "umbra/error.h"

namespace umbra {

namespace {

constexpr std::string_view kCacheVersion = "umbra-0.1.0/1";

// The kernel without the user's names: what the machine code depends on.
struct Anonymous {
  plan::Plan plan;
  plan::Kernel kernel;
};

Anonymous WithoutNames(const plan::Plan& plan, const plan::Kernel& kernel) {
  Anonymous result;
  result.plan.name = "kernel";
  result.plan.buffers = plan.buffers;
  result.plan.scalars = plan.scalars;
  result.plan.symbols = plan.symbols;
  for (std::size_t k = 0; k < plan.buffers.size(); ++k)
    result.plan.buffers[k].name = fmt::format("b{}", k);
  for (std::size_t k = 0; k < plan.scalars.size(); ++k)
    result.plan.scalars[k].first = fmt::format("s{}", k);
  result.kernel = kernel;
  result.kernel.signature.name = "kernel";
  result.kernel.summary.clear();
  for (plan::Value& value : result.kernel.values) value.label.clear();
  return result;
}

struct Entry {
  bool ready = false;
  runtime::KernelCode code;
};

std::mutex g_mutex;
std::condition_variable g_ready;
std::map<std::string, Entry> g_entries;
CompileStatistics g_statistics;

// A disk entry is the name of the function, a NUL, and the object.
std::optional<runtime::KernelCode> LoadFromDisk(const std::string& key, bool system_compiler) {
  const auto payload = runtime::DiskCache::Default().Read(key);
  if (!payload) return std::nullopt;
  const std::string_view bytes(payload->data(), payload->size());
  const std::size_t name_end = bytes.find('\0');
  if (name_end == std::string_view::npos) return std::nullopt;
  const std::string function(bytes.substr(0, name_end));
  const std::string_view object = bytes.substr(name_end + 1);
  try {
    if (!system_compiler) return runtime::LoadObject(object, function);
    return SystemBackend().Load({{object.begin(), object.end()}, {}}, function);
  } catch (const Error&) {
    return std::nullopt;  // an entry that does not load is compiled anew
  }
}

runtime::KernelCode CompileNow(const plan::Plan& plan, const plan::Kernel& kernel,
                               const codegen::SourceOptions& options, Backend& backend,
                               const std::string& disk_key) {
  const codegen::Source source = codegen::Generate(plan, kernel, options);
  const ObjectCode object = backend.Compile(source, options.target);
  const auto start = std::chrono::steady_clock::now();
  runtime::KernelCode code = backend.Load(object, source.functions.at(0));
  const std::chrono::duration<double, std::milli> link = std::chrono::steady_clock::now() - start;
  if (!disk_key.empty()) {
    std::string payload = source.functions[0];
    payload.push_back('\0');
    payload.append(object.bytes.begin(), object.bytes.end());
    runtime::DiskCache::Default().Write(disk_key, payload);
  }
  const std::lock_guard lock(g_mutex);
  ++g_statistics.compiled;
  g_statistics.front_end_ms += object.times.front_end;
  g_statistics.optimise_ms += object.times.optimise;
  g_statistics.codegen_ms += object.times.codegen;
  g_statistics.link_ms += object.times.link + link.count();
  return code;
}

}  // namespace

CompileStatistics GetCompileStatistics() {
  const std::lock_guard lock(g_mutex);
  return g_statistics;
}

runtime::KernelCode MakeKernelCode(const plan::Plan& plan, const plan::Kernel& kernel,
                                   const codegen::SourceOptions& options, bool system_compiler,
                                   bool use_disk_cache) {
  const Anonymous anonymous = WithoutNames(plan, kernel);
  const std::string text = codegen::Generate(anonymous.plan, anonymous.kernel, options).text;
  // The backend's version enters the key without loading LLVM: it is fixed when Umbra is built.
  const std::string backend_id = system_compiler ? SystemBackend().Id() : ClangBackendId();
  std::vector<std::string_view> parts = {kCacheVersion, codegen::Name(options.target), backend_id,
                                         text};
  for (const codegen::EmbeddedFile& file : codegen::PreludeFiles()) parts.push_back(file.text);
  const std::string key = runtime::CacheKey(parts);

  {
    std::unique_lock lock(g_mutex);
    auto [found, fresh] = g_entries.try_emplace(key);
    if (!fresh) {
      g_ready.wait(lock, [&] {
        found = g_entries.find(key);
        return found == g_entries.end() || found->second.ready;
      });
      if (found != g_entries.end()) {
        ++g_statistics.memory_hits;
        return found->second.code;
      }
      g_entries.try_emplace(key);
    }
  }
  try {
    std::optional<runtime::KernelCode> code;
    if (use_disk_cache) code = LoadFromDisk(key, system_compiler);
    const bool from_disk = code.has_value();
    if (!code)
      code = CompileNow(plan, kernel, options, system_compiler ? SystemBackend() : ClangBackend(),
                        use_disk_cache ? key : std::string());
    const std::lock_guard lock(g_mutex);
    if (from_disk) ++g_statistics.disk_hits;
    g_entries[key] = {true, *code};
    g_ready.notify_all();
    return *code;
  } catch (...) {
    const std::lock_guard lock(g_mutex);
    g_entries.erase(key);
    g_ready.notify_all();
    throw;
  }
}

}  // namespace umbra
