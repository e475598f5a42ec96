#include "tools/views/sweep_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "model/base/text.h"
#include "tools/views/svg_chart.h"

namespace dcsim {
namespace {

constexpr double kWidth = 720;
constexpr double kLeft = 70;
constexpr double kRight = 20;
constexpr double kTimeTop = 56;
constexpr double kTimeBottom = 246;
constexpr double kMemoryTop = 284;
constexpr double kMemoryBottom = 474;
constexpr double kLine = 18;        // height of a line of text
constexpr double kCharacter = 6.5;  // width of one, at most
constexpr auto kGround = "stroke=\"#888888\"";

/// What a row shows. Without a time it does not complete; without memory, nobody knows how much.
struct Mark {
  std::size_t series = 0;
  std::size_t x = 0;
  std::optional<double> ms;
  std::optional<double> bound_ms;
  std::optional<double> gib;
  double capacity_gib = 0;
  bool fits = false;  // and is sure to

  bool completes() const { return ms.has_value(); }
};

std::size_t IndexOf(std::vector<std::string>& known, const std::string& name) {
  const auto found = std::find(known.begin(), known.end(), name);
  if (found != known.end()) {
    return static_cast<std::size_t>(found - known.begin());
  }
  known.push_back(name);
  return known.size() - 1;
}

std::string SeriesOf(const SweepReport& report, const SweepRow& row) {
  std::vector<std::string> parts;
  for (std::size_t i = 1; i < report.keys.size(); ++i) {
    parts.push_back(report.keys[i] + "=" + row.values[i]);
  }
  return Join(parts, ", ");
}

Mark MarkOf(const PredictedVariant& predicted) {
  const Result& result = predicted.result;
  Mark mark;
  mark.capacity_gib = result.capacity.gib();
  mark.fits = result.verdict == "fits";
  if (result.outcome == "completed") {
    mark.ms = result.step_time.ms();
    if (result.bound) {
      mark.bound_ms = result.bound->ms();
    }
  }
  if (const auto reserved = ReservedMemory(predicted)) {
    mark.gib = reserved->gib();
  }
  return mark;
}

std::string Colour(std::size_t series) {
  constexpr std::array<const char*, 8> kColours = {"#2060a0", "#d06010", "#208040", "#a02060",
                                                   "#6050a0", "#806000", "#108090", "#404040"};
  return kColours[series % kColours.size()];
}

/// What the values of a key are, for the axis.
std::string AxisLabel(const std::string& key) {
  constexpr std::array<std::pair<const char*, const char*>, 3> kUnits = {
      {{"batch", "sequences of a micro-step"},
       {"seq", "tokens of a sequence"},
       {"gpus", "data-parallel ranks"}}};
  for (const auto& [name, unit] : kUnits) {
    if (key == name) {
      return key + ", " + unit;
    }
  }
  return key;
}

class Picture {
 public:
  explicit Picture(const SweepReport& report) : report_(report) {
    for (const SweepRow& row : report.rows) {
      Mark mark = MarkOf(row.predicted);
      mark.x = IndexOf(values_, row.values.front());
      mark.series = IndexOf(series_, SeriesOf(report, row));
      marks_.push_back(mark);
    }
    numbers_ = std::all_of(values_.begin(), values_.end(),
                           [](const std::string& value) { return FindNumber(value).has_value(); });
    time_ = AxisFromZero(Highest(&Mark::ms, &Mark::bound_ms), kTimeBottom, kTimeTop);
    memory_ = AxisFromZero(Highest(&Mark::gib, nullptr), kMemoryBottom, kMemoryTop);
    canvas_ = SvgCanvas(kWidth, Height());
  }

  std::string Draw() {
    canvas_.Text({kLeft, 20}, "start", report_.title, "font-weight=\"bold\"");
    DrawPanel(time_, "step time, ms", Any(&Mark::ms) ? "" : "no step completes");
    DrawPanel(memory_, "peak of reserved memory, GiB", Any(&Mark::gib) ? "" : "unknown");
    DrawValues();
    for (const Mark& mark : marks_) {
      DrawCapacity(mark);
    }
    for (std::size_t series = 0; series < series_.size(); ++series) {
      DrawSeries(series);
    }
    DrawLegend();
    return canvas_.Finish();
  }

