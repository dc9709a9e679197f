// What the expressions of a kernel's body stand for while it is read.
#ifndef UMBRA_TOOLS_UMBRA_EXTRACT_VALUE_H_
#define UMBRA_TOOLS_UMBRA_EXTRACT_VALUE_H_

#include <clang/AST/DeclTemplate.h>
#include <clang/AST/Type.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "compiler/graph/graph.h"
#include "umbra/error.h"

namespace umbra::extract {

/// A body that has no graph: the function stays eager. `hint` says what to do.
class Unsupported : public Error {
 public:
  Unsupported(const std::string& what, std::string hint) : Error(what), hint_(std::move(hint)) {}
  /// `text` inserted at `place` is a remedy.
  Unsupported(const std::string& what, std::string hint, clang::SourceLocation place, std::string text)
      : Error(what),
        hint_(std::move(hint)),
        place_(place),
        text_(std::move(text)) {}
  const std::string& hint() const { return hint_; }
  clang::SourceLocation place() const { return place_; }
  const std::string& text() const { return text_; }

 private:
  std::string hint_;
  clang::SourceLocation place_;
  std::string text_;
};

/// The hint for what is none of these.
inline constexpr const char* kThereAre =
    "kernels have tensors, expressions, numbers, Shapes, and arrays and plain structs of numbers";

/// A number of a C++ type: known now, an extent of a tensor, or a node of the graph, which is of rank 0
/// in a kernel's body and may have any shape inside an operator.
struct Number {
  enum class Kind { kInteger, kReal, kExtent, kNode };
  clang::QualType type;
  Kind kind = Kind::kInteger;
  std::int64_t integer = 0;
  double real = 0;
  Dimension extent;
  int node = -1;

  bool known() const { return kind == Kind::kInteger || kind == Kind::kReal; }
};

/// A condition under which statements run: never, or where all of some nodes (or their opposites) hold.
struct Condition {
  struct Term {
    int node;
    bool negated;
    bool operator==(const Term& other) const { return node == other.node && negated == other.negated; }
  };
  bool never = false;
  std::vector<Term> all;

  bool always() const { return !never && all.empty(); }
  bool known() const { return all.empty(); }
  bool operator==(const Condition& other) const { return never == other.never && all == other.all; }
};

/// Memory of a tensor: a parameter's or a local container's.
struct Memory {
  std::string name;
  DType dtype = DType::kFloat32;
  PartialShape shape;  ///< static extents, or symbols of the graph
  int node = -1;  ///< the elements now, or -1 before the first access
  int parameter = -1;  ///< position among the function's, or -1
  bool read = false;  ///< the elements that the caller brings are needed
  int written = 0;  ///< when it was first and last accessed, in statements: see ExtractedKernel::apart
  int last_use = 0;
};

/// A handle of a tensor: its memory, or a part of it.
struct Tensor {
  struct Rows {
    Dimension begin, end;  ///< of axis 0
    bool element;  ///< one row, whose axis is dropped
  };
  std::shared_ptr<Memory> memory;
  std::vector<Rows> part;
};

struct Slot;
using Cell = std::shared_ptr<Slot>;  ///< a place that holds a value; references share it

/// An object of the expression API, unevaluated: its class and what its constructor was given.
struct Exp {
  const clang::ClassTemplateSpecializationDecl* type = nullptr;
  std::vector<Cell> args;
};
/// An array, a Shape, or a struct of several members.
struct Aggregate {
  std::vector<Cell> elements;
};
struct Pointer {
  Cell to;
};

/// A lambda: what its body sees of the function that it stands in.
struct Closure {
  std::map<const clang::ValueDecl*, Cell> captured;
  Cell self;  ///< `this`
};

using Value = std::variant<std::monostate, Number, Tensor, Exp, Aggregate, Pointer, Closure>;

struct Slot {
  Value value;
  Condition born = {};  ///< what had to hold for this place to come into being
  bool element = false;  ///< an element of a tensor: it cannot be assigned to
};

/// A value of its own: the elements of aggregates are copied along. Expressions never change.
Value Copy(const Value& value);
inline Cell MakeCell(Value value) { return std::make_shared<Slot>(Slot{std::move(value)}); }

}  // namespace umbra::extract

#endif  // UMBRA_TOOLS_UMBRA_EXTRACT_VALUE_H_
