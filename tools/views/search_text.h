#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/ir/result.h"
#include "sim/search/search.h"
#include "tools/common/deepspeed_config.h"

namespace dcsim {

/// One schedule of a search report, predicted in full.
struct ReportedPlan {
  Plan plan;
  Result result;
  std::vector<Duration> exposed;  // by kind of collective
};

/// What the best plan is compared with.
struct Baseline {
  std::string name;  // of its policy; "baseline" for the plan that somebody named
  ReportedPlan reported;
};

/// A finished search as its report shows it. All times and bytes are those that `dc-sim simulate`
/// gives for the plans.
struct SearchReport {
  std::string workload;
  std::string gpu;
  int ranks = 1;
  Bytes limit;
  SearchResult search;
  std::vector<Baseline> baselines;  // the first is the one to beat
  std::vector<ReportedPlan> front;  // of search.front the members that are shown, best first
  /// Bytes that the best plan would reserve with expandable segments; of what reserves least where
  /// nothing fits. None: it has them.
  std::optional<Bytes> expandable_reserved;
  DeepSpeedOutput deepspeed;     // closest to the best
  std::string deepspeed_policy;  // that the file becomes as a plan
  Result deepspeed_result;       // of that plan
};

/// What a plan decides, in a few words: "ZeRO-3, bucket 200e6, 57 of 399 kept, gathers 8.0 ahead".
std::string DescribePlan(const Plan& plan, const Graph& graph);

/// What a person reads after a search:
///
///   qwen3-8b, 8 x NVIDIA H200, up to 60 GiB reserved: 20,010 schedules
///
///                       step time  reserved allocated   exposed
///   deepcompile-0.19.8     550 ms  61.8 GiB  60.4 GiB   5.60 ms  ZeRO-3, bucket 500.0e6, ...
///   deepspeed-eager        587 ms  60.2 GiB  58.0 GiB   6.77 ms  ZeRO-3, bucket 500.0e6, ...
///   best                   548 ms  58.8 GiB  57.9 GiB   4.11 ms  ZeRO-3, bucket 200.0e6, ...
///   ...
std::string PrintSearchText(const SearchReport& report, const Graph& graph);

/// The answer when nothing fits.
std::string PrintNothingFits(const SearchReport& report);

/// dc-search/1 (docs/reference/formats.md).
Json PrintSearch(const SearchReport& report, const Graph& graph);

}  // namespace dcsim
