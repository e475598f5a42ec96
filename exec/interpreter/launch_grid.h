#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "exec/device/gpu_kernel.h"
#include "model/ir/graph.h"

namespace dcsim::exec {

/// Why a grid cannot be found by this rule of Inductor's with these block sizes, in words that
/// follow a kernel's name; "" where it can.
std::string FindGridFault(const std::string& rule, const KernelConfig& config);

/// The grid by one of Inductor's rules (GridExpr of torch/_inductor/runtime/triton_heuristics.py).
///
///   rule     one without a fault
///   numbers  what the launch is given for "xnumel", "ynumel" and "znumel"; a missing one counts 1
LaunchGrid GridOf(const std::string& rule,
                  const KernelConfig& config,
                  const std::map<std::string, std::int64_t>& numbers);

}  // namespace dcsim::exec
