#include "model/passes/fsdp_policy.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "model/base/error.h"
#include "model/graph/step_facts.h"
#include "model/passes/check_events.h"
#include "model/passes/fsdp_groups.h"

namespace dcsim {
namespace {

/// A group's ops in one graph: positions [begin, end) of its order.
struct GroupVisit {
  std::size_t group = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Whether a module is `outer` or lies in it.
bool LiesIn(const std::string& module, const std::string& outer) {
  return module == outer || module.starts_with(outer + ".");
}

/// FSDP2 reduces a group in one dtype, and gathers several as bytes, which is not modelled.
void CheckDTypes(const Graph& graph, const std::vector<ParamGroup>& groups) {
  for (const ParamGroup& group : groups) {
    const DType first = graph.dtype(group.params.front());
    for (const ParamId id : group.params) {
      if (graph.dtype(id) != first) {
        throw Error("plan: policy: fsdp needs parameters of one dtype in a group; " +
                    graph.param(group.params.front()).name + " is " +
                    std::string(DTypeName(first)) + ", " + graph.param(id).name + " " +
                    std::string(DTypeName(graph.dtype(id))));
      }
    }
  }
}

/// Which of the events at one position comes first: a group leaves before the next one comes, and
/// the root leaves last.
enum class Turn : std::uint8_t { kLeaves, kComes, kRootLeaves };

/// Decides the events of all graphs of a micro-step, one after the other.
class GroupGatherer {
 public:
  GroupGatherer(const PlanSpec& spec, const Graph& graph)
      : reshard_(spec.fsdp_groups.reshard_after_forward),
        graph_(graph),
        facts_(AnalyseStep(graph)),
        groups_(FindParamGroups(graph, spec.fsdp_groups.wrap)),
        has_root_(!groups_.empty() && groups_.back().module.empty()) {
    for (std::size_t g = 0; g < graph.graphs.size(); ++g) {
      const bool backward = graph.graphs[g].direction == Direction::kBackward;
      (backward ? last_backward_ : last_forward_) = g;
    }
  }

  GraphPlan PlanOf(std::size_t g) {
    const Subgraph& subgraph = graph_.graphs[g];
    GraphPlan plan;
    for (std::size_t i = 0; i < subgraph.op_count; ++i) {
      plan.order.emplace_back(subgraph.first_op + i);
    }
    events_.clear();
    const auto visits = FindVisits(subgraph, plan.order);
    if (subgraph.direction == Direction::kForward) {
      PlanForward(visits, plan.order, g == last_forward_);
    } else {
      PlanBackward(subgraph, visits, g == last_backward_);
    }
    std::stable_sort(events_.begin(), events_.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second.position, a.first) < std::pair(b.second.position, b.first);
    });
    for (auto& [turn, event] : events_) {
      plan.events.push_back(std::move(event));
    }
    return plan;
  }

 private:
  bool IsRoot(std::size_t group) const { return has_root_ && group + 1 == groups_.size(); }

  /// The positions of the ops that use a group's parameters or make their gradients, if any; the
  /// root's takes the whole graph.
  std::optional<GroupVisit> FindVisit(const Subgraph& subgraph,
                                      std::size_t group,
                                      const std::vector<UseSpan>& uses,
                                      const std::vector<std::size_t>& written) const {
    if (IsRoot(group)) {
      return GroupVisit{group, 0, subgraph.op_count};
    }
    GroupVisit visit{group, subgraph.op_count, 0};
    for (const ParamId id : groups_[group].params) {
      const UseSpan& span = uses[graph_.storage_of(graph_.param(id).value).index()];
      if (span.used) {
        visit.begin = std::min(visit.begin, span.first);
        visit.end = std::max(visit.end, span.last + 1);
      }
      if (const GraphOutput* gradient = FindGradient(subgraph, id)) {
        const std::size_t behind =
            std::max<std::size_t>(1, written[graph_.storage_of(gradient->value).index()]);
        visit.begin = std::min(visit.begin, behind - 1);
        visit.end = std::max(visit.end, behind);
      }
    }
    return visit.begin < visit.end ? std::optional(visit) : std::nullopt;
  }

  /// By their begin, the root's first.
  std::vector<GroupVisit> FindVisits(const Subgraph& subgraph,
                                     const std::vector<OpId>& order) const {
    const auto uses = FindUses(graph_, order);
    const auto written = FindWritten(graph_, order);
    std::vector<GroupVisit> visits;
    for (std::size_t i = groups_.size(); i-- > 0;) {
      if (const auto visit = FindVisit(subgraph, i, uses, written)) {
        visits.push_back(*visit);
      }
    }
    std::stable_sort(visits.begin(), visits.end(),
                     [](const GroupVisit& a, const GroupVisit& b) { return a.begin < b.begin; });
    return visits;
  }

  /// In the forward a module's first ops need not use a parameter: the first of them behind the
  /// group before it.
  std::size_t ModuleBegins(const GroupVisit& visit,
                           std::size_t behind,
                           const std::vector<OpId>& order) const {
    for (std::size_t i = std::min(behind, visit.begin); i < visit.begin; ++i) {
      const std::string& module = graph_.modules[graph_.op(order[i]).module];
      if (!facts_.is_view[order[i].index()] && LiesIn(module, groups_[visit.group].module)) {
        return i;
      }
    }
    return visit.begin;
  }

