#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "exec/executor/step_executor.h"
#include "model/ir/result.h"
#include "model/ir/schedule.h"

namespace dcsim::exec {

/// Where the GPU is in its queue.
struct GpuMarks {
  std::function<void()> set;  // behind what was launched so far: the n-th call sets mark n, from 0
  std::function<bool(std::size_t n)> passed;  // asked of the last three only
};

/// Times the host in the ops of steps that run one behind another, by stretches of some ops.
///
/// A launch waits where the GPU is more than the launch queue behind (docs/costs.md, Host). So a
/// stretch counts where the GPU was two stretches behind at most, both when the host began it and
/// when it had issued it.
class HostPace : public TaskListener {
 public:
  HostPace(const Schedule& schedule, GpuMarks marks);

  void BeforeTask(TaskId id) override;
  void AfterTask(TaskId id) override;

  /// Of the steps of which a stretch counts the one that took the median time an op; no ops where
  /// these are less than half of `steps`.
  HostReading reading(std::size_t steps) const;

 private:
  using Clock = std::chrono::steady_clock;
  using Times = std::vector<std::optional<Duration>>;  // of the stretches of a step

  bool Counts(TaskId id) const;
  void EndStretch();

  const Schedule& schedule_;
  GpuMarks marks_;
  std::size_t stretch_;    // ops
  std::size_t ops_ = 0;    // of this stretch so far
  std::size_t ended_ = 0;  // stretches of all steps
  bool near_ = true;       // whether the GPU was when the last stretch ended
  Clock::duration passed_{};
  Clock::time_point started_;
  std::vector<Times> steps_;
};

}  // namespace dcsim::exec
