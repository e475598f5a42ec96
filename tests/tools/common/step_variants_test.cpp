#include "tools/common/step_variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_text.h"
#include "tests/support/source_folder.h"
#include "tests/tools/temporary_folder.h"
#include "tools/common/file.h"

namespace dcsim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

const std::string kSource = SourceFolder();

StepVariant Variant(const std::string& label, std::vector<std::string> overrides) {
  StepVariant variant{label, {}};
  variant.step.workload = kSource + "/traces/tiny-llama";
  variant.step.cluster = kSource + "/configs/clusters/h200-2.yaml";
  variant.step.plan = kSource + "/configs/plans/zero3-deepcompile.yaml";
  variant.step.overrides = std::move(overrides);
  return variant;
}

TEST(StepVariantsTest, ThreadsChangeNothing) {
  std::vector<StepVariant> variants;
  for (const std::string stage : {"1", "2", "3"}) {
    for (const std::string steps : {"1", "3"}) {
      variants.push_back(
          Variant(stage, {"stage=" + stage, "gradient_accumulation_steps=" + steps}));
    }
  }
  const auto one = PredictVariants(variants, {1});
  const auto four = PredictVariants(variants, {4});
  for (std::size_t i = 0; i < variants.size(); ++i) {
    EXPECT_EQ(PrintResult(one[i].result), PrintResult(four[i].result)) << i;
  }
  EXPECT_NE(one[0].result.step_time, one[5].result.step_time);
}

// The lowest refused one is named, at any number of threads.
TEST(StepVariantsTest, FirstRefusedVariantIsNamed) {
  std::vector<StepVariant> variants;
  for (const std::string stage : {"1", "2", "4", "5", "6", "7"}) {
    variants.push_back(Variant("stage=" + stage, {"stage=" + stage}));
  }
  for (const unsigned threads : {1U, 4U}) {
    EXPECT_EQ(ErrorText([&] { PredictVariants(variants, {threads}); }),
              "stage=4: --set stage=4: stage: expected a whole number from 1 to 3, found 4");
  }
  const auto kept = PredictVariants(variants, {2, OnRefusal::kKeep});
  EXPECT_EQ(kept[1].result.outcome, "completed");
  EXPECT_EQ(kept[5].refused, "--set stage=7: stage: expected a whole number from 1 to 3, found 7");
  EXPECT_EQ(ReservedMemory(kept[5]), std::nullopt);
}

TEST(StepVariantsTest, StepThatDoesNotFitSaysWhatItWouldReserve) {
  StepVariant small = Variant("small", {});
  small.step.cluster_overrides = {"gpu.memory=2 GB"};
  const auto predicted = PredictVariants({Variant("large", {}), small}, {2});
  EXPECT_FALSE(predicted[0].unlimited);
  EXPECT_EQ(ReservedMemory(predicted[0]), predicted[0].result.peak_reserved);
  EXPECT_EQ(predicted[1].result.outcome, "out_of_memory");
  EXPECT_EQ(ReservedMemory(predicted[1]), ReservedMemory(predicted[0]));
}

TEST(StepVariantsTest, EachNoteIsThereOnce) {
  const TemporaryFolder folder;
  WriteFile(folder / "ds.json",
            R"({"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": 2,
                "compile": {"deepcompile": true}, "steps_per_print": 7, "gradient_clipping": 1.0})");
  std::vector<StepVariant> variants = {Variant("a", {}), Variant("b", {"stage=2"})};
  for (StepVariant& each : variants) {
    each.step.plan = folder / "ds.json";
  }
  const auto predicted = PredictVariants(variants, {2});
  EXPECT_EQ(predicted[0].notes.size(), 2U);  // the optimizer, and what has no effect
  EXPECT_EQ(NotesOf(predicted), predicted[0].notes);
}

// The micro batch of another recording, and other ranks, take the place of the file's own.
TEST(StepVariantsTest, DeepSpeedBatchesMayBeTheRecordings) {
  const TemporaryFolder folder;
  WriteFile(folder / "ds.json",
            R"({"zero_optimization": {"stage": 1}, "train_micro_batch_size_per_gpu": 7,
                "train_batch_size": 70, "gradient_accumulation_steps": 5})");
  StepVariant variant = Variant("a", {});
  variant.step.plan = folder / "ds.json";
  EXPECT_THAT(ErrorText([&] { PredictVariants({variant}, {}); }),
              StartsWith("a: " + (folder / "ds.json") + ":1:"));
  variant.step.batches = BatchSizes::kRecording;
  const auto predicted = PredictVariants({variant}, {});
  EXPECT_EQ(predicted[0].result.plan["gradient_accumulation_steps"], 5);
}

}  // namespace
}  // namespace dcsim
