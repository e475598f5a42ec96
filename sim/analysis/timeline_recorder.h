#pragma once

#include "model/ir/timeline.h"
#include "sim/engine/observer.h"

namespace dcsim {

/// Keeps one step of a simulation as a Timeline; times count from the end of the step before.
class TimelineRecorder : public Observer {
 public:
  explicit TimelineRecorder(std::uint32_t step) : step_(step) {}

  void OnStepEnded(const StepEvent& event) override;
  void OnTaskEnded(const TaskSpan& span) override;
  void OnHost(const HostSpan& span) override;
  void OnMemory(const MemoryEvent& event) override;

  /// The step that was asked for, once the simulation is over.
  Timeline timeline() const;

 private:
  std::uint32_t step_;
  SimTime start_;  // end of the step before
  SimTime end_;
  Timeline kept_;  // in simulated time
};

}  // namespace dcsim
