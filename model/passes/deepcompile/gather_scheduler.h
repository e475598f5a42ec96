#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/base/units.h"
#include "model/passes/deepcompile/pass_graph.h"

namespace dcsim {

/// Releases of DeepSpeed whose list schedulers differ, oldest first.
enum class DeepSpeedVersion : std::uint8_t { kRelease0171, kRelease0196, kRelease0198 };

/// A graph's nodes in the order that fast_free_schedule (list_schedule.py) gives them.
struct GatherSchedule {
  std::vector<std::uint32_t> order;  // every node, placeholders first
  std::size_t overflows = 0;         // rounds in which nothing fitted the budget
};

/// Decides when gathers are issued. Each round takes one gather that is not issued yet, of those
/// whose last use needs the fewest others: if one can be released without gathering anything else,
/// with all that its release needs (the fewest gathers, then bytes, time, name decide); else one
/// alone (the fewest further bytes until its release decide first). Reductions and outputs that
/// need no other gather follow at once; what is left keeps its place at the end.
///
///   budget   0.19.8: what of gathered parameters may be alive; candidates that exceed it are
///            passed over for ones that need more gathers, and where nothing fits, the path with
///            the lowest peak is taken. Nothing: no limit. Older releases know none
///
/// 0.19.8 differs without a budget too: all gathers of a path count as issued in what others still
/// need, and reductions that need no gather at all follow the first path instead of coming last.
///
/// 0.17.1 (before DeepSpeed PR #8033) compares less: where one of the gathers whose last use needs
/// the fewest can be released without gathering anything else, the one of them with the shortest
/// device time until its last use is taken with all that its release needs, further gathers
/// included; else the fewest further bytes decide alone. The first in the graph breaks ties. Where
/// its choice leaves a release behind that something scheduled needs, DeepSpeed 0.17.1 fails; here
/// what the release needs comes with it, as in later releases.
///
/// Takes O(nodes * gathers / 64) steps of bit tables and O(gathers) a round, where DeepSpeed walks
/// the graph for every candidate of every round.
GatherSchedule ScheduleGathers(const PassGraph& graph,
                               DeepSpeedVersion version,
                               std::optional<Bytes> budget);

}  // namespace dcsim
