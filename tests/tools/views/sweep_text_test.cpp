#include "tools/views/sweep_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dcsim {
namespace {

using testing::HasSubstr;

Result Completed(std::int64_t step_ns, double tokens, int gpus) {
  Result result;
  result.verdict = "fits";
  result.step_time = Duration::FromNs(step_ns);
  result.tokens_per_second = tokens;
  result.gpus = gpus;
  result.peak_reserved = Bytes::GiB(3);
  result.capacity = Bytes::GiB(8);
  return result;
}

SweepReport Report() {
  SweepReport report{"m", {"gpus", "plan"}, {}};
  report.rows.push_back({{"2", "a,b"}, {}});
  report.rows.back().predicted.result = Completed(2'000'000, 1000, 2);
  report.rows.push_back({{"8", "say \"c\""}, {}});
  report.rows.back().predicted.result = Completed(1'000'000, 3000, 8);
  Result& stopped = (report.rows.emplace_back(SweepRow{{"1", "d"}, {}})).predicted.result;
  stopped = Completed(0, 0, 1);
  stopped.outcome = "out_of_memory";
  stopped.verdict = "does_not_fit";
  return report;
}

// 500 tokens a second and GPU are more than 375.
TEST(SweepTextTest, BestRowIsTheOneWithMostTokensOfAGpu) {
  const std::string text = PrintSweepText(Report());
  EXPECT_THAT(text, HasSubstr("of those that fit: gpus=2, plan=a,b\n"));
  EXPECT_THAT(text, HasSubstr("does not fit"));
}

TEST(SweepTextTest, CsvQuotesWhatSeparatesCellsAndNamesNoColumnTwice) {
  const std::string csv = PrintSweepCsv(Report());
  EXPECT_THAT(csv, HasSubstr("gpus,plan,backend,verdict,step_time_ns,"));
  EXPECT_THAT(csv, HasSubstr("\n2,\"a,b\",aten,fits,2000000,,1000.0,"));
  EXPECT_THAT(csv, HasSubstr("\n8,\"say \"\"c\"\"\",aten,fits,1000000,"));
  EXPECT_THAT(csv, HasSubstr("\n1,d,aten,does_not_fit,,,,,,,,8589934592,,,\n"));
}

TEST(SweepTextTest, RowThatDoesNotFitSaysWhatItTakesWithAmpleMemory) {
  SweepReport report = Report();
  EXPECT_EQ(PrintSweep(report)["rows"][2]["reserved_bytes"], nullptr);
  report.rows[2].predicted.unlimited = Completed(1, 1, 1);
  EXPECT_EQ(PrintSweep(report)["rows"][2]["reserved_bytes"], Bytes::GiB(3).count());
}

}  // namespace
}  // namespace dcsim
