#include "sim/search/candidate.h"

#include <algorithm>
#include <numeric>

#include "model/base/error.h"
#include "model/cost/power.h"
#include "model/graph/sharding.h"
#include "model/graph/step_facts.h"
#include "model/ir/plan_options.h"
#include "model/ir/recorded_order.h"

namespace dcsim {
namespace {

std::vector<std::vector<OpId>> RecordedOrders(const Graph& graph) {
  std::vector<std::vector<OpId>> orders;
  for (const Subgraph& subgraph : graph.graphs) {
    orders.push_back(RecordedOrder(subgraph));
  }
  return orders;
}

std::vector<std::vector<OpId>> OrdersOf(const Plan& plan) {
  std::vector<std::vector<OpId>> orders;
  for (const GraphPlan& decisions : plan.graphs) {
    orders.push_back(decisions.order);
  }
  return orders;
}

/// Two hashes side by side, each of multiply and xor-shift steps (the finaliser of splitmix64).
class Hasher {
 public:
  void Add(std::uint64_t value) {
    hash_[0] = Mix((hash_[0] ^ value) * 0xBF58476D1CE4E5B9U);
    hash_[1] = Mix((hash_[1] + value) * 0x94D049BB133111EBU);
  }
  void Add(const ScheduleOptions& options) {
    for (const PlanOption& option : PlanOptions()) {
      Add(option.bits(options));
    }
  }
  CandidateHash hash() const { return hash_; }

 private:
  static std::uint64_t Mix(std::uint64_t x) { return x ^ (x >> 31) ^ (x >> 47); }
  CandidateHash hash_ = {0x9E3779B97F4A7C15U, 0xCBF29CE484222325U};
};

}  // namespace

SearchProblem MakeProblem(const PredictionInputs& inputs, int ranks) {
  SearchProblem problem{inputs, ranks, {RecordedOrders(inputs.graph)}};
  const auto& power = inputs.cluster.gpu.power;
  if (problem.inputs.clock_mhz <= 0 && power) {
    problem.inputs.clock_mhz = ProfiledClock(inputs.profile, *power);
  }
  return problem;
}

std::uint32_t AddOrder(SearchProblem& problem, const Plan& plan) {
  const auto orders = OrdersOf(plan);
  const auto found = std::find(problem.orders.begin(), problem.orders.end(), orders);
  if (found != problem.orders.end()) {
    return static_cast<std::uint32_t>(found - problem.orders.begin());
  }
  problem.orders.push_back(orders);
  return static_cast<std::uint32_t>(problem.orders.size() - 1);
}

Plan WithoutEvents(Plan plan) {
  for (GraphPlan& decisions : plan.graphs) {
    for (const GraphEvent& event : decisions.events) {
      if (event.kind == GraphEventKind::kGather) {
        decisions.gathers.push_back({event.position, event.params});
      }
    }
    decisions.events.clear();
  }
  return plan;
}

Candidate MakeCandidate(const SearchProblem& problem, const Plan& plan, std::uint32_t order) {
  DCSIM_CHECK(problem.orders[order] == OrdersOf(plan)) << "the plan has another order";
  Candidate candidate;
  candidate.options = plan.options;
  candidate.order = order;
  candidate.persistent.resize(problem.inputs.graph.params.size());
  for (const ParamId id : plan.persistent) {
    candidate.persistent[id.index()] = 1;
  }
  for (const GraphPlan& decisions : plan.graphs) {
    DCSIM_CHECK(decisions.events.empty()) << "the plan has events";
    GraphGathers gathers;
    for (const GatherGroup& group : decisions.gathers) {
      gathers.params.insert(gathers.params.end(), group.params.begin(), group.params.end());
      gathers.launches.push_back({static_cast<std::uint32_t>(group.position),
                                  static_cast<std::uint32_t>(gathers.params.size())});
    }
    candidate.gathers.push_back(std::move(gathers));
  }
  return candidate;
}

Plan PlanOf(const SearchProblem& problem, const Candidate& candidate) {
  Plan plan;
  plan.policy = "search";
  plan.ranks = problem.ranks;
  plan.options = candidate.options;
  for (std::size_t i = 0; i < candidate.persistent.size(); ++i) {
    if (candidate.persistent[i] != 0) {
      plan.persistent.emplace_back(i);
    }
  }
  for (std::size_t g = 0; g < candidate.gathers.size(); ++g) {
    GraphPlan decisions;
    decisions.order = problem.orders[candidate.order][g];
    const GraphGathers& gathers = candidate.gathers[g];
    std::size_t begin = 0;
    for (const GatherLaunch& launch : gathers.launches) {
      const auto from = gathers.params.begin();
      decisions.gathers.push_back({launch.position,
                                   {from + static_cast<std::ptrdiff_t>(begin),
                                    from + static_cast<std::ptrdiff_t>(launch.end)}});
      begin = launch.end;
    }
    plan.graphs.push_back(std::move(decisions));
  }
  return plan;
}

CandidateHash HashOf(const Candidate& candidate) {
  Hasher hasher;
  hasher.Add(candidate.options);
  hasher.Add(candidate.order);
  std::uint64_t bits = 1;  // a leading one, so that lengths differ too
  for (const std::uint8_t flag : candidate.persistent) {
    bits = bits << 1 | flag;
    if (bits >> 63 != 0) {
      hasher.Add(bits);
      bits = 1;
    }
  }
  hasher.Add(bits);
  for (const GraphGathers& gathers : candidate.gathers) {
    hasher.Add(gathers.launches.size());
    for (const GatherLaunch& launch : gathers.launches) {
      hasher.Add(std::uint64_t{launch.position} << 32 | launch.end);
    }
    for (const ParamId id : gathers.params) {
      hasher.Add(id.index());
    }
  }
  return hasher.hash();
}

GatherSites FindGatherSites(const SearchProblem& problem, std::uint32_t order) {
  const Graph& graph = problem.inputs.graph;
  std::vector<bool> seen(graph.params.size());
  GatherSites sites;
  for (const std::vector<OpId>& ops : problem.orders[order]) {
    const auto uses = FindUses(graph, ops);
    std::vector<GatherSite> of_graph;
    for (std::size_t i = 0; i < graph.params.size(); ++i) {
      const UseSpan& span = uses[graph.storage_of(graph.params[i].value).index()];
      if (span.used) {
        of_graph.push_back({ParamId(i), static_cast<std::uint32_t>(span.first),
                            GatheredBytes(graph, ParamId(i), problem.ranks), !seen[i]});
        seen[i] = true;
      }
    }
    std::stable_sort(of_graph.begin(), of_graph.end(),
                     [](const GatherSite& a, const GatherSite& b) { return a.first < b.first; });
    sites.push_back(std::move(of_graph));
  }
  return sites;
}

GraphGathers EncodeGathers(const std::vector<GatherSite>& sites, const GraphChoices& choices) {
  DCSIM_CHECK(sites.size() == choices.size());
  std::vector<std::uint32_t> order(sites.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&choices](std::uint32_t a, std::uint32_t b) {
    return choices[a].position < choices[b].position;
  });
  GraphGathers gathers;
  gathers.params.reserve(sites.size());
  gathers.launches.reserve(sites.size());
  for (const std::uint32_t i : order) {
    gathers.params.push_back(sites[i].param);
    const auto end = static_cast<std::uint32_t>(gathers.params.size());
    const bool same =
        !gathers.launches.empty() && gathers.launches.back().position == choices[i].position;
    if (same && choices[i].joined) {
      gathers.launches.back().end = end;
    } else {
      gathers.launches.push_back({choices[i].position, end});
    }
  }
  return gathers;
}

