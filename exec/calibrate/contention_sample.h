#pragma once

#include <cstdint>
#include <string>

#include "model/base/units.h"
#include "model/cost/memory_load.h"
#include "model/machine/contention.h"

namespace dcsim::exec {

/// Copies between a GPU and pinned memory of its host, timed beside compute; kNone is other work.
enum class HostCopy : std::uint8_t { kNone, kOut, kBack };

/// How kernels of the compute stream, or work of a side stream, and one piece of work on another
/// stream disturbed each other.
/// Times are medians over repeats, and over ranks where each rank has its own; the speed is a mean.
struct ContentionSample {
  std::string compute;  // op and shapes, or work of a side stream, back to back
  DeviceUse use = DeviceUse::kMatmul;
  std::int64_t tiles = 0;    // of a product, as the model counts them; 0: not known
  MovedBytes moved;          // by one streaming op
  Duration compute_alone;    // one op, from its start to the next one's
  double compute_speed = 1;  // beside the other work, as a share of its speed alone; 1 also of
                             // copies between GPUs, which are not seen one by one

  std::string beside;  // "all_gather 128 MiB"
  DeviceUse beside_use = DeviceUse::kCollective;
  HostCopy host = HostCopy::kNone;
  Bytes payload;             // of a collective or of a copy
  std::int64_t kernels = 1;  // of the work, one behind another
  bool peers_read = false;   // all GPUs read each other's memory meanwhile, on a third stream
  Duration beside_moving;    // of many: what one kernel that moves as much takes alone
  Duration beside_alone;     // from the last rank's start to the end
  Duration beside_time;      // the same, beside compute
  double beside_spread = 0;  // of all repeats, over the median
  Duration start_delay;      // from the end of the op that it waited for until it starts
  Duration skew;             // from the first rank's start to the last one's
  /// How often, of all ranks and repeats, a collective that an op's end let start did so before the
  /// next op, and by how much later than usual this one then started.
  double first = 0;
  Duration first_delay;
};

}  // namespace dcsim::exec
