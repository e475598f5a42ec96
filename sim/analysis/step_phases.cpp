#include "sim/analysis/step_phases.h"

namespace dcsim {

std::optional<StepPhase> PhaseOf(const Task& task, const Schedule& schedule, const Graph& graph) {
  switch (task.kind) {
    case TaskKind::kCompute: {
      const Op& op = graph.op(OpId(schedule.work(task.work).subject));
      const bool forward = graph.graphs[op.graph.index()].direction == Direction::kForward;
      return forward ? StepPhase::kForward : StepPhase::kBackward;
    }
    case TaskKind::kSetTangents:
    case TaskKind::kAccumulate:
    case TaskKind::kMakeContiguous:
    case TaskKind::kReduceGradCopy:
    case TaskKind::kPreDivide:
    case TaskKind::kCastBucket:
    case TaskKind::kFlatten:
    case TaskKind::kUnflatten:
    case TaskKind::kStoreReduced:
    case TaskKind::kReduceCopyIn:
      return StepPhase::kBackward;
    case TaskKind::kGradientNorm:
    case TaskKind::kCastGradients:
    case TaskKind::kClipGradients:
    case TaskKind::kOptimizerStep:
    case TaskKind::kStoreParams:
      return StepPhase::kOptimizer;
    default:
      return std::nullopt;
  }
}

void StepPhases::Sweep(SimTime now) {
  if (counting_) {
    times_[static_cast<std::size_t>(phase_)] += now - swept_;
  }
  swept_ = now;
}

void StepPhases::OnStepEnded(const StepEvent& event) {
  Sweep(event.time);
  counting_ = event.step + 1 == step_;
}

void StepPhases::OnTaskStarted(const TaskEvent& event) {
  if (event.step != step_ || event.stream != static_cast<std::uint8_t>(StreamRole::kCompute)) {
    return;
  }
  const auto phase = PhaseOf(schedule_.task(event.task), schedule_, graph_);
  if (phase && *phase != phase_) {
    Sweep(event.time);
    phase_ = *phase;
  }
}

void StepPhases::OnMicroStep(const MicroStepEvent& event, std::vector<std::int64_t>& state) {
  Sweep(event.time);
  marks_.resize(event.micro_step);
  marks_.push_back(times_);
  state.push_back(static_cast<std::int64_t>(phase_));
}

void StepPhases::OnRepeat(const RepeatEvent& event) {
  for (std::size_t i = 0; event.step == step_ && i < times_.size(); ++i) {
    times_[i] += (times_[i] - marks_[event.from][i]) * event.times;
  }
}

}  // namespace dcsim
