// What was extracted, for people and tests.
#ifndef UMBRA_TOOLS_UMBRA_EXTRACT_PRINT_H_
#define UMBRA_TOOLS_UMBRA_EXTRACT_PRINT_H_

#include <string>

#include "tools/umbra-extract/extract.h"

namespace umbra::extract {

/// The signature, what each parameter and statement is, and the graph.
std::string Print(const ExtractedKernel& kernel);

}  // namespace umbra::extract

#endif  // UMBRA_TOOLS_UMBRA_EXTRACT_PRINT_H_
