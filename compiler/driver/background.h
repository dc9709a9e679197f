// The thread that compiles in the background.
#ifndef UMBRA_COMPILER_DRIVER_BACKGROUND_H_
#define UMBRA_COMPILER_DRIVER_BACKGROUND_H_

#include <atomic>
#include <functional>

namespace umbra {

/// Runs `work` on the background thread, after all that was given before. Work that has not begun when
/// the process ends is dropped; what has begun is waited for, and is told by BackgroundEnds to give up.
/// `work` must not throw.
void RunInBackground(std::function<void()> work);

/// Set once the process ends.
const std::atomic<bool>& BackgroundEnds();

}  // namespace umbra

#endif  // UMBRA_COMPILER_DRIVER_BACKGROUND_H_
