#pragma once

#include <vector>

#include "model/base/units.h"
#include "model/ir/profile.h"

namespace dcsim {

/// A point of the table of all-gathers that DeepCompile measures before its prefetch pass.
struct GatherTime {
  Bytes bytes;  // of the whole tensor
  Duration time;
};

/// What policies may know about the machine: what DeepCompile measures while it compiles. Made
/// from a cluster and a profile by MeasureForPolicy (sim/analysis). Empty: nothing was measured, as
/// when DeepSpeed's profiler fails.
struct PolicyInputs {
  std::vector<Duration> op_times;              // by OpId; empty when nothing was measured
  const Profile* profile = nullptr;            // footprints of ops, or null
  std::vector<GatherTime> gather_times;        // ascending
  Duration gather_call;                        // an all-gather that finds its parameter gathered
  BytesPerSecond reload_rate{10'000'000'000};  // from pinned memory; DeepSpeed's own if unmeasured
  Bytes device_memory;
  Bytes outside_allocator;        // context, modules and NCCL buffers of one process
  std::vector<Bytes> workspaces;  // that libraries allocate once

  bool complete() const { return !op_times.empty(); }
};

}  // namespace dcsim
