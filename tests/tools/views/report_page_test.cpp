#include "tools/views/report_page.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/views/predicted_step.h"

namespace dcsim {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string PageOf(const PredictedStep& step, const std::optional<Beside>& beside = std::nullopt) {
  return PrintReportPage(
      {step.result, step.cluster, step.schedule, step.graph, step.timeline, beside},
      {{"dc-sim", "1.2.3"}});
}

std::size_t CountOf(const std::string& word, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

/// What the page draws, read back.
Json DataOf(const std::string& page) {
  const std::string begin = R"(<script id="data" type="application/json">)";
  const std::size_t from = page.find(begin) + begin.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST(ReportPageTest, NoTextEndsTheScriptThatHoldsIt) {
  const Json document = {{"name", "</script><!-- <script>alert(1)</script> & \"'"}};
  const std::string text = PrintScriptJson(document);
  EXPECT_THAT(text, Not(HasSubstr("<")));
  EXPECT_EQ(Json::parse(text), document);
}

TEST(ReportPageTest, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_EQ(PrintScriptJson("a\xff"), "\"a\xef\xbf\xbd\"");
}

TEST(ReportPageTest, HtmlHoldsTextAsItIs) {
  EXPECT_EQ(EscapeHtml(R"(<b title="x">&amp;)"), "&lt;b title=&quot;x&quot;>&amp;amp;");
}

TEST(ReportPageTest, AHostileNameStaysText) {
  PredictedStep step = PredictStack(2);
  const std::string scripts = PageOf(step);
  step.result.workload = "</script><script>alert(1)</script>@DATA@@LIBRARY@";
  const std::string page = PageOf(step);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_EQ(CountOf("</script>", page), CountOf("</script>", scripts));
  EXPECT_EQ(DataOf(page)["result"]["workload"]["name"], step.result.workload);
}

TEST(ReportPageTest, TheSameStepGivesTheSameBytes) {
  EXPECT_EQ(PageOf(PredictStack(2)), PageOf(PredictStack(2)));
}

TEST(ReportPageTest, TheVerdictIsTextOfThePage) {
  const PredictedStep step = PredictStack(2);
  const std::string page = PageOf(step);
  EXPECT_THAT(page, HasSubstr("<h1 id=\"verdict\">fits: "));
  EXPECT_THAT(page, Not(HasSubstr("@TITLE@")));
  EXPECT_EQ(DataOf(page)["result"]["step_time_ns"], step.result.step_time.ns());
  EXPECT_TRUE(DataOf(page)["beside"].is_null());
}

TEST(ReportPageTest, ATraceStandsBesideThePrediction) {
  Beside beside;
  beside.file = "step.json.gz";
  beside.step = {Duration::FromNs(200), Duration::FromNs(100)};
  beside.measured[0] = {Duration::FromNs(70), 1};
  const Json shown = DataOf(PageOf(PredictStack(2), beside))["beside"];
  EXPECT_EQ(shown["trace"], "step.json.gz");
  EXPECT_EQ(shown["step"]["predicted_ns"], 100);
  EXPECT_EQ(shown["rows"].size(), 3U);
  EXPECT_EQ(shown["rows"][0]["label"], "matrix products");
  EXPECT_EQ(shown["rows"][0]["measured_ns"], 70);
}

}  // namespace
}  // namespace dcsim
