#pragma once

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

}  // namespace dcsim::exec
