#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/ir/document.h"
#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// What a DeepSpeed configuration is read for: a recording, on so many data-parallel ranks.
struct DeepSpeedJob {
  const Graph& graph;
  int ranks = 1;
  std::span<const std::string_view> policies;  // that exist, oldest first
  bool recorded_batches = false;  // micro batch and ranks are these, whatever the file says
};

/// A DeepSpeed configuration as a plan spec, and what of it the spec does not hold.
struct DeepSpeedSpec {
  Json spec;  // dc-plan-spec/1 with the keys that the file decides; a spec's reader adds defaults
  std::map<std::string, std::string> origins;  // of a key of the spec: the JSON pointer in the file
  std::vector<std::string> notes;              // one sentence each
};

/// True when a document is a DeepSpeed configuration: an object without "format" that has one of
/// DeepSpeed's own sections or batch sizes.
bool IsDeepSpeedConfig(const Json& document);

/// Reads DeepSpeed's JSON as DeepSpeed 0.19.8 does (docs/reference/deepspeed_keys.md). The policy
/// is the newest "deepcompile-…" of the job's where compile.deepcompile is on, else
/// "deepspeed-eager". "auto" is filled in as Hugging Face's Trainer does it.
///
/// Throws Error with every fault: what DeepSpeed refuses, what changes a step's time or memory in a
/// way that no plan says, and batch sizes and dtypes that are not the recording's, with the command
/// that records them.
DeepSpeedSpec ReadDeepSpeedConfig(const Json& document,
                                  const Locator& locate,
                                  const DeepSpeedJob& job);

/// The DeepSpeed configuration that comes closest to a plan, and what it cannot say.
struct DeepSpeedOutput {
  Json config;
  std::vector<std::string> missing;  // decisions of the plan that DeepSpeed makes by itself
};
DeepSpeedOutput ClosestDeepSpeedConfig(const Plan& plan, const Graph& graph);

}  // namespace dcsim
