// Expressions of the Exp API through the compiler: the same expression object gives a graph, and
// `jit(dst) = exp` compiles it once per expression type and runs the fused kernels.
#ifndef UMBRA_JIT_H_
#define UMBRA_JIT_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "umbra/bridge.h"
#include "umbra/call_site.h"
#include "umbra/compile.h"
#include "umbra/cuda_call_site.h"
#include "umbra/statements.h"

namespace umbra {

namespace detail {

/// Options of compiles that come from expressions; changing them makes call sites compile anew.
struct JitOptions {
  std::mutex mutex;
  CompileOptions options;
  static inline std::atomic<int> generation{0};
  static JitOptions& Get() {
    static JitOptions options;
    return options;
  }
};

/// One structure of an expression at one place of the program.
template <typename Device>
struct JitSite {
  JitSite(const Gathered& g, int generation, Function f)
      : num_structure(g.num_structure), joined(g.structure[g.num_structure - 1] != Gathered::kEndOfWalk), generation(generation),
        function(std::move(f)), site(function.shared_program()) {
    std::copy_n(g.structure, num_structure, structure);
  }
  bool Fits(const Gathered& g, int wanted) const {
    return generation == wanted && std::equal(structure, structure + num_structure, g.structure, g.structure + g.num_structure);
  }
  /// The call that was made last, for the next one to compare with.
  [[gnu::always_inline]] EarlierCall Earlier() {
    if (compiled.load(std::memory_order_acquire) != JitOptions::generation.load(std::memory_order_acquire)) return {};
    const auto* const call = site.Latest();
    return call != nullptr && !joined ? EarlierCall{&site, call, structure} : EarlierCall{};
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
};

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
[[gnu::noinline, gnu::cold]] void RunUncompiled(const Function& function, const Gathered& g, Tensor<cpu, dim, DType> dst, const E& exp) {
  if constexpr (kHasEager<Saver, dim, E>) {
    if (!function.Ready()) {
      expr::AssignEagerly<Saver>(&dst, exp);
      return;
    }
  }
  RunInterpreted(function, g);
}

/// The options that a compile for `Device` heeds.
template <typename Device>
inline CompileOptions OptionsFor() {
  JitOptions& options = JitOptions::Get();
  const std::lock_guard lock(options.mutex);
  if constexpr (Device::kDevCPU) {
    return options.options;
  } else {
    CompileOptions chosen;
    chosen.target = kCudaTarget;
    chosen.math = options.options.math;
    chosen.use_disk_cache = options.options.use_disk_cache;
    return chosen;
  }
}

/// Writes down what `dst Saver exp` reads, the parts of its structure, and last what it writes. Returns `earlier` if the
/// call is like it.
template <typename Saver, typename Device, int dim, typename DType, typename E>
[[gnu::always_inline]] inline EarlierCall GatherAll(const Tensor<Device, dim, DType>& dst, const E& exp, Gathered* g,
                                                    const EarlierCall& earlier = {}, bool now = false) {
  Gatherer walk(g, earlier, now);
  walk.Expect(dst.shape_);
  Bridge<E>::Gather(exp, &walk);
  if constexpr (!std::is_same_v<Saver, sv::saveto>) walk.Add(dst);
  walk.AddStructure(Gathered::kEndOfWalk);
  walk.Add(dst);
  return walk.End(1);
}

/// The kernels of assignments `Tensor<Device, dim, DType> Saver E`, by structure.
template <typename Saver, typename Device, int dim, typename DType, typename E>
struct JitSites {
  using Site = JitSite<Device>;
  static inline std::atomic<Site*> latest{nullptr};

  /// The last call of the last structure.
  [[gnu::always_inline]] static EarlierCall Earlier() {
    Site* const site = latest.load(std::memory_order_acquire);
    return site != nullptr ? site->Earlier() : EarlierCall{};
  }
  /// Finds or compiles the kernels of a gathered assignment. Operands that are one become one.
  static Site* Of(Gathered& g) {
    static std::mutex& mutex = *new std::mutex;  // what is destroyed at the program's end may assign, too
    static auto& sites = *new std::vector<std::unique_ptr<Site>>;
    g.JoinSame(1);
    const int generation = JitOptions::generation.load(std::memory_order_acquire);
    Site* site = latest.load(std::memory_order_acquire);
    if (site == nullptr || !site->Fits(g, generation)) {
      const std::lock_guard lock(mutex);
      site = nullptr;
      for (const auto& known : sites)
        if (known->Fits(g, generation)) site = known.get();
      if (site == nullptr) {
        sites.push_back(std::make_unique<Site>(
            g, generation, Compile(BuildGraph<Saver, DType, dim, E>(g, "expression"), OptionsFor<Device>())));
        site = sites.back().get();
      }
      latest.store(site, std::memory_order_release);
    }
    return site;
  }
};


/// The statement `dst Saver exp` of a fused stream.
template <typename Saver, int dim, typename DType, typename E>
struct Statement {
  static void Run(Gathered* g) {
    JitSite<cpu>* const site = JitSites<Saver, cpu, dim, DType, E>::Of(*g);
    if (site->Compiled()) site->site.Run(g->data, g->Layout(), g->scalars);
    else RunInterpreted(site->function, *g);
  }
  static constexpr StatementType kType{dim, &BuildAssigned<Saver, DType, dim, E>, &Run};

