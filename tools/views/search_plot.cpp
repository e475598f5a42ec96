#include "tools/views/search_plot.h"

#include <algorithm>
#include <array>
#include <cstdio>
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

Point PointOf(Duration time, Bytes reserved) {
  return {reserved.gib(), time.ms()};
}

/// Lengths along one axis onto the picture.
struct Axis {
  double least = 0;
  double most = 1;
  double from = 0;
  double to = 1;

  double At(double value) const { return from + (value - least) / (most - least) * (to - from); }
};

/// From a little below the least to a little above the most value.
Axis AxisOver(const std::vector<double>& values, double from, double to) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double room = std::max(0.05 * (*most - *least), 1e-3 * *most + 1e-6);
  return {*least - room, *most + room, from, to};
}

class Picture {
 public:
  explicit Picture(const SearchReport& report) : report_(report) {
    for (const Scored& member : report.search.front) {
      front_.push_back(PointOf(member.score.step_time, member.score.peak_reserved));
    }
    baseline_ = PointOf(report.baseline.result.step_time, report.baseline.result.peak_reserved);
    std::vector<double> gib = {baseline_.gib};
    std::vector<double> ms = {baseline_.ms};
    for (const Point& point : front_) {
      gib.push_back(point.gib);
      ms.push_back(point.ms);
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
    Square(baseline_);
    Text(x_.At(baseline_.gib) + 8, y_.At(baseline_.ms) + 4, "start", "baseline");
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
    constexpr int kTicks = 5;
    const std::string grid = "stroke=\"#dddddd\"";
    for (int i = 0; i <= kTicks; ++i) {
      const double gib = x_.least + (x_.most - x_.least) * i / kTicks;
      const double ms = y_.least + (y_.most - y_.least) * i / kTicks;
      Line({x_.At(gib), kTop}, {x_.At(gib), kHeight - kBottom}, grid);
      Line({kLeft, y_.At(ms)}, {kWidth - kRight, y_.At(ms)}, grid);
      Text(x_.At(gib), kHeight - kBottom + 16, "middle", Number(gib));
      Text(kLeft - 6, y_.At(ms) + 4, "end", Number(ms));
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
    Text(x_.At(front_.front().gib), y_.At(front_.front().ms) + 18, "middle", "best");
  }

  const SearchReport& report_;
  std::vector<Point> front_;
  Point baseline_;
  Axis x_;
  Axis y_;
  std::string svg_;
};

}  // namespace

std::string PrintSearchPlot(const SearchReport& report) {
  return Picture(report).Draw();
}

}  // namespace dcsim
