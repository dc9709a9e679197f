// The kernels of assignments from expressions: those of one type, by what the type does not tell.
#ifndef UMBRA_JIT_SITE_H_
#define UMBRA_JIT_SITE_H_

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "umbra/bridge.h"
#include "umbra/call_site.h"
#include "umbra/compile.h"
#include "umbra/cuda_call_site.h"

namespace umbra::detail {

/// Options of compiles that come from expressions; changing them makes call sites compile anew.
struct JitOptions {
  static std::atomic<int> generation;  ///< a number of their own for the options that were set last
  /// Those that were set last.
  static CompileOptions Get();
  /// Sets those of later compiles.
  static void Set(const CompileOptions& options);
};

/// One structure of an expression at one place of the program.
template <typename Device>
struct JitSite {
  JitSite(const Gathered& g, int generation, Function f)
      : num_structure(g.num_structure),
        joined(g.structure[g.num_structure - 1] != Gathered::kEndOfWalk),
        generation(generation),
        function(std::move(f)),
        site(function.shared_program()) {
    std::copy_n(g.structure, num_structure, structure);
  }
  bool Fits(const Gathered& g, int wanted) const {
    return generation == wanted &&
           std::equal(structure, structure + num_structure, g.structure, g.structure + g.num_structure);
  }
  /// The call that was made last, for the next one to compare with.
  [[gnu::always_inline]] EarlierCall Earlier() {
    if (compiled.load(std::memory_order_acquire) != JitOptions::generation.load(std::memory_order_acquire)) return {};
    const auto* const call = site.Latest();
    return call != nullptr && !joined ? EarlierCall{call, structure} : EarlierCall{};
  }
  /// Is there machine code to call? Once there is, it is not asked for again.
  bool Compiled() {
    if (compiled.load(std::memory_order_acquire) == generation) return true;
    if (function.interpreted()) return false;
    compiled.store(generation, std::memory_order_release);
    return true;
  }
  std::int64_t structure[Gathered::kMax] = {};
  int num_structure;
  bool joined;  ///< does an operand come twice?
  int generation;
  Function function;
  std::conditional_t<Device::kDevCPU, runtime::CallSite, runtime::CudaCallSite> site;
  std::atomic<int> compiled{-1};  ///< `generation` once there is machine code
  JitSite* next = nullptr;  ///< of those of the same type
};

/// The sites of assignments of one type. They are never destroyed: what is destroyed at the program's end may assign,
/// too.
template <typename Device>
class JitSites {
 public:
  constexpr JitSites() = default;
  /// The last call of the last structure.
  [[gnu::always_inline]] EarlierCall Earlier() {
    JitSite<Device>* const site = latest_.load(std::memory_order_acquire);
    return site != nullptr ? site->Earlier() : EarlierCall{};
  }
  /// Finds or compiles the kernels of a gathered assignment of the type. Operands that are one become one.
  JitSite<Device>* Of(Gathered& g, const AssignmentType& type);

 private:
  std::atomic<JitSite<Device>*> latest_{nullptr};
  std::mutex mutex_;  // of what follows
  JitSite<Device>* first_ = nullptr;
};
extern template JitSite<cpu>* JitSites<cpu>::Of(Gathered&, const AssignmentType&);
extern template JitSite<gpu>* JitSites<gpu>::Of(Gathered&, const AssignmentType&);

}  // namespace umbra::detail

#endif  // UMBRA_JIT_SITE_H_
