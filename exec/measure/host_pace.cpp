#include "exec/measure/host_pace.h"

#include "exec/profiler/percentile.h"

namespace dcsim::exec {

std::size_t FirstOps(const Schedule& schedule) {
  constexpr std::size_t kMost = 300;
  std::size_t ops = 0;
  for (std::size_t i = 0; i < schedule.task_count() && ops < kMost; ++i) {
    const Task& task = schedule.task(TaskId(i));
    if (task.on_host() && !schedule.waits(TaskId(i)).empty()) {
      break;
    }
    ops += task.kind == TaskKind::kCompute ? 1U : 0U;
  }
  return ops;
}

HostPace::HostPace(const Schedule& schedule, std::function<bool()> caught_up)
    : schedule_(schedule),
      most_(FirstOps(schedule)),
      caught_up_(std::move(caught_up)) {}

bool HostPace::Counts(TaskId id) const {
  return ops_ < most_ && schedule_.task(id).kind == TaskKind::kCompute;
}

void HostPace::BeforeTask(TaskId id) {
  if (id.index() == 0) {
    ops_ = 0;
    passed_ = {};
  }
  if (Counts(id)) {
    started_ = Clock::now();
  }
}

void HostPace::AfterTask(TaskId id) {
  if (!Counts(id)) {
    return;
  }
  passed_ += Clock::now() - started_;
  ++ops_;
  if (ops_ == most_ && caught_up_()) {
    times_.push_back(std::chrono::nanoseconds(passed_).count());
  }
}

HostReading HostPace::reading(std::size_t steps) const {
  if (times_.empty() || 2 * times_.size() < steps) {
    return {};
  }
  return {static_cast<std::int64_t>(most_), Duration::FromNs(Median(times_))};
}

}  // namespace dcsim::exec