  static void Add(const Tensor<cpu, dim, DType>& dst, const E& exp) {
    static constexpr StatementOptions kOptions{&OptionsFor<cpu>, [] { return JitOptions::generation.load(std::memory_order_acquire); }};
    Statements::OfThread(kOptions).Add(kType, dst.stream_->givers(), [&](Gathered* g) {
      return GatherAll<Saver>(dst, exp, g, JitSites<Saver, cpu, dim, DType, E>::Earlier());
    });
  }
};

/// Runs an assignment that is not like the last one of its type.
template <typename Saver, int dim, typename DType, typename E>
[[gnu::noinline]] void RunUnlike(Gathered& g, const Tensor<cpu, dim, DType>& dst, const E& exp) {
  JitSite<cpu>* const site = JitSites<Saver, cpu, dim, DType, E>::Of(g);
  if (site->Compiled()) site->site.Run(g.data, g.Layout(), g.scalars);
  else RunUncompiled<Saver>(site->function, g, dst, exp);
}

/// Runs an assignment now, or puts it among the statements of a fused stream.
template <typename Saver, int dim, typename DType, typename E>
inline void AssignNow(const Tensor<cpu, dim, DType>& dst, const E& exp) {
  if (dst.stream_ != nullptr && dst.stream_->fused()) return Statement<Saver, dim, DType, E>::Add(dst, exp);
  RunWaiting();
  Gathered g;
  const EarlierCall earlier = GatherAll<Saver>(dst, exp, &g, JitSites<Saver, cpu, dim, DType, E>::Earlier(), true);
  if (!earlier.Run(g)) RunUnlike<Saver>(g, dst, exp);
}

/// Puts an assignment into the GPU's stream.
template <typename Saver, int dim, typename DType, typename E>
inline void AssignNow(const Tensor<gpu, dim, DType>& dst, const E& exp) {
  Gathered g;
  GatherAll<Saver>(dst, exp, &g);
  JitSite<gpu>* const site = JitSites<Saver, gpu, dim, DType, E>::Of(g);
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
  static_assert((expr::ExpInfo<E>::kDevMask & Device::kDevMask) != 0, "umbra: the expression and its destination are on different devices");
  if constexpr (!Device::kDevCPU && kIsProduct<Saver, E>) expr::EvalDot<Saver>(&dst, exp);
  else expr::AssignInOrder(&dst, exp, [](const auto* to, const E& from) { AssignNow<Saver>(*to, from); });
}

/// To a part of tensors: `exp` is compiled, and its elements go where they belong.
template <typename Saver, typename Sub, typename Map, typename Value, typename... Srcs, typename E, typename DType, int etype>
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
  /// later ones gather operands and launch. Throws umbra::Error as runtime::Run and Compile do; it calls the tensors a0,
  /// a1, ... in the order in which the expression has them, and the destination dst.
  template <typename Saver, typename Device, int dim, typename DType, typename E, int etype>
  static void Assign(const Tensor<Device, dim, DType>& dst, const expr::Exp<E, DType, etype>& exp) {
    detail::JitAssign<Saver>(dst, exp.self());
  }
  /// Why `exp` cannot be compiled: a line for each operator, reducer or class of expressions that the compiler does not
  /// know, as those of mshadow's style that are a `Map` in C++ and nothing else; empty if it can. What cannot is evaluated
  /// eagerly where UMBRA_JIT_EXPRESSIONS is defined, and an error of compilation in jit(dst) = exp.
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
    detail::JitOptions& o = detail::JitOptions::Get();
    const std::lock_guard lock(o.mutex);
    o.options = options;
    ++o.generation;
  }
};
/// jit(dst) = exp, += -= *= /=, of a tensor or of a slice, flip or concat of tensors.
inline constexpr detail::JitCall jit{};

/// The graph that `exp` stands for: the same that jit compiles.
template <typename E, typename DType, int etype>
inline std::shared_ptr<const graph::Graph> MakeGraph(const expr::Exp<E, DType, etype>& exp,
                                                     std::string name = "expression") {
  constexpr int dim = expr::ExpInfo<E>::kDim;
  static_assert(dim > 0, "umbra: MakeGraph takes an expression with a tensor in it; assign a dot() "
                         "inside a larger expression to a tensor");
  detail::Gathered g;
  detail::Gatherer walk(&g);
  detail::Bridge<E>::Gather(exp.self(), &walk);
  walk.AddStructure(detail::Gathered::kEndOfWalk);
  walk.End(0);
  g.JoinSame(0);
  return detail::BuildGraph<sv::saveto, DType, dim, E>(g, std::move(name));
}

}  // namespace umbra

#endif  // UMBRA_JIT_H_
