#pragma once

#include <functional>
#include <string>
#include <vector>

#include "exec/communicator/communicator.h"
#include "exec/launch/rendezvous.h"
#include "model/ir/schedule.h"

namespace dcsim::exec {

/// One of NCCL's collectives at one size, over all ranks.
struct CollectiveSample {
  CollectiveKind kind = CollectiveKind::kAllGather;
  int calls = 1;           // in one NCCL group, of payload / calls each
  bool unaligned = false;  // the full tensor begins 4 bytes behind a multiple of 16
  Bytes payload;           // full tensors
  Duration time;           // median of (last end - last start over the ranks)
  Duration spread;         // 90th minus 10th percentile of the same
  std::int64_t ctas = 0;   // of the kernel
};

/// What to measure.
struct CollectiveSizes {
  Bytes smallest = Bytes(512);
  Bytes largest = Bytes::GiB(2);
  Bytes unaligned = Bytes::MiB(256);  // at most half of the largest
  std::vector<int> group_calls = {2, 4, 8, 16, 64};
};

/// Times every kind of collective alone: payloads by powers of two, single and grouped, one large
/// payload unaligned. Spans come from every rank's kernel records on one clock, so neither host
/// time nor start skew counts. All ranks call it together; every rank gets the same samples.
std::vector<CollectiveSample> BenchmarkCollectives(
    Communicator& communicator,
    Rendezvous& rendezvous,
    const CollectiveSizes& sizes,
    const std::function<void(const std::string&)>& report);

}  // namespace dcsim::exec
