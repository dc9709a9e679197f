// Tensors that own memory of any element type, whose shape and type are known at run time, as caffe2::Tensor.
#ifndef UMBRA_DYNAMIC_TENSOR_H_
#define UMBRA_DYNAMIC_TENSOR_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "umbra/aligned_memory.h"
#include "umbra/device.h"
#include "umbra/enforce.h"
#include "umbra/tshape.h"
#include "umbra/type_meta.h"

namespace umbra {

/// When Resize to another size that would fit gives memory back nevertheless, as caffe2's two flags say
/// it for a whole process.
struct ShrinkPolicy {
  bool keep = true;  ///< false: always give it back
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
  /// The shape is known, type and memory follow, on the device with `dev_mask` (gpu::kDevMask for the GPU,
  /// where elements are of trivial types).
  explicit DynamicTensor(Dims dims, int dev_mask = cpu::kDevMask) : dev_mask_(dev_mask) {
    UMBRA_ENFORCE(dev_mask == cpu::kDevMask || dev_mask == gpu::kDevMask, "device mask ", dev_mask, " is none; ",
                  cpu::kDevMask, " is the CPU, ", gpu::kDevMask, " the GPU");
    Resize(std::move(dims));
  }
  /// A copy of `values` of that shape.
  template <typename T>
  DynamicTensor(Dims dims, const std::vector<T>& values) {
    Resize(std::move(dims));
    UMBRA_ENFORCE_EQ(static_cast<std::size_t>(size_), values.size(), "the values do not fill the shape");
    std::copy(values.begin(), values.end(), mutable_data<T>());
  }
  /// A copy of shape, type and elements, as CopyFrom makes it; sharing is asked for by ShareData.
  /// Explicit, so that elements are never copied by mistake.
  explicit DynamicTensor(const DynamicTensor& other, Stream<cpu>* stream = nullptr) { CopyFrom(other, stream); }
  DynamicTensor& operator=(const DynamicTensor&) = delete;
  /// Takes everything of `other`, which is then as a new tensor.
  DynamicTensor(DynamicTensor&& other) noexcept { Swap(other); }
  /// The same; a tensor moved to itself is as before.
  DynamicTensor& operator=(DynamicTensor&& other) noexcept {
    DynamicTensor taken(std::move(other));
    Swap(taken);
    return *this;
  }
  /// Exchanges everything with `other`, the policies too.
  void Swap(DynamicTensor& other) noexcept {
    std::swap(dims_, other.dims_);
    std::swap(size_, other.size_);
    std::swap(meta_, other.meta_);
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    std::swap(reserved_, other.reserved_);
    std::swap(shared_, other.shared_);
    std::swap(policy_, other.policy_);
    std::swap(dev_mask_, other.dev_mask_);
  }

