#pragma once

#include <optional>

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// What a tied parameter does to a graph that a list scheduler has ordered.
struct TiedGathers {
  ParamId param;            // with a second name, needed by ops far apart
  std::size_t graph = 0;    // of the step
  std::size_t ahead = 0;    // parameters gathered before any is released, itself included
  std::size_t gathers = 0;  // of the graph
  Bytes bytes;              // gathered, of those ahead
};

/// DeepCompile's list schedulers, of 0.19.6 and 0.19.8 alike, issue a gather whose release takes no
/// other gather. Where a graph uses one parameter first and last, there is none: no release is
/// reached without the tied one, and its own release needs all the others. So the scheduler gathers
/// one after the other, each alone, before it runs an op that lets one go.
///
/// Returns the first graph of the plan whose events begin like this, more than half of its gathers
/// before its first release, and a tied parameter among them. Nothing else than ZeRO-3 of
/// DeepCompile's policies has events, and gathers that prefetch has moved ahead look the same.
std::optional<TiedGathers> FindTiedGathers(const Plan& plan, const Graph& graph);

}  // namespace dcsim
