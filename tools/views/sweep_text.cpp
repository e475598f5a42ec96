#include "tools/views/sweep_text.h"

#include <algorithm>

#include "model/base/text.h"
#include "tools/views/result_text.h"
#include "tools/views/table_text.h"

namespace dcsim {
namespace {

bool Completes(const Result& result) {
  return result.outcome == "completed";
}

double TokensOfGpu(const Result& result) {
  return result.tokens_per_second / result.gpus;
}

/// Cells of a step that completes, and of one that does not.
std::vector<std::string> Figures(const Result& result) {
  if (!Completes(result)) {
    return std::vector<std::string>(5, "-");
  }
  return {FormatDuration(result.step_time), result.bound ? FormatDuration(*result.bound) : "-",
          Thousands(TokensOfGpu(result)), Percent(result.model_flops_utilisation),
          FormatDuration(result.exposed_communication)};
}

bool Varies(const SweepReport& report, const std::string& key) {
  return std::find(report.keys.begin(), report.keys.end(), key) != report.keys.end();
}

std::vector<std::string> CellsOf(const SweepReport& report, const SweepRow& row) {
  const Result& result = row.predicted.result;
  std::vector<std::string> cells = row.values;
  if (!Varies(report, "backend")) {
    cells.push_back(BackendOf(result));
  }
  cells.push_back(VerdictWords(result));
  const auto figures = Figures(result);
  cells.insert(cells.end(), figures.begin(), figures.end());
  const auto reserved = ReservedMemory(row.predicted);
  cells.push_back(reserved ? FormatBytes(*reserved) : "-");
  cells.push_back(FormatBytes(result.capacity));
  return cells;
}

/// The row with the most tokens a second and GPU of those that fit; null where none does.
const SweepRow* FindFastest(const SweepReport& report) {
  const SweepRow* fastest = nullptr;
  for (const SweepRow& row : report.rows) {
    const Result& result = row.predicted.result;
    if (result.verdict == "fits" &&
        (fastest == nullptr || TokensOfGpu(result) > TokensOfGpu(fastest->predicted.result))) {
      fastest = &row;
    }
  }
  return fastest;
}

std::string ValuesText(const SweepReport& report, const SweepRow& row) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    parts.push_back(report.keys[i] + "=" + row.values[i]);
  }
  return Join(parts, ", ");
}

std::string CsvLine(const std::vector<std::string>& cells) {
  std::vector<std::string> quoted;
  std::transform(cells.begin(), cells.end(), std::back_inserter(quoted), CsvField);
  return Join(quoted, ",") + "\n";
}

/// The figures of a row, by name; null: unknown.
std::vector<std::pair<std::string, Json>> NamedFigures(const PredictedVariant& predicted) {
  const Result& result = predicted.result;
  const bool completes = Completes(result);
  const auto of_step = [completes](Json value) { return completes ? std::move(value) : Json(); };
  const auto reserved = ReservedMemory(predicted);
  return {{"gpus", result.gpus},
          {"backend", BackendOf(result)},
          {"verdict", result.verdict},
          {"step_time_ns", of_step(result.step_time.ns())},
          {"bound_ns", result.bound ? of_step(result.bound->ns()) : Json()},
          {"tokens_per_second", of_step(result.tokens_per_second)},
          {"model_flops_utilisation", of_step(result.model_flops_utilisation)},
          {"exposed_communication_ns", of_step(result.exposed_communication.ns())},
          {"reserved_bytes", reserved ? Json(reserved->count()) : Json()},
          {"peak_reserved_most_bytes", of_step(result.peak_reserved_most.count())},
          {"capacity_bytes", result.capacity.count()},
          {"measured_share", of_step(result.sources.measured)},
          {"interpolated_share", of_step(result.sources.interpolated)},
          {"estimated_share", of_step(result.sources.estimated)}};
}

std::string CsvText(const Json& value) {
  return value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

std::string VerdictWords(const Result& result) {
  std::string words = result.verdict;
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string PrintSweepText(const SweepReport& report) {
  std::vector<std::string> head = report.keys;
  if (!Varies(report, "backend")) {
    head.emplace_back("backend");
  }
  const std::size_t left = head.size() + 1;
  for (const char* name :
       {"verdict", "step time", "+/-", "tokens/s/GPU", "MFU", "exposed", "reserved", "of"}) {
    head.emplace_back(name);
  }
  std::vector<std::vector<std::string>> cells = {head};
  for (const SweepRow& row : report.rows) {
    cells.push_back(CellsOf(report, row));
  }
  std::string text = report.title + "\n\n" + AlignColumns(cells, left) + "\n";
  const SweepRow* fastest = FindFastest(report);
  return text + (fastest == nullptr ? "none is sure to fit\n"
                                    : "most tokens a second and GPU of those that fit: " +
                                          ValuesText(report, *fastest) + "\n");
}

std::string PrintSweepCsv(const SweepReport& report) {
  std::string text;
  for (const SweepRow& row : report.rows) {
    std::vector<std::string> head = report.keys;
    std::vector<std::string> cells = row.values;
    for (const auto& [name, value] : NamedFigures(row.predicted)) {
      if (Varies(report, name)) {
        continue;  // gpus, where they are varied
      }
      head.push_back(name);
      cells.push_back(CsvText(value));
    }
    text += (text.empty() ? CsvLine(head) : "") + CsvLine(cells);
  }
  return text;
}

Json PrintSweep(const SweepReport& report) {
  Json rows = Json::array();
  for (const SweepRow& row : report.rows) {
    Json values = Json::object();
    for (std::size_t i = 0; i < report.keys.size(); ++i) {
      values[report.keys[i]] = row.values[i];
    }
    const auto reserved = ReservedMemory(row.predicted);
    rows.push_back({{"values", values},
                    {"reserved_bytes", reserved ? Json(reserved->count()) : Json()},
                    {"notes", row.predicted.notes},
                    {"result", PrintResult(row.predicted.result)}});
  }
  return {{"format", "dc-sweep/1"}, {"keys", report.keys}, {"rows", rows}};
}

}  // namespace dcsim
