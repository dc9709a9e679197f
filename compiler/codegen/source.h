// Source: the text of a kernel for one target. What a person inspects is, to the letter, what
// is compiled.
#ifndef UMBRA_COMPILER_CODEGEN_SOURCE_H_
#define UMBRA_COMPILER_CODEGEN_SOURCE_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/plan.h"

namespace umbra::codegen {

/// An instruction set that sources are written for.
enum class Target { kPlain, kSse2, kAvx2, kAvx512 };
inline constexpr Target kAllTargets[] = {Target::kPlain, Target::kSse2, Target::kAvx2, Target::kAvx512};
std::string_view Name(Target target);  ///< plain, sse2, avx2, avx512
std::optional<Target> FindTarget(std::string_view name);
/// Bytes of the widest register: 64 for avx512; 0 for plain.
int RegisterBytes(Target target);
/// Packets in a group, kGroup of the prelude; more would not leave registers for a polynomial's coefficients.
inline constexpr int kGroupSize = 4;
/// The flags that g++ and clang need for the target, e.g. "-mavx2 -mfma".
std::span<const std::string_view> CompilerFlags(Target target);

enum class Spelling { kPackets, kIntrinsics };

struct SourceOptions {
  Target target = Target::kAvx2;
  Spelling spelling = Spelling::kPackets;
  runtime::Variant variant;  ///< of one kernel; of a plan, how results are stored
  bool fast = false;  ///< may products that are summed stay unrounded? (Math::kFast)
  /// Lines that compute a value end with a comment that says where the user wrote it (plan::Value::place).
  bool places = false;
};

/// What stands before the place in such a comment, which ends the line.
inline constexpr std::string_view kPlaceMark = "  // at ";

/// One translation unit.
struct Source {
  std::string text;
  std::vector<std::string> functions;  ///< extern "C" names, one per kernel
  bool fast = false;  ///< may a compiler contract products and sums?
};

/// A kernel in one of its variants.
struct SourceItem {
  const plan::Plan* plan;
  const plan::Kernel* kernel;
  runtime::Variant variant;
};

/// The variants that launches of dense operands need, whose results stay in the caches: the likeliest, then that for
/// few rows, if these are not known and there is one.
std::vector<runtime::Variant> LikelyVariants(const runtime::KernelSignature& signature, std::string_view target);

/// The source of one kernel of `plan` (prelude by #include; the JIT gives the embedded text to
/// Clang; the intrinsics spelling pastes it).
Source Generate(const plan::Plan& plan, const plan::Kernel& kernel, const SourceOptions& options);
/// The source of all kernels of a plan in one translation unit, each in its likely variants, which store as `options`
/// say; of two, the name of one ends with `_packed`.
Source Generate(const plan::Plan& plan, const SourceOptions& options);
/// The source of kernels that have different names, whose variants are those of the items.
Source Generate(std::span<const SourceItem> items, SourceOptions options);

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_SOURCE_H_
