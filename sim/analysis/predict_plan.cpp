#include <utility>

#include "model/ir/micro_steps.h"
#include "model/passes/verify.h"
#include "sim/analysis/predict.h"
#include "sim/engine/repeat_finder.h"

namespace dcsim {
namespace {

/// From so few of the plan's micro-steps; nothing where they do not show what the others do.
std::optional<Prediction> PredictFrom(int micro_steps,
                                      const Plan& plan,
                                      const PredictionInputs& inputs) {
  Plan few = plan;
  few.options.gradient_accumulation_steps = micro_steps;
  Schedule schedule = LowerFor(few, inputs);
  const int left_out = plan.options.gradient_accumulation_steps - micro_steps;
  const auto repetition = FindRepetition(schedule, static_cast<std::uint32_t>(left_out));
  if (!repetition) {
    return std::nullopt;
  }
  RequireCorrect(schedule, inputs.graph);
  try {
    Prediction prediction = Predict(std::move(schedule).Repeating(*repetition), plan, inputs,
                                    /*keep_timeline=*/false);
    prediction.micro_steps = micro_steps;
    return prediction;
  } catch (const DoesNotRepeat&) {
    return std::nullopt;
  }
}

}  // namespace

Prediction PredictPlan(const Plan& plan, const PredictionInputs& inputs) {
  constexpr int kFewest = 16;  // in which caches and queues fill, and what follows shows to repeat
  const int all = plan.options.gradient_accumulation_steps;
  const bool alike = inputs.host_pace.empty();  // else each task has a pace of its own
  for (int fewest = kFewest; alike && fewest <= all / 2; fewest *= 2) {
    if (auto prediction = PredictFrom(fewest + (all - fewest) % static_cast<int>(kMicroStepPeriod),
                                      plan, inputs)) {
      return *std::move(prediction);
    }
  }
  const Schedule schedule = LowerFor(plan, inputs);
  RequireCorrect(schedule, inputs.graph);
  Prediction prediction = Predict(schedule, plan, inputs, /*keep_timeline=*/false);
  prediction.micro_steps = all;
  return prediction;
}

}  // namespace dcsim
