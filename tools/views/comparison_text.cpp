#include "tools/views/comparison_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "model/base/text.h"

namespace dcsim {
namespace {

double Error(double predicted, double measured) {
  return measured == 0 ? 0 : predicted / measured - 1;
}

double StepError(const Comparison& each) {
  return Error(static_cast<double>(each.predicted.step_time.ns()),
               static_cast<double>(each.measured.step_time.ns()));
}

double ReservedError(const Comparison& each) {
  return Error(static_cast<double>(each.predicted.peak_reserved.count()),
               static_cast<double>(each.measured.peak_reserved.count()));
}

/// 0.0213 -> "+2.1 %".
std::string Signed(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%", share * 100);
  return text;
}

std::string Line(const std::string& label,
                 const std::string& predicted,
                 const std::string& measured,
                 const std::string& error) {
  constexpr std::size_t kLabel = 26;
  constexpr std::size_t kColumn = 13;
  const auto left = [](std::string text, std::size_t width) {
    text.resize(std::max(width, text.size()), ' ');
    return text;
  };
  const auto right = [](const std::string& text, std::size_t width) {
    return std::string(width - std::min(width, text.size()), ' ') + text;
  };
  return left(label, kLabel) + right(predicted, kColumn) + right(measured, kColumn) +
         right(error, kColumn) + "\n";
}

std::string TimeLine(const std::string& label, Duration predicted, Duration measured) {
  return Line(
      label, FormatDuration(predicted), FormatDuration(measured),
      Signed(Error(static_cast<double>(predicted.ns()), static_cast<double>(measured.ns()))));
}

/// With the difference to the byte: it is what shows that the memory model is exact.
std::string MemoryLine(const std::string& label, Bytes predicted, Bytes measured) {
  const std::int64_t difference = predicted.count() - measured.count();
  return Line(label, FormatBytes(predicted), FormatBytes(measured),
              difference == 0 ? "same byte"
                              : Signed(Error(static_cast<double>(predicted.count()),
                                             static_cast<double>(measured.count()))));
}

std::string CollectiveLines(const Comparison& comparison) {
  std::string lines;
  for (const CollectiveTotals& measured : comparison.measured.collectives) {
    for (const CollectiveTotals& predicted : comparison.predicted.collectives) {
      if (predicted.kind == measured.kind) {
        lines += TimeLine("  " + std::string(CollectiveKindName(measured.kind)) + ", busy",
                          predicted.busy, measured.busy);
      }
    }
  }
  return lines;
}

}  // namespace

std::string PrintComparison(const Comparison& comparison) {
  const Result& predicted = comparison.predicted;
  const Result& measured = comparison.measured;
  if (predicted.outcome != "completed" || measured.outcome != "completed") {
    return comparison.name + "\n" + Line("", "predicted", "measured", "") +
           Line("outcome", predicted.outcome, measured.outcome, "");
  }
  return comparison.name + "\n" + Line("", "predicted", "measured", "error") +
         TimeLine("step time", predicted.step_time, measured.step_time) +
         TimeLine("  compute", predicted.compute, measured.compute) +
         TimeLine("  exposed communication", predicted.exposed_communication,
                  measured.exposed_communication) +
         CollectiveLines(comparison) +
         MemoryLine("peak memory, reserved", predicted.peak_reserved, measured.peak_reserved) +
         MemoryLine("  allocated", predicted.peak_allocated, measured.peak_allocated) +
         MemoryLine("  active", predicted.peak_active, measured.peak_active) +
         MemoryLine("after the step", predicted.allocated_after_step,
                    measured.allocated_after_step);
}

std::string PrintComparisonTable(const std::vector<Comparison>& comparisons) {
  std::size_t width = 0;
  for (const Comparison& each : comparisons) {
    width = std::max(width, each.name.size());
  }
  std::string text;
  double sum = 0;
  double largest = 0;
  std::size_t exact = 0;
  double largest_memory = 0;
  std::size_t compared = 0;
  for (const Comparison& each : comparisons) {
    std::string name = each.name;
    name.resize(width, ' ');
    if (each.predicted.outcome != "completed" || each.measured.outcome != "completed") {
      text += name + "  predicted " + each.predicted.outcome + ", measured " +
              each.measured.outcome + "\n";
      continue;
    }
    ++compared;
    const double error = StepError(each);
    sum += std::abs(error);
    largest = std::abs(error) > std::abs(largest) ? error : largest;
    const bool same = each.predicted.peak_reserved == each.measured.peak_reserved &&
                      each.predicted.peak_allocated == each.measured.peak_allocated;
    exact += same ? 1 : 0;
    largest_memory = std::abs(ReservedError(each)) > std::abs(largest_memory) ? ReservedError(each)
                                                                              : largest_memory;
    char numbers[128];
    std::snprintf(numbers, sizeof numbers, "  %9s %9s %8s   reserved %9s %9s %s\n",
                  FormatDuration(each.predicted.step_time).c_str(),
                  FormatDuration(each.measured.step_time).c_str(), Signed(error).c_str(),
                  FormatBytes(each.predicted.peak_reserved).c_str(),
                  FormatBytes(each.measured.peak_reserved).c_str(),
                  same ? "same byte" : Signed(ReservedError(each)).c_str());
    text += name + numbers;
  }
  if (compared == 0) {
    return text;
  }
  std::string header = "predicted and measured";
  header.resize(std::max(width, header.size()), ' ');
  return header + "  step time, error             peak memory\n" + text +
         "\nstep time: mean error " + Signed(sum / static_cast<double>(compared)).substr(1) +
         ", largest " + Signed(largest) +
         "\nmemory: allocated and reserved the same to the byte in " + std::to_string(exact) +
         " of " + std::to_string(compared) + ", largest error " + Signed(largest_memory) + "\n";
}

}  // namespace dcsim
