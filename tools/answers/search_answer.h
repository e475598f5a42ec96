#pragma once

#include <cstdint>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "tools/answers/search_report.h"
#include "tools/common/recorded_sizes.h"

namespace dcsim {

/// What dc-sim search is asked. Empty texts and 0 are what the options are when left out.
struct SearchQuestion {
  std::string workload;
  AskedSizes sizes;
  std::string cluster;
  std::vector<std::string> cluster_overrides;
  OpTimes times = OpTimes::kProfiled;
  std::string space;
  std::string backend;  // "aten", "inductor" or empty (SearchForm)
  std::string memory_limit;
  std::string baseline;
  std::vector<std::string> starts;
  int gpus = 0;
  unsigned threads = 0;
  std::uint64_t seed = 0;
  std::uint64_t schedules = SearchSettings().budget;
  double time = 0;  // seconds; 0: no limit
  bool exhaustive = false;
  bool for_deepspeed = false;  // the best plan is to run in DeepSpeed
};

/// Reads what the question names. Throws Error where something of it is bad input.
///
///   notes   takes what is said of the inputs, a line each
LoadedSearch LoadSearch(const SearchQuestion& question, std::ostream& notes);

/// Who watches a search, and may end it.
struct SearchWatch {
  std::function<bool()> should_stop;
  std::function<void(const SearchProgress&, const SearchProblem&)> on_progress;  // may be empty
};

/// A finished search.
struct SearchAnswer {
  SearchReport report;
  std::uint64_t seed = 0;
  double seconds = 0;  // of the search, without its report

  bool fits() const { return !report.front.empty(); }
  double schedules_per_second() const;
};

/// Searches, and predicts what the report shows. Throws Error as SearchStarts.
SearchAnswer AnswerSearch(const SearchQuestion& question,
                          const LoadedSearch& loaded,
                          const SearchWatch& watch,
                          std::ostream& notes);

/// dc-search/1 (docs/reference/formats.md).
Json PrintSearchAnswer(const SearchAnswer& answer, const Graph& graph);

}  // namespace dcsim
