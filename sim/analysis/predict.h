#pragma once

#include <optional>

#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/ir/profile.h"
#include "model/ir/result.h"
#include "model/ir/schedule.h"
#include "model/ir/timeline.h"
#include "model/machine/cluster.h"
#include "sim/analysis/first_steps.h"
#include "sim/engine/observer.h"
#include "sim/engine/simulate.h"

namespace dcsim {

/// What a prediction starts from. `profile` may be null.
struct PredictionInputs {
  const Graph& graph;
  const Profile* profile;
  const Cluster& cluster;
  double clock_mhz = 0;  // SM clock; 0: that which its power limit leaves a GPU in each schedule
  std::vector<TaskPace> host_pace = {};              // as in SimulationOptions
  std::vector<SegmentPlace> recorded_segments = {};  // as in AllocatorConfig
  FirstSteps first_steps = {};  // how the job begins, and which of its steps count for memory
};

/// The schedule of a plan on this cluster's GPUs: Lower with the profile's footprints and the GPU's
/// workspaces.
Schedule LowerFor(const Plan& plan, const PredictionInputs& inputs);

/// GPU memory that one of the processes holds beside what its allocator of tensors has reserved:
/// context, modules, and NCCL's if there is more than one rank.
Bytes OutsideAllocator(const ScheduleOptions& options, const Cluster& cluster, int ranks);

/// Steps of a prediction: 2 to warm up, 1 measured, the allocator that the plan chooses in the
/// memory that the GPU leaves to it, host costs of the cluster. Throws Error when the GPU leaves
/// nothing, or more than kMaxCapacity.
///
///   clock_mhz   SM clock of the slowest GPU, 0 where nobody knows it. No other is faster than the
///               highest one, so ranks that gathers bring together drift apart no faster than by
///               the difference (docs/design/costs/collectives.md)
SimulationOptions OptionsFor(const ScheduleOptions& options,
                             const Cluster& cluster,
                             int ranks,
                             double clock_mhz = 0);
SimulationOptions OptionsFor(const Schedule& schedule,
                             const Cluster& cluster,
                             double clock_mhz = 0);
/// The same, with the inputs' host and clock.
SimulationOptions OptionsFor(const Schedule& schedule, const PredictionInputs& inputs);

struct Prediction {
  Result result;
  std::optional<Timeline> timeline;  // when asked for: of the measured step, or of the one in which
                                     // the simulation stopped, up to there
  std::optional<Stop> stop;          // where it did not complete
  int micro_steps = 0;               // of PredictPlan: so many were simulated one by one
};

/// MostReserved of a schedule, at these costs; where memory follows time, of a job that begins as
/// the inputs say, for as few steps as a prediction has.
Bytes MostReservedBy(const Schedule& schedule,
                     std::span<const WorkCost> costs,
                     const PredictionInputs& inputs);

/// Simulates a schedule and reports it in the keys of a result. Where memory follows time what is
/// reserved, and active, is that of a job that is simulated from its first step on; elsewhere peaks
/// are those of the steps until the cache no longer changes (SettledMemory). Where the allocator
/// may have to give cache back, so that steps differ, the measured step is the typical one
/// (AtTypicalStep).
///
///   keep_timeline   whether the measured step is kept task by task
///   of_peaks        hears the job from its first step on, up to the one that decides the peak of
///                   what is reserved, or to its stop; nothing if null
///
/// Throws Error when the cluster cannot price a task (EstimateWorks).
Prediction Predict(const Schedule& schedule,
                   const Plan& plan,
                   const PredictionInputs& inputs,
                   bool keep_timeline,
                   Observer* of_peaks = nullptr);

/// Predicts a plan as Predict does its whole schedule, without a timeline. A step of 32 and more
/// micro-steps is simulated from fewer, if these show that the others repeat them. Throws
/// Error where the schedule breaks a rule (RequireCorrect), too.
Prediction PredictPlan(const Plan& plan, const PredictionInputs& inputs);

}  // namespace dcsim
