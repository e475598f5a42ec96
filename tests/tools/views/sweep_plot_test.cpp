#include "tools/views/sweep_plot.h"

#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_text.h"
#include "tools/views/svg_chart.h"

namespace dcsim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Result Completed(std::int64_t ms, std::int64_t gib) {
  Result result;
  result.verdict = "fits";
  result.step_time = Duration::FromMs(ms);
  result.peak_reserved = Bytes::GiB(gib);
  result.capacity = Bytes::GiB(80);
  return result;
}

Result Stopped() {
  Result result = Completed(0, 0);
  result.outcome = "out_of_memory";
  result.verdict = "does_not_fit";
  return result;
}

SweepRow Row(const std::vector<std::string>& values, const Result& result) {
  SweepRow row;
  row.values = values;
  row.predicted.result = result;
  return row;
}

/// Two plans at three batches; the last of the second needs 96 GiB of 80.
SweepReport Report() {
  SweepReport report{"a<b & c", {"batch", "plan"}, {}};
  report.rows = {Row({"1", "x"}, Completed(100, 20)), Row({"1", "y"}, Completed(150, 40)),
                 Row({"2", "x"}, Completed(200, 40)), Row({"2", "y"}, Completed(300, 60)),
                 Row({"4", "x"}, Completed(400, 80)), Row({"4", "y"}, Stopped())};
  report.rows.back().predicted.unlimited = Completed(600, 96);
  return report;
}

/// One attribute of all elements of a name and colour, in their order.
std::vector<double> Attribute(const std::string& svg,
                              const std::string& element,
                              const std::string& name,
                              const std::string& colour) {
  std::vector<double> values;
  const std::regex shape("<" + element + " [^>]*>");
  const std::regex attribute(" " + name + "=\"([-0-9.]+)\"");
  for (std::sregex_iterator it(svg.begin(), svg.end(), shape), end; it != end; ++it) {
    const std::string text = it->str();
    std::smatch match;
    if (text.find(colour) != std::string::npos && std::regex_search(text, match, attribute)) {
      values.push_back(std::stod(match[1]));
    }
  }
  return values;
}

constexpr auto kFirst = "#2060a0";
constexpr auto kSecond = "#d06010";

// Panels are 190 pixels high: 0 to 400 ms end at pixel 246 and 56, 0 to 100 GiB at 474 and 284.
// Each point of a time is followed by its memory; the last of a colour stands in the legend.
TEST(SweepPlotTest, PointsLieAtTheirTimesAndMemory) {
  const auto heights = Attribute(PrintSweepPlot(Report()), "circle", "cy", kFirst);
  ASSERT_EQ(heights.size(), 7);
  EXPECT_THAT(std::vector(heights.begin(), heights.end() - 1),
              ElementsAre(198.5, 436.0, 151.0, 398.0, 56.0, 322.0));
}

// Two lines cross where the step does not fit: at the top of the times, and at 96 GiB. Its memory
// joins the line of the others; its time, which nobody knows, does not.
TEST(SweepPlotTest, StepThatDoesNotFitIsACross) {
  const auto heights = Attribute(PrintSweepPlot(Report()), "line", "y1", kSecond);
  EXPECT_THAT(heights, ElementsAre(174.8, 398.0, 360.0, 52.0, 60.0, 287.6, 295.6));
}

TEST(SweepPlotTest, NamesAreNotJoined) {
  SweepReport report = Report();
  report.keys.front() = "cluster";
  for (SweepRow& row : report.rows) {
    row.values.front() = "h200-" + row.values.front();
  }
  EXPECT_TRUE(Attribute(PrintSweepPlot(report), "line", "y1", kFirst).empty());
}

TEST(SweepPlotTest, BarsShowTheBound) {
  SweepReport report = Report();
  report.rows.front().predicted.result.bound = Duration::FromMs(40);
  const std::string svg = PrintSweepPlot(report);
  EXPECT_THAT(Attribute(svg, "line", "y1", kFirst), testing::Contains(217.5));
  EXPECT_THAT(Attribute(svg, "line", "y2", kFirst), testing::Contains(179.5));
  EXPECT_THAT(svg, HasSubstr("bars: +/- of the step time"));
  EXPECT_THAT(PrintSweepPlot(Report()), Not(HasSubstr("bars:")));
}

TEST(SweepPlotTest, SaysWhatAxesAndColoursAre) {
  const std::string svg = PrintSweepPlot(Report());
  for (const std::string text :
       {">a&lt;b &amp; c</text>", ">step time, ms</text>", ">peak of reserved memory, GiB</text>",
        ">batch, sequences of a micro-step</text>", ">plan=x</text>", ">plan=y</text>"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
}

TEST(SweepPlotTest, NothingThatCompletesHasNoTicksOfTime) {
  SweepReport report{"m", {"stage"}, {Row({"1", ""}, Stopped())}};
  report.rows.front().values = {"1"};
  const std::string svg = PrintSweepPlot(report);
  EXPECT_THAT(svg, HasSubstr(">no step completes</text>"));
  EXPECT_THAT(svg, HasSubstr(">unknown</text>"));
}

TEST(SweepPlotTest, LongNamesAreTilted) {
  SweepReport report = Report();
  EXPECT_THAT(PrintSweepPlot(report), Not(HasSubstr("rotate")));
  report.rows.front().values.front() = std::string(40, 'n');
  EXPECT_THAT(PrintSweepPlot(report), HasSubstr("rotate(-30"));
}

TEST(SvgChartTest, AxisFromZeroReachesAllValues) {
  for (const double most : {0.003, 0.9, 1.0, 7.0, 99.0, 123456.0}) {
    const ChartAxis axis = AxisFromZero({most / 2, most}, 100, 0);
    EXPECT_EQ(axis.least, 0);
    EXPECT_GE(axis.most, most);
    EXPECT_LE(axis.most, 2 * most);
    EXPECT_LE(TicksOf(axis).size(), 7);
  }
}

TEST(SvgChartTest, OtherEndingIsAnError) {
  EXPECT_EQ(ErrorText([] { CheckSvgPath("--plot", "a.png"); }),
            "--plot a.png: expected a name in .svg");
  EXPECT_NO_THROW(CheckSvgPath("--plot", "a.svg"));
  EXPECT_NO_THROW(CheckSvgPath("--plot", ""));
}

}  // namespace
}  // namespace dcsim
