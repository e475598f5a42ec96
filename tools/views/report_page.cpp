#include "tools/views/report_page.h"

#include <array>
#include <string_view>
#include <utility>

#include "tools/views/beside_text.h"
#include "tools/views/markup.h"
#include "tools/views/result_text.h"
#include "tools/views/step_detail.h"

namespace dcsim {

// Files that the build embeds (cmake/embed.cmake).
std::string_view ReportTemplate();  // tools/views/report.html
std::string_view Echarts();         // tools/third_party/echarts

namespace {

Json PrintRow(std::string_view label, Duration measured, Duration predicted) {
  return {{"label", label}, {"measured_ns", measured.ns()}, {"predicted_ns", predicted.ns()}};
}

/// Classes of kernels that either side has, and what no kernel fills; the step itself.
Json PrintComparison(const Beside& beside) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < kWorkClasses; ++i) {
    if (beside.measured[i].time != Duration() || beside.predicted[i].time != Duration()) {
      rows.push_back(PrintRow(WorkClassLabel(static_cast<WorkClass>(i)), beside.measured[i].time,
                              beside.predicted[i].time));
    }
  }
  rows.push_back(
      PrintRow("exposed communication", beside.exposed.measured, beside.exposed.predicted));
  rows.push_back(PrintRow("idle", beside.idle.measured, beside.idle.predicted));
  return {{"trace", beside.file},
          {"step", PrintRow("step time", beside.step.measured, beside.step.predicted)},
          {"rows", std::move(rows)},
          {"text", PrintBesideText(beside)}};
}

Json PrintRivals(const std::vector<RivalStep>& rivals) {
  Json list = Json::array();
  for (const RivalStep& each : rivals) {
    list.push_back({{"name", each.name},
                    {"step_time_ns", each.step_time.ns()},
                    {"peak_reserved_bytes", each.peak_reserved.count()}});
  }
  return list;
}

/// The template with each mark replaced, in their order; what replaces them is not looked at.
std::string Fill(std::string_view text,
                 const std::array<std::pair<std::string_view, std::string>, 5>& marks) {
  std::string page;
  for (const auto& [mark, value] : marks) {
    const std::size_t at = text.find(mark);
    page += text.substr(0, at);
    page += value;
    text.remove_prefix(at + mark.size());
  }
  return page.append(text);
}

}  // namespace

std::vector<RivalStep> RivalsOf(const SearchReport& report) {
  std::vector<RivalStep> rivals;
  for (const ReportedPlan& each : report.front) {
    rivals.push_back({"", each.result.step_time, each.result.peak_reserved});
  }
  for (const Baseline& each : report.baselines) {
    const Result& result = each.reported.result;
    if (result.outcome == "completed") {
      rivals.push_back({each.name, result.step_time, result.peak_reserved});
    }
  }
  return rivals;
}

std::string PrintScriptJson(const Json& document) {
  std::string safe;
  for (const char c :
       document.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace)) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string EscapeHtml(std::string_view text) {
  return EscapeMarkup(text, "&<\"");
}

std::string PrintReportPage(const ReportedStep& step, const Json& versions) {
  const std::string text = PrintResultText(step.result, step.cluster);
  const std::string verdict = text.substr(0, text.find('\n'));
  const std::string title = EscapeHtml(TitleOf(step.result, step.cluster));
  const Json data = {
      {"versions", versions},
      {"text", text},
      {"result", PrintResult(step.result)},
      {"step", PrintStepDetail(step.timeline, step.schedule, step.graph)},
      {"beside", step.beside ? PrintComparison(*step.beside) : Json(nullptr)},
      {"rivals", PrintRivals(step.rivals)},
      {"measured", step.measured ? PrintResult(*step.measured) : Json(nullptr)},
  };
  return Fill(ReportTemplate(), {{{"@TITLE@", title},
                                  {"@VERDICT@", EscapeHtml(verdict)},
                                  {"@HEADING@", title},
                                  {"@DATA@", PrintScriptJson(data)},
                                  {"@LIBRARY@", std::string(Echarts())}}});
}

}  // namespace dcsim
