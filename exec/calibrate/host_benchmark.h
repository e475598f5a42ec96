#pragma once

#include "exec/communicator/communicator.h"
#include "model/base/units.h"

namespace dcsim::exec {

/// What calls cost the host thread of this machine; medians.
struct HostSample {
  Duration view;         // dispatch of an op without a kernel
  Duration launch;       // of an elementwise op with its kernel
  Duration event;        // record an event, or make a stream wait for one
  Duration synchronize;  // wait for a stream that is idle
  Duration segment;      // cudaMalloc or cudaFree of 64 MiB
  int launch_queue = 0;  // launches of one stream that have not ended, beyond which one waits
};

HostSample BenchmarkHost();

/// What collectives cost the host where there is one rank, which copies on its own GPU; medians.
/// Of several ranks BenchmarkCollectives tells it.
struct CollectiveHostSample {
  Duration collective;  // one NCCL call
  Duration grouped;     // each further call of an NCCL group
  Duration copy;        // a copy of a gather by copy engines
};

/// `communicator` has one rank.
CollectiveHostSample BenchmarkOneRank(Communicator& communicator);

}  // namespace dcsim::exec
