// Expressions of the Exp API through the compiler: the same expression object gives a graph, and
// `jit(dst) = exp` compiles it once per expression type and runs the fused kernels.
#ifndef UMBRA_JIT_H_
#define UMBRA_JIT_H_

#include <memory>
#include <string>

#include "umbra/jit_site.h"
#include "umbra/statements.h"

namespace umbra {

namespace detail {

inline void RunInterpreted(const Function& function, const Gathered& g) {
  runtime::Arguments arguments;
  runtime::Layout layout = g.Layout();
  for (int k = 0; k < g.num_operands; ++k) {
    const auto& buffer = function.program().buffers[static_cast<std::size_t>(k)];
    (buffer.kind == runtime::Buffer::Kind::kInput ? arguments.inputs : arguments.outputs)
        .push_back(layout.Next(g.data[k]));
  }
  arguments.scalars.assign(g.scalars, g.scalars + g.num_scalars);
  function(arguments);
}

/// Is there an eager route for `Tensor<cpu, dim> Saver E`?
template <typename Saver, int dim, typename E>
inline constexpr bool kHasEager = expr::ExpInfo<E>::kDim == 0 || expr::ExpInfo<E>::kDim == dim;
template <typename Saver, int dim, typename TA, typename TB, bool lt, bool rt, typename DType>
inline constexpr bool kHasEager<Saver, dim, expr::DotExp<TA, TB, lt, rt, DType>> =
    !std::is_same_v<Saver, sv::multo> && !std::is_same_v<Saver, sv::divto>;

/// A call while there is no machine code.
template <typename Saver, int dim, typename DType, typename E>
[[gnu::noinline, gnu::cold]] void RunUncompiled(const Function& function, const Gathered& g,
                                                Tensor<cpu, dim, DType> dst, const E& exp) {
  if constexpr (kHasEager<Saver, dim, E>) {
    if (!function.Ready()) {
      expr::AssignEagerly<Saver>(&dst, exp);
      return;
    }
  }
  RunInterpreted(function, g);
}

/// Writes down what `dst Saver exp` reads, the parts of its structure, and last what it writes. Returns the earlier
/// call if this one is like it, else null.
template <typename Saver, typename Device, int dim, typename DType, typename E>
[[gnu::always_inline]] inline const runtime::CallSite::Known* GatherAll(const Tensor<Device, dim, DType>& dst,
                                                                        const E& exp, Gathered* g,
                                                                        const EarlierCall& earlier = {},
                                                                        bool now = false) {
  Gatherer walk(g, earlier, now);
  walk.Expect(dst.shape_);
  Bridge<E>::Gather(exp, &walk);
  if constexpr (!std::is_same_v<Saver, sv::saveto>) walk.Add(dst);
  walk.AddStructure(Gathered::kEndOfWalk);
  walk.Add(dst);
  return walk.End(1);
}

/// The kernels of assignments `Tensor<Device, dim, DType> Saver E`.
template <typename Saver, typename Device, int dim, typename DType, typename E>
inline JitSites<Device> jit_sites{};

/// Those of a gathered one.
template <typename Saver, typename Device, int dim, typename DType, typename E>
JitSite<Device>* SiteOf(Gathered& g) {
  return jit_sites<Saver, Device, dim, DType, E>.Of(g, kAssignmentType<Saver, DType, dim, E>);
}

/// The assignment alone, of one that waited in a fused stream.
template <typename Saver, int dim, typename DType, typename E>
void RunStatement(Gathered* g) {
  JitSite<cpu>* const site = SiteOf<Saver, cpu, dim, DType, E>(*g);
  if (site->Compiled()) site->site.Run(g->data, g->Layout(), g->scalars);
  else RunInterpreted(site->function, *g);
}
template <typename Saver, int dim, typename DType, typename E>
inline constexpr StatementType kStatementType{kAssignmentType<Saver, DType, dim, E>,
                                              &RunStatement<Saver, dim, DType, E>};

/// Runs an assignment that is not like the last one of its type.
template <typename Saver, int dim, typename DType, typename E>
[[gnu::noinline]] void RunUnlike(Gathered& g, const Tensor<cpu, dim, DType>& dst, const E& exp) {
  JitSite<cpu>* const site = SiteOf<Saver, cpu, dim, DType, E>(g);
  if (site->Compiled()) site->site.Run(g.data, g.Layout(), g.scalars);
  else RunUncompiled<Saver>(site->function, g, dst, exp);
}

/// Runs an assignment now, or puts it among the statements of a fused stream.
template <typename Saver, int dim, typename DType, typename E>
inline void AssignNow(const Tensor<cpu, dim, DType>& dst, const E& exp) {
  Statements* const statements = dst.stream_ != nullptr && dst.stream_->fused() ? &Statements::OfThread() : nullptr;
  if (statements == nullptr) RunWaiting();
  Gathered local;
  Gathered& g = statements != nullptr ? statements->Next(kStatementType<Saver, dim, DType, E>) : local;
  const runtime::CallSite::Known* const earlier =
      GatherAll<Saver>(dst, exp, &g, jit_sites<Saver, cpu, dim, DType, E>.Earlier(), statements == nullptr);
  if (statements != nullptr) return statements->Give(earlier, dst.stream_->givers());
  if (!g.RunLike(earlier)) RunUnlike<Saver>(g, dst, exp);
}

/// Puts an assignment into the GPU's stream.
template <typename Saver, int dim, typename DType, typename E>
inline void AssignNow(const Tensor<gpu, dim, DType>& dst, const E& exp) {
  Gathered g;
  GatherAll<Saver>(dst, exp, &g);
  JitSite<gpu>* const site = SiteOf<Saver, gpu, dim, DType, E>(g);
  site->site.Run(g.data, g.Layout(), g.scalars, Stream<gpu>::GetStream(dst.stream_));
}

/// Why assignments of E are eager; nothing if they are compiled.
template <typename E>
Obstacles ObstaclesOf() {
  Obstacles why;
  Bridge<E>::Explain(&why);
  return why;
}

/// `dst Saver exp` compiled where that is possible, else eagerly: what assignments are if
/// UMBRA_JIT_EXPRESSIONS is defined.
template <typename Saver, int dim, typename DType, typename E>
inline void AssignCompiled(Tensor<cpu, dim, DType>* dst, const E& exp) {
  if constexpr (Bridge<E>::kKnown) {
    AssignNow<Saver>(*dst, exp);
  } else {
    [[maybe_unused]] static const bool told = (TraceEager(ObstaclesOf<E>()), true);
    expr::AssignEagerly<Saver>(dst, exp);
  }
}

/// Is `Tensor<gpu> Saver E` one call of cuBLASLt? Then nothing has to be compiled for it.
template <typename Saver, typename E>
inline constexpr bool kIsProduct = false;
template <typename Saver, typename TA, typename TB, bool lt, bool rt, typename DType>
inline constexpr bool kIsProduct<Saver, expr::DotExp<TA, TB, lt, rt, DType>> =
    !std::is_same_v<Saver, sv::multo> && !std::is_same_v<Saver, sv::divto>;

/// Runs `dst Saver exp` in the order of the stream of `dst`.
template <typename Saver, typename Device, int dim, typename DType, typename E>
inline void JitAssign(Tensor<Device, dim, DType> dst, const E& exp) {
  static_assert((expr::ExpInfo<E>::kDevMask & Device::kDevMask) != 0,
                "umbra: the expression and its destination are on different devices");
  if constexpr (!Device::kDevCPU && kIsProduct<Saver, E>) expr::EvalDot<Saver>(&dst, exp);
  else expr::AssignInOrder(&dst, exp, [](const auto* to, const E& from) { AssignNow<Saver>(*to, from); });
}

/// To a part of tensors: `exp` is compiled, and its elements go where they belong.
template <typename Saver, typename Sub, typename Map, typename Value, typename... Srcs, typename E, typename DType,
          int etype>
inline void JitAssign(const expr::AssignableMap<Sub, Map, Value, Srcs...>& dst, const expr::Exp<E, DType, etype>& exp) {
  dst.template AssignBy<Saver>(exp, [](auto* value, const E& from) { JitAssign<sv::saveto>(*value, from); });
}

/// The left side of `jit(dst) = exp`: a tensor, or a map of tensors that can be assigned to.
template <typename To, typename DType>
class JitTarget {
 public:
  explicit JitTarget(const To& dst) : dst_(dst) {}
#define UMBRA_JIT_ASSIGNMENT(symbol, saver)                                                    \
  template <typename E, typename EDType, int etype>                                            \
  void operator symbol(const expr::Exp<E, EDType, etype>& exp) const {                         \
    static_assert(std::is_same_v<EDType, DType>,                                               \
                  "umbra: the two sides of an assignment have different dtypes: convert with " \
                  "tcast<DType>(...)");                                                        \
    JitAssign<sv::saver>(dst_, exp.self());                                                    \
  }                                                                                            \
  void operator symbol(ComputeOf<DType> s) const { JitAssign<sv::saver>(dst_, expr::ScalarExp<DType>(s)); }
  UMBRA_JIT_ASSIGNMENT(=, saveto)
  UMBRA_JIT_ASSIGNMENT(+=, plusto)
  UMBRA_JIT_ASSIGNMENT(-=, minusto)
  UMBRA_JIT_ASSIGNMENT(*=, multo)
  UMBRA_JIT_ASSIGNMENT(/=, divto)
#undef UMBRA_JIT_ASSIGNMENT

