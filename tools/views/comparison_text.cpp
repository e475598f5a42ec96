#include "tools/views/comparison_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>

#include "model/base/text.h"
#include "tools/views/result_text.h"
#include "tools/views/table_text.h"

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

std::string Line(const std::string& label,
                 const std::string& predicted,
                 const std::string& measured,
                 const std::string& error) {
  constexpr std::size_t kLabel = 26;
  constexpr std::size_t kColumn = 13;
  return FlushLeft(label, kLabel) + FlushRight(predicted, kColumn) + FlushRight(measured, kColumn) +
         FlushRight(error, kColumn) + "\n";
}

/// A measured step completes; of a predicted one it is said that it fits.
std::string OutcomeText(const Result& result) {
  const bool fits = result.origin == Origin::kPredicted && result.outcome == "completed";
  return fits ? "fits" : result.outcome;
}

/// How a step ended, and where it stopped.
std::string HowItEnded(const Result& result) {
  return OutcomeText(result) + (result.stop ? ": " + result.stop->task : "");
}

/// With the difference to the byte: it is what shows that the memory model is exact.
std::string MemoryLine(const std::string& label, Bytes predicted, Bytes measured) {
  const std::int64_t difference = predicted.count() - measured.count();
  return Line(label, FormatBytes(predicted), FormatBytes(measured),
              difference == 0 ? "same byte"
                              : SignedPercent(Error(static_cast<double>(predicted.count()),
                                                    static_cast<double>(measured.count()))));
}

/// Measurements before 2026-11-22 and those on a CPU do not know it.
std::string OutsideLine(const Result& predicted, const Result& measured) {
  return measured.outside_allocator == Bytes(0)
             ? ""
             : MemoryLine("  outside the allocator", predicted.outside_allocator,
                          measured.outside_allocator);
}

std::string CollectiveLines(const Comparison& comparison) {
  std::string lines;
  for (const CollectiveTotals& measured : comparison.measured.collectives) {
    for (const CollectiveTotals& predicted : comparison.predicted.collectives) {
      if (predicted.kind == measured.kind) {
        lines += ComparisonLine("  " + std::string(CollectiveKindName(measured.kind)) + ", busy",
                                predicted.busy, measured.busy);
      }
    }
  }
  return lines;
}

/// What a trace of kernels shows; nothing where none was taken, as of DeepSpeed's own steps.
std::string DeviceLines(const Comparison& comparison) {
  const Result& predicted = comparison.predicted;
  const Result& measured = comparison.measured;
  if (measured.compute == Duration()) {
    return "";
  }
  return ComparisonLine("  compute", predicted.compute - predicted.compute_gaps, measured.compute) +
         ComparisonLine(
             "  exposed communication",
             predicted.exposed_communication + predicted.exposed_gaps - predicted.exposed_starts,
             measured.exposed_communication) +
         CollectiveLines(comparison);
}

/// 1.743 -> "1.7x".
std::string Times(double factor) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1fx", factor);
  return text.data();
}

/// In a row: the error with the host's pace.
std::string HostNote(const Comparison& each) {
  if (!each.with_host) {
    return "";
  }
  const double error = Error(static_cast<double>(each.with_host->predicted.step_time.ns()),
                             static_cast<double>(each.measured.step_time.ns()));
  return "   with " + Times(each.with_host->slowdown) + " host times " + SignedPercent(error);
}

bool SameBytes(const Comparison& each) {
  return each.predicted.peak_reserved == each.measured.peak_reserved &&
         each.predicted.peak_allocated == each.measured.peak_allocated;
}

/// The step's time as it is predicted with the host's pace.
std::string HostLine(const Comparison& comparison) {
  return comparison.with_host
             ? ComparisonLine("  with " + Times(comparison.with_host->slowdown) + " host times",
                              comparison.with_host->predicted.step_time,
                              comparison.measured.step_time)
             : "";
}

