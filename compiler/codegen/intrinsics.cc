// The spelling with raw intrinsics. What has no intrinsic (polynomials, integer division, fixed
// reduction trees) stays a call of the prelude, whose text the source carries along.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "compiler/codegen/speller.h"

namespace umbra::codegen {

namespace {

using graph::Op;

bool IsIdentifier(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
}

class IntrinsicSpeller : public Speller {
 public:
  using Speller::Speller;

  std::string Type(DType type) const override {
    if (!IsFloat(type) || !HasRegister(type)) return Speller::Type(type);
    const int bits = Bits(type);
    return fmt::format("__m{}{}", bits, type == DType::kFloat64 ? "d" : "");
  }

  Expr Fill(DType type, const std::string& scalar) const override {
    if (!HasRegister(type)) return Speller::Fill(type, scalar);
    if (type == DType::kInt32) return FromInt(fmt::format("{}_set1_epi32({})", Prefix(type), scalar));
    return {fmt::format("{}_set1_{}({})", Prefix(type), Suffix(type), scalar)};
  }

  Expr Load(DType type, const std::string& address) const override {
    if (!HasRegister(type)) return Speller::Load(type, address);
    if (type == DType::kInt32)
      return FromInt(fmt::format("{}_loadu_si{}(reinterpret_cast<const __m{}i*>({}))", Prefix(type), Bits(type),
                                 Bits(type), address));
    return {fmt::format("{}_loadu_{}({})", Prefix(type), Suffix(type), address)};
  }

  Expr LoadHead(DType type, const std::string& address, const std::string& lanes) const override {
    if (!Masked() || !HasRegister(type)) return Speller::LoadHead(type, address, lanes);
    const std::string text = fmt::format("{}_maskz_loadu_{}({}, {})", Prefix(type),
                                         type == DType::kInt32 ? "epi32" : Suffix(type), MaskOf(lanes), address);
    return type == DType::kInt32 ? FromInt(text) : Expr{text};
  }

  std::string Store(DType type, const std::string& address, const Expr& value) const override {
    if (!HasRegister(type)) return Speller::Store(type, address, value);
    if (type == DType::kInt32)
      return fmt::format("{}_storeu_si{}(reinterpret_cast<__m{}i*>({}), {})", Prefix(type), Bits(type), Bits(type),
                         address, ToInt(type, value));
    return fmt::format("{}_storeu_{}({}, {})", Prefix(type), Suffix(type), address, value.text);
  }

  std::string StoreHead(DType type, const std::string& address, const Expr& value,
                        const std::string& lanes) const override {
    if (!Masked() || !HasRegister(type)) return Speller::StoreHead(type, address, value, lanes);
    const bool is_int = type == DType::kInt32;
    return fmt::format("{}_mask_storeu_{}({}, {}, {})", Prefix(type), is_int ? "epi32" : Suffix(type), address,
                       MaskOf(lanes), is_int ? ToInt(type, value) : value.text);
  }

  std::string Stream(DType type, const std::string& address, const Expr& value) const override {
    if (!HasRegister(type) || type == DType::kInt32) return Speller::Stream(type, address, value);
    return fmt::format("{}_stream_{}({}, {})", Prefix(type), Suffix(type), address, value.text);
  }

  Expr Map(Op op, DType type, const std::vector<Expr>& args, const std::vector<bool>& literal) const override {
    std::vector<Expr> full = args;
    for (std::size_t k = 0; k < args.size(); ++k)
      if (literal[k]) full[k] = Fill(type, args[k].text);
    const std::vector<bool> none(args.size(), false);
    if (!HasRegister(type)) return Speller::Map(op, type, full, none);
    if (type == DType::kInt32) return IntMap(op, type, full, none);
    const char* name = op == Op::plus                              ? "add"
                       : op == Op::minus                           ? "sub"
                       : op == Op::mul                             ? "mul"
                       : op == Op::div                             ? "div"
                       : op == Op::sqrt                            ? "sqrt"
                       : op == Op::fma && target_ != Target::kSse2 ? "fmadd"
                                                                   : nullptr;
    if (name != nullptr) {
      std::string given;
      for (const Expr& operand : full) given += (given.empty() ? "" : ", ") + operand.text;
      return {fmt::format("{}_{}_{}({})", Prefix(type), name, Suffix(type), given)};
    }
    if (op == Op::maximum || op == Op::minimum) return Extreme(op, type, full);
    return Speller::Map(op, type, full, none);
  }

