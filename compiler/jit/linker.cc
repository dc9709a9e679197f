#include "compiler/jit/linker.h"

#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>

#include <atomic>

#include "compiler/jit/machine_code.h"
#include "umbra/error.h"

namespace umbra {

namespace {

using llvm::orc::DynamicLibrarySearchGenerator;

template <typename T>
T Checked(llvm::Expected<T> value, const char* what) {
  if (value) return std::move(*value);
  throw Error(std::string(what) + ": " + llvm::toString(value.takeError()));
}

// Set while the process ends: LLVM's own statics may be gone by then.
std::atomic<bool> g_exiting{false};
struct ExitFlag {
  ~ExitFlag() { g_exiting = true; }
} g_exit_flag;

struct Session {
  std::unique_ptr<llvm::orc::LLJIT> jit;
  llvm::orc::JITDylib* libraries = nullptr;  // where kernels find libm and memset
  std::atomic<unsigned> next{0};
};

Session& TheSession() {
  // Never destroyed: kernels may be called until the very end of the process.
  static Session* const session = [] {
    X86();
    auto made = std::make_unique<Session>();
    made->jit = Checked(llvm::orc::LLJITBuilder().create(), "ORC cannot start");
    const char prefix = made->jit->getDataLayout().getGlobalPrefix();
    made->libraries = &made->jit->getExecutionSession().createBareJITDylib("libraries");
    made->libraries->addGenerator(
        Checked(DynamicLibrarySearchGenerator::GetForCurrentProcess(prefix), "ORC cannot see the process"));
    if (auto generator = DynamicLibrarySearchGenerator::Load("libm.so.6", prefix))
      made->libraries->addGenerator(std::move(*generator));
    else llvm::consumeError(generator.takeError());
    return made.release();
  }();
  return *session;
}

}  // namespace

runtime::KernelCode LinkObject(const std::vector<char>& object, const std::string& function) {
  Session& session = TheSession();
  auto& execution = session.jit->getExecutionSession();
  const std::string name = "kernel" + std::to_string(session.next++);
  llvm::orc::JITDylib& space = execution.createBareJITDylib(name);
  space.addToLinkOrder(*session.libraries);
  const std::shared_ptr<void> owner(&space, [&execution](void* dylib) {
    if (g_exiting) return;
    llvm::consumeError(execution.removeJITDylib(*static_cast<llvm::orc::JITDylib*>(dylib)));
  });
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy({object.data(), object.size()}, name);
  if (auto error = session.jit->addObjectFile(space, std::move(buffer)))
    throw Error("ORC cannot take a kernel: " + llvm::toString(std::move(error)));
  const auto address = Checked(session.jit->lookup(space, function), "ORC cannot link a kernel");
  return {address.toPtr<umbra_kernel_fn>(), owner};
}

}  // namespace umbra
