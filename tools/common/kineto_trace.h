#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "model/base/units.h"

namespace dcsim {

/// What the profiler saw on the GPU: "kernel", "gpu_memcpy", "gpu_memset".
enum class TracedKind : std::uint8_t { kKernel, kCopy, kFill };

/// One kernel, copy or fill. Times are those of the trace.
struct TracedEvent {
  std::uint32_t name = 0;  // index into KinetoTrace::names
  TracedKind kind = TracedKind::kKernel;
  std::int64_t device = 0;
  std::int64_t stream = 0;
  std::int64_t launch = 0;  // the call that launched it (args.correlation); 0: not told
  SimTime start;
  SimTime end;
};

/// What one optimizer step launched, and the time that it took.
struct TracedStep {
  std::optional<std::int64_t> number;  // N of its marker "ProfilerStep#N"; none without markers
  SimTime start;                       // of its first event
  SimTime end;                         // the next step's start
  std::vector<TracedEvent> events;     // by start; those of one device
};

/// The GPU's events of one rank in a trace of torch.profiler.
struct KinetoTrace {
  std::string file;
  std::vector<std::string> names;
  std::vector<TracedStep> steps;      // at least one, each with an event
  std::optional<std::int64_t> ranks;  // of the job (distributedInfo.world_size), where it is told
};

/// Reads a trace (.json, .json.gz) as torch.profiler's export_chrome_trace writes it, or the first
/// by name of a folder of them.
///
///   step    only the step with this marker; none: all
///   notes   takes what is said of the trace, a line each: that there are no markers, so that all
///           of it is taken as one step; which of several ranks' traces or devices is taken
///
/// An event belongs to the step in which the host launched it. A step lasts from its first event to
/// the next step's first one; the last one as long as its marker, and at least to its last event.
///
/// Throws Error with the place for what is no JSON, or no trace, and where no event or no such step
/// is in it.
KinetoTrace LoadKinetoTrace(const std::string& path,
                            std::optional<std::int64_t> step,
                            std::ostream& notes);

}  // namespace dcsim
