#include "runtime/cpu_info.h"
#include "runtime/operands.h"
#include "runtime/overlap.h"
#include "runtime/parallel.h"
#include "runtime/prepared.h"
#include "umbra/cuda_call_site.h"
#include "umbra/function.h"

namespace umbra::runtime {

void Run(const Program& program, const Arguments& arguments, const RunOptions& options) {
  RequireThreads(options.threads);
  if (program.on_gpu) return RunOnGpu(program, arguments, options);
  const std::vector<index_t> symbols = CheckArguments(program, arguments);
  std::vector<TensorRef> operands = BuffersOf(arguments);
  const OperandPairs overlaps = CheckOverlaps(program, operands);
  if (const auto faster = FasterFor(program, symbols, operands, overlaps).program)
    return Run(*faster, arguments, options);
  std::vector<void*> data;
  for (const TensorRef& operand : operands) data.push_back(operand.data);
  const int threads = options.threads > 0 ? options.threads : NumProcessors();
  PreparedProgram(program, std::move(operands), symbols, overlaps, threads).Run(data.data(), arguments.scalars.data());
}

}  // namespace umbra::runtime
