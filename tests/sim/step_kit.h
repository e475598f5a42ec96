#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <vector>

#include "model/cost/work_cost.h"
#include "model/ir/schedule.h"
#include "sim/engine/observer.h"
#include "sim/engine/simulate.h"

namespace dcsim {

/// Nanoseconds of a task on its stream, and of the host to issue it.
struct TaskTime {
  std::int64_t device = 0;
  std::int64_t host = 0;
};

/// From a first to a last nanosecond.
struct Interval {
  std::int64_t start = 0;
  std::int64_t end = 0;

  bool operator==(const Interval&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Interval& interval);

/// What an OnMemory call reported.
struct MemoryRecord {
  TaskId task;
  std::uint32_t step = 0;
  SimTime time;
  Bytes live;
  Bytes allocated;
  Bytes reserved;
};

/// The result of a simulation, and everything that it told its observers.
struct RunRecord {
  /// The span of a task in a step; a failed check when it did not run.
  const TaskSpan& span(TaskId task, std::uint32_t step = 0) const;
  Interval at(TaskId task, std::uint32_t step = 0) const;
  Interval host_at(TaskId task, std::uint32_t step = 0) const;

  Simulation result;
  std::vector<StepEvent> issued;
  std::vector<StepEvent> ended;
  std::vector<TaskSpan> spans;
  std::vector<HostSpan> host;
  std::vector<MemoryRecord> memory;
};

/// Runs a schedule and writes everything down.
RunRecord Record(const Schedule& schedule,
                 std::span<const WorkCost> costs,
                 const SimulationOptions& options);

/// One step, no warm-up, waiting for nothing costs nothing.
SimulationOptions OneStep();

/// The same with contention, in which nothing disturbs anything yet.
SimulationOptions Contending();

/// How fast `work` is beside another.
void SetRate(SimulationOptions& options, DeviceUse work, DeviceUse beside, int permille);
/// So many steps, all measured.
SimulationOptions Steps(std::uint32_t steps);

/// A schedule under construction in which every task takes what the test says.
class StepKit {
 public:
  explicit StepKit(int ranks = 2) : builder_(ranks, {}) {}

  /// A kernel on a stream; host time 0 unless given.
  TaskId Kernel(StreamRole stream, TaskTime time, std::vector<TaskId> waits = {});
  /// A collective of 100 bytes over 2 ranks on a stream.
  TaskId Collective(StreamRole stream,
                    TaskTime time,
                    std::uint8_t communicator = 0,
                    std::vector<TaskId> waits = {});
  /// Any collective.
  TaskId Launch(StreamRole stream, TaskTime time, const dcsim::Collective& collective);
  /// A stream waits for others: no device time.
  TaskId Wait(StreamRole stream, std::vector<TaskId> waits);
  /// Work of the host alone, after it has blocked for the tasks.
  TaskId Host(std::int64_t host, std::vector<TaskId> waits = {});
  /// A kernel that takes another time on each rank.
  TaskId KernelByRank(StreamRole stream, const std::vector<std::int64_t>& device);
  /// Any task; its work is replaced by one of its own.
  TaskId Add(TaskDraft draft, TaskTime time);

  BufferId AddBuffer(const Buffer& buffer) { return builder_.AddBuffer(buffer); }
  /// A buffer from the compute stream's pool.
  BufferId AddBuffer(Bytes bytes);
  /// A gathered parameter, whose release names the compute stream (record_stream) or nobody.
  BufferId AddGathered(Bytes bytes, ReleaseMode release);
  /// A kernel that its buffer is allocated for, and the host's release of the buffer right behind.
  TaskId UseAndRelease(BufferId buffer, StreamRole stream, TaskTime time);

  /// Builds the schedule; nothing can be added afterwards.
  const Schedule& schedule();
  const std::vector<WorkCost>& costs() const { return costs_; }
  /// Every task has a work of its own.
  void SetSource(TaskId task, Source source) { cost(task).source = source; }
  /// Products and attention leave no room before they end.
  void SetUse(TaskId task, DeviceUse use);
  void SetDemand(TaskId task, std::int32_t permille) {
    cost(task).demand = Share::FromPermille(permille);
  }
  void SetMemoryLoad(TaskId task, std::int32_t permille) {
    cost(task).memory_load = Share::FromPermille(permille);
  }
  void SetBesideMemory(TaskId task, std::int32_t permille) {
    cost(task).beside_memory = Longer::FromPermille(permille);
  }
  void SetLaunches(TaskId task, std::int32_t launches) { cost(task).launches = launches; }
  void SetGaps(TaskId task, std::int64_t ns) { cost(task).gaps = Duration::FromNs(ns); }
  void SetStart(TaskId task, std::int64_t ns) { cost(task).start = Duration::FromNs(ns); }
  void SetRoom(TaskId task, std::int64_t ns) { cost(task).room = Duration::FromNs(ns); }
  void SetLastWave(TaskId task, std::int64_t ns, std::int32_t free = 0) {
    cost(task).last_wave = Duration::FromNs(ns);
    cost(task).last_free = free;
  }
  void SetOwnTiles(TaskId task, std::int64_t ns, std::int64_t latest_ns) {
    cost(task).own_tiles = Duration::FromNs(ns);
    cost(task).own_latest = Duration::FromNs(latest_ns);
  }
  /// A gather by copy engines, of whose time the end is the own shard's copy.
  void SetOwnShard(TaskId task, std::int64_t ns) {
    cost(task).use = DeviceUse::kCopyEngine;
    cost(task).own_shard = Duration::FromNs(ns);
  }
  void SetBesideCollective(TaskId task, std::int32_t permille) {
    cost(task).beside_collective = Rate::FromPermille(permille);
  }
  /// A copy from or to the host, and its speed beside another one.
  void SetHostCopy(TaskId task, std::int32_t permille, bool to_host = false) {
    cost(task).use = DeviceUse::kCopyEngine;
    cost(task).beside_host_copy = Rate::FromPermille(permille);
    cost(task).to_host = to_host;
  }
  RunRecord Run(const SimulationOptions& options = OneStep()) {
    return Record(schedule(), costs_, options);
  }

 private:
  TaskId LaunchBehind(std::vector<TaskId> waits,
                      StreamRole stream,
                      TaskTime time,
                      const dcsim::Collective& collective);

  WorkCost& cost(TaskId task) { return costs_[work_of_[task.index()]]; }
  Work NewWork(TaskTime time);

  ScheduleBuilder builder_;
  std::vector<WorkCost> costs_;
  std::vector<std::size_t> work_of_;  // of the first rank, by task
  std::optional<Schedule> schedule_;
};

}  // namespace dcsim
