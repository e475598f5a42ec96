#pragma once

#include <array>
#include <optional>
#include <string>

#include "model/ir/timeline.h"
#include "sim/engine/observer.h"
#include "sim/engine/simulate.h"

namespace dcsim {

/// Keeps one step of a simulation as a Timeline; times count from the end of the step before.
class TimelineRecorder : public Observer {
 public:
  explicit TimelineRecorder(std::uint32_t step) : step_(step) {}

  void OnStepEnded(const StepEvent& event) override;
  void OnTaskStarted(const TaskEvent& event) override;
  void OnTaskEnded(const TaskSpan& span) override;
  void OnHost(const HostSpan& span) override;
  void OnMemory(const MemoryEvent& event) override;

  /// The step that was asked for, once the simulation is over.
  Timeline timeline() const;
  /// The same of the step in which the simulation stopped, up to there: what the host and the
  /// streams were doing ends with it, and memory ends with what there was when a request failed.
  ///
  ///   what   TimelineStop::what
  Timeline TimelineUntil(const Simulation& stopped, const std::string& what);

 private:
  std::uint32_t step_;
  SimTime start_;  // end of the step before
  SimTime end_;
  Timeline kept_;  // in simulated time
  std::array<std::optional<TaskEvent>, kStreamCount> running_;
};

}  // namespace dcsim
