#include "model/passes/gather_passes.h"

#include <algorithm>
#include <functional>
#include <map>

#include "model/base/error.h"
#include "model/base/scaled.h"
#include "model/base/text.h"
#include "model/graph/sharding.h"
#include "model/graph/step_facts.h"
#include "model/passes/deepcompile/prefetch.h"

namespace dcsim {
namespace {

/// A launch, and the position at which it has to be issued at the latest.
struct Launch {
  std::vector<ParamId> params;
  std::size_t position = 0;
  std::size_t latest = 0;
};

/// By parameter: where compute waits for its gather; the first use where events do not say.
std::vector<std::size_t> WaitsOf(const Graph& graph, const GraphPlan& decisions) {
  const auto uses = FindUses(graph, decisions.order);
  std::vector<std::size_t> waits;
  for (const Param& param : graph.params) {
    waits.push_back(uses[graph.storage_of(param.value).index()].first);
  }
  for (const GraphEvent& event : decisions.events) {
    for (const ParamId id : event.params) {
      if (event.kind == GraphEventKind::kWait) {
        waits[id.index()] = event.position;
      }
    }
  }
  return waits;
}

/// A graph's launches, by the position of their waits; those of one position as they were issued.
std::vector<Launch> LaunchesOf(const Graph& graph, const GraphPlan& decisions) {
  const auto waits = WaitsOf(graph, decisions);
  std::vector<Launch> launches;
  const auto add = [&](std::size_t position, const std::vector<ParamId>& params) {
    std::size_t latest = decisions.order.size();
    for (const ParamId id : params) {
      latest = std::min(latest, waits[id.index()]);
    }
    launches.push_back({params, position, latest});
  };
  for (const GatherGroup& group : decisions.gathers) {
    add(group.position, group.params);
  }
  for (const GraphEvent& event : decisions.events) {
    if (event.kind == GraphEventKind::kGather) {
      add(event.position, event.params);
    }
  }
  std::stable_sort(launches.begin(), launches.end(),
                   [](const Launch& a, const Launch& b) { return a.latest < b.latest; });
  return launches;
}

/// Puts launches where they say, in front of other events of their positions; of one position, in
/// their order.
void SetLaunches(std::vector<Launch> launches, GraphPlan& decisions) {
  std::stable_sort(launches.begin(), launches.end(),
                   [](const Launch& a, const Launch& b) { return a.position < b.position; });
  if (decisions.events.empty()) {
    decisions.gathers.clear();
    for (Launch& launch : launches) {
      decisions.gathers.push_back({launch.position, std::move(launch.params)});
    }
    return;
  }
  std::vector<GraphEvent> events;
  events.reserve(launches.size() + decisions.events.size());
  for (Launch& launch : launches) {
    events.push_back({GraphEventKind::kGather, launch.position, std::move(launch.params)});
  }
  for (const GraphEvent& event : decisions.events) {
    if (event.kind != GraphEventKind::kGather) {
      events.push_back(event);
    }
  }
  std::stable_sort(events.begin(), events.end(), [](const GraphEvent& a, const GraphEvent& b) {
    return a.position < b.position;
  });
  decisions.events = std::move(events);
}

Bytes PayloadOf(const Graph& graph, const Launch& launch, int ranks) {
  Bytes bytes;
  for (const ParamId id : launch.params) {
    bytes += GatheredBytes(graph, id, ranks);
  }
  return bytes;
}

/// By position: when the op there starts, if compute never waits; and when the last one ends.
std::vector<Duration> StartsOf(const std::vector<OpId>& order, const PolicyInputs& inputs) {
  std::vector<Duration> starts = {Duration()};
  for (const OpId id : order) {
    starts.push_back(starts.back() + inputs.op_times[id.index()]);
  }
  return starts;
}

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

}  // namespace

void GatherAhead(const Graph& graph, std::int64_t ahead, Plan& plan) {
  const auto distance = static_cast<std::size_t>(ahead);
  for (GraphPlan& decisions : plan.graphs) {
    auto launches = LaunchesOf(graph, decisions);
    for (std::size_t i = 0; i < launches.size(); ++i) {
      launches[i].position = i >= distance ? launches[i - distance].latest : 0;
    }
    SetLaunches(std::move(launches), decisions);
  }
}

void OverlapGathers(const Graph& graph, int ranks, const PolicyInputs& inputs, Plan& plan) {
  if (!inputs.complete()) {
    return;
  }
  const GatherPredictor predictor = PredictorOf(inputs.gather_times);
  for (GraphPlan& decisions : plan.graphs) {
    auto launches = LaunchesOf(graph, decisions);
    const auto starts = StartsOf(decisions.order, inputs);
    Duration free = starts.back();  // the communicator, from here to the end
    for (std::size_t i = launches.size(); i-- > 0;) {
      Launch& launch = launches[i];
      const double seconds = predictor(PayloadOf(graph, launch, ranks).count());
      const Duration time = WholeNs(seconds * 1e9);
      free = std::min(free, starts[launch.latest]) - time;
      const auto behind = std::upper_bound(starts.begin(), starts.end(), free);
      const auto position = behind == starts.begin() ? 0 : behind - starts.begin() - 1;
      launch.position = std::min(static_cast<std::size_t>(position), launch.latest);
    }
    SetLaunches(std::move(launches), decisions);
  }
}

void FuseGathers(const Graph& graph, int ranks, Bytes most, Plan& plan) {
  for (GraphPlan& decisions : plan.graphs) {
    auto launches = LaunchesOf(graph, decisions);
    std::stable_sort(launches.begin(), launches.end(),
                     [](const Launch& a, const Launch& b) { return a.position < b.position; });
    std::vector<Launch> fused;
    Bytes bytes;  // of the last one
    for (const Launch& launch : launches) {
      const Bytes more = PayloadOf(graph, launch, ranks);
      if (!fused.empty() && bytes + more <= most) {
        auto& params = fused.back().params;
        params.insert(params.end(), launch.params.begin(), launch.params.end());
        bytes += more;
      } else {
        fused.push_back(launch);
        bytes = more;
      }
    }
    SetLaunches(std::move(fused), decisions);
  }
}

std::vector<bool> MatchingParams(const Graph& graph,
                                 const std::string& pattern,
                                 const std::string& where) {
  std::vector<bool> matching;
  for (const Param& param : graph.params) {
    matching.push_back(Matches(param.name, pattern));
  }
  if (std::find(matching.begin(), matching.end(), true) == matching.end()) {
    throw Error(where + ": no parameter matches '" + pattern + "'" +
                DidYouMean(pattern, ParamNames(graph)));
  }
  return matching;
}

void KeepParameters(const Graph& graph, const KeepGathered& keep, Plan& plan) {
  std::vector<bool> kept(graph.params.size(), keep.all);
  for (const std::string& pattern : keep.patterns) {
    const std::vector<bool> matching = MatchingParams(graph, pattern, "keep_gathered");
    std::transform(kept.begin(), kept.end(), matching.begin(), kept.begin(), std::logical_or<>());
  }
  plan.persistent.clear();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) {
      plan.persistent.emplace_back(i);
    }
  }
}

}  // namespace dcsim
