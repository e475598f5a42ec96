#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/common/kineto_trace.h"

namespace dcsim {

/// The range that a marker "ProfilerStep#N" of the host or of the GPU covers.
struct StepMarker {
  std::int64_t number = 0;
  SimTime start;
  SimTime end;
};

/// The part of a trace that a comparison needs, in the order of the file.
struct KinetoEvents {
  std::vector<std::string> names;
  std::vector<TracedEvent> events;
  std::vector<StepMarker> host_markers;
  std::vector<StepMarker> gpu_markers;
  std::unordered_map<std::int64_t, SimTime> launches;  // by correlation: when the host called
  std::optional<std::int64_t> ranks;
};

/// Reads the text of a trace without keeping what else is in it: traces of whole jobs have millions
/// of events. Throws Error "`file`:line:column: …" where it is no JSON, "`file`: traceEvents/N: …"
/// for an event whose fields have another type, and "`file`: …" where it is no trace.
KinetoEvents ParseKinetoEvents(std::string_view text, const std::string& file);

}  // namespace dcsim
