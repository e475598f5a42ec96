#include "model/passes/pass_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/passes/resolve.h"
#include "tests/support/error_text.h"
#include "tests/support/row_name.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

PlanSpec SpecOf(const std::string& policy, int stage, std::vector<std::string> passes) {
  PlanSpec spec = TinySpec(stage);
  spec.policy = policy;
  spec.passes = std::move(passes);
  return spec;
}

constexpr char kDeepCompile[] = "deepcompile-0.19.8";

TEST(PassesOfTest, DefaultsFollowPolicyStageAndKeys) {
  using Names = std::vector<std::string>;
  PlanSpec spec = TinySpec(3);
  EXPECT_EQ(PassesOf(spec), Names({"gather_at_use"}));
  spec.gather_ahead = 2;
  spec.keep_gathered.all = true;
  spec.offload_optimizer.all = true;
  EXPECT_EQ(PassesOf(spec),
            Names({"gather_at_use", "gather_ahead", "keep_gathered", "offload_optimizer"}));
  EXPECT_EQ(PassesOf(TinySpec(1)), Names());
  spec = TinySpec(3);
  spec.policy = kDeepCompile;
  EXPECT_EQ(PassesOf(spec), Names({"zero3_compile", "prefetch", "selective_gather"}));
  spec.options.stage = 2;
  EXPECT_EQ(PassesOf(spec), Names({"zero2_compile"}));
}

// init_z3.py: offload runs in the place of prefetch and selective_gather.
TEST(PassesOfTest, OffloadReplacesDeepCompilesOtherPasses) {
  using Names = std::vector<std::string>;
  PlanSpec spec = TinySpec(3);
  spec.options.offload_parameters = true;
  EXPECT_EQ(PassesOf(spec), Names({"gather_at_use", "offload_parameters"}));
  spec.policy = kDeepCompile;
  EXPECT_EQ(PassesOf(spec), Names({"zero3_compile", "offload_parameters"}));
  spec.options.offload_parameters = false;
  spec.offload_activation = true;
  EXPECT_EQ(PassesOf(spec),
            Names({"zero3_compile", "offload_activation_floor", "offload_activation"}));
  spec.options.offload_parameters = true;
  EXPECT_EQ(FindPassFault(spec),
            "passes: offload_parameters conflicts with offload_activation_floor: DeepSpeed takes "
            "one target of offloading a run");
  spec = TinySpec(3);
  spec.offload_activation = true;
  EXPECT_EQ(FindPassFault(spec),
            "offload_activation is for the pass offload_activation, which does not run; passes "
            "names those that do");
}

// What plain-1's keys ask for is what the passes of these names do.
TEST(PassesOfTest, KeysAndPassesMakeTheSamePlan) {
  PlanSpec keys = TinySpec(3);
  keys.gather_ahead = 1;
  keys.keep_gathered.patterns = {"w2"};
  keys.offload_optimizer.all = true;
  PlanSpec passes = keys;
  passes.passes = {"gather_at_use", "offload_optimizer", "keep_gathered", "gather_ahead"};
  EXPECT_EQ(Resolve(passes, TwoLayers(), 2), Resolve(keys, TwoLayers(), 2));
}

struct GoodRow {
  std::string name;
  std::string policy;
  int stage;
  std::vector<std::string> passes;
};

class GoodPassesTest : public testing::TestWithParam<GoodRow> {};

TEST_P(GoodPassesTest, MakeAPlan) {
  const GoodRow& row = GetParam();
  const PlanSpec spec = SpecOf(row.policy, row.stage, row.passes);
  EXPECT_EQ(FindPassFault(spec), "");
  EXPECT_THAT(FindPlanFaults(Resolve(spec, TwoLayers(), 2), TwoLayers()), testing::IsEmpty());
}

