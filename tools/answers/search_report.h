#pragma once

#include <iostream>
#include <optional>
#include <vector>

#include "model/ir/plan.h"
#include "model/ir/profile.h"
#include "model/machine/cluster.h"
#include "sim/analysis/predict.h"
#include "sim/search/search.h"
#include "tools/common/load.h"
#include "tools/views/search_text.h"

namespace dcsim {

/// What the options of a search name, loaded.
struct LoadedSearch {
  Workload workload;
  std::optional<Graph> recorded;  // of a compiled workload: the operators as they were recorded
  std::optional<ProfiledWorkload> layers;  // of a compiled one: FSDP2's form, where it is recorded
  Cluster cluster;
  std::optional<Profile> profile;
  SearchSpace space;
  int ranks = 1;
  std::optional<Plan> baseline;  // of --baseline
  bool lacks_copies = false;     // gathers by copy engines were left out of the space

  PredictionInputs inputs() const {
    return {workload.graph, profile ? &*profile : nullptr, cluster};
  }
};

/// The policy of DeepCompile in the newest release that is modelled.
std::string_view NewestDeepCompile();

/// The plan of one of DeepSpeed's policies for a stage, trained as the space says. Throws Error as
/// Resolve does.
Plan DeepSpeedPlan(const LoadedSearch& loaded, std::string_view policy, int stage);

/// Lowers, verifies and predicts a plan in full. Throws Error as these do.
ReportedPlan ReportPlan(const PredictionInputs& inputs, Plan plan);

/// Of the schedules that a search found best, those that a report shows, predicted each at its own
/// clock, by step time; what is then neither faster nor smaller than another, or would exceed the
/// limit where the driver puts segments in another order, is left out. Their scores must be what
/// simulating every task gives at the clock of the search, to the nanosecond and byte, or a
/// shortcut is wrong.
std::vector<ReportedPlan> ReportFront(const LoadedSearch& loaded,
                                      const SearchProblem& problem,
                                      const std::vector<Scored>& front,
                                      Bytes limit);

/// Bytes that a plan would reserve with expandable segments, in memory without end; none if it has
/// them.
std::optional<Bytes> ReservedIfExpandable(const LoadedSearch& loaded, Plan plan);

/// Adds what the best plan is compared with: the plan of --baseline, or DeepSpeed's own plans of
/// the best plan's stage (where nothing fits, of the stage of what reserves least) and PyTorch's
/// FSDP2. `notes` takes a line where FSDP2 does not train as the space asks, and where the memory
/// of eager steps is a lower bound.
void AddBaselines(const LoadedSearch& loaded,
                  const SearchProblem& problem,
                  SearchReport& report,
                  std::ostream& notes);

/// Adds the DeepSpeed JSON closest to the best plan, and what simulating that file as a plan gives.
void AddDeepSpeed(const LoadedSearch& loaded, SearchReport& report);

}  // namespace dcsim
