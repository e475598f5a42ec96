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

/// Times the host in steps that run one behind another, by stretches that begin with some ops each
/// (HostReading).
///
/// A launch waits where the GPU is more than the launch queue behind (docs/design/costs/host.md).
/// So a stretch counts where the GPU was two stretches behind at most, both when the host began it
/// and when it had issued it. Tasks that run on the host, which wait for the GPU, do not count.
class HostPace : public TaskListener {
 public:
  ///   stretch   ops, 1 or more; of a schedule of fewer, all of them
  HostPace(const Schedule& schedule, std::size_t stretch, GpuMarks marks);

  void BeforeTask(TaskId id) override;
  void AfterTask(TaskId id) override;

  /// Of all steps so far, the last of which has ended; no ops for one of which no stretch counts.
  std::vector<HostReading> TakeReadings();

 private:
  using Clock = std::chrono::steady_clock;

  bool Computes(TaskId id) const;
  void BeginStep();
  void EndStretch();

  const Schedule& schedule_;
  GpuMarks marks_;
  std::size_t stretch_;    // ops
  std::size_t ops_ = 0;    // of this stretch so far
  std::size_t ended_ = 0;  // stretches of all steps
  bool near_ = true;       // whether the GPU was when the last stretch ended
  Clock::duration computing_{};
  Clock::duration between_{};
  Clock::time_point started_;
  std::vector<HostReading> steps_;
};

/// The stretches of a reading that have a time, as one; what lies between ops where it was read,
/// too. No ops where none has.
HostReading AsOneStretch(const HostReading& reading);

}  // namespace dcsim::exec
