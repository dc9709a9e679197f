// What callers see of a kernel: its operands in the order of its declaration.
#ifndef UMBRA_COMPILER_AOT_INTERFACE_H_
#define UMBRA_COMPILER_AOT_INTERFACE_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/aot/aot.h"
#include "compiler/plan/plan.h"
#include "umbra/compile.h"
#include "umbra/cuda_launch.h"

namespace umbra::aot {

/// An operand as a parameter of the C function.
struct Parameter {
  std::string name;  ///< an identifier, unique in the kernel
  DType dtype = DType::kFloat32;
  int rank = 0;
  int buffer = -1;  ///< of the plan, or
  int scalar = -1;  ///< of the plan
  bool output = false;
};

/// A kernel with what was made of it.
struct Entry {
  const Kernel* kernel = nullptr;
  plan::Plan plan;
  std::string function;  ///< the C function
  std::vector<Parameter> parameters;  ///< inputs and scalars as they were declared, then outputs
  std::string signature;  ///< as the text form has it
  int index = 0;  ///< in the library
  /// First function of the kernel in its unit's table: UMBRA_VARIANTS a step.
  int first_function = 0;
  /// On a GPU: the plan, how its steps are launched, and the kernel's part of its unit's table of images.
  plan::Plan gpu_plan;
  std::vector<runtime::CudaSchedule> schedules;
  int first_code = 0, num_codes = 0;
};

/// Plans `kernel`.
Entry MakeEntry(const Library& library, const Kernel& kernel);

/// The C++ type of an element, e.g. umbra::half_t.
std::string ElementType(DType type);

/// The texts of LIB.h and LIB.cc.
std::string HeaderText(const Library& library, const std::vector<Entry>& entries);
std::string TablesText(const Library& library, const std::vector<Entry>& entries);

/// Name of the table of functions of a unit for a target, or of its images.
std::string TableName(const Library& library, const std::string& unit, std::string_view target);
/// The text of a unit for a target, which is the file `file`; sets first_function of its entries.
std::string KernelsText(const Library& library, const std::string& unit, codegen::Target target,
                        const std::string& file, std::vector<Entry>* entries);

/// The same for GPUs: compiles the kernels; sets what entries have of GPUs.
std::string CodesText(const Library& library, const std::string& unit, std::vector<Entry>* entries);

/// `text` of the file `name` with #line directives, so that a debugger and a profiler find each function of
/// `functions`, and each of its lines that has a place, where the user wrote it; all else stays where it is.
std::string WithOrigins(const std::string& text, const std::string& name,
                        const std::map<std::string, const Kernel*>& functions);

/// A C string literal, broken into lines.
std::string Quoted(const std::string& text, const std::string& indent);

}  // namespace umbra::aot

#endif  // UMBRA_COMPILER_AOT_INTERFACE_H_
