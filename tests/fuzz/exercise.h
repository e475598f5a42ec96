#pragma once

#include <string_view>

#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/ir/profile.h"
#include "model/machine/cluster.h"

namespace dcsim {

/// What a fuzzer does with input that the readers accept. Each function aborts where a promise is
/// broken, and gives back normally otherwise.

/// The graph that plans, profiles and clusters are fuzzed against: two dtypes, a tied weight, a
/// frozen one, a view, a held output, a break.
const Graph& FuzzGraph();

/// A cluster of 8 GPUs for graphs, plans and profiles.
const Cluster& FuzzCluster();

/// Whether a step is small enough to be lowered and simulated many times a second.
bool IsSmall(const Graph& graph, const ScheduleOptions& options);

/// Lowers, verifies, prices, simulates and prints one step. The schedule must break no rule and not
/// deadlock, and the result must be printable; Error is allowed where the cluster cannot price it.
///
///   profile   or null
void ExerciseStep(const Graph& graph,
                  const Plan& plan,
                  const Profile* profile,
                  const Cluster& cluster);

/// Options for a graph, from the bits of a number.
PlanSpec SpecOf(std::uint64_t bits);

/// Prints and reads a graph again: the text must stay the same.
void ExerciseGraphText(const Graph& graph);

/// The same for a plan.
void ExercisePlanText(const Plan& plan, const Graph& graph);

}  // namespace dcsim
