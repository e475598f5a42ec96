#include "model/ir/collective_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

/// "reduce after 0 1" for each collective of TwoLayers on two ranks.
std::vector<std::string> Lines(const PlanSpec& spec) {
  std::vector<std::string> lines;
  for (const Json& each : PrintCollectives(LowerTiny(spec, TwoLayers()), TwoLayers())) {
    std::string line = each["stream"].get<std::string>() + " " + each["kind"].get<std::string>();
    for (const Json& call : each["calls"]) {
      line += " " + (call[0].is_null() ? "all" : call[0].get<std::string>());
    }
    line += " after";
    for (const Json& earlier : each["after"]) {
      line += " " + std::to_string(earlier.get<int>());
    }
    lines.push_back(line);
  }
  return lines;
}

// The gathers of the forward follow each other on their stream; that of the backward too. Both
// gradients go out in one flush at the end of the backward: compute has waited for all gathers
// before it made them.
TEST(CollectiveRecordTest, EachFollowsWhatHasEndedForCertain) {
  EXPECT_THAT(
      Lines(TinySpec(3)),
      testing::ElementsAre("gather all_gather w1 after", "gather all_gather w2 after 0",
                           "gather all_gather w2 after 1", "reduce reduce_scatter w2 w1 after 2"));
}

// ZeRO-1: the gradients' all-reduce, then the gather of the updated weights, on one stream.
TEST(CollectiveRecordTest, FlatTensorsHaveNoParameter) {
  EXPECT_THAT(Lines(TinySpec(1)), testing::ElementsAre("reduce all_reduce w2 w1 after",
                                                       "reduce all_gather all after 0"));
}

// w2 is kept: its one gather is that of the forward. Sizes: w1 padded to 16 elements of 2 B.
TEST(CollectiveRecordTest, SizesAndPlacesAreThoseOfTheSchedule) {
  PlanSpec spec = TinySpec(3);
  spec.keep_gathered.patterns = {"w2"};
  const Json list = PrintCollectives(LowerTiny(spec, TwoLayers()), TwoLayers());
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0].dump(),
            R"({"kind":"all_gather","engine":"nccl","dtype":"bfloat16","stream":"gather",)"
            R"("communicator":0,"micro_step":0,"one_launch":false,"calls":[["w1",16,0]],)"
            R"("payload_bytes":32,"wire_bytes":16,"after":[]})");
}

// Two micro-steps: nothing of the second can start before the flush that the host has waited for.
TEST(CollectiveRecordTest, TheHostsWaitsOrderMicroSteps) {
  PlanSpec spec = TinySpec(2);
  spec.options.gradient_accumulation_steps = 2;
  EXPECT_THAT(Lines(spec), testing::ElementsAre("reduce all_reduce w2 w1 after",
                                                "reduce all_reduce w2 w1 after 0",
                                                "reduce all_gather all after 1"));
}

}  // namespace
}  // namespace dcsim
