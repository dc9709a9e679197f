// NVRTC as the tests use it, opened at run time: texts become PTX, no GPU needed.
#ifndef UMBRA_TESTS_SUPPORT_NVRTC_H_
#define UMBRA_TESTS_SUPPORT_NVRTC_H_

#include <dlfcn.h>

#include <string>
#include <vector>

namespace umbra {

class Nvrtc {
 public:
  Nvrtc() {
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"})
      if (library_ == nullptr) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  bool found() const { return library_ != nullptr; }

  struct Result {
    std::string ptx, log;
    bool done = false;
  };
  /// `arch` is sm_80 or the like.
  Result Compile(const std::string& text, const std::string& arch) const {
    using Program = void*;
    Program program = nullptr;
    Get<int (*)(Program*, const char*, const char*, int, const char* const*, const char* const*)>("nvrtcCreateProgram")(
        &program, text.c_str(), "kernel.cu", 0, nullptr, nullptr);
    const std::string target = "--gpu-architecture=compute_" + arch.substr(3);
    std::vector<const char*> options = {target.c_str(), "--fmad=false", "-std=c++17"};
    int major = 0, minor = 0;
    Get<int (*)(int*, int*)>("nvrtcVersion")(&major, &minor);
    if (major > 12 || minor >= 4) options.push_back("--minimal");  // as what is compiled for a device
    Result result;
    result.done = Get<int (*)(Program, int, const char* const*)>("nvrtcCompileProgram")(
                      program, static_cast<int>(options.size()), options.data()) == 0;
    result.log = Text(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog");
    if (result.done) result.ptx = Text(program, "nvrtcGetPTXSize", "nvrtcGetPTX");
    Get<int (*)(Program*)>("nvrtcDestroyProgram")(&program);
    return result;
  }

 private:
  template <typename F>
  F Get(const char* name) const {
    return reinterpret_cast<F>(dlsym(library_, name));
  }

  std::string Text(void* program, const char* size_of, const char* get) const {
    std::size_t size = 0;
    Get<int (*)(void*, std::size_t*)>(size_of)(program, &size);
    std::string text(size, '\0');
    Get<int (*)(void*, char*)>(get)(program, text.data());
    while (!text.empty() && text.back() == '\0') text.pop_back();
    return text;
  }

  void* library_ = nullptr;
};

}  // namespace umbra

#endif  // UMBRA_TESTS_SUPPORT_NVRTC_H_
