#include "model/cost/collective_cost.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <vector>

#include "model/base/scaled.h"
#include "model/cost/collective_models.h"
#include "model/cost/collective_tables.h"
#include "model/cost/group_channels.h"

namespace dcsim {
namespace {

/// Calls of a group whose descriptions (112 bytes each, and 16 for each of 24 channels) fit into a
/// kernel's arguments, 4 KiB; kernels read more from a queue in the host's memory. Source: NCCL
/// 2.28.9, src/include/device.h, ncclMaxKernelArgsSize and ncclDevWorkColl.
constexpr std::size_t kCallsInArguments = 32;

/// CollectiveTime of tensors that begin at multiples of 16 bytes, their parts too.
Estimate AlignedTime(
    const Cluster& cluster, CollectiveKind kind, Bytes payload, int ranks, double calls) {
  return PriceOf({kind, payload, ranks, calls}, cluster).whole;
}

/// What a gather that takes `time` otherwise takes longer.
Duration ShiftedShardsDelay(
    const Cluster& cluster, Bytes payload, int ranks, const GroupShape& group, Duration time) {
  const auto& gathers = cluster.shifted_shard_gathers;
  if (!gathers || ranks == 1 || group.shifted_shards == 0 || payload <= gathers->above) {
    return Duration();
  }
  const Duration start =
      AlignedTime(cluster, CollectiveKind::kAllGather, Bytes(1), ranks, group.calls).time;
  const auto beyond = static_cast<double>(std::max(time - start, Duration()).ns());
  const double ns = static_cast<double>(gathers->start.ns()) + beyond * (gathers->times - 1);
  return NearestNs(ns * group.shifted_shards);
}

/// What one call more on a channel adds to a group's time where all are short; 0 without a table
/// that tells.
double ShortCallNs(const Cluster& cluster, CollectiveKind kind, int ranks) {
  const CollectiveTable* nearest = nullptr;
  for (const CollectiveTable& table : cluster.collectives) {
    const bool tells = table.kind == kind && table.calls > static_cast<int>(kCallsInArguments) &&
                       TableApplies(cluster, table);
    if (tells &&
        (nearest == nullptr || std::abs(table.ranks - ranks) < std::abs(nearest->ranks - ranks))) {
      nearest = &table;
    }
  }
  if (nearest == nullptr) {
    return 0;
  }
  const CollectivePoint& smallest = nearest->points.front();
  const Bytes of_call(smallest.payload.count() / nearest->calls);
  const std::vector<Bytes> calls(static_cast<std::size_t>(nearest->calls), of_call);
  const auto on_channel = FirstChannel(kind, calls, cluster.collective_channels).size();
  const Duration alone = AlignedTime(cluster, kind, of_call, nearest->ranks, 1).time;
  const double more = static_cast<double>((smallest.time - alone).ns());
  return on_channel < 2 ? 0 : std::max(0.0, more) / static_cast<double>(on_channel - 1);
}

void AddShortCalls(const Cluster& cluster,
                   CollectiveKind kind,
                   Bytes payload,
                   int ranks,
                   std::span<const Bytes> first_channel,
                   Estimate& time) {
  const double short_call = ShortCallNs(cluster, kind, ranks);
  const double start =
      static_cast<double>(AlignedTime(cluster, kind, Bytes(1), ranks, 1).time.ns());
  const double beyond = std::max(0.0, static_cast<double>(time.time.ns()) - start);
  const double whole = static_cast<double>(std::max(payload, Bytes(1)).count());
  double channel = start - short_call;
  for (const Bytes bytes : first_channel) {
    const double share = static_cast<double>(bytes.count()) / whole;
    channel += std::max(short_call, share * cluster.collective_channels * beyond);
  }
  if (const Duration longer = NearestNs(channel); longer > time.time) {
    time.time = longer;
    time.source = std::max(time.source, Source::kInterpolated);
  }
}

}  // namespace

DeviceUse CollectiveUse(Engine engine, int ranks) {
  if (ranks == 1) {
    return DeviceUse::kSideStreaming;
  }
  return engine == Engine::kNccl ? DeviceUse::kCollective : DeviceUse::kCopyEngine;
}

Duration CollectiveStart(const Cluster& cluster, int ranks) {
  return ranks == 1 ? cluster.gpu.kernel_start() : Duration();
}

Bytes PayloadOf(std::span<const CollectivePart> parts) {
  return std::accumulate(parts.begin(), parts.end(), Bytes(),
                         [](Bytes sum, const CollectivePart& part) { return sum + part.payload; });
}

double AlikeCalls(std::span<const CollectivePart> parts) {
  double sum = 0;
  double squares = 0;
  for (const CollectivePart& part : parts) {
    const auto bytes = static_cast<double>(part.payload.count());
    sum += bytes;
    squares += bytes * bytes;
  }
  return squares == 0 ? 1 : sum * sum / squares;
}

double UnalignedShare(CollectiveKind kind, std::span<const CollectivePart> parts, int ranks) {
  constexpr std::int64_t kAlignment = 16;
  double whole = 0;
  double unaligned = 0;
  for (const CollectivePart& part : parts) {
    const std::int64_t of_rank =
        kind == CollectiveKind::kAllReduce ? 0 : part.payload.count() / ranks;
    int slow = 0;  // ranks' parts
    for (int rank = 0; rank < ranks; ++rank) {
      slow += (part.offset.count() + rank * of_rank) % kAlignment == 0 ? 0 : 1;
    }
    const double share = kind == CollectiveKind::kAllGather ? 1.0 * slow / ranks : slow > 0 ? 1 : 0;
    whole += static_cast<double>(part.payload.count());
    unaligned += share * static_cast<double>(part.payload.count());
  }
  return whole == 0 ? 0 : unaligned / whole;
}

Estimate CollectiveTime(const Cluster& cluster,
                        CollectiveKind kind,
                        Bytes payload,
                        int ranks,
                        const GroupShape& group) {
  Estimate time = AlignedTime(cluster, kind, payload, ranks, group.calls);
  const double times = cluster.unaligned_collectives[static_cast<std::size_t>(kind)];
  if (group.unaligned > 0 && times > 1 && ranks > 1) {
    const Duration start = AlignedTime(cluster, kind, Bytes(1), ranks, group.calls).time;
    const double beyond = static_cast<double>(std::max(time.time - start, Duration()).ns());
    time.time += NearestNs(beyond * (times - 1) * group.unaligned);
  }
  if (kind == CollectiveKind::kAllGather) {
    time.time += ShiftedShardsDelay(cluster, payload, ranks, group, time.time);
  }
  if (ranks > 1 && !group.first_channel.empty()) {
    AddShortCalls(cluster, kind, payload, ranks, group.first_channel, time);
  }
  return time;
}

namespace {

/// Of the payload, what is in calls whose shards are shifted.
double ShiftedShare(std::span<const CollectivePart> parts) {
  Bytes shifted;
  for (const CollectivePart& part : parts) {
    shifted += part.shifted_shard ? part.payload : Bytes();
  }
  return shifted == Bytes()
             ? 0
             : static_cast<double>(shifted.count()) / static_cast<double>(PayloadOf(parts).count());
}

std::vector<Bytes> PayloadsOf(std::span<const CollectivePart> parts) {
  std::vector<Bytes> payloads(parts.size());
  std::transform(parts.begin(), parts.end(), payloads.begin(),
                 [](const CollectivePart& part) { return part.payload; });
  return payloads;
}

}  // namespace

Estimate GroupTime(const Cluster& cluster,
                   CollectiveKind kind,
                   std::span<const CollectivePart> parts,
                   int ranks) {
  const Bytes whole = PayloadOf(parts);
  GroupShape shape{AlikeCalls(parts), UnalignedShare(kind, parts, ranks), ShiftedShare(parts), {}};
  if (ranks == 1) {
    Estimate time = CollectiveTime(cluster, kind, whole, ranks);
    time.time += kind == CollectiveKind::kAllReduce
                     ? Duration()
                     : cluster.gpu.memory_pace() * static_cast<std::int64_t>(parts.size() - 1);
    return time;
  }
  if (parts.size() > kCallsInArguments && cluster.collective_channels > 0) {
    shape.first_channel = FirstChannel(kind, PayloadsOf(parts), cluster.collective_channels);
  }
  return CollectiveTime(cluster, kind, whole, ranks, shape);
}

Share GroupDemand(const Cluster& cluster,
                  CollectiveKind kind,
                  std::span<const CollectivePart> parts,
                  int ranks) {
  if (ranks == 1) {
    const Bytes whole = PayloadOf(parts);
    return DemandOf(CollectiveTime(cluster, kind, whole, ranks).time,
                    GroupTime(cluster, kind, parts, ranks).time);
  }
  const int channels = cluster.collective_channels;
  if (channels == 0) {
    return Share::All();
  }
  return Share::Of(ChannelsTaken(kind, PayloadsOf(parts), channels), channels);
}

}  // namespace dcsim
