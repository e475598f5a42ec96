#pragma once

#include "tools/common/deepspeed_checks.h"

namespace dcsim {

/// What the section "optimizer" decides.
struct OptimizerChoice {
  Json options;      // keys of a plan spec
  std::string note;  // one sentence, or none
};

/// Reads the optimizer as DeepSpeed makes it (_configure_basic_optimizer). Faults: types that plans
/// do not have, parameters that the optimizer does not take, and types that DeepSpeed's ZeRO does
/// not know without zero_allow_untested_optimizer.
OptimizerChoice ReadOptimizer(const DeepSpeedCheck& check);

}  // namespace dcsim
