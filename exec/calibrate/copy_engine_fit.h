#pragma once

#include "model/machine/cluster.h"

namespace dcsim::exec {

/// Gathers by copy engines, over all ranks at once. Times are from event to event around a gather
/// that waits for nothing of the host.
struct CopyEngineSample {
  int tensors = 0;  // of `many`
  Duration one;     // median, of one tensor of a few bytes
  Duration many;    // median, of so many of them in one launch
  Bytes payload;    // of the large gather: a full tensor
  Duration least;   // its shortest: of ranks that read each from another one
  Duration median;  // of gathers that follow each other, while ranks drift apart
};

/// What CopyGatherTime takes (model/cost/copy_gather_time.h). `copy`: of a copy within the GPU,
/// bytes read plus written. Two ranks do not crowd.
CopyEngines FitCopyEngines(const CopyEngineSample& sample, int ranks, BytesPerSecond copy);

}  // namespace dcsim::exec
