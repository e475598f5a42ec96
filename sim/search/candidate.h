#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "sim/analysis/predict.h"

namespace dcsim {

/// One launch of gathers, right before op `position` of its graph's order: the parameters from the
/// end of the launch before it up to `end` (an index into GraphGathers::params). More than one make
/// an NCCL group.
struct GatherLaunch {
  std::uint32_t position = 0;
  std::uint32_t end = 0;

  bool operator==(const GatherLaunch&) const = default;
};

/// GraphPlan::gathers in two flat lists, so that a search can copy and hash thousands a second.
struct GraphGathers {
  std::vector<GatherLaunch> launches;  // by position
  std::vector<ParamId> params;

  bool operator==(const GraphGathers&) const = default;
};

/// The decisions of a plan, compactly: what a search changes. The order of the ops is one of
/// SearchProblem::orders.
struct Candidate {
  ScheduleOptions options;
  std::uint32_t order = 0;
  std::vector<std::uint8_t> persistent;  // by param: 1 when it stays gathered (ZeRO-3)
  std::vector<GraphGathers> gathers;     // by graph (ZeRO-3)

  bool operator==(const Candidate&) const = default;
};

/// The workload, the machines, and what is fixed for a whole search.
struct SearchProblem {
  PredictionInputs inputs;
  int ranks = 1;
  /// Orders that plans may choose from: by order, by graph. The first is the recorded one.
  std::vector<std::vector<std::vector<OpId>>> orders;
};

/// A problem with the recorded order alone. All its schedules are scored at one clock: inputs', or
/// the one at which ops were profiled.
SearchProblem MakeProblem(const PredictionInputs& inputs, int ranks);

/// Index of the plan's order among the problem's, which is added where it is missing.
std::uint32_t AddOrder(SearchProblem& problem, const Plan& plan);

/// The plan as far as a search can change it: gathers where the plan's events have them; waits,
/// releases and reductions at first use, last use and with the gradient.
Plan WithoutEvents(Plan plan);

/// The candidate of a plan without events, whose order must be one of the problem's, and the other
/// way round. PlanOf(problem, MakeCandidate(problem, plan)) is the plan, but for the name of its
/// policy.
Candidate MakeCandidate(const SearchProblem& problem, const Plan& plan, std::uint32_t order);
Plan PlanOf(const SearchProblem& problem, const Candidate& candidate);

/// 128 bits of every decision: equal candidates have equal hashes, and of a million different ones
/// no two are likely (1 in 10^26) to share theirs.
using CandidateHash = std::array<std::uint64_t, 2>;
CandidateHash HashOf(const Candidate& candidate);

/// A parameter that a graph uses: where its gather may be issued, and what it moves.
struct GatherSite {
  ParamId param;
  std::uint32_t first = 0;  // position of the first op that uses it
  Bytes gathered;           // the whole parameter with the padding of equal shards
  bool first_graph = true;  // no earlier graph uses it: a persistent parameter is gathered here
};

/// By graph, the parameters in use, by first use; ties by id.
using GatherSites = std::vector<std::vector<GatherSite>>;
GatherSites FindGatherSites(const SearchProblem& problem, std::uint32_t order);

/// The gather of one site: where it is issued, and whether it shares the launch of the one issued
/// before it at the same position.
struct GatherChoice {
  std::uint32_t position = 0;
  bool joined = false;

  bool operator==(const GatherChoice&) const = default;
};
using GraphChoices = std::vector<GatherChoice>;  // by site

/// The launches that these choices make: by position, at one position by site.
GraphGathers EncodeGathers(const std::vector<GatherSite>& sites, const GraphChoices& choices);

/// The choices that make these launches, as far as choices can: parameters that share a launch come
/// back by site.
GraphChoices DecodeGathers(const std::vector<GatherSite>& sites, const GraphGathers& gathers);

/// Every gather at its use, alone; nothing kept.
Candidate GathersAtUse(const SearchProblem& problem,
                       const ScheduleOptions& options,
                       std::uint32_t order);

}  // namespace dcsim