 private:
  bool tilted() const {
    return std::any_of(values_.begin(), values_.end(), [this](const std::string& value) {
      return static_cast<double>(value.size()) * kCharacter > Spacing();
    });
  }
  double LabelsHeight() const {
    constexpr double kSine = 0.5;  // of 30 degrees
    std::size_t longest = 0;
    for (const std::string& value : values_) {
      longest = std::max(longest, value.size());
    }
    return tilted() ? kLine + kSine * kCharacter * static_cast<double>(longest) : kLine;
  }
  double LegendTop() const { return kMemoryBottom + LabelsHeight() + 2 * kLine + 8; }
  double Height() const {
    const std::size_t lines = 2 + (series_.size() > 1 ? series_.size() : 0);
    return LegendTop() + kLine * static_cast<double>(lines);
  }

  bool Any(std::optional<double> Mark::*figure) const {
    return std::any_of(marks_.begin(), marks_.end(),
                       [figure](const Mark& mark) { return (mark.*figure).has_value(); });
  }

  std::vector<double> Highest(std::optional<double> Mark::*figure,
                              std::optional<double> Mark::*bound) const {
    std::vector<double> values;
    for (const Mark& mark : marks_) {
      if (mark.*figure) {
        values.push_back(*(mark.*figure) + (bound == nullptr ? 0 : (mark.*bound).value_or(0)));
      }
    }
    return values;
  }

  double Spacing() const { return (kWidth - kRight - kLeft) / static_cast<double>(values_.size()); }
  double CentreOf(std::size_t value) const {
    return kLeft + (static_cast<double>(value) + 0.5) * Spacing();
  }
  /// Series stand side by side, so that equal ones do not hide each other.
  double XOf(const Mark& mark) const {
    const auto count = static_cast<double>(series_.size());
    const double apart = std::min(12.0, 0.6 * Spacing() / count);
    return CentreOf(mark.x) + (static_cast<double>(mark.series) - (count - 1) / 2) * apart;
  }

  void DrawPanel(const ChartAxis& axis, const std::string& label, const std::string& empty) {
    canvas_.Text({kLeft, axis.to - 8}, "start", label);
    if (!empty.empty()) {
      canvas_.Line({kLeft, axis.from}, {kWidth - kRight, axis.from}, kGround);
      canvas_.Text({(kLeft + kWidth) / 2, (axis.from + axis.to) / 2}, "middle", empty);
      return;
    }
    for (const double value : TicksOf(axis)) {
      canvas_.Line({kLeft, axis.At(value)}, {kWidth - kRight, axis.At(value)},
                   value > 0 ? "stroke=\"#dddddd\"" : kGround);
      canvas_.Text({kLeft - 6, axis.At(value) + 4}, "end", TickText(value, axis));
    }
  }

  void DrawValues() {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const SvgPoint at{CentreOf(i), kMemoryBottom + kLine};
      const std::string turn =
          "transform=\"rotate(-30 " + SvgNumber(at.x) + " " + SvgNumber(at.y) + ")\"";
      canvas_.Text(at, tilted() ? "end" : "middle", values_[i], tilted() ? turn : "");
    }
    canvas_.Text({(kLeft + kWidth) / 2, kMemoryBottom + LabelsHeight() + kLine}, "middle",
                 AxisLabel(report_.keys.front()));
  }

  /// Where the picture is high enough: much free memory would press all else to the ground.
  void DrawCapacity(const Mark& mark) {
    if (mark.capacity_gib <= memory_.most) {
      const double y = memory_.At(mark.capacity_gib);
      const double half = 0.45 * Spacing();
      canvas_.Line({CentreOf(mark.x) - half, y}, {CentreOf(mark.x) + half, y},
                   "stroke=\"#888888\" stroke-dasharray=\"4 4\"");
    }
  }

