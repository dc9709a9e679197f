// opens LIBRARY: a program that knows nothing of Umbra opens tests/support/opened.cc while it has threads, and calls it
// from each.
#include <dlfcn.h>

#include <cstdio>
#include <future>
#include <thread>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::promise<bool (*)()> opened;
  bool right_before = false;
  std::thread before([&] {
    const auto statements_wait = opened.get_future().get();
    right_before = statements_wait != nullptr && statements_wait();
  });
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  const auto statements_wait =
      library == nullptr ? nullptr : reinterpret_cast<bool (*)()>(dlsym(library, "StatementsWait"));
  opened.set_value(statements_wait);
  before.join();
  return right_before && statements_wait() ? 0 : 1;
}
