#pragma once

#include <cstdint>
#include <vector>

#include "model/base/units.h"
#include "sim/search/candidate.h"

namespace dcsim {

/// A parameter that may stay gathered: the memory that it then takes for the whole step, and the
/// time of the gathers that a step then does without.
struct KeepItem {
  ParamId param;
  Bytes bytes;
  Duration saved;
};

struct KeepChoice {
  std::vector<ParamId> params;  // ascending
  Bytes bytes;
  Duration saved;
  Duration bound;  // no choice within the budget saves more; equal to `saved` when it is the best
};

/// The parameters to keep so that the most gather time is saved within a budget: a knapsack, by
/// branch and bound over the numbers taken of alike items, most time by byte first. The bound of a
/// branch is the linear relaxation (Dantzig 1957): the next items until the budget is full, and a
/// fraction of the one that does not fit any more.
///
///   most_branches   after so many, the best choice so far and the relaxation's bound are returned
KeepChoice ChooseKept(const std::vector<KeepItem>& items,
                      Bytes budget,
                      std::uint64_t most_branches = 200'000);

/// The items of a problem under some options: gathers of one parameter beyond the first of a step,
/// each as a launch of its own. Parameters gathered once a step anyway save nothing and are left
/// out.
std::vector<KeepItem> FindKeepItems(const SearchProblem& problem, const ScheduleOptions& options);

}  // namespace dcsim
