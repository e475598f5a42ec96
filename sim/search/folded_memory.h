#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/memory/allocator_config.h"
#include "sim/search/candidate.h"
#include "sim/search/folded_program.h"

namespace dcsim {

/// Peaks of the measured step.
struct MemoryPeaks {
  Bytes allocated;
  Bytes reserved;

  bool operator==(const MemoryPeaks&) const = default;
};

/// What all ZeRO-3 plans with the same options and order do with memory, apart from gathered
/// parameters. Those come from the gather stream's pool, from which nothing else comes; and pools
/// share nothing but the driver's memory, of which there is enough. So the pools are replayed
/// apart: all others once for a program, the gather stream's for each plan.
struct FoldedMemory {
  /// Bytes allocated in other pools, the most in each stretch of the measured step. Stretch 2j + 1
  /// is op j's own (of all micro-steps and graphs, in order), 2j + 2 what follows up to the next
  /// one, 0 what comes before the first.
  std::vector<std::int64_t> allocated;
  Bytes reserved;  // in other pools, after the measured step
  AllocatorConfig config;
  std::vector<Bytes> gathered;               // by param
  std::vector<DType> dtypes;                 // by param
  std::vector<std::vector<FoldedUse>> uses;  // by graph, by last use, ties by param
  std::vector<std::uint32_t> ops;            // by graph
  int micro_steps = 1;
};

/// Replays the other pools for two steps to warm up and a measured one. Nothing when they ask the
/// driver for memory behind the second step's last host wait, which would take host time.
std::optional<FoldedMemory> FindFoldedMemory(const SearchProblem& problem,
                                             const ScheduleOptions& options,
                                             std::uint32_t order);

/// The peaks of a plan, as Simulate has them with 2 steps to warm up and enough memory, or nothing
/// when its gathers ask the driver for memory in the measured step.
std::optional<MemoryPeaks> FindFoldedPeaks(const FoldedMemory& memory, const Candidate& candidate);

}  // namespace dcsim
