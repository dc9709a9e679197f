// The Graph: what to compute. A DAG of tensor values with partially known shapes; no loops, no
// memory, no target. Nodes are immutable and hash-consed: equal expressions are one node.
#ifndef UMBRA_COMPILER_GRAPH_GRAPH_H_
#define UMBRA_COMPILER_GRAPH_GRAPH_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/graph/op.h"
#include "umbra/partial_shape.h"
#include "umbra/program.h"

namespace umbra::graph {

using runtime::ExtentOp;

/// What passes that weigh work take an extent for that is not known when compiling.
inline constexpr double kAssumedExtent = 1024;

struct Node {
  enum class Kind : std::uint8_t {
    kInput,  ///< memory operand `name`
    kScalar,  ///< run-time scalar `name`, rank 0
    kConstant,  ///< `constant`, rank 0
    kMap,  ///< elementwise `op`; operands have the node's shape or rank 0 and kind scalar/constant
           ///< (or any value of rank 0, which is spread over the shape)
    kCast,  ///< elementwise conversion to `dtype`; a narrow dtype (umbra::ComputeType) is only
            ///< moved, cast and stored: what computes with it casts first
    kBroadcast,  ///< output dimension i is dimension axes[i] of the operand, or new where axes[i] is -1
    kTranspose,  ///< output dimension i is dimension axes[i] of the operand
    kReduce,  ///< `reducer` over the dimensions in `axes` (ascending); kept as 1 if `keepdim`
    kScan,  ///< `reducer` over the elements up to each one along dimension axes[0], itself included
    kDot,  ///< alpha * op(a) * op(b); ranks 2x2 -> 2, 1x2 -> 1, 1x1 outer product -> 2, 3x3 of batches -> 3
    kIndex,  ///< the position along dimension axes[0] of its own shape, i64
    kExtent,  ///< the extent `extent`, i64 of rank 0
    kGather,  ///< inputs[0] at the positions inputs[1], inputs[2], ..., one for each of its
              ///< dimensions; if `guarded`, `constant` wherever the last input, a condition, fails
  };
  Kind kind = Kind::kConstant;
  DType dtype = DType::kFloat32;
  PartialShape shape;  ///< static rank; dimensions are static or carry a symbol of the graph
  std::vector<int> inputs;
  Op op{};
  Reducer reducer{};
  std::vector<int> axes;
  bool keepdim = false;
  bool contract = false;  ///< kReduce: the products that it sums may stay unrounded, as BLAS leaves them
  bool transpose_a = false, transpose_b = false;
  bool guarded = false;
  Dimension extent;
  double constant = 0;  ///< kConstant: the value; kDot: alpha; kGather: what stands outside
  std::string name;  ///< kInput, kScalar
};

/// Is each element made of many of an operand, so that it is computed once and for itself, not where it is read?
inline bool JoinsElements(const Node& node) {
  return node.kind == Node::Kind::kReduce || node.kind == Node::Kind::kScan || node.kind == Node::Kind::kDot;
}

struct Output {
  std::string name;
  int node = 0;
};

/// A finished or growing graph. Nodes are added through the functions below, which infer dtype and
/// shape, check them, and return the existing node if an equal one stands. All of them throw
/// umbra::Error with the operation, both shapes or dtypes, and a remedy.
class Graph {
 public:
  static constexpr std::size_t kMaxNodes = std::size_t{1} << 18;

