#include "runtime/object_loader.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "umbra/error.h"

namespace umbra::runtime {

namespace {

[[noreturn]] void Malformed(const char* what) { throw Error(std::string("malformed kernel object: ") + what); }

// The mapped image: all sections that the code needs, then a table of far addresses.
struct Image {
  char* base = nullptr;
  std::size_t size = 0;
  ~Image() {
    if (base != nullptr) munmap(base, size);
  }
};

class Loader {
 public:
  explicit Loader(std::string_view object) : object_(object) {}

  KernelCode Load(const std::string& function) {
    ReadHeaders();
    LayOut();
    Map();
    for (const Elf64_Shdr& section : sections_)
      if (section.sh_type == SHT_RELA && section.sh_info < sections_.size() && offset_[section.sh_info] != kAbsent)
        Relocate(section);
    const char* entry = nullptr;
    for (const Elf64_Sym& symbol : symbols_)
      if (symbol.st_shndx != SHN_UNDEF && NameOf(symbol) == function && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
        entry = Defined(symbol);
    Require(entry != nullptr, "kernel object: no function '", function, "'");
    const std::size_t page = PageSize();
    const std::size_t code_bytes = (code_size_ + page - 1) / page * page;
    Require(mprotect(image_->base, image_->size, PROT_READ) == 0 &&
                (code_bytes == 0 || mprotect(image_->base, code_bytes, PROT_READ | PROT_EXEC) == 0),
            "the system refuses to make memory executable; the JIT cannot run here, use "
            "kernels compiled ahead of time");
    return {reinterpret_cast<umbra_kernel_fn>(const_cast<char*>(entry)), image_};
  }

 private:
  static constexpr std::size_t kAbsent = ~std::size_t{0};
  static constexpr std::size_t kStub = 16;  // jmp *[rip + 2]; padding; address

  static std::size_t PageSize() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

  // A copy of the T at `offset` of the file.
  template <typename T>
  T At(std::uint64_t offset) const {
    if (offset > object_.size() || object_.size() - offset < sizeof(T)) Malformed("cut short");
    T value;
    std::memcpy(&value, object_.data() + offset, sizeof value);
    return value;
  }

  template <typename T>
  std::vector<T> Table(const Elf64_Shdr& section) const {
    CheckInFile(section);
    std::vector<T> table(section.sh_size / sizeof(T));
    if (!table.empty()) std::memcpy(table.data(), object_.data() + section.sh_offset, table.size() * sizeof(T));
    return table;
  }

  void CheckInFile(const Elf64_Shdr& section) const {
    if (section.sh_offset > object_.size() || section.sh_size > object_.size() - section.sh_offset)
      Malformed("a section reaches beyond the end");
  }

  void ReadHeaders() {
    const auto header = At<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_type != ET_REL || header.e_machine != EM_X86_64 || header.e_shentsize != sizeof(Elf64_Shdr))
      Malformed("not a relocatable x86-64 ELF file");
    for (unsigned k = 0; k < header.e_shnum; ++k)
      sections_.push_back(At<Elf64_Shdr>(header.e_shoff + k * sizeof(Elf64_Shdr)));
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_SYMTAB) continue;
      symbols_ = Table<Elf64_Sym>(section);
      if (section.sh_link >= sections_.size()) Malformed("no string table");
      const Elf64_Shdr& strings = sections_[section.sh_link];
      CheckInFile(strings);
      strings_ = object_.substr(strings.sh_offset, strings.sh_size);
    }
  }

  std::string NameOf(const Elf64_Sym& symbol) const {
    if (symbol.st_name >= strings_.size()) Malformed("a symbol has no name");
    const std::string_view rest = strings_.substr(symbol.st_name);
    return std::string(rest.substr(0, rest.find('\0')));
  }

  // Code first, then data, each section at its alignment; then one stub and one address a symbol.
  void LayOut() {
    offset_.assign(sections_.size(), kAbsent);
    std::size_t at = 0;
    for (const bool code : {true, false}) {
      for (std::size_t k = 0; k < sections_.size(); ++k) {
        const Elf64_Shdr& section = sections_[k];
        const bool wanted = (section.sh_flags & SHF_ALLOC) != 0 && section.sh_size > 0 &&
                            (section.sh_type == SHT_PROGBITS || section.sh_type == SHT_NOBITS) &&
                            ((section.sh_flags & SHF_EXECINSTR) != 0) == code;
        if (!wanted) continue;
        if (section.sh_type == SHT_PROGBITS) CheckInFile(section);
        const std::uint64_t alignment = std::max<std::uint64_t>(section.sh_addralign, 1);
        if (alignment > 4096 || (alignment & (alignment - 1)) != 0) Malformed("a strange alignment");
        if (section.sh_size > (std::uint64_t{1} << 30)) Malformed("a section of absurd size");
        at = (at + alignment - 1) / alignment * alignment;
        offset_[k] = at;
        at += section.sh_size;
      }
      if (code) {
        stubs_ = (at + kStub - 1) / kStub * kStub;
        code_size_ = at = stubs_ + kStub * symbols_.size();
        at = (at + PageSize() - 1) / PageSize() * PageSize();
      }
    }
    addresses_ = (at + 7) / 8 * 8;
    size_ = addresses_ + 8 * symbols_.size();
    if (size_ > (std::size_t{1} << 30)) Malformed("an image of absurd size");
  }

