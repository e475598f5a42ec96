#pragma once

#include <span>
#include <vector>

#include "model/base/units.h"
#include "model/ir/schedule.h"

namespace dcsim {

/// What NCCL puts on the first of its channels (thread blocks) when it spreads the calls of a group
/// over them: of each call there its bytes, ascending.
///
/// NCCL sorts a group's calls by size and lays them one behind another, smallest first, on channels
/// of equal traffic: a byte of an all-reduce counts twice, and no call counts less than 16 KiB. So
/// a group's biases and norms all end up on the first channel, where they run one after the other,
/// and the others wait for it. Source: NCCL 2.28.9, src/enqueue.cc, scheduleCollTasksToPlan; as if
/// no call took the LL protocol, whose bytes count four times.
///
///   payloads  of the calls, in any order
///   channels  >= 1
std::vector<Bytes> FirstChannel(CollectiveKind kind, std::span<const Bytes> payloads, int channels);

/// On how many of its channels NCCL puts these calls, by the same rule: a gather of a norm's
/// weights takes one thread block. At most `channels`, which is >= 1.
int ChannelsTaken(CollectiveKind kind, std::span<const Bytes> payloads, int channels);

}  // namespace dcsim
