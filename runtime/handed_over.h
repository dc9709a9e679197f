// Work that oneTBB, which is not instrumented, hands over from thread to thread, as ThreadSanitizer sees it.
#ifndef UMBRA_RUNTIME_HANDED_OVER_H_
#define UMBRA_RUNTIME_HANDED_OVER_H_

#if defined(__SANITIZE_THREAD__)
#define UMBRA_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UMBRA_THREAD_SANITIZER 1
#endif
#endif

#ifdef UMBRA_THREAD_SANITIZER
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace umbra::runtime {

/// A body for a parallel loop, to be destroyed after it: what was written before it was made is there for its calls,
/// and what they write for who destroys it; nothing is said of calls among each other.
template <typename Body>
class HandedOver {
 public:
  explicit HandedOver(const Body& body) : body_(body) { begin_.Release(); }
  ~HandedOver() { end_.Acquire(); }
  HandedOver(const HandedOver&) = delete;
  HandedOver& operator=(const HandedOver&) = delete;

  // It reads itself before it has acquired anything.
  __attribute__((no_sanitize("thread"))) void operator()(int part) const {
    begin_.Acquire();
    Call(part);
  }

 private:
  struct Place {
#ifdef UMBRA_THREAD_SANITIZER
    void Acquire() { __tsan_acquire(this); }
    void Release() { __tsan_release(this); }
#else
    void Acquire() {}
    void Release() {}
#endif
  };

  void Call(int part) const {
    struct AtTheEnd {
      Place* place;
      ~AtTheEnd() { place->Release(); }
    } const end{&end_};
    body_(part);
  }

  const Body& body_;
  mutable Place begin_, end_;
};

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_HANDED_OVER_H_
