#include <gtest/gtest.h>

#include "tests/support/deepspeed_files.h"
#include "tools/common/deepspeed_settings.h"

namespace dcsim {
namespace {

// transformers/integrations/deepspeed.py; a hidden size of 10.
TEST(DeepSpeedAutoTest, AutoIsFilledAsTheTrainerDoes) {
  Json config = Base(3);
  config.update({{"train_batch_size", "auto"},
                 {"train_micro_batch_size_per_gpu", "auto"},
                 {"gradient_accumulation_steps", "auto"},
                 {"gradient_clipping", "auto"},
                 {"bf16", {{"enabled", "auto"}}},
                 {"fp16", {{"enabled", "auto"}}}});
  config["zero_optimization"].update({{"reduce_bucket_size", "auto"},
                                      {"stage3_prefetch_bucket_size", "auto"},
                                      {"stage3_param_persistence_threshold", "auto"}});
  EXPECT_TRUE(Has(Fault(config), "hidden size, which this recording does not hold"));
  const Graph graph = Recording({{"hidden_size", 10}});
  const PlanSpec spec = SpecOf(config, graph);
  EXPECT_EQ(spec.options.reduce_bucket, 100);
  EXPECT_EQ(spec.eager_gathers.prefetch_bucket, 90);
  EXPECT_EQ(spec.eager_gathers.persistence_threshold, 100);
  EXPECT_EQ(spec.options.gradient_clipping, 1.0);
  EXPECT_TRUE(Has(Notes(config, graph), "zero_optimization/reduce_bucket_size 100"));
}

// The Trainer leaves ZeRO-3's keys alone in ZeRO-2; DeepSpeed then has its defaults.
TEST(DeepSpeedAutoTest, KeysOfZero3AreFilledInZero3Alone) {
  Json config = Base(2);
  config["zero_optimization"].update(
      {{"reduce_bucket_size", "auto"}, {"stage3_prefetch_bucket_size", "auto"}});
  const Graph graph = Recording({{"hidden_size", 10}});
  EXPECT_EQ(SpecOf(config, graph).options.reduce_bucket, 100);
  const std::string notes = Notes(config, graph);
  EXPECT_TRUE(Has(notes, "stage3_prefetch_bucket_size DeepSpeed's default")) << notes;
}

}  // namespace
}  // namespace dcsim
