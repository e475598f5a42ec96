#pragma once

#include <string>

#include "model/ir/document.h"

namespace dcsim::exec {

/// Number of GPUs that this process can use; 0 without a driver.
int GpuCount();

/// The current GPU's name as the driver reports it.
std::string GpuName();

/// What a measurement was made on: GPU model and count, total memory, CPU, driver. Never a host
/// name.
Json MachineReport();

/// Versions of libtorch, CUDA's runtime and NCCL.
Json VersionReport();

/// Today's date, "2026-11-21".
std::string Today();

}  // namespace dcsim::exec
