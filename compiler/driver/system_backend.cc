#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>

#include "compiler/codegen/prelude.h"
#include "compiler/driver/backend.h"
#include "runtime/environment.h"
#include "umbra/error.h"

extern char** environ;

namespace umbra {

namespace {

namespace fs = std::filesystem;

// A private folder that is gone at the end, whatever happens.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    const fs::path folder = fs::temp_directory_path(error);
    const char* chosen = std::getenv("TMPDIR");
    Require(!error, "the folder for temporary files, ", chosen != nullptr ? chosen : "/tmp",
            ", cannot be used: ", error.message(), "; set TMPDIR to a folder that can be written");
    std::string pattern = (folder / "umbra-XXXXXX").string();
    Require(mkdtemp(pattern.data()) != nullptr, "cannot make a temporary folder at ", pattern, ": ",
            std::strerror(errno), "; set TMPDIR to a folder that can be written");
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteAll(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  Require(static_cast<bool>(file), "cannot write ", path.string());
}

// Runs a program without a shell, its output in `log`. Returns the exit status.
int Spawn(const std::vector<std::string>& command, const fs::path& log) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child;
  const int failed = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return 127;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

class SystemCompiler : public Backend {
 public:
  std::string Id() const override {
    const std::lock_guard lock(mutex_);
    if (id_.empty()) {
      TemporaryFolder folder;
      const std::string compiler = Compiler();
      const fs::path log = folder.path() / "version";
      Require(Spawn({compiler, "--version"}, log) == 0, "no system compiler: '", compiler,
              "' does not run; install the Debian package g++, or set UMBRA_CXX");
      const std::string text = ReadAll(log);
      id_ = compiler + ": " + text.substr(0, text.find('\n'));
    }
    return id_;
  }

  ObjectCode Compile(const codegen::Source& source, codegen::Target target) override {
    const auto start = std::chrono::steady_clock::now();
    TemporaryFolder folder;
    const fs::path object = folder.path() / "kernel.so";
    Translate(source, target, {"-shared", "-fPIC"}, object, folder.path());
    const std::string bytes = ReadAll(object);
    ObjectCode code;
    code.bytes.assign(bytes.begin(), bytes.end());
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    code.times.codegen = time.count();
    return code;
  }

  std::vector<char> MakeObject(const codegen::Source&, codegen::Target, const ObjectOptions&) override {
    throw Error(
        "objects of a build come from the in-process compiler; give the sources to the system compiler in the build");
  }

  runtime::KernelCode Load(const ObjectCode& object, const std::string& function) override {
    const int file = memfd_create("umbra-kernel", MFD_CLOEXEC);
    Require(file >= 0, "cannot make memory for a compiled kernel");
    std::size_t written = 0;
    while (written < object.bytes.size()) {
      const ssize_t count = write(file, object.bytes.data() + written, object.bytes.size() - written);
      if (count <= 0) break;
      written += static_cast<std::size_t>(count);
    }
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    void* library = written == object.bytes.size() ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    const char* reason = library == nullptr ? dlerror() : nullptr;
    if (library == nullptr) close(file);
    Require(library != nullptr, "a compiled kernel cannot be loaded: ", reason != nullptr ? reason : "out of memory");
    // The file stays open as long as the code: the loader takes a path that it has seen before for
    // the library that it has loaded before.
    const std::shared_ptr<void> owner(library, [file](void* handle) {
      dlclose(handle);
      close(file);
    });
    auto* symbol = reinterpret_cast<umbra_kernel_fn>(dlsym(library, function.c_str()));
    Require(symbol != nullptr, "a compiled kernel has no function '", function, "'");
    return {symbol, owner};
  }

  std::string Print(const codegen::Source& source, codegen::Target target, const std::string& form) override {
    Require(form == "asm", "the system compiler prints 'asm' only, not '", form, "'");
    TemporaryFolder folder;
    const fs::path text = folder.path() / "kernel.s";
    Translate(source, target, {"-S"}, text, folder.path());
    return ReadAll(text);
  }

 private:
  static std::string Compiler() { return runtime::ReadEnvironment().cxx; }

  static void Translate(const codegen::Source& source, codegen::Target target, const std::vector<std::string>& mode,
                        const fs::path& output, const fs::path& folder) {
    for (const codegen::EmbeddedFile& file : codegen::PreludeFiles())
      WriteAll(folder / "include" / file.name, file.text);
    WriteAll(folder / "kernel.cc", source.text);
    std::vector<std::string> command = {Compiler(),
                                        "-std=c++17",
                                        "-O3",
                                        source.fast ? "-ffp-contract=fast" : "-ffp-contract=off",
                                        "-fwrapv",
                                        "-fno-math-errno",
                                        "-fno-trapping-math",
                                        "-w",
                                        "-I",
                                        (folder / "include").string()};
    for (std::string_view flag : codegen::CompilerFlags(target)) command.emplace_back(flag);
    command.insert(command.end(), mode.begin(), mode.end());
    command.insert(command.end(), {"-o", output.string(), (folder / "kernel.cc").string()});
    command.push_back("-lm");
    const fs::path log = folder / "log";
    const int status = Spawn(command, log);
    Require(status != 127, "no system compiler: '", command[0],
            "' does not run; install the Debian package g++, or set UMBRA_CXX");
    Require(status == 0, command[0], " failed with exit status ", status, ":\n", ReadAll(log));
  }

  mutable std::mutex mutex_;
  mutable std::string id_;
};

}  // namespace

Backend& SystemBackend() {
  static SystemCompiler& compiler =
      *new SystemCompiler;  // never destroyed: static objects may compile to the end of the process
  return compiler;
}

}  // namespace umbra
