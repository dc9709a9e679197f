// What a launching function knows of extents.
#ifndef UMBRA_COMPILER_CODEGEN_CUDA_EXTENTS_H_
#define UMBRA_COMPILER_CODEGEN_CUDA_EXTENTS_H_

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "compiler/codegen/cuda/term.h"
#include "compiler/codegen/names.h"
#include "compiler/codegen/writer.h"
#include "compiler/plan/plan.h"

namespace umbra::codegen {

/// The buffers of its operands, each once: inputs, outputs, temporaries.
std::set<int> BuffersOf(const runtime::KernelSignature& signature);

/// The extents of a kernel and its operands: names that a launch has as parameters, or computes of them.
class Extents {
 public:
  Extents(const plan::Plan& plan, const plan::Kernel& kernel, Names* names);

  Term Of(const runtime::Extent& extent) const {
    return extent.is_static() ? Term(extent.value) : Term(NameOf(extent.symbol));
  }
  const std::string& NameOf(int symbol) const { return names_[static_cast<std::size_t>(symbol)]; }
  std::vector<std::string> AllNames() const;
  /// Those that are parameters, in the order in which operands have them.
  std::vector<int> Given() const;
  /// Scalars that extents are.
  std::vector<int> Scalars() const;
  /// Computes those that are not given.
  void Declare(const std::vector<std::string>& scalars, Writer* out) const;

 private:
  static constexpr std::size_t kGiven = static_cast<std::size_t>(-1);

  bool IsNeeded(const runtime::Extent& extent) const {
    return extent.is_static() || needed_[static_cast<std::size_t>(extent.symbol)];
  }
  void Need(const runtime::Extent& extent);
  void FindSources();
  bool IsSource(const runtime::DerivedExtent& derived) const;
  void NeedSources();
  std::string Text(const runtime::DerivedExtent& derived) const;

  const plan::Plan& plan_;
  std::vector<bool> needed_;
  std::vector<std::size_t> source_;  // of plan_.derived
  std::vector<int> order_;
  std::vector<std::string> names_;
};

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_CUDA_EXTENTS_H_
