// Tensors that own memory of any element type, whose shape and type are known at run time.
#ifndef UMBRA_DYNAMIC_TENSOR_H_
#define UMBRA_DYNAMIC_TENSOR_H_

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "umbra/dtype.h"
#include "umbra/enforce.h"
#include "umbra/type_meta.h"

namespace umbra {

/// When Resize to fewer bytes gives memory back, as caffe2's two flags say it for a whole process.
struct ShrinkPolicy {
  bool keep = true;                                          ///< false: always give it back
  std::size_t max_keep_bytes = static_cast<std::size_t>(-1);  ///< give it back if more than this is unused
};

/// A dense row-major tensor in the manner of caffe2::Tensor: memory is shared by reference counting,
/// allocated when the elements are first asked for, and kept when the tensor shrinks. Elements of any
/// type are made and destroyed exactly once. Sizes that overflow throw. Not thread-safe as an object;
/// shared data may be read from several threads.
class DynamicTensor {
 public:
  using Dims = std::vector<index_t>;

  /// No shape, no type, no memory.
  DynamicTensor() = default;
  /// The shape is known, type and memory follow.
  explicit DynamicTensor(Dims dims) { Resize(std::move(dims)); }
  /// A copy of `values` of that shape.
  template <typename T>
  DynamicTensor(Dims dims, const std::vector<T>& values) {
    Resize(std::move(dims));
    UMBRA_ENFORCE_EQ(static_cast<std::size_t>(size_), values.size(), "the values do not fill the shape");
    std::copy(values.begin(), values.end(), mutable_data<T>());
  }
  /// Sharing is asked for by ShareData, copying by CopyFrom.
  DynamicTensor(const DynamicTensor&) = delete;
  DynamicTensor& operator=(const DynamicTensor&) = delete;
  DynamicTensor(DynamicTensor&& other) noexcept { Swap(other); }
  DynamicTensor& operator=(DynamicTensor&& other) noexcept {
    DynamicTensor taken(std::move(other));
    Swap(taken);
    return *this;
  }
  void Swap(DynamicTensor& other) noexcept {
    std::swap(dims_, other.dims_);
    std::swap(size_, other.size_);
    std::swap(meta_, other.meta_);
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    std::swap(reserved_, other.reserved_);
    std::swap(shared_, other.shared_);
    std::swap(policy_, other.policy_);
  }

  /// Sets the shape. Memory is kept if it suffices (see ShrinkPolicy); elements are then those that were
  /// there, in row-major order, else new ones. Throws EnforceNotMet for a negative extent or a product
  /// that overflows.
  void Resize(Dims dims) {
    const index_t size = CountOf(dims);
    // Before anything changes: can the memory be that large?
    if (meta_.itemsize() > 0) BytesOf(size);
    dims_ = std::move(dims);
    size_ = size;
    if (data_ == nullptr || meta_.itemsize() == 0) return;
    const std::size_t bytes = BytesOf(size_);
    const bool grows = bytes > capacity_;
    const bool gives_back = !reserved_ && bytes < capacity_ &&
                            (!policy_.keep || capacity_ - bytes > policy_.max_keep_bytes);
    if (grows || gives_back) FreeMemory();
  }
  void ResizeLike(const DynamicTensor& other) { Resize(other.dims_); }
  /// Another shape of as many elements.
  void Reshape(Dims dims) {
    UMBRA_ENFORCE_EQ(CountOf(dims), size_, "Reshape keeps the number of elements");
    dims_ = std::move(dims);
  }
  /// Adds `n` to the outermost extent, keeping the elements. When memory has to grow it grows by at least
  /// `growth_percent` of the outermost extent.
  void Extend(index_t n, float growth_percent) {
    UMBRA_ENFORCE_GE(dims_.size(), 1u, "Extend needs a dimension");
    UMBRA_ENFORCE_GE(n, 0, "Extend takes a number of rows");
    UMBRA_ENFORCE(growth_percent >= 0, "Extend: a negative growth");
    UMBRA_ENFORCE(meta_.itemsize() > 0, "Extend: the tensor has no element type; call mutable_data<T>() first");
    Dims wanted = dims_;
    UMBRA_ENFORCE(!__builtin_add_overflow(wanted[0], n, &wanted[0]), "Extend: the extent overflows");
    const index_t size = CountOf(wanted);
    if (data_ == nullptr || BytesOf(size) > capacity_ || shared_) {
      Dims room = wanted;
      const double grown = static_cast<double>(dims_[0]) * (1 + static_cast<double>(growth_percent) / 100);
      if (grown < 9e15) room[0] = std::max(room[0], static_cast<index_t>(grown));
      Reallocate(CountOf(room));
    }
    dims_ = std::move(wanted);
    size_ = size;
  }
  /// Cuts the outermost extent to `outer`; memory is kept.
  void ShrinkTo(index_t outer) {
    UMBRA_ENFORCE_GE(dims_.size(), 1u, "ShrinkTo needs a dimension");
    UMBRA_ENFORCE(outer >= 0 && outer <= dims_[0], "ShrinkTo(", outer, ") of an extent of ", dims_[0]);
    dims_[0] = outer;
    size_ = CountOf(dims_);
  }
  void Shrink(index_t outer) { ShrinkTo(outer); }
  /// Memory for an outermost extent of `outer`, which later calls of Resize and Extend keep.
  void ReserveSpace(index_t outer) {
    UMBRA_ENFORCE(meta_.itemsize() > 0, "ReserveSpace: the tensor has no element type; call mutable_data<T>() first");
    UMBRA_ENFORCE_GE(dims_.size(), 1u, "ReserveSpace needs a dimension");
    Dims room = dims_;
    room[0] = std::max(outer, dims_[0]);
    const index_t count = CountOf(room);
    if (data_ == nullptr || BytesOf(count) > capacity_) Reallocate(count);
    reserved_ = true;
  }
  void set_shrink_policy(const ShrinkPolicy& policy) { policy_ = policy; }

