#include "model/passes/plain_policy.h"

#include <algorithm>

#include "model/base/error.h"
#include "model/base/text.h"
#include "model/graph/step_facts.h"

namespace dcsim {
namespace {

/// Whether `name` matches a pattern in which '*' stands for any run of characters. On a mismatch
/// the last '*' takes one character more, so time is at most the product of both lengths.
bool Matches(std::string_view name, std::string_view pattern) {
  std::size_t at = 0;
  std::size_t in_pattern = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_at = 0;
  while (at < name.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      star_at = at;
    } else if (in_pattern < pattern.size() && pattern[in_pattern] == name[at]) {
      ++in_pattern;
      ++at;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;
      at = ++star_at;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', in_pattern) == std::string_view::npos;
}

std::vector<std::string_view> ParamNames(const Graph& graph) {
  std::vector<std::string_view> names;
  for (const Param& param : graph.params) {
    names.push_back(param.name);
  }
  return names;
}

std::vector<ParamId> FindPersistent(const KeepGathered& keep, const Graph& graph) {
  std::vector<bool> kept(graph.params.size(), keep.all);
  for (const std::string& pattern : keep.patterns) {
    bool any = false;
    for (std::size_t i = 0; i < graph.params.size(); ++i) {
      const bool matches = Matches(graph.params[i].name, pattern);
      kept[i] = kept[i] || matches;
      any = any || matches;
    }
    if (!any) {
      throw Error("keep_gathered: no parameter matches '" + pattern + "'" +
                  DidYouMean(pattern, ParamNames(graph)));
    }
  }
  std::vector<ParamId> persistent;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) {
      persistent.emplace_back(i);
    }
  }
  return persistent;
}

/// Parameters in use, by first use; ties by id.
std::vector<std::pair<std::size_t, ParamId>> ParamsByFirstUse(const Graph& graph,
                                                              const std::vector<OpId>& order) {
  const auto uses = FindUses(graph, order);
  std::vector<std::pair<std::size_t, ParamId>> params;
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    const UseSpan& span = uses[graph.storage_of(graph.params[i].value).index()];
    if (span.used) {
      params.emplace_back(span.first, ParamId(i));
    }
  }
  std::sort(params.begin(), params.end());
  return params;
}

std::vector<GatherGroup> GathersAhead(const Graph& graph,
                                      const std::vector<OpId>& order,
                                      std::int64_t ahead) {
  const auto params = ParamsByFirstUse(graph, order);
  std::vector<GatherGroup> gathers;
  for (std::size_t i = 0; i < params.size(); ++i) {
    const auto distance = static_cast<std::size_t>(ahead);
    const std::size_t position = i >= distance ? params[i - distance].first : 0;
    gathers.push_back({position, {params[i].second}});
  }
  return gathers;
}

}  // namespace

Plan ResolvePlain(const PlanSpec& spec, const Graph& graph, int ranks) {
  Plan plan;
  plan.policy = spec.policy;
  plan.ranks = ranks;
  plan.options = spec.options;
  plan.persistent = FindPersistent(spec.keep_gathered, graph);
  for (const Subgraph& subgraph : graph.graphs) {
    GraphPlan decisions;
    for (std::size_t i = 0; i < subgraph.op_count; ++i) {
      decisions.order.emplace_back(subgraph.first_op + i);
    }
    if (spec.options.stage == 3) {
      decisions.gathers = GathersAhead(graph, decisions.order, spec.gather_ahead);
    }
    plan.graphs.push_back(std::move(decisions));
  }
  return plan;
}

}  // namespace dcsim
