#include "compiler/jit/compiled_functions.h"

#include <fmt/format.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/Endian.h>
#include <llvm/Support/raw_ostream.h>

#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "compiler/codegen/prelude.h"
#include "compiler/jit/machine_code.h"
#include "compiler/jit/precompiled.h"
#include "compiler/jit/reader.h"
#include "runtime/disk_cache.h"
#include "runtime/environment.h"
#include "umbra/error.h"

namespace umbra {

namespace {

using codegen::Target;

// An instance of a template.
struct Instance {
  std::string declaration;  // of a function in umbra::simd
  const char* mark;  // of sources that may call it,
  std::vector<std::string> packets;  // and name one of these
};

// Of the tiles of products (codegen/cpu/tiles.cc) and their panels.
void AddProducts(Target target, std::vector<Instance>* instances) {
  struct Tile {
    int rows, packets;
  };
  const bool wide = target == Target::kAvx512;
  const std::vector<Tile> tiles = wide ? std::vector<Tile>{{8, 3}, {4, 3}} : std::vector<Tile>{{6, 2}, {3, 2}};
  const Tile few = wide ? Tile{4, 6} : Tile{3, 4};
  for (const auto& [element, size] : {std::pair("float", 4), std::pair("double", 8)}) {
    const int width = codegen::RegisterBytes(target) / size;
    const std::string packet = fmt::format("f{}x{}", 8 * size, width),
                      rows = fmt::format("{0}*, i64, bool, bool, const {0}*, i64, int, i64", element);
    const std::string columns = fmt::format("const {}*, i64, i64", element);
    const auto add = [&](const std::string& function) {
      instances->push_back({"void " + function + ")", "umbra/prelude/tile.h", {packet}});
    };
    const auto add_tile = [&](bool ahead, const Tile& tile) {
      add(fmt::format("add_products<{}>({} (&)[{}][{}], {}, {}", ahead, packet, tile.rows, tile.packets, rows,
                      columns));
    };
    for (const Tile& tile : tiles) add_tile(false, tile), add_tile(true, tile);
    add_tile(true, few);
    add(fmt::format("add_products_by_line<false>({} (&)[8], {}, {}", packet, rows, columns));
    if (wide) add(fmt::format("add_products_by_line<true>({} (&)[16], {}, {}", packet, rows, columns));
    add(fmt::format("add_products_head({} (&)[8], {}, {}, i64", packet, rows, columns));
    for (const int packets : {tiles[0].packets, 1})
      add(fmt::format("pack_panel<{}, {}>({}*, {}, i64, i64", width, packets, element, columns));
  }
}

// Of tiles that are transposed, whose rows fill a register or a part of one.
void AddTransposes(Target target, std::vector<Instance>* instances) {
  const std::map<int, std::vector<std::string>> types = {
      {1, {"i8", "u8"}}, {2, {"i16", "f16"}}, {4, {"i32", "f32"}}, {8, {"i64", "f64"}}};
  const int most = codegen::RegisterBytes(target) / 4;
  for (const int width : {most / 2, most})
    for (const auto& [bytes, elements] : types) {
      if (width * bytes > codegen::RegisterBytes(target)) continue;
      std::vector<std::string> packets;
      for (const std::string& element : elements) packets.push_back(fmt::format("{}x{}", element, width));
      const std::string element = fmt::format("BitsOfSize<{}>::type", bytes),
                        tile = fmt::format("Tile<packet<{}, {}>>", element, width);
      const auto add = [&](const std::string& function, const char* mark) {
        instances->push_back({fmt::format("UMBRA_REGISTER_CALL {} {})", tile, function), mark, packets});
      };
      if (width >= 8) {
        add("transposed_tile(" + tile, "_columns(");
        add("load_tile(const " + element + "*, i64", "load_transposed(");
      }
      add("load_tile_head(const " + element + "*, i64, i64, i64", "load_transposed_head(");
    }
}

std::vector<Instance> Instances(Target target) {
  std::vector<Instance> instances;
  if (target != Target::kAvx2 && target != Target::kAvx512) return instances;
  AddProducts(target, &instances);
  AddTransposes(target, &instances);
  return instances;
}

// Declarations of those that are wanted, each after `word`.
template <typename Wanted>
std::string Declare(const std::vector<Instance>& instances, const char* word, Wanted wanted) {
  std::string text;
  for (const Instance& instance : instances)
    if (wanted(instance)) text += fmt::format("{} {};\n", word, instance.declaration);
  return text.empty() ? text : "namespace umbra::simd {\n" + text + "}\n";
}

std::string DefineAll(Target target) {
  return Declare(Instances(target), "template", [](const Instance&) { return true; });
}

using Object = llvm::object::ELFObjectFile<llvm::object::ELF64LE>;

template <typename T>
T Checked(llvm::Expected<T> value) {
  if (value) return std::move(*value);
  throw InternalError("the precompiled prelude: " + llvm::toString(value.takeError()));
}

// The code of a function, and the constants after it that it reads.
std::string CodeOf(const Object& object, const llvm::object::ELFSymbolRef& function) {
  const llvm::object::SectionRef section = *Checked(function.getSection());
  const std::uint64_t begin = Checked(function.getValue()), size = function.getSize();
  std::string code = Checked(section.getContents()).substr(begin, size).str();
  for (const llvm::object::SectionRef& relocated : object.sections()) {
    if (Checked(relocated.getRelocatedSection()) != section) continue;
    for (const llvm::object::ELFRelocationRef relocation : relocated.relocations()) {
      if (relocation.getOffset() < begin || relocation.getOffset() >= begin + size) continue;
      const std::uint64_t place = relocation.getOffset() - begin;
      const llvm::object::ELFSectionRef constants = *Checked(relocation.getSymbol()->getSection());
      const std::uint64_t bytes = object.getSection(constants.getRawDataRefImpl())->sh_entsize;
      Ensure(relocation.getType() == llvm::ELF::R_X86_64_PC32 && bytes > 0,
             "a function of the prelude refers to something else than constants");
      code.append((bytes - code.size() % bytes) % bytes, '\0');
      const std::int64_t distance = static_cast<std::int64_t>(code.size() - place) + Checked(relocation.getAddend());
      llvm::support::endian::write32le(&code[place], static_cast<std::uint32_t>(distance));
      code += Checked(constants.getContents()).substr(Checked(relocation.getSymbol()->getValue()), bytes);
    }
  }
  return code;
}

// Assembly that defines a function.
std::string Define(const std::string& name, const std::string& code) {
  std::string text = fmt::format(".text\n.p2align 6\n.type {0},@function\n{0}:\n.ascii \"", name);
  for (const char byte : code) text += fmt::format("\\{:03o}", static_cast<unsigned char>(byte));
  return text + fmt::format("\"\n.size {0},.-{0}\n", name);
}

// What an object is called inside that has the functions for a target, and no others.
std::string ObjectId(Target target) {
  return runtime::CacheKey({codegen::PreludeId(), codegen::Name(target), DefineAll(target)});
}

// Assembly that defines each function, by name. Nothing if the object is another one.
std::map<std::string, std::string> AssemblyOf(llvm::MemoryBufferRef file, Target target) {
  std::map<std::string, std::string> assembly;
  const auto object = Checked(Object::create(file));
  const auto is_id = [&](const llvm::object::ELFSymbolRef& symbol) {
    return Checked(symbol.getType()) == llvm::object::SymbolRef::ST_File &&
           Checked(symbol.getName()) == ObjectId(target);
  };
  if (llvm::none_of(object.symbols(), is_id)) return assembly;
  for (const llvm::object::ELFSymbolRef symbol : object.symbols())
    if (Checked(symbol.getType()) == llvm::object::SymbolRef::ST_Function)
      assembly[Checked(symbol.getName()).str()] = Define(Checked(symbol.getName()).str(), CodeOf(object, symbol));
  return assembly;
}

// Empty where there is no file, or no good one: kernels are compiled with the functions then.
struct Functions {
  explicit Functions(Target target) : instances(Instances(target)) {
    const auto file = ReadBeside(target, "o");
    if (file == nullptr) return;
    try {
      assembly = AssemblyOf(file->getMemBufferRef(), target);
    } catch (const InternalError& error) {
      if (runtime::ReadEnvironment().trace) llvm::errs() << "--- " << error.what() << "\n";
    }
  }
  std::vector<Instance> instances;
  std::map<std::string, std::string> assembly;
};

const Functions& FunctionsFor(Target target) {
  static std::array<std::once_flag, std::size(codegen::kAllTargets)> once;
  static std::array<const Functions*, std::size(codegen::kAllTargets)>
      found;  // never destroyed: threads may outlive static objects
  const auto place = static_cast<std::size_t>(target);
  std::call_once(once[place], [&] { found[place] = new Functions(target); });
  return *found[place];
}

}  // namespace

std::string DeclareCompiledFunctions(const codegen::Source& source, Target target) {
  if (FunctionsFor(target).assembly.empty()) return {};
  const auto is_in_source = [&](std::string_view mark) { return source.text.find(mark) != std::string::npos; };
  return Declare(FunctionsFor(target).instances, "extern template", [&](const Instance& instance) {
    return is_in_source(instance.mark) && llvm::any_of(instance.packets, is_in_source);
  });
}

void CopyCompiledFunctions(llvm::Module* module, Target target) {
  for (const llvm::Function& function : *module) {
    if (!function.isDeclaration() || function.isIntrinsic()) continue;
    const auto& all = FunctionsFor(target).assembly;
    if (const auto found = all.find(function.getName().str()); found != all.end())
      module->appendModuleInlineAsm(found->second);
  }
}

std::vector<char> CompileFunctions(Target target) {
  std::string log;
  llvm::LLVMContext context;
  const std::string source =
      "#include \"umbra/kernel_prelude.h\"\n#include \"umbra/prelude/panel.h\"\n#include \"umbra/prelude/tile.h\"\n" +
      DefineAll(target);
  std::vector<SourceFile> files = PreludeSources();
  files.push_back({"/functions.cc", source});
  Reader reader(target, FilesInMemory(files), {kNoNames});
  const auto module = reader.Read(files.back(), &context, nullptr, &log);
  Require(module != nullptr, "Clang cannot compile the prelude:\n", log);
  module->setSourceFileName(ObjectId(target));
  const BorrowedMachine machine(target, /*fast=*/false);
  Optimise(module.get(), machine.get(), target);
  std::vector<char> object = machine.Emit(module.get());
  AssemblyOf({llvm::StringRef(object.data(), object.size()), ""},
             target);  // throws if there is a function that cannot be copied
  return object;
}

}  // namespace umbra
