#include "sim/search/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/plan_options.h"
#include "model/passes/resolve.h"
#include "tests/sim/search/search_kit.h"
#include "tests/sim/test_cluster.h"
#include "tests/support/error_text.h"
#include "tests/support/source_folder.h"
#include "tests/support/workloads.h"
#include "tools/common/load.h"

namespace dcsim {
namespace {

SearchSpace Read(const Json& options, const Json& gathers = Json::object()) {
  const Json document = {{"format", "dc-space/1"}, {"options", options}, {"gathers", gathers}};
  return ReadSearchSpace(document, PointerLocator("space.yaml"));
}

TEST(SearchSpaceTest, CombinesAllValues) {
  const SearchSpace space =
      Read({{"stage", 3}, {"communicators", {1, 2}}, {"double_buffer", {true, false}}});
  ASSERT_EQ(space.options.size(), 4U);
  EXPECT_EQ(space.options[3].communicators, 2);
  EXPECT_FALSE(space.options[3].double_buffer);
}

// one_per_bucket goes with all_reduce in stages 1 and 2 only; ZeRO-3 looks at neither collective:
// stage 1 and 2 with (all_reduce, either) and (reduce_scatter, per_parameter), stage 3 once.
TEST(SearchSpaceTest, LeavesOutWhatDoesNotGoTogether) {
  const SearchSpace space = Read({{"stage", {1, 2, 3}},
                                  {"reduce_collective", {"all_reduce", "reduce_scatter"}},
                                  {"flush_collectives", {"per_parameter", "one_per_bucket"}}});
  EXPECT_EQ(space.options.size(), 3U + 3U + 1U);
}

// Copies queue in no communicator, and stages 1 and 2 gather nothing: ZeRO-3 with NCCL on 1 or 2
// communicators and with copies once; ZeRO-1 on 1 or 2.
TEST(SearchSpaceTest, CopyEnginesAreForStage3AndOneCommunicator) {
  const SearchSpace space = Read(
      {{"stage", {1, 3}}, {"communicators", {1, 2}}, {"gather_engine", {"nccl", "copy_engine"}}});
  ASSERT_EQ(space.options.size(), 2U + 2U + 1U);
  for (const ScheduleOptions& options : space.options) {
    const bool copies = options.gather_engine == Engine::kCopyEngine;
    EXPECT_FALSE(copies && (options.stage != 3 || options.communicators != 1));
  }
}

TEST(SearchSpaceTest, NamesEveryFault) {
  const std::string text = ErrorText([] {
    Read({{"stage", {3, 4}}, {"reduce_buckets", "1e6 elements"}}, {{"most_ahed", 3}});
  });
  EXPECT_NE(text.find("/options/stage/1"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean 'reduce_bucket'"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean 'most_ahead'"), std::string::npos) << text;
}

// Each option of plans that has no default in print, too.
TEST(SearchSpaceTest, EveryOptionOfPlansIsOne) {
  for (const PlanOption& option : PlanOptions()) {
    if (option.key != "backend") {
      Json options = {{"stage", 2}};
      options[option.key] = option.print(option, {});
      options["stage"] = 2;
      EXPECT_EQ(Read(options).options.size(), 1U) << option.key;
    }
  }
  EXPECT_EQ(Read({{"stage", 2},
                  {"gradient_buckets", "eager"},
                  {"overlap_comm", {false, true}},
                  {"gradient_handling", {"lean", "deepspeed"}}})
                .options.size(),
            4U);
  EXPECT_EQ(ErrorText([] {
              Read({{"stage", 2}, {"backend", "inductor"}});
            }),
            "space.yaml: /options/backend: a search has one backend; name it with --backend");
}

// Once, however many values it has.
TEST(SearchSpaceTest, UnknownKeyIsNamedOnce) {
  EXPECT_EQ(ErrorText([] {
              Read({{"stage", 3}, {"comunicators", {1, 2}}});
            }),
            "space.yaml: /options/comunicators: unknown key 'comunicators', did you mean "
            "'communicators'?");
}

TEST(SearchSpaceTest, FaultStandsWhereItsValueDoes) {
  EXPECT_EQ(ErrorText([] {
              Read({{"stage", {1, 4}}, {"communicators", 3}});
            }),
            "space.yaml: /options/stage/1: expected a whole number from 1 to 3, found 4\n"
            "space.yaml: /options/communicators: expected a whole number from 1 to 2, found 3");
}

TEST(SearchSpaceTest, NothingLeftIsAnErrorWithTheRule) {
  const std::string text = ErrorText([] {
    Read({{"stage", 3}, {"flush_collectives", "one_per_bucket"}});
  });
  EXPECT_NE(text.find("space.yaml: /options: no combination"), std::string::npos) << text;
  EXPECT_NE(text.find("one_per_bucket is for all_reduce"), std::string::npos) << text;
}

// Eager buckets are reduced whole; false is for them alone: (deepcompile, true), (eager, true),
// (eager, false), the first with either collective.
TEST(SearchSpaceTest, RulesOfPlansHold) {
  const SearchSpace space = Read({{"stage", 2},
                                  {"gradient_buckets", {"deepcompile", "eager"}},
                                  {"contiguous_gradients", {true, false}},
                                  {"reduce_collective", {"all_reduce", "reduce_scatter"}}});
  EXPECT_EQ(space.options.size(), 4U);
  for (const ScheduleOptions& options : space.options) {
    EXPECT_EQ(FindOptionFaults(options), std::vector<std::string>());
  }
}

TEST(SearchSpaceTest, PatternWithoutAParameterSaysWhereItStands) {
  const Graph graph = ProductChain(2);
  const SearchSpace space = Read({{"stage", 3}}, {{"always_gathered", {"w0", "v*"}}});
  EXPECT_EQ(ErrorText([&] { GatherRules(space.gathers, graph); }),
            "space.yaml: /gathers/always_gathered/1: no parameter matches 'v*'");
}

TEST(SearchSpaceTest, StageMustBeNamed) {
  const std::string text = ErrorText([] { Read({{"communicators", {1, 2}}}); });
  EXPECT_NE(text.find("/options/stage"), std::string::npos) << text;
}

// What is trained comes from the baseline, unless the space says it.
TEST(SearchSpaceTest, BaselineSaysWhatIsTrained) {
  ScheduleOptions baseline;
  baseline.gradient_accumulation_steps = 4;
  baseline.gradient_clipping = 1.0;
  baseline.training.algorithm = OptimizerAlgorithm::kLion;
  SearchSpace space = Read({{"stage", {2, 3}}});
  TakeTraining(baseline, space);
  for (const ScheduleOptions& options : space.options) {
    EXPECT_EQ(options.gradient_accumulation_steps, 4);
    EXPECT_EQ(options.gradient_clipping, 1.0);
    EXPECT_EQ(options.training, baseline.training);
  }
  for (const Json& other : {Json{{"stage", 3}, {"gradient_accumulation_steps", 2}},
                            Json{{"stage", 3}, {"optimizer_algorithm", "sgd"}}}) {
    SearchSpace differs = Read(other);
    EXPECT_NE(ErrorText([&] { TakeTraining(baseline, differs); }).find("train differently"),
              std::string::npos);
  }
}

TEST(SearchSpaceTest, WhatIsTrainedIsNoDimension) {
  const std::string text = ErrorText([] {
    Read({{"stage", 3},
          {"gradient_accumulation_steps", {1, 2}},
          {"optimizer_algorithm", {"adamw", "lion"}}});
  });
  EXPECT_NE(text.find("gradient_accumulation_steps"), std::string::npos) << text;
  EXPECT_NE(text.find("optimizer_algorithm"), std::string::npos) << text;
}

// The file that people read is what a search without one uses.
TEST(SearchSpaceTest, DefaultIsTheDefaultFile) {
  const SearchSpace file = LoadSpace(SourceFolder() + "/configs/spaces/default.yaml");
  const SearchSpace built_in = ReadSearchSpace(DefaultSearchSpace(), PointerLocator("default"));
  EXPECT_EQ(file.options, built_in.options);
  EXPECT_EQ(file.gathers.most_ahead, built_in.gathers.most_ahead);
  EXPECT_EQ(file.gathers.most_in_launch, built_in.gathers.most_in_launch);
  EXPECT_EQ(file.gathers.largest_launch, built_in.gathers.largest_launch);
  EXPECT_EQ(file.gathers.choose_persistent, built_in.gathers.choose_persistent);
}

TEST(SearchSpaceTest, ExpandableIsTheDefaultFileWithBothAllocators) {
  const SearchSpace both = LoadSpace(SourceFolder() + "/configs/spaces/expandable.yaml");
  std::vector<ScheduleOptions> expected;
  for (ScheduleOptions options :
       LoadSpace(SourceFolder() + "/configs/spaces/default.yaml").options) {
    expected.push_back(options);
    options.allocator = AllocatorMode::kExpandableSegments;
    expected.push_back(options);
  }
  EXPECT_THAT(both.options, testing::UnorderedElementsAreArray(expected));
}

}  // namespace
}  // namespace dcsim
