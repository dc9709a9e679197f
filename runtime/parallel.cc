#include "runtime/parallel.h"

#include <cstdlib>
#include <memory>
#include <new>

#include "runtime/thread_pool.h"
#include "umbra/aligned_memory.h"
#include "umbra/error.h"

namespace umbra::runtime {

void RequireThreads(int threads) {
  Require(threads >= 0, "RunOptions: ", threads, " threads; expected 1 or more, or 0 for as many as the machine has");
}

void ParallelFor(int parts, PieceBody body) { ShareOut(parts, parts, body); }

void ShareOut(int threads, int pieces, PieceBody body, bool brief) {
  if (threads > 1 && pieces > 1) return ThreadPool::OfProcess().ShareOut(threads, pieces, body, brief);
  for (int piece = 0; piece < pieces; ++piece) body(piece);
}

void* ThreadScratch(std::size_t bytes) {
  thread_local std::unique_ptr<void, decltype(&std::free)> memory(nullptr, &std::free);
  thread_local std::size_t size = 0;
  if (bytes > size) {
    const std::size_t rounded = (bytes + 4095) / 4096 * 4096;
    memory.reset(AlignedMemory(rounded));
    size = memory ? rounded : 0;
    if (!memory) throw std::bad_alloc();
  }
  return memory.get();
}

}  // namespace umbra::runtime
