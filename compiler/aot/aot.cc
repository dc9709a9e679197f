#include "compiler/aot/aot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "compiler/aot/interface.h"
#include "compiler/codegen/names.h"
#include "compiler/driver/lower.h"
#include "compiler/driver/nvrtc.h"
#include "umbra/error.h"

namespace umbra::aot {

namespace {

bool IsIdentifier(const std::string& name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 || codegen::IsKeyword(name)) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

void Check(const Library& library) {
  Require(IsIdentifier(library.name), "the library is to be called '", library.name,
          "', which is no name in C++: use letters, digits and underscores");
  Require(library.name != "umbra" && library.name != "std", "the library is to be called '", library.name,
          "', which is the namespace of others: choose another name");
  Require(!library.targets.cpu.empty() || !library.targets.gpu.empty(), "library '", library.name, "' has no target");
  std::map<std::string, const Kernel*> names;
  for (const Kernel& kernel : library.kernels) {
    Require(IsIdentifier(kernel.name), kernel.file, ":", kernel.line, ": kernel '", kernel.name,
            "': its name is none in C++; rename it");
    Require(kernel.name != "kernels", kernel.file, ":", kernel.line, ": kernel '", kernel.name,
            "': the table of kernels has this name; rename it");
    const auto [known, fresh] = names.emplace(kernel.name, &kernel);
    Require(fresh, kernel.file, ":", kernel.line, ": kernel '", kernel.name, "' is also defined at ",
            known->second->file, ":", known->second->line, ": rename one");
  }
}

// Each name once: what is taken gets underscores.
class Identifiers {
 public:
  std::string Make(std::string name) {
    while (codegen::IsKeyword(name) || !taken_.insert(name).second) name += '_';
    return name;
  }

 private:
  std::set<std::string> taken_;
};

std::string OperandText(const plan::Plan& plan, const Parameter& parameter) {
  std::string text = fmt::format("{}: {}", parameter.name, Name(parameter.dtype));
  if (parameter.buffer < 0) return text;
  return text + ShapeText(plan, plan.buffers[static_cast<std::size_t>(parameter.buffer)].shape);
}

}  // namespace

std::string ElementType(DType type) {
  switch (type) {
#define UMBRA_DTYPE(dtype, name, type, ...)                \
  case DType::dtype: {                                     \
    return IsHalf(DType::dtype) ? "umbra::" #type : #type; \
  }
#include "umbra/dtypes.def"
  }
  return "float";
}

Entry MakeEntry(const Library& library, const Kernel& kernel) {
  Entry entry;
  entry.kernel = &kernel;
  entry.plan = Lower(*kernel.graph);
  entry.function = library.name + "_" + kernel.name;
  const graph::Graph& graph = *kernel.graph;
  Identifiers identifiers;
  // Where an operand was declared: the text form numbers nodes so, a C++ function has its own order.
  const auto place = [&](int node, int CppParameter::*of, int index) {
    if (!kernel.function) return node;
    const auto& all = kernel.function->parameters;
    return static_cast<int>(
        std::find_if(all.begin(), all.end(), [&](const CppParameter& p) { return p.*of == index; }) - all.begin());
  };
  std::map<int, std::pair<int, Parameter>> declared;  // nodes and what they are to callers
  for (int k = 0; const int node : graph.inputs()) {
    auto& [input, parameter] = declared[place(node, &CppParameter::input, k)];
    input = node;
    parameter.buffer = k++;
  }
  for (int k = 0; const int node : graph.scalars()) {
    auto& [scalar, parameter] = declared[place(node, &CppParameter::scalar, k)];
    scalar = node;
    parameter.scalar = k++;
  }
  std::string in, out;
  const auto add = [&](Parameter parameter, const std::string& name, std::string* text) {
    if (parameter.buffer >= 0) {
      const runtime::Buffer& buffer = entry.plan.buffers[static_cast<std::size_t>(parameter.buffer)];
      parameter.dtype = buffer.dtype;
      parameter.rank = static_cast<int>(buffer.shape.size());
    } else {
      parameter.dtype = entry.plan.scalars[static_cast<std::size_t>(parameter.scalar)].second;
    }
    parameter.name = name;
    *text += (text->empty() ? "" : ", ") + OperandText(entry.plan, parameter);
    parameter.name = identifiers.Make(name);
    entry.parameters.push_back(std::move(parameter));
  };
  for (const auto& [at, operand] : declared) add(operand.second, graph.node(operand.first).name, &in);
  for (std::size_t k = 0; k < graph.outputs().size(); ++k) {
    Parameter parameter;
    parameter.buffer = static_cast<int>(graph.inputs().size() + k);
    parameter.output = true;
    add(parameter, graph.outputs()[k].name, &out);
  }
  entry.signature = fmt::format("({}) -> ({})", in, out);
  return entry;
}

std::string WithOrigins(const std::string& text, const std::string& name,
                        const std::map<std::string, const Kernel*>& functions) {
  std::string result;
  int line = 0;
  const Kernel* current = nullptr;
  bool elsewhere = false;  // are lines counted in the user's text?
  const auto lead = [&](const std::string& path, std::string_view number) {
    const std::string file = std::filesystem::path(path).filename().string();
    result += fmt::format("#line {} {}\n", number, Quoted(file, ""));
    ++line;
    elsewhere = true;
  };
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    const std::string_view here = std::string_view(text).substr(begin, end - begin);
    begin = end;
    ++line;
    if (const std::size_t mark = here.rfind(codegen::kPlaceMark);
        mark != std::string_view::npos && current != nullptr) {
      const std::string_view place =
          here.substr(mark + codegen::kPlaceMark.size(), here.size() - 1 - mark - codegen::kPlaceMark.size());
      const std::size_t colon = place.rfind(':');
      lead(colon == 0 ? current->file : std::string(place.substr(0, colon)), place.substr(colon + 1));
      result += std::string(here.substr(0, mark)) + '\n';
      continue;
    }
    // A definition: "type name(parameters) {", not indented.
    const std::size_t parenthesis = here.find('(');
    const std::size_t space = here.rfind(' ', parenthesis);
    const bool opens = here[0] != ' ' && here.size() > 2 && here.substr(here.size() - 2) == "{\n";
    const auto function = opens && parenthesis != std::string_view::npos && space != std::string_view::npos
                              ? functions.find(std::string(here.substr(space + 1, parenthesis - space - 1)))
                              : functions.end();
    if (function != functions.end()) {
      current = function->second;
      lead(current->file, std::to_string(current->line));
    } else if (elsewhere) {
      ++line;
      result += fmt::format("#line {} \"{}\"\n", line, name);
      elsewhere = false;
    }
    result += here;
  }
  return result;
}

