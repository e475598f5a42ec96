#pragma once

#include <string>
#include <vector>

#include "model/ir/document.h"
#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// A DeepSpeed configuration as a plan spec, and what of it the spec does not hold.
struct DeepSpeedSpec {
  PlanSpec spec;
  std::vector<std::string>
      notes;  // one sentence each: keys that are unknown or have no effect here
};

/// True when a document is a DeepSpeed configuration: an object without "format" that has one of
/// DeepSpeed's own keys.
bool IsDeepSpeedConfig(const Json& document);

/// Reads DeepSpeed's JSON (0.19.8). ZeRO stages 1 to 3, bucket, accumulation, clipping and
/// DeepCompile's double_buffer become options of a spec; the policy is the newest
/// "deepcompile-..." of `policies` where compile.deepcompile is on, else "plain-1".
///
///   ranks   data-parallel ranks, with which batch sizes give the accumulation steps
///
/// Throws Error with every fault: a stage that is no ZeRO, unknown keys of zero_optimization and
/// compile with the nearest known one, features that change the schedule and are not modelled
/// (offload, quantised or hierarchical collectives), values of the wrong type or range, "auto".
DeepSpeedSpec ReadDeepSpeedConfig(const Json& document,
                                  const Locator& locate,
                                  std::span<const std::string_view> policies,
                                  int ranks);

/// The DeepSpeed configuration that comes closest to a plan, and what it cannot say.
struct DeepSpeedOutput {
  Json config;
  std::vector<std::string> missing;  // decisions of the plan that DeepSpeed makes by itself
};
DeepSpeedOutput ClosestDeepSpeedConfig(const Plan& plan, const Graph& graph);

}  // namespace dcsim
