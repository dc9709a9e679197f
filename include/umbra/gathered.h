// What one call of an expression passes, and how it compares with what an earlier one passed.
#ifndef UMBRA_GATHERED_H_
#define UMBRA_GATHERED_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "umbra/call_site.h"
#include "umbra/random.h"
#include "umbra/tensor.h"

namespace umbra::detail {

/// Operands and scalars in the order of a walk over an expression, and the parts of its structure that its type does
/// not tell (axes, scales).
struct Gathered {
  static constexpr int kMax = 64;
  static constexpr int kMaxLayout = 512;
  static constexpr std::int64_t kEndOfWalk = -1;  ///< comes last in the structure, but for what JoinSame adds
  void* data[kMax];
  index_t layout[kMaxLayout];  ///< see runtime::Layout
  umbra_scalar scalars[kMax];
  std::int64_t structure[kMax];
  int num_operands = 0, num_scalars = 0, num_structure = 0, num_layout = 0;

  runtime::Layout Layout() const { return {layout, static_cast<std::size_t>(num_layout)}; }
  /// Runs a call that Gatherer::End has found to be like `earlier`, if it has. False if nothing was done.
  [[gnu::always_inline]] bool RunLike(const runtime::CallSite::Known* earlier) const {
    return earlier != nullptr && runtime::CallSite::RunAlike(*earlier, data, scalars);
  }
  /// Are two operands at the same place, of those before the last `written`?
  [[gnu::always_inline]] bool Repeats(int written) const {
    bool same = false;
    for (int k = 1; k < num_operands - written; ++k)
      for (int other = 0; other < k; ++other) same |= data[other] == data[k];
    return same;
  }
  /// Operands that are the very same tensor become one, but for the last `written` of them; then `structure` says of
  /// each of the others which it is.
  void JoinSame(int written) {
    if (!Repeats(written)) return;
    int kept = 0;
    std::size_t begin = 0, end = 0;  // of the layout of operand k, and of those kept
    std::size_t layout_of[kMax];  // of those kept
    for (int k = 0; k < num_operands; ++k) {
      const std::size_t size = runtime::Layout::SizeOf(runtime::Layout::RankOf(layout[begin]));
      const bool read = k < num_operands - written;
      int same = read ? 0 : kept;
      while (same < kept &&
             (data[same] != data[k] || !std::equal(layout + begin, layout + begin + size, layout + layout_of[same])))
        ++same;
      if (same == kept) {
        std::copy(layout + begin, layout + begin + size, layout + end);
        data[kept] = data[k];
        layout_of[kept++] = end;
        end += size;
      }
      begin += size;
      if (read) {
        if (num_structure == kMax) TooMany("axes");
        structure[num_structure++] = same;
      }
    }
    num_operands = kept;
    num_layout = static_cast<int>(end);
  }
  [[noreturn, gnu::cold, gnu::noinline]] static void TooMany(const char* what) {
    throw Error("an expression of more than " + std::to_string(kMax) + " " + what + ": split it");
  }
};

/// An earlier call of an expression of the same type, in which no operand came twice; or none, which no call is like.
struct EarlierCall {
  static constexpr index_t kNothing[Gathered::kMaxLayout] = {};  // what is written has a stride of 1
  static constexpr runtime::CallSite::Known kUnknown{kNothing};
  static_assert(kNothing[0] != Gathered::kEndOfWalk, "each walk differs from it");
  const runtime::CallSite::Known* call = &kUnknown;
  const std::int64_t* structure = kNothing;  ///< Gathered::kMax words
};

/// Writes down what one call passes, and compares it with an earlier one. A local object: a compiler keeps it in
/// registers.
class Gatherer {
 public:
  /// If `now`, the call runs at once, and what is given to the operands' fused streams comes before it.
  [[gnu::always_inline]] explicit Gatherer(Gathered* to, const EarlierCall& earlier = {}, bool now = false)
      : to_(to),
        earlier_(earlier),
        layout_(earlier.call->layout),
        now_(now) {}

