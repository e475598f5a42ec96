#include "model/ir/result_reader.h"

#include <algorithm>
#include <array>
#include <limits>

namespace dcsim {
namespace {

constexpr std::array<std::string_view, 2> kOrigins = {"predicted", "measured"};
constexpr std::array<std::string_view, 4> kOutcomes = {"completed", "out_of_memory", "deadlock",
                                                       "out_of_pinned_memory"};

std::int64_t ReadAmount(ObjectReader& object, std::string_view key) {
  std::int64_t amount = 0;
  if (object.Required(key, ReadInteger, amount) && amount < 0) {
    object.faults().Add(object.At(key), "expected 0 or more");
    return 0;
  }
  return amount;
}

/// So large that sums over all that a result lists still fit 64 bits: eleven days in ns, a PiB.
constexpr std::int64_t kMostAmount = 1'000'000'000'000'000;

std::int64_t ReadBelow(ObjectReader& object, std::string_view key, std::string_view unit) {
  const std::int64_t amount = ReadAmount(object, key);
  if (amount > kMostAmount) {
    object.faults().Add(object.At(key), "expected at most " + std::to_string(kMostAmount) + " " +
                                            std::string(unit));
    return 0;
  }
  return amount;
}

void ReadNs(ObjectReader& object, std::string_view key, Duration& target) {
  target = Duration::FromNs(ReadBelow(object, key, "ns"));
}

void ReadByteCount(ObjectReader& object, std::string_view key, Bytes& target) {
  target = Bytes(ReadBelow(object, key, "bytes"));
}

CollectiveTotals ReadCollective(const Json& value, const Path& path, Faults& faults) {
  ObjectReader object(value, path, faults);
  CollectiveTotals totals;
  object.Require("kind");
  object.OptionalChoice("kind", CollectiveKindNames(), totals.kind);
  totals.calls = ReadAmount(object, "calls");
  totals.launches = ReadAmount(object, "launches");
  ReadByteCount(object, "payload_bytes", totals.payload);
  ReadByteCount(object, "wire_bytes", totals.wire);
  ReadNs(object, "busy_ns", totals.busy);
  return totals;
}

void ReadCollectives(ObjectReader& object, Result& result) {
  const Json* list = object.RequireArray("collectives");
  const Path path = object.At("collectives");
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    result.collectives.push_back(ReadCollective((*list)[i], Path(path, i), object.faults()));
  }
}

void ReadWorkload(ObjectReader& object, Result& result) {
  const Json* workload = object.Require("workload");
  if (workload == nullptr) {
    return;
  }
  const Path path = object.At("workload");
  ObjectReader fields(*workload, path, object.faults());
  fields.Required("name", ReadString, result.workload);
  std::string hash;
  if (fields.Required("graph", ReadString, hash)) {
    constexpr std::size_t kDigits = 16;
    const bool hex =
        hash.size() == kDigits && hash.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!hex) {
      object.faults().Add(fields.At("graph"), "expected 16 hexadecimal digits");
      return;
    }
    constexpr int kHexadecimal = 16;
    result.graph_hash = std::stoull(hash, nullptr, kHexadecimal);
  }
}

/// Nanoseconds, or nothing where the list says null.
std::vector<std::optional<Duration>> ReadTimes(ObjectReader& fields, const char* name) {
  std::vector<std::optional<Duration>> read;
  const Json* times = fields.RequireArray(name);
  const Path list = fields.At(name);
  for (std::size_t i = 0; times != nullptr && i < times->size(); ++i) {
    auto& time = read.emplace_back();
    if (!(*times)[i].is_null()) {
      const auto ns = ReadInteger((*times)[i], Path(list, i), fields.faults());
      if (ns && (*ns < 0 || *ns > kMostAmount)) {
        fields.faults().Add(Path(list, i),
                            "expected from 0 to " + std::to_string(kMostAmount) + " ns");
      } else if (ns) {
        time = Duration::FromNs(*ns);
      }
    }
  }
  return read;
}

/// Of the ranks' readings those of their hosts, which results before 2026-11-24 lack, of waiting
/// streams, since 2026-11-26, of the hosts in the first step, since 2026-11-27.
std::vector<RankReadings> ReadRanks(ObjectReader& object) {
  std::vector<RankReadings> ranks;
  const Json* list = object.RequireArray("ranks");
  const Path path = object.At("ranks");
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const Path place(path, i);
    ObjectReader rank((*list)[i], place, object.faults());
    RankReadings& readings = ranks.emplace_back();
    if (const Json* host = rank.Find("host")) {
      readings.host = ReadHostReading(*host, rank.At("host"), object.faults());
    }
    if (const Json* host = rank.Find("first_host")) {
      readings.first_host = ReadHostReading(*host, rank.At("first_host"), object.faults());
    }
    if (const Json* delays = rank.Find("waiting_ns")) {
      readings.waiting_delays = ReadWaitingDelays(*delays, rank.At("waiting_ns"), object.faults());
    }
    if (const Json* segments = rank.Find("segments_mib")) {
      readings.segments = ReadSegments(*segments, rank.At("segments_mib"), object.faults());
    }
  }
  return ranks;
}

}  // namespace

