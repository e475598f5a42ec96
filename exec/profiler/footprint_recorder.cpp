#include "exec/profiler/footprint_recorder.h"

#include <c10/cuda/CUDACachingAllocator.h>

namespace dcsim::exec {

FootprintRecorder::FootprintRecorder(const Graph& graph)
    : graph_(graph),
      footprints_(graph.ops.size()),
      calls_(std::make_shared<Calls>()) {
  using Entry = c10::cuda::CUDACachingAllocator::TraceEntry;
  c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker(
      [calls = calls_](const Entry& entry) {
        if (!calls->recording) {
          return;
        }
        if (entry.action_ == Entry::ALLOC) {
          FootprintStep step;
          step.block = calls->allocations++;
          step.bytes = Bytes(static_cast<std::int64_t>(entry.size_));
          calls->steps.push_back(step);
          calls->block_at[static_cast<std::size_t>(entry.addr_)] = step.block;
        } else if (entry.action_ == Entry::FREE_REQUESTED) {
          const auto found = calls->block_at.find(static_cast<std::size_t>(entry.addr_));
          if (found != calls->block_at.end()) {
            FootprintStep step;
            step.kind = FootprintStep::Kind::kFree;
            step.block = found->second;
            calls->steps.push_back(step);
            calls->block_at.erase(found);
          }
        }
      });
}

void FootprintRecorder::BeforeOp(OpId) {
  *calls_ = {};
  calls_->recording = true;
}

void FootprintRecorder::AfterOp(OpId id, const Frame& frame) {
  calls_->recording = false;
  const Op& op = graph_.op(id);
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const at::Tensor* output = op.outputs[i].is_none() ? nullptr : &frame[op.outputs[i].index()];
    if (output == nullptr || !output->defined() || !output->is_cuda()) {
      continue;
    }
    const auto address = reinterpret_cast<std::size_t>(output->storage().data());
    const auto found = calls_->block_at.find(address);
    if (found == calls_->block_at.end()) {
      continue;
    }
    for (FootprintStep& step : calls_->steps) {
      const bool own = step.kind == FootprintStep::Kind::kAllocate && step.block == found->second;
      step.output = own && step.output < 0 ? static_cast<std::int32_t>(i) : step.output;
    }
  }
  footprints_[id.index()] = calls_->steps;
}

}  // namespace dcsim::exec
