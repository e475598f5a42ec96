#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/search/folded_program.h"

namespace dcsim {

/// A task of the gather, reduce or copy stream under one plan.
struct PlannedTask {
  std::int64_t issue = 0;  // host time, waits of the host left out
  GpuTask gpu;
  std::uint64_t key = 0;
  Counts needs{};
  std::size_t micro_step = 0;
  std::uint32_t position = 0;  // on its stream, within kMicroStepPeriod; of the whole step
};

/// A wait of the compute stream for a gather.
struct PlannedWait {
  std::uint32_t before = 0;  // the folded compute task behind it
  std::uint32_t gather = 0;  // tasks of the gather stream that must have ended
  std::int64_t issue = 0;
  std::uint64_t key = 0;
};

/// From compute task `compute` on, the host is later than in FoldedTask::issue by `host`.
struct HostShift {
  std::uint32_t compute = 0;
  std::int64_t host = 0;
};

/// What a plan adds to its program.
struct FoldedPlan {
  std::vector<PlannedTask> gather;
  std::vector<PlannedTask> reduce;
  std::vector<PlannedTask> copy;
  std::vector<PlannedWait> waits;
  std::vector<HostShift> shifts;  // by compute
  std::vector<FoldedSync> syncs;  // `reach` with the plan's host times
  std::int64_t host = 0;          // FoldedProgram::host with them
};

/// Puts a candidate's gathers, and the waits for them, into its program, as Lower does.
FoldedPlan LayOut(const SearchProblem& problem,
                  const FoldedProgram& program,
                  const Candidate& candidate);

/// Whether the host of the plan, its gathers and waits included, stays ahead of compute however
/// long it waited for room in the launch queue.
bool StaysAhead(const LaunchRoom& room, const FoldedPlan& plan);

}  // namespace dcsim
