// What dtypes of gradients, master weights and states change in a step of TwoLayers over two ranks:
// w1 has 15 elements, w2 5; a partition has 10 of them (ZeRO-1 and 2) or shards of 8 and 3
// (ZeRO-3).

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

using testing::HasSubstr;
using testing::Not;

PlanSpec EagerSpec(int stage) {
  PlanSpec spec = TinySpec(stage);
  spec.policy = "deepspeed-eager";
  spec.options.gradient_buckets = GradientBuckets::kEager;
  spec.options.release = ReleaseMode::kRecordStream;
  return spec;
}

std::string Text(PlanSpec spec, const TrainingOptions& training) {
  spec.options.training = training;
  return TinyScheduleText(spec, TwoLayers());
}

constexpr OptimizerAlgorithm kAdamW = OptimizerAlgorithm::kAdamW;
const TrainingOptions kHalf{kAdamW, DType::kBFloat16, DType::kBFloat16, {}, {}};
const TrainingOptions kWideGradients{kAdamW, DType::kFloat32, DType::kFloat32, DType::kFloat32, {}};
const TrainingOptions kWideReduction{kAdamW, DType::kFloat32, DType::kFloat32, {}, DType::kFloat32};

// ZeRO-1's partition is one bfloat16 tensor: the kernel reads it. 7 accesses of 2 bytes an element,
// then the weights are copied.
TEST(LowerDTypesTest, HalfMasterWeightsNeedNoCast) {
  const std::string text = Text(TinySpec(1), kHalf);
  EXPECT_THAT(text, HasSubstr("resident b1 master weights 20 B"));
  EXPECT_THAT(text, HasSubstr("resident b2 optimizer states 20 B"));
  EXPECT_THAT(text, Not(HasSubstr("cast-gradients")));
  EXPECT_THAT(text, HasSubstr("optimizer-step [140 B] r b9 w b1,b2,b3\n"));
  EXPECT_THAT(text, HasSubstr("store-params [40 B] r b1 w b0 -b9\n"));
}

// Where views of a partition are flattened, that is a copy: 2 + 2 bytes.
TEST(LowerDTypesTest, HalfGradientsOfZero2And3AreFlattened) {
  EXPECT_THAT(Text(TinySpec(2), kHalf), HasSubstr("cast-gradients [40 B]"));
  EXPECT_THAT(Text(TinySpec(3), kHalf), HasSubstr("cast-gradients [44 B]"));
  EXPECT_THAT(Text(EagerSpec(1), kHalf), HasSubstr("cast-gradients [40 B]"));
}

// ZeRO-2 of DeepCompile: 2 bytes read, 4 written; added in a later micro-step, 2 + 4 read, 4
// written. The optimizer gets a float32 copy of views: 4 + 4.
TEST(LowerDTypesTest, WidePartitionsOfZero2AreStoredByOneKernel) {
  PlanSpec spec = TinySpec(2);
  spec.options.gradient_accumulation_steps = 2;
  const std::string text = Text(spec, kWideGradients);
  EXPECT_THAT(text, HasSubstr("gradient partition 40 B"));
  EXPECT_THAT(text, HasSubstr("store-reduced 2 tensors [60 B]"));
  EXPECT_THAT(text, HasSubstr("store-reduced 2 tensors [100 B]"));
  EXPECT_THAT(text, HasSubstr("cast-gradients [80 B]"));
}

// ZeRO-3 scatters 11 bfloat16 elements aside (22 B); each shard is cast (2 + 4) into a temporary of
// at most 8 elements, then copied (4 + 4) or added (4 + 4 + 4).
TEST(LowerDTypesTest, WidePartitionsOfZero3AreCastFirst) {
  PlanSpec spec = TinySpec(3);
  spec.options.gradient_accumulation_steps = 2;
  const std::string text = Text(spec, kWideGradients);
  EXPECT_THAT(text, HasSubstr("gradient partition 44 B"));
  EXPECT_THAT(text, HasSubstr("store-reduced 2 tensors [154 B]"));
  EXPECT_THAT(text, HasSubstr("store-reduced 2 tensors [198 B]"));
}

