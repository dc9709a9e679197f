// Who evaluates the expressions of the network.
#ifndef UMBRA_EXAMPLES_DIGITS_ENGINE_H_
#define UMBRA_EXAMPLES_DIGITS_ENGINE_H_

#include <memory>
#include <set>
#include <string>

#include "umbra/jit.h"

namespace digits {

/// Expressions are evaluated as they stand, by templates that the C++ compiler has inlined.
struct Eager {
  template <int dim, typename E, int etype>
  void operator()(const char*, umbra::Tensor<umbra::cpu, dim, float> dst,
                  const umbra::expr::Exp<E, float, etype>& exp) const {
    dst = exp;
  }
};

/// Expressions become kernels by the way that jit::SetOptions chose.
struct Compiled {
  template <int dim, typename E, int etype>
  void operator()(const char*, umbra::Tensor<umbra::cpu, dim, float> dst,
                  const umbra::expr::Exp<E, float, etype>& exp) const {
    umbra::jit(dst) = exp;
  }
};

/// Writes the generated source of every kernel to a folder.
class SourceFolder {
 public:
  /// Makes the folder. Throws umbra::Error if it cannot be made.
  explicit SourceFolder(std::string path);

  /// Writes `name`.cc, once; a product of matrices has no source, since BLAS computes it.
  template <typename E, int etype>
  void Add(const std::string& name, const umbra::expr::Exp<E, float, etype>& exp) {
    if constexpr (etype != umbra::expr::type::kComplex) {
      if (names_.count(name) == 0) Write(name, umbra::MakeGraph(exp, name));
    }
  }

  const std::string& path() const { return path_; }
  std::size_t size() const { return names_.size(); }

 private:
  void Write(const std::string& name, const std::shared_ptr<const umbra::graph::Graph>& graph);

  std::string path_;
  std::set<std::string> names_;
};

/// Sets up `name` (interpreter, jit or system) and the number of threads (0: all).
void ChooseEngine(const std::string& name, int threads);

}  // namespace digits

#endif  // UMBRA_EXAMPLES_DIGITS_ENGINE_H_