  explicit Graph(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(int id) const { return nodes_[static_cast<std::size_t>(id)]; }
  const std::vector<int>& inputs() const { return inputs_; }  ///< kInput nodes in order
  const std::vector<int>& scalars() const { return scalars_; }  ///< kScalar nodes in order
  const std::vector<Output>& outputs() const { return outputs_; }

  /// A memory operand. Dynamic dimensions without a symbol get a fresh one each.
  int Input(std::string name, DType dtype, PartialShape shape);
  int Scalar(std::string name, DType dtype);
  int Constant(double value, DType dtype);
  int Map(Op op, std::vector<int> inputs);
  int Cast(int input, DType dtype);
  int Broadcast(int input, std::vector<int> axes, const PartialShape& shape);
  int Transpose(int input, std::vector<int> axes);
  int Reduce(Reducer reducer, int input, std::vector<int> axes, bool keepdim, bool contract = false);
  /// Throws as Reduce does.
  int Scan(Reducer reducer, int input, int axis);
  int Dot(int a, int b, bool transpose_a, bool transpose_b, double alpha);
  /// Dot of operands of one 16-bit float as they are, summed in f32; `dtype` is f32 or, rounded at the end, theirs.
  int NarrowDot(int a, int b, bool transpose_a, bool transpose_b, double alpha, DType dtype);
  /// The position along dimension `axis` of a value of shape `shape`.
  int Index(int axis, const PartialShape& shape);
  int ExtentOf(const Dimension& dim);
  /// `source` at computed positions, which must lie within it wherever `guard` holds (or
  /// everywhere, if it is -1). Positions and guard have one shape, that of the result, or rank 0.
  int Gather(int source, std::vector<int> positions, int guard, double outside);
  void AddOutput(std::string name, int node);

  /// An extent computed from others: a new symbol with this definition, or its value if both
  /// operands are static. `origin` says what asks for it, for a launch where it does not fit.
  Dimension Derive(ExtentOp op, const Dimension& a, const Dimension& b, std::string_view origin);
  /// The extent that a whole number of the call gives: one symbol for each scalar, which must be an integer.
  Dimension ExtentOfScalar(int scalar);
  /// The extent that an integer of rank 0 stands for: constants, extents, scalars, and + - * /, minimum and
  /// maximum of them; nothing if it is made otherwise.
  std::optional<Dimension> DimensionOf(int node, std::string_view origin);
  struct Derived {
    Dimension result;
    runtime::TracedOp op;
    Dimension a, b;
  };
  const std::vector<Derived>& derived() const { return derived_; }
  /// Takes over the symbols of `other` and what is known of them; this graph must be new.
  void CopySymbols(const Graph& other);

  /// Names a value for the reader (text, plan and source); not part of any key.
  void SetLabel(int node, std::string label);
  std::string_view label(int node) const;
  /// The nodes from number `first` on that have no place yet come from `place`, "file:line" of the user's text,
  /// ":line" of the one that the graph is from; not part of any key.
  void SetPlaces(int first, std::string_view place);
  std::string_view place(int node) const;
  /// `made` stands for `node` of `other`: it takes over label and place unless it has its own.
  void TakeNames(int made, const Graph& other, int node);

  /// Number of symbols of dynamic dimensions; two symbols may have been found equal.
  int num_symbols() const { return static_cast<int>(symbol_parent_.size()); }
  /// `name` is what the user calls the extent, for the reader.
  int NewSymbol(std::string name = {});
  /// Of a representative; empty if it has none.
  const std::string& symbol_name(int symbol) const { return symbol_name_[static_cast<std::size_t>(symbol)]; }
  /// The representative (smallest) symbol equal to `symbol`.
  int FindSymbol(int symbol) const;
  /// What is known of a dimension: its extent if it has been found equal to a static one, else its
  /// representative symbol.
  Dimension Known(const Dimension& dim) const;
  /// Declares two dimensions equal (checked at launch); throws if both are static and differ.
  /// `where` names the operation for the message.
  Dimension Unify(const Dimension& a, const Dimension& b, std::string_view where);
  /// True if the two are known to be equal.
  bool SameDimension(const Dimension& a, const Dimension& b) const;

  /// What tells this graph from others: its text, and a hash of structure, dtypes and shapes that
  /// is the same in every process. Computed at the first call on a finished graph; a graph that
  /// grows afterwards must be a copy.
  struct Identity {
    std::uint64_t hash = 0;
    std::string text;
  };
  const Identity& identity() const;

 private:
  std::optional<Dimension> DimensionOf(int node, std::string_view origin, int* budget);
  int Add(Node node);
  int Widened(int id);
  int AddDot(int a, int b, bool transpose_a, bool transpose_b, double alpha, DType dtype);
  std::uint64_t StructuralHash() const;

  /// Made once, never copied along.
  struct Memo {
    Memo() = default;
    Memo(const Memo&) {}
    Memo(Memo&&) noexcept {}
    Memo& operator=(const Memo&) { return *this; }
    Memo& operator=(Memo&&) noexcept { return *this; }
    std::once_flag once;
    Identity identity;
  };

  std::string name_;
  std::vector<Node> nodes_;
  std::vector<int> inputs_, scalars_;
  std::vector<Output> outputs_;
  std::vector<std::string> labels_, places_;
  std::vector<int> symbol_parent_;
  std::vector<Dimension> symbol_value_;  ///< of representatives: static once known
  std::vector<std::string> symbol_name_;
  std::vector<Derived> derived_;
  std::unordered_multimap<std::uint64_t, int> by_hash_;
  mutable Memo memo_;
};

/// The graph as text, one node a line: `%3 = mul %0, %2 : f32[?0, 1024]`.
std::string Print(const Graph& graph);
/// The graph in Graphviz's language.
std::string PrintDot(const Graph& graph);
/// Checks every node against the rules of its kind; throws InternalError.
void Verify(const Graph& graph);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_GRAPH_GRAPH_H_
