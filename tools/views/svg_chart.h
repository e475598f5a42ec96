#pragma once

#include <string>
#include <vector>

namespace dcsim {

/// A place on a picture, in pixels from its left and upper edge.
struct SvgPoint {
  double x = 0;
  double y = 0;
};

/// Values along one side of a chart, and the pixels that they lie at.
struct ChartAxis {
  double least = 0;
  double most = 1;
  double step = 1;  // between two ticks
  double from = 0;  // pixels of `least`
  double to = 1;    // pixels of `most`

  double At(double value) const { return from + (value - least) / (most - least) * (to - from); }
};

/// Over all values, which must be some, with a little room, from one tick to another; below 0 only
/// where a value is.
ChartAxis AxisOver(const std::vector<double>& values, double from, double to);

/// From zero to a tick above all values, which are not negative; to 1 where there are none.
ChartAxis AxisFromZero(const std::vector<double>& values, double from, double to);

std::vector<double> TicksOf(const ChartAxis& axis);

/// A tick's number, with as many decimals as the axis' step has.
std::string TickText(double value, const ChartAxis& axis);

/// Shapes and texts of one SVG picture, drawn in the order of the calls. Same calls, same bytes.
class SvgCanvas {
 public:
  SvgCanvas(double width, double height);

  /// `anchor` is start, middle or end; `style` more attributes of the element, or nothing.
  void Text(SvgPoint at,
            const std::string& anchor,
            const std::string& text,
            const std::string& style = "");
  void Line(SvgPoint from, SvgPoint to, const std::string& style);
  void Circle(SvgPoint centre, double radius, const std::string& style);
  void Square(SvgPoint centre, double side, const std::string& style);

  /// The whole file.
  std::string Finish() const;

 private:
  std::string svg_;
};

/// A number of an SVG attribute: one decimal.
std::string SvgNumber(double value);

/// Throws Error unless the path of `option` is empty or ends in .svg.
void CheckSvgPath(const std::string& option, const std::string& path);

}  // namespace dcsim
