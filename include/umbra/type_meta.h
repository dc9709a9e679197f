// What a container of any element type has to know of its elements.
#ifndef UMBRA_TYPE_META_H_
#define UMBRA_TYPE_META_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "umbra/error.h"

namespace umbra {

/// Size, name, and how to make, copy and destroy elements of a type; as caffe2's TypeMeta. Two are equal
/// if the types have the same name, also across shared libraries.
class TypeMeta {
 public:
  /// No type: the element type of a tensor that has none yet.
  TypeMeta() : TypeMeta(&kNone) {}
  template <typename T>
  static TypeMeta Make() { return TypeMeta(&kOf<T>); }

  std::size_t itemsize() const { return info_->size; }
  std::size_t alignment() const { return info_->alignment; }
  std::string name() const { return std::string(info_->name()); }
  /// Does an element need more than its bytes? Copies of others are copies of memory.
  bool is_trivial() const { return info_->construct == nullptr; }
  template <typename T>
  bool Match() const { return *this == Make<T>(); }

  /// Makes `n` elements in memory at `p`; if one throws, those made before are destroyed.
  void Construct(void* p, std::size_t n) const {
    if (info_->construct != nullptr) info_->construct(p, n);
  }
  void Destroy(void* p, std::size_t n) const {
    if (info_->destroy != nullptr) info_->destroy(p, n);
  }
  /// Assigns `n` elements to ones that exist. Throws umbra::Error for a type that cannot be copied.
  void Copy(const void* from, void* to, std::size_t n) const { info_->copy(from, to, n); }

  friend bool operator==(const TypeMeta& a, const TypeMeta& b) {
    return a.info_ == b.info_ || (a.info_->size == b.info_->size && a.info_->name() == b.info_->name());
  }
  friend bool operator!=(const TypeMeta& a, const TypeMeta& b) { return !(a == b); }

 private:
  struct Info {
    std::size_t size, alignment;
    std::string_view (*name)();
    void (*construct)(void*, std::size_t);
    void (*destroy)(void*, std::size_t);
    void (*copy)(const void*, void*, std::size_t);
  };
  explicit TypeMeta(const Info* info) : info_(info) {}

  template <typename T>
  static std::string_view NameOf() {
    // "... [with T = float; ...]" or "... [T = float]"
    const std::string_view text = __PRETTY_FUNCTION__;
    const std::size_t begin = text.find("T = ") + 4;
    return text.substr(begin, text.find_first_of(";]", begin) - begin);
  }
  static std::string_view NoName() { return "nothing"; }
  template <typename T>
  static void ConstructAll(void* p, std::size_t n) { std::uninitialized_value_construct_n(static_cast<T*>(p), n); }
  template <typename T>
  static void DestroyAll(void* p, std::size_t n) { std::destroy_n(static_cast<T*>(p), n); }
  template <typename T>
  static void CopyAll(const void* from, void* to, std::size_t n) {
    if constexpr (std::is_copy_assignable_v<T>) {
      for (std::size_t i = 0; i < n; ++i) static_cast<T*>(to)[i] = static_cast<const T*>(from)[i];
    } else {
      throw Error("elements of type " + std::string(NameOf<T>()) + " cannot be copied");
    }
  }
  static void CopyNothing(const void*, void*, std::size_t) {}
  template <typename T>
  static constexpr bool kTrivial = std::is_trivially_default_constructible_v<T> && std::is_trivially_destructible_v<T> &&
                                   std::is_trivially_copyable_v<T>;
  template <typename T>
  static constexpr Info kOf = {sizeof(T), alignof(T), &NameOf<T>, kTrivial<T> ? nullptr : &ConstructAll<T>,
                               kTrivial<T> ? nullptr : &DestroyAll<T>, &CopyAll<T>};
  static constexpr Info kNone = {0, 1, &NoName, nullptr, nullptr, &CopyNothing};

  const Info* info_;
};

}  // namespace umbra

#endif  // UMBRA_TYPE_META_H_
