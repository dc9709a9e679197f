#include "compiler/driver/kernel_cache.h"
#include "compiler/codegen/prelude.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>

#include "compiler/driver/backend.h"
#include "compiler/plan/without_names.h"
#include "runtime/disk_cache.h"
#include "runtime/object_loader.h"
#include "umbra/compile.h"
#include "umbra/error.h"

namespace umbra {

namespace {

constexpr std::string_view kCacheVersion = "umbra-kernel/2";

// The table does not keep code alive: whoever runs it does, and the last owner takes the entry away.
struct Entry {
  bool ready = false;
  umbra_kernel_fn function = nullptr;
  std::weak_ptr<void> owner;
};

struct Table {
  std::mutex mutex;
  std::condition_variable ready;
  std::map<std::string, Entry> entries;
  CompileStatistics statistics;
};

// Never destroyed: static objects may own kernels to the end of the process.
Table& TheTable() {
  static Table* const table = new Table;
  return *table;
}

void Forget(const std::string& key) {
  Table& table = TheTable();
  const std::lock_guard lock(table.mutex);
  --table.statistics.loaded;
  const auto found = table.entries.find(key);
  const bool dead = found != table.entries.end() && found->second.ready && found->second.owner.expired();
  if (dead) table.entries.erase(found);
}

// Enters code that is new to this process; the result owns it.
runtime::KernelCode Remember(const std::string& key, runtime::KernelCode code) {
  const std::shared_ptr<void> owner(code.owner.get(), [key, mapped = code.owner](void*) mutable {
    mapped.reset();
    Forget(key);
  });
  Table& table = TheTable();
  const std::lock_guard lock(table.mutex);
  ++table.statistics.loaded;
  table.entries[key] = {true, code.function, owner};
  table.ready.notify_all();
  return {code.function, owner};
}

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
                               const codegen::SourceOptions& options, Backend& backend, const std::string& disk_key) {
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
  Table& table = TheTable();
  const std::lock_guard lock(table.mutex);
  ++table.statistics.compiled;
  table.statistics.front_end_ms += object.times.front_end;
  table.statistics.optimise_ms += object.times.optimise;
  table.statistics.codegen_ms += object.times.codegen;
  table.statistics.link_ms += object.times.link + link.count();
  return code;
}

}  // namespace

CompileStatistics GetCompileStatistics() {
  Table& table = TheTable();
  const std::lock_guard lock(table.mutex);
  return table.statistics;
}

void CountKernel(bool compiled) {
  Table& table = TheTable();
  const std::lock_guard lock(table.mutex);
  ++(compiled ? table.statistics.compiled : table.statistics.disk_hits);
}

runtime::KernelCode MakeKernelCode(const plan::Plan& plan, const plan::Kernel& kernel,
                                   const codegen::SourceOptions& form, const CompileOptions& options) {
  const bool system_compiler = options.engine == Engine::kSystem;
  const plan::Unnamed unnamed = plan::WithoutNames(plan, kernel);
  const std::string text = codegen::Generate(unnamed.plan, unnamed.kernel, form).text;
  // The backend's version enters the key without loading LLVM: it is fixed when Umbra is built.
  const std::string backend_id = system_compiler ? SystemBackend().Id() : ClangBackendId();
  const std::string key = runtime::CacheKey({kCacheVersion, codegen::Name(form.target), form.fast ? "fast" : "strict",
                                             backend_id, text, codegen::PreludeId()});

  Table& table = TheTable();
  {
    std::unique_lock lock(table.mutex);
    for (;;) {
      const auto [found, fresh] = table.entries.try_emplace(key);
      if (fresh) break;
      Entry& entry = found->second;
      if (!entry.ready) {
        table.ready.wait(lock);
        continue;
      }
      if (auto owner = entry.owner.lock()) {
        ++table.statistics.memory_hits;
        return {entry.function, std::move(owner)};
      }
      entry = {};
      break;
    }
  }
  try {
    std::optional<runtime::KernelCode> code;
    if (options.use_disk_cache) code = LoadFromDisk(key, system_compiler);
    if (code) {
      const std::lock_guard lock(table.mutex);
      ++table.statistics.disk_hits;
    } else {
      code = CompileNow(plan, kernel, form, system_compiler ? SystemBackend() : ClangBackend(),
                        options.use_disk_cache ? key : std::string());
    }
    return Remember(key, std::move(*code));
  } catch (...) {
    const std::lock_guard lock(table.mutex);
    table.entries.erase(key);
    table.ready.notify_all();
    throw;
  }
}

}  // namespace umbra
