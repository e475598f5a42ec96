#include "tools/common/fit_search.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/source_folder.h"
#include "tests/tools/temporary_folder.h"
#include "tools/common/file.h"

namespace dcsim {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

const std::string source_folder = SourceFolder();

/// A step, and all that changes of it start from.
struct FitCase {
  explicit FitCase(StepOptions asked)
      : options(std::move(asked)),
        step(LoadStep(options)),
        shelf(LoadWorkload(options.workload)),
        base{options, step, shelf} {}

  FitFindings Find(const FitSearch& search = {}) { return FindFits(base, shelf, search); }

  StepOptions options;
  LoadedStep step;
  RecordingShelf shelf;
  FitBase base;
};

/// mlp-2x64 has 8 rows; the recording beside it 16.
StepOptions Step(const std::string& plan, std::vector<std::string> overrides = {}) {
  StepOptions options;
  options.workload = source_folder + "/tests/data/sizes/mlp-2x64";
  options.cluster = source_folder + "/configs/clusters/h200-4.yaml";
  options.plan = source_folder + "/configs/plans/" + plan + ".yaml";
  options.overrides = std::move(overrides);
  return options;
}

FitSearch Threads(unsigned threads) {
  FitSearch search;
  search.threads = threads;
  return search;
}

std::vector<std::string> Labels(const std::vector<FitChange>& changes) {
  std::vector<std::string> labels;
  labels.reserve(changes.size());
  for (const FitChange& change : changes) {
    labels.push_back(change.label);
  }
  return labels;
}

FitChange Change(const FitCase& setup, const std::string& label) {
  for (const FitChange& change : ChangesOf(setup.base)) {
    if (change.label == label) {
      return change;
    }
  }
  ADD_FAILURE() << "no change " << label;
  return {};
}

const FitAnswer* Find(const FitFindings& findings, const std::vector<std::string>& labels) {
  const auto found =
      std::find_if(findings.answers.begin(), findings.answers.end(),
                   [&](const FitAnswer& each) { return Labels(each.changes) == labels; });
  return found == findings.answers.end() ? nullptr : &*found;
}

TEST(FitChangesTest, AnotherMicroBatchKeepsTheGlobalBatch) {
  const FitCase setup(Step("zero1-eager", {"gradient_accumulation_steps=6"}));
  const auto with = [&](const std::string& label) {
    return Changed(setup.base, {Change(setup, label)}, "folder");
  };
  EXPECT_THAT(with("micro-batch 4")->overrides, Contains("gradient_accumulation_steps=12"));
  EXPECT_THAT(with("micro-batch 16")->overrides, Contains("gradient_accumulation_steps=3"));
  EXPECT_EQ(with("micro-batch 16")->workload, "folder");
  EXPECT_THAT(Labels(ChangesOf(setup.base)), Not(Contains("micro-batch 32")));
}

// 8 GPUs take half of 6 micro-steps; of 3 none, which stay: the global batch is twice as large.
TEST(FitChangesTest, MoreGpusKeepTheGlobalBatchWhereTheyCan) {
  const FitCase even(Step("zero1-eager", {"gradient_accumulation_steps=6"}));
  const auto changed = Changed(even.base, {Change(even, "8 GPUs")}, "folder");
  EXPECT_EQ(changed->gpus, 8);
  EXPECT_THAT(changed->overrides, Contains("gradient_accumulation_steps=3"));
  EXPECT_THAT(changed->cluster_overrides, ElementsAre("gpus_per_node=8"));
  const FitCase odd(Step("zero1-eager", {"gradient_accumulation_steps=3"}));
  EXPECT_THAT(Changed(odd.base, {Change(odd, "8 GPUs")}, "folder")->overrides,
              Contains("gradient_accumulation_steps=3"));
}

// 3 micro-steps of 8 rows are no whole number of 16.
TEST(FitChangesTest, MicroBatchThatDoesNotDivideTheGlobalBatchIsNone) {
  const FitCase setup(Step("zero1-eager", {"gradient_accumulation_steps=3"}));
  FitChange change{"batch", "micro-batch 16", ""};
  change.recording.sizes.batch = 16;
  EXPECT_EQ(Changed(setup.base, {change}, "folder"), std::nullopt);
}

TEST(FitSearchTest, AnswerIsWhatItsOptionsGive) {
  FitCase setup(Step("zero1-eager", {"gradient_accumulation_steps=2"}));
  const FitFindings findings = setup.Find();
  ASSERT_THAT(findings.answers, Not(IsEmpty()));
  for (const FitAnswer& each : findings.answers) {
    const LoadedStep step = LoadStep(each.options);
    EXPECT_EQ(PrintResult(each.predicted.result),
              PrintResult(Predict(LowerStep(step), step.plan, step.inputs(), false).result))
        << each.how;
  }
  const FitAnswer* larger = Find(findings, {"micro-batch 16"});
  ASSERT_NE(larger, nullptr);
  EXPECT_EQ(larger->how, "workload " + source_folder +
                             "/tests/data/sizes/mlp-2x64-batch16 --set "
                             "gradient_accumulation_steps=1");
  EXPECT_NEAR(larger->cost,
              findings.now.result.tokens_per_second / larger->predicted.result.tokens_per_second,
              1e-12);
}

TEST(FitSearchTest, ThreadsChangeNothing) {
  FitCase setup(Step("zero3-eager"));
  const FitFindings one = setup.Find(Threads(1));
  const FitFindings four = setup.Find(Threads(4));
  ASSERT_EQ(one.answers.size(), four.answers.size());
  for (std::size_t i = 0; i < one.answers.size(); ++i) {
    EXPECT_EQ(one.answers[i].how, four.answers[i].how);
    EXPECT_EQ(one.answers[i].cost, four.answers[i].cost);
  }
}

TEST(FitSearchTest, WhatFitsComesFirstCheapestAhead) {
  StepOptions options = Step("zero3");
  options.cluster_overrides = {"gpu.memory=2300 MB"};
  FitCase setup(options);
  const FitFindings findings = setup.Find();
  EXPECT_EQ(findings.now.result.verdict, "does_not_fit");
  ASSERT_TRUE(findings.answers.front().fits);
  double cost = 0;
  bool fits = true;
  for (const FitAnswer& each : findings.answers) {
    EXPECT_TRUE(fits || !each.fits);
    EXPECT_TRUE(!each.fits || each.cost >= cost);
    fits = each.fits;
    cost = each.cost;
  }
}

// What is recorded on the way is predicted; what cannot be is named with the recorder's words.
TEST(FitSearchTest, MissingRecordingsAreMadeWhereNothingElseFits) {
  const TemporaryFolder folder;
  const std::string graph = ReadFile(source_folder + "/tests/data/sizes/mlp-2x64/graph.json.xz");
  MakeFolder(folder / "m");
  WriteFile(folder / "m/graph.json.xz", graph);
  StepOptions options = Step("zero3", {"reduce_bucket=1e6 elements"});
  options.workload = folder / "m";
  options.cluster_overrides = {"gpu.memory=1850 MB"};
  FitCase setup(options);
  ASSERT_EQ(setup.step.workload.graph.name, "mlp-2x64");
  std::vector<std::int64_t> asked;
  FitSearch search;
  search.make = [&](const AskedRecording& recording) -> std::string {
    asked.push_back(recording.sizes.batch);
    if (recording.sizes.batch != 4) {
      return "no room";
    }
    Json document = Json::parse(graph);
    document["options"]["batch"] = 4;
    MakeFolder(folder / "four");
    WriteFile(folder / "four/graph.json.xz", document.dump());
    return "";
  };
  const FitFindings findings = setup.Find(search);
  EXPECT_NE(findings.now.result.verdict, "fits");
  EXPECT_THAT(asked, Contains(4));
  EXPECT_THAT(asked, Contains(2));
  EXPECT_NE(Find(findings, {"micro-batch 4"}), nullptr);
  EXPECT_EQ(Find(findings, {"micro-batch 2"}), nullptr);
  const auto failed = std::find_if(findings.untried.begin(), findings.untried.end(),
                                   [](const auto& each) { return each.label == "micro-batch 2"; });
  ASSERT_NE(failed, findings.untried.end());
  EXPECT_EQ(failed->reason, "no room");
}

}  // namespace
}  // namespace dcsim
