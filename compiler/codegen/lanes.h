// Values at computed positions: they are not packet operations but one computation a lane, written
// as a lambda that prelude's by_lane<> calls for each.
#ifndef UMBRA_COMPILER_CODEGEN_LANES_H_
#define UMBRA_COMPILER_CODEGEN_LANES_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/codegen/speller.h"
#include "compiler/codegen/writer.h"
#include "compiler/plan/plan.h"

namespace umbra::codegen {

/// What the lanes of a kernel see of the code around them.
struct LaneContext {
  const plan::Kernel* kernel;
  std::function<bool(int value)> is_scalar;  ///< one number for all lanes?
  std::function<std::string(int value)> scalar_text;  ///< of such a number
  std::function<std::string(int value)> packet_text;  ///< of a row value that is a packet
  /// A memory operand's element at a vector index.
  std::function<std::string(const plan::Value& load, const std::string& index)> load_text;
  std::function<std::string(int operand)> operand_name;
  std::function<std::string(int operand, int dim)> stride_name;
  std::function<bool(const plan::Value& gather, std::size_t dim)>
      is_by_one;  ///< do elements along the dimension lie side by side?
  std::map<int, std::string> at_hand;  ///< values that the code before the lanes has, by their text in a lane
  int first_of = kNoAxis;  ///< axes from this one on, but for the vector axis, stand at their first point
  static constexpr int kNoAxis = 1 << 20;
};

/// `operand[position * stride + ...]`, or what stands outside where the guard fails. `text_of`: of a position.
std::string GatherText(const LaneContext& context, const plan::Value& gather,
                       const std::function<std::string(int value)>& text_of);
/// The same of an element's text and the guard's.
std::string GatherText(const plan::Value& gather, std::string element, const std::string& guard);

/// How many values a lane computes for `value`.
std::size_t LaneSize(const LaneContext& context, int value);

/// Writes the statements of one lane and returns the text of `value` in it, all in one expression if `out`
/// is null. `index` names the lane's position along the vector axis, "k" its number.
std::string EmitLane(const LaneContext& context, int value, const std::string& index, Writer* out);

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_LANES_H_
