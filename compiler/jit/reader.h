// Clang in the process: sources in memory become LLVM modules, without a file or a child.
#ifndef UMBRA_COMPILER_JIT_READER_H_
#define UMBRA_COMPILER_JIT_READER_H_

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/source.h"

namespace clang {
class FrontendAction;
}

namespace umbra {

/// Clang's word for modules whose values have no names: nobody reads them.
inline constexpr const char* kNoNames = "-discard-value-names";

/// A file in memory.
struct SourceFile {
  std::string name;
  llvm::StringRef text;
};

/// Files in memory, which have to stay there. Threads may read the same ones.
using Files = llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem>;
Files FilesInMemory(const std::vector<SourceFile>& files);

/// Runs one of Clang's actions on files for a target; `last_arguments` follow the usual ones. What Clang says is added
/// to `log`. False if it failed.
bool RunClang(clang::FrontendAction* action, codegen::Target target, Files files,
              const std::vector<std::string>& last_arguments, std::string* log);

/// Clang for a target, which reads one source after another. Each may include `files`; what they and a precompiled
/// header define is read for the first source that needs it, and known to the next. Sources have functions and types in
/// namespaces, and no macros: their names are forgotten, and the module of each is, to the bit, the one that a new
/// reader makes.
class Reader {
 public:
  /// `last_arguments` of Clang follow the usual ones.
  Reader(codegen::Target target, Files files, const std::vector<std::string>& last_arguments);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Clang's unoptimised module of `source`, in `context`; null if it failed, with what Clang says added to `log`.
  /// Functions read from a precompiled header that `bodies` (may be null) defines are declared only; it is to define
  /// the same ones for each source.
  std::unique_ptr<llvm::Module> Read(const SourceFile& source, llvm::LLVMContext* context, const llvm::Module* bodies,
                                     std::string* log);
  /// May it read another source? Not after a failure, nor when those before take too much memory.
  bool fit() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A reader lent to one thread at a time. It goes back to a pool of the process, for sources with the same arguments
/// and files.
class BorrowedReader {
 public:
  BorrowedReader(codegen::Target target, const Files& files, const std::vector<std::string>& last_arguments);
  ~BorrowedReader();
  BorrowedReader(const BorrowedReader&) = delete;
  BorrowedReader& operator=(const BorrowedReader&) = delete;
  Reader* operator->() const { return idle_.reader.get(); }

 private:
  struct Idle {
    codegen::Target target;
    Files files;
    std::vector<std::string> last_arguments;
    std::unique_ptr<Reader> reader;
  };
  struct Pool;
  static Pool& Readers();

  Idle idle_;
};

}  // namespace umbra

#endif  // UMBRA_COMPILER_JIT_READER_H_
