#include "model/passes/lower_state.h"

namespace dcsim {
namespace {

/// DeepSpeed lets compute wait for the copy at once (offload_tensor, wait_offload): whoever frees
/// the tensor does not know of other streams.
void AddOffload(LowerState& state, ValueId value) {
  const StorageId storage = state.graph.storage_of(value);
  OffloadedActivation& activation = state.activations[storage.index()];
  TaskDraft copy = HostCopyBehindCompute(state, TaskKind::kOffload, StreamRole::kOffload,
                                         state.graph.value(value).bytes(), storage.index());
  copy.Read(state.buffer_of[storage.index()]);
  copy.Write(activation.host);
  activation.offload = state.builder.Add(copy);
  AddWait(state, StreamRole::kCompute, activation.offload);
  TaskDraft free = state.Draft(TaskKind::kFree);
  FreeStorage(state, storage, free);
  state.builder.Add(free);
}

/// The copy back waits for the copy out alone, not for the compute stream (reload_tensor).
void AddReload(LowerState& state, ValueId value) {
  const StorageId storage = state.graph.storage_of(value);
  OffloadedActivation& activation = state.activations[storage.index()];
  Buffer buffer;
  buffer.bytes = state.graph.value(value).bytes();
  buffer.subject = static_cast<std::uint32_t>(storage.index());
  buffer.pool = static_cast<std::uint8_t>(StreamRole::kReload);
  buffer.recorded_streams = StreamBit(StreamRole::kCompute);
  activation.device = state.builder.AddBuffer(buffer);
  state.buffer_of[storage.index()] = activation.device;
  TaskDraft copy =
      HostCopyDraft(state, TaskKind::kReload, StreamRole::kReload, buffer.bytes, storage.index());
  copy.waits.push_back(activation.offload);
  copy.Allocate(activation.device);
  copy.Read(activation.host);
  copy.Write(activation.device);
  activation.reload = state.builder.Add(copy);
}

}  // namespace

void AddHostActivations(LowerState& state) {
  for (const GraphPlan& decisions : state.plan.graphs) {
    for (const GraphEvent& event : decisions.events) {
      const bool leave = event.kind == GraphEventKind::kOffloadActivation;
      for (std::size_t i = 0; leave && i < event.values.size(); ++i) {
        const StorageId storage = state.graph.storage_of(event.values[i]);
        Buffer buffer;
        buffer.bytes = state.graph.value(event.values[i]).bytes();
        buffer.subject = static_cast<std::uint32_t>(storage.index());
        buffer.buffer_class = BufferClass::kPinnedHost;
        buffer.resident = true;
        state.activations[storage.index()].host = state.builder.AddBuffer(buffer);
      }
    }
  }
}

void AddActivationEvent(LowerState& state, const GraphEvent& event) {
  for (const ValueId value : event.values) {
    if (event.kind == GraphEventKind::kOffloadActivation) {
      AddOffload(state, value);
    } else if (event.kind == GraphEventKind::kReloadActivation) {
      AddReload(state, value);
    } else {
      AddWait(state, StreamRole::kCompute,
              state.activations[state.graph.storage_of(value).index()].reload);
    }
  }
}

void AddFreeActivations(LowerState& state) {
  TaskDraft draft = state.Draft(TaskKind::kFree);
  for (std::size_t s = 0; s < state.activations.size(); ++s) {
    OffloadedActivation& activation = state.activations[s];
    if (!activation.device.is_none()) {
      FreeStorage(state, StorageId(s), draft);
      activation.device = BufferId::None();
    }
  }
  if (!draft.memory.empty()) {
    state.builder.Add(draft);
  }
}

}  // namespace dcsim
