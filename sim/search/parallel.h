#pragma once

#include <cstddef>
#include <functional>

namespace dcsim {

/// Calls task(i) for each i below `count`, on up to `threads` threads, in no certain order. What
/// a task throws is thrown again once all threads have ended; of several the one of the lowest i.
///
///   task   must be safe to call at the same time for different i
void ParallelFor(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& task);

/// As many threads as asked for; 0: all processors.
unsigned ThreadsFor(unsigned asked);

}  // namespace dcsim
