#include "compiler/driver/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <tuple>

#include "compiler/driver/kernel_cache.h"
#include "runtime/cuda_library.h"
#include "runtime/disk_cache.h"
#include "runtime/environment.h"
#include "umbra/error.h"

namespace umbra {

namespace {

constexpr int kBuiltinFailure = 7;

// The library that NVRTC opens when it compiles, by this name.
std::string BuiltinsOf(const Nvrtc& nvrtc) {
  return fmt::format("libnvrtc-builtins.so.{}.{}", nvrtc.major, nvrtc.minor);
}

// Fills `nvrtc` from the library `name`; says why it cannot, or nothing.
std::string Use(const std::string& name, Nvrtc* nvrtc) {
#define UMBRA_NVRTC_POINTER(function, result, arguments) {#function, reinterpret_cast<void**>(&nvrtc->function)},
  const std::string problem = runtime::FindFunctions(name, {UMBRA_NVRTC_FUNCTIONS(UMBRA_NVRTC_POINTER)});
#undef UMBRA_NVRTC_POINTER
  if (!problem.empty()) return problem;
  int count = 0;
  nvrtc->nvrtcVersion(&nvrtc->major, &nvrtc->minor);
  if (nvrtc->major < 12) return fmt::format("{} is NVRTC {}.{}, which is too old", name, nvrtc->major, nvrtc->minor);
  // Opened here, it is found by its name though it lies where the system does not look.
  const std::string folder = runtime::FolderOf(reinterpret_cast<const void*>(nvrtc->nvrtcVersion));
  dlopen((folder + BuiltinsOf(*nvrtc)).c_str(), RTLD_LAZY | RTLD_LOCAL);
  nvrtc->nvrtcGetNumSupportedArchs(&count);
  nvrtc->architectures.resize(static_cast<std::size_t>(count));
  nvrtc->nvrtcGetSupportedArchs(nvrtc->architectures.data());
  return "";
}

Nvrtc Open() {
  Nvrtc nvrtc;
  static_cast<runtime::OpenedLibrary&>(nvrtc) = runtime::OpenWanted(
      {{"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"},
       "UMBRA_NVRTC",
       "there is no NVRTC to compile CUDA kernels with (libnvrtc.so.13 or .12)",
       "; install NVRTC 12 or 13, which is part of the CUDA toolkit (package cuda-nvrtc of NVIDIA), or name the library in UMBRA_NVRTC",
       cuda::FindLibrary().problem.empty() ? cuda::UseLibrary().DriverAsFound().version : 0},
      runtime::ReadEnvironment().nvrtc, [&](const std::string& name) { return Use(name, &nvrtc); });
  return nvrtc;
}

class Program {
 public:
  Program(const Nvrtc& nvrtc, const std::string& source, const std::string& name) : nvrtc_(nvrtc) {
    const int status = nvrtc.nvrtcCreateProgram(&program_, source.c_str(), (name + ".cu").c_str(), 0, nullptr, nullptr);
    Require(status == 0, "NVRTC cannot start to compile '", name, "': ", nvrtc.nvrtcGetErrorString(status));
  }
  ~Program() { nvrtc_.nvrtcDestroyProgram(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  void* get() const { return program_; }

 private:
  const Nvrtc& nvrtc_;
  void* program_ = nullptr;
};

std::string_view Line(std::string_view text, int number) {
  for (; number > 1 && !text.empty(); --number) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find('\n'));
}

// The lines of `source` that the log speaks of, as in "name.cu(12): error: ...".
std::string LinesOf(const std::string& log, const std::string& source, const std::string& name) {
  const std::string mark = name + ".cu(";
  std::set<int> numbers;
  for (std::size_t at = log.find(mark); at != std::string::npos; at = log.find(mark, at + 1)) {
    int number = 0;
    std::from_chars(log.data() + at + mark.size(), log.data() + log.size(), number);
    if (number > 0) numbers.insert(number);
  }
  std::string text;
  for (const int number : numbers) text += fmt::format("\n{:>6} | {}", number, Line(source, number));
  return text;
}

std::string Listed(const std::vector<int>& architectures) {
  std::string text;
  for (const int architecture : architectures) text += fmt::format("{}sm_{}", text.empty() ? "" : ", ", architecture);
  return text;
}

}  // namespace

std::string Nvrtc::Id() const { return fmt::format("nvrtc-{}.{}", major, minor); }

const Nvrtc& FindNvrtc() noexcept {
  static const Nvrtc nvrtc = runtime::AsFound<Nvrtc>(Open);
  return nvrtc;
}

const Nvrtc& UseNvrtc() {
  const Nvrtc& nvrtc = FindNvrtc();
  Require(!nvrtc.name.empty(), nvrtc.problem);
  return nvrtc;
}

std::vector<cuda::Architecture> ParseArchitectures(const std::string& list) {
  std::map<std::tuple<int, int, char>, cuda::Architecture> sorted;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const auto one = cuda::Architecture::Parse(std::string_view(list).substr(begin, end - begin));
    sorted[{one.major, one.minor, one.suffix}] = one;
    begin = end + 1;
  }
  std::vector<cuda::Architecture> architectures;
  for (const auto& [key, architecture] : sorted) architectures.push_back(architecture);
  return architectures;
}

cuda::Image CompileCuda(const std::string& source, const std::string& name, const CudaTarget& target,
                        bool use_disk_cache) {
  const Nvrtc& nvrtc = UseNvrtc();
  const std::string architecture = target.architecture.Name();
  const int number = target.architecture.major * 10 + target.architecture.minor;
  Require(std::find(nvrtc.architectures.begin(), nvrtc.architectures.end(), number) != nvrtc.architectures.end(),
          "NVRTC ", nvrtc.major, ".", nvrtc.minor, " does not compile for ", architecture, "; it compiles for ",
          Listed(nvrtc.architectures));
  const bool ptx = target.form == cuda::ImageForm::kPtx;
  std::vector<std::string> options = {
      fmt::format("--gpu-architecture={}{}", ptx ? "compute" : "sm", architecture.substr(2)),
      "--std=c++17",
      fmt::format("--fmad={}", target.fast),
      "--ftz=false",
      "--prec-div=true",
      "--prec-sqrt=true"};
  // Without declarations that kernels do not read: 4 ms less of each compile, for the same code.
  if (nvrtc.IsAtLeast(12, 4)) options.emplace_back("--minimal");
  cuda::Image image{target.architecture, target.form, {}};

  const std::string id = nvrtc.Id();
  std::vector<std::string_view> parts = {"umbra-cuda/1", id, ptx ? "ptx" : "cubin", source};
  parts.insert(parts.end(), options.begin(), options.end());
  const std::string key = runtime::CacheKey(parts);
  if (use_disk_cache)
    if (const auto kept = runtime::DiskCache::Default().Read(key)) {
      image.bytes.assign(kept->begin(), kept->end());
      CountKernel(false);
      return image;
    }

  const Program program(nvrtc, source, name);
  std::vector<const char*> arguments;
  for (const std::string& option : options) arguments.push_back(option.c_str());
  const int status = nvrtc.nvrtcCompileProgram(program.get(), static_cast<int>(arguments.size()), arguments.data());
  if (status != 0) {
    std::size_t length = 0;
    nvrtc.nvrtcGetProgramLogSize(program.get(), &length);
    std::string log(length, '\0');
    if (length > 0) nvrtc.nvrtcGetProgramLog(program.get(), log.data());
    log.resize(std::min(log.find('\0'), log.size()));
    throw Error(
        detail::Concat("NVRTC ", nvrtc.major, ".", nvrtc.minor, " cannot compile '", name, "' for ", architecture, ": ",
                       nvrtc.nvrtcGetErrorString(status),
                       status == kBuiltinFailure ? "; its library " + BuiltinsOf(nvrtc) + " is missing beside it" : "",
                       "\n", log, LinesOf(log, source, name)));
  }
  std::size_t length = 0;
  const auto get = [&](auto size, auto bytes) {
    int failed = size(program.get(), &length);
    image.bytes.resize(length);
    if (failed == 0) failed = bytes(program.get(), image.bytes.data());
    Ensure(failed == 0, "NVRTC gives no image: ", nvrtc.nvrtcGetErrorString(failed));
  };
  if (ptx) {
    get(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX);
    while (!image.bytes.empty() && image.bytes.back() == '\0') image.bytes.pop_back();
  } else {
    get(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN);
  }
  if (use_disk_cache) runtime::DiskCache::Default().Write(key, image.bytes);
  CountKernel(true);
  return image;
}

std::vector<CudaTarget> TargetsForAll(const std::vector<cuda::Architecture>& architectures, bool fast) {
  std::vector<CudaTarget> targets;
  for (const cuda::Architecture& architecture : architectures)
    targets.push_back({architecture, cuda::ImageForm::kCubin, fast});
  targets.push_back({architectures.back(), cuda::ImageForm::kPtx, fast});
  return targets;
}

}  // namespace umbra
