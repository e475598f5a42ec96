#pragma once

#include <string>
#include <vector>

#include "sim/search/candidate.h"
#include "tools/dc_sim/search_report.h"

namespace dcsim {

/// What a search starts from: the baseline, or DeepCompile's plan of each stage that the space has,
/// and the plans of the files, which must train the same. Adds their orders to the problem.
///
///   for_deepspeed   the best plan is to run in DeepSpeed: what DeepSpeed cannot run is left out of
///                   the search's own, and refused in the files
///
/// Throws Error naming the file that trains differently, that DeepSpeed cannot run, or whose plan
/// offloads optimizer states.
std::vector<Candidate> SearchStarts(const LoadedSearch& loaded,
                                    const std::vector<std::string>& files,
                                    bool for_deepspeed,
                                    SearchProblem& problem);

}  // namespace dcsim
