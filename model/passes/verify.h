#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/schedule.h"

namespace dcsim {

/// The rules that a schedule can break.
enum class Rule : std::uint8_t {
  kWaitsForLaterTask,     // an event that is recorded only later: the streams wait in a circle
  kUsedBeforeWritten,     // a read that no stream order, event or host wait puts behind a write
  kOverwrittenWhileUsed,  // a write that may come before an earlier use has ended: a missing event
  kUsedUnallocated,       // before its allocation, or after it was freed (released too early)
  kAllocatedTwice,
  kFreedTwice,
  kNeverFreed,
  kReusedTooEarly,      // memory of a freed buffer may be handed out while a stream still uses it
  kMissingReduction,    // a gradient that is not reduced as often as the stage asks
  kReadsPeersTooEarly,  // a gather from peers' memory, or an update of it, that no barrier
                        // separates from the update, or the gathers, before it
  kMissingUpdate,       // ZeRO-1 and 2: a parameter whose update the other ranks do not get
  kNeverReturned,       // a resident that was freed and not allocated again: an offloaded state
};
std::string_view RuleName(Rule rule);

struct Violation {
  Rule rule;
  TaskId task;          // that breaks it, or None() when no task is to blame
  BufferId buffer;      // it is about, or None()
  std::string message;  // in words, with the names of tasks and parameters

  bool operator==(const Violation&) const = default;
};

/// Every broken rule of a schedule, in task order; empty for a correct one. Order is known from
/// streams (their tasks run one after the other), events, and what the host has waited for,
/// followed through all of them; what NCCL happens to order inside a communicator does not count.
/// Two steps are followed, one behind the other, so that what only the next step suffers from is
/// found as well; it is reported of that step's task, after what the first step shows.
std::vector<Violation> Verify(const Schedule& schedule, const Graph& graph);

/// Throws Error with the first broken rules of a schedule, if there are any.
void RequireCorrect(const Schedule& schedule, const Graph& graph);

}  // namespace dcsim
