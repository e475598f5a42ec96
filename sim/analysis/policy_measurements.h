#pragma once

#include "model/passes/policy_inputs.h"
#include "sim/analysis/predict.h"

namespace dcsim {

/// What DeepCompile would measure on this machine: device times of the ops (the profile's, else the
/// roofline), all-gathers of 2 to 2^30 elements of bfloat16 as its communication profiler times
/// them, the GPU's memory. A gather that finds its parameter gathered costs a launch.
///
/// Throws Error when a product has a dtype that the GPU table lacks.
PolicyInputs MeasureForPolicy(const PredictionInputs& inputs, int ranks);

}  // namespace dcsim
