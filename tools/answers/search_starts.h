#pragma once

#include <iostream>
#include <string>
#include <vector>

#include "sim/search/candidate.h"
#include "tools/answers/search_report.h"
#include "tools/common/compiled_form.h"

namespace dcsim {

/// The graph to search: that for ZeRO-3 where the space has the stage, else that for ZeRO-1 and 2,
/// of the backend "aten" or "inductor"; if empty, of the first of these plan files that has one.
/// An empty name is no plan.
AskedForm SearchForm(const std::string& backend,
                     const std::vector<std::string>& plans,
                     const SearchSpace& space,
                     const DeepSpeedJob& job);

/// What a search starts from: the baseline, or DeepCompile's plan of each stage that the space has,
/// and the plans of the files, which must train the same. Adds their orders to the problem.
///
///   for_deepspeed   the best plan is to run in DeepSpeed: what DeepSpeed cannot run is left out of
///                   the search's own, and refused in the files
///   notes           takes what is said of the files, a line each
///
/// Throws Error naming the file that trains differently, that DeepSpeed cannot run, or whose plan
/// offloads optimizer states.
std::vector<Candidate> SearchStarts(const LoadedSearch& loaded,
                                    const std::vector<std::string>& files,
                                    bool for_deepspeed,
                                    SearchProblem& problem,
                                    std::ostream& notes);

}  // namespace dcsim
