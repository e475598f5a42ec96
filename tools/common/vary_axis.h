#pragma once

#include <string>
#include <vector>

#include "tools/common/step_variants.h"

namespace dcsim {

/// A "--vary key=a,b" of the command line: one thing that differs between the rows of a sweep.
struct VaryAxis {
  std::string key;                  // batch, seq, gpus, cluster, cluster.KEY, or a key of plans
  std::vector<std::string> values;  // one or more, each once, in the order in which they were given
};

/// Splits the texts of --vary. Commas inside of [], {} and quotes separate no values. Throws Error
/// where a key is unknown, with the nearest one, or is named twice, or a value is missing, no
/// number where one belongs, or there twice.
std::vector<VaryAxis> ParseAxes(const std::vector<std::string>& texts);

/// Throws Error where an axis sets what an option of the base already does.
void RejectDoubleAxes(const std::vector<VaryAxis>& axes, const StepOptions& base);

/// Gives the axis's key one of its values.
void SetAxis(const VaryAxis& axis, const std::string& value, StepOptions& options);

}  // namespace dcsim
