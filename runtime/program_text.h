// A Program as text, which code that is generated ahead of time carries as a constant.
#ifndef UMBRA_RUNTIME_PROGRAM_TEXT_H_
#define UMBRA_RUNTIME_PROGRAM_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "umbra/cuda_launch.h"
#include "umbra/program.h"

namespace umbra::runtime {

/// Everything but the code. Equal programs have equal texts, in every locale.
std::string ProgramToText(const Program& program);

/// The program of a text, without code. Throws umbra::Error if the text was not written by
/// ProgramToText of this version.
Program ProgramFromText(std::string_view text);

/// The same for how a GPU launches each of a program's kernels.
std::string SchedulesToText(const std::vector<CudaSchedule>& schedules);
std::vector<CudaSchedule> SchedulesFromText(std::string_view text);

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_PROGRAM_TEXT_H_
