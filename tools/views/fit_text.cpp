#include "tools/views/fit_text.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "model/base/text.h"
#include "tools/views/result_text.h"
#include "tools/views/sweep_text.h"
#include "tools/views/table_text.h"

namespace dcsim {
namespace {

using Cells = std::vector<std::string>;

/// Differences of so much are shown as none.
constexpr double kNotable = 0.005;

bool Completes(const Result& result) {
  return result.outcome == "completed";
}

/// Of a step that does not fit, what it would be in memory without end.
const Result& Measured(const PredictedVariant& predicted) {
  return predicted.unlimited ? *predicted.unlimited : predicted.result;
}

std::string StepWords(const Result& result) {
  return FormatDuration(result.step_time) + " a step, " +
         Thousands(result.tokens_per_second / result.gpus) + " tokens/s/GPU";
}

std::string FirstLine(const PredictedVariant& now) {
  const Result& result = now.result;
  const Bytes reserved = ReservedMemory(now).value_or(Bytes(0));
  if (Completes(result)) {
    const bool sure = result.verdict == "fits";
    return VerdictWords(result) + ": " + PartOf(reserved, result.capacity) + " reserved, " +
           (sure ? FormatBytes(result.capacity - reserved) + " left; "
                 : "at most " + FormatBytes(result.peak_reserved_most) + "; ") +
           StepWords(result) + "\n";
  }
  if (result.outcome == "out_of_memory" && reserved > result.capacity) {
    return "does not fit: takes " + FormatBytes(reserved) + ", " +
           FormatBytes(reserved - result.capacity) + " more than the " +
           FormatBytes(result.capacity) + " that there are; with enough, " +
           StepWords(*now.unlimited) + "\n";
  }
  if (result.outcome == "out_of_memory") {
    return "does not fit: takes more than " + FormatBytes(kAmpleMemory) +
           " on each GPU, there are " + FormatBytes(result.capacity) + "\n";
  }
  return VerdictWords(result) + ": " + result.stop->task + "\n";
}

std::string CostText(double cost) {
  if (cost <= 0) {
    return "-";
  }
  return SignedPercent(cost - 1);
}

/// Tokens that all ranks train in one step.
double StepTokens(const PredictedVariant& predicted) {
  const Result& result = Measured(predicted);
  return result.tokens_per_second * result.step_time.seconds();
}

/// The changes by name, and what follows from them.
std::string LabelOf(const FitAnswer& answer, const PredictedVariant& now) {
  std::vector<std::string> parts;
  for (const FitChange& change : answer.changes) {
    parts.push_back(change.label);
  }
  const std::string key = "gradient_accumulation_steps";
  const Json steps = answer.predicted.result.plan.value(key, Json());
  if (steps != now.result.plan.value(key, Json())) {
    parts.push_back(steps.dump() + (steps == 1 ? " micro-step" : " micro-steps"));
  }
  const double tokens = StepTokens(now);
  const double ratio = tokens > 0 ? StepTokens(answer.predicted) / tokens : 0;
  if (ratio > 1 + kNotable) {
    parts.push_back("global batch x " + std::to_string(std::lround(ratio)));
  }
  return Join(parts, ", ");
}

Cells RowOf(const std::string& label, const PredictedVariant& predicted, const std::string& cost) {
  const Result& result = Measured(predicted);
  const auto reserved = ReservedMemory(predicted);
  const bool known = Completes(result);
  return {label, known ? FormatDuration(result.step_time) : "-",
          known ? Thousands(result.tokens_per_second / result.gpus) : "-", cost,
          reserved ? FormatBytes(*reserved) : "-"};
}

bool IsPartOf(const FitAnswer& small, const FitAnswer& large) {
  return small.changes.size() < large.changes.size() &&
         std::all_of(small.changes.begin(), small.changes.end(), [&](const FitChange& one) {
           return std::any_of(large.changes.begin(), large.changes.end(),
                              [&](const FitChange& other) { return other.label == one.label; });
         });
}

/// Answers, in their order, without those that others do as well with fewer changes.
std::vector<const FitAnswer*> Worthwhile(const FitFindings& findings,
                                         const std::function<bool(const FitAnswer&)>& is_wanted,
                                         const std::function<double(const FitAnswer&)>& price) {
  std::vector<const FitAnswer*> wanted;
  for (const FitAnswer& each : findings.answers) {
    if (is_wanted(each)) {
      wanted.push_back(&each);
    }
  }
  std::vector<const FitAnswer*> kept;
  for (const FitAnswer* each : wanted) {
    const bool is_beaten = std::any_of(wanted.begin(), wanted.end(), [&](const FitAnswer* other) {
      return IsPartOf(*other, *each) && price(*other) <= price(*each) * (1 + kNotable);
    });
    if (!is_beaten) {
      kept.push_back(each);
    }
  }
  return kept;
}

double CostOf(const FitAnswer& answer) {
  return answer.cost > 0 ? answer.cost : 1;
}

double MemoryOf(const FitAnswer& answer) {
  return ReservedMemory(answer.predicted).value_or(kAmpleMemory).gib();
}

/// A heading and a table, or nothing without rows.
std::string Section(const std::string& heading,
                    std::vector<const FitAnswer*> answers,
                    const PredictedVariant& now) {
  constexpr std::size_t kMost = 8;
  if (answers.empty()) {
    return "";
  }
  answers.resize(std::min(answers.size(), kMost));
  std::vector<Cells> rows = {{"", "step time", "tokens/s/GPU", "GPU time a token", "reserved"},
                             RowOf("now", now, "")};
  std::vector<std::string> hows(rows.size());
  bool estimated = false;
  for (const FitAnswer* each : answers) {
    const bool other_source = now.profiled && !each->predicted.profiled;
    rows.push_back(RowOf(LabelOf(*each, now) + (other_source ? " *" : ""), each->predicted,
                         CostText(each->cost)));
    hows.push_back(each->how);
    estimated = estimated || other_source;
  }
  return "\n" + heading + "\n" + AlignColumns(rows, hows) +
         (estimated ? "* its ops were never timed: their times are the roofline's, and it is "
                      "compared with the step now by the roofline\n"
                    : "");
}

std::string FittingSections(const FitFindings& findings) {
  const Bytes now = ReservedMemory(findings.now).value_or(kAmpleMemory);
  const auto is_faster = [](const FitAnswer& each) {
    return each.fits && each.cost > 0 && each.cost < 1 - kNotable;
  };
  const auto is_smaller = [&](const FitAnswer& each) {
    return each.fits && !is_faster(each) && MemoryOf(each) < now.gib() * (1 - kNotable);
  };
  std::string text = Section("changes that cost less GPU time a token, cheapest first",
                             Worthwhile(findings, is_faster, CostOf), findings.now) +
                     Section("changes that take less memory, cheapest first",
                             Worthwhile(findings, is_smaller, MemoryOf), findings.now);
  return text.empty() ? "\nno change that was tried is cheaper or smaller\n" : text;
}

std::string FailingSections(const FitFindings& findings) {
  const auto fits = [](const FitAnswer& each) { return each.fits; };
  const auto completes = [](const FitAnswer& each) {
    return !each.fits && Completes(each.predicted.result);
  };
  std::string text = Section("changes that make it fit, cheapest first",
                             Worthwhile(findings, fits, CostOf), findings.now) +
                     Section("changes with which it may run out of memory, cheapest first",
                             Worthwhile(findings, completes, CostOf), findings.now);
  if (!text.empty()) {
    return text;
  }
  const auto any = [](const FitAnswer&) { return true; };
  return "\nno change that was tried makes it fit\n" + Section("changes that take least memory",
                                                               Worthwhile(findings, any, MemoryOf),
                                                               findings.now);
}

std::string UntriedLines(const FitFindings& findings) {
  std::string commands;
  std::string reasons;
  for (const UntriedChange& each : findings.untried) {
    (each.is_command ? commands : reasons) += "  " + each.label + ": " + each.reason + "\n";
  }
  return (commands.empty() ? "" : "\nto predict these, record them and ask again\n" + commands) +
         (reasons.empty() ? "" : "\nnot possible here\n" + reasons);
}

Json PrintRow(const PredictedVariant& predicted) {
  const auto reserved = ReservedMemory(predicted);
  const Result& measured = Measured(predicted);
  return {{"reserved_bytes", reserved ? Json(reserved->count()) : Json()},
          {"step_time_ns", Completes(measured) ? Json(measured.step_time.ns()) : Json()},
          {"profiled", predicted.profiled},
          {"result", PrintResult(predicted.result)}};
}

}  // namespace

std::string PrintFitText(const FitFindings& findings, const Cluster& cluster) {
  const bool fits = findings.now.result.verdict == "fits";
  return FirstLine(findings.now) + TitleOf(findings.now.result, cluster) + "\n" +
         (fits ? FittingSections(findings) : FailingSections(findings)) + UntriedLines(findings);
}

Json PrintFit(const FitFindings& findings) {
  Json answers = Json::array();
  for (const FitAnswer& each : findings.answers) {
    Json row = {{"changes", Json::array()},
                {"how", each.how},
                {"cost", each.cost > 0 ? Json(each.cost) : Json()}};
    for (const FitChange& change : each.changes) {
      row["changes"].push_back(change.label);
    }
    row.update(PrintRow(each.predicted));
    answers.push_back(std::move(row));
  }
  Json untried = Json::array();
  for (const UntriedChange& each : findings.untried) {
    untried.push_back(
        {{"label", each.label}, {each.is_command ? "command" : "reason", each.reason}});
  }
  return {{"format", "dc-fit/1"},
          {"now", PrintRow(findings.now)},
          {"answers", answers},
          {"untried", untried}};
}

}  // namespace dcsim
