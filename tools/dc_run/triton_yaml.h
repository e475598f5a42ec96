#pragma once

#include <string>
#include <vector>

#include "tools/dc_run/cluster_yaml.h"

namespace dcsim {

/// The `triton` of a GPU file as fitted to launches (CalibrationResult::launches, which must be
/// there), with what each rate rests on, and the errors of the fit.
///
///   workloads    whose launches they are
///   has_triton   the GPU file has the section, from which rates are kept that no launch shows
std::string PrintTritonYaml(const CalibrationResult& result,
                            const std::vector<std::string>& workloads,
                            bool has_triton,
                            const std::string& command);

}  // namespace dcsim
