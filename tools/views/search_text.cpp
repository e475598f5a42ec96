#include "tools/views/search_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "model/base/text.h"
#include "model/graph/step_facts.h"
#include "model/ir/plan_reader.h"
#include "tools/views/table_text.h"

namespace dcsim {
namespace {

constexpr std::size_t kColumn = 10;

std::string OneDecimal(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

/// Width of the first column: the longest label and two spaces.
std::size_t LabelWidth(const SearchReport& report) {
  std::size_t width = std::string_view("front").size();
  for (const Baseline& each : report.baselines) {
    width = std::max(width, each.name.size());
  }
  return width + 2;
}

std::string BackendName(const Graph& graph) {
  return std::string(BackendNames()[static_cast<std::size_t>(graph.backend())]);
}

bool Completed(const Result& result) {
  return result.outcome == OutcomeName(Outcome::kCompleted);
}

/// "out of memory" of "out_of_memory".
std::string OutcomeWords(const Result& result) {
  std::string words = result.outcome;
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string Line(const std::string& label, const ReportedPlan& each, const Graph& graph) {
  const Result& result = each.result;
  if (!Completed(result)) {
    return label + FlushRight("-", kColumn) + FlushRight("-", kColumn) + FlushRight("-", kColumn) +
           FlushRight("-", kColumn) + "  " + DescribePlan(each.plan, graph) + ": " +
           OutcomeWords(result) + "\n";
  }
  return label + FlushRight(FormatDuration(result.step_time), kColumn) +
         FlushRight(FormatBytes(result.peak_reserved), kColumn) +
         FlushRight(FormatBytes(result.peak_allocated), kColumn) +
         FlushRight(FormatDuration(result.exposed_communication), kColumn) + "  " +
         DescribePlan(each.plan, graph) + "\n";
}

/// Parameters between a gather's issue and its use, on average, and launches of more than one.
struct GatherFigures {
  double ahead = 0;
  std::size_t launches = 0;
  std::size_t gathers = 0;
};

GatherFigures CountGathers(const Plan& plan, const Graph& graph) {
  GatherFigures figures;
  for (const GraphPlan& decisions : plan.graphs) {
    const auto uses = FindUses(graph, decisions.order);
    std::vector<std::size_t> firsts;
    for (const Param& param : graph.params) {
      const UseSpan& span = uses[graph.storage_of(param.value).index()];
      if (span.used) {
        firsts.push_back(span.first);
      }
    }
    std::sort(firsts.begin(), firsts.end());
    const auto index = [&firsts](std::size_t position) {
      return std::lower_bound(firsts.begin(), firsts.end(), position) - firsts.begin();
    };
    figures.launches += decisions.gathers.size();
    for (const GatherGroup& group : decisions.gathers) {
      for (const ParamId id : group.params) {
        const UseSpan& span = uses[graph.storage_of(graph.param(id).value).index()];
        figures.ahead += static_cast<double>(index(span.first) - index(group.position));
        ++figures.gathers;
      }
    }
  }
  figures.ahead /= static_cast<double>(std::max<std::size_t>(1, figures.gathers));
  return figures;
}

std::string DescribeGathers(const Plan& plan, const Graph& graph) {
  const GatherFigures figures = CountGathers(plan, graph);
  std::string text = ", " + std::to_string(plan.persistent.size()) + " of " +
                     std::to_string(graph.params.size()) + " kept, gathers " +
                     OneDecimal(figures.ahead) + " ahead";
  if (figures.launches != figures.gathers) {
    text += " in " + std::to_string(figures.launches) + " launches";
  }
  return text;
}

std::string Millions(std::int64_t elements) {
  return OneDecimal(static_cast<double>(elements) * 1e-6) + "e6";
}

/// Whether expandable segments are worth a word: small models reserve more with them.
bool SavesMemory(const std::optional<Bytes>& expandable, Bytes reserved) {
  return expandable && *expandable < reserved;
}

/// "best against deepspeed-eager: 6.6 % less time".
std::string Gain(const SearchReport& report, const Baseline& baseline) {
  const Result& from = baseline.reported.result;
  const std::string text = "\nbest against " + baseline.name;
  if (!Completed(from)) {
    return text + ", which does not complete: " + OutcomeWords(from) + "\n";
  }
  const Result& to = report.front.front().result;
  const double share = 1 - static_cast<double>(to.step_time.ns()) /
                               static_cast<double>(std::max<std::int64_t>(1, from.step_time.ns()));
  const bool fits = from.peak_reserved <= report.limit;
  return text + (fits ? ": " : ", which exceeds the limit: ") + Percent(std::abs(share)) +
         (share < 0 ? " more time\n" : " less time\n");
}

/// Where the difference to a baseline comes from, one line a reason.
std::string ExplainGain(const SearchReport& report, const Baseline& baseline) {
  std::string text = Gain(report, baseline);
  const Result& from = baseline.reported.result;
  if (!Completed(from)) {
    return text;
  }
  const ReportedPlan& best = report.front.front();
  const Result& to = best.result;
  for (std::size_t kind = 0; kind < best.exposed.size(); ++kind) {
    const Duration before = baseline.reported.exposed[kind];
    const Duration after = best.exposed[kind];
    if (before != Duration() || after != Duration()) {
      text += "  exposed " + FlushLeft(std::string(CollectiveKindNames()[kind]), 15) +
              FlushRight(FormatDuration(before), kColumn) + " -> " + FormatDuration(after) + "\n";
    }
  }
  text += "  compute                " + FlushRight(FormatDuration(from.compute), kColumn) + " -> " +
          FormatDuration(to.compute) + "   (beside communication kernels run slower)\n";
  text += "  reserved memory        " + FlushRight(FormatBytes(from.peak_reserved), kColumn) +
          " -> " + FormatBytes(to.peak_reserved) + "\n";
  return text;
}

/// What the best plan would reserve with expandable segments, where that is less.
std::string DescribeExpandable(const SearchReport& report) {
  if (!SavesMemory(report.expandable_reserved, report.front.front().result.peak_reserved)) {
    return "";
  }
  return "\nbest with expandable segments: " + FormatBytes(*report.expandable_reserved) +
         " reserved (allocator: expandable_segments)\n";
}

/// What the closest DeepSpeed configuration leaves to DeepSpeed.
std::string DescribeDeepSpeed(const SearchReport& report) {
  const Result& result = report.deepspeed_result;
  std::string text = "\nclosest DeepSpeed configuration (--save-deepspeed): ";
  text += Completed(result) ? FormatDuration(result.step_time) + ", " +
                                  FormatBytes(result.peak_reserved) + " reserved"
                            : OutcomeWords(result);
  text += ", as " + report.deepspeed_policy + "\n";
  for (const std::string& sentence : report.deepspeed.missing) {
    text += "  not in it: " + sentence + "\n";
  }
  return text;
}

/// Time and memory of a plan, by the keys of dc-result/1.
Json PrintFigures(const Result& result) {
  return {{"outcome", result.outcome},
          {"step_time_ns", result.step_time.ns()},
          {"peak_reserved_bytes", result.peak_reserved.count()},
          {"peak_allocated_bytes", result.peak_allocated.count()}};
}

Json PrintReported(const ReportedPlan& each, const Graph& graph) {
  Json exposed = Json::object();
  for (std::size_t kind = 0; kind < each.exposed.size(); ++kind) {
    exposed[std::string(CollectiveKindNames()[kind])] = each.exposed[kind].ns();
  }
  return {{"summary", DescribePlan(each.plan, graph)},
          {"exposed_ns", exposed},
          {"result", PrintResult(each.result)}};
}

}  // namespace

std::string DescribePlan(const Plan& plan, const Graph& graph) {
  const ScheduleOptions& options = plan.options;
  if (options.sharding == Sharding::kFsdp2) {
    return std::string("FSDP2, layers ") + (graph.compiled ? "compiled" : "eager") +
           ", without its Python on the host";
  }
  std::string text = "ZeRO-" + std::to_string(options.stage) + ", bucket " +
                     Millions(options.reduce_bucket) + (options.double_buffer ? " x 2" : "");
  if (options.stage != 3) {
    text += options.reduce_collective == ReduceCollective::kReduceScatter ? ", reduce-scatter"
                                                                          : ", all-reduce";
    text += options.flush_collectives == FlushCollectives::kOnePerBucket ? ", one a bucket" : "";
  }
  text += options.communicators == 2 ? ", 2 communicators" : "";
  text += options.gather_engine == Engine::kCopyEngine ? ", copy engines" : "";
  text += options.fuse_casts ? ", casts fused" : "";
  text += options.align_tensors ? ", tensors aligned" : "";
  text += options.allocator == AllocatorMode::kExpandableSegments ? ", expandable segments" : "";
  return options.stage == 3 ? text + DescribeGathers(plan, graph) : text;
}

std::string PrintSearchText(const SearchReport& report, const Graph& graph) {
  const SearchResult& search = report.search;
  std::string text = report.workload + ", " + BackendName(graph) + ", " +
                     std::to_string(report.ranks) + " x " + report.gpu + ", up to " +
                     FormatBytes(report.limit) +
                     " reserved: " + Thousands(static_cast<double>(search.evaluated)) +
                     " schedules" + (search.stopped ? ", stopped early" : "") + "\n\n";
  const std::size_t width = LabelWidth(report);
  text += std::string(width, ' ') + FlushRight("step time", kColumn) +
          FlushRight("reserved", kColumn) + FlushRight("allocated", kColumn) +
          FlushRight("exposed", kColumn) + "\n";
  for (const Baseline& each : report.baselines) {
    text += Line(FlushLeft(each.name, width), each.reported, graph);
  }
  for (std::size_t i = 0; i < report.front.size(); ++i) {
    text += Line(FlushLeft(i == 0 ? "best" : "front", width), report.front[i], graph);
  }
  text += ExplainGain(report, report.baselines.front());
  for (std::size_t i = 1; i < report.baselines.size(); ++i) {
    text += Gain(report, report.baselines[i]);
  }
  return text + DescribeExpandable(report) + DescribeDeepSpeed(report);
}

std::string PrintNothingFits(const SearchReport& report) {
  std::string text = report.workload + ", " + std::to_string(report.ranks) + " x " + report.gpu +
                     ": none of " + Thousands(static_cast<double>(report.search.evaluated)) +
                     " schedules fits in " + FormatBytes(report.limit);
  if (report.search.least) {
    text +=
        "; the least that one reserves is " + FormatBytes(report.search.least->score.peak_reserved);
    if (SavesMemory(report.expandable_reserved, report.search.least->score.peak_reserved)) {
      text += ", " + FormatBytes(*report.expandable_reserved) +
              " with expandable segments (configs/spaces/expandable.yaml)";
    }
  }
  return text + "\n";
}

Json PrintSearch(const SearchReport& report, const Graph& graph) {
  const SearchResult& search = report.search;
  Json strategies = Json::array();
  for (const StrategyReport& strategy : search.strategies) {
    strategies.push_back({{"name", strategy.name},
                          {"evaluated", strategy.evaluated},
                          {"improved", strategy.improved}});
  }
  Json front = Json::array();
  for (const ReportedPlan& member : report.front) {
    front.push_back(PrintFigures(member.result));
  }
  Json baselines = Json::array();
  for (const Baseline& each : report.baselines) {
    baselines.push_back(PrintReported(each.reported, graph));
    baselines.back()["name"] = each.name;
  }
  Json document = {{"format", "dc-search/1"},
                   {"workload", report.workload},
                   {"backend", BackendName(graph)},
                   {"gpus", report.ranks},
                   {"memory_limit_bytes", report.limit.count()},
                   {"evaluated", search.evaluated},
                   {"folded", search.folded},
                   {"stopped", search.stopped},
                   {"complete", search.complete},
                   {"strategies", strategies},
                   {"front", front},
                   {"baselines", baselines}};
  Json& deepspeed = document["deepspeed"];
  deepspeed = report.front.empty() ? Json() : PrintFigures(report.deepspeed_result);
  if (!report.front.empty()) {
    deepspeed["config"] = report.deepspeed.config;
    deepspeed["missing"] = report.deepspeed.missing;
    deepspeed["policy"] = report.deepspeed_policy;
  }
  document["expandable_reserved_bytes"] =
      report.expandable_reserved ? Json(report.expandable_reserved->count()) : Json(nullptr);
  document["best"] =
      report.front.empty() ? Json(nullptr) : PrintReported(report.front.front(), graph);
  return document;
}

}  // namespace dcsim
