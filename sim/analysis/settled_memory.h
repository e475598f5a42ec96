#pragma once

#include "model/ir/schedule.h"
#include "sim/analysis/first_steps.h"
#include "sim/memory/allocator_config.h"
#include "sim/memory/allocator_stats.h"

namespace dcsim {

/// Peaks of the allocator's statistics over the steps that count, of a schedule whose memory does
/// not follow time (MemoryFollowsTime): its allocator calls alone are replayed, in memory without
/// end. What one step leaves in the cache decides where the next one's blocks lie, so the cache may
/// still grow behind the steps to warm up (docs/design/memory.md, Later steps). A request that no
/// memory serves ends it: the peaks are those of before.
///
///   config   of the allocator; its capacity does not matter
///   steps    where `measured` is nothing: until a step leaves all blocks where an earlier one that
///            counts left them, since from then on all repeats, or kMostSteps
///   replayed   takes how many steps that were, those to warm up included, if not null
AllocatorStats SettledMemory(const Schedule& schedule,
                             AllocatorConfig config,
                             const FirstSteps& steps,
                             std::uint32_t* replayed = nullptr);

}  // namespace dcsim
