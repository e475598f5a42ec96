#include "tools/views/beside_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "model/base/text.h"
#include "tools/views/table_text.h"

namespace dcsim {
namespace {

constexpr std::size_t kTasksShown = 20;

using Row = std::vector<std::string>;

std::string Difference(Duration measured, Duration predicted) {
  if (measured == Duration() || predicted == Duration()) {
    return "";
  }
  return SignedPercent(static_cast<double>(predicted.ns()) / static_cast<double>(measured.ns()) -
                       1);
}

std::string TimeOrDash(const WorkAmount& amount) {
  return amount.launches == 0 && amount.time == Duration() ? "-" : FormatDuration(amount.time);
}

Row TimesRow(const std::string& label, Duration measured, Duration predicted) {
  return {label, FormatDuration(measured), FormatDuration(predicted),
          Difference(measured, predicted)};
}

/// "step.json.gz, steps 4 to 6".
std::string Title(const Beside& beside) {
  std::string title = "beside " + beside.file;
  if (!beside.steps.empty()) {
    const bool one = beside.steps.size() == 1;
    title += one ? ", step " : ", steps ";
    title += std::to_string(beside.steps.front());
    title += one ? "" : " to " + std::to_string(beside.steps.back());
  }
  return title;
}

std::string ClassTable(const Beside& beside) {
  std::vector<Row> rows = {{"kernels", "measured", "predicted", "difference"}};
  for (std::size_t i = 0; i < kWorkClasses; ++i) {
    const Duration measured = beside.measured[i].time;
    const Duration predicted = beside.predicted[i].time;
    if (measured != Duration() || predicted != Duration()) {
      rows.push_back(
          TimesRow(std::string(WorkClassLabel(static_cast<WorkClass>(i))), measured, predicted));
    }
  }
  rows.push_back(
      TimesRow("exposed communication", beside.exposed.measured, beside.exposed.predicted));
  rows.push_back(TimesRow("idle", beside.idle.measured, beside.idle.predicted));
  rows.push_back(TimesRow("step time", beside.step.measured, beside.step.predicted));
  return AlignColumns(rows, 1);
}

/// A kernel's name without what all of PyTorch's have in common, cut where a table ends.
std::string ShortName(std::string name, std::size_t most) {
  for (const std::string_view part :
       {"void ", "at::native::", "(anonymous namespace)::", "c10::"}) {
    for (std::size_t at = name.find(part); at != std::string::npos; at = name.find(part, at)) {
      name.erase(at, part.size());
    }
  }
  return name.size() <= most ? name : name.substr(0, most - 3) + "...";
}

std::string TaskName(const BesideTask& task) {
  constexpr std::size_t kMost = 60;
  constexpr std::size_t kMostOfTwo = 36;
  if (task.kernel.empty() || task.kernel == task.task) {
    return ShortName(task.task, kMost);
  }
  return task.task.empty() ? ShortName(task.kernel, kMost)
                           : ShortName(task.kernel, kMostOfTwo) + " | " + task.task;
}

/// 146 -> "146"; the mean of several steps: "145.5".
std::string Count(double launches) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), launches == std::floor(launches) ? "%.0f" : "%.1f",
                launches);
  return text.data();
}

std::string Launches(const BesideTask& task) {
  const std::string measured = Count(task.measured.launches);
  std::string predicted = Count(task.predicted.launches);
  if (task.kernel.empty() || measured == predicted) {
    return predicted;
  }
  return task.task.empty() ? measured : measured + ", " + predicted;
}

std::string TaskTable(const Beside& beside) {
  std::vector<Row> rows = {
      {"longest tasks, without products", "launches", "measured", "predicted", "difference"}};
  for (const BesideTask& task : beside.tasks) {
    if (rows.size() > kTasksShown) {
      break;
    }
    rows.push_back({TaskName(task), Launches(task), TimeOrDash(task.measured),
                    TimeOrDash(task.predicted),
                    Difference(task.measured.time, task.predicted.time)});
  }
  return AlignColumns(rows, 1);
}

Json PrintPair(const MeasuredAndPredicted& pair) {
  return {{"measured", pair.measured.ns()}, {"predicted", pair.predicted.ns()}};
}

Json PrintAmounts(const WorkAmount& measured, const WorkAmount& predicted) {
  return {{"measured_ns", measured.time.ns()},
          {"predicted_ns", predicted.time.ns()},
          {"measured_launches", measured.launches},
          {"predicted_launches", predicted.launches}};
}

Json NameOrNull(const std::string& name) {
  return name.empty() ? Json(nullptr) : Json(name);
}

}  // namespace

std::string PrintBesideText(const Beside& beside) {
  return Title(beside) + "\n" + ClassTable(beside) + "\n" + TaskTable(beside);
}

Json PrintBeside(const Beside& beside, const Result& result) {
  const auto names = WorkClassNames();
  Json classes = Json::array();
  for (std::size_t i = 0; i < kWorkClasses; ++i) {
    Json line = {{"class", names[i]}};
    line.update(PrintAmounts(beside.measured[i], beside.predicted[i]));
    classes.push_back(std::move(line));
  }
  Json tasks = Json::array();
  for (const BesideTask& task : beside.tasks) {
    Json line = {{"class", names[static_cast<std::size_t>(task.work_class)]},
                 {"kernel", NameOrNull(task.kernel)},
                 {"task", NameOrNull(task.task)}};
    line.update(PrintAmounts(task.measured, task.predicted));
    tasks.push_back(std::move(line));
  }
  return {{"format", "dc-beside/1"},
          {"trace", beside.file},
          {"steps", beside.steps},
          {"step_time_ns", PrintPair(beside.step)},
          {"exposed_communication_ns", PrintPair(beside.exposed)},
          {"idle_ns", PrintPair(beside.idle)},
          {"classes", std::move(classes)},
          {"tasks", std::move(tasks)},
          {"result", PrintResult(result)}};
}

}  // namespace dcsim
