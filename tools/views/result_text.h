#pragma once

#include <string>

#include "model/cost/cluster.h"
#include "model/ir/result.h"

namespace dcsim {

/// A result that a person reads in ten seconds:
///
///   qwen3-8b, ZeRO-3 (plain-1), 8 x NVIDIA H200: completed
///
///   step time              611 ms   53,620 tokens/s   44.7 % model FLOPs utilisation
///     compute              548 ms   89.7 % of the step
///     exposed communication 61.0 ms  10.0 % of the step
///   …
std::string PrintResultText(const Result& result, const Cluster& cluster);

}  // namespace dcsim
