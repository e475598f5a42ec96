#pragma once

#include <string>

#include "tools/dc_run/cluster_yaml.h"

namespace dcsim {

/// The `contention` of a GPU file as fitted to the calibration's samples, with its errors, and the
/// samples themselves behind it.
std::string PrintContentionYaml(const CalibrationResult& result,
                                int gpus,
                                const std::string& command);

}  // namespace dcsim