// Eager ZeRO-3 casts all shards of the bucket first; ZeRO-2 casts (2 + 4) and adds (4 + 4 + 4) to a
// cleared float32 partition, which the optimizer reads itself.
TEST(LowerDTypesTest, EagerBucketsAddToAWidePartition) {
  EXPECT_THAT(Text(EagerSpec(3), kWideGradients), HasSubstr("store-reduced 2 tensors [154 B]"));
  const std::string text = Text(EagerSpec(2), kWideGradients);
  EXPECT_THAT(text, HasSubstr("clear-gradients [40 B]"));
  EXPECT_THAT(text, HasSubstr("flatten 2 tensors [80 B]"));
  EXPECT_THAT(text, HasSubstr("store-reduced 2 tensors [180 B]"));
  EXPECT_THAT(text, Not(HasSubstr("cast-gradients")));
}

// ZeRO-2: 20 elements to float32 and back, 2 + 4 bytes each time, twice the bytes on the wire.
TEST(LowerDTypesTest, WideReductionOfZero2CastsWhatIsReduced) {
  const std::string text = Text(EagerSpec(2), kWideReduction);
  EXPECT_THAT(text, HasSubstr("cast-bucket 2 tensors [120 B]"));
  EXPECT_THAT(text, HasSubstr("reduce reduce 2 tensors [80 B]"));
  EXPECT_THAT(text, HasSubstr("unflatten 2 tensors [120 B]"));
  EXPECT_THAT(text, HasSubstr("store-reduced 2 tensors [40 B]"));
}

// ZeRO-3's buffer is float32: 2 + 4 bytes an element as gradients come; shards of 16 and 6 elements
// are flattened, divided and reduced in float32, and each cast (4 + 2) and copied (2 + 2).
TEST(LowerDTypesTest, WideReductionOfZero3CastsAsGradientsCome) {
  const std::string text = Text(EagerSpec(3), kWideReduction);
  EXPECT_THAT(text, HasSubstr("reduce buckets 4000 B"));
  EXPECT_THAT(text, HasSubstr("reduce-grad-copy w2 [30 B]"));
  EXPECT_THAT(text, HasSubstr("flatten 2 tensors [176 B]"));
  EXPECT_THAT(text, HasSubstr("pre-divide 2 tensors [176 B]"));
  EXPECT_THAT(text, HasSubstr("reduce reduce 2 tensors [88 B]"));
  EXPECT_THAT(text, HasSubstr("store-reduced 2 tensors [110 B]"));
  PlanSpec spec = EagerSpec(3);
  spec.options.contiguous_gradients = false;
  EXPECT_THAT(Text(spec, kWideReduction), HasSubstr("cast-bucket 2 tensors [132 B]"));
}

TEST(LowerDTypesTest, TheNormMayBeComputedThoughNothingClips) {
  PlanSpec spec = TinySpec(1);
  EXPECT_THAT(Text(spec, {}), Not(HasSubstr("gradient-norm")));
  spec.options.compute_grad_norm = true;
  const std::string text = Text(spec, {});
  EXPECT_THAT(text, HasSubstr("gradient-norm [20 B]"));
  EXPECT_THAT(text, HasSubstr("reduce-norm"));
  EXPECT_THAT(text, Not(HasSubstr("clip-gradients")));
}

// w2 begins behind the 15 elements of w1 and one of padding: 21 elements, padded to 24.
TEST(LowerDTypesTest, PaddedParametersTakeMoreOfThePartition) {
  PlanSpec spec = TinySpec(1);
  spec.options.parameter_alignment = true;
  const std::string text = Text(spec, {});
  EXPECT_THAT(text, HasSubstr("resident b0 parameters 48 B"));
  EXPECT_THAT(text, HasSubstr("resident b1 master weights 48 B"));
}

}  // namespace
}  // namespace dcsim