  void DrawSeries(std::size_t series) {
    const std::string stroke = "stroke=\"" + Colour(series) + "\"";
    const Mark* before = nullptr;
    for (const Mark& mark : marks_) {
      if (mark.series != series) {
        continue;
      }
      if (before != nullptr && numbers_) {
        Join(*before, mark, stroke);
      }
      before = &mark;
    }
    for (const Mark& mark : marks_) {
      if (mark.series == series) {
        DrawMark(mark, stroke);
      }
    }
  }

  /// Lines between steps that complete, and between those whose memory is known.
  void Join(const Mark& from, const Mark& to, const std::string& stroke) {
    if (from.ms && to.ms) {
      canvas_.Line({XOf(from), time_.At(*from.ms)}, {XOf(to), time_.At(*to.ms)}, stroke);
    }
    if (from.gib && to.gib) {
      canvas_.Line({XOf(from), memory_.At(*from.gib)}, {XOf(to), memory_.At(*to.gib)}, stroke);
    }
  }

  void DrawMark(const Mark& mark, const std::string& stroke) {
    const double x = XOf(mark);
    if (mark.ms && mark.bound_ms) {
      canvas_.Line({x, time_.At(std::max(0.0, *mark.ms - *mark.bound_ms))},
                   {x, time_.At(*mark.ms + *mark.bound_ms)}, stroke);
    }
    DrawPoint({x, mark.ms ? time_.At(*mark.ms) : kTimeTop}, mark, Colour(mark.series));
    DrawPoint({x, mark.gib ? memory_.At(*mark.gib) : kMemoryTop}, mark, Colour(mark.series));
  }

  void DrawPoint(SvgPoint at, const Mark& mark, const std::string& colour) {
    constexpr double kRadius = 4;
    const std::string stroke = "stroke=\"" + colour + "\"";
    if (mark.completes()) {
      canvas_.Circle(at, kRadius,
                     "fill=\"" + (mark.fits ? colour : std::string("white")) + "\" " + stroke);
      return;
    }
    const std::string thick = stroke + " stroke-width=\"2\"";
    canvas_.Line({at.x - kRadius, at.y - kRadius}, {at.x + kRadius, at.y + kRadius}, thick);
    canvas_.Line({at.x - kRadius, at.y + kRadius}, {at.x + kRadius, at.y - kRadius}, thick);
  }

  void DrawLegend() {
    double y = LegendTop();
    Mark shown;
    const auto add = [&](double x, const std::string& text, const std::string& colour) {
      DrawPoint({x, y - 4}, shown, colour);
      canvas_.Text({x + 10, y}, "start", text);
    };
    shown.ms = 0;
    shown.fits = true;
    for (std::size_t i = 0; series_.size() > 1 && i < series_.size(); ++i, y += kLine) {
      add(kLeft, series_[i], Colour(i));
    }
    const std::string grey = "#888888";
    add(kLeft, "fits", grey);
    shown.fits = false;
    add(kLeft + 60, "may run out of memory", grey);
    shown.ms = std::nullopt;
    add(kLeft + 230, "out of memory, or deadlock", grey);
    const std::string bars = Any(&Mark::bound_ms) ? "bars: +/- of the step time; " : "";
    canvas_.Text({kLeft, y + kLine}, "start",
                 bars + "dashes: memory of the GPU, where the picture is high enough");
  }

  const SweepReport& report_;
  std::vector<std::string> values_;  // of the first key
  std::vector<std::string> series_;  // of the other keys
  std::vector<Mark> marks_;          // by row
  bool numbers_ = false;             // the first key's values are
  ChartAxis time_;
  ChartAxis memory_;
  SvgCanvas canvas_{0, 0};
};

}  // namespace

std::string PrintSweepPlot(const SweepReport& report) {
  return Picture(report).Draw();
}

}  // namespace dcsim
