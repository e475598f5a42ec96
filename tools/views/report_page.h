#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/ir/document.h"
#include "model/ir/graph.h"
#include "model/ir/result.h"
#include "model/ir/schedule.h"
#include "model/ir/timeline.h"
#include "model/machine/cluster.h"
#include "tools/common/beside.h"
#include "tools/views/search_text.h"

namespace dcsim {

/// Another schedule of the same model on the same GPUs.
struct RivalStep {
  std::string name;  // of what a search was compared with; empty: on the search's front
  Duration step_time;
  Bytes peak_reserved;
};

/// What a search found and was compared with, as far as it completes.
std::vector<RivalStep> RivalsOf(const SearchReport& report);

/// A predicted step, and what a page says of it.
struct ReportedStep {
  const Result& result;
  const Cluster& cluster;
  const Schedule& schedule;
  const Graph& graph;
  const Timeline& timeline;             // of this schedule, of one rank
  std::optional<Beside> beside;         // a trace beside it, if there is one
  std::vector<RivalStep> rivals = {};   // of the search that found it
  std::optional<Result> measured = {};  // what running it took
};

/// One HTML page that asks no network: verdict, step time and its parts, timeline by stream, memory
/// over time, exposed communication, what was measured beside the prediction, rivals, the plan.
/// ECharts, whose script is in the page, draws it. The same step gives the same bytes.
///
///   versions   of the program that answers
std::string PrintReportPage(const ReportedStep& step, const Json& versions);

/// JSON as a script element may hold it: no text in it can end the element or begin a comment.
/// Bytes that are no UTF-8 become U+FFFD.
std::string PrintScriptJson(const Json& document);

/// Text as HTML shows it, in elements and in quoted attributes.
std::string EscapeHtml(std::string_view text);

}  // namespace dcsim
