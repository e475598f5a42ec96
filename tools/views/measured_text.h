#pragma once

#include <string>

#include "model/ir/result.h"

namespace dcsim {

/// A measured result for people; the same lines as a predicted one where they mean the same.
std::string PrintMeasuredText(const Result& result, const std::string& plan_file);

}  // namespace dcsim
