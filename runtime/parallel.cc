#include "runtime/parallel.h"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "runtime/handed_over.h"
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
  const HandedOver each(body);
  tbb::this_task_arena::isolate([&] { tbb::parallel_for(0, parts, 1, each, tbb::static_partitioner()); });
}

void ShareOut(int threads, int pieces, const std::function<void(int)>& body) {
  if (threads <= 1 || pieces <= threads) return ParallelFor(pieces, body);
  struct alignas(64) Share {
    std::atomic<int> next;
    int end;
  };
  std::vector<Share> shares(static_cast<std::size_t>(threads));
  const auto first = [&](int share) { return static_cast<int>(std::int64_t{pieces} * share / threads); };
  for (int k = 0; k < threads; ++k) shares[static_cast<std::size_t>(k)].next = first(k), shares[static_cast<std::size_t>(k)].end = first(k + 1);
  ParallelFor(threads, [&](int own) {
    for (int k = 0; k < threads; ++k) {
      Share& share = shares[static_cast<std::size_t>((own + k) % threads)];
      for (int piece; (piece = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end;) body(piece);
    }
  });
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
