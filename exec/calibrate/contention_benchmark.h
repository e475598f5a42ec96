#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/calibrate/contention_sample.h"
#include "exec/communicator/communicator.h"
#include "exec/launch/rendezvous.h"

namespace dcsim::exec {

/// Times collectives, copies from other GPUs by copy engines, copies from and to the host, and
/// copies and divisions of side streams, of one tensor and of many, while the compute stream runs
/// kernels of each kind back to back; large collectives beside streaming kernels once more while
/// all GPUs read each other's memory; then works of two side streams beside each other, and two
/// collectives on two communicators at once. Spans come from every rank's kernel records on one
/// clock, of copy engines from events. All ranks call it together with two communicators; every
/// rank gets the same samples.
///
/// Ranks go into each repeat together (a collective on the compute stream), with long products in
/// front, so that the host has issued everything before the first kernel in question runs.
std::vector<ContentionSample> BenchmarkContention(
    const std::vector<std::unique_ptr<Communicator>>& communicators,
    Rendezvous& rendezvous,
    const std::function<void(const std::string&)>& report);

}  // namespace dcsim::exec
