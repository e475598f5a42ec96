#include "model/ir/result.h"

#include <cmath>

#include "model/base/text.h"

namespace dcsim {
namespace {

/// Six decimals: shares and rates are compared between runs byte for byte.
double Rounded(double value) {
  return std::round(value * 1e6) / 1e6;
}

Json PrintCollectives(const std::vector<CollectiveTotals>& all) {
  Json list = Json::array();
  for (const CollectiveTotals& totals : all) {
    list.push_back({{"kind", CollectiveKindName(totals.kind)},
                    {"calls", totals.calls},
                    {"launches", totals.launches},
                    {"payload_bytes", totals.payload.count()},
                    {"wire_bytes", totals.wire.count()},
                    {"busy_ns", totals.busy.ns()}});
  }
  return list;
}

Json PrintClasses(const std::vector<ClassBytes>& classes) {
  Json object = Json::object();
  for (const ClassBytes& entry : classes) {
    object[std::string(BufferClassName(entry.buffer_class))] = entry.bytes.count();
  }
  return object;
}

Json PrintStop(const std::optional<StopReport>& stop) {
  if (!stop) {
    return nullptr;
  }
  const auto text = [](const std::string& name) {
    return name.empty() ? Json(nullptr) : Json(name);
  };
  return {
      {"task", stop->task},
      {"op", text(stop->op)},
      {"requested_bytes", stop->requested.count()},
      {"requested_class", text(stop->requested_class)},
      {"step", stop->step},
      {"needed_bytes_by_class", stop->needed.empty() ? Json(nullptr) : PrintClasses(stop->needed)}};
}

Json PrintTimes(const std::vector<std::optional<Duration>>& times) {
  Json json = Json::array();
  for (const auto& time : times) {
    json.push_back(time ? Json(time->ns()) : Json(nullptr));
  }
  return json;
}

void AddMeasurement(const MeasurementNotes& notes, Json& json) {
  json["step_times_ns"] = Json::array();
  for (const Duration time : notes.step_times) {
    json["step_times_ns"].push_back(time.ns());
  }
  json["losses"] = notes.losses;
  json["ranks"] = Json::array();
  for (const RankReadings& rank : notes.ranks) {
    Json entry = {{"compute_ns", rank.compute.ns()},
                  {"exposed_communication_ns", rank.exposed_communication.ns()},
                  {"traced_step_ns", rank.traced_step.ns()},
                  {"peak_allocated_bytes", rank.peak_allocated.count()},
                  {"least_peak_allocated_bytes", rank.least_peak_allocated.count()},
                  {"peak_reserved_bytes", rank.peak_reserved.count()},
                  {"outside_allocator_bytes", rank.outside_allocator.count()}};
    if (rank.sm_clock_mhz > 0) {
      entry["sm_clock_mhz"] = std::lround(rank.sm_clock_mhz);
      entry["power_watts"] = std::lround(rank.watts);
    }
    if (rank.host.ops > 0 || rank.host.stolen) {
      entry["host"] = PrintHostReading(rank.host);
    }
    if (rank.first_host.ops > 0) {
      entry["first_host"] = PrintHostReading(rank.first_host);
    }
    if (!rank.reserved_after.empty()) {
      entry["reserved_after_bytes"] = PrintByteCounts(rank.reserved_after);
    }
    if (rank.waiting_delays) {
      entry["waiting_ns"] = PrintWaitingDelays(*rank.waiting_delays);
    }
    if (!rank.segments.empty()) {
      entry["segments_mib"] = PrintSegments(rank.segments);
    }
    json["ranks"].push_back(std::move(entry));
  }
  json["versions"] = notes.versions;
  json["machine"] = notes.machine;
  json["date"] = notes.date;
  json["command"] = notes.command;
}

}  // namespace

Bytes SumOf(const std::vector<ClassBytes>& classes) {
  Bytes sum;
  for (const ClassBytes& entry : classes) {
    sum += entry.bytes;
  }
  return sum;
}

Json PrintHostReading(const HostReading& reading) {
  Json json = {{"ops", reading.ops}, {"times_ns", PrintTimes(reading.times)}};
  if (!reading.between.empty()) {
    json["between_ns"] = PrintTimes(reading.between);
  }
  if (reading.step) {
    json["step"] = *reading.step;
  }
  if (reading.stolen) {
    json["stolen"] = Rounded(*reading.stolen);
  }
  return json;
}

Json PrintSegments(const std::vector<MeasuredSegment>& segments) {
  constexpr std::int64_t kMebibyte = Bytes::MiB(1).count();
  Json json = Json::array();
  for (const MeasuredSegment& segment : segments) {
    json.push_back({segment.address.count() / kMebibyte, segment.bytes.count() / kMebibyte});
  }
  return json;
}

Json PrintByteCounts(const std::vector<Bytes>& counts) {
  Json json = Json::array();
  for (const Bytes bytes : counts) {
    json.push_back(bytes.count());
  }
  return json;
}

/// By stream, without compute's.
Json PrintWaitingDelays(const WaitingDelays& delays) {
  Json json = Json::object();
  for (std::size_t s = 1; s < delays.size(); ++s) {
    json[std::string(StreamRoleName(static_cast<StreamRole>(s)))] = delays[s].ns();
  }
  return json;
}

Json PrintResult(const Result& result) {
  Json json = {{"format", "dc-result/1"},
               {"origin", OriginName(result.origin)},
               {"outcome", result.outcome},
               {"stop", PrintStop(result.stop)},
               {"step_time_ns", result.step_time.ns()},
               {"bound_ns", result.bound ? Json(result.bound->ns()) : Json(nullptr)},
               {"compute_ns", result.compute.ns()},
               {"exposed_communication_ns", result.exposed_communication.ns()}};
  if (result.origin == Origin::kPredicted) {
    json["no_bound"] = result.no_bound.empty() ? Json(nullptr) : Json(result.no_bound);
    json["verdict"] = result.verdict;
    json["forward_ns"] = result.forward.ns();
    json["backward_ns"] = result.backward.ns();
    json["optimizer_ns"] = result.optimizer.ns();
    json["capacity_bytes"] = result.capacity.count();
    json["compute_gaps_ns"] = result.compute_gaps.ns();
    json["exposed_gaps_ns"] = result.exposed_gaps.ns();
    json["exposed_starts_ns"] = result.exposed_starts.ns();
    json["peak_reserved_most_bytes"] = result.peak_reserved_most.count();
  }
  json["peak_live_bytes"] = result.peak_live.count();
  json["peak_allocated_bytes"] = result.peak_allocated.count();
  json["peak_active_bytes"] = result.peak_active.count();
  json["peak_reserved_bytes"] = result.peak_reserved.count();
  json["outside_allocator_bytes"] = result.outside_allocator.count();
  json["allocated_after_step_bytes"] =
      result.stop ? Json(nullptr) : Json(result.allocated_after_step.count());
  json["allocator_retries"] = result.allocator_retries;
  json["host_pinned_bytes"] = result.host_pinned.count();
  json["peak_live_bytes_by_class"] = PrintClasses(result.peak_classes);
  json["collectives"] = PrintCollectives(result.collectives);
  json["tokens_per_second"] = Rounded(result.tokens_per_second);
  json["model_flops_utilisation"] = Rounded(result.model_flops_utilisation);
  json["sources"] = {{"measured", Rounded(result.sources.measured)},
                     {"interpolated", Rounded(result.sources.interpolated)},
                     {"estimated", Rounded(result.sources.estimated)}};
  if (result.sm_clock_mhz > 0) {
    json["sm_clock_mhz"] = std::lround(result.sm_clock_mhz);
  }
  json["gpus"] = result.gpus;
  json["workload"] = {{"name", result.workload}, {"graph", HexDigits(result.graph_hash)}};
  if (result.measurement) {
    AddMeasurement(*result.measurement, json);
  }
  json["plan"] = result.plan;
  json["cluster"] = result.cluster;
  return json;
}

}  // namespace dcsim
