#include "compiler/jit/reader.h"

#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/DeclContextInternals.h>
#include <clang/AST/DeclGroup.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/ExternalASTSource.h>
#include <clang/AST/GlobalDecl.h>
#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/DiagnosticOptions.h>
#include <clang/Basic/Stack.h>
#include <clang/CodeGen/ModuleBuilder.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/FrontendAction.h>
#include <clang/Frontend/MultiplexConsumer.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <clang/Parse/Parser.h>
#include <clang/Sema/EnterExpressionEvaluationContext.h>
#include <clang/Sema/Sema.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <mutex>
#include <tuple>

#include "compiler/codegen/prelude.h"
#include "compiler/jit/front_end.h"
#include "umbra/error.h"

namespace umbra {

namespace {

std::vector<std::string> Arguments(codegen::Target target) {
  std::vector<std::string> args = {"-triple", "x86_64-pc-linux-gnu", "-emit-llvm-only", "-disable-llvm-passes", "-O2",
                                   "-x", "c++", "-std=c++17", "-I", "/include", "-nostdsysteminc", "-nobuiltininc",
                                   "-nostdinc++", "-relaxed-aliasing", "-disable-lifetime-markers", "-ffp-contract=off",
                                   "-fwrapv", "-mrelocation-model", "pic", "-pic-level", "2", "-w", "-fno-rtti",
                                   "-funwind-tables=0", "-fgnuc-version=4.2.1", "-fpch-instantiate-templates",
                                   // Clang refuses what was precompiled from another text.
                                   "-DUMBRA_PRELUDE=" + codegen::PreludeId(), "-target-cpu", TargetCpu(target)};
  for (const std::string& feature : TargetFeatures(target)) {
    args.push_back("-target-feature");
    args.push_back(feature);
  }
  if (target == codegen::Target::kAvx512) args.push_back("-mprefer-vector-width=512");
  return args;
}

// Clang, and what it says.
struct Instance {
  Instance(codegen::Target target, Files files, const std::vector<std::string>& last_arguments) {
    std::vector<std::string> words = Arguments(target);
    words.insert(words.end(), last_arguments.begin(), last_arguments.end());
    std::vector<const char*> args;
    for (const std::string& word : words) args.push_back(word.c_str());
    clang::DiagnosticsEngine diagnostics(llvm::makeIntrusiveRefCnt<clang::DiagnosticIDs>(), options, &printer, false);
    auto invocation = std::make_shared<clang::CompilerInvocation>();
    Require(clang::CompilerInvocation::CreateFromArgs(*invocation, args, diagnostics),
            "Clang does not take its options:\n", log);
    clang.setInvocation(std::move(invocation));
    clang.createDiagnostics(&printer, false);
    clang.setFileManager(new clang::FileManager(clang::FileSystemOptions(), std::move(files)));
  }

  std::string log;
  llvm::raw_string_ostream stream{log};
  llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options = llvm::makeIntrusiveRefCnt<clang::DiagnosticOptions>();
  clang::TextDiagnosticPrinter printer{stream, options.get()};
  clang::CompilerInstance clang;
};

// Makes one module after another of what Clang reads; none of them is in `idle`, where the generator is meanwhile.
class ModuleConsumer : public clang::MultiplexConsumer {
 public:
  // Owns the generator.
  ModuleConsumer(clang::CodeGenerator* generator, llvm::LLVMContext* idle)
      : MultiplexConsumer(Alone(generator)),
        generator_(generator),
        idle_(idle) {}

  void Begin(llvm::StringRef name, llvm::LLVMContext* context, const llvm::Module* bodies) {
    bodies_ = bodies;
    delete generator_->ReleaseModule();
    generator_->StartModule(name, *context);
    for (clang::Decl* const decl : emitted_) generator_->HandleTopLevelDecl(clang::DeclGroupRef(decl));
    emitted_.clear();
  }

  std::unique_ptr<llvm::Module> End() {
    std::unique_ptr<llvm::Module> module(generator_->ReleaseModule());
    // The generator forgets what it has emitted, and Clang does not tell it again. (What is local was made for this
    // source alone.)
    for (const llvm::GlobalObject& object : module->global_objects()) {
      if (!object.hasLinkOnceLinkage()) continue;
      auto* const decl = const_cast<clang::Decl*>(generator_->GetDeclForMangledName(object.getName()));
      const auto* const variable = llvm::dyn_cast_or_null<clang::VarDecl>(decl);
      if (decl != nullptr && (variable == nullptr || variable->isFileVarDecl())) emitted_.push_back(decl);
    }
    generator_->StartModule("", *idle_);  // while the context is there
    return module;
  }

