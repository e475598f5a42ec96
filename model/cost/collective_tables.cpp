#include "model/cost/collective_tables.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "model/base/scaled.h"
#include "model/cost/ring_time.h"

namespace dcsim {
namespace {

/// The tables nearest to `calls`, one with as many or fewer and one with more; either may be null.
struct NearestTables {
  const CollectiveTable* fewer = nullptr;
  const CollectiveTable* more = nullptr;
};

NearestTables FindTables(const Cluster& cluster, CollectiveKind kind, int ranks, double calls) {
  NearestTables nearest;
  for (const CollectiveTable& table : cluster.collectives) {
    if (table.kind != kind || table.ranks != ranks || !TableApplies(cluster, table)) {
      continue;
    }
    if (table.calls <= calls) {
      const bool nearer = nearest.fewer == nullptr || nearest.fewer->calls < table.calls;
      nearest.fewer = nearer ? &table : nearest.fewer;
    } else {
      const bool nearer = nearest.more == nullptr || nearest.more->calls > table.calls;
      nearest.more = nearer ? &table : nearest.more;
    }
  }
  return nearest;
}

/// The straight line through two points, at `payload`, rounded up.
Duration Line(const CollectivePoint& a, const CollectivePoint& b, Bytes payload) {
  const double slope = static_cast<double>((b.time - a.time).ns()) /
                       static_cast<double>((b.payload - a.payload).count());
  const double ns = static_cast<double>(a.time.ns()) +
                    std::max(0.0, slope) * static_cast<double>((payload - a.payload).count());
  return RoundedUpNs(ns);
}

Estimate LineTime(const CollectiveTable& table, Bytes payload, Duration latency) {
  const auto& points = table.points;
  const auto above = std::lower_bound(
      points.begin(), points.end(), payload,
      [](const CollectivePoint& point, Bytes size) { return point.payload < size; });
  if (above != points.end() && above->payload == payload) {
    return {above->time, Source::kMeasured};
  }
  if (above == points.begin()) {
    const CollectivePoint nothing{Bytes(0), std::min(latency, above->time)};
    return {Line(nothing, *above, payload), Source::kEstimated};
  }
  if (above != points.end()) {
    const CollectivePoint& a = *(above - 1);
    const double share = static_cast<double>((payload - a.payload).count()) /
                         static_cast<double>((above->payload - a.payload).count());
    const double ns =
        static_cast<double>(a.time.ns()) + share * static_cast<double>((above->time - a.time).ns());
    return {RoundedUpNs(ns), Source::kInterpolated};
  }
  if (points.size() == 1) {
    const double scale =
        static_cast<double>(payload.count()) / static_cast<double>(points[0].payload.count());
    const double ns = static_cast<double>(points[0].time.ns()) * scale;
    return {RoundedUpNs(ns), Source::kEstimated};
  }
  return {Line(points[points.size() - 2], points.back(), payload), Source::kEstimated};
}

/// What one table says.
Estimate TableTime(const CollectiveTable& table, Bytes payload, Duration latency) {
  Estimate time = LineTime(table, payload, latency);
  time.distance.sizes = OctavesToTable(table, payload);
  return time;
}

std::optional<Estimate> FindTableTime(
    const Cluster& cluster, CollectiveKind kind, Bytes payload, int ranks, double calls) {
  const NearestTables tables = FindTables(cluster, kind, ranks, calls);
  if (tables.fewer == nullptr && tables.more == nullptr) {
    return std::nullopt;
  }
  const Duration latency = RingTime(cluster, kind, Bytes(0), ranks);
  const bool one_side = tables.fewer == nullptr || tables.more == nullptr;
  if (one_side || tables.fewer->calls == calls) {
    return TableTime(tables.fewer == nullptr ? *tables.more : *tables.fewer, payload, latency);
  }
  const Estimate fewer = TableTime(*tables.fewer, payload, latency);
  const Estimate more = TableTime(*tables.more, payload, latency);
  const double share = std::log(calls / tables.fewer->calls) /
                       std::log(1.0 * tables.more->calls / tables.fewer->calls);
  const double ns = static_cast<double>(fewer.time.ns()) +
                    share * static_cast<double>((more.time - fewer.time).ns());
  return Estimate{NearestNs(ns),
                  std::max({fewer.source, more.source, Source::kInterpolated}),
                  {std::max(fewer.distance.sizes, more.distance.sizes), 0}};
}

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

}  // namespace

bool TableApplies(const Cluster& cluster, const CollectiveTable& table) {
  return table.nodes == cluster.NodesOf(table.ranks);
}

double OctavesToTable(const CollectiveTable& table, Bytes payload) {
  const auto& points = table.points;
  const auto above = std::lower_bound(
      points.begin(), points.end(), payload,
      [](const CollectivePoint& point, Bytes size) { return point.payload < size; });
  const auto octaves_to = [payload](const CollectivePoint& point) {
    const double least = static_cast<double>(std::max(payload, Bytes(1)).count());
    return std::abs(std::log2(static_cast<double>(point.payload.count()) / least));
  };
  if (above == points.begin()) {
    return octaves_to(*above);
  }
  const double below = octaves_to(*(above - 1));
  return above == points.end() ? below : std::min(below, octaves_to(*above));
}

std::optional<CollectivePrice> TablePrice(const CollectiveTraits& of, const Cluster& cluster) {
  const auto time = FindTableTime(cluster, of.kind, of.payload, of.ranks, of.calls);
  return time ? std::optional(CollectivePrice{*time}) : std::nullopt;
}

std::optional<CollectivePrice> OtherRanksPrice(const CollectiveTraits& of, const Cluster& cluster) {
  const auto time = ExtendTables(cluster, of.kind, of.payload, of.ranks, of.calls);
  return time ? std::optional(CollectivePrice{*time}) : std::nullopt;
}

}  // namespace dcsim
