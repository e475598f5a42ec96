#include <algorithm>

#include "model/passes/lower_state.h"

// What the host does in DeepSpeed 0.19.8's Python around the graphs, as traces of whole steps show
// it (docs/lab/deepspeed.md).

namespace dcsim {
namespace {

void AddHostCalls(LowerState& state, const PythonCalls& calls) {
  if (state.in_deepspeed()) {
    TaskDraft draft = state.Draft(TaskKind::kHostCalls);
    draft.work.python = calls;
    state.builder.Add(draft);
  }
}

}  // namespace

void AddParameterCalls(LowerState& state) {
  if (state.plan.options.stage == 3) {
    AddHostCalls(state, {.operators = static_cast<std::uint32_t>(state.graph.params.size())});
  }
}

void AddGraphCall(LowerState& state) {
  AddHostCalls(state, {.graphs = 1});
}

void AddGradientCalls(LowerState& state) {
  const auto& params = state.graph.params;
  const auto trained = std::count_if(params.begin(), params.end(),
                                     [](const Param& param) { return param.requires_grad; });
  AddHostCalls(state, {.autograd_nodes = static_cast<std::uint32_t>(trained)});
}

void AddThroughputTimer(LowerState& state) {
  if (state.in_deepspeed()) {
    AddDeviceSynchronize(state);
  }
}

}  // namespace dcsim
