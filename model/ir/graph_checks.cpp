#include "model/ir/graph_checks.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "model/ir/graph_names.h"
#include "model/ir/op_checks.h"
#include "model/ir/operator_schema.h"
#include "model/ir/stand_in.h"

namespace dcsim {
namespace {

/// One past the last byte of its storage that a view touches; the largest integer when that does
/// not fit one.
std::int64_t BytesReached(const Value& value) {
  std::int64_t last = value.offset;
  bool overflow = false;
  for (std::size_t i = 0; i < value.shape.size(); ++i) {
    if (value.shape[i] == 0) {
      return 0;
    }
    std::int64_t step = 0;
    overflow |= __builtin_mul_overflow(value.shape[i] - 1, value.strides[i], &step);
    overflow |= __builtin_add_overflow(last, step, &last);
  }
  overflow |= __builtin_add_overflow(last, 1, &last);
  overflow |= __builtin_mul_overflow(last, ElementBytes(value.dtype), &last);
  return overflow ? std::numeric_limits<std::int64_t>::max() : last;
}

void CheckViews(CheckState& state, const Path& root) {
  const Path values(root, "values");
  for (std::size_t i = 0; i < state.graph.values.size(); ++i) {
    const Value& value = state.graph.values[i];
    const std::int64_t reached = BytesReached(value);
    const std::int64_t room = state.graph.storage(value.storage).bytes.count();
    if (reached > room) {
      state.faults.Add(Path(values, i), "the view reaches byte " + std::to_string(reached) +
                                            " of a storage of " + std::to_string(room) + " bytes");
    }
  }
}

/// Parameters, buffers and inputs exist before the step; each has a value of its own.
void CheckResidents(CheckState& state, const Path& root) {
  const auto produce = [&state](const Path& list, std::size_t i, ValueId id, GraphInputKind kind) {
    if (state.Exists(id)) {
      state.faults.Add(Path(list, i), state.Name(id) + " stands for two residents");
    }
    state.Produce(id);
    state.resident_kind[id.index()] = kind;
    state.is_resident[state.graph.storage_of(id).index()] = 1;
  };
  const Path params(root, "params");
  for (std::size_t i = 0; i < state.graph.params.size(); ++i) {
    const Param& param = state.graph.params[i];
    produce(params, i, param.value, GraphInputKind::kParam);
    if (state.graph.value(param.value).numel() == 0) {
      state.faults.Add(Path(params, i), "the parameter " + param.name + " has no elements");
    }
  }
  const Path buffers(root, "buffers");
  for (std::size_t i = 0; i < state.graph.buffers.size(); ++i) {
    const ConstantBuffer& buffer = state.graph.buffers[i];
    produce(buffers, i, buffer.value, GraphInputKind::kBuffer);
    const std::int64_t expected = state.graph.value(buffer.value).bytes().count();
    if (!buffer.data.empty() && static_cast<std::int64_t>(buffer.data.size()) != expected) {
      state.faults.Add(Path(buffers, i), "data holds " + std::to_string(buffer.data.size()) +
                                             " bytes, expected " + std::to_string(expected));
    }
  }
  const Path inputs(root, "inputs");
  for (std::size_t i = 0; i < state.graph.inputs.size(); ++i) {
    produce(inputs, i, state.graph.inputs[i].value, GraphInputKind::kInput);
  }
}

bool HasOutput(const Subgraph& subgraph, GraphOutputKind kind, ValueId value) {
  for (const GraphOutput& output : subgraph.outputs) {
    if (output.kind == kind && output.value == value) {
      return true;
    }
  }
  return false;
}

/// Whether the caller gets a value from a forward graph and so may have a gradient for it.
bool IsReturned(const Subgraph& subgraph, ValueId value) {
  return HasOutput(subgraph, GraphOutputKind::kLoss, value) ||
         HasOutput(subgraph, GraphOutputKind::kOutput, value);
}

bool AnyEarlierOutput(const CheckState& state, std::size_t before, ValueId value) {
  for (std::size_t g = 0; g < before; ++g) {
    const Subgraph& subgraph = state.graph.graphs[g];
    const auto kind = subgraph.direction == Direction::kForward ? GraphOutputKind::kOutput
                                                                : GraphOutputKind::kTangent;
    if (HasOutput(subgraph, kind, value)) {
      return true;
    }
  }
  return false;
}

/// A tangent is new, and so is its memory.
std::optional<std::string> TangentFault(CheckState& state,
                                        const Subgraph& subgraph,
                                        const GraphInput& input) {
  const bool known = !subgraph.forward.is_none() && !state.Exists(input.value) &&
                     IsReturned(state.graph.graphs[subgraph.forward.index()], input.of);
  if (!known) {
    return "a tangent must be a new value, 'of' an output of this graph's forward graph";
  }
  const bool aliases = state.storage_exists[state.graph.storage_of(input.value).index()] != 0;
  state.Produce(input.value);
  return aliases ? std::optional(state.Name(input.value) +
                                 " is a tangent and lies in a storage that exists already")
                 : std::nullopt;
}

/// What is wrong with one input of graph `g`, or nothing.
std::optional<std::string> InputFault(CheckState& state, std::size_t g, const GraphInput& input) {
  const Subgraph& subgraph = state.graph.graphs[g];
  switch (input.kind) {
    case GraphInputKind::kParam:
    case GraphInputKind::kBuffer:
    case GraphInputKind::kInput:
      return state.resident_kind[input.value.index()] == input.kind
                 ? std::nullopt
                 : std::optional(
                       state.Name(input.value) + " is no " +
                       std::string(kGraphInputKindNames[static_cast<std::size_t>(input.kind)]));
    case GraphInputKind::kSaved:
      if (subgraph.forward.is_none() || !HasOutput(state.graph.graphs[subgraph.forward.index()],
                                                   GraphOutputKind::kSaved, input.value)) {
        return state.Name(input.value) + " is no saved output of this graph's forward graph";
      }
      return std::nullopt;
    case GraphInputKind::kTangent:
      return TangentFault(state, subgraph, input);
    case GraphInputKind::kActivation:
      return AnyEarlierOutput(state, g, input.value)
                 ? std::nullopt
                 : std::optional(state.Name(input.value) + " is no output of an earlier graph");
  }
  return std::nullopt;
}

void CheckInputs(CheckState& state, std::size_t g, const Path& path) {
  const Path inputs(path, "inputs");
  state.in_graph.assign(state.graph.values.size(), 0);
  for (std::size_t i = 0; i < state.graph.graphs[g].inputs.size(); ++i) {
    const GraphInput& input = state.graph.graphs[g].inputs[i];
    if (state.in_graph[input.value.index()]++ != 0) {
      state.faults.Add(Path(inputs, i), state.Name(input.value) + " is listed twice");
      continue;
    }
    if (const auto fault = InputFault(state, g, input)) {
      state.faults.Add(Path(inputs, i), *fault);
    }
  }
}

void CheckGradient(CheckState& state,
                   const GraphOutput& output,
                   std::vector<char>& seen,
                   const Path& path) {
  if (seen[output.param.index()]++ != 0) {
    state.faults.Add(path, "a second gradient of param " + std::to_string(output.param.index()));
  }
  const Param& param = state.graph.param(output.param);
  if (!param.requires_grad) {
    state.faults.Add(path, "a gradient of the frozen parameter " + param.name);
  }
  if (state.graph.value(param.value).shape != state.graph.value(output.value).shape) {
    state.faults.Add(path, "the gradient's shape is not that of " + param.name);
  }
  if (state.is_resident[state.graph.storage_of(output.value).index()] != 0) {
    state.faults.Add(
        path, "the gradient of " + param.name + " lies in the memory of a param, buffer or input");
  }
}

struct OutputCounts {
  std::vector<char> gradients;
  std::size_t losses = 0;
};

void CheckOutputs(CheckState& state, std::size_t g, OutputCounts& counts, const Path& path) {
  const Subgraph& subgraph = state.graph.graphs[g];
  const Path outputs(path, "outputs");
  for (std::size_t i = 0; i < subgraph.outputs.size(); ++i) {
    const GraphOutput& output = subgraph.outputs[i];
    const Path here(outputs, i);
    const bool forward_kind = output.kind == GraphOutputKind::kLoss ||
                              output.kind == GraphOutputKind::kOutput ||
                              output.kind == GraphOutputKind::kSaved;
    if (forward_kind != (subgraph.direction == Direction::kForward)) {
      state.faults.Add(
          here, "a " + std::string(kDirectionNames[static_cast<std::size_t>(subgraph.direction)]) +
                    " graph has no output of this kind");
    }
    if (!state.Exists(output.value)) {
      state.faults.Add(here, state.Name(output.value) + " is never produced");
    }
    counts.losses += output.kind == GraphOutputKind::kLoss ? 1 : 0;
    if (output.kind == GraphOutputKind::kGradient) {
      CheckGradient(state, output, counts.gradients, here);
    }
  }
}

void CheckPairing(CheckState& state, const Path& graphs) {
  std::vector<char> has_backward(state.graph.graphs.size());
  for (std::size_t g = 0; g < state.graph.graphs.size(); ++g) {
    const Subgraph& subgraph = state.graph.graphs[g];
    if (subgraph.direction == Direction::kForward) {
      continue;
    }
    const bool earlier_forward =
        !subgraph.forward.is_none() && subgraph.forward.index() < g &&
        state.graph.graphs[subgraph.forward.index()].direction == Direction::kForward;
    if (!earlier_forward) {
      state.faults.Add(Path(graphs, g), "'forward' must name an earlier forward graph");
    } else if (has_backward[subgraph.forward.index()]++ != 0) {
      state.faults.Add(Path(graphs, g), "its forward graph has a backward graph already");
    }
  }
}

void CheckSchemas(CheckState& state, const Path& root) {
  const Path schemas(root, "schemas");
  for (std::size_t i = 0; i < state.graph.schemas.size(); ++i) {
    state.schemas.push_back(FindSchema(state.graph.schemas[i]));
    if (!state.schemas.back()) {
      state.faults.Add(
          Path(schemas, i),
          "expected a schema such as \"aten::mm(Tensor self, Tensor mat2) -> Tensor\"");
    }
  }
}

}  // namespace

bool IsCountable(std::span<const std::int64_t> shape) {
  std::int64_t numel = 1;
  return std::ranges::all_of(shape, [&numel](std::int64_t extent) {
    return !__builtin_mul_overflow(numel, std::max<std::int64_t>(extent, 1), &numel) &&
           numel <= kMostElements;
  });
}

void CheckGraph(const Graph& graph, Faults& faults) {
  const Path root;
  CheckState state{graph,
                   faults,
                   std::vector<char>(graph.values.size()),
                   std::vector<char>(graph.storages.size()),
                   {},
                   std::vector<std::optional<GraphInputKind>>(graph.values.size()),
                   {},
                   std::vector<char>(graph.storages.size()),
                   std::vector<char>(graph.values.size())};
  CheckSchemas(state, root);
  CheckViews(state, root);
  CheckResidents(state, root);
  const Path graphs(root, "graphs");
  CheckPairing(state, graphs);
  if (!faults.empty()) {
    return;  // what follows would repeat these faults in other words
  }
  CheckStandIns(state, root);
  OutputCounts counts;
  counts.gradients.resize(graph.params.size());
  for (std::size_t g = 0; g < graph.graphs.size(); ++g) {
    const Path path(graphs, g);
    const Path ops(path, "ops");
    CheckInputs(state, g, path);
    const Subgraph& subgraph = graph.graphs[g];
    for (std::size_t i = 0; i < subgraph.op_count; ++i) {
      CheckOp(state, graph.ops[subgraph.first_op + i], Path(ops, i));
    }
    CheckOutputs(state, g, counts, path);
  }
  if (counts.losses != 1) {
    faults.Add(graphs, "expected one output of kind 'loss' in the whole step, found " +
                           std::to_string(counts.losses));
  }
}

}  // namespace dcsim
