// Stands in for NVRTC: the host's compiler makes a shared object of the CUDA text and the emulator, which the stand-in
// for the driver runs.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>

namespace {

struct Program {
  std::string source, name, log, image;
};

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The text with an entry for each kernel behind it, in the namespace that the kernels are in.
std::string WithEntries(std::string source) {
  const std::string outside = "extern __shared__ __align__(16)";  // __shared__ is static within functions
  if (const std::size_t at = source.find(outside); at != std::string::npos)
    source.replace(at, outside.size(), "extern");
  static const std::regex kernel(
      R"(__global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\(const (?:UMBRA_GRID_CONSTANT )?(\w+) (?:args|launches)\))");
  std::string entries;
  for (std::sregex_iterator it(source.begin(), source.end(), kernel), end; it != end; ++it) {
    const std::string name = (*it)[1], arguments = (*it)[2];
    entries += "extern \"C\" [[gnu::visibility(\"default\")]] const char* emulate_" + name +
               "(const void* args, std::size_t size, const unsigned* g, const unsigned* b, std::size_t shared) {\n"
               "  static std::string said;\n  if (size != sizeof(umbra::simd::" +
               arguments +
               ")) return \"the arguments are not as large as the kernel's\";\n"
               "  const auto& a = *static_cast<const umbra::simd::" +
               arguments +
               "*>(args);\n"
               "  said = emulator::Launch({g[0], g[1], g[2]}, {b[0], b[1], b[2]}, shared, false, [&] { umbra::simd::" +
               name +
               "(a); });\n"
               "  return said.c_str();\n}\n";
  }
  return source + entries;
}

constexpr const char* kOptions = " -std=c++20 -O1 -w -shared -fPIC -fno-strict-aliasing -fvisibility=hidden ";
constexpr const char* kContracts = "-mfma -ffp-contract=fast -fexpensive-optimizations";

// NVRTC opens a second library of its version by name when it compiles. The minor version of one, or null: none is
// needed.
const char* Builtins() { return std::getenv("STAND_IN_BUILTINS"); }

constexpr const char* kExample = "extern \"C\" __global__ void kernel(const kernel_args args) {}";

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = 13;  // kept kernels are of this version: one that no NVRTC has, another for whatever goes into an image
  *minor = 1000 + static_cast<int>(std::hash<std::string>()(ReadAll(UMBRA_EMULATOR) + WithEntries(kExample) + kOptions +
                                                            kContracts) %
                                   1000000);
  if (Builtins() != nullptr) *minor = std::atoi(Builtins());
  return 0;
}
const char* nvrtcGetErrorString(int status) { return status == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR"; }
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 2;
  return 0;
}
int nvrtcGetSupportedArchs(int* architectures) {
  const char* const chosen = std::getenv("STAND_IN_ARCHITECTURES");
  std::istringstream(chosen == nullptr ? "80 90" : chosen) >> architectures[0] >> architectures[1];
  return 0;
}
int nvrtcCreateProgram(void** program, const char* source, const char* name, int, const char* const*,
                       const char* const*) {
  *program = new Program{source, name, {}, {}};
  return 0;
}
int nvrtcDestroyProgram(void** program) {
  delete static_cast<Program*>(*program);
  *program = nullptr;
  return 0;
}
int nvrtcCompileProgram(void* handle, int count, const char* const* options) {
  Program& program = *static_cast<Program*>(handle);
  if (Builtins() != nullptr &&
      dlopen((std::string("libnvrtc-builtins.so.13.") + Builtins()).c_str(), RTLD_NOW) == nullptr)
    return 7;
  std::string folder = (std::filesystem::temp_directory_path() / "umbra-emulated-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  const std::filesystem::path path = folder;
  std::ofstream(path / "kernel.cc") << "#include \"" UMBRA_EMULATOR "\"\n#line 1 \"" << program.name << "\"\n"
                                    << WithEntries(program.source);
  const bool contract = std::find(options, options + count, std::string_view("--fmad=true")) != options + count &&
                        __builtin_cpu_supports("fma") != 0;
  const char* const compiler = std::getenv("UMBRA_CXX");
  const std::string command = std::string(compiler == nullptr ? UMBRA_HOST_COMPILER : compiler) + kOptions +
                              (contract ? kContracts : "-ffp-contract=off") + " -o " + (path / "kernel.so").string() +
                              " " + (path / "kernel.cc").string() + " >" + (path / "log").string() + " 2>&1";
  const bool done = std::system(command.c_str()) == 0;
  program.log = ReadAll(path / "log");
  if (done) {
    const std::string object = ReadAll(path / "kernel.so");
    program.image = "emulated " + std::to_string(object.size()) + "\n" + object;
  }
  std::filesystem::remove_all(path);
  return done ? 0 : 6;
}
int nvrtcGetProgramLogSize(void* program, std::size_t* size) {
  *size = static_cast<Program*>(program)->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(void* program, char* log) {
  std::strcpy(log, static_cast<Program*>(program)->log.c_str());
  return 0;
}
int nvrtcGetCUBINSize(void* program, std::size_t* size) {
  *size = static_cast<Program*>(program)->image.size();
  return 0;
}
int nvrtcGetCUBIN(void* handle, char* image) {
  const Program& program = *static_cast<Program*>(handle);
  std::memcpy(image, program.image.data(), program.image.size());
  return 0;
}
// PTX is text, with a NUL behind its last line: zeros at the end of it are not part of it.
int nvrtcGetPTXSize(void* program, std::size_t* size) {
  *size = static_cast<Program*>(program)->image.size() + 2;
  return 0;
}
int nvrtcGetPTX(void* handle, char* image) {
  const Program& program = *static_cast<Program*>(handle);
  std::memcpy(image, program.image.data(), program.image.size());
  std::memcpy(image + program.image.size(), "\n", 2);
  return 0;
}

}  // extern "C"
