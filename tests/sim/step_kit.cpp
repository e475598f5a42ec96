#include "tests/sim/step_kit.h"

#include <algorithm>
#include <array>
#include <utility>

#include "model/base/error.h"

namespace dcsim {
namespace {

template <typename Record>
const Record& FindRecord(const std::vector<Record>& records, TaskId task, std::uint32_t step) {
  const auto found = std::find_if(records.begin(), records.end(), [&](const Record& each) {
    return each.task == task && each.step == step;
  });
  DCSIM_CHECK(found != records.end()) << "task " << task.index() << " of step " << step;
  return *found;
}

class Recorder : public Observer {
 public:
  explicit Recorder(RunRecord& record) : record_(record) {}

  void OnStepIssued(const StepEvent& event) override { record_.issued.push_back(event); }
  void OnStepEnded(const StepEvent& event) override { record_.ended.push_back(event); }
  void OnTaskEnded(const TaskSpan& span) override { record_.spans.push_back(span); }
  void OnHost(const HostSpan& span) override { record_.host.push_back(span); }
  void OnMemory(const MemoryEvent& event) override {
    record_.memory.push_back({event.task, event.step, event.time, event.live,
                              event.stats->allocated.current, event.stats->reserved.current});
  }

 private:
  RunRecord& record_;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Interval& interval) {
  return out << "[" << interval.start << ", " << interval.end << "] ns";
}

const TaskSpan& RunRecord::span(TaskId task, std::uint32_t step) const {
  return FindRecord(spans, task, step);
}

Interval RunRecord::at(TaskId task, std::uint32_t step) const {
  const TaskSpan& found = span(task, step);
  return {found.start.ns(), found.end.ns()};
}

Interval RunRecord::host_at(TaskId task, std::uint32_t step) const {
  const HostSpan& found = FindRecord(host, task, step);
  return {found.start.ns(), found.end.ns()};
}

SimulationOptions Steps(std::uint32_t steps) {
  SimulationOptions options;
  options.warmup_steps = 0;
  options.measured_steps = steps;
  return options;
}

SimulationOptions OneStep() {
  return Steps(1);
}

SimulationOptions Contending() {
  SimulationOptions options = OneStep();
  options.contention.measured = true;
  return options;
}

void SetRate(SimulationOptions& options, DeviceUse work, DeviceUse beside, int permille) {
  options.contention.rates[static_cast<std::size_t>(work)][static_cast<std::size_t>(beside)] =
      Rate::FromPermille(permille);
}

/// A work that no other one equals, and its cost.
Work StepKit::NewWork(TaskTime time) {
  Work work;
  work.kind = Work::Kind::kMemory;
  work.offset = static_cast<std::int64_t>(costs_.size());
  WorkCost cost;
  cost.device = Duration::FromNs(time.device);
  cost.host = Duration::FromNs(time.host);
  costs_.push_back(cost);
  return work;
}

TaskId StepKit::Add(TaskDraft draft, TaskTime time) {
  work_of_.push_back(costs_.size());
  const Work work = NewWork(time);
  draft.work = draft.work.kind == Work::Kind::kCollective ? draft.work : work;
  return builder_.Add(draft);
}

TaskId StepKit::KernelByRank(StreamRole stream, const std::vector<std::int64_t>& device) {
  work_of_.push_back(costs_.size());
  TaskDraft draft;
  draft.kind = TaskKind::kStoreReduced;
  draft.stream = stream;
  draft.work = NewWork({device.front()});
  for (std::size_t rank = 1; rank < device.size(); ++rank) {
    draft.others.push_back(device[rank] == device.front() ? draft.work : NewWork({device[rank]}));
  }
  return builder_.Add(draft);
}

void StepKit::SetUse(TaskId task, DeviceUse use) {
  WorkCost& changed = cost(task);
  changed.use = use;
  const bool fills = use == DeviceUse::kMatmul || use == DeviceUse::kAttention;
  changed.room = fills ? changed.device : Duration();
}

TaskId StepKit::Kernel(StreamRole stream, TaskTime time, std::vector<TaskId> waits) {
  TaskDraft draft;
  draft.kind = TaskKind::kCompute;
  draft.stream = stream;
  draft.waits = std::move(waits);
  return Add(draft, time);
}

BufferId StepKit::AddGathered(Bytes bytes, ReleaseMode release) {
  Buffer buffer;
  buffer.bytes = bytes;
  buffer.pool = static_cast<std::uint8_t>(StreamRole::kGather);
  if (release == ReleaseMode::kRecordStream) {
    buffer.recorded_streams = StreamBit(StreamRole::kCompute);
  }
  return AddBuffer(buffer);
}

TaskId StepKit::UseAndRelease(BufferId buffer, StreamRole stream, TaskTime time) {
  TaskDraft use;
  use.stream = stream;
  use.Allocate(buffer);
  const TaskId task = Add(use, time);
  TaskDraft free;
  free.kind = TaskKind::kRelease;
  free.Free(buffer);
  Add(free, {});
  return task;
}

TaskId StepKit::Collective(StreamRole stream,
                           TaskTime time,
                           std::uint8_t communicator,
                           std::vector<TaskId> waits) {
  dcsim::Collective collective;
  collective.ranks = 2;
  collective.communicator = communicator;
  collective.calls = {{ParamId(costs_.size()), 50, 0}};  // 50 elements of bfloat16
  return LaunchBehind(std::move(waits), stream, time, collective);
}

TaskId StepKit::Launch(StreamRole stream, TaskTime time, const dcsim::Collective& collective) {
  return LaunchBehind({}, stream, time, collective);
}

TaskId StepKit::LaunchBehind(std::vector<TaskId> waits,
                             StreamRole stream,
                             TaskTime time,
                             const dcsim::Collective& collective) {
  TaskDraft draft;
  draft.kind = TaskKind::kAllGather;
  draft.stream = stream;
  draft.waits = std::move(waits);
  draft.work.kind = Work::Kind::kCollective;
  draft.work.subject = static_cast<std::uint32_t>(builder_.AddCollective(collective).index());
  return Add(draft, time);
}

TaskId StepKit::Wait(StreamRole stream, std::vector<TaskId> waits) {
  TaskDraft draft;
  draft.kind = TaskKind::kWait;
  draft.stream = stream;
  draft.waits = std::move(waits);
  return Add(draft, {});
}

TaskId StepKit::Host(std::int64_t host, std::vector<TaskId> waits) {
  TaskDraft draft;
  draft.kind = TaskKind::kHostSynchronize;
  draft.waits = std::move(waits);
  return Add(draft, {0, host});
}

BufferId StepKit::AddBuffer(Bytes bytes) {
  Buffer buffer;
  buffer.bytes = bytes;
  return AddBuffer(buffer);
}

const Schedule& StepKit::schedule() {
  if (!schedule_) {
    schedule_ = std::move(builder_).Build();
  }
  return *schedule_;
}

RunRecord Record(const Schedule& schedule,
                 std::span<const WorkCost> costs,
                 const SimulationOptions& options) {
  RunRecord record;
  Recorder recorder(record);
  const std::array<Observer*, 1> observers = {&recorder};
  record.result = Simulate(schedule, costs, options, observers);
  return record;
}

}  // namespace dcsim
