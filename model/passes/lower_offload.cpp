#include <algorithm>

#include "model/passes/lower_state.h"

namespace dcsim {
namespace {

/// An optimizer state among the flat tensors.
struct PlacedState {
  std::size_t group = 0;
  OptimizerTensor tensor = OptimizerTensor::kFirstMoment;
};

PlacedState PlaceOf(const LowerState& state, const OptimizerState& wanted) {
  std::size_t group = 0;
  while (state.layout.groups()[group].dtype != wanted.dtype) {
    ++group;
  }
  return {group, wanted.tensor};
}

BufferId BufferOf(const LowerState& state, const PlacedState& place) {
  const FlatBuffers& flat = state.flat[place.group];
  switch (place.tensor) {
    case OptimizerTensor::kFirstMoment:
      return flat.first_moment;
    case OptimizerTensor::kSecondMoment:
      return flat.second_moment;
    case OptimizerTensor::kMaster:
      return flat.master;
  }
  return BufferId::None();
}

OffloadedState& OffloadedOf(LowerState& state, const PlacedState& place) {
  return state.offloaded[StateIndex(place.group, place.tensor)];
}

/// Both ways on one stream.
TaskDraft CopyDraft(LowerState& state, TaskKind kind, const PlacedState& place) {
  return HostCopyBehindCompute(state, kind, StreamRole::kOffload,
                               state.builder.buffer(OffloadedOf(state, place).host).bytes,
                               StateIndex(place.group, place.tensor));
}

void AddOffload(LowerState& state, const OptimizerState& wanted) {
  const PlacedState place = PlaceOf(state, wanted);
  const BufferId device = BufferOf(state, place);
  TaskDraft copy = CopyDraft(state, TaskKind::kOffload, place);
  copy.Read(device);
  copy.Write(OffloadedOf(state, place).host);
  state.builder.Add(copy);
  AddFreeBehindCopy(state, device);
}

void AddReload(LowerState& state, const OptimizerState& wanted) {
  const PlacedState place = PlaceOf(state, wanted);
  const BufferId device = BufferOf(state, place);
  TaskDraft copy = CopyDraft(state, TaskKind::kReload, place);
  copy.Allocate(device);
  copy.Read(OffloadedOf(state, place).host);
  copy.Write(device);
  OffloadedOf(state, place).reload = state.builder.Add(copy);
}

/// The host waits for the copies, or for everything; compute need not wait for them then.
void AddSynchronize(LowerState& state, StateMoveKind kind) {
  const TaskId last = state.builder.last(StreamRole::kOffload);
  if (kind == StateMoveKind::kSynchronizeDevice) {
    AddDeviceSynchronize(state);
  } else if (!last.is_none()) {
    TaskDraft draft = state.Draft(TaskKind::kHostSynchronize);
    draft.waits.push_back(last);
    state.builder.Add(draft);
  }
  for (OffloadedState& each : state.offloaded) {
    each.reload = TaskId::None();
  }
}

}  // namespace

void AddStateMove(LowerState& state, const StateMove& move) {
  const bool each_time = state.plan.options.offload_period == OffloadPeriod::kMicroStep;
  switch (move.kind) {
    case StateMoveKind::kOffload:
      for (const OptimizerState& each : move.states) {
        if (each_time || state.first_micro_step()) {
          AddOffload(state, each);
        }
      }
      return;
    case StateMoveKind::kReload:
      for (const OptimizerState& each : move.states) {
        if (each_time || state.boundary()) {
          AddReload(state, each);
        }
      }
      return;
    default:
      return AddSynchronize(state, move.kind);
  }
}

void AddWaitForStates(LowerState& state, std::size_t group) {
  TaskId last;
  for (std::size_t t = 0; t < kOptimizerTensors; ++t) {
    TaskId& reload = state.offloaded[StateIndex(group, static_cast<OptimizerTensor>(t))].reload;
    if (!reload.is_none() && (last.is_none() || last < reload)) {
      last = reload;
    }
    reload = TaskId::None();
  }
  if (!last.is_none()) {
    AddWait(state, StreamRole::kCompute, last);
  }
}

void AddOffloadStreamWait(LowerState& state) {
  if (!state.builder.last(StreamRole::kOffload).is_none()) {
    AddWaitForCompute(state, StreamRole::kOffload);
  }
}

}  // namespace dcsim
