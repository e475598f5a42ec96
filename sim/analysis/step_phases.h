#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/schedule.h"
#include "sim/engine/observer.h"

namespace dcsim {

/// The parts of an optimizer step, one after the other in each micro-step.
enum class StepPhase : std::uint8_t { kForward, kBackward, kOptimizer };

/// The phase that a task on the compute stream begins or goes on with: recorded ops by their graph,
/// what is done with gradients the backward, the norm and all behind it the optimizer. None for
/// tasks that come in several phases, such as waits: those go on with the phase before them.
std::optional<StepPhase> PhaseOf(const Task& task, const Schedule& schedule, const Graph& graph);

/// Splits one step of a simulation into its phases. A phase lasts from the start of its first task
/// on the compute stream to the start of the next phase's, so that what the compute stream waits
/// for in between counts to the phase before. The step begins with the forward and ends with the
/// optimizer's collectives. The phases add up to the step time.
class StepPhases : public Observer {
 public:
  StepPhases(const Schedule& schedule, const Graph& graph, std::uint32_t step)
      : schedule_(schedule),
        graph_(graph),
        step_(step),
        counting_(step == 0) {}

  void OnStepEnded(const StepEvent& event) override;
  void OnTaskStarted(const TaskEvent& event) override;
  void OnMicroStep(const MicroStepEvent& event, std::vector<std::int64_t>& state) override;
  void OnRepeat(const RepeatEvent& event) override;

  /// Of all micro-steps together.
  Duration time(StepPhase phase) const { return times_[static_cast<std::size_t>(phase)]; }

 private:
  void Sweep(SimTime now);

  const Schedule& schedule_;
  const Graph& graph_;
  std::uint32_t step_;
  bool counting_;
  SimTime swept_;  // everything before it is counted
  StepPhase phase_ = StepPhase::kForward;
  std::array<Duration, 3> times_;
  std::vector<std::array<Duration, 3>> marks_;  // where the step's micro-steps began
};

}  // namespace dcsim
