#pragma once

#include <vector>

#include "exec/measure/measure_steps.h"
#include "tools/dc_run/rank_job.h"

namespace dcsim {

/// The result of one case from what every rank measured: per step the maximum over ranks, then the
/// median; peaks are maxima over ranks, compute and exposed time means.
Result MeasuredResult(const ExecutionCase& execution,
                      const std::vector<exec::RankMeasurement>& ranks);

}  // namespace dcsim