  // Leaves out the functions of a precompiled header whose bodies are there as bitcode.
  void HandleInterestingDecl(clang::DeclGroupRef read) override {
    if (read.isSingleDecl() && HasBody(llvm::dyn_cast<clang::FunctionDecl>(read.getSingleDecl()))) return;
    MultiplexConsumer::HandleInterestingDecl(read);
  }

 private:
  static std::vector<std::unique_ptr<clang::ASTConsumer>> Alone(clang::ASTConsumer* consumer) {
    std::vector<std::unique_ptr<clang::ASTConsumer>> all;
    all.emplace_back(consumer);
    return all;
  }

  bool HasBody(const clang::FunctionDecl* function) {
    if (bodies_ == nullptr || function == nullptr || llvm::isa<clang::CXXMethodDecl>(function)) return false;
    const llvm::Function* const body = bodies_->getFunction(generator_->GetMangledName(clang::GlobalDecl(function)));
    return body != nullptr && !body->isDeclaration() && !body->hasLocalLinkage();
  }

  clang::CodeGenerator* generator_;
  llvm::LLVMContext* idle_;
  const llvm::Module* bodies_ = nullptr;
  std::vector<clang::Decl*> emitted_;
};

// Source to module and no further: Clang's own actions set up a back end besides.
class ModuleAction : public clang::ASTFrontendAction {
 public:
  explicit ModuleAction(llvm::LLVMContext* idle) : idle_(idle) {}
  ModuleConsumer* consumer() const { return consumer_; }

 protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& instance,
                                                        llvm::StringRef file) override {
    auto* const generator = clang::CreateLLVMCodeGen(instance.getDiagnostics(), file, &instance.getVirtualFileSystem(),
                                                     instance.getHeaderSearchOpts(), instance.getPreprocessorOpts(),
                                                     instance.getCodeGenOpts(), *idle_);
    auto made = std::make_unique<ModuleConsumer>(generator, idle_);
    consumer_ = made.get();
    return made;
  }

 private:
  llvm::LLVMContext* idle_;
  ModuleConsumer* consumer_ = nullptr;
};

constexpr int kMostSources = 128;  // each takes some 30 KB
constexpr std::size_t kMostIdle = 16;  // readers that nobody has borrowed

}  // namespace

Files FilesInMemory(const std::vector<SourceFile>& files) {
  auto made = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  for (const SourceFile& file : files)
    made->addFile(file.name, 0, llvm::MemoryBuffer::getMemBuffer(file.text, file.name, false));
  return made;
}

bool RunClang(clang::FrontendAction* action, codegen::Target target, Files files,
              const std::vector<std::string>& last_arguments, std::string* log) {
  Instance instance(target, std::move(files), last_arguments);
  const bool done = instance.clang.ExecuteAction(*action);
  *log += instance.log;
  return done;
}

struct Reader::State : Instance {
  using Instance::Instance;
  ~State() {
    parser.reset();
    if (begun) action.EndSourceFile();
  }

  // Declarations at the top of a source.
  std::vector<clang::DeclGroupRef> Parse();
  // Takes back the names that the source itself declares there: another may give them to something else.
  void Forget(clang::Decl* decl);

  llvm::LLVMContext idle;
  ModuleAction action{&idle};
  std::unique_ptr<clang::Parser> parser;
  bool begun = false;
  int sources = 0;
};

Reader::Reader(codegen::Target target, Files files, const std::vector<std::string>& last_arguments)
    : state_(std::make_unique<State>(target, std::move(files), last_arguments)) {
  // The main file has nothing: sources are read as further ones.
  clang::CompilerInstance& clang = state_->clang;
  const llvm::MemoryBufferRef nothing("", "");
  state_->begun = clang.createTarget() && state_->action.BeginSourceFile(clang, {nothing, clang::Language::CXX});
  if (!state_->begun) return;
  clang.createSema(clang::TU_Complete, nullptr);
  clang.getPreprocessor().EnterMainSourceFile();
  state_->parser =
      std::make_unique<clang::Parser>(clang.getPreprocessor(), clang.getSema(), /*SkipFunctionBodies=*/false);
  state_->parser->Initialize();
}

Reader::~Reader() = default;

bool Reader::fit() const {
  return state_->begun && !state_->clang.getDiagnostics().hasErrorOccurred() && state_->sources < kMostSources;
}

