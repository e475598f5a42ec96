#include "exec/profiler/footprint_recorder.h"

#include <c10/cuda/CUDACachingAllocator.h>

namespace dcsim::exec {

FootprintRecorder::FootprintRecorder(const Graph& graph)
    : graph_(graph),
      footprints_(graph.ops.size()) {
  using Entry = c10::cuda::CUDACachingAllocator::TraceEntry;
  c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker([this](const Entry& entry) {
    if (!recording_) {
      return;
    }
    if (entry.action_ == Entry::ALLOC) {
      FootprintStep step;
      step.block = allocations_++;
      step.bytes = Bytes(static_cast<std::int64_t>(entry.size_));
      steps_.push_back(step);
      block_at_[static_cast<std::size_t>(entry.addr_)] = step.block;
    } else if (entry.action_ == Entry::FREE_REQUESTED) {
      const auto found = block_at_.find(static_cast<std::size_t>(entry.addr_));
      if (found != block_at_.end()) {
        FootprintStep step;
        step.kind = FootprintStep::Kind::kFree;
        step.block = found->second;
        steps_.push_back(step);
        block_at_.erase(found);
      }
    }
  });
}

void FootprintRecorder::BeforeOp(OpId) {
  steps_.clear();
  block_at_.clear();
  allocations_ = 0;
  recording_ = true;
}

void FootprintRecorder::AfterOp(OpId id, const Frame& frame) {
  recording_ = false;
  const Op& op = graph_.op(id);
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const at::Tensor* output = op.outputs[i].is_none() ? nullptr : &frame[op.outputs[i].index()];
    if (output == nullptr || !output->defined() || !output->is_cuda()) {
      continue;
    }
    const auto address = reinterpret_cast<std::size_t>(output->storage().data());
    const auto found = block_at_.find(address);
    if (found == block_at_.end()) {
      continue;
    }
    for (FootprintStep& step : steps_) {
      const bool own = step.kind == FootprintStep::Kind::kAllocate && step.block == found->second;
      step.output = own && step.output < 0 ? static_cast<std::int32_t>(i) : step.output;
    }
  }
  footprints_[id.index()] = steps_;
}

}  // namespace dcsim::exec