std::string Quoted(const std::string& text, const std::string& indent) {
  constexpr std::size_t kWidth = 96;
  std::string result;
  for (std::size_t begin = 0; begin == 0 || begin < text.size(); begin += kWidth) {
    if (begin > 0) result += '\n' + indent;
    result += '"';
    for (const char c : text.substr(begin, kWidth)) {
      if (c == '"' || c == '\\') result += '\\';
      if (static_cast<unsigned char>(c) < ' ') result += fmt::format("\\{:03o}", static_cast<unsigned>(c));
      else result += c;
    }
    result += '"';
  }
  return result;
}

Targets ParseTargets(const std::string& list) {
  std::set<codegen::Target> cpu;
  std::string gpu;
  bool of_gpu = false;  // the word before is for GPUs
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string name = list.substr(begin, end - begin);
    begin = end + 1;
    if (const auto target = codegen::FindTarget(name)) {
      cpu.insert(*target);
      of_gpu = false;
      continue;
    }
    const bool prefixed = name.rfind("cuda:", 0) == 0;
    of_gpu = prefixed || (of_gpu && name.rfind("sm_", 0) == 0);
    Require(of_gpu, "unknown target '", name,
            "': expected plain, sse2, avx2 or avx512, with commas between several, or cuda:sm_80,sm_90 and the like");
    gpu += (gpu.empty() ? "" : ",") + name.substr(prefixed ? 5 : 0);
  }
  return {{cpu.begin(), cpu.end()}, gpu.empty() ? std::vector<cuda::Architecture>() : ParseArchitectures(gpu)};
}

std::vector<std::string> SourceFlags(codegen::Target target) {
  // Last, and so stronger than what is said for the rest of a program. Packets need no loops made to vectors, but their
  // short loops unrolled: with g++ these flags give the code of -O3 in two thirds of the time.
  const bool packets = target != codegen::Target::kPlain;
  std::vector<std::string> flags =
      packets ? std::vector<std::string>{"-O2", "-fpeel-loops"} : std::vector<std::string>{"-O3"};
  flags.insert(flags.end(),
               {"-fno-fast-math", "-ffp-contract=off", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-w"});
  if (packets) flags.emplace_back("-march=x86-64");
  for (const std::string_view flag : codegen::CompilerFlags(target)) flags.emplace_back(flag);
  return flags;
}

std::vector<File> Emit(const Library& given) {
  Check(given);
  Library library = given;
  // The order of files on a command line means nothing, nor do their folders; names are each one's own.
  const auto place = [](const Kernel& k) {
    return std::tuple(k.unit, std::filesystem::path(k.file).filename().string(), k.line, k.name);
  };
  std::sort(library.kernels.begin(), library.kernels.end(),
            [&](const Kernel& a, const Kernel& b) { return place(a) < place(b); });
  std::vector<Entry> entries;
  std::set<std::string> units;
  for (const Kernel& kernel : library.kernels) {
    entries.push_back(MakeEntry(library, kernel));
    entries.back().index = static_cast<int>(entries.size()) - 1;
    units.insert(kernel.unit);
  }
  if (units.empty()) units.emplace();
  std::map<std::string, File> files;
  const auto add = [&](const std::string& name, std::string text, std::optional<codegen::Target> target = {}) {
    files[name] = {name, std::move(text), target};
  };
  for (const std::string& unit : units) {
    const auto file = [&](std::string_view target) {
      return fmt::format("{}{}{}.{}.cc", library.name, unit.empty() ? "" : ".", unit, target);
    };
    for (const codegen::Target target : library.targets.cpu)
      add(file(Name(target)), KernelsText(library, unit, target, file(Name(target)), &entries), target);
    if (!library.targets.gpu.empty()) add(file(kCudaTarget), CodesText(library, unit, &entries));
  }
  add(library.name + ".cc", TablesText(library, entries));
  add(library.name + ".h", HeaderText(library, entries));
  std::vector<File> result;
  for (auto& [name, file] : files) result.push_back(std::move(file));
  return result;
}

}  // namespace umbra::aot