  /// Copies shape, type and elements.
  void CopyFrom(const DynamicTensor& other) {
    if (this == &other) return;
    DynamicTensor copy;
    copy.policy_ = policy_;
    copy.Resize(other.dims_);
    if (other.data_ != nullptr) {
      void* to = copy.raw_mutable_data(other.meta_);
      if (other.meta_.is_trivial()) {
        if (size_t bytes = other.nbytes(); bytes > 0) std::memcpy(to, other.data_.get(), bytes);
      } else {
        other.meta_.Copy(other.data_.get(), to, static_cast<std::size_t>(other.size_));
      }
    } else {
      copy.meta_ = other.meta_;
    }
    Swap(copy);
  }
  /// Uses the memory of `other`, which has as many elements; both see each other's writes. Throws
  /// EnforceNotMet if `other` has no memory yet.
  void ShareData(const DynamicTensor& other) {
    UMBRA_ENFORCE_EQ(size_, other.size_, "ShareData needs as many elements");
    UMBRA_ENFORCE(other.data_ != nullptr || other.size_ == 0, "ShareData: the source has no memory yet");
    meta_ = other.meta_;
    data_ = other.data_;
    capacity_ = other.capacity_;
    shared_ = true;
    reserved_ = false;
  }
  /// Uses memory of the caller's, of `capacity` bytes (0: just what the shape needs); `deleter`, if
  /// given, is called for it when the last tensor is done. The elements exist already.
  template <typename T>
  void ShareExternalPointer(T* data, std::size_t capacity = 0, std::function<void(T*)> deleter = nullptr) {
    ShareExternalPointer(static_cast<void*>(data), TypeMeta::Make<T>(), capacity,
                         deleter ? [deleter](void* p) { deleter(static_cast<T*>(p)); }
                                 : std::function<void(void*)>());
  }
  void ShareExternalPointer(void* data, const TypeMeta& meta, std::size_t capacity = 0,
                            std::function<void(void*)> deleter = nullptr) {
    UMBRA_ENFORCE(meta.itemsize() > 0, "ShareExternalPointer needs an element type");
    const std::size_t bytes = BytesOf(size_, meta);
    UMBRA_ENFORCE(data != nullptr || bytes == 0, "ShareExternalPointer: a null pointer");
    UMBRA_ENFORCE(capacity == 0 || capacity >= bytes, "ShareExternalPointer: ", capacity, " bytes for a tensor of ", bytes);
    meta_ = meta;
    capacity_ = capacity == 0 ? bytes : capacity;
    shared_ = true;
    reserved_ = false;
    data_ = deleter ? std::shared_ptr<void>(data, deleter) : std::shared_ptr<void>(data, [](void*) {});
  }
  /// Gives the memory back; shape and type stay.
  void FreeMemory() {
    data_.reset();
    capacity_ = 0;
    reserved_ = false;
    shared_ = false;
  }

