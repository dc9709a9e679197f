// What a container of any element type has to know of its elements, as caffe2's TypeMeta.
#ifndef UMBRA_TYPE_META_H_
#define UMBRA_TYPE_META_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>

#include "umbra/error.h"

namespace umbra {

/// Size, name, and how to make, copy and destroy elements of a type; as caffe2's TypeMeta. Two are equal
/// if and only if the types are the same, also across shared libraries; in programs without RTTI,
/// libraries that hide their symbols see types of others as other ones.
class TypeMeta {
 public:
  /// No type: the element type of a tensor that has none yet.
  TypeMeta() : TypeMeta(&kNone) {}
  /// Of elements of type T, which must have a default constructor.
  template <typename T>
  static TypeMeta Make() {
    return TypeMeta(&kOf<T>);
  }

  /// Bytes of an element; 0 for no type.
  std::size_t itemsize() const { return info_->size; }
  /// Addresses of elements are multiples of this, in bytes.
  std::size_t alignment() const { return info_->alignment; }
  /// As the compiler writes the type, complete; for messages. Distinct types may have one name.
  std::string name() const { return std::string(info_->name()); }
  /// Are elements no more than their bytes: nothing to construct or destroy?
  bool is_trivial() const { return info_->construct == nullptr; }
  /// Is it the type T?
  template <typename T>
  bool Match() const {
    return *this == Make<T>();
  }

  /// Makes `n` elements in memory at `p`; if one throws, those made before are destroyed.
  void Construct(void* p, std::size_t n) const {
    if (info_->construct != nullptr) info_->construct(p, n);
  }
  /// Ends the life of `n` elements at `p`.
  void Destroy(void* p, std::size_t n) const {
    if (info_->destroy != nullptr) info_->destroy(p, n);
  }
  /// Assigns `n` elements to ones that exist; the two ranges may overlap. Throws umbra::Error, before
  /// anything changes, for a type that cannot be copied.
  void Copy(const void* from, void* to, std::size_t n) const {
    if (from != to && n > 0) info_->copy(from, to, n);
  }
  /// The same by moving, if that cannot throw or the type cannot be copied; the ranges do not overlap.
  void Move(void* from, void* to, std::size_t n) const {
    if (n > 0) info_->move(from, to, n);
  }

  /// The same type?
  friend bool operator==(const TypeMeta& a, const TypeMeta& b) {
    if (a.info_ == b.info_) return true;
    const std::type_info *x = a.info_->type, *y = b.info_->type;
    return x != nullptr && y != nullptr && *x == *y && !IsOfOneFile(x->name());
  }
  friend bool operator!=(const TypeMeta& a, const TypeMeta& b) { return !(a == b); }

 private:
  struct Info {
    const std::type_info* type;  // null without RTTI
    std::size_t size, alignment;
    std::string_view (*name)();
    void (*construct)(void*, std::size_t);
    void (*destroy)(void*, std::size_t);
    void (*copy)(const void*, void*, std::size_t);
    void (*move)(void*, void*, std::size_t);
  };
  explicit TypeMeta(const Info* info) : info_(info) {}

  // Returns no alias: GCC explains aliases behind the name.
  template <typename T>
  static constexpr const char* Signature() {
    return __PRETTY_FUNCTION__;
  }
  template <typename T>
  static std::string_view NameOf() {
    // "... [with T = float]" or "... [T = float]"
    const std::string_view text = Signature<T>();
    const std::size_t begin = text.find("T = ") + 4;
    return text.substr(begin, text.size() - 1 - begin);
  }
  static std::string_view NoName() { return "nothing"; }
  // Types that one source file keeps to itself, of which Clang's type_info knows the name only: in or
  // local to something in an anonymous namespace, closures, local to static functions.
  static bool IsOfOneFile(std::string_view mangled) {
    for (const char* const mark : {"_GLOBAL__N_", "$_", "ZL"})
      if (mangled.find(mark) != std::string_view::npos) return true;
    return false;
  }
  template <typename T>
  static constexpr const std::type_info* TypeOf() {
#ifdef __cpp_rtti
    return &typeid(T);
#else
    return nullptr;
#endif
  }
  template <typename T>
  static void ConstructAll(void* p, std::size_t n) {
    std::uninitialized_value_construct_n(static_cast<T*>(p), n);
  }
  template <typename T>
  static void DestroyAll(void* p, std::size_t n) {
    std::destroy_n(static_cast<T*>(p), n);
  }
  template <typename T>
  static void CopyAll(const void* from, void* to, std::size_t n) {
    if constexpr (std::is_copy_assignable_v<T>) {
      const T* const source = static_cast<const T*>(from);
      T* const target = static_cast<T*>(to);
      if (std::less<const void*>()(from, to)) std::copy_backward(source, source + n, target + n);
      else std::copy(source, source + n, target);
    } else {
      throw Error("elements of type " + std::string(NameOf<T>()) + " cannot be copied");
    }
  }
  template <typename T>
  static void MoveAll(void* from, void* to, std::size_t n) {
    constexpr bool moves =
        std::is_nothrow_move_assignable_v<T> || (std::is_move_assignable_v<T> && !std::is_copy_assignable_v<T>);
    if constexpr (moves) std::move(static_cast<T*>(from), static_cast<T*>(from) + n, static_cast<T*>(to));
    else CopyAll<T>(from, to, n);
  }
  static void CopyNothing(const void*, void*, std::size_t) {}
  static void MoveNothing(void*, void*, std::size_t) {}
  template <typename T>
  static constexpr bool kTrivial = std::is_trivially_default_constructible_v<T>&& std::is_trivially_destructible_v<T>&&
      std::is_trivially_copyable_v<T>;
  template <typename T>
  static constexpr Info kOf = {TypeOf<T>(),
                               sizeof(T),
                               alignof(T),
                               &NameOf<T>,
                               kTrivial<T> ? nullptr : &ConstructAll<T>,
                               kTrivial<T> ? nullptr : &DestroyAll<T>,
                               &CopyAll<T>,
                               &MoveAll<T>};
  static constexpr Info kNone = {nullptr, 0, 1, &NoName, nullptr, nullptr, &CopyNothing, &MoveNothing};

  const Info* info_;
};

}  // namespace umbra

#endif  // UMBRA_TYPE_META_H_
