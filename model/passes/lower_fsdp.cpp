#include "model/passes/lower_state.h"

namespace dcsim {

void AddForwardStart(LowerState& state) {
  if (state.in_fsdp() && !state.first_micro_step()) {
    AddWaitForCompute(state, StreamRole::kCopy);
    AddWaitForCompute(state, StreamRole::kGather);
  }
}

void AddGroupEvent(LowerState& state, const GraphEvent& event, const Subgraph& subgraph) {
  switch (event.kind) {
    case GraphEventKind::kGather:
      return AddGroupGather(state, event.params);
    case GraphEventKind::kWait:
      return AddGroupWait(state, event.params, subgraph.direction == Direction::kForward);
    case GraphEventKind::kRelease:
      return AddGroupRelease(state, event.params);
    default:
      return AddGroupReduction(state, subgraph, event.params);
  }
}

}  // namespace dcsim
