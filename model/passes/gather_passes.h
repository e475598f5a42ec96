#pragma once

#include <string>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/passes/policy_inputs.h"

namespace dcsim {

// Passes over where the gathers of a ZeRO-3 plan are issued, whatever inserted them. Each keeps
// every gather at or before the wait for it, or the first use.

/// Pass "gather_ahead": a launch is issued before the first use of the launch that is `ahead` ones
/// earlier by first use; 0 issues each right before its own.
void GatherAhead(const Graph& graph, std::int64_t ahead, Plan& plan);

/// Pass "overlap_gathers": as late as still hides it. From a graph's end to its start, a launch is
/// issued before the last op from whose start on compute takes as long as the launch needs to end
/// by its first use, one launch at a time, as one communicator runs them. Launches that nothing
/// hides are issued as the graph starts. Does nothing without measurements.
void OverlapGathers(const Graph& graph, int ranks, const PolicyInputs& inputs, Plan& plan);

/// Pass "fuse_gathers": launches that follow each other become one, issued where the first of them
/// is, as long as it stays within `most` bytes of gathered parameters.
void FuseGathers(const Graph& graph, int ranks, Bytes most, Plan& plan);

/// By parameter, whether its name matches `pattern`, in which '*' stands for any run of characters.
/// Throws Error, which names the nearest parameter, when none does.
///
///   where   of the pattern, in front of the message
std::vector<bool> MatchingParams(const Graph& graph,
                                 const std::string& pattern,
                                 const std::string& where);

/// Pass "keep_gathered": parameters that are gathered once a step and stay. Throws Error for a
/// pattern that matches none.
void KeepParameters(const Graph& graph, const KeepGathered& keep, Plan& plan);

}  // namespace dcsim
