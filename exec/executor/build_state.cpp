#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "exec/device/driver_memory.h"
#include "exec/executor/execute.h"
#include "exec/interpreter/graph_runner.h"
#include "exec/reference/reference_data.h"

namespace dcsim::exec {
namespace {

/// Puts elements [begin, end) of a parameter into a flat tensor at `offset`.
void FillPart(const ExecutorState& state,
              ParamId id,
              std::int64_t begin,
              std::int64_t end,
              const at::Tensor& flat,
              std::int64_t offset) {
  if (begin < end) {
    flat.narrow(0, offset, end - begin)
        .copy_(ReferenceParam(state.graph(), id, state.setup.seed, begin, end - begin,
                              state.setup.device));
  }
}

/// The weights that this rank holds: whole parameters, or its shards.
void FillWeights(const ExecutorState& state, const FlatGroup& group, const at::Tensor& weights) {
  weights.zero_();
  for (const ParamId id : group.params) {
    const ParamPlace& place = state.layout.place(id);
    if (state.layout.stage() != 3) {
      FillPart(state, id, 0, place.numel, weights, place.weights);
      continue;
    }
    const std::int64_t begin = std::min(state.rank() * place.shard, place.numel);
    FillPart(state, id, begin, std::min(begin + place.shard, place.numel), weights, place.weights);
  }
}

/// Master weights begin as the rounded weights, as a job does that loads them in the model's dtype.
void FillMaster(const ExecutorState& state, const FlatGroup& group, const at::Tensor& master) {
  master.zero_();
  for (const ParamId id : group.params) {
    if (state.layout.place(id).trainable) {
      const OwnedPart own = state.layout.owned(id, state.rank());
      FillPart(state, id, own.begin, own.end, master, own.partition);
    }
  }
}

/// FSDP2 cuts parameters by rows, so that a rank's part lies in one piece.
void FillShard(const ExecutorState& state, ParamId id) {
  const ShardTensors& shard = state.shards[id.index()];
  const OwnedElements own = OwnedShard(state, id, shard.weights);
  shard.weights.zero_();
  FillPart(state, id, own.begin, own.begin + own.elements.numel(), shard.weights, 0);
  for (const at::Tensor& zeros : {shard.first_moment, shard.second_moment, shard.step_count}) {
    if (zeros.defined()) {
      zeros.zero_();
    }
  }
}

at::Tensor Uninitialised(const ExecutorState& state, DType dtype, std::int64_t elements) {
  return at::empty({elements}, state.options(dtype));
}

at::Tensor PinnedShards(const ExecutorState& state, DType dtype, std::int64_t elements) {
  return at::empty({elements}, at::TensorOptions()
                                   .dtype(ExecutorState::ToScalar(dtype))
                                   .pinned_memory(state.streams.on_gpu()));
}

/// In the order in which the schedule declares them, without a temporary in between: the
/// allocator's segments then are those that the simulator replays.
FlatTensors AllocateFlat(const ExecutorState& state, std::size_t g) {
  const FlatGroup& group = state.layout.groups()[g];
  const std::int64_t partition = state.layout.partition(g);
  const std::int64_t weights = state.layout.weights(g);
  FlatTensors flat;
  flat.weights = state.offloads_params() ? PinnedShards(state, group.dtype, weights)
                                         : Uninitialised(state, group.dtype, weights);
  if (partition == 0) {
    return flat;
  }
  if (HasResidentPartition(state.schedule().options())) {
    flat.gradient_partition = Uninitialised(state, group.dtype, partition);
  }
  flat.master = Uninitialised(state, DType::kFloat32, partition);
  flat.first_moment = Uninitialised(state, DType::kFloat32, partition);
  flat.second_moment = Uninitialised(state, DType::kFloat32, partition);
  flat.step_count = at::empty({}, state.options(DType::kFloat32));
  return flat;
}

void FillFlat(const ExecutorState& state, std::size_t g, const FlatTensors& flat) {
  const FlatGroup& group = state.layout.groups()[g];
  FillWeights(state, group, flat.weights);
  if (!flat.master.defined()) {
    return;
  }
  FillMaster(state, group, flat.master);
  flat.first_moment.zero_();
  flat.second_moment.zero_();
  flat.step_count.zero_();
  if (flat.gradient_partition.defined()) {
    flat.gradient_partition.zero_();
  }
}

/// Reduce buffers that outlive steps.
void AllocateBuckets(ExecutorState& state) {
  for (const BufferId id : state.schedule().residents()) {
    const Buffer& buffer = state.schedule().buffer(id);
    if (buffer.buffer_class == BufferClass::kReduceBucket) {
      state.buffers[id.index()] = Uninitialised(state, DType::kUInt8, buffer.bytes.count());
    }
  }
}

/// Parameters that stay gathered keep one buffer for good, from the gather stream's pool.
void AllocatePersistent(ExecutorState& state) {
  const Streams::Use gather(state.streams, StreamRole::kGather);
  for (const BufferId id : state.schedule().residents()) {
    const Buffer& buffer = state.schedule().buffer(id);
    if (buffer.buffer_class == BufferClass::kGatheredParameter) {
      const ParamId param(buffer.subject);
      const DType dtype = state.graph().gather_dtype(param);
      state.gathered[param.index()] =
          Uninitialised(state, dtype, buffer.bytes.count() / ElementBytes(dtype));
    }
  }
}

void DefineParams(ExecutorState& state) {
  for (std::size_t i = 0; state.layout.stage() != 3 && i < state.graph().params.size(); ++i) {
    const ParamPlace& place = state.layout.place(ParamId(i));
    const ValueId value = state.graph().params[i].value;
    state.frame[value.index()] = state.flat[place.group]
                                     .weights.narrow(0, place.weights, place.numel)
                                     .view(state.graph().value(value).shape);
  }
}

void DefineConstants(ExecutorState& state) {
  const auto constants = MakeConstants(state.graph(), state.setup.device);
  for (std::size_t i = 0; i < constants.size(); ++i) {
    state.frame[state.graph().buffers[i].value.index()] = constants[i];
  }
  for (const Input& input : state.graph().inputs) {
    const Value& value = state.graph().value(input.value);
    state.frame[input.value.index()] = at::empty(value.shape, state.options(value.dtype));
  }
}

/// Every rank's shards, once they are filled.
void OpenPeers(ExecutorState& state) {
  if (!state.reads_peers()) {
    return;
  }
  state.barrier.zero_();
  state.streams.HostWaitForAll();
  for (const FlatTensors& flat : state.flat) {
    state.peers.push_back(state.setup.communicators.front()->OpenPeers(flat.weights));
  }
}

void IndexGradients(ExecutorState& state) {
  state.gradient_of.resize(state.graph().params.size());
  state.param_with_gradient = ParamsWithGradients(state.graph());
  state.loss_value = LossOf(state.graph());
  for (const Subgraph& subgraph : state.graph().graphs) {
    for (const GraphOutput& output : subgraph.outputs) {
      if (output.kind == GraphOutputKind::kGradient) {
        state.gradient_of[output.param.index()] = output.value;
      }
    }
  }
}

/// An event for each task that another stream or the host waits for.
void MakeEvents(ExecutorState& state) {
  const Schedule& schedule = state.schedule();
  state.event_of.assign(schedule.task_count(), ExecutorState::kNoEvent);
  std::size_t count = 0;
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    for (const TaskId waited : schedule.waits(TaskId(i))) {
      if (state.event_of[waited.index()] == ExecutorState::kNoEvent) {
        state.event_of[waited.index()] = count++;
      }
    }
  }
  state.streams.MakeEvents(count);
}

/// Losses stay on the device: on their way to the host they would queue behind offloaded states,
/// and compute behind them. Their memory is not the allocator's, whose bytes are the schedule's;
/// made first, they hold none of the addresses that the temporaries have which fill the weights.
at::Tensor MakeLosses(const ExecutorState& state) {
  const std::int64_t count = state.schedule().options().gradient_accumulation_steps;
  return state.streams.on_gpu() ? DriverFloats(count, state.streams.device())
                                : at::zeros({count}, at::TensorOptions().dtype(at::kFloat));
}

}  // namespace

