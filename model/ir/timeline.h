#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/ids.h"
#include "model/base/units.h"

namespace dcsim {

/// Why a task did not start when the one before it on its stream had ended.
enum class StallReason : std::uint8_t {
  kNone,          // it did
  kHost,          // the host had not issued it yet
  kEvent,         // it waited for a task on another stream
  kCommunicator,  // its communicator was busy with an earlier collective
};

std::string_view StallReasonName(StallReason reason);

/// Who made a timeline or a result.
enum class Origin : std::uint8_t { kPredicted, kMeasured };
std::string_view OriginName(Origin origin);

/// One task on its stream.
struct Span {
  TaskId task;
  std::uint16_t rank = 0;
  std::uint8_t stream = 0;
  StallReason stall = StallReason::kNone;
  TaskId blocker;  // whose end let it start; None() when the host did
  SimTime start;
  SimTime end;
};

/// One task on the host thread, waiting included.
struct HostWork {
  TaskId task;
  std::uint16_t rank = 0;
  bool waited = false;  // for the GPU
  SimTime start;
  SimTime end;
};

/// Memory after the allocator calls of a task, in host order.
struct MemorySample {
  TaskId task;
  std::uint16_t rank = 0;
  SimTime time;
  Bytes live;
  Bytes allocated;
  Bytes active;
  Bytes reserved;
};

/// Where a step stopped that does not complete.
struct TimelineStop {
  TaskId task;  // that could not be issued, or can never start; None() before the first step
  SimTime time;
  std::string what;  // "out of memory: aten::mm layers.3 asks for 2.00 GiB"
};

/// What happened in one optimizer step, task by task: predicted by the simulator or measured by the
/// executor. Times count from the end of the step before. File form: Chrome trace JSON with
/// "format": "dc-timeline/1" (docs/reference/formats.md).
struct Timeline {
  Origin origin = Origin::kPredicted;
  Duration step_time;
  std::vector<Span> spans;           // by end, then by stream
  std::vector<HostWork> host;        // by start
  std::vector<MemorySample> memory;  // by time
  std::optional<TimelineStop> stop;  // of a step that did not complete: what ran then ends there
};

}  // namespace dcsim
