// Stands in for nvFatbin: a file that says what it was made of.
#include <cstddef>
#include <cstring>
#include <string>

extern "C" {

const char* nvFatbinGetErrorString(int) { return "NVFATBIN_ERROR"; }
int nvFatbinCreate(void** handle, const char** options, std::size_t count) {
  *handle = new std::string("fatbin");
  return count == 1 && std::strcmp(options[0], "-64") == 0 ? 0 : 4;
}
int nvFatbinDestroy(void** handle) {
  delete static_cast<std::string*>(*handle);
  *handle = nullptr;
  return 0;
}
int nvFatbinAddPTX(void* handle, const char* code, std::size_t size, const char* architecture, const char* name,
                   const char*) {
  *static_cast<std::string*>(handle) += std::string("\n") + name + " ptx " + architecture;
  return code[size - 1] == '\0' ? 0 : 1;  // the terminating zero is part of it
}
int nvFatbinAddCubin(void* handle, const void* code, std::size_t size, const char* architecture, const char* name) {
  *static_cast<std::string*>(handle) += std::string("\n") + name + " cubin " + architecture;
  return code != nullptr && size > 0 ? 0 : 1;
}
int nvFatbinSize(void* handle, std::size_t* size) {
  *size = static_cast<std::string*>(handle)->size();
  return 0;
}
int nvFatbinGet(void* handle, void* file) {
  const auto& text = *static_cast<std::string*>(handle);
  std::memcpy(file, text.data(), text.size());
  return 0;
}

}  // extern "C"
