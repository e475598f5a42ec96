#pragma once

#include <string>

#include "model/ir/document.h"
#include "tools/common/beside.h"

namespace dcsim {

/// A traced step beside the predicted one: by class of work, then the tasks that take longest.
///
///   beside step.json.gz, steps 4 to 6
///   kernels                 measured  predicted  difference
///   matrix products          97.2 ms    94.3 ms      -3.0 %
///   ...
///
/// A task that only one side has shows "-" for the other.
std::string PrintBesideText(const Beside& beside);

/// dc-beside/1 (docs/reference/formats.md), with all tasks.
Json PrintBeside(const Beside& beside, const Result& result);

}  // namespace dcsim
