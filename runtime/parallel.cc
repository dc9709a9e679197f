#include "runtime/parallel.h"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "umbra/error.h"

namespace umbra::runtime {

void RequireThreads(int threads) {
  Require(threads >= 0, "RunOptions: ", threads,
          " threads; expected 1 or more, or 0 for as many as the machine has");
}

void ParallelFor(int parts, const std::function<void(int)>& body) {
  if (parts <= 1) {
    if (parts == 1) body(0);
    return;
  }
  // A thread that waits for the others takes up no foreign task: that might be a call of another program,
  // whose temporaries are this thread's too.
  tbb::this_task_arena::isolate([&] { tbb::parallel_for(0, parts, 1, body, tbb::static_partitioner()); });
}

void* ThreadScratch(std::size_t bytes) {
  thread_local std::unique_ptr<void, decltype(&std::free)> memory(nullptr, &std::free);
  thread_local std::size_t size = 0;
  if (bytes > size) {
    const std::size_t rounded = (bytes + 4095) / 4096 * 4096;
    memory.reset(std::aligned_alloc(64, rounded));
    size = memory ? rounded : 0;
    if (!memory) throw std::bad_alloc();
  }
  return memory.get();
}

}  // namespace umbra::runtime