std::vector<clang::DeclGroupRef> Reader::State::Parse() {
  clang::Sema& sema = clang.getSema();
  const clang::EnterExpressionEvaluationContext evaluated(
      sema, clang::Sema::ExpressionEvaluationContext::PotentiallyEvaluated);
  sema.TUScope = parser->getCurScope();  // the end of the source before took it away
  parser->ConsumeToken();  // that end
  std::vector<clang::DeclGroupRef> all;
  clang::Parser::DeclGroupPtrTy group;
  clang::Sema::ModuleImportState imports;
  for (bool end = parser->ParseFirstTopLevelDecl(group, imports); !end; end = parser->ParseTopLevelDecl(group, imports))
    if (group) all.push_back(group.get());
  return all;
}

void Reader::State::Forget(clang::Decl* decl) {
  const clang::SourceManager& files = clang.getSourceManager();
  // A namespace stays, which others reopen, and so does what a header declares, which others include.
  if (llvm::isa<clang::NamespaceDecl, clang::LinkageSpecDecl>(decl)) {
    auto* const context = llvm::cast<clang::DeclContext>(decl);
    const std::vector<clang::Decl*> inside(context->noload_decls_begin(), context->noload_decls_end());
    for (clang::Decl* const inner : inside) Forget(inner);
  } else if (auto* const named = llvm::dyn_cast<clang::NamedDecl>(decl);
             named != nullptr && files.getFileID(files.getExpansionLoc(decl->getLocation())) == files.getMainFileID()) {
    named->getLexicalDeclContext()->removeDecl(named);
    // Names of C are looked up here, too.
    if (clang::StoredDeclsMap* const names = clang.getASTContext().getExternCContextDecl()->getLookupPtr())
      names->erase(named->getDeclName());
  }
}

std::unique_ptr<llvm::Module> Reader::Read(const SourceFile& source, llvm::LLVMContext* context,
                                           const llvm::Module* bodies, std::string* log) {
  clang::noteBottomOfStack();
  clang::CompilerInstance& clang = state_->clang;
  if (state_->begun) {
    ++state_->sources;
    clang::ASTContext& ast = clang.getASTContext();
    ModuleConsumer* const consumer = state_->action.consumer();
    context->setDiscardValueNames(clang.getCodeGenOpts().DiscardValueNames);
    consumer->Begin(source.name, context, bodies);
    if (ast.getExternalSource() != nullptr) ast.getExternalSource()->StartTranslationUnit(consumer);
    clang::SourceManager& sources = clang.getSourceManager();
    const clang::FileID file = sources.createFileID(llvm::MemoryBuffer::getMemBufferCopy(source.text, source.name));
    sources.setMainFileID(file);
    clang.getPreprocessor().EnterSourceFile(file, nullptr, clang::SourceLocation());
    const std::vector<clang::DeclGroupRef> own = state_->Parse();
    // Last, as what they call is known now, be it from this source or from one before: the order is the same.
    for (const clang::DeclGroupRef group : own) consumer->HandleTopLevelDecl(group);
    consumer->HandleTranslationUnit(ast);
    if (!clang.getDiagnostics().hasErrorOccurred()) {
      for (const clang::DeclGroupRef group : own)
        for (clang::Decl* const decl : group) state_->Forget(decl);
      return consumer->End();
    }
  }
  *log += state_->log;
  return nullptr;
}

struct BorrowedReader::Pool {
  std::mutex mutex;
  std::vector<Idle> idle;  // the one used last is the last
};

// Never destroyed: threads may outlive static objects.
BorrowedReader::Pool& BorrowedReader::Readers() {
  static Pool* const pool = new Pool;
  return *pool;
}

BorrowedReader::BorrowedReader(codegen::Target target, const Files& files,
                               const std::vector<std::string>& last_arguments)
    : idle_{target, files, last_arguments, nullptr} {
  {
    const std::lock_guard lock(Readers().mutex);
    auto& idle = Readers().idle;
    const auto same = std::find_if(idle.rbegin(), idle.rend(), [&](const Idle& other) {
      return std::tie(other.target, other.files, other.last_arguments) == std::tie(target, files, last_arguments);
    });
    if (same != idle.rend()) {
      idle_ = std::move(*same);
      idle.erase(std::next(same).base());
    }
  }
  if (idle_.reader == nullptr) idle_.reader = std::make_unique<Reader>(target, files, last_arguments);
}

BorrowedReader::~BorrowedReader() {
  if (!idle_.reader->fit()) return;
  Idle oldest = {idle_.target, nullptr, {}, nullptr};  // ends without the lock
  const std::lock_guard lock(Readers().mutex);
  auto& idle = Readers().idle;
  idle.push_back(std::move(idle_));
  if (idle.size() <= kMostIdle) return;
  oldest = std::move(idle.front());
  idle.erase(idle.begin());
}

}  // namespace umbra