  Expr AddProduct(DType type, const Expr& total, const Expr& a, const Expr& b) const override {
    if (!HasRegister(type) || !IsFloat(type)) return Speller::AddProduct(type, total, a, b);
    if (target_ == Target::kSse2)
      return Map(Op::plus, type, {total, Map(Op::mul, type, {a, b}, {false, false})}, {false, false});
    return Map(Op::fma, type, {a, b, total}, {false, false, false});
  }

 private:
  int Bits(DType type) const { return width_ * static_cast<int>(SizeOf(type)) * 8; }
  bool HasRegister(DType type) const {
    const int bits = Bits(type);
    const bool spelled = IsFloat(type) || type == DType::kInt32;
    return spelled && bits >= 128 && bits <= RegisterBytes(target_) * 8;
  }
  bool Masked() const { return target_ == Target::kAvx512; }

  std::string Prefix(DType type) const {
    const int bits = Bits(type);
    return bits == 128 ? "_mm" : fmt::format("_mm{}", bits);
  }
  static const char* Suffix(DType type) { return type == DType::kFloat64 ? "pd" : "ps"; }

  std::string MaskOf(const std::string& lanes) const {
    return fmt::format("static_cast<__mmask{}>((1u << {}) - 1)", width_ > 8 ? 16 : 8, lanes);
  }
  Expr FromInt(const std::string& text) const {
    return {fmt::format("({})({})", Speller::Type(DType::kInt32), text), false};
  }
  std::string ToInt(DType type, const Expr& value) const { return fmt::format("(__m{}i)({})", Bits(type), value.text); }

  Expr IntMap(Op op, DType type, const std::vector<Expr>& args, const std::vector<bool>& none) const {
    const char* name = op == Op::plus                              ? "add"
                       : op == Op::minus                           ? "sub"
                       : op == Op::mul && target_ != Target::kSse2 ? "mullo"
                                                                   : nullptr;
    if (name == nullptr) return Speller::Map(op, type, args, none);
    return FromInt(fmt::format("{}_{}_epi32({}, {})", Prefix(type), name, ToInt(type, args[0]), ToInt(type, args[1])));
  }

  // The instruction gives its second operand if either is NaN; a NaN in the first has to be kept.
  Expr Extreme(Op op, DType type, const std::vector<Expr>& args) const {
    const char* name = op == Op::maximum ? "max" : "min";
    const std::string &a = args[0].text, &b = args[1].text;
    if (!IsIdentifier(a)) return Speller::Map(op, type, args, {false, false});
    const std::string extreme = fmt::format("{}_{}_{}({}, {})", Prefix(type), name, Suffix(type), a, b);
    if (Masked())
      return {fmt::format("{0}_mask_mov_{1}({2}, {0}_cmp_{1}_mask({3}, {3}, _CMP_UNORD_Q), {3})", Prefix(type),
                          Suffix(type), extreme, a)};
    if (target_ == Target::kAvx2)
      return {fmt::format("{0}_blendv_{1}({2}, {3}, {0}_cmp_{1}({3}, {3}, _CMP_UNORD_Q))", Prefix(type), Suffix(type),
                          extreme, a)};
    return {
        fmt::format("_mm_or_{0}(_mm_and_{0}(_mm_cmpunord_{0}({2}, {2}), {2}), "
                    "_mm_andnot_{0}(_mm_cmpunord_{0}({2}, {2}), {1}))",
                    Suffix(type), extreme, a)};
  }
};

}  // namespace

std::unique_ptr<Speller> MakeIntrinsicSpeller(Target target, int width) {
  return std::make_unique<IntrinsicSpeller>(target, width);
}

}  // namespace umbra::codegen