std::vector<GoodRow> GoodRows() {
  std::vector<GoodRow> rows = {
      {"None", "plain-1", 2, {}},
      {"StatesBelowStage3", "plain-1", 1, {"offload_optimizer"}},
      {"StatesOfZero2", kDeepCompile, 2, {"zero2_compile", "offload_optimizer"}},
      {"AdamStates",
       kDeepCompile,
       3,
       {"offload_adam_states_for_init", "zero3_compile", "offload_adam_states"}},
      {"AdamStatesBehindPrefetch",
       kDeepCompile,
       3,
       {"offload_adam_states_for_init", "zero3_compile", "prefetch", "offload_adam_states"}},
      {"ActivationsAll", kDeepCompile, 3, {"zero3_compile", "offload_activation_floor"}},
      {"AdamStatesSync", kDeepCompile, 3, {"zero3_compile", "offload_adam_states_sync"}},
      {"FusedThenAhead", kDeepCompile, 3, {"zero3_compile", "fuse_gathers", "gather_ahead"}},
      {"AheadThenFused", "plain-1", 3, {"gather_at_use", "gather_ahead", "fuse_gathers"}},
  };
  for (const char* pass : {"gather_ahead", "overlap_gathers", "fuse_gathers", "keep_gathered",
                           "offload_optimizer", "offload_parameters"}) {
    rows.push_back({std::string("Plain_") + pass, "plain-1", 3, {"gather_at_use", pass}});
    rows.push_back({std::string("DeepCompile_") + pass, kDeepCompile, 3, {"zero3_compile", pass}});
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Lists, GoodPassesTest, testing::ValuesIn(GoodRows()), RowName());

struct BadRow {
  std::string name;
  std::string policy;
  int stage;
  std::vector<std::string> passes;
  std::string fault;
};

class BadPassesTest : public testing::TestWithParam<BadRow> {};

TEST_P(BadPassesTest, AreRefusedWithTheReason) {
  const BadRow& row = GetParam();
  EXPECT_EQ(FindPassFault(SpecOf(row.policy, row.stage, row.passes)), "passes: " + row.fault);
}

INSTANTIATE_TEST_SUITE_P(
    Lists,
    BadPassesTest,
    testing::Values(
        BadRow{"PrefetchAlone",
               kDeepCompile,
               3,
               {"prefetch"},
               "prefetch requires z3_gather_release: zero3_compile has to stand before it"},
        BadRow{"OtherOrder",
               kDeepCompile,
               3,
               {"prefetch", "zero3_compile"},
               "prefetch requires z3_gather_release: zero3_compile has to stand before it"},
        BadRow{"SelectiveBeforePrefetch",
               kDeepCompile,
               3,
               {"zero3_compile", "selective_gather", "prefetch"},
               "prefetch has to stand before selective_gather"},
        BadRow{"OursBeforeDeepSpeeds",
               kDeepCompile,
               3,
               {"zero3_compile", "keep_gathered", "prefetch"},
               "prefetch has to stand before keep_gathered"},
        BadRow{"AheadOfNothing",
               "plain-1",
               3,
               {"gather_ahead"},
               "gather_ahead requires gathers: zero3_compile or gather_at_use has to stand before "
               "it"},
        BadRow{"TwoPlacesOfIssue",
               "plain-1",
               3,
               {"gather_at_use", "gather_ahead", "overlap_gathers"},
               "overlap_gathers conflicts with gather_ahead: both decide when gathers are issued"},
        BadRow{"PrefetchAndAhead",
               kDeepCompile,
               3,
               {"zero3_compile", "prefetch", "gather_ahead"},
               "gather_ahead conflicts with prefetch: both decide when gathers are issued"},
        BadRow{"FusedTwice",
               kDeepCompile,
               3,
               {"zero3_compile", "prefetch", "fuse_gathers"},
               "fuse_gathers conflicts with prefetch: both join gathers"},
        BadRow{"KeptTwice",
               kDeepCompile,
               3,
               {"zero3_compile", "selective_gather", "keep_gathered"},
               "keep_gathered conflicts with selective_gather: both decide which parameters stay"},
        BadRow{"StatesTwice",
               kDeepCompile,
               3,
               {"zero3_compile", "offload_adam_states_sync", "offload_optimizer"},
               "offload_optimizer conflicts with offload_adam_states_sync: both move the optimizer "
               "states"},
        BadRow{"PlannerWithoutFloor",
               kDeepCompile,
               3,
               {"zero3_compile", "offload_activation"},
               "offload_activation requires activations_offloaded: offload_activation_floor has to "
               "stand before it"},
        BadRow{"FloorAndPrefetch",
               kDeepCompile,
               3,
               {"zero3_compile", "offload_activation_floor", "prefetch"},
               "prefetch conflicts with offload_activation_floor: what DeepSpeed's profiler sees "
               "of one is not modelled beside the other"},
        BadRow{"ShardsWithoutGathers",
               kDeepCompile,
               3,
               {"offload_parameters"},
               "offload_parameters requires gathers: zero3_compile or gather_at_use has to stand "
               "before it"},
        BadRow{"ShardsAndStates",
               kDeepCompile,
               3,
               {"zero3_compile", "offload_adam_states_sync", "offload_parameters"},
               "offload_parameters conflicts with offload_adam_states_sync: DeepSpeed takes one "
               "target of offloading a run"},
        BadRow{"ShardsAndInitialStates",
               kDeepCompile,
               3,
               {"offload_adam_states_for_init", "zero3_compile", "offload_parameters"},
               "offload_parameters conflicts with offload_adam_states_for_init: DeepSpeed takes "
               "one target of offloading a run"},
        BadRow{"NotEvicted",
               kDeepCompile,
               3,
               {"zero3_compile", "offload_adam_states"},
               "offload_adam_states requires opt_states_evicted: offload_adam_states_for_init has "
               "to stand before it"},
        BadRow{"EvictedForGood",
               kDeepCompile,
               3,
               {"offload_adam_states_for_init", "zero3_compile"},
               "offload_adam_states_for_init requires offload_adam_states behind it, which brings "
               "the states back"},
        BadRow{"StatesOfZero1",
               kDeepCompile,
               1,
               {"offload_adam_states_for_init", "zero1_compile", "offload_adam_states"},
               "zero1_compile conflicts with offload_adam_states_for_init: only ZeRO-3 hands "
               "DeepCompile its optimizer states"},
        BadRow{
            "SelectiveAndStates",
            kDeepCompile,
            3,
            {"offload_adam_states_for_init", "zero3_compile", "selective_gather",
             "offload_adam_states"},
            "offload_adam_states conflicts with selective_gather: what DeepSpeed's profiler sees "
            "of one is not modelled beside the other"},
        BadRow{"Twice",
               "plain-1",
               3,
               {"gather_at_use", "fuse_gathers", "fuse_gathers"},
               "fuse_gathers stands twice"},
        BadRow{"DeepSpeedsOfPlain",
               "plain-1",
               3,
               {"zero3_compile"},
               "zero3_compile is for DeepCompile's policies, not plain-1"},
        BadRow{"PlainsOfDeepCompile",
               kDeepCompile,
               3,
               {"gather_at_use"},
               "gather_at_use is for plain-1; the pass of deepcompile-0.19.8 is zero3_compile"},
        BadRow{"OtherStage",
               kDeepCompile,
               1,
               {"zero3_compile"},
               "zero3_compile conflicts with stage 1, whose pass is zero1_compile"},
        BadRow{"NoGathersBelowStage3",
               "plain-1",
               2,
               {"gather_at_use"},
               "gather_at_use conflicts with stage 2, which gathers no parameter before its use"},
        BadRow{"NoStagePass",
               "plain-1",
               3,
               {"offload_optimizer"},
               "gather_at_use is missing; stage 3 needs what it inserts"},
        BadRow{"NothingOfDeepCompile",
               kDeepCompile,
               2,
               {},
               "zero2_compile is missing; stage 2 needs what it inserts"}),
    RowName());

TEST(PassFaultTest, UnknownPassGetsTheNearestOne) {
  EXPECT_THAT(FindPassFault(SpecOf(kDeepCompile, 3, {"zero3_compile", "prefech"})),
              testing::AllOf(testing::StartsWith("passes: expected offload_adam_states_for_init, "),
                             testing::EndsWith("found 'prefech', did you mean 'prefetch'?")));
}

TEST(PassFaultTest, KeysOfPassesThatDoNotRunAreErrors) {
  PlanSpec spec = SpecOf("plain-1", 3, {"gather_at_use"});
  spec.gather_ahead = 1;
  EXPECT_EQ(FindPassFault(spec),
            "gather_ahead is for the pass gather_ahead, which does not run; passes names those "
            "that do");
  spec = TinySpec(3);
  spec.max_fuse_size = Bytes(1);
  EXPECT_THAT(FindPassFault(spec),
              testing::StartsWith("max_fuse_size is for the pass fuse_gathers, which"));
  spec = TinySpec(3);
  spec.policy = kDeepCompile;
  spec.offload_optimizer.all = true;
  EXPECT_THAT(FindPassFault(spec),
              testing::StartsWith("offload_optimizer is for the pass offload_optimizer, which"));
}

}  // namespace
}  // namespace dcsim
