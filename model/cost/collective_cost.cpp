#include "model/cost/collective_cost.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <vector>

#include "model/base/scaled.h"
#include "model/cost/collective_tables.h"
#include "model/cost/group_channels.h"

namespace dcsim {
namespace {

/// Calls of a group whose descriptions (112 bytes each, and 16 for each of 24 channels) fit into a
/// kernel's arguments, 4 KiB; kernels read more from a queue in the host's memory. Source: NCCL
/// 2.28.9, src/include/device.h, ncclMaxKernelArgsSize and ncclDevWorkColl.
constexpr std::size_t kCallsInArguments = 32;

/// A payload whose time is that of starting: bytes hardly count.
constexpr Bytes kNextToNothing = Bytes(64 << 10);

double RingLatency(const Cluster& cluster, CollectiveKind kind, int ranks) {
  return static_cast<double>(RingTime(cluster, kind, Bytes(0), ranks).ns());
}

/// A collective over one number of ranks: what it takes to start, and what the rest would take if
/// the whole payload went through each GPU's links instead of (n-1)/n of it.
struct RankTime {
  double ranks = 0;
  double start = 0;  // ns
  double whole = 0;  // ns
};

RankTime SplitTime(const Cluster& cluster,
                   CollectiveKind kind,
                   Bytes payload,
                   const CollectiveTable& table,
                   double calls) {
  const Estimate time = *FindTableTime(cluster, kind, payload, table.ranks, calls);
  const CollectivePoint& least = table.points.front();
  const auto first = static_cast<double>(least.time.ns());
  const double start = least.payload <= kNextToNothing
                           ? first
                           : std::min(first, RingLatency(cluster, kind, table.ranks));
  const double ranks = table.ranks;
  const double rest = std::max(0.0, static_cast<double>(time.time.ns()) - start);
  return {ranks, start, rest * ranks / (ranks - 1)};
}

/// The tables of single calls whose numbers of ranks are nearest to `ranks`, nearest first.
std::vector<const CollectiveTable*> NearestRanks(const Cluster& cluster,
                                                 CollectiveKind kind,
                                                 int ranks) {
  std::vector<const CollectiveTable*> tables;
  for (const CollectiveTable& table : cluster.collectives) {
    if (table.kind == kind && table.calls == 1 && table.nodes == 1 &&
        TableApplies(cluster, table)) {
      tables.push_back(&table);
    }
  }
  std::stable_sort(tables.begin(), tables.end(),
                   [&](const CollectiveTable* a, const CollectiveTable* b) {
                     return std::abs(a->ranks - ranks) < std::abs(b->ranks - ranks);
                   });
  return tables;
}

/// What tables of other numbers of ranks on one node say, or nothing.
std::optional<Estimate> ExtendTables(
    const Cluster& cluster, CollectiveKind kind, Bytes payload, int ranks, double calls) {
  const auto tables = NearestRanks(cluster, kind, ranks);
  if (tables.empty() || cluster.NodesOf(ranks) > 1) {
    return std::nullopt;
  }
  const double n = ranks;
  const RankTime near = SplitTime(cluster, kind, payload, *tables[0], calls);
  double start = near.start;
  double whole = near.whole;
  if (tables.size() == 1) {
    start += RingLatency(cluster, kind, ranks) - RingLatency(cluster, kind, tables[0]->ranks);
  } else {
    const RankTime far = SplitTime(cluster, kind, payload, *tables[1], calls);
    const auto inverse_square = [](double count) { return 1 / (count * count); };
    start += (near.start - far.start) / (near.ranks - far.ranks) * (n - near.ranks);
    whole += (near.whole - far.whole) / (inverse_square(near.ranks) - inverse_square(far.ranks)) *
             (inverse_square(n) - inverse_square(near.ranks));
  }
  const double ns = std::max(0.0, start) + std::max(0.0, whole) * (n - 1) / n;
  const MeasuredDistance distance{OctavesToTable(*tables[0], payload),
                                  std::abs(std::log2(n / near.ranks))};
  return Estimate{std::max(Duration::FromNs(1), NearestNs(ns)), Source::kEstimated, distance};
}

/// CollectiveTime of tensors that begin at multiples of 16 bytes, their parts too.
Estimate AlignedTime(
    const Cluster& cluster, CollectiveKind kind, Bytes payload, int ranks, double calls) {
  if (ranks == 1 && kind == CollectiveKind::kAllReduce) {
    return {Duration(), Source::kEstimated};
  }
  if (ranks == 1) {
    return {std::max(CopyTime(cluster.gpu, payload), cluster.gpu.shortest_kernel),
            Source::kEstimated};
  }
  if (const auto measured = FindTableTime(cluster, kind, payload, ranks, calls)) {
    return *measured;
  }
  if (const auto extended = ExtendTables(cluster, kind, payload, ranks, calls)) {
    return *extended;
  }
  return {RingTime(cluster, kind, payload, ranks), Source::kEstimated, {}, /*of_link=*/true};
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

Duration RingTime(const Cluster& cluster, CollectiveKind kind, Bytes payload, int ranks) {
  const bool spans_nodes = cluster.NodesOf(ranks) > 1 && cluster.inter_node.has_value();
  const Link& link = spans_nodes ? *cluster.inter_node : cluster.intra_node;
  const BytesPerSecond bandwidth =
      spans_nodes ? std::min(link.bus_bandwidth, cluster.intra_node.bus_bandwidth)
                  : link.bus_bandwidth;
  const std::int64_t passes = kind == CollectiveKind::kAllReduce ? 2 : 1;
  const std::int64_t steps = passes * (ranks - 1);
  const double wire = static_cast<double>(payload.count()) * static_cast<double>(steps) / ranks;
  const Bytes sent(static_cast<std::int64_t>(std::ceil(wire)));
  return link.latency + link.hop_latency * steps + TransferTime(sent, bandwidth);
}

DeviceUse CollectiveUse(Engine engine, int ranks) {
  if (ranks == 1) {
    return DeviceUse::kSideStreaming;
  }
  return engine == Engine::kNccl ? DeviceUse::kCollective : DeviceUse::kCopyEngine;
}

Duration CopyTime(const GpuSpec& gpu, Bytes bytes) {
  const auto rate = static_cast<std::int64_t>(static_cast<double>(gpu.memory_bandwidth.count()) *
                                              gpu.bandwidth_efficiency);
  return TransferTime(bytes * 2, BytesPerSecond(std::max<std::int64_t>(1, rate)));
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
