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

/// A finished search as its report shows it.
struct SearchReport {
  std::string workload;
  std::string gpu;
  int ranks = 1;
  double clock_mhz = 0;  // at which the search scored its schedules; 0: as profiled
  Bytes limit;
  SearchResult search;
  ReportedPlan baseline;
  std::vector<ReportedPlan> front;  // of search.front the members that are shown
  /// Bytes that the best plan would reserve with expandable segments; of what reserves least where
  /// nothing fits. None: it has them.
  std::optional<Bytes> expandable_reserved;
  DeepSpeedOutput deepspeed;     // closest to the best
  std::string deepspeed_policy;  // that predicts what DeepSpeed makes of it
  Duration deepspeed_step_time;
};

/// What a plan decides, in a few words: "ZeRO-3, bucket 200e6, 57 of 399 kept, gathers 8.0 ahead".
std::string DescribePlan(const Plan& plan, const Graph& graph);

/// What a person reads after a search:
///
///   qwen3-8b, 8 x NVIDIA H200, up to 60 GiB reserved: 20,010 schedules
///
///                step time  reserved allocated  exposed
///   baseline        674 ms  49.1 GiB  48.6 GiB  98.2 ms  ZeRO-3, bucket 500e6, ...
///   best            571 ms  58.8 GiB  57.9 GiB  4.11 ms  ZeRO-3, bucket 200e6, ...
///   ...
std::string PrintSearchText(const SearchReport& report, const Graph& graph);

/// The answer when nothing fits.
std::string PrintNothingFits(const SearchReport& report);

/// dc-search/1 (docs/formats.md).
Json PrintSearch(const SearchReport& report, const Graph& graph);

}  // namespace dcsim
