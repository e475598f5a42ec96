#pragma once

#include <map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "exec/device/streams.h"
#include "exec/executor/step_executor.h"
#include "exec/interpreter/op_program.h"
#include "model/graph/fused_casts.h"
#include "model/graph/param_layout.h"
#include "model/graph/step_facts.h"

namespace dcsim::exec {

/// Flat tensors of one dtype.
struct FlatTensors {
  at::Tensor weights;  // ZeRO-1, 2: whole; ZeRO-3: own shards
  at::Tensor master;   // float32, own partition
  at::Tensor first_moment;
  at::Tensor second_moment;
  at::Tensor gradient_partition;  // in the parameters' dtype
  at::Tensor gradient;            // float32, during the optimizer step
  at::Tensor step_count;          // float32 scalar, on the device
};

/// What a rank keeps of one parameter under FSDP2: float32, a tensor each; frozen ones have weights
/// alone.
struct ShardTensors {
  at::Tensor weights;
  at::Tensor first_moment;
  at::Tensor second_moment;
  at::Tensor step_count;  // scalar
};

/// Everything that changes while a rank executes; the execute_*.cpp files work on it.
struct StepExecutor::State {
  explicit State(const RankSetup& rank_setup);

  RankSetup setup;
  PlannedGraph planned;
  Streams streams;
  OpProgram program;
  StepFacts facts;
  ParamLayout layout;

  std::vector<FlatTensors> flat;             // by group; none under FSDP2
  std::vector<ShardTensors> shards;          // by param; FSDP2
  std::vector<std::uint32_t> reduced_group;  // by BufferId: reductions that filled it; FSDP2
  std::vector<at::Tensor> buffers;           // by BufferId: those that ops do not allocate
  std::vector<BufferId> storage_buffer;      // by storage: its buffer in this micro-step
  std::vector<at::Tensor> gathered;          // by param: whole, padded; undefined when released
  Frame frame;
  std::vector<std::vector<ValueId>> values_in;  // by storage
  std::vector<ValueId> gradient_of;          // by param: value that the backward makes, or None()
  std::vector<ParamId> param_with_gradient;  // by value: the inverse, or None()
  ValueId loss_value;
  std::vector<std::size_t> event_of;    // by task: its event's slot, or kNoEvent
  std::vector<at::Tensor> held_before;  // outputs of the micro-step before, caller's
  std::map<std::pair<int, int>, std::vector<at::Tensor>> prepared_inputs;  // by step, micro-step
  at::Tensor losses;  // [micro-steps] of the step, float32, outside of PyTorch's allocator
  std::vector<std::vector<at::Tensor>>
      peers;           // by group, by rank: weights, where gathers read them
  at::Tensor barrier;  // float32 [1], what ranks reduce to meet
  TaskId current_task;
  int step = 0;
  int updates = 0;  // optimizer steps so far, this one included
  int micro_step = -1;
  bool keep_gradients = false;
  std::vector<at::Tensor> kept_gradients;  // by group; FSDP2: by param
  TaskListener* listener = nullptr;

  static constexpr std::size_t kNoEvent = SIZE_MAX;

  const Graph& graph() const { return planned.get(); }
  const Schedule& schedule() const { return setup.schedule; }
  int rank() const { return setup.communicators.front()->rank(); }
  int ranks() const { return setup.communicators.front()->size(); }
  Communicator& communicator(const Collective& collective) const {
    const std::size_t index = collective.communicator;
    return *setup.communicators[index < setup.communicators.size() ? index : 0];
  }
  at::TensorOptions options(DType dtype) const {
    return at::TensorOptions().dtype(ToScalar(dtype)).device(setup.device);
  }
  bool in_fsdp() const { return schedule().options().sharding == Sharding::kFsdp2; }
  bool reads_peers() const { return schedule().options().gather_engine == Engine::kCopyEngine; }
  bool offloads_params() const { return schedule().options().offload_parameters; }
  static c10::ScalarType ToScalar(DType dtype);
  const Work& work(TaskId id) const { return schedule().work(schedule().task(id).work); }
  const Collective& collective(std::uint32_t subject) const {
    return schedule().collective(CollectiveId(subject));
  }
};

using ExecutorState = StepExecutor::State;

}  // namespace dcsim::exec