GraphChoices DecodeGathers(const std::vector<GatherSite>& sites, const GraphGathers& gathers) {
  std::size_t params = 0;
  for (const GatherSite& site : sites) {
    params = std::max(params, site.param.index() + 1);
  }
  std::vector<std::uint32_t> site_of(params);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    site_of[sites[i].param.index()] = static_cast<std::uint32_t>(i);
  }
  GraphChoices choices(sites.size());
  std::size_t begin = 0;
  for (const GatherLaunch& launch : gathers.launches) {
    std::uint32_t first = UINT32_MAX;
    for (std::size_t i = begin; i < launch.end; ++i) {
      const std::uint32_t site = site_of[gathers.params[i].index()];
      choices[site] = {launch.position, true};
      first = std::min(first, site);
    }
    if (begin < launch.end) {
      choices[first].joined = false;
    }
    begin = launch.end;
  }
  return choices;
}

Candidate GathersAtUse(const SearchProblem& problem,
                       const ScheduleOptions& options,
                       std::uint32_t order) {
  Candidate base;
  base.options = options;
  base.order = order;
  base.persistent.resize(problem.inputs.graph.params.size());
  for (const auto& sites : FindGatherSites(problem, order)) {
    GraphChoices choices;
    for (const GatherSite& site : sites) {
      choices.push_back({site.first, false});
    }
    base.gathers.push_back(EncodeGathers(sites, choices));
  }
  return base;
}

}  // namespace dcsim
