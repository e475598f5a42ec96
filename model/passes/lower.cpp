#include "model/passes/lower.h"

#include <algorithm>

#include "model/base/error.h"
#include "model/passes/lower_state.h"
#include "model/passes/resolve.h"

namespace dcsim {
namespace {

/// When things happen in one graph: fixed by the plan's order, the same for every micro-step.
struct GraphEvents {
  std::vector<std::vector<ParamId>> first_uses;  // by position: parameters used from here on
  std::vector<std::vector<ParamId>> last_uses;   // by position: … for the last time
  std::vector<std::vector<StorageId>> dying;     // by position: no op uses them any more
  std::vector<std::vector<const GraphOutput*>> gradients;  // by position: complete after it
  std::vector<const GraphOutput*> early_gradients;         // that no op of this graph makes
};

/// Outputs that the caller keeps: the loss, and those marked as held.
bool IsHeld(const GraphOutput& output) {
  return output.kind == GraphOutputKind::kLoss ||
         (output.kind == GraphOutputKind::kOutput && output.held);
}

std::vector<std::vector<UseSpan>> AllUses(const Plan& plan, const Graph& graph) {
  std::vector<std::vector<UseSpan>> uses;
  for (const GraphPlan& decisions : plan.graphs) {
    uses.push_back(FindUses(graph, decisions.order));
  }
  return uses;
}

/// Storages whose memory something else than the last op decides about.
std::vector<bool> ExemptFromLastUse(const LowerState& state) {
  std::vector<bool> exempt = state.facts.is_constant;
  for (const Param& param : state.graph.params) {
    exempt[state.graph.storage_of(param.value).index()] = true;
  }
  for (const Subgraph& subgraph : state.graph.graphs) {
    for (const GraphOutput& output : subgraph.outputs) {
      if (IsHeld(output)) {
        exempt[state.graph.storage_of(output.value).index()] = true;
      }
    }
  }
  return exempt;
}

void AddGradients(const LowerState& state, std::size_t g, GraphEvents& events) {
  const GraphPlan& decisions = state.plan.graphs[g];
  std::vector<std::size_t> position(state.graph.values.size(), decisions.order.size());
  for (std::size_t i = 0; i < decisions.order.size(); ++i) {
    for (const ValueId output : state.graph.op(decisions.order[i]).outputs) {
      if (!output.is_none()) {
        position[output.index()] = i;
      }
    }
  }
  for (const GraphOutput& output : state.graph.graphs[g].outputs) {
    if (output.kind != GraphOutputKind::kGradient) {
      continue;
    }
    const std::size_t at = position[output.value.index()];
    (at == decisions.order.size() ? events.early_gradients : events.gradients[at])
        .push_back(&output);
  }
}

void AddParamEvents(const LowerState& state,
                    const std::vector<UseSpan>& uses,
                    GraphEvents& events) {
  for (std::size_t i = 0; i < state.graph.params.size(); ++i) {
    const UseSpan& span = uses[state.graph.storage_of(state.graph.params[i].value).index()];
    if (span.used) {
      events.first_uses[span.first].emplace_back(i);
      events.last_uses[span.last].emplace_back(i);
    }
  }
}

/// Storages die after their last use in the last graph that uses them.
std::vector<GraphEvents> PlanEvents(const LowerState& state) {
  const auto uses = AllUses(state.plan, state.graph);
  const auto exempt = ExemptFromLastUse(state);
  std::vector<GraphEvents> all(state.graph.graphs.size());
  for (std::size_t g = 0; g < all.size(); ++g) {
    const std::size_t count = state.plan.graphs[g].order.size();
    all[g].first_uses.resize(count);
    all[g].last_uses.resize(count);
    all[g].dying.resize(count);
    all[g].gradients.resize(count);
    AddGradients(state, g, all[g]);
    if (state.plan.options.stage == 3) {
      AddParamEvents(state, uses[g], all[g]);
    }
  }
  for (std::size_t s = 0; s < state.graph.storages.size(); ++s) {
    for (std::size_t g = all.size(); !exempt[s] && g-- > 0;) {
      if (uses[g][s].used) {
        all[g].dying[uses[g][s].last].emplace_back(s);
        break;
      }
    }
  }
  return all;
}

void AddGatherGroups(LowerState& state,
                     const std::vector<GatherGroup>& groups,
                     std::size_t position,
                     std::size_t& next) {
  while (next < groups.size() && groups[next].position == position) {
    AddGather(state, groups[next]);
    ++next;
  }
}

void AddGraphOps(LowerState& state, std::size_t g, const GraphEvents& events) {
  const GraphPlan& decisions = state.plan.graphs[g];
  std::size_t next_gather = 0;
  for (const GraphOutput* gradient : events.early_gradients) {
    AddReduceGradient(state, *gradient);
  }
  for (std::size_t i = 0; i < decisions.order.size(); ++i) {
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

void AddMicroStep(LowerState& state, const std::vector<GraphEvents>& events) {
  StartMicroStep(state);
  bool in_backward = false;
  for (std::size_t g = 0; g < state.graph.graphs.size(); ++g) {
    const Subgraph& subgraph = state.graph.graphs[g];
    if (subgraph.direction == Direction::kBackward) {
      if (!in_backward && state.plan.options.stage == 1 && state.boundary()) {
        AddGradientPartition(state);
      }
      in_backward = true;
      AddTangents(state, subgraph);
    }
    AddGraphOps(state, g, events[g]);
    if (subgraph.direction == Direction::kBackward) {
      AddEndBackward(state, g == LastOf(state.graph, Direction::kBackward));
    }
    if (g == LastOf(state.graph, Direction::kForward)) {
      AddFreeHeld(state);
    }
  }
  state.has_accumulated_partition = state.plan.options.stage != 1;
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

LowerState::LowerState(const Plan& the_plan, const Graph& the_graph, const Profile* the_profile)
    : plan(the_plan),
      graph(the_graph),
      profile(the_profile),
      facts(AnalyseStep(graph)),
      groups(FlatGroups(graph)),
      group_of(graph.params.size()),
      builder(plan.ranks, plan.options),
      gathered(graph.params.size()),
      is_persistent(graph.params.size()),
      is_valid(graph.params.size()),
      gather_task(graph.params.size()),
      buffer_of(graph.storages.size()),
      holds(graph.storages.size()),
      is_used(graph.storages.size()),
      is_held(graph.storages.size()),
      carried(graph.storages.size()),
      accumulated(graph.params.size()) {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const ParamId id : groups[g].params) {
      group_of[id.index()] = g;
    }
  }
  for (const ParamId id : plan.persistent) {
    is_persistent[id.index()] = true;
  }
  MarkUsed(*this);
  CountSharers(*this);
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
  work.launches = static_cast<std::uint16_t>(launches);
  work.events = static_cast<std::uint16_t>(events);
  work.subject = subject;
  return work;
}

Schedule Lower(const Plan& plan,
               const Graph& graph,
               const Profile* profile,
               const Workspaces& workspaces) {
  const auto faults = FindPlanFaults(plan, graph);
  DCSIM_CHECK(faults.empty()) << faults.front();
  LowerState state(plan, graph, profile);
  AddResidents(state, workspaces);
  AddCarriedBuffers(state);
  const auto events = PlanEvents(state);
  for (int step = 0; step < plan.options.gradient_accumulation_steps; ++step) {
    state.micro_step = static_cast<std::uint16_t>(step);
    AddMicroStep(state, events);
  }
  AddOptimizerStep(state);
  return std::move(state.builder).Build();
}

}  // namespace dcsim