OwnedElements OwnedShard(const ExecutorState& state, ParamId id, const at::Tensor& shard) {
  const std::int64_t numel = state.graph().numel(id);
  const std::int64_t begin = std::min(state.rank() * shard.numel(), numel);
  return {id, begin, shard.narrow(0, 0, std::min(shard.numel(), numel - begin))};
}

void BuildResidents(ExecutorState& state) {
  state.frame.resize(state.graph().values.size());
  state.buffers.resize(state.schedule().buffers().size());
  state.storage_buffer.resize(state.graph().storages.size());
  state.gathered.resize(state.graph().params.size());
  state.values_in.resize(state.graph().storages.size());
  state.losses = MakeLosses(state);
  for (std::size_t v = 0; v < state.graph().values.size(); ++v) {
    state.values_in[state.graph().values[v].storage.index()].emplace_back(v);
  }
  if (state.in_fsdp()) {
    state.reduced_group.resize(state.buffers.size());
    BuildShards(state);
  } else {
    for (std::size_t g = 0; g < state.layout.groups().size(); ++g) {
      state.flat.push_back(AllocateFlat(state, g));
    }
    AllocateBuckets(state);
    AllocatePersistent(state);
    AllocatePinned(state);
  }
  if (state.reads_peers()) {
    state.barrier = at::empty({1}, state.options(DType::kFloat32));
  }
  DefineConstants(state);
  for (std::size_t g = 0; g < state.flat.size(); ++g) {
    FillFlat(state, g, state.flat[g]);
  }
  for (std::size_t i = 0; i < state.shards.size(); ++i) {
    FillShard(state, ParamId(i));
  }
  OpenPeers(state);
  state.kept_gradients.resize(state.in_fsdp() ? state.shards.size() : state.flat.size());
  DefineParams(state);
  IndexGradients(state);
  MakeEvents(state);
}