 private:
  To dst_;
};

struct JitCall {
  template <typename T, typename To = expr::detail::AssignableOf<T>>
  JitTarget<To, expr::detail::ElementType<To>> operator()(const T& dst) const {
    return JitTarget<To, expr::detail::ElementType<To>>(expr::detail::Assignable(dst));
  }
};

}  // namespace detail

/// Assignments to a GPU's tensors are compiled.
template <>
struct expr::Generated<gpu> {
  static constexpr bool kMayLack = false;
  template <typename Saver, int dim, typename DType, typename E>
  static void Assign(const Tensor<gpu, dim, DType>& dst, const E& exp) {
    umbra::detail::JitAssign<Saver>(dst, exp);
  }
};

/// The compiler for expressions: `jit::Assign<sv::saveto>(dst, exp)`, or `jit(dst) = exp`.
struct jit {
  /// Runs `dst Saver exp` through compiled kernels. The first call of an expression type compiles;
  /// later ones gather operands and launch. Throws umbra::Error as runtime::Run and Compile do; it calls the tensors
  /// a0, a1, ... in the order in which the expression has them, and the destination dst.
  template <typename Saver, typename Device, int dim, typename DType, typename E, int etype>
  static void Assign(const Tensor<Device, dim, DType>& dst, const expr::Exp<E, DType, etype>& exp) {
    detail::JitAssign<Saver>(dst, exp.self());
  }
  /// Why `exp` cannot be compiled: a line for each operator, reducer or class of expressions that the compiler does not
  /// know, as those of mshadow's style that are a `Map` in C++ and nothing else; empty if it can. What cannot is
  /// evaluated eagerly where UMBRA_JIT_EXPRESSIONS is defined, and an error of compilation in jit(dst) = exp.
  template <typename E, typename DType, int etype>
  static std::string WhyEager(const expr::Exp<E, DType, etype>&) {
    std::string text;
    for (const std::string& why : detail::ObstaclesOf<E>()) text += (text.empty() ? "" : "\n") + why;
    return text;
  }
  /// Options of all later compiles from expressions. What waits in the calling thread's fused streams runs before, with
  /// the options it was written under; its errors are thrown, and nothing is set then.
  static void SetOptions(const CompileOptions& options) {
    detail::RunWaiting();
    detail::JitOptions::Set(options);
  }
};
/// jit(dst) = exp, += -= *= /=, of a tensor or of a slice, flip or concat of tensors.
inline constexpr detail::JitCall jit{};

/// The graph that `exp` stands for: the same that jit compiles.
template <typename E, typename DType, int etype>
inline std::shared_ptr<const graph::Graph> MakeGraph(const expr::Exp<E, DType, etype>& exp,
                                                     std::string name = "expression") {
  constexpr int dim = expr::ExpInfo<E>::kDim;
  static_assert(dim > 0,
                "umbra: MakeGraph takes an expression with a tensor in it; assign a dot() "
                "inside a larger expression to a tensor");
  detail::Gathered g;
  detail::Gatherer walk(&g);
  detail::Bridge<E>::Gather(exp.self(), &walk);
  walk.AddStructure(detail::Gathered::kEndOfWalk);
  walk.End(0);
  g.JoinSame(0);
  return detail::BuildGraph(g, detail::kAssignmentType<sv::saveto, DType, dim, E>, std::move(name));
}

}  // namespace umbra

#endif  // UMBRA_JIT_H_