  void Add(GraphEventKind kind, std::size_t position, Turn turn, std::vector<ParamId> params) {
    if (!params.empty()) {
      events_.push_back({turn, {kind, position, std::move(params)}});
    }
  }

  /// Whether the forward lets go of a group. Without a backward it does of all.
  bool Reshards(std::size_t group, bool last) const {
    if (IsRoot(group)) {
      return last && (reshard_ == ReshardAfterForward::kAll || !last_backward_);
    }
    return reshard_ != ReshardAfterForward::kNever || !last_backward_;
  }

  void PlanForward(const std::vector<GroupVisit>& visits,
                   const std::vector<OpId>& order,
                   bool last) {
    std::size_t behind = 0;
    for (const GroupVisit& visit : visits) {
      const std::vector<ParamId>& params = groups_[visit.group].params;
      const bool root = IsRoot(visit.group);
      const std::size_t begin = root ? 0 : ModuleBegins(visit, behind, order);
      Add(GraphEventKind::kGather, begin, Turn::kComes, params);
      Add(GraphEventKind::kWait, begin, Turn::kComes, params);
      if (Reshards(visit.group, last)) {
        Add(GraphEventKind::kRelease, visit.end, root ? Turn::kRootLeaves : Turn::kLeaves, params);
      }
      behind = root ? behind : visit.end;
      left_.push_back(visit.group);
    }
  }

  /// The visits in the order in which the host gathers them: the root's, then the reverse of that
  /// in which the forward has come to the groups.
  std::vector<GroupVisit> InPrefetchOrder(const std::vector<GroupVisit>& visits) const {
    std::vector<GroupVisit> order = visits;
    const auto place = [this](const GroupVisit& visit) {
      return std::pair(!IsRoot(visit.group),
                       std::find(left_.rbegin(), left_.rend(), visit.group) - left_.rbegin());
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](const GroupVisit& a, const GroupVisit& b) { return place(a) < place(b); });
    return order;
  }

  void PlanBackward(const Subgraph& subgraph, const std::vector<GroupVisit>& visits, bool last) {
    const std::vector<GroupVisit> prefetched = InPrefetchOrder(visits);
    std::vector<bool> gathered(groups_.size());
    const auto gather = [&](std::size_t group, std::size_t position) {
      if (!gathered[group]) {
        Add(GraphEventKind::kGather, position, Turn::kComes, groups_[group].params);
        gathered[group] = true;
      }
    };
    for (const GroupVisit& visit : visits) {
      gather(visit.group, visit.begin);
      Add(GraphEventKind::kWait, visit.begin, Turn::kComes, groups_[visit.group].params);
      const auto here =
          std::find_if(prefetched.begin(), prefetched.end(),
                       [&](const GroupVisit& each) { return each.group == visit.group; });
      if (here + 1 != prefetched.end()) {
        gather((here + 1)->group, visit.begin);
      }
      AddLeave(subgraph, visit, last);
    }
    for (std::size_t i = 0; last && i < groups_.size(); ++i) {
      const bool visited = std::any_of(visits.begin(), visits.end(),
                                       [i](const GroupVisit& visit) { return visit.group == i; });
      if (!visited) {
        Add(GraphEventKind::kRelease, subgraph.op_count, Turn::kRootLeaves, groups_[i].params);
      }
    }
  }

  /// What is behind the backward of a group. The root stays until that of the last graph.
  void AddLeave(const Subgraph& subgraph, const GroupVisit& visit, bool last) {
    const bool root = IsRoot(visit.group);
    const Turn turn = root ? Turn::kRootLeaves : Turn::kLeaves;
    const std::vector<ParamId>& params = groups_[visit.group].params;
    std::vector<ParamId> reduced;
    std::copy_if(params.begin(), params.end(), std::back_inserter(reduced),
                 [&](ParamId id) { return FindGradient(subgraph, id) != nullptr; });
    if (last || !root) {
      Add(GraphEventKind::kRelease, visit.end, turn, params);
    }
    Add(GraphEventKind::kReduce, visit.end, turn, std::move(reduced));
  }

  ReshardAfterForward reshard_;
  const Graph& graph_;
  StepFacts facts_;
  std::vector<ParamGroup> groups_;
  bool has_root_;
  std::optional<std::size_t> last_forward_;  // graph
  std::optional<std::size_t> last_backward_;
  std::vector<std::pair<Turn, GraphEvent>> events_;
  std::vector<std::size_t> left_;  // groups by the forward, in this order
};

}  // namespace

Plan ResolveFsdp(const PlanSpec& spec, const Graph& graph, int ranks) {
  CheckDTypes(graph, FindParamGroups(graph, spec.fsdp_groups.wrap));
  Plan plan;
  plan.policy = spec.policy;
  plan.ranks = ranks;
  plan.options = spec.options;
  GroupGatherer gatherer(spec, graph);
  for (std::size_t g = 0; g < graph.graphs.size(); ++g) {
    plan.graphs.push_back(gatherer.PlanOf(g));
  }
  return plan;
}

}  // namespace dcsim