std::vector<at::Tensor> MakeInputs(const ExecutorState& state, int step, int micro_step) {
  const std::string place = MicroStepPlace(state.rank(), step, micro_step);
  std::vector<at::Tensor> inputs =
      ReferenceInputs(state.graph(), state.setup.seed, place, c10::kCPU);
  for (at::Tensor& input : inputs) {
    input = state.streams.on_gpu() ? input.pin_memory() : input;
  }
  return inputs;
}

void StartMicroStep(ExecutorState& state, int micro_step) {
  state.micro_step = micro_step;
  state.held_before.clear();
  for (std::size_t s = 0; s < state.values_in.size(); ++s) {
    const StorageId storage(s);
    const bool resident = state.facts.is_constant[s] || !state.facts.param_of[s].is_none();
    if (resident) {
      continue;
    }
    const BufferId buffer = state.storage_buffer[s];
    const bool held = !buffer.is_none() &&
                      state.schedule().buffer(buffer).buffer_class == BufferClass::kHeldOutput;
    for (const ValueId value : state.values_in[s]) {
      if (held && state.frame[value.index()].defined()) {
        state.held_before.push_back(state.frame[value.index()]);
      }
      state.frame[value.index()].reset();
    }
    state.storage_buffer[s] = BufferId::None();
  }
  const auto key = std::pair(state.step, micro_step);
  if (!state.prepared_inputs.contains(key)) {
    state.prepared_inputs[key] = MakeInputs(state, state.step, micro_step);
  }
  const auto prepared = state.prepared_inputs.extract(key);
  for (std::size_t i = 0; i < state.graph().inputs.size(); ++i) {
    state.frame[state.graph().inputs[i].value.index()].copy_(prepared.mapped()[i],
                                                             /*non_blocking=*/true);
  }
}

}  // namespace dcsim::exec
