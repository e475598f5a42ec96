#pragma once

#include "exec/communicator/communicator.h"
#include "model/base/units.h"

namespace dcsim::exec {

/// What calls cost the host thread of this machine; medians.
struct HostSample {
  Duration view;         // an op without a kernel, among others
  Duration launch;       // an elementwise op with its kernel, among others
  Duration event;        // record an event, or make a stream wait for one
  Duration synchronize;  // from the end of what the host waits for to its next call
  Duration segment;      // cudaMalloc or cudaFree of 64 MiB
  Duration record;       // more of freeing a tensor that another stream used
  Duration take_back;    // of such memory, at an allocation once that stream has passed
  int launch_queue = 0;  // launches of one stream that have not ended, beyond which one waits
};

HostSample BenchmarkHost();

/// What collectives cost the host; medians. Without kernel records, which cost a launch several us.
struct CollectiveHostSample {
  Duration collective;  // one NCCL call
  Duration grouped;     // each further call of an NCCL group
  Duration copy;        // a copy of a gather by copy engines
};

/// All ranks call it together; each gets its own host's times.
CollectiveHostSample BenchmarkCollectiveHost(Communicator& communicator);

}  // namespace dcsim::exec