  template <typename Device, int dim, typename DType>
  [[gnu::always_inline]] void Add(const Tensor<Device, dim, DType>& t) {
    SettleQueue(t.stream_);
    if (now_) SettleOthers(t.stream_);
    AddOperand(const_cast<std::remove_const_t<DType>*>(t.dptr_), t.shape_, [&t](int d, index_t inner) {
      return d == dim - 1 ? 1 : d == dim - 2 ? t.stride_ : inner * t.shape_[d + 1];
    });
  }
  /// What is walked while one of these lives has other extents than the destination.
  class Inside {
   public:
    [[gnu::always_inline]] explicit Inside(Gatherer* of) : of_(of), before_(of->inside_) { of->inside_ = true; }
    [[gnu::always_inline]] ~Inside() { of_->inside_ = before_; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Gatherer* const of_;
    const bool before_;
  };
  /// The extents of the destination, which has to live as long.
  template <int dim>
  [[gnu::always_inline]] void Expect(const Shape<dim>& destination) {
    expected_ = destination.shape_;
    expected_rank_ = dim;
  }
  /// The shape that a broadcast was told. It is that of the destination, or comes as an operand.
  template <typename DType, int dim>
  [[gnu::always_inline]] void AddTold(const Shape<dim>& shape) {
    if (inside_) return AddShape<DType>(shape);
    if (expected_rank_ == dim && !std::equal(shape.shape_, shape.shape_ + dim, expected_)) DoesNotFit(shape, expected_);
  }
  /// An operand that stands for its shape only: nobody reads its elements.
  template <typename DType, int dim>
  void AddShape(const Shape<dim>& shape) {
    static DType elements[Gathered::kMax]{};  // one each, as no two operands are the same
    AddOperand(&elements[num_operands_ % Gathered::kMax], shape, [](int, index_t) { return index_t{0}; });
  }
  template <typename DType>
  [[gnu::always_inline]] void AddScalar(ComputeOf<DType> number) {
    if (num_scalars_ == Gathered::kMax) Gathered::TooMany("numbers");
    umbra_scalar& s = to_->scalars[num_scalars_++];
    constexpr auto kType = DTypeOf<ComputeOf<DType>>::value;
    if constexpr (kType == umbra::DType::kFloat32) s.f32 = number;
    else if constexpr (kType == umbra::DType::kFloat64) s.f64 = number;
    else if constexpr (kType == umbra::DType::kInt64) s.i64 = number;
    else s.i32 = number;
  }
  [[gnu::always_inline]] void AddStructure(std::int64_t value) {
    if (num_structure_ == Gathered::kMax) Gathered::TooMany("axes");
    differs_ |= earlier_.structure[num_structure_] ^ value;
    to_->structure[num_structure_++] = value;
  }
  /// Ends the walk. Returns the earlier call if this one is like it but for addresses and numbers, and reads no operand
  /// twice; the last `written` operands are not read. Else returns null.
  [[gnu::always_inline]] const runtime::CallSite::Known* End(int written) const {
    to_->num_operands = num_operands_;
    to_->num_scalars = num_scalars_;
    to_->num_structure = num_structure_;
    to_->num_layout = num_layout_;
    return differs_ == 0 && !to_->Repeats(written) ? earlier_.call : nullptr;
  }

 private:
  // stride(d, that of dimension d + 1) is the stride of dimension d.
  template <int dim, typename DType, typename Stride>
  [[gnu::always_inline]] void AddOperand(DType* memory, const Shape<dim>& shape, const Stride& stride) {
    constexpr int kSize = static_cast<int>(runtime::Layout::SizeOf(dim));
    if (num_operands_ == Gathered::kMax || num_layout_ + kSize > Gathered::kMaxLayout) Gathered::TooMany("tensors");
    to_->data[num_operands_++] = memory;
    to_->layout[num_layout_] = runtime::Layout::Kind(dim, DTypeOf<DType>::value);  // which the type tells
    for (int d = 0; d < dim; ++d) AddWord(num_layout_ + 1 + d, shape[d]);
    index_t inner = 0;
    for (int d = dim - 1; d >= 0; --d) AddWord(num_layout_ + 1 + dim + d, inner = stride(d, inner));
    num_layout_ += kSize;
  }
  template <int dim>
  [[noreturn, gnu::cold, gnu::noinline]] static void DoesNotFit(const Shape<dim>& shape, const index_t* expected) {
    Shape<dim> destination;
    std::copy_n(expected, dim, destination.shape_);
    throw Error(Concat("assignment to a tensor of shape ", destination,
                       " from an expression with a broadcast to shape ", shape));
  }
  [[gnu::always_inline]] void AddWord(int at, index_t word) {
    differs_ |= layout_[at] ^ word;
    to_->layout[at] = word;
  }

  Gathered* const to_;
  const EarlierCall earlier_;
  const index_t* const layout_;
  const bool now_;
  bool inside_ = false;
  const index_t* expected_ = nullptr;
  int expected_rank_ = -1;
  std::int64_t differs_ = 0;
  int num_operands_ = 0, num_scalars_ = 0, num_structure_ = 0, num_layout_ = 0;
};

}  // namespace umbra::detail

#endif  // UMBRA_GATHERED_H_