  /// Sets the shape. Memory is kept if the number of elements is the same, or if it suffices and the
  /// ShrinkPolicy lets it; elements are then those that were there, in row-major order, else new ones.
  /// Throws EnforceNotMet, and changes nothing, for a negative extent or a product that overflows.
  void Resize(Dims dims) {
    const index_t size = CountOf(dims);
    if (!Keeps(size)) FreeMemory();
    dims_ = std::move(dims);
    size_ = size;
  }
  /// The same, one argument an extent: Resize(2, 3).
  template <typename... Extents, typename = std::enable_if_t<(std::is_integral_v<Extents> && ...)>>
  void Resize(Extents... extents) {
    Resize(Dims{static_cast<index_t>(extents)...});
  }
  /// Resizes to the shape of `other`.
  void ResizeLike(const DynamicTensor& other) { Resize(other.dims_); }
  /// Another shape of as many elements; throws EnforceNotMet for any other.
  void Reshape(Dims dims) {
    UMBRA_ENFORCE_EQ(CountOf(dims), size_, "Reshape keeps the number of elements");
    dims_ = std::move(dims);
  }
  /// Adds `n` to the outermost extent, keeping the elements; the new rows hold what memory has there.
  /// Memory that has to grow becomes enough for `growth_percent` more than the outermost extent was,
  /// rounded up, or for what is needed if that is more. Without memory yet this is Resize. Shared memory
  /// is left to the others, who never see the new rows; caffe2 extends it in place. Throws EnforceNotMet
  /// for rank 0, a negative argument or a size that overflows.
  void Extend(index_t n, float growth_percent) {
    UMBRA_ENFORCE_GE(dims_.size(), 1u, "Extend needs a dimension");
    UMBRA_ENFORCE_GE(n, 0, "Extend takes a number of rows");
    UMBRA_ENFORCE(growth_percent >= 0, "Extend: a growth of 0 percent or more is expected, ", growth_percent,
                  " was given");
    Dims wanted = dims_;
    UMBRA_ENFORCE(!__builtin_add_overflow(wanted[0], n, &wanted[0]), "Extend: the extent overflows");
    if (data_ == nullptr) return Resize(std::move(wanted));
    const index_t size = CountOf(wanted);
    if (BytesOf(size) > capacity_ || shared_) {
      Dims room = wanted;
      const double grown = std::ceil(static_cast<double>(dims_[0]) * (100 + static_cast<double>(growth_percent)) / 100);
      if (grown < 0x1p63) room[0] = std::max(room[0], static_cast<index_t>(grown));
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
  /// The same; caffe2 has both names.
  void Shrink(index_t outer) { ShrinkTo(outer); }
  /// Memory of this tensor's own for an outermost extent of `outer`, which later calls of Resize and
  /// Extend keep; elements, shape and memory that suffices stay. Throws EnforceNotMet for rank 0, a
  /// negative extent, or if there is no element type yet.
  void ReserveSpace(index_t outer) {
    UMBRA_ENFORCE_GE(outer, 0, "ReserveSpace takes a number of rows");
    UMBRA_ENFORCE(meta_.itemsize() > 0, "ReserveSpace: the tensor has no element type; call mutable_data<T>() first");
    UMBRA_ENFORCE_GE(dims_.size(), 1u, "ReserveSpace needs a dimension");
    Dims room = dims_;
    room[0] = std::max(outer, dims_[0]);
    const index_t count = CountOf(room);
    if (data_ == nullptr || shared_ || BytesOf(count) > capacity_) Reallocate(count);
    reserved_ = true;
  }
  /// For later calls of Resize and CopyFrom.
  void set_shrink_policy(const ShrinkPolicy& policy) { policy_ = policy; }

  /// Copies shape, type and elements, to this tensor's device from wherever they are; done when it returns
  /// unless a GPU's stream orders it. Memory is kept where Resize would keep it and the type is the same:
  /// tensors that share it see the copy. Without memory in `other` there is none here either. Throws
  /// umbra::Error, and changes nothing, for elements that cannot be copied; if copying one throws, those
  /// before it are copied if memory was kept.
  void CopyFrom(const DynamicTensor& other, Stream<gpu>* stream) {
    if (this == &other) return;
    if (data_ != nullptr && other.data_ != nullptr && meta_ == other.meta_ && Keeps(other.size_)) {
      Dims dims = other.dims_;
      CopyElements(other, other.size_, stream);
      dims_ = std::move(dims);
      size_ = other.size_;
      return;
    }
    DynamicTensor fresh(other.dims_, dev_mask_);
    fresh.policy_ = policy_;
    fresh.meta_ = other.meta_;
    if (other.data_ != nullptr) {
      fresh.Reallocate(fresh.size_);
      fresh.CopyElements(other, other.size_, stream);
    }
    Swap(fresh);
  }
  void CopyFrom(const DynamicTensor& other, Stream<cpu>* stream = nullptr) {
    (void)stream;
    CopyFrom(other, static_cast<Stream<gpu>*>(nullptr));
  }
  /// Uses the memory of `other`, which has as many elements; both see each other's writes. Throws
  /// EnforceNotMet if `other` has another number of elements or no memory yet.
  void ShareData(const DynamicTensor& other) {
    UMBRA_ENFORCE_EQ(size_, other.size_, "ShareData needs as many elements");
    UMBRA_ENFORCE(other.data_ != nullptr || other.size_ == 0, "ShareData: the source has no memory yet");
    if (this == &other) return;
    dev_mask_ = other.dev_mask_;
    meta_ = other.meta_;
    data_ = other.data_;
    capacity_ = other.capacity_;
    shared_ = true;
    reserved_ = false;
  }
  /// Uses memory of the caller's, of `capacity` bytes (0: just what the shape needs), filled with elements
  /// that exist already; `deleter`, if given, is called for it when the last tensor is done. Throws
  /// EnforceNotMet, and does not take the memory, for a null or misaligned pointer or too few bytes.
  template <typename T>
  void ShareExternalPointer(T* data, std::size_t capacity = 0, std::function<void(T*)> deleter = nullptr) {
    ShareExternalPointer(static_cast<void*>(data), TypeMeta::Make<T>(), capacity,
                         deleter ? [deleter](void* p) { deleter(static_cast<T*>(p)); } : std::function<void(void*)>());
  }
  /// The same for a type that is known at run time.
  void ShareExternalPointer(void* data, const TypeMeta& meta, std::size_t capacity = 0,
                            std::function<void(void*)> deleter = nullptr) {
    UMBRA_ENFORCE(meta.itemsize() > 0, "ShareExternalPointer needs an element type");
    const std::size_t bytes = BytesOf(size_, meta);
    UMBRA_ENFORCE(data != nullptr || bytes == 0, "ShareExternalPointer: a null pointer");
    UMBRA_ENFORCE(IsAligned(data, meta), "ShareExternalPointer: ", data, " is no multiple of the ", meta.alignment(),
                  " bytes that elements of ", meta.name(), " are aligned to");
    UMBRA_ENFORCE(capacity == 0 || capacity >= bytes, "ShareExternalPointer: ", capacity, " bytes for a tensor of ",
                  bytes);
    data_ = deleter ? std::shared_ptr<void>(data, deleter) : std::shared_ptr<void>(data, [](void*) {});
    meta_ = meta;
    capacity_ = capacity == 0 ? bytes : capacity;
    shared_ = true;
    reserved_ = false;
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
  /// The elements of whatever type. Throws EnforceNotMet if there is no memory yet.
  const void* raw_data() const {
    UMBRA_ENFORCE(data_ != nullptr || size_ == 0, "the tensor has no memory yet; call mutable_data<T>() first");
    return data_.get();
  }
  /// The elements for writing; memory is allocated, and the type changed to T, as needed. Elements of
  /// trivial types are not initialised.
  template <typename T>
  T* mutable_data() {
    return static_cast<T*>(raw_mutable_data(TypeMeta::Make<T>()));
  }
  /// The same for a type that is known at run time. Throws EnforceNotMet for no type, or if memory runs
  /// out.
  void* raw_mutable_data(const TypeMeta& meta) {
    UMBRA_ENFORCE(meta.itemsize() > 0, "raw_mutable_data needs an element type");
    if (meta_ == meta && (data_ != nullptr || size_ == 0)) return data_.get();
    const bool reusable = Exclusive() && meta_.is_trivial() && meta.is_trivial() && IsAligned(data_.get(), meta) &&
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
  /// The elements of the type that they have. Throws EnforceNotMet if there is none yet.
  void* raw_mutable_data() {
    UMBRA_ENFORCE(meta_.itemsize() > 0, "the tensor has no element type yet; call mutable_data<T>()");
    return raw_mutable_data(meta_);
  }

  /// Number of elements.
  index_t size() const { return size_; }
  /// The same.
  index_t numel() const { return size_; }
  /// The rank.
  int ndim() const { return static_cast<int>(dims_.size()); }
  /// The extents, in elements.
  const Dims& dims() const { return dims_; }
  /// Extent of dimension `i`. Throws EnforceNotMet beyond the rank.
  index_t dim(int i) const {
    UMBRA_ENFORCE(i >= 0 && i < ndim(), "dimension ", i, " of a tensor of ", ndim());
    return dims_[static_cast<std::size_t>(i)];
  }
  /// Bytes of an element; 0 if there is no type yet.
  std::size_t itemsize() const { return meta_.itemsize(); }
  /// Bytes of all elements, whether there is memory for them yet or not.
  std::size_t nbytes() const { return BytesOf(size_); }
  /// Bytes of the memory; 0 if there is none yet.
  std::size_t capacity_nbytes() const { return capacity_; }
  /// The element type.
  const TypeMeta& meta() const { return meta_; }
  /// Are the elements of type T?
  template <typename T>
  bool IsType() const {
    return meta_.Match<T>();
  }
  /// `Device::kDevMask` of the memory's device.
  int dev_mask() const { return dev_mask_; }
  /// Is the memory another tensor's or the caller's? False for the tensor that lent its memory.
  bool shares_data() const { return shared_; }

 private:
  static index_t CountOf(const Dims& dims) {
    index_t count = 1;
    bool empty = false, overflow = false;
    for (const index_t extent : dims) {
      UMBRA_ENFORCE_GE(extent, 0, "a negative extent in shape ", TShape(dims.begin(), dims.end()));
      empty = empty || extent == 0;
      overflow = __builtin_mul_overflow(count, extent, &count) || overflow;
    }
    UMBRA_ENFORCE(empty || !overflow, "the number of elements of shape ", TShape(dims.begin(), dims.end()),
                  " overflows");
    return empty ? 0 : count;
  }
  static bool IsAligned(const void* p, const TypeMeta& meta) {
    return reinterpret_cast<std::uintptr_t>(p) % meta.alignment() == 0;
  }
  // Would Resize to so many elements keep the memory?
  bool Keeps(index_t size) const {
    const std::size_t bytes = BytesOf(size);
    if (size == size_) return true;
    return bytes <= capacity_ && (reserved_ || (policy_.keep && capacity_ - bytes <= policy_.max_keep_bytes));
  }
  // Is there memory that nobody else knows of?
  bool Exclusive() const { return !shared_ && data_.use_count() == 1; }
  std::size_t BytesOf(index_t count) const { return BytesOf(count, meta_); }
  static std::size_t BytesOf(index_t count, const TypeMeta& meta) {
    std::size_t bytes = 0;
    UMBRA_ENFORCE(!__builtin_mul_overflow(static_cast<std::size_t>(count), meta.itemsize(), &bytes) &&
                      bytes < static_cast<std::size_t>(INT64_MAX),
                  "the size in bytes overflows");
    return bytes;
  }
  std::pair<std::shared_ptr<void>, std::size_t> Allocate(index_t count, const TypeMeta& meta) const {
    if (dev_mask_ == gpu::kDevMask) {
      UMBRA_ENFORCE(meta.is_trivial(), "elements of ", meta.name(), " cannot lie on a GPU: their type is not trivial");
      const std::size_t bytes = BytesOf(count, meta);
      std::size_t pitch = 0;
      return {std::shared_ptr<void>(cuda::Allocate(std::max<std::size_t>(bytes, 1), 1, &pitch), cuda::Free), bytes};
    }
    const std::size_t bytes = BytesOf(count, meta), align = std::max<std::size_t>(64, meta.alignment());
    std::unique_ptr<void, decltype(&std::free)> memory(AlignedMemory(bytes, align), &std::free);
    UMBRA_ENFORCE(memory != nullptr, "out of memory: ", bytes, " bytes for a tensor");
    const auto elements = static_cast<std::size_t>(count);
    meta.Construct(memory.get(), elements);
    void* p = memory.release();
    return {std::shared_ptr<void>(p,
                                  [meta, elements](void* q) {
                                    meta.Destroy(q, elements);
                                    std::free(q);
                                  }),
            bytes};
  }
  // The first `count` elements of `other` to this tensor's memory, which has room for them.
  void CopyElements(const DynamicTensor& other, index_t count, Stream<gpu>* stream) {
    if (dev_mask_ == cpu::kDevMask && other.dev_mask_ == cpu::kDevMask)
      return meta_.Copy(other.data_.get(), data_.get(), static_cast<std::size_t>(count));
    UMBRA_ENFORCE(meta_.is_trivial(), "elements of ", meta_.name(), " cannot be copied between devices");
    const cuda::CopyKind kind = dev_mask_ == cpu::kDevMask         ? cuda::CopyKind::kDeviceToHost
                                : other.dev_mask_ == cpu::kDevMask ? cuda::CopyKind::kHostToDevice
                                                                   : cuda::CopyKind::kDeviceToDevice;
    const std::size_t bytes = BytesOf(count);
    cuda::Copy(kind, data_.get(), bytes, other.data_.get(), bytes, bytes, 1, Stream<gpu>::GetStream(stream));
  }
  // Memory for `count` elements, with those that are there moved to it, or copied if others use them.
  void Reallocate(index_t count) {
    auto [memory, bytes] = Allocate(count, meta_);
    const auto kept = data_ == nullptr ? std::size_t{0} : static_cast<std::size_t>(size_);
    if (dev_mask_ == gpu::kDevMask) {
      if (kept > 0)
        cuda::Copy(cuda::CopyKind::kDeviceToDevice, memory.get(), bytes, data_.get(), bytes, BytesOf(size_), 1,
                   nullptr);
    } else if (Exclusive()) meta_.Move(data_.get(), memory.get(), kept);
    else meta_.Copy(data_.get(), memory.get(), kept);
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
  int dev_mask_ = cpu::kDevMask;
};

}  // namespace umbra

#endif  // UMBRA_DYNAMIC_TENSOR_H_
