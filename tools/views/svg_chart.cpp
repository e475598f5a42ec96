#include "tools/views/svg_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "model/base/error.h"
#include "tools/views/markup.h"

namespace dcsim {
namespace {

std::string Decimals(double value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

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

std::string Attributes(const std::string& style) {
  return style.empty() ? "" : " " + style;
}

}  // namespace

ChartAxis AxisOver(const std::vector<double>& values, double from, double to) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double room = std::max(0.05 * (*most - *least), 1e-3 * *most + 1e-6);
  const double step = TickStep(*most - *least + 2 * room);
  const double first = *least < 0 ? *least - room : std::max(0.0, *least - room);
  return {step * std::floor(first / step), step * std::ceil((*most + room) / step), step, from, to};
}

ChartAxis AxisFromZero(const std::vector<double>& values, double from, double to) {
  const auto most = std::max_element(values.begin(), values.end());
  const double highest = most == values.end() || *most <= 0 ? 1 : *most;
  const double step = TickStep(highest);
  return {0, step * std::ceil(highest / step), step, from, to};
}

std::vector<double> TicksOf(const ChartAxis& axis) {
  std::vector<double> ticks;
  const auto first = std::llround(axis.least / axis.step);
  for (auto i = first; i <= std::llround(axis.most / axis.step); ++i) {
    ticks.push_back(static_cast<double>(i) * axis.step);
  }
  return ticks;
}

std::string TickText(double value, const ChartAxis& axis) {
  return Decimals(value, std::max(0, -static_cast<int>(std::floor(std::log10(axis.step * 1.001)))));
}

SvgCanvas::SvgCanvas(double width, double height)
    : svg_("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + SvgNumber(width) +
           "\" height=\"" + SvgNumber(height) +
           "\" font-family=\"sans-serif\" font-size=\"12\">\n"
           "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n") {}

void SvgCanvas::Text(SvgPoint at,
                     const std::string& anchor,
                     const std::string& text,
                     const std::string& style) {
  svg_ += "<text x=\"" + SvgNumber(at.x) + "\" y=\"" + SvgNumber(at.y) + "\" text-anchor=\"" +
          anchor + "\"" + Attributes(style) + ">" + EscapeMarkup(text, "&<>") + "</text>\n";
}

void SvgCanvas::Line(SvgPoint from, SvgPoint to, const std::string& style) {
  svg_ += "<line x1=\"" + SvgNumber(from.x) + "\" y1=\"" + SvgNumber(from.y) + "\" x2=\"" +
          SvgNumber(to.x) + "\" y2=\"" + SvgNumber(to.y) + "\"" + Attributes(style) + "/>\n";
}

void SvgCanvas::Circle(SvgPoint centre, double radius, const std::string& style) {
  svg_ += "<circle cx=\"" + SvgNumber(centre.x) + "\" cy=\"" + SvgNumber(centre.y) + "\" r=\"" +
          SvgNumber(radius) + "\"" + Attributes(style) + "/>\n";
}

void SvgCanvas::Square(SvgPoint centre, double side, const std::string& style) {
  svg_ += "<rect x=\"" + SvgNumber(centre.x - side / 2) + "\" y=\"" +
          SvgNumber(centre.y - side / 2) + "\" width=\"" + SvgNumber(side) + "\" height=\"" +
          SvgNumber(side) + "\"" + Attributes(style) + "/>\n";
}

std::string SvgCanvas::Finish() const {
  return svg_ + "</svg>\n";
}

std::string SvgNumber(double value) {
  return Decimals(value, 1);
}

void CheckSvgPath(const std::string& option, const std::string& path) {
  if (!path.empty() && !path.ends_with(".svg")) {
    throw Error(option + " " + path + ": expected a name in .svg");
  }
}

}  // namespace dcsim
