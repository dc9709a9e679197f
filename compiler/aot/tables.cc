// LIB.h and LIB.cc: what callers see of the kernels.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "compiler/aot/interface.h"
#include "compiler/codegen/writer.h"
#include "compiler/plan/build.h"
#include "runtime/program_text.h"
#include "umbra/error.h"

namespace umbra::aot {

namespace {

std::string Origin(const Kernel& kernel) {
  return fmt::format("{}:{}", std::filesystem::path(kernel.file).filename().string(), kernel.line);
}

// Calls of `text` with each parameter, with commas between.
template <typename Text>
std::string Join(const std::vector<Parameter>& parameters, const Text& text) {
  std::string result;
  for (const Parameter& parameter : parameters) result += (result.empty() ? "" : ", ") + text(parameter);
  return result;
}

// Type of a number, in C as well.
std::string NumberType(DType type) {
  const std::string name = ElementType(type);
  return name.rfind("std::", 0) == 0 ? name.substr(5) : name;
}

// The C function of a kernel, without a semicolon.
std::string Prototype(const Entry& entry) {
  return fmt::format("umbra_status {}({})", entry.function, Join(entry.parameters, [](const Parameter& p) {
                       return p.scalar >= 0 ? fmt::format("{} {}", NumberType(p.dtype), p.name)
                                            : fmt::format("const umbra_tensor* {}", p.name);
                     }));
}

// What a wrapper takes: blobs, or tensors on a device.
enum class Face { kBlob, kCpu, kGpu };

std::string OperandType(const Parameter& p, Face face) {
  if (face == Face::kBlob) return "const umbra::TBlob&";
  if (p.rank == 0) return fmt::format("{}{}*", p.output ? "" : "const ", ElementType(p.dtype));
  return fmt::format("const umbra::Tensor<umbra::{}, {}, {}>&", face == Face::kGpu ? "gpu" : "cpu", p.rank,
                     ElementType(p.dtype));
}

void Wrapper(const Entry& entry, Face face, codegen::Writer* out) {
  out->Line("inline void {}({}) {{", entry.kernel->name, Join(entry.parameters, [&](const Parameter& p) {
              return fmt::format("{} {}", p.scalar >= 0 ? NumberType(p.dtype) : OperandType(p, face), p.name);
            }));
  out->Line("  umbra::detail::Check({}({}));", entry.function, Join(entry.parameters, [&](const Parameter& p) {
              if (p.scalar >= 0) return p.name;
              return fmt::format("umbra::detail::CallOperand({}{})", p.name,
                                 face == Face::kGpu && p.rank == 0 ? ", UMBRA_DEVICE_GPU" : "");
            }));
  out->Line("}}");
}

std::vector<codegen::Target> CpuTargets(const Library& library, const Kernel& kernel) {
  return kernel.on_cpu ? library.targets.cpu : std::vector<codegen::Target>();
}
bool ForGpu(const Library& library, const Kernel& kernel) { return kernel.on_gpu && !library.targets.gpu.empty(); }

// A constant array, if it has an element; gives what refers to it.
std::string Array(const std::string& type, const std::string& name, const std::vector<std::string>& elements,
                  codegen::Writer* out) {
  if (elements.empty()) return "nullptr";
  out->Line("const {} {}[] = {{{}}};", type, name, fmt::join(elements, ", "));
  return name;
}

std::vector<std::string> Encoded(const std::vector<runtime::Extent>& shape) {
  std::vector<std::string> extents;
  for (const runtime::Extent& extent : shape)
    extents.push_back(std::to_string(extent.is_static() ? extent.value : -1 - extent.symbol));
  return extents;
}

// The constants of one kernel; gives its umbra_kernel_desc.
std::string Constants(const Library& library, const Entry& entry, codegen::Writer* out) {
  const std::string& name = entry.kernel->name;
  std::size_t inputs = 0, outputs = 0;
  std::vector<std::string> operands, scalars, targets;
  for (const runtime::Buffer& buffer : entry.plan.buffers) {
    if (buffer.kind > runtime::Buffer::Kind::kOutput) break;
    ++(buffer.kind == runtime::Buffer::Kind::kInput ? inputs : outputs);
    const std::string shape =
        Array("int64_t", fmt::format("{}_shape{}", name, operands.size()), Encoded(buffer.shape), out);
    operands.push_back(
        fmt::format("{{\"{}\", UMBRA_DTYPE_{}, {}, {}}}", buffer.name, Name(buffer.dtype), buffer.shape.size(), shape));
  }
  for (const auto& [scalar, dtype] : entry.plan.scalars)
    scalars.push_back(fmt::format("{{\"{}\", UMBRA_DTYPE_{}}}", scalar, Name(dtype)));
  for (const codegen::Target target : CpuTargets(library, *entry.kernel))
    targets.push_back(fmt::format("{{\"{}\", {} + {}}}", Name(target),
                                  TableName(library, entry.kernel->unit, Name(target)), entry.first_function));
  const std::string operand_table = Array("umbra_operand_desc", name + "_operands", operands, out);
  const std::string scalar_table = Array("umbra_scalar_desc", name + "_scalars", scalars, out);
  const std::string target_table = Array("umbra_target_desc", name + "_targets", targets, out);
  const std::string program = runtime::ProgramToText(plan::ToProgram(entry.plan));
  out->Line("const char {}_program[] =", name);
  out->Line("    {};", Quoted(program, "    "));
  out->Line("void* {}_state;", name);
  std::string gpu = "nullptr";
  if (ForGpu(library, *entry.kernel)) {
    std::vector<std::string> architectures;
    for (const cuda::Architecture& architecture : library.targets.gpu) architectures.push_back(architecture.Name());
    const std::string on_gpu = runtime::ProgramToText(plan::ToProgram(entry.gpu_plan));
    out->Line("const umbra_gpu_desc {}_gpu = {{\"{}\",\n    {},\n    {}, {} + {}, {}}};", name,
              fmt::join(architectures, ", "), on_gpu == program ? name + "_program" : Quoted(on_gpu, "    "),
              Quoted(runtime::SchedulesToText(entry.schedules), "    "),
              TableName(library, entry.kernel->unit, kCudaTarget), entry.first_code, entry.num_codes);
    gpu = fmt::format("&{}_gpu", name);
  }
  return fmt::format(
      "{{\"{0}\", {1},\n     \"{2}\", {3}, {4}, {5}, {6}, {7}, {8}, {9}, {0}_program, &{0}_state, {10}}}", name,
      Quoted(entry.signature, "     "), Origin(*entry.kernel), inputs, outputs, scalars.size(), targets.size(),
      operand_table, scalar_table, target_table, gpu);
}

// The call of a kernel with `operands` in the plan's order and scalars by name.
void Call(const Library& library, const Entry& entry, const std::vector<std::string>& operands,
          const std::vector<std::string>& scalars, const std::string& format, codegen::Writer* out) {
  out->Line("  const umbra_tensor* const operands[] = {{{}}};", fmt::join(operands, ", "));
  if (!scalars.empty()) out->Line("  umbra_scalar scalars[{}];", scalars.size());
  for (std::size_t k = 0; k < scalars.size(); ++k)
    out->Line("  scalars[{}].{} = {};", k, Name(entry.plan.scalars[k].second), scalars[k]);
  const std::string call = fmt::format("umbra_call(&{}_kernels[{}], operands, {}, 0)", library.name, entry.index,
                                       scalars.empty() ? "nullptr" : "scalars");
  out->Line("  {};", fmt::format(fmt::runtime(format), call));
}

void CFunction(const Library& library, const Entry& entry, codegen::Writer* out) {
  std::vector<std::string> operands(entry.parameters.size()), scalars(entry.plan.scalars.size());
  for (const Parameter& p : entry.parameters)
    (p.buffer >= 0 ? operands[static_cast<std::size_t>(p.buffer)] : scalars[static_cast<std::size_t>(p.scalar)]) =
        p.name;
  operands.resize(entry.parameters.size() - scalars.size());
  out->Line("{} {{", Prototype(entry));
  Call(library, entry, operands, scalars, "return {}", out);
  out->Line("}}");
}

std::string DefinedName(const Entry& entry) { return entry.kernel->name + "_defined"; }

// The definition of a marked function, under its own symbol.
void MarkedFunction(const Library& library, const Entry& entry, codegen::Writer* out) {
  const CppFunction& function = *entry.kernel->function;
  const graph::Graph& graph = *entry.kernel->graph;
  std::vector<std::string> operands(graph.inputs().size() + graph.outputs().size()), scalars(graph.scalars().size());
  std::string parameters;
  for (const CppParameter& p : function.parameters) {
    parameters += fmt::format("{}{} {}", parameters.empty() ? "" : ", ", p.type, p.name);
    if (p.input >= 0) operands.at(static_cast<std::size_t>(p.input)) = p.name + "_operand";
    if (p.output >= 0) operands.at(graph.inputs().size() + static_cast<std::size_t>(p.output)) = p.name + "_operand";
    if (p.scalar >= 0) scalars.at(static_cast<std::size_t>(p.scalar)) = p.name;
  }
  const std::string name = DefinedName(entry);
  // An inline function is one for all libraries, and with it the other name of it. That one is not weak, as the user's
  // is.
  const std::string label = function.instance ? "umbra_instance_" + function.symbol : function.symbol;
  const std::string kind = function.instance ? "inline __attribute__((used)) void" : "void";
  out->Line("{} {}({}) __asm__(\"{}\");", kind, name, parameters, label);
  if (function.instance)
    out->Line("void {}_instance({}) __asm__(\"{}\") __attribute__((alias(\"{}\")));", name, parameters, function.symbol,
              label);
  out->Line("{} {}({}) {{", kind, name, parameters);
  for (const CppParameter& p : function.parameters)
    if (p.input >= 0 || p.output >= 0) out->Line("  const umbra::detail::CallOperand {0}_operand({0});", p.name);
  for (const auto& [a, b] : function.apart)
    out->Line(
        "  umbra::detail::RequireApart({0}, {1}, \"kernel '{2}': '{0}' and '{1}' overlap in memory, which would change "
        "the result; give them memory of their own\");",
        function.parameters.at(static_cast<std::size_t>(a)).name,
        function.parameters.at(static_cast<std::size_t>(b)).name, entry.kernel->name);
  Call(library, entry, operands, scalars, "umbra::detail::Check({})", out);
  out->Line("}}");
}

}  // namespace

std::string HeaderText(const Library& library, const std::vector<Entry>& entries) {
  codegen::Writer out;
  const std::string guard = fmt::format("UMBRA_KERNELS_{}_H_", library.name);
  out.Line("/* Generated by umbra: kernels that were compiled ahead of time. */");
  out.Line("#ifndef {}\n#define {}\n", guard, guard);
  out.Line("#include \"umbra/kernel_desc.h\"\n");
  out.Line("#ifdef __cplusplus\nextern \"C\" {{\n#endif\n");
  out.Line("/** The kernels of this library; the last entry has no name. */");
  out.Line("extern const umbra_kernel_desc {}_kernels[];\n", library.name);
  for (const Entry& entry : entries) {
    out.Line("/** {}: {}{} */", Origin(*entry.kernel), entry.kernel->name, entry.signature);
    out.Line("{};", Prototype(entry));
  }
  out.Line("\n#ifdef __cplusplus\n}}  // extern \"C\"\n");
  out.Line("#include \"umbra/kernel_call.h\"\n");
  out.Line("// The same for C++, where what does not fit is an exception of umbra/error.h.");
  out.Line("namespace {} {{\n", library.name);
  for (const Entry& entry : entries) {
    // Without a tensor of any rank the wrappers of both devices would be one.
    const bool tensors =
        std::any_of(entry.parameters.begin(), entry.parameters.end(), [](const Parameter& p) { return p.rank > 0; });
    const bool gpu = ForGpu(library, *entry.kernel), cpu = !CpuTargets(library, *entry.kernel).empty();
    if (cpu) Wrapper(entry, Face::kCpu, &out);
    if (gpu && (tensors || !cpu)) Wrapper(entry, Face::kGpu, &out);
    Wrapper(entry, Face::kBlob, &out);
  }
  out.Line("\n}}  // namespace {}", library.name);
  out.Line("#endif  // __cplusplus\n");
  out.Line("#endif  /* {} */", guard);
  return out.Take();
}

std::string TablesText(const Library& library, const std::vector<Entry>& entries) {
  codegen::Writer out;
  out.Line("// Generated by umbra.");
  out.Line("#include \"{}.h\"\n", library.name);
  std::set<std::pair<std::string, std::string>> tables;  // type and name
  for (const Entry& entry : entries) {
    const std::string& unit = entry.kernel->unit;
    for (const codegen::Target target : library.targets.cpu)
      tables.emplace("kernel_fn", TableName(library, unit, Name(target)));
    if (!library.targets.gpu.empty()) tables.emplace("gpu_code", TableName(library, unit, kCudaTarget));
  }
  out.Line("extern \"C\" {{");
  for (const auto& [type, table] : tables)
    out.Line("__attribute__((visibility(\"hidden\"))) extern const umbra_{} {}[];", type, table);
  out.Line("}}\n\nnamespace {{\n");
  std::vector<std::string> descs;
  for (const Entry& entry : entries) {
    out.Line("// {}: {}{}", Origin(*entry.kernel), entry.kernel->name, entry.signature);
    descs.push_back(Constants(library, entry, &out));
    out.Blank();
  }
  out.Line("}}  // namespace\n");
  descs.emplace_back("{}");
  out.Line("const umbra_kernel_desc {}_kernels[] = {{\n    {}}};\n", library.name, fmt::join(descs, ",\n    "));
  std::map<std::string, const Kernel*> origins;
  for (const Entry& entry : entries) {
    CFunction(library, entry, &out);
    origins[entry.function] = entry.kernel;
    if (!entry.kernel->function) continue;
    MarkedFunction(library, entry, &out);
    origins[DefinedName(entry)] = entry.kernel;
  }
  return WithOrigins(out.Take(), library.name + ".cc", origins);
}

}  // namespace umbra::aot
