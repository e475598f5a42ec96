#pragma once

#include "tools/common/deepspeed_settings.h"

namespace dcsim {

/// What checks share.
struct DeepSpeedCheck {
  const DeepSpeedSettings& settings;
  const DeepSpeedJob& job;
  Faults& faults;
};

/// The micro-steps that the file's batch sizes ask for, by DeepSpeed's arithmetic
/// (_set_batch_related_parameters). Faults: sizes that do not agree, and a micro batch that is not
/// the recording's.
std::int64_t ReadBatches(const DeepSpeedCheck& check);

/// Compares fp16, bf16, torch_autocast and data_types with the recording's dtypes.
void CheckDTypes(const DeepSpeedCheck& check);

/// Keys of which one decides what another may say: offloading, sub-groups, clipping.
void CheckCombinations(const DeepSpeedCheck& check, KeyScope scope);

}  // namespace dcsim
