#include <ATen/ops/as_strided.h>
#include <ATen/ops/full.h>

#include "exec/executor/execute.h"
#include "model/base/error.h"

namespace dcsim::exec {
namespace {

/// A view of a parameter that no op of this graph made: the forward saved it, and the parameter has
/// been released and gathered since.
at::Tensor ViewOfParam(const ExecutorState& state, ValueId id, ParamId param) {
  const at::Tensor& base = state.frame[state.graph().param(param).value.index()];
  DCSIM_CHECK(base.defined()) << state.graph().param(param).name << " is used and not gathered";
  const Value& value = state.graph().value(id);
  return at::as_strided(base, value.shape, value.strides, base.storage_offset() + value.offset);
}

void DefineParamViews(ExecutorState& state, const Op& op) {
  for (const ValueId input : op.inputs) {
    if (state.frame[input.index()].defined()) {
      continue;
    }
    const StorageId storage = state.graph().storage_of(input);
    const ParamId param = state.facts.param_of[storage.index()];
    DCSIM_CHECK(!param.is_none()) << "value " << state.graph().value(input).name << " is not alive";
    state.frame[input.index()] = ViewOfParam(state, input, param);
  }
}

/// Remembers which buffer of the schedule each storage is now, and the tensors of gradients by it.
void AdoptBuffers(ExecutorState& state, TaskId id) {
  for (const MemoryStep& step : state.schedule().memory(id)) {
    const Buffer& buffer = state.schedule().buffer(step.buffer);
    const bool storage = buffer.buffer_class == BufferClass::kActivation ||
                         buffer.buffer_class == BufferClass::kGradient ||
                         buffer.buffer_class == BufferClass::kHeldOutput;
    if (!step.frees && storage) {
      state.storage_buffer[buffer.subject] = step.buffer;
    }
  }
}

}  // namespace

void ExecuteOp(ExecutorState& state, TaskId id) {
  const OpId op_id(state.work(id).subject);
  const Op& op = state.graph().op(op_id);
  DefineParamViews(state, op);
  AdoptBuffers(state, id);
  state.program.Run(op_id, state.frame);
  for (const ValueId output : op.outputs) {
    if (output.is_none()) {
      continue;
    }
    const ParamId param = state.param_with_gradient[output.index()];
    const BufferId buffer = state.storage_buffer[state.graph().storage_of(output).index()];
    if (!param.is_none() && !buffer.is_none()) {
      state.buffers[buffer.index()] = state.frame[output.index()];
    }
    if (output == state.loss_value) {
      state.losses[state.micro_step].copy_(state.frame[output.index()], /*non_blocking=*/true);
    }
  }
}

void ExecuteTangents(ExecutorState& state, TaskId id) {
  AdoptBuffers(state, id);
  const int micro_steps = state.schedule().options().gradient_accumulation_steps;
  for (const Subgraph& subgraph : state.graph().graphs) {
    for (const GraphInput& input : subgraph.inputs) {
      if (input.kind == GraphInputKind::kTangent &&
          !state.storage_buffer[state.graph().storage_of(input.value).index()].is_none()) {
        const Value& value = state.graph().value(input.value);
        const double tangent = input.of == state.loss_value ? 1.0 / micro_steps : 0.0;
        state.frame[input.value.index()] =
            at::full(value.shape, tangent, state.options(value.dtype));
      }
    }
  }
}

void DropStorage(ExecutorState& state, StorageId storage) {
  for (const ValueId value : state.values_in[storage.index()]) {
    state.frame[value.index()].reset();
  }
}

}  // namespace dcsim::exec
