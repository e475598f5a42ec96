#pragma once

#include <string>

#include "model/machine/cluster.h"
#include "tools/common/fit_search.h"

namespace dcsim {

/// The verdict and how far it is from the limit in the first line; below it the changes that make
/// the step fit, or faster, cheapest first.
std::string PrintFitText(const FitFindings& findings, const Cluster& cluster);

/// dc-fit/1 (docs/reference/formats.md): every change that was predicted, cheapest first.
Json PrintFit(const FitFindings& findings);

}  // namespace dcsim