/// The numbers of one line of the table.
std::string ComparisonRow(const Comparison& each) {
  constexpr std::size_t kNumber = 10;
  return "  " + FlushRight(FormatDuration(each.predicted.step_time), kNumber) +
         FlushRight(FormatDuration(each.measured.step_time), kNumber) +
         FlushRight(SignedPercent(StepError(each)), kNumber) + "   reserved" +
         FlushRight(FormatBytes(each.predicted.peak_reserved), kNumber) +
         FlushRight(FormatBytes(each.measured.peak_reserved), kNumber) + "  " +
         (SameBytes(each) ? "same byte" : SignedPercent(ReservedError(each))) + HostNote(each) +
         "\n";
}

/// Errors over the completed comparisons.
class Summary {
 public:
  void Add(const Comparison& each) {
    ++count_;
    ++backends_[BackendOf(each.measured)];
    exact_ += SameBytes(each) ? 1U : 0U;
    sum_ += std::abs(StepError(each));
    KeepLarger(StepError(each), largest_);
    KeepLarger(ReservedError(each), largest_memory_);
  }

  std::string Print() const {
    if (count_ == 0) {
      return "";
    }
    return "\nstep time: mean error " + Percent(sum_ / static_cast<double>(count_)) + ", largest " +
           SignedPercent(largest_) + "\nmemory: allocated and reserved the same to the byte in " +
           std::to_string(exact_) + " of " + std::to_string(count_) + ", largest error " +
           SignedPercent(largest_memory_) + "\nbackend: " + Backends() + "\n";
  }

 private:
  /// "aten", or how many steps ran on which.
  std::string Backends() const {
    std::vector<std::string> parts;
    for (const auto& [name, count] : backends_) {
      parts.push_back(name + (backends_.size() > 1 ? " in " + std::to_string(count) : ""));
    }
    return Join(parts, ", ");
  }

  static void KeepLarger(double error, double& largest) {
    largest = std::abs(error) > std::abs(largest) ? error : largest;
  }

  std::size_t count_ = 0;
  std::size_t exact_ = 0;
  double sum_ = 0;
  double largest_ = 0;
  double largest_memory_ = 0;
  std::map<std::string, std::size_t> backends_;
};

}  // namespace

std::string ComparisonLine(const std::string& label, Duration predicted, Duration measured) {
  return Line(label, FormatDuration(predicted), FormatDuration(measured),
              SignedPercent(
                  Error(static_cast<double>(predicted.ns()), static_cast<double>(measured.ns()))));
}

std::string PrintComparison(const Comparison& comparison) {
  const Result& predicted = comparison.predicted;
  const Result& measured = comparison.measured;
  if (predicted.outcome != "completed" || measured.outcome != "completed") {
    return comparison.name + "\n  predicted " + HowItEnded(predicted) + "\n  measured " +
           HowItEnded(measured) + "\n";
  }
  return comparison.name + "\n" +
         Line("backend " + BackendOf(measured), "predicted", "measured", "error") +
         ComparisonLine("step time", predicted.step_time, measured.step_time) +
         HostLine(comparison) + DeviceLines(comparison) +
         MemoryLine("peak memory, reserved", predicted.peak_reserved, measured.peak_reserved) +
         MemoryLine("  allocated", predicted.peak_allocated, measured.peak_allocated) +
         MemoryLine("  active", predicted.peak_active, measured.peak_active) +
         OutsideLine(predicted, measured) +
         MemoryLine("after the step", predicted.allocated_after_step,
                    measured.allocated_after_step);
}

std::string PrintComparisonTable(const std::vector<Comparison>& comparisons) {
  const std::string header = "predicted and measured";
  std::size_t width = header.size();
  for (const Comparison& each : comparisons) {
    width = std::max(width, each.name.size());
  }
  std::string text = FlushLeft(header, width) + "  step time, error             peak memory\n";
  Summary summary;
  for (const Comparison& each : comparisons) {
    text += FlushLeft(each.name, width);
    if (each.predicted.outcome != "completed" || each.measured.outcome != "completed") {
      text += "  predicted " + OutcomeText(each.predicted) + ", measured " +
              OutcomeText(each.measured) + "\n";
      continue;
    }
    text += ComparisonRow(each);
    summary.Add(each);
  }
  return text + summary.Print();
}

}  // namespace dcsim
