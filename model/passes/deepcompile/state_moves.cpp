#include "model/passes/deepcompile/state_moves.h"

#include <algorithm>

#include "model/passes/deepcompile/memory_profile.h"
#include "model/passes/pass_list.h"

namespace dcsim {
namespace {

std::vector<Bytes> SizesOf(const std::vector<StateSize>& states) {
  std::vector<Bytes> sizes;
  sizes.reserve(states.size());
  for (const StateSize& state : states) {
    sizes.push_back(state.bytes);
  }
  return sizes;
}

PassNodeKind KindOf(const PassGraph& nodes, const PassStep& step) {
  return step.gathers.empty() ? nodes.nodes[step.node].kind : PassNodeKind::kGather;
}

std::vector<StepPeak> StepPeaks(const PassGraph& nodes,
                                const std::vector<PassStep>& steps,
                                const std::vector<Bytes>& peaks) {
  std::vector<StepPeak> all;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    all.push_back({KindOf(nodes, steps[i]), peaks[i]});
  }
  return all;
}

/// By step: ops up to it, itself included.
std::vector<std::size_t> PositionsBehind(const PassGraph& nodes,
                                         const std::vector<PassStep>& steps) {
  std::vector<std::size_t> positions;
  std::size_t ops = 0;
  for (const PassStep& step : steps) {
    ops += KindOf(nodes, step) == PassNodeKind::kOp ? 1U : 0U;
    positions.push_back(ops);
  }
  return positions;
}

}  // namespace

StateMovePlanner::StateMovePlanner(const PlanSpec& spec,
                                   const Graph& graph,
                                   int ranks,
                                   const PolicyInputs& inputs)
    : graph_(graph),
      states_(StatesOf(graph, spec.options, ranks)),
      offload_(SizesOf(states_), inputs.device_memory) {
  const bool trains = std::any_of(
      graph.graphs.begin(), graph.graphs.end(),
      [](const Subgraph& subgraph) { return subgraph.direction == Direction::kBackward; });
  if (trains && inputs.complete() && RunsPass(spec, "offload_adam_states")) {
    pass_ = Pass::kPlanned;
    away_ = BytesOf(0);
  } else if (trains && RunsPass(spec, "offload_adam_states_sync")) {
    pass_ = Pass::kSync;
  }
}

/// Of the states behind the first ones, as the allocator counts them.
Bytes StateMovePlanner::BytesOf(std::size_t first_state) const {
  Bytes total;
  for (std::size_t i = first_state; i < states_.size(); ++i) {
    total += InBlocks(states_[i].bytes);
  }
  return total;
}

std::size_t StateMovePlanner::LastBackward() const {
  std::size_t last = 0;
  for (std::size_t g = 0; g < graph_.graphs.size(); ++g) {
    last = graph_.graphs[g].direction == Direction::kBackward ? g : last;
  }
  return last;
}

std::vector<StateMove> StateMovePlanner::PlanSync(std::size_t g) {
  const bool last = g == LastBackward();
  if (g != 0 && !last) {
    return {};
  }
  std::vector<OptimizerState> states;  // moments first, then all master weights
  for (const bool masters : {false, true}) {
    for (const StateSize& each : states_) {
      if ((each.state.tensor == OptimizerTensor::kMaster) == masters) {
        states.push_back(each.state);
      }
    }
  }
  away_ = BytesOf(0);
  const std::size_t position = last ? graph_.graphs[g].op_count + 1 : 0;
  return {{last ? StateMoveKind::kReload : StateMoveKind::kOffload, position, states},
          {StateMoveKind::kSynchronizeDevice, position, {}}};
}

std::vector<StateMove> StateMovePlanner::Plan(std::size_t g,
                                              const PassGraph& nodes,
                                              const std::vector<PassStep>& steps,
                                              const std::vector<Bytes>& peaks) {
  if (pass_ != Pass::kPlanned) {
    return pass_ == Pass::kSync ? PlanSync(g) : std::vector<StateMove>();
  }
  const auto step_peaks = StepPeaks(nodes, steps, peaks);
  std::vector<StateMove> moves;
  if (graph_.graphs[g].direction == Direction::kForward) {
    for (const std::size_t state : offload_.Forward(step_peaks)) {
      moves.push_back({StateMoveKind::kOffload, 0, {states_[state].state}});
      ++leaving_;
    }
    away_ = BytesOf(0) - BytesOf(leaving_);
    return moves;
  }
  const std::size_t end = graph_.graphs[g].op_count + 1;
  const bool last = g == LastBackward();
  const auto positions = PositionsBehind(nodes, steps);
  for (const ReloadPlace& place : offload_.Backward(step_peaks, last)) {
    const std::size_t position = place.step == steps.size() ? end : positions[place.step];
    moves.push_back({StateMoveKind::kReload, position, {states_[place.state].state}});
  }
  if (last && leaving_ > 0) {
    moves.push_back({StateMoveKind::kSynchronize, end, {}});
  }
  return moves;
}

}  // namespace dcsim
