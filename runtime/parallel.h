// Running parts of a kernel's range on several threads.
#ifndef UMBRA_RUNTIME_PARALLEL_H_
#define UMBRA_RUNTIME_PARALLEL_H_

#include <cstddef>

#include "runtime/piece_body.h"

namespace umbra::runtime {

/// Calls body(0) .. body(parts - 1), on as many threads at most; returns when all are done. The
/// first exception of a part is thrown again.
void ParallelFor(int parts, PieceBody body);

/// Calls body(0) .. body(pieces - 1) on `threads` at most. Each has its share of pieces, in order; one that is done
/// with it helps out with those of the others, which may be held up by something else. A `brief` call wakes threads
/// that are asleep now and then only.
void ShareOut(int threads, int pieces, PieceBody body, bool brief = false);

/// Throws umbra::Error unless `threads` is a number of threads, or 0 for all.
void RequireThreads(int threads);

/// Memory of the calling thread, 64-byte aligned, at least `bytes`; valid until its next call on
/// this thread.
void* ThreadScratch(std::size_t bytes);

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_PARALLEL_H_
