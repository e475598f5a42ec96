#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "exec/executor/step_executor.h"
#include "model/ir/result.h"
#include "model/ir/schedule.h"

namespace dcsim::exec {

/// How many ops a step begins with in which the host cannot wait for the GPU unless the launch
/// queue is full of the step before: those before the host's first wait, 300 at most.
std::size_t FirstOps(const Schedule& schedule);

/// Times the host in the first ops of steps that run one behind another.
///
/// A launch waits where the GPU is more than the launch queue behind (docs/costs.md, Host). Then
/// what is left of the step before is more than what these ops launch; so a reading counts where
/// the GPU has ended the step before when the host has issued them.
class HostPace : public TaskListener {
 public:
  /// caught_up   whether the GPU has ended the step before
  HostPace(const Schedule& schedule, std::function<bool()> caught_up);

  void BeforeTask(TaskId id) override;
  void AfterTask(TaskId id) override;

  /// Median over the steps that count; no ops where less than half of `steps` do.
  HostReading reading(std::size_t steps) const;

 private:
  using Clock = std::chrono::steady_clock;

  bool Counts(TaskId id) const;

  const Schedule& schedule_;
  std::size_t most_;
  std::function<bool()> caught_up_;
  std::size_t ops_ = 0;  // of this step so far
  Clock::duration passed_{};
  Clock::time_point started_;
  std::vector<std::int64_t> times_;  // ns
};

}  // namespace dcsim::exec
