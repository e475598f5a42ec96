#include "tools/views/search_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "model/base/text.h"

namespace dcsim {
namespace {

constexpr double kWidth = 720;
constexpr double kHeight = 440;
constexpr double kLeft = 70;
constexpr double kRight = 20;
constexpr double kTop = 40;
constexpr double kBottom = 50;

std::string Number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

struct Point {
  double gib = 0;
  double ms = 0;
};

/// Lengths along one axis onto the picture.
struct Axis {
  double least = 0;
  double most = 1;
  double step = 1;  // between two ticks
  double from = 0;
  double to = 1;

  double At(double value) const { return from + (value - least) / (most - least) * (to - from); }
};

/// 1, 2 or 5 times a power of ten, so that about five steps fill `range`.
double TickStep(double range) {
  constexpr double kTicks = 5;
  const double power = std::pow(10.0, std::floor(std::log10(range / kTicks)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (range <= kTicks * factor * power) {
      return factor * power;
    }
  }
  return 10 * power;
}

/// Over all values, from one tick to another.
Axis AxisOver(const std::vector<double>& values, double from, double to) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double room = std::max(0.05 * (*most - *least), 1e-3 * *most + 1e-6);
  const double step = TickStep(*most - *least + 2 * room);
  return {step * std::floor((*least - room) / step), step * std::ceil((*most + room) / step), step,
          from, to};
}

/// A tick's number, with as many decimals as its step has.
std::string TickText(double value, double step) {
  const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step * 1.001))));
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

std::vector<double> TicksOf(const Axis& axis) {
  std::vector<double> ticks;
  const auto first = std::llround(axis.least / axis.step);
  for (auto i = first; i <= std::llround(axis.most / axis.step); ++i) {
    ticks.push_back(static_cast<double>(i) * axis.step);
  }
  return ticks;
}

class Picture {
 public:
  explicit Picture(const SearchReport& report) : report_(report) {
    std::vector<double> gib;
    std::vector<double> ms;
    const auto add = [&](const Result& result) {
      const Point point{result.peak_reserved.gib(), result.step_time.ms()};
      gib.push_back(point.gib);
      ms.push_back(point.ms);
      return point;
    };
    for (const ReportedPlan& member : report.front) {
      front_.push_back(add(member.result));
    }
    for (const Baseline& each : report.baselines) {
      if (each.reported.result.step_time > Duration()) {
        baselines_.emplace_back(each.name, add(each.reported.result));
      }
    }
    x_ = AxisOver(gib, kLeft, kWidth - kRight);
    y_ = AxisOver(ms, kHeight - kBottom, kTop);
  }

  std::string Draw() {
    svg_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + Number(kWidth) + "\" height=\"" +
           Number(kHeight) + "\" font-family=\"sans-serif\" font-size=\"12\">\n" +
           "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    Text(kLeft, kTop - 18, "start",
         report_.workload + ", " + std::to_string(report_.ranks) + " x " + report_.gpu);
    DrawAxes();
    DrawLimit();
    DrawFront();
    for (const auto& [name, point] : baselines_) {
      Square(point);
      const bool at_right = x_.At(point.gib) > (kLeft + kWidth) / 2;
      Text(x_.At(point.gib) + (at_right ? -8 : 8), y_.At(point.ms) + 4, at_right ? "end" : "start",
           name);
    }
    return svg_ + "</svg>\n";
  }

 private:
  void Text(double x, double y, const std::string& anchor, const std::string& text) {
    svg_ += "<text x=\"" + Number(x) + "\" y=\"" + Number(y) + "\" text-anchor=\"" + anchor +
            "\">" + text + "</text>\n";
  }
  void Line(Point from, Point to, const std::string& style) {
    svg_ += "<line x1=\"" + Number(from.gib) + "\" y1=\"" + Number(from.ms) + "\" x2=\"" +
            Number(to.gib) + "\" y2=\"" + Number(to.ms) + "\" " + style + "/>\n";
  }
  void Square(Point point) {
    svg_ += "<rect x=\"" + Number(x_.At(point.gib) - 4) + "\" y=\"" + Number(y_.At(point.ms) - 4) +
            "\" width=\"8\" height=\"8\" fill=\"#b02020\"/>\n";
  }

  void DrawAxes() {
    const std::string grid = "stroke=\"#dddddd\"";
    for (const double gib : TicksOf(x_)) {
      Line({x_.At(gib), kTop}, {x_.At(gib), kHeight - kBottom}, grid);
      Text(x_.At(gib), kHeight - kBottom + 16, "middle", TickText(gib, x_.step));
    }
    for (const double ms : TicksOf(y_)) {
      Line({kLeft, y_.At(ms)}, {kWidth - kRight, y_.At(ms)}, grid);
      Text(kLeft - 6, y_.At(ms) + 4, "end", TickText(ms, y_.step));
    }
    Text((kLeft + kWidth) / 2, kHeight - 12, "middle", "peak of reserved memory, GiB");
    Text(kLeft - 50, kTop - 18, "start", "ms");
  }

  void DrawLimit() {
    const double limit = report_.limit.gib();
    if (limit > x_.least && limit < x_.most) {
      Line({x_.At(limit), kTop}, {x_.At(limit), kHeight - kBottom},
           "stroke=\"#888888\" stroke-dasharray=\"4 4\"");
    }
  }

  void DrawFront() {
    for (std::size_t i = 0; i < front_.size(); ++i) {
      const double x = x_.At(front_[i].gib);
      const double y = y_.At(front_[i].ms);
      if (i > 0) {
        Line({x_.At(front_[i - 1].gib), y_.At(front_[i - 1].ms)}, {x, y}, "stroke=\"#2060a0\"");
      }
      svg_ += "<circle cx=\"" + Number(x) + "\" cy=\"" + Number(y) + "\" r=\"" +
              (i == 0 ? "5" : "3") + "\" fill=\"" + (i == 0 ? "#2060a0" : "white") +
              "\" stroke=\"#2060a0\"/>\n";
    }
    Text(x_.At(front_.front().gib), y_.At(front_.front().ms) - 10, "middle", "best");
  }

  const SearchReport& report_;
  std::vector<Point> front_;
  std::vector<std::pair<std::string, Point>> baselines_;
  Axis x_;
  Axis y_;
  std::string svg_;
};

}  // namespace

std::string PrintSearchPlot(const SearchReport& report) {
  return Picture(report).Draw();
}

}  // namespace dcsim