  void Map() {
    image_ = std::make_shared<Image>();
    image_->size = std::max<std::size_t>(size_, 1);
    void* memory = mmap(nullptr, image_->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    Require(memory != MAP_FAILED, "out of memory for a kernel of ", image_->size, " bytes");
    image_->base = static_cast<char*>(memory);
    for (std::size_t k = 0; k < sections_.size(); ++k)
      if (offset_[k] != kAbsent && sections_[k].sh_type == SHT_PROGBITS)
        std::memcpy(image_->base + offset_[k], object_.data() + sections_[k].sh_offset, sections_[k].sh_size);
  }

  const char* Defined(const Elf64_Sym& symbol) const {
    if (symbol.st_shndx >= sections_.size() || offset_[symbol.st_shndx] == kAbsent)
      Malformed("a symbol of a section that is not loaded");
    if (symbol.st_value > sections_[symbol.st_shndx].sh_size) Malformed("a symbol outside its section");
    return image_->base + offset_[symbol.st_shndx] + symbol.st_value;
  }

  const char* AddressOf(std::uint32_t index) {
    if (index >= symbols_.size()) Malformed("a relocation against no symbol");
    const Elf64_Sym& symbol = symbols_[index];
    if (symbol.st_shndx != SHN_UNDEF) return Defined(symbol);
    const std::string name = NameOf(symbol);
    if (name == "_GLOBAL_OFFSET_TABLE_") return image_->base + addresses_;
    if (void* const found = dlsym(RTLD_DEFAULT, name.c_str())) return static_cast<const char*>(found);
    static void* const libm = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
    if (void* const found = libm != nullptr ? dlsym(libm, name.c_str()) : nullptr)
      return static_cast<const char*>(found);
    throw Error("kernel object: symbol '" + name + "' is not to be found in this process or libm");
  }

  // Where the absolute address of a symbol is kept, for loads through the global offset table.
  char* AddressSlot(std::uint32_t index) {
    const char* target = AddressOf(index);
    char* slot = image_->base + addresses_ + 8 * index;
    std::memcpy(slot, &target, 8);
    return slot;
  }

  // Code that jumps to a symbol which may be out of reach.
  char* Stub(std::uint32_t index) {
    const char* target = AddressOf(index);
    char* stub = image_->base + stubs_ + kStub * index;
    static constexpr unsigned char kJump[8] = {0xff, 0x25, 0x02, 0, 0, 0, 0x90, 0x90};
    std::memcpy(stub, kJump, sizeof kJump);
    std::memcpy(stub + 8, &target, 8);
    return stub;
  }

  void Relocate(const Elf64_Shdr& section) {
    const std::size_t target = section.sh_info;
    for (const Elf64_Rela& rela : Table<Elf64_Rela>(section)) {
      const std::uint32_t type = ELF64_R_TYPE(rela.r_info), symbol = ELF64_R_SYM(rela.r_info);
      const std::size_t width = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
      if (rela.r_offset > sections_[target].sh_size || sections_[target].sh_size - rela.r_offset < width)
        Malformed("a relocation outside its section");
      char* place = image_->base + offset_[target] + rela.r_offset;
      const char* value = nullptr;
      bool relative = true;
      switch (type) {
        case R_X86_64_64: relative = false; [[fallthrough]];
        case R_X86_64_PC64:
        case R_X86_64_PC32: value = AddressOf(symbol); break;
        case R_X86_64_PLT32: value = Callable(symbol); break;
        case R_X86_64_GOTPCREL:
        case R_X86_64_GOTPCRELX:
        case R_X86_64_REX_GOTPCRELX: value = AddressSlot(symbol); break;
        default: throw Error("kernel object: unsupported relocation " + std::to_string(type));
      }
      const auto number = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(value)) + rela.r_addend -
                          (relative ? static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(place)) : 0);
      if (width == 8) {
        std::memcpy(place, &number, 8);
        continue;
      }
      const auto narrow = static_cast<std::int32_t>(number);
      Require(narrow == number, "kernel object: a relocation is out of reach");
      std::memcpy(place, &narrow, 4);
    }
  }

  const char* Callable(std::uint32_t index) {
    if (index >= symbols_.size()) Malformed("a relocation against no symbol");
    if (symbols_[index].st_shndx != SHN_UNDEF) return Defined(symbols_[index]);
    return Stub(index);
  }

  std::string_view object_, strings_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::vector<std::size_t> offset_;  // of each section in the image
  std::size_t stubs_ = 0, code_size_ = 0, addresses_ = 0, size_ = 0;
  std::shared_ptr<Image> image_;
};

}  // namespace

KernelCode LoadObject(std::string_view object, const std::string& function) { return Loader(object).Load(function); }

}  // namespace umbra::runtime
