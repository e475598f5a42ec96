#pragma once

#include <string>

#include "model/ir/result.h"
#include "model/machine/cluster.h"

namespace dcsim {

/// Whose kernels a result's plan runs: "aten", also where it does not say, or "inductor".
std::string BackendOf(const Result& result);

/// "qwen3-8b, ZeRO-3 (plain-1, inductor), 8 x NVIDIA H200"
std::string TitleOf(const Result& result, const Cluster& cluster);

/// A result that a person reads in ten seconds, the verdict first:
///
///   fits: 47.5 of 138 GiB reserved
///   qwen3-8b, ZeRO-3 (plain-1, inductor), 8 x NVIDIA H200
///
///   step time              647 ms   +/- 21.4 ms (90 %), 6,327 tokens/s/GPU, 31.8 % MFU
///     forward              201 ms   31.1 % of the step
///   …
std::string PrintResultText(const Result& result, const Cluster& cluster);

}  // namespace dcsim
