#include <algorithm>
#include <set>
#include <string_view>

#include "model/passes/lower_state.h"

// What the host does in DeepSpeed 0.19.8's Python around the graphs, as traces of whole steps show
// it (docs/lab/deepspeed.md).

namespace dcsim {
namespace {

void AddCalls(LowerState& state, const PythonCalls& calls) {
  TaskDraft draft = state.Draft(TaskKind::kHostCalls);
  draft.work.python = calls;
  state.builder.Add(draft);
}

void AddHostCalls(LowerState& state, const PythonCalls& calls) {
  if (state.in_deepspeed()) {
    AddCalls(state, calls);
  }
}

/// The module at a path and those around it that are not in `entered` yet, which get there.
std::uint32_t EnterModules(std::string_view path, std::set<std::string_view>& entered) {
  std::uint32_t count = 0;
  while (entered.insert(path).second) {
    ++count;
    const std::size_t dot = path.rfind('.');
    path = path.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  return count;
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

std::vector<std::uint32_t> FindHookedModules(const Plan& plan, const Graph& graph) {
  if (plan.options.stage != 3 || plan.options.module_hooks == ModuleHooks::kNone) {
    return {};
  }
  std::vector<std::uint32_t> hooked(graph.ops.size());
  for (std::size_t g = 0; g < graph.graphs.size(); ++g) {
    std::set<std::string_view> entered;
    for (const OpId op : plan.graphs[g].order) {
      hooked[op.index()] = EnterModules(graph.modules[graph.op(op).module], entered);
    }
  }
  return hooked;
}

void AddModuleHooks(LowerState& state, const std::vector<OpId>& order, std::size_t at) {
  if (state.hooked_modules.empty() || at == order.size()) {
    return;
  }
  const std::uint32_t modules = state.hooked_modules[order[at].index()];
  if (modules > 0) {
    AddCalls(state, {.modules = modules});
  }
}

void AddThroughputTimer(LowerState& state) {
  if (state.in_deepspeed()) {
    AddDeviceSynchronize(state);
  }
}

}  // namespace dcsim
