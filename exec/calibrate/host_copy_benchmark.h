#pragma once

#include "exec/launch/rendezvous.h"
#include "model/base/units.h"

namespace dcsim::exec {

/// Copies between every GPU and pinned memory of its host, all GPUs at once: the slowest one's.
struct HostCopySample {
  BytesPerSecond offload;  // out, nothing coming back
  BytesPerSecond reload;   // back, nothing going out
  BytesPerSecond offload_beside_reload;
  BytesPerSecond reload_beside_offload;
};

/// Copies of 64 MiB, one behind another on a stream each way. All ranks call it together; every
/// rank gets the same sample.
HostCopySample BenchmarkHostCopies(Rendezvous& rendezvous);

}  // namespace dcsim::exec