  /// The elements, of a type that they have. Throws EnforceNotMet if the type is another or there is no
  /// memory yet.
  template <typename T>
  const T* data() const {
    UMBRA_ENFORCE(meta_.Match<T>(), "the tensor has elements of ", meta_.name(), ", not ", TypeMeta::Make<T>().name());
    return static_cast<const T*>(raw_data());
  }
  const void* raw_data() const {
    UMBRA_ENFORCE(data_ != nullptr || size_ == 0, "the tensor has no memory yet; call mutable_data<T>() first");
    return data_.get();
  }
  /// The elements for writing; memory is allocated, and the type changed to T, as needed. Elements of
  /// trivial types are not initialised.
  template <typename T>
  T* mutable_data() { return static_cast<T*>(raw_mutable_data(TypeMeta::Make<T>())); }
  void* raw_mutable_data(const TypeMeta& meta) {
    UMBRA_ENFORCE(meta.itemsize() > 0, "raw_mutable_data needs an element type");
    if (meta_ == meta && (data_ != nullptr || size_ == 0)) return data_.get();
    const bool reusable = data_ != nullptr && !shared_ && meta_.is_trivial() && meta.is_trivial() &&
                          BytesOf(size_, meta) <= capacity_;
    if (reusable) {
      meta_ = meta;
      return data_.get();
    }
    auto [memory, bytes] = Allocate(size_, meta);
    meta_ = meta;
    data_ = std::move(memory);
    capacity_ = bytes;
    shared_ = reserved_ = false;
    return data_.get();
  }
  void* raw_mutable_data() {
    UMBRA_ENFORCE(meta_.itemsize() > 0, "the tensor has no element type yet; call mutable_data<T>()");
    return raw_mutable_data(meta_);
  }

  index_t size() const { return size_; }
  index_t numel() const { return size_; }
  int ndim() const { return static_cast<int>(dims_.size()); }
  const Dims& dims() const { return dims_; }
  index_t dim(int i) const {
    UMBRA_ENFORCE(i >= 0 && i < ndim(), "dimension ", i, " of a tensor of ", ndim());
    return dims_[static_cast<std::size_t>(i)];
  }
  std::size_t itemsize() const { return meta_.itemsize(); }
  std::size_t nbytes() const { return BytesOf(size_); }
  std::size_t capacity_nbytes() const { return capacity_; }
  const TypeMeta& meta() const { return meta_; }
  template <typename T>
  bool IsType() const { return meta_.Match<T>(); }
  bool shares_data() const { return shared_; }

 private:
  static index_t CountOf(const Dims& dims) {
    index_t count = 1;
    for (index_t extent : dims) UMBRA_ENFORCE_GE(extent, 0, "a negative extent");
    for (index_t extent : dims)
      UMBRA_ENFORCE(!__builtin_mul_overflow(count, extent, &count), "the number of elements overflows");
    return count;
  }
  std::size_t BytesOf(index_t count) const { return BytesOf(count, meta_); }
  static std::size_t BytesOf(index_t count, const TypeMeta& meta) {
    std::size_t bytes = 0;
    UMBRA_ENFORCE(!__builtin_mul_overflow(static_cast<std::size_t>(count), meta.itemsize(), &bytes) &&
                      bytes < static_cast<std::size_t>(INT64_MAX),
                  "the size in bytes overflows");
    return bytes;
  }
  static std::pair<std::shared_ptr<void>, std::size_t> Allocate(index_t count, const TypeMeta& meta) {
    const std::size_t bytes = BytesOf(count, meta), align = std::max<std::size_t>(64, meta.alignment());
    const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + align - 1) / align * align;
    std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(align, rounded), &std::free);
    UMBRA_ENFORCE(memory != nullptr, "out of memory: ", bytes, " bytes for a tensor");
    const auto elements = static_cast<std::size_t>(count);
    meta.Construct(memory.get(), elements);
    void* p = memory.release();
    return {std::shared_ptr<void>(p, [meta, elements](void* q) {
              meta.Destroy(q, elements);
              std::free(q);
            }), bytes};
  }
  // Memory for `count` elements with those that are there copied to it.
  void Reallocate(index_t count) {
    auto [memory, bytes] = Allocate(count, meta_);
    if (data_ != nullptr && size_ > 0) meta_.Copy(data_.get(), memory.get(), static_cast<std::size_t>(size_));
    data_ = std::move(memory);
    capacity_ = bytes;
    shared_ = false;
  }

  Dims dims_ = {0};
  index_t size_ = 0;
  TypeMeta meta_;
  std::shared_ptr<void> data_;
  std::size_t capacity_ = 0;
  bool reserved_ = false, shared_ = false;
  ShrinkPolicy policy_;
};

}  // namespace umbra

#endif  // UMBRA_DYNAMIC_TENSOR_H_
