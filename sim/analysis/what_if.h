#pragma once

#include <string>
#include <vector>

#include "model/ir/schedule.h"
#include "model/machine/cluster.h"
#include "sim/analysis/step_clock.h"

namespace dcsim {

/// One thing that is other than the cluster file says.
struct Change {
  std::string name;
  double ops = 1;                   // factor of the times of ops
  double memory_work = 1;           // … of copies into buckets, division, the optimizer
  double host_copies = 1;           // … of copies from and to pinned host memory
  double collectives = 1;           // … of collectives
  double host = 1;                  // … of the host's calls
  double contention = 1;            // factor of what tasks lose beside others; 0: nothing
  bool gaps = true;                 // false: collectives start at once
  bool waiting_streams = true;      // false: those that wait delay no kernels
  std::int64_t more_bandwidth = 0;  // bytes/s added to the bus bandwidth that wire bytes take
};

/// Step time with a change, everything else alike; 0 when the step does not complete.
Duration StepTimeWith(const Change& change,
                      const Schedule& schedule,
                      const ClockedCosts& costs,
                      const Cluster& cluster);

/// What would help: each cause of time taken away by itself.
std::vector<Change> RemovedCauses();

/// Errors that tables may have: op times +-5 %, collectives +-10 %, losses beside others +-30 %,
/// host calls +-20 %.
std::vector<Change> TableErrors();

}  // namespace dcsim
