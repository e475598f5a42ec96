#include "exec/executor/step_executor.h"

#include <c10/core/InferenceMode.h>

#include "exec/executor/execute.h"
#include "exec/interpreter/argument_values.h"
#include "model/base/error.h"

namespace dcsim::exec {
namespace {

/// The work of a task that has a stream; the stream is current.
void ExecuteOnStream(ExecutorState& state, TaskId id) {
  switch (state.schedule().task(id).kind) {
    case TaskKind::kCompute:
      return ExecuteOp(state, id);
    case TaskKind::kAllGather:
      return state.in_fsdp() ? ExecuteGroupGather(state, id) : ExecuteGather(state, id);
    case TaskKind::kGatherCopyIn:
      return ExecuteGatherCopyIn(state, id);
    case TaskKind::kGatherCopyOut:
      return ExecuteGatherCopyOut(state, id);
    case TaskKind::kReduceCopyIn:
      return ExecuteReduceCopyIn(state, id);
    case TaskKind::kCastBucket:
      return ExecuteCastReduced(state, id);
    case TaskKind::kCastShard:
      return ExecuteCastShard(state, id);
    case TaskKind::kAccumulate:
      return ExecuteAccumulate(state, id);
    case TaskKind::kMakeContiguous:
      return ExecuteMakeContiguous(state, id);
    case TaskKind::kReduceGradCopy:
      return ExecuteReduceGradCopy(state, id);
    case TaskKind::kPreDivide:
      return ExecutePreDivide(state, id);
    case TaskKind::kReduce:
      return state.in_fsdp() ? ExecuteGroupReduce(state, id) : ExecuteReduce(state, id);
    case TaskKind::kStoreReduced:
      return state.in_fsdp() ? ExecuteAddReduced(state, id) : ExecuteStoreReduced(state, id);
    case TaskKind::kFlatten:
      return ExecuteFlatten(state, id);
    case TaskKind::kUnflatten:
      return ExecuteUnflatten(state, id);
    case TaskKind::kOffload:
      return ExecuteOffload(state, id);
    case TaskKind::kReload:
      return ExecuteReload(state, id);
    case TaskKind::kSetTangents:
      return ExecuteTangents(state, id);
    case TaskKind::kClearGradients:
      return ExecuteClearPartition(state, id);
    case TaskKind::kGradientNorm:
      return ExecuteGradientNorm(state, id);
    case TaskKind::kReduceNorm:
      return ExecuteReduceNorm(state, id);
    case TaskKind::kCastGradients:
      return ExecuteCast(state, id);
    case TaskKind::kClipGradients:
      return ExecuteClip(state, id);
    case TaskKind::kOptimizerStep:
      return state.in_fsdp() ? ExecuteShardsUpdate(state, id) : ExecuteOptimizer(state, id);
    case TaskKind::kStoreParams:
      return ExecuteStoreParams(state, id);
    case TaskKind::kGatherUpdated:
      return ExecuteGatherUpdated(state, id);
    case TaskKind::kBarrier:
      return ExecuteBarrier(state, id);
    default:
      return;  // waits, and inputs, which StartMicroStep has copied
  }
}

/// The work of a task that the host does alone.
void ExecuteOnHost(ExecutorState& state, TaskId id) {
  switch (state.schedule().task(id).kind) {
    case TaskKind::kCompute:  // a view
      return ExecuteOp(state, id);
    case TaskKind::kAllocate:
    case TaskKind::kHostSynchronize:
      return AllocateBuffers(state, id);
    default:
      return;  // releases, frees, ends
  }
}

/// Gives a buffer's memory back by dropping the tensors in it.
void FreeBuffer(ExecutorState& state, BufferId id) {
  const Buffer& buffer = state.schedule().buffer(id);
  if (buffer.recorded_streams != 0 && state.buffers[id.index()].defined()) {
    RecordStreams(state, buffer, state.buffers[id.index()]);
  }
  state.buffers[id.index()].reset();
  switch (buffer.buffer_class) {
    case BufferClass::kGatheredParameter:
      return DropGathered(state, buffer);
    case BufferClass::kMaster:
    case BufferClass::kOptimizerState:
      return DropState(state, buffer);
    case BufferClass::kHeldOutput:
      return state.held_before.clear();
    case BufferClass::kActivation:
    case BufferClass::kGradient:
      if (state.storage_buffer[buffer.subject] == id) {
        DropStorage(state, StorageId(buffer.subject));
        state.storage_buffer[buffer.subject] = BufferId::None();
      }
      return;
    default:
      return;
  }
}

void ExecuteTask(ExecutorState& state, TaskId id) {
  const Task& task = state.schedule().task(id);
  if (task.on_host()) {
    for (const TaskId waited : state.schedule().waits(id)) {
      state.streams.HostWait(state.event_of[waited.index()]);
    }
    const Streams::Use compute(state.streams, StreamRole::kCompute);
    ExecuteOnHost(state, id);
  } else {
    const auto role = static_cast<StreamRole>(task.stream);
    for (const TaskId waited : state.schedule().waits(id)) {
      state.streams.Wait(state.event_of[waited.index()], role);
    }
    const Streams::Use use(state.streams, role);
    ExecuteOnStream(state, id);
    if (state.event_of[id.index()] != ExecutorState::kNoEvent) {
      state.streams.Record(state.event_of[id.index()], role);
    }
  }
  for (const MemoryStep& step : state.schedule().memory(id)) {
    if (step.frees) {
      FreeBuffer(state, step.buffer);
    }
  }
}

/// The parts of trained parameters in what a rank keeps: by group, or under FSDP2 by param.
std::vector<OwnedElements> OwnedOf(const ExecutorState& state,
                                   const std::vector<at::Tensor>& kept) {
  std::vector<OwnedElements> owned;
  for (std::size_t i = 0; i < state.graph().params.size(); ++i) {
    const ParamId id(i);
    if (!state.graph().param(id).requires_grad) {
      continue;
    }
    if (state.in_fsdp()) {
      owned.push_back(OwnedShard(state, id, kept[i]));
      continue;
    }
    const OwnedPart own = state.layout.owned(id, state.rank());
    const at::Tensor& partition = kept[state.layout.place(id).group];
    owned.push_back({id, own.begin, partition.narrow(0, own.partition, own.end - own.begin)});
  }
  std::erase_if(owned, [](const OwnedElements& each) { return each.elements.numel() == 0; });
  return owned;
}

}  // namespace

StepExecutor::State::State(const RankSetup& rank_setup)
    : setup(rank_setup),
      planned(setup.graph, setup.schedule.options()),
      streams(setup.device, setup.side_streams),
      program(graph(), setup.device, setup.binaries),
      facts(AnalyseStep(graph())),
      layout(graph(), setup.schedule.options(), setup.schedule.ranks()) {}

c10::ScalarType StepExecutor::State::ToScalar(DType dtype) {
  return ToScalarType(dtype);
}

StepExecutor::StepExecutor(const RankSetup& setup) {
  const c10::InferenceMode inference;
  state_ = std::make_unique<State>(setup);
  DCSIM_CHECK(state_->ranks() == setup.schedule.ranks());
  const Streams::Use compute(state_->streams, StreamRole::kCompute);
  BuildResidents(*state_);
  state_->streams.ReleaseCache();  // of the temporaries that filled the weights
}

StepExecutor::~StepExecutor() = default;

void StepExecutor::PrepareInputs(int first, int count) {
  const c10::InferenceMode inference;
  for (int step = first; step < first + count; ++step) {
    for (int m = 0; m < state_->schedule().options().gradient_accumulation_steps; ++m) {
      state_->prepared_inputs[{step, m}] = MakeInputs(*state_, step, m);
    }
  }
}

void StepExecutor::RunStep(int step) {
  const c10::InferenceMode inference;
  state_->step = step;
  ++state_->updates;
  state_->micro_step = -1;
  for (std::size_t i = 0; i < state_->schedule().task_count(); ++i) {
    const TaskId id(i);
    state_->current_task = id;
    if (state_->listener != nullptr) {
      state_->listener->BeforeTask(id);
    }
    if (state_->schedule().task(id).micro_step != state_->micro_step) {
      const Streams::Use compute(state_->streams, StreamRole::kCompute);
      StartMicroStep(*state_, state_->schedule().task(id).micro_step);
    }
    ExecuteTask(*state_, id);
    if (state_->listener != nullptr) {
      state_->listener->AfterTask(id);
    }
  }
}

TaskId StepExecutor::current_task() const {
  return state_->current_task;
}

std::vector<double> StepExecutor::losses() {
  Synchronize();
  const at::Tensor losses = state_->losses.cpu().to(at::kDouble);
  const auto* data = losses.const_data_ptr<double>();
  return {data, data + losses.numel()};
}

void StepExecutor::KeepGradients(bool keep) {
  state_->keep_gradients = keep;
}

std::vector<OwnedElements> StepExecutor::kept_gradients() const {
  return OwnedOf(*state_, state_->kept_gradients);
}

std::vector<OwnedElements> StepExecutor::master_weights() const {
  std::vector<at::Tensor> kept;
  for (const FlatTensors& flat : state_->flat) {
    kept.push_back(flat.master);
  }
  for (const ShardTensors& shard : state_->shards) {
    kept.push_back(shard.weights);
  }
  return OwnedOf(*state_, kept);
}

int StepExecutor::rank() const {
  return state_->rank();
}

WaitingDelays StepExecutor::waiting_delays() const {
  WaitingDelays delays{};
  if (!state_->streams.on_gpu()) {
    return delays;
  }
  std::array<bool, kStreamCount> used{};
  for (const Task& task : state_->schedule().tasks()) {
    used[task.on_host() ? 0 : task.stream] = true;
  }
  std::vector<std::size_t> sides;
  std::vector<c10::cuda::CUDAStream> streams;
  for (std::size_t s = 1; s < kStreamCount; ++s) {
    if (used[s]) {
      sides.push_back(s);
      streams.push_back(state_->streams.stream(static_cast<StreamRole>(s)));
    }
  }
  const std::vector<Duration> found = DelaysBy(streams);
  for (std::size_t i = 0; i < sides.size(); ++i) {
    delays[sides[i]] = found[i];
  }
  return delays;
}

void StepExecutor::Close() {
  Synchronize();
  for (std::vector<at::Tensor>& peers : state_->peers) {
    state_->setup.communicators.front()->ClosePeers(std::move(peers));
  }
  state_->peers.clear();
}

void StepExecutor::Listen(TaskListener* listener) {
  state_->listener = listener;
}

void StepExecutor::Synchronize() {
  state_->streams.HostWaitForAll();
}

}  // namespace dcsim::exec
