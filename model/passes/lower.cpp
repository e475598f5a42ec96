#include "model/passes/lower.h"

#include <algorithm>
#include <optional>

#include "model/base/error.h"
#include "model/graph/fused_casts.h"
#include "model/passes/check_events.h"
#include "model/passes/graph_moments.h"
#include "model/passes/lower_state.h"
#include "model/passes/resolve.h"

namespace dcsim {
namespace {

void AddGatherGroups(LowerState& state,
                     const std::vector<GatherGroup>& groups,
                     std::size_t position,
                     std::size_t& next) {
  while (next < groups.size() && groups[next].position == position) {
    AddGather(state, groups[next]);
    ++next;
  }
}

void AddEvent(LowerState& state, const GraphEvent& event, const Subgraph& subgraph) {
  if (state.in_fsdp()) {
    return AddGroupEvent(state, event, subgraph);
  }
  if (event.kind == GraphEventKind::kGather) {
    return AddGather(state, {event.position, event.params});
  }
  if (event.kind >= GraphEventKind::kOffloadActivation) {
    return AddActivationEvent(state, event);
  }
  for (const ParamId param : event.params) {
    if (event.kind == GraphEventKind::kWait) {
      AddWaitForGather(state, param);
    } else if (event.kind == GraphEventKind::kRelease) {
      AddRelease(state, param);
    } else if (event.kind == GraphEventKind::kReloadShard) {
      AddReloadShard(state, param);
    } else {
      AddReduceGradient(state, *FindGradient(subgraph, param));
    }
  }
}

/// What happens to optimizer states before position `end`, from `next` on.
void AddStateMoves(LowerState& state, std::size_t g, std::size_t end, std::size_t& next) {
  const auto& moves = state.plan.graphs[g].state_moves;
  for (; next < moves.size() && moves[next].position < end; ++next) {
    AddStateMove(state, moves[next]);
  }
}

/// A graph whose plan says when everything happens.
void AddPlannedOps(LowerState& state, std::size_t g, const GraphMoments& events) {
  const GraphPlan& decisions = state.plan.graphs[g];
  auto event = decisions.events.begin();
  std::size_t next_move = 0;
  for (std::size_t i = 0; i <= decisions.order.size(); ++i) {
    AddStateMoves(state, g, i + 1, next_move);
    AddModuleHooks(state, decisions.order, i);
    for (; event != decisions.events.end() && event->position == i; ++event) {
      AddEvent(state, *event, state.graph.graphs[g]);
    }
    if (i < decisions.order.size()) {
      AddOp(state, decisions.order[i], events.dying[i]);
    }
  }
}

void AddGraphOps(LowerState& state, std::size_t g, const GraphMoments& events) {
  const GraphPlan& decisions = state.plan.graphs[g];
  if (!decisions.events.empty()) {
    return AddPlannedOps(state, g, events);
  }
  std::size_t next_gather = 0;
  std::size_t next_move = 0;
  for (const GraphOutput* gradient : events.early_gradients) {
    AddReduceGradient(state, *gradient);
  }
  for (std::size_t i = 0; i < decisions.order.size(); ++i) {
    AddStateMoves(state, g, i + 1, next_move);
    AddModuleHooks(state, decisions.order, i);
    AddGatherGroups(state, decisions.gathers, i, next_gather);
    for (const ParamId param : events.first_uses[i]) {
      AddWaitForGather(state, param);
    }
    AddOp(state, decisions.order[i], events.dying[i]);
    for (const ParamId param : events.last_uses[i]) {
      AddRelease(state, param);
    }
    for (const GraphOutput* gradient : events.gradients[i]) {
      AddReduceGradient(state, *gradient);
    }
  }
  AddStateMoves(state, g, decisions.order.size() + 1, next_move);
}

/// What happens to optimizer states behind a graph's end.
void AddLateStateMoves(LowerState& state, std::size_t g) {
  const GraphPlan& decisions = state.plan.graphs[g];
  const auto late = [&](const StateMove& move) { return move.position > decisions.order.size(); };
  const auto first = std::find_if(decisions.state_moves.begin(), decisions.state_moves.end(), late);
  auto next = static_cast<std::size_t>(first - decisions.state_moves.begin());
  AddStateMoves(state, g, SIZE_MAX, next);
}

/// The caller lets go of what it held when the next forward has returned.
void AddFreeHeld(LowerState& state) {
  TaskDraft draft = state.Draft(TaskKind::kFree);
  for (const BufferId buffer : state.held_before) {
    draft.Free(buffer);
  }
  state.held_before.clear();
  if (!draft.memory.empty()) {
    state.builder.Add(draft);
  }
}

/// Index of the last graph of a direction: after it, the model's forward has returned, or all
/// gradients are there.
std::size_t LastOf(const Graph& graph, Direction direction) {
  std::size_t last = 0;
  for (std::size_t g = 0; g < graph.graphs.size(); ++g) {
    last = graph.graphs[g].direction == direction ? g : last;
  }
  return last;
}

void StartMicroStep(LowerState& state) {
  for (std::size_t s = 0; s < state.buffer_of.size(); ++s) {
    if (!state.facts.is_constant[s]) {
      state.buffer_of[s] = BufferId::None();
    }
    state.holds[s].reductions = state.holds[s].sharers;
    state.holds[s].ops_done = !state.is_used[s];
  }
  state.held_before = std::move(state.held_now);
  state.held_now.clear();
}

/// The backward graph that runs last among those that make gradients, or nothing.
std::optional<std::size_t> LastReducing(const Graph& graph) {
  std::optional<std::size_t> last;
  for (std::size_t g = 0; g < graph.graphs.size(); ++g) {
    const auto& outputs = graph.graphs[g].outputs;
    const bool reduces = std::any_of(outputs.begin(), outputs.end(), [](const GraphOutput& output) {
      return output.kind == GraphOutputKind::kGradient;
    });
    last = reduces ? g : last;
  }
  return last;
}

/// Whether reduce buffers outlive steps: before PR #8036 always, with it where the backward graph
/// that runs last does not reduce and so never gives them back.
bool KeepsBuckets(const Plan& plan, const Graph& graph) {
  const auto last = LastReducing(graph);
  if (plan.options.gradient_buckets == GradientBuckets::kEager) {
    return false;
  }
  return plan.options.buffer_lifetime == BufferLifetime::kPermanent ||
         (plan.options.buffer_lifetime == BufferLifetime::kPr8036 && last &&
          *last != LastOf(graph, Direction::kBackward));
}

/// A backward graph has been issued. With coalesced reduction, the last one of the step is followed
/// by the whole of it.
void AddEndOfGraph(LowerState& state, std::size_t g) {
  const ScheduleOptions& options = state.plan.options;
  if (state.in_fsdp()) {
    return AddGroupsEnd(state);
  }
  const bool behind = ReducesBehindBackward(options);
  const bool last = g == LastOf(state.graph, Direction::kBackward);
  if (behind && last && state.boundary()) {
    if (!HasResidentPartition(options) && !state.eager()) {
      AddGradientPartition(state);
    }
    AddKeptGradients(state);
  }
  const bool reduces = state.boundary() || !ReducesOnce(options);
  const bool ends_reduction = reduces && (behind ? last : g == LastReducing(state.graph));
  AddEndBackward(state, ends_reduction && !KeepsBuckets(state.plan, state.graph));
  if (last) {
    AddGradientCalls(state);
  }
  AddFreeActivations(state);
}

void AddMicroStep(LowerState& state, const std::vector<GraphMoments>& events) {
  StartMicroStep(state);
  const ScheduleOptions& options = state.plan.options;
  if (state.first_micro_step()) {
    AddParameterCalls(state);
  }
  AddForwardStart(state);
  AddCopyInputs(state);
  const bool makes_partition = !HasResidentPartition(options) && state.boundary() &&
                               !ReducesBehindBackward(options) && !state.eager();
  bool in_backward = false;
  for (std::size_t g = 0; g < state.graph.graphs.size(); ++g) {
    const Subgraph& subgraph = state.graph.graphs[g];
    if (subgraph.direction == Direction::kBackward) {
      if (!in_backward && makes_partition) {
        AddGradientPartition(state);
      }
      in_backward = true;
      AddTangents(state, subgraph);
    }
    AddGraphCall(state);
    AddGraphOps(state, g, events[g]);
    if (subgraph.direction == Direction::kBackward) {
      AddEndOfGraph(state, g);
    }
    AddLateStateMoves(state, g);
    if (g == LastOf(state.graph, Direction::kForward)) {
      AddForwardEnd(state);
      AddFreeHeld(state);
    }
  }
  state.has_accumulated_partition = !ReducesOnce(options);
}

void MarkUsed(LowerState& state) {
  const auto mark = [&state](ValueId value) {
    if (!value.is_none()) {
      state.is_used[state.graph.storage_of(value).index()] = true;
    }
  };
  for (const Op& op : state.graph.ops) {
    std::for_each(op.inputs.begin(), op.inputs.end(), mark);
    std::for_each(op.outputs.begin(), op.outputs.end(), mark);
  }
}

void CountSharers(LowerState& state) {
  for (const Subgraph& subgraph : state.graph.graphs) {
    for (const GraphOutput& output : subgraph.outputs) {
      const StorageId storage = state.graph.storage_of(output.value);
      if (output.kind == GraphOutputKind::kGradient) {
        ++state.holds[storage.index()].sharers;
      }
      const bool resident = state.facts.is_constant[storage.index()] ||
                            !state.facts.param_of[storage.index()].is_none();
      state.is_held[storage.index()] =
          state.is_held[storage.index()] || (IsHeld(output) && !resident);
    }
  }
}

/// Outputs that the caller holds from the last micro-step are freed in the next step, by a task
/// that comes before their own allocation in the list: so their buffers exist from the start.
void AddCarriedBuffers(LowerState& state) {
  for (std::size_t s = 0; s < state.is_held.size(); ++s) {
    const Bytes bytes = state.graph.storages[s].bytes;
    if (!state.is_held[s] || bytes == Bytes(0)) {
      continue;
    }
    Buffer buffer;
    buffer.bytes = bytes;
    buffer.subject = static_cast<std::uint32_t>(s);
    buffer.buffer_class = BufferClass::kHeldOutput;
    buffer.carried = true;
    state.carried[s] = state.builder.AddBuffer(buffer);
    state.held_now.push_back(state.carried[s]);
  }
}

}  // namespace

LowerState::LowerState(const Plan& the_plan,
                       const Graph& the_graph,
                       const Profile* the_profile,
                       const std::map<DType, std::vector<std::int64_t>>& kept)
    : plan(the_plan),
      graph(the_graph),
      ops(the_graph, the_profile, the_plan.options, the_plan.ranks),
      kept_capacities(kept),
      facts(AnalyseStep(graph)),
      layout(graph, plan.options, plan.ranks),
      builder(plan.ranks, plan.options),
      gathered(graph.params.size()),
      is_persistent(graph.params.size()),
      is_valid(graph.params.size()),
      gather_task(graph.params.size()),
      offloaded(layout.groups().size() * kOptimizerTensors),
      shards(graph.params.size()),
      buffer_of(graph.storages.size()),
      holds(graph.storages.size()),
      is_used(graph.storages.size()),
      is_held(graph.storages.size()),
      carried(graph.storages.size()),
      activations(graph.storages.size()),
      accumulated(graph.params.size()) {
  for (const ParamId id : plan.persistent) {
    is_persistent[id.index()] = true;
  }
  MarkUsed(*this);
  CountSharers(*this);
  hooked_modules = FindHookedModules(plan, graph);
}

Work MemoryWork(MemoryPattern pattern,
                Bytes moved,
                std::size_t launches,
                std::size_t events,
                std::uint32_t subject) {
  Work work;
  work.pattern = pattern;
  work.kind = Work::Kind::kMemory;
  work.moved = moved;
  work.launches = static_cast<std::uint32_t>(launches);
  work.events = static_cast<std::uint16_t>(events);
  work.subject = subject;
  return work;
}

namespace {

/// By dtype: elements of each reduce buffer.
using Capacities = std::map<DType, std::vector<std::int64_t>>;

Capacities CapacitiesOf(const LowerState& state) {
  Capacities capacities;
  for (const auto& [dtype, bucket] : state.buckets) {
    for (const ReduceBuffer& buffer : bucket.buffers) {
      capacities[dtype].push_back(buffer.capacity);
    }
  }
  return capacities;
}

void AddSteps(LowerState& state, const Workspaces& workspaces) {
  state.workspaces = workspaces;
  AddResidents(state);
  AddCarriedBuffers(state);
  const auto events = FindMoments(state);
  for (int step = 0; step < state.plan.options.gradient_accumulation_steps; ++step) {
    state.micro_step = static_cast<std::uint16_t>(step);
    AddMicroStep(state, events);
    if (state.boundary()) {
      state.in_fsdp() ? AddShardsUpdate(state) : AddOptimizerStep(state);
    }
    AddThroughputTimer(state);
  }
}

/// Reduce buffers that outlive steps, and with which of them a step begins.
struct KeptBuffers {
  Capacities capacities;
  std::map<DType, std::size_t> current;
};

void BeginWith(LowerState& state, const KeptBuffers& kept) {
  for (const auto& [dtype, index] : kept.current) {
    state.buckets[dtype].current = index;
  }
}

/// What they have grown to when nothing grows any more: a step begins with the buffer at which the
/// one before ended, so that with an odd number of flushes a large gradient finds each of them in
/// turn, with an even one always the same.
KeptBuffers GrownBuffers(const Plan& plan, const Graph& graph) {
  KeptBuffers grown;
  for (int unchanged = 0; unchanged < 2;) {
    LowerState state(plan, graph, nullptr, grown.capacities);
    BeginWith(state, grown);
    AddSteps(state, {});
    const Capacities after = CapacitiesOf(state);
    unchanged = after == grown.capacities ? unchanged + 1 : 0;
    grown.capacities = after;
    for (const auto& [dtype, bucket] : state.buckets) {
      grown.current[dtype] = bucket.current;
    }
  }
  return grown;
}

}  // namespace

Schedule Lower(const Plan& plan,
               const Graph& recorded,
               const Profile* profile,
               const Workspaces& workspaces) {
  const auto faults = FindPlanFaults(plan, recorded);
  DCSIM_CHECK(faults.empty()) << faults.front();
  const PlannedGraph planned(recorded, plan.options);
  const Graph& graph = planned.get();
  const KeptBuffers kept = KeepsBuckets(plan, graph) ? GrownBuffers(plan, graph) : KeptBuffers();
  LowerState state(plan, graph, profile, kept.capacities);
  BeginWith(state, kept);
  AddSteps(state, workspaces);
  return std::move(state.builder).Build();
}

}  // namespace dcsim
