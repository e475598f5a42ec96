#include "tools/views/search_plot.h"

#include <utility>
#include <vector>

#include "tools/views/svg_chart.h"

namespace dcsim {
namespace {

constexpr double kWidth = 720;
constexpr double kHeight = 440;
constexpr double kLeft = 70;
constexpr double kRight = 20;
constexpr double kTop = 40;
constexpr double kBottom = 50;

struct Point {
  double gib = 0;
  double ms = 0;
};

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
    canvas_.Text({kLeft, kTop - 18}, "start",
                 report_.workload + ", " + std::to_string(report_.ranks) + " x " + report_.gpu);
    DrawAxes();
    DrawLimit();
    DrawFront();
    for (const auto& [name, point] : baselines_) {
      const SvgPoint at = At(point);
      canvas_.Square(at, 8, "fill=\"#b02020\"");
      const bool at_right = at.x > (kLeft + kWidth) / 2;
      canvas_.Text({at.x + (at_right ? -8 : 8), at.y + 4}, at_right ? "end" : "start", name);
    }
    return canvas_.Finish();
  }

 private:
  SvgPoint At(Point point) const { return {x_.At(point.gib), y_.At(point.ms)}; }

  void DrawAxes() {
    const std::string grid = "stroke=\"#dddddd\"";
    for (const double gib : TicksOf(x_)) {
      canvas_.Line({x_.At(gib), kTop}, {x_.At(gib), kHeight - kBottom}, grid);
      canvas_.Text({x_.At(gib), kHeight - kBottom + 16}, "middle", TickText(gib, x_));
    }
    for (const double ms : TicksOf(y_)) {
      canvas_.Line({kLeft, y_.At(ms)}, {kWidth - kRight, y_.At(ms)}, grid);
      canvas_.Text({kLeft - 6, y_.At(ms) + 4}, "end", TickText(ms, y_));
    }
    canvas_.Text({(kLeft + kWidth) / 2, kHeight - 12}, "middle", "peak of reserved memory, GiB");
    canvas_.Text({kLeft - 50, kTop - 18}, "start", "ms");
  }

  void DrawLimit() {
    const double limit = report_.limit.gib();
    if (limit > x_.least && limit < x_.most) {
      canvas_.Line({x_.At(limit), kTop}, {x_.At(limit), kHeight - kBottom},
                   "stroke=\"#888888\" stroke-dasharray=\"4 4\"");
    }
  }

  void DrawFront() {
    for (std::size_t i = 0; i < front_.size(); ++i) {
      const SvgPoint at = At(front_[i]);
      if (i > 0) {
        canvas_.Line(At(front_[i - 1]), at, "stroke=\"#2060a0\"");
      }
      canvas_.Circle(
          at, i == 0 ? 5 : 3,
          i == 0 ? "fill=\"#2060a0\" stroke=\"#2060a0\"" : "fill=\"white\" stroke=\"#2060a0\"");
    }
    const SvgPoint best = At(front_.front());
    canvas_.Text({best.x, best.y - 10}, "middle", "best");
  }

  const SearchReport& report_;
  std::vector<Point> front_;
  std::vector<std::pair<std::string, Point>> baselines_;
  ChartAxis x_;
  ChartAxis y_;
  SvgCanvas canvas_{kWidth, kHeight};
};

}  // namespace

std::string PrintSearchPlot(const SearchReport& report) {
  return Picture(report).Draw();
}

}  // namespace dcsim
