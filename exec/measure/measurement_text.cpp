#include "exec/measure/measurement_text.h"

#include "model/ir/document.h"
#include "model/ir/result_reader.h"

namespace dcsim::exec {
namespace {

/// A span as [task, rank, stream, start, end], the host's as [task, rank, waited, start, end].
Json PrintTimeline(const Timeline& timeline) {
  Json spans = Json::array();
  for (const Span& span : timeline.spans) {
    spans.push_back({span.task.index(), span.rank, span.stream, span.start.ns(), span.end.ns()});
  }
  Json host = Json::array();
  for (const HostWork& work : timeline.host) {
    host.push_back({work.task.index(), work.rank, work.waited, work.start.ns(), work.end.ns()});
  }
  return {{"step_time", timeline.step_time.ns()},
          {"spans", std::move(spans)},
          {"host", std::move(host)}};
}

Timeline ParseTimeline(const Json& json) {
  Timeline timeline;
  timeline.origin = Origin::kMeasured;
  timeline.step_time = Duration::FromNs(json["step_time"].get<std::int64_t>());
  const auto start = [](const Json& each) { return SimTime::FromNs(each[3].get<std::int64_t>()); };
  const auto end = [](const Json& each) { return SimTime::FromNs(each[4].get<std::int64_t>()); };
  for (const Json& each : json["spans"]) {
    Span& span = timeline.spans.emplace_back();
    span.task = TaskId(each[0].get<std::size_t>());
    span.rank = each[1].get<std::uint16_t>();
    span.stream = each[2].get<std::uint8_t>();
    span.start = start(each);
    span.end = end(each);
  }
  for (const Json& each : json["host"]) {
    timeline.host.push_back({TaskId(each[0].get<std::size_t>()), each[1].get<std::uint16_t>(),
                             each[2].get<bool>(), start(each), end(each)});
  }
  return timeline;
}

}  // namespace

std::string PrintRankMeasurement(const RankMeasurement& measurement) {
  Json json = {{"losses", measurement.losses},
               {"peak_allocated", measurement.peak_allocated.count()},
               {"least_peak_allocated", measurement.least_peak_allocated.count()},
               {"peak_active", measurement.peak_active.count()},
               {"peak_reserved", measurement.peak_reserved.count()},
               {"outside_allocator", measurement.outside_allocator.count()},
               {"allocated_after_step", measurement.allocated_after_step.count()},
               {"retries", measurement.retries},
               {"sm_clock_mhz", measurement.sm_clock_mhz},
               {"watts", measurement.watts},
               {"compute", measurement.compute.ns()},
               {"exposed", measurement.exposed_communication.ns()},
               {"traced_step", measurement.traced_step.ns()},
               {"timeline_start", measurement.timeline_start_ns}};
  if (measurement.stolen) {
    json["stolen"] = *measurement.stolen;
  }
  if (measurement.timeline) {
    json["timeline"] = PrintTimeline(*measurement.timeline);
  }
  if (measurement.waiting_delays) {
    json["waiting"] = PrintWaitingDelays(*measurement.waiting_delays);
  }
  json["segments"] = PrintSegments(measurement.segments);
  json["hosts"] = Json::array();
  for (const HostReading& host : measurement.hosts) {
    json["hosts"].push_back(PrintHostReading(host));
  }
  json["first_host"] = PrintHostReading(measurement.first_host);
  json["reserved_after"] = PrintByteCounts(measurement.reserved_after);
  json["step_times"] = Json::array();
  for (const Duration time : measurement.step_times) {
    json["step_times"].push_back(time.ns());
  }
  json["busy"] = Json::array();
  for (const CollectiveBusy& busy : measurement.busy) {
    json["busy"].push_back(busy.busy.ns());
  }
  return json.dump();
}

RankMeasurement ParseRankMeasurement(const std::string& text) {
  const Json json = Json::parse(text);
  RankMeasurement measurement;
  measurement.losses = ReadLosses(json["losses"]);
  measurement.peak_allocated = Bytes(json["peak_allocated"].get<std::int64_t>());
  measurement.least_peak_allocated = Bytes(json["least_peak_allocated"].get<std::int64_t>());
  measurement.peak_active = Bytes(json["peak_active"].get<std::int64_t>());
  measurement.peak_reserved = Bytes(json["peak_reserved"].get<std::int64_t>());
  measurement.outside_allocator = Bytes(json["outside_allocator"].get<std::int64_t>());
  measurement.allocated_after_step = Bytes(json["allocated_after_step"].get<std::int64_t>());
  measurement.retries = json["retries"].get<std::int64_t>();
  measurement.sm_clock_mhz = json["sm_clock_mhz"].get<double>();
  measurement.watts = json["watts"].get<double>();
  measurement.compute = Duration::FromNs(json["compute"].get<std::int64_t>());
  measurement.exposed_communication = Duration::FromNs(json["exposed"].get<std::int64_t>());
  measurement.traced_step = Duration::FromNs(json["traced_step"].get<std::int64_t>());
  Faults faults(PointerLocator("measurement of a rank"));
  for (const Json& host : json["hosts"]) {
    measurement.hosts.push_back(ReadHostReading(host, Path(), faults));
  }
  measurement.first_host = ReadHostReading(json["first_host"], Path(), faults);
  for (const Json& bytes : json["reserved_after"]) {
    measurement.reserved_after.emplace_back(bytes.get<std::int64_t>());
  }
  if (json.contains("waiting")) {
    measurement.waiting_delays = ReadWaitingDelays(json["waiting"], Path(), faults);
  }
  measurement.segments = ReadSegments(json["segments"], Path(), faults);
  faults.ThrowIfAny();
  measurement.timeline_start_ns = json["timeline_start"].get<std::uint64_t>();
  if (json.contains("stolen")) {
    measurement.stolen = json["stolen"].get<double>();
  }
  if (json.contains("timeline")) {
    measurement.timeline = ParseTimeline(json["timeline"]);
  }
  for (const Json& time : json["step_times"]) {
    measurement.step_times.push_back(Duration::FromNs(time.get<std::int64_t>()));
  }
  for (std::size_t kind = 0; kind < json["busy"].size(); ++kind) {
    measurement.busy.push_back({static_cast<CollectiveKind>(kind),
                                Duration::FromNs(json["busy"][kind].get<std::int64_t>())});
  }
  return measurement;
}

}  // namespace dcsim::exec
