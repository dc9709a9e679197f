// What threads that share out work call.
#ifndef UMBRA_RUNTIME_PIECE_BODY_H_
#define UMBRA_RUNTIME_PIECE_BODY_H_

#include <type_traits>

namespace umbra::runtime {

/// A callable of the number of a piece, which has to outlive this: two words that a thread can be handed, without the
/// memory that a std::function would have it fetch from the caller's processor.
class PieceBody {
 public:
  PieceBody() = default;  ///< nothing to call
  template <typename Callable, typename = std::enable_if_t<!std::is_same_v<Callable, PieceBody>>>
  PieceBody(const Callable& callable)  // NOLINT: a lambda is one
      : callable_(&callable),
        call_([](const void* body, int piece) { (*static_cast<const Callable*>(body))(piece); }) {}
  void operator()(int piece) const { call_(callable_, piece); }

 private:
  const void* callable_ = nullptr;
  void (*call_)(const void*, int) = nullptr;
};

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_PIECE_BODY_H_
