#pragma once

#include <string>

#include "exec/measure/measure_steps.h"

namespace dcsim::exec {

/// A measurement as text, to be sent to another rank of the same program; and back.
std::string PrintRankMeasurement(const RankMeasurement& measurement);
RankMeasurement ParseRankMeasurement(const std::string& text);

}  // namespace dcsim::exec
