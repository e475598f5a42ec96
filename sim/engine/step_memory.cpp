#include "sim/engine/step_memory.h"

#include <algorithm>

#include "model/base/error.h"

namespace dcsim {

StepMemory::StepMemory(const Schedule& schedule, const AllocatorConfig& config)
    : schedule_(schedule),
      allocator_(config),
      blocks_(schedule.buffers().size(), kNoBlock) {
  for (std::size_t i = 0; i < schedule.buffers().size(); ++i) {
    if (schedule.buffers()[i].carried) {
      odd_blocks_.emplace_back(BufferId(i), kNoBlock);
    }
  }
  for (const BufferId id : schedule.residents()) {
    if (!schedule.buffer(id).first_user.is_none()) {
      AddFirstCall(id);
    }
  }
}

void StepMemory::AddFirstCall(BufferId resident) {
  const TaskId task = schedule_.buffer(resident).first_user;
  const auto memory = schedule_.memory(task);
  if (first_calls_.empty() || first_calls_.back().task != task) {
    first_calls_.push_back({task, {memory.begin(), memory.end()}});
  }
  // Behind the first block, and behind the residents that are there already.
  std::vector<MemoryStep>& calls = first_calls_.back().memory;
  const std::size_t before = calls.size() - memory.size();
  const bool allocates = !memory.empty() && !memory.front().frees;
  const auto place = static_cast<std::ptrdiff_t>(before + (allocates ? 1 : 0));
  calls.insert(calls.begin() + place, {resident, false});
}

BlockHandle& StepMemory::Slot(BufferId id, std::uint32_t step) {
  if (!schedule_.buffer(id).carried || step % 2 == 0) [[likely]] {
    return blocks_[id.index()];
  }
  const auto entry = std::find_if(odd_blocks_.begin(), odd_blocks_.end(),
                                  [id](const auto& each) { return each.first == id; });
  return entry->second;
}

void StepMemory::Adopt(BufferId id, BlockHandle block) {
  BlockHandle& slot = Slot(id, step_);
  DCSIM_CHECK(slot == kNoBlock) << "buffer " << id.index() << " is allocated twice";
  slot = block;
  if (allocator_.keeps_log()) [[unlikely]] {
    logged_.push_back(id);
  }
  live_ += schedule_.buffer(id).bytes;
  peak_live_ = std::max(peak_live_, live_);
}

StepMemory::Status StepMemory::Allocate(BufferId id, const StreamProgress& progress) {
  const Buffer& buffer = schedule_.buffer(id);
  const Allocation allocation =
      allocator_.Allocate(buffer.bytes, StreamId(buffer.pool), progress.ended);
  if (allocation.status != AllocationStatus::kOk) [[unlikely]] {
    refused_ = id;
    return allocation.status == AllocationStatus::kNeedsSynchronize ? Status::kNeedsSynchronize
                                                                    : Status::kOutOfMemory;
  }
  Adopt(id, allocation.block);
  return Status::kDone;
}

void StepMemory::Free(BufferId id, const StreamProgress& progress) {
  const Buffer& buffer = schedule_.buffer(id);
  // A carried buffer is that of the step before; the first step has none.
  BlockHandle& slot = Slot(id, buffer.carried ? step_ + 1 : step_);
  if (slot == kNoBlock) {
    DCSIM_CHECK(buffer.carried) << "buffer " << id.index() << " is freed and not alive";
    return;
  }
  for (std::uint8_t stream = 0; buffer.recorded_streams >> stream != 0; ++stream) {
    if ((buffer.recorded_streams >> stream & 1U) != 0) {
      allocator_.RecordStream(slot, StreamId(stream));
    }
  }
  allocator_.Free(slot, progress.issued);
  slot = kNoBlock;
  live_ -= buffer.bytes;
}

StepMemory::Status StepMemory::AllocateResidents() {
  const StreamProgress progress;
  for (const BufferId id : schedule_.residents()) {
    if (!schedule_.buffer(id).first_user.is_none()) {
      continue;
    }
    Status status = Allocate(id, progress);
    if (status == Status::kNeedsSynchronize) {
      const Buffer& buffer = schedule_.buffer(id);
      const Allocation allocation =
          allocator_.AllocateAfterSynchronize(buffer.bytes, StreamId(buffer.pool));
      if (allocation.status != AllocationStatus::kOk) {
        return Status::kOutOfMemory;
      }
      Adopt(id, allocation.block);
    }
  }
  return Status::kDone;
}

StepMemory::Status StepMemory::Continue(const StreamProgress& progress) {
  while (!rest_.empty()) {
    const MemoryStep& step = rest_.front();
    if (step.frees) {
      Free(step.buffer, progress);
    } else if (const Status status = Allocate(step.buffer, progress); status != Status::kDone) {
      return status;
    }
    rest_ = rest_.subspan(1);
  }
  return Status::kDone;
}

StepMemory::Status StepMemory::Run(TaskId task,
                                   std::uint32_t step,
                                   const StreamProgress& progress) {
  rest_ = schedule_.memory(task);
  if (step == 0) {
    for (const FirstCalls& first : first_calls_) {
      rest_ = first.task == task ? first.memory : rest_;
    }
  }
  step_ = step;
  return Continue(progress);
}

StepMemory::Status StepMemory::Resume(const StreamProgress& progress) {
  const BufferId id = rest_.front().buffer;
  const Buffer& buffer = schedule_.buffer(id);
  const Allocation allocation =
      allocator_.AllocateAfterSynchronize(buffer.bytes, StreamId(buffer.pool));
  if (allocation.status != AllocationStatus::kOk) {
    return Status::kOutOfMemory;
  }
  Adopt(id, allocation.block);
  rest_ = rest_.subspan(1);
  return Continue(progress);
}

std::vector<LoggedCall> StepMemory::TakeLog() {
  std::vector<LoggedCall> log;
  auto buffer = logged_.begin();
  for (const AllocatorCall& call : allocator_.TakeLog()) {
    const bool allocates = call.action == AllocatorAction::kAlloc;
    log.push_back({call, allocates ? *buffer++ : BufferId::None()});
  }
  logged_.clear();
  return log;
}

std::vector<BufferId> StepMemory::Alive() const {
  std::vector<BufferId> alive;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i] != kNoBlock) {
      alive.emplace_back(i);
    }
  }
  for (const auto& [buffer, odd_block] : odd_blocks_) {
    if (odd_block != kNoBlock) {
      alive.push_back(buffer);
    }
  }
  std::sort(alive.begin(), alive.end());
  return alive;
}

Bytes StepMemory::given_back_since(std::size_t first) const {
  Bytes bytes;
  for (const SegmentEvent& event : allocator_.segment_events().subspan(first)) {
    const bool given_back =
        event.kind == SegmentEventKind::kFree || event.kind == SegmentEventKind::kUnmap;
    bytes += given_back ? event.bytes : Bytes();
  }
  return bytes;
}

void StepMemory::ResetPeaks() {
  allocator_.ResetPeaks();
  peak_live_ = live_;
}

}  // namespace dcsim
