// How a packet operation is written: over the prelude's types, or as raw intrinsics.
#ifndef UMBRA_COMPILER_CODEGEN_SPELLER_H_
#define UMBRA_COMPILER_CODEGEN_SPELLER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/source.h"

namespace umbra::codegen {

/// A piece of C++: `atomic` text needs no parentheses inside a larger expression.
struct Expr {
  std::string text;
  bool atomic = true;
};

/// Spells operations on packets of `width` lanes; width 1 is plain scalars. The packets' types are
/// called by dtype and `suffix`: f32x16.
class Speller {
 public:
  Speller(Target target, int width) : Speller(target, width, "x" + std::to_string(width)) {}
  Speller(Target target, int width, std::string suffix) : target_(target), width_(width), suffix_(std::move(suffix)) {}
  virtual ~Speller() = default;

  int width() const { return width_; }

  /// C++ type of a packet of `type`; bool is the type of comparisons.
  virtual std::string Type(DType type) const;
  virtual Expr Fill(DType type, const std::string& scalar) const;
  virtual Expr Load(DType type, const std::string& address) const;
  virtual Expr LoadHead(DType type, const std::string& address, const std::string& lanes) const;
  virtual Expr Gather(DType type, const std::string& address, const std::string& stride) const;
  virtual Expr GatherHead(DType type, const std::string& address, const std::string& stride,
                          const std::string& lanes) const;
  virtual std::string Store(DType type, const std::string& address, const Expr& value) const;
  virtual std::string StoreHead(DType type, const std::string& address, const Expr& value,
                                const std::string& lanes) const;
  virtual std::string Stream(DType type, const std::string& address, const Expr& value) const;
  std::string Scatter(DType type, const std::string& address, const std::string& stride, const Expr& value) const;
  std::string ScatterHead(DType type, const std::string& address, const std::string& stride, const Expr& value,
                          const std::string& lanes) const;
  /// `op` on packets of `type`. Where `literal[k]`, operand k is a scalar literal.
  virtual Expr Map(graph::Op op, DType type, const std::vector<Expr>& args, const std::vector<bool>& literal) const;
  /// total + a * b of floats, the product rounded or not: whichever the target does at once.
  virtual Expr AddProduct(DType type, const Expr& total, const Expr& a, const Expr& b) const;
  virtual Expr Cast(DType from, DType to, const Expr& value) const;

 protected:
  // Conditions lie in memory as bytes: the value to store, and the condition of a loaded packet.
  Expr AsBytes(const Expr& condition) const;
  static Expr FromBytes(const Expr& bytes);

  Target target_;
  int width_;
  std::string suffix_;
};

/// The same operations on scalars, whatever the target: for values of a row or of the whole kernel.
Expr SpellScalarMap(graph::Op op, DType type, const std::vector<Expr>& args);
Expr SpellScalarCast(DType from, DType to, const Expr& value);

/// The C++ type of one value: `float`, `int`, `f16`, `bool`.
std::string ScalarType(DType type);
/// The C++ type of an element in memory: as above, but conditions are bytes.
std::string ElementType(DType type);

std::unique_ptr<Speller> MakeSpeller(Spelling spelling, Target target, int width);
/// Raw intrinsics; in intrinsics.cc.
std::unique_ptr<Speller> MakeIntrinsicSpeller(Target target, int width);

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_SPELLER_H_
