#include <algorithm>

#include "model/ir/optimizer_spec.h"
#include "model/passes/lower_state.h"

namespace dcsim {
namespace {

BufferId AddResident(LowerState& state,
                     BufferClass buffer_class,
                     Bytes bytes,
                     std::uint32_t subject = 0) {
  Buffer buffer;
  buffer.bytes = bytes;
  buffer.buffer_class = buffer_class;
  buffer.subject = subject;
  buffer.resident = true;
  return bytes > Bytes(0) ? state.builder.AddBuffer(buffer) : BufferId::None();
}

/// Whether the plan offloads a state.
bool Moves(const LowerState& state, const OptimizerState& wanted) {
  const auto offloads = [&](const StateMove& move) {
    return std::find(move.states.begin(), move.states.end(), wanted) != move.states.end();
  };
  return std::any_of(
      state.plan.graphs.begin(), state.plan.graphs.end(), [&](const GraphPlan& decisions) {
        return std::any_of(decisions.state_moves.begin(), decisions.state_moves.end(), offloads);
      });
}

/// One of the optimizer's tensors, or None() where the algorithm keeps none such; with its place on
/// the host if it moves there.
BufferId AddState(LowerState& state, std::size_t g, OptimizerTensor tensor) {
  const TrainingOptions& training = state.plan.options.training;
  if (!Keeps(training.algorithm, tensor)) {
    return BufferId::None();
  }
  const Bytes bytes(state.layout.partition(g) * ElementBytes(DTypeOf(training, tensor)));
  const bool moves = Moves(state, {state.layout.groups()[g].dtype, tensor});
  const std::uint32_t index = StateIndex(g, tensor);
  Buffer buffer;
  buffer.bytes = bytes;
  buffer.buffer_class =
      tensor == OptimizerTensor::kMaster ? BufferClass::kMaster : BufferClass::kOptimizerState;
  buffer.subject = moves ? index : 0;
  buffer.resident = true;
  buffer.recorded_streams = moves ? StreamBit(StreamRole::kOffload) : 0;
  const BufferId id = state.builder.AddBuffer(buffer);
  if (moves) {
    state.offloaded[index].host = AddResident(state, BufferClass::kPinnedHost, bytes, index);
  }
  return id;
}

/// A number on the GPU: torch's fused kernels count steps in a float32 a group, DeepSpeed's have an
/// int32 flag for all.
void AddStepCount(LowerState& state) {
  const bool first = std::none_of(state.flat.begin(), state.flat.end(),
                                  [](const FlatBuffers& flat) { return flat.partition > 0; });
  const ScheduleOptions& options = state.plan.options;
  if (OptimizerSpecOf(options.training.algorithm).counts_steps &&
      (first || !RunsDeepSpeedKernel(options))) {
    AddResident(state, BufferClass::kOptimizerState, Bytes(4));
  }
}

FlatBuffers AddFlatBuffers(LowerState& state, std::size_t g) {
  const FlatGroup& group = state.layout.groups()[g];
  const std::int64_t element_bytes = ElementBytes(group.dtype);
  FlatBuffers flat;
  flat.partition = state.layout.partition(g);
  if (state.plan.options.offload_parameters) {
    AddHostShards(state, g);
  } else {
    flat.weights =
        AddResident(state, BufferClass::kParameter, Bytes(state.layout.weights(g) * element_bytes));
  }
  if (flat.partition == 0) {
    return flat;  // every parameter of the group is frozen
  }
  if (HasResidentPartition(state.plan.options)) {
    flat.gradient_partition =
        AddResident(state, BufferClass::kGradientPartition, state.PartitionBytes(g));
  }
  flat.master = AddState(state, g, OptimizerTensor::kMaster);
  flat.first_moment = AddState(state, g, OptimizerTensor::kFirstMoment);
  flat.second_moment = AddState(state, g, OptimizerTensor::kSecondMoment);
  AddStepCount(state);
  return flat;
}

void AddPersistentParams(LowerState& state) {
  if (state.plan.options.stage != 3) {
    return;
  }
  for (const ParamId id : state.plan.persistent) {
    Buffer buffer;
    buffer.bytes = GatheredBytes(state.graph, id, state.plan.ranks);
    buffer.buffer_class = BufferClass::kGatheredParameter;
    buffer.subject = static_cast<std::uint32_t>(id.index());
    buffer.pool = static_cast<std::uint8_t>(StreamRole::kGather);
    buffer.resident = true;
    state.gathered[id.index()] = state.builder.AddBuffer(buffer);
  }
}

/// Reduce buffers that outlive steps: DeepCompile's, as large as they have grown, and the eager one
/// of ZeRO-3.
void AddBuckets(LowerState& state) {
  const bool eager = state.eager() && state.plan.options.stage == 3;
  for (const FlatGroup& group : state.layout.groups()) {
    if (eager && state.plan.options.contiguous_gradients && group.trainable > 0) {
      EagerBucket& bucket = state.eager_buckets[group.dtype];
      bucket.dtype = group.dtype;
      bucket.buffers.push_back(AddResident(
          state, BufferClass::kReduceBucket,
          Bytes(state.plan.options.reduce_bucket * ElementBytes(state.bucket_dtype(group.dtype)))));
    }
  }
  for (const auto& [dtype, capacities] : state.kept_capacities) {
    ReduceBucket& bucket = state.buckets[dtype];
    bucket.dtype = dtype;
    for (const std::int64_t capacity : capacities) {
      const BufferId buffer =
          AddResident(state, BufferClass::kReduceBucket, Bytes(capacity * ElementBytes(dtype)));
      bucket.buffers.push_back({buffer, capacity, TaskId::None(), true});
    }
  }
}

/// Inputs and constants stay in place; a new micro-step's data is copied into them.
void AddConstants(LowerState& state) {
  const auto add = [&state](ValueId value, BufferClass buffer_class) {
    const StorageId storage = state.graph.storage_of(value);
    BufferId& buffer = state.buffer_of[storage.index()];
    if (buffer.is_none()) {
      buffer = AddResident(state, buffer_class, state.graph.storage(storage).bytes,
                           static_cast<std::uint32_t>(storage.index()));
    }
  };
  for (const ConstantBuffer& constant : state.graph.buffers) {
    add(constant.value, BufferClass::kConstant);
  }
  for (const Input& input : state.graph.inputs) {
    add(input.value, BufferClass::kInput);
  }
}

}  // namespace

void AddResidents(LowerState& state) {
  if (state.in_fsdp()) {
    AddParamShards(state);
    return AddConstants(state);
  }
  for (std::size_t g = 0; g < state.layout.groups().size(); ++g) {
    state.flat.push_back(AddFlatBuffers(state, g));
  }
  AddBuckets(state);
  AddPersistentParams(state);
  if (state.reads_peers()) {
    constexpr Bytes kOneFloat(4);  // what ranks reduce to meet
    state.barrier = AddResident(state, BufferClass::kWorkspace, kOneFloat);
  }
  AddConstants(state);
  AddHostActivations(state);
}

}  // namespace dcsim