std::vector<double> ReadLosses(const Json& list) {
  std::vector<double> losses;
  if (list.is_array()) {
    for (const Json& loss : list) {
      losses.push_back(loss.is_number() ? loss.get<double>()
                                        : std::numeric_limits<double>::quiet_NaN());
    }
  }
  return losses;
}

HostReading ReadHostReading(const Json& value, const Path& path, Faults& faults) {
  ObjectReader fields(value, path, faults);
  HostReading reading;
  reading.ops = ReadAmount(fields, "ops");
  reading.times = ReadTimes(fields, "times_ns");
  if (fields.Find("between_ns") != nullptr) {
    reading.between = ReadTimes(fields, "between_ns");
  }
  std::int64_t step = 0;
  if (fields.Optional("step", ReadInteger, step)) {
    reading.step = step;
  }
  double stolen = 0;
  if (fields.Optional("stolen", ReadNumber, stolen)) {
    reading.stolen = stolen;
  }
  return reading;
}

WaitingDelays ReadWaitingDelays(const Json& value, const Path& path, Faults& faults) {
  ObjectReader fields(value, path, faults);
  WaitingDelays delays{};
  for (std::size_t s = 1; s < delays.size(); ++s) {
    ReadNs(fields, StreamRoleName(static_cast<StreamRole>(s)), delays[s]);
  }
  return delays;
}

std::vector<MeasuredSegment> ReadSegments(const Json& value, const Path& path, Faults& faults) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // MiB; more than a process can address
  if (!value.is_array()) {
    faults.Add(path, "expected an array of pairs: address and bytes, both in MiB");
    return {};
  }
  std::vector<MeasuredSegment> segments;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const Path place(path, i);
    if (!value[i].is_array() || value[i].size() != 2) {
      faults.Add(place, "expected a pair: address and bytes, both in MiB");
      continue;
    }
    const auto address = ReadInteger(value[i][0], Path(place, 0), faults);
    const auto bytes = ReadInteger(value[i][1], Path(place, 1), faults);
    if (!address || !bytes) {
      continue;
    }
    if (*address < 0 || *address > kMost || *bytes < 1 || *bytes > kMost) {
      faults.Add(place, "expected an address of 0 to 2^30 MiB and 1 to 2^30 MiB at it");
      continue;
    }
    segments.push_back({Bytes::MiB(*address), Bytes::MiB(*bytes)});
  }
  return segments;
}

Result ReadResult(const Json& document, const Locator& locate) {
  RequireFormat(document, "dc-result/1", locate);
  Faults faults(locate);
  const Path root;
  ObjectReader object(document, root, faults);
  Result result;
  object.Require("origin");
  object.OptionalChoice("origin", kOrigins, result.origin);
  std::size_t outcome = 0;
  object.Require("outcome");
  object.OptionalChoice("outcome", kOutcomes, outcome);
  result.outcome = kOutcomes[outcome];
  ReadNs(object, "step_time_ns", result.step_time);
  ReadNs(object, "compute_ns", result.compute);
  ReadNs(object, "exposed_communication_ns", result.exposed_communication);
  ReadByteCount(object, "peak_live_bytes", result.peak_live);
  ReadByteCount(object, "peak_allocated_bytes", result.peak_allocated);
  ReadByteCount(object, "peak_active_bytes", result.peak_active);
  ReadByteCount(object, "peak_reserved_bytes", result.peak_reserved);
  if (object.Find("outside_allocator_bytes") != nullptr) {  // results before 2026-11-22 have none
    ReadByteCount(object, "outside_allocator_bytes", result.outside_allocator);
  }
  if (const Json* after = object.Require("allocated_after_step_bytes");
      after != nullptr && !after->is_null()) {  // a step that stopped has none
    ReadByteCount(object, "allocated_after_step_bytes", result.allocated_after_step);
  }
  result.allocator_retries = ReadAmount(object, "allocator_retries");
  ReadByteCount(object, "host_pinned_bytes", result.host_pinned);
  ReadCollectives(object, result);
  ReadWorkload(object, result);
  if (const Json* plan = object.Require("plan")) {
    result.plan = *plan;
  }
  object.Required("gpus", ReadInteger, result.gpus);
  if (object.Find("ranks") != nullptr) {
    MeasurementNotes& notes = result.measurement.emplace();
    notes.ranks = ReadRanks(object);
    if (object.Find("step_times_ns") != nullptr) {
      for (const auto& time : ReadTimes(object, "step_times_ns")) {
        notes.step_times.push_back(time.value_or(Duration()));
      }
    }
    if (const Json* losses = object.Find("losses")) {
      notes.losses = ReadLosses(*losses);
    }
  }
  faults.ThrowIfAny();
  return result;
}

}  // namespace dcsim
