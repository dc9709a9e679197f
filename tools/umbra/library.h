// Writing the files of a library of kernels, as every tool does that makes some.
#ifndef UMBRA_TOOLS_UMBRA_LIBRARY_H_
#define UMBRA_TOOLS_UMBRA_LIBRARY_H_

#include <optional>
#include <string>
#include <vector>

#include "compiler/aot/aot.h"

namespace umbra::tools {

/// Writes the files of `library`, with objects if they are asked for, into `folder`, which is made if it is missing. Nothing is written unless
/// all is well; a file that would not change keeps its time stamp. NAME.stamp is written last, each time: it
/// tells a build when the others were made. `depfile`, unless it is empty, gets a rule for Make and Ninja by which
/// the stamp depends on `inputs`.
void WriteLibrary(const aot::Library& library, const std::string& folder, const std::string& depfile,
                  const std::vector<std::string>& inputs, const std::optional<aot::Objects>& objects);

}  // namespace umbra::tools

#endif  // UMBRA_TOOLS_UMBRA_LIBRARY_H_
