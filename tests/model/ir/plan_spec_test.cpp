#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "model/ir/plan_options.h"
#include "model/ir/plan_reader.h"
#include "tests/support/error_text.h"
#include "tests/support/row_name.h"
#include "tests/support/source_folder.h"

namespace dcsim {
namespace {

constexpr char kSmallest[] = R"({"format": "dc-plan-spec/1", "policy": "plain-1", "stage": 2})";

PlanSpec Read(const Json& document) {
  return ReadPlanSpec(document, PointerLocator("p"));
}

/// A spec with no field at its default.
PlanSpec UnusualSpec() {
  PlanSpec spec;
  spec.policy = "plain-2";
  spec.options.stage = 1;
  spec.options.gradient_accumulation_steps = 65535;
  spec.options.reduce_bucket = 123'456'789;
  spec.options.double_buffer = false;
  spec.options.reduce_collective = ReduceCollective::kReduceScatter;
  spec.options.flush_collectives = FlushCollectives::kOnePerBucket;
  spec.options.gradient_buckets = GradientBuckets::kEager;
  spec.options.contiguous_gradients = false;
  spec.options.flatten = Flatten::kCopy;
  spec.options.buffer_lifetime = BufferLifetime::kPermanent;
  spec.options.gradient_reduction = GradientReduction::kCoalesced;
  spec.options.communicators = 2;
  spec.options.gather_engine = Engine::kCopyEngine;
  spec.options.fuse_casts = true;
  spec.options.align_tensors = true;
  spec.options.synchronize = {true, false, true, true};
  spec.options.release = ReleaseMode::kRecordStream;
  spec.options.gradient_clipping = 0.1;
  spec.options.compute_grad_norm = true;
  spec.options.parameter_alignment = true;
  spec.options.training = {OptimizerAlgorithm::kSgdMomentum, DType::kBFloat16, DType::kBFloat16,
                           DType::kFloat32, DType::kFloat16};
  spec.options.optimizer = OptimizerKernels::kForLoop;
  spec.options.allocator = AllocatorMode::kExpandableSegments;
  spec.gather_ahead = 1'000'000;
  spec.keep_gathered.patterns = {"*.norm.weight", "lm_head.*"};
  spec.passes = {"zero3_compile", "prefetch"};
  spec.gather_times = GatherTimes::kAsMeasured;
  spec.gather_order = GatherOrder::kDeepSpeed;
  spec.eager_gathers = {1, 2, 3, 4};
  spec.options.offload_period = OffloadPeriod::kMicroStep;
  spec.options.offload_parameters = true;
  spec.offload_activation = true;
  spec.max_fuse_size = Bytes(5);
  spec.offload_optimizer.bytes = Bytes(6);
  return spec;
}

TEST(PlanSpecTest, MissingKeysHaveTheDocumentedDefaults) {
  PlanSpec expected;
  expected.policy = "plain-1";
  expected.options.stage = 2;
  expected.options.gradient_accumulation_steps = 1;
  expected.options.reduce_bucket = 500'000'000;
  expected.options.double_buffer = true;
  expected.options.reduce_collective = ReduceCollective::kAllReduce;
  expected.options.flush_collectives = FlushCollectives::kPerParameter;
  expected.options.gradient_buckets = GradientBuckets::kDeepCompile;
  expected.options.contiguous_gradients = true;
  expected.options.flatten = Flatten::kConcatenate;
  expected.options.buffer_lifetime = BufferLifetime::kStep;
  expected.options.gradient_reduction = GradientReduction::kEachBackward;
  expected.options.communicators = 1;
  expected.options.gather_engine = Engine::kNccl;
  expected.options.synchronize = {false, false, false, false};
  expected.options.release = ReleaseMode::kEventOrdered;
  expected.options.gradient_clipping = std::nullopt;
  expected.options.compute_grad_norm = false;
  expected.options.parameter_alignment = false;
  expected.options.training = {OptimizerAlgorithm::kAdamW, DType::kFloat32, DType::kFloat32,
                               std::nullopt, std::nullopt};
  expected.options.optimizer = OptimizerKernels::kFused;
  expected.options.allocator = AllocatorMode::kDefault;
  expected.options.offload_period = OffloadPeriod::kStep;
  expected.options.offload_parameters = false;
  expected.max_fuse_size = Bytes::MiB(64);
  expected.offload_optimizer = {};
  expected.gather_ahead = 0;
  expected.keep_gathered = {};
  expected.passes = std::nullopt;
  expected.gather_times = GatherTimes::kDeepSpeed;
  expected.eager_gathers = {50'000'000, 100'000, 1'000'000'000, 1'000'000'000};
  EXPECT_EQ(Read(Json::parse(kSmallest)), expected);
}

TEST(PlanSpecTest, BackendsAreKnownByTheirNames) {
  EXPECT_EQ(BackendNamed("aten"), Backend::kAten);
  EXPECT_EQ(BackendNamed("inductor"), Backend::kInductor);
  EXPECT_EQ(BackendNamed("Inductor"), Backend::kAten);
  EXPECT_EQ(BackendNamed(1), Backend::kAten);
  EXPECT_EQ(BackendNamed(nullptr), Backend::kAten);
}

TEST(PlanSpecTest, PrintedSpecIsReadBack) {
  EXPECT_EQ(Read(PrintPlanSpec(UnusualSpec())), UnusualSpec());
  EXPECT_EQ(Read(PrintPlanSpec(PlanSpec())), PlanSpec());
}

TEST(PlanSpecTest, PrintHasEveryKeyInTheDocumentedOrder) {
  EXPECT_EQ(
      PrintPlanSpec(UnusualSpec()).dump(),
      R"({"format":"dc-plan-spec/1","policy":"plain-2","stage":1,"backend":"aten",)"
      R"("gradient_accumulation_steps":65535,"reduce_bucket":"123456789 elements",)"
      R"("double_buffer":false,"reduce_collective":"reduce_scatter",)"
      R"("flush_collectives":"one_per_bucket","gradient_buckets":"eager",)"
      R"("contiguous_gradients":false,"flatten":"copy","buffer_lifetime":"permanent",)"
      R"("gradient_reduction":"coalesced","communicators":2,"gather_engine":"copy_engine",)"
      R"("fuse_casts":true,"align_tensors":true,)"
      R"("sync_before_allgather":true,"sync_after_allgather":false,"sync_before_reduce":true,)"
      R"("sync_after_reduce":true,"release":"record_stream",)"
      R"("gradient_clipping":0.1,"compute_grad_norm":true,"parameter_alignment":true,)"
      R"("optimizer_algorithm":"sgd-momentum","master_weights":"bfloat16",)"
      R"("optimizer_state_dtype":"bfloat16","gradient_accumulation_dtype":"float32",)"
      R"("reduce_dtype":"float16","optimizer":"for_loop","allocator":"expandable_segments",)"
      R"("offload_period":"micro_step","offload_parameters":true,)"
      R"("gather_ahead":1000000,"keep_gathered":["*.norm.weight","lm_head.*"],)"
      R"("passes":["zero3_compile","prefetch"],"gather_times":"as_measured","gather_order":"deepspeed",)"
      R"("prefetch_bucket":"1 elements","persistence_threshold":"2 elements",)"
      R"("max_live":"3 elements","max_reuse_distance":"4 elements","max_fuse_size":"5 B",)"
      R"("offload_optimizer":"6 B","offload_activation":true})");
}

// What DeepSpeed does where nothing else is asked for.
TEST(PlanSpecTest, PoliciesOfDeepSpeedHaveDefaultsOfTheirOwn) {
  Json document = Json::parse(kSmallest);
  document["policy"] = "deepcompile-0.19.8";
  EXPECT_EQ(Read(document).options.release, ReleaseMode::kRecordStream);
  EXPECT_EQ(Read(document).options.buffer_lifetime, BufferLifetime::kPr8036);
  EXPECT_EQ(Read(document).options.offload_period, OffloadPeriod::kMicroStep);
  document["policy"] = "deepcompile-0.17.1";
  EXPECT_EQ(Read(document).options.release, ReleaseMode::kEventOrdered);
  EXPECT_EQ(Read(document).options.buffer_lifetime, BufferLifetime::kPermanent);
  EXPECT_EQ(Read(document).options.gradient_reduction, GradientReduction::kEachMicroStep);
  document["policy"] = "deepspeed-eager";
  EXPECT_EQ(Read(document).options.release, ReleaseMode::kRecordStream);
  EXPECT_EQ(Read(document).options.gradient_buckets, GradientBuckets::kEager);
  document["policy"] = "deepcompile-0.19.8";
  document["release"] = "event_ordered";
  document["buffer_lifetime"] = "step";
  EXPECT_EQ(Read(document).options.release, ReleaseMode::kEventOrdered);
  EXPECT_EQ(Read(document).options.buffer_lifetime, BufferLifetime::kStep);
}

struct Choice {
  const char* name;
  const char* key;
  const char* value;  // as JSON
  void (*set)(PlanSpec& spec);
};

class PlanSpecChoiceTest : public testing::TestWithParam<Choice> {};

TEST_P(PlanSpecChoiceTest, SetsThisFieldAlone) {
  Json document = Json::parse(kSmallest);
  document[GetParam().key] = Json::parse(GetParam().value);
  PlanSpec expected = Read(Json::parse(kSmallest));
  GetParam().set(expected);
  EXPECT_EQ(Read(document), expected);
}

INSTANTIATE_TEST_SUITE_P(
    Keys,
    PlanSpecChoiceTest,
    testing::Values(
        Choice{"Stage", "stage", "3", [](PlanSpec& s) { s.options.stage = 3; }},
        Choice{"Accumulation", "gradient_accumulation_steps", "4",
               [](PlanSpec& s) { s.options.gradient_accumulation_steps = 4; }},
        Choice{"Bucket", "reduce_bucket", R"("1 elements")",
               [](PlanSpec& s) { s.options.reduce_bucket = 1; }},
        Choice{"SingleBuffer", "double_buffer", "false",
               [](PlanSpec& s) { s.options.double_buffer = false; }},
        Choice{"ReduceScatter", "reduce_collective", R"("reduce_scatter")",
               [](PlanSpec& s) { s.options.reduce_collective = ReduceCollective::kReduceScatter; }},
        Choice{"OnePerBucket", "flush_collectives", R"("one_per_bucket")",
               [](PlanSpec& s) { s.options.flush_collectives = FlushCollectives::kOnePerBucket; }},
        Choice{"Communicators", "communicators", "2",
               [](PlanSpec& s) { s.options.communicators = 2; }},
        Choice{"RecordStream", "release", R"("record_stream")",
               [](PlanSpec& s) { s.options.release = ReleaseMode::kRecordStream; }},
        Choice{"Clipping", "gradient_clipping", "1.0",
               [](PlanSpec& s) { s.options.gradient_clipping = 1.0; }},
        Choice{"NoClipping", "gradient_clipping", R"("none")", [](PlanSpec&) {}},
        Choice{"Foreach", "optimizer", R"("foreach")",
               [](PlanSpec& s) { s.options.optimizer = OptimizerKernels::kForeach; }},
        Choice{"Lion", "optimizer_algorithm", R"("lion")",
               [](PlanSpec& s) { s.options.training.algorithm = OptimizerAlgorithm::kLion; }},
        Choice{"FusedAdam", "optimizer", R"("deepspeed-fused")",
               [](PlanSpec& s) { s.options.optimizer = OptimizerKernels::kDeepSpeedFused; }},
        Choice{"HalfMaster", "master_weights", R"("bfloat16")",
               [](PlanSpec& s) { s.options.training.master = DType::kBFloat16; }},
        Choice{"HalfStates", "optimizer_state_dtype", R"("bfloat16")",
               [](PlanSpec& s) { s.options.training.states = DType::kBFloat16; }},
        Choice{"WideAccumulation", "gradient_accumulation_dtype", R"("float32")",
               [](PlanSpec& s) { s.options.training.accumulation = DType::kFloat32; }},
        Choice{"OwnAccumulation", "gradient_accumulation_dtype", R"("model")", [](PlanSpec&) {}},
        Choice{"HalfReduction", "reduce_dtype", R"("float16")",
               [](PlanSpec& s) { s.options.training.reduction = DType::kFloat16; }},
        Choice{"Norm", "compute_grad_norm", "true",
               [](PlanSpec& s) { s.options.compute_grad_norm = true; }},
        Choice{"Padded", "parameter_alignment", "true",
               [](PlanSpec& s) { s.options.parameter_alignment = true; }},
        Choice{"Expandable", "allocator", R"("expandable_segments")",
               [](PlanSpec& s) { s.options.allocator = AllocatorMode::kExpandableSegments; }},
        Choice{"Permanent", "buffer_lifetime", R"("permanent")",
               [](PlanSpec& s) { s.options.buffer_lifetime = BufferLifetime::kPermanent; }},
        Choice{"Pr8036", "buffer_lifetime", R"("pr_8036")",
               [](PlanSpec& s) { s.options.buffer_lifetime = BufferLifetime::kPr8036; }},
        Choice{"Coalesced", "gradient_reduction", R"("coalesced")",
               [](PlanSpec& s) { s.options.gradient_reduction = GradientReduction::kCoalesced; }},
        Choice{
            "EachMicroStep", "gradient_reduction", R"("each_micro_step")",
            [](PlanSpec& s) { s.options.gradient_reduction = GradientReduction::kEachMicroStep; }},
        Choice{"DefaultPasses", "passes", R"("default")", [](PlanSpec&) {}},
        Choice{"NoPasses", "passes", "[]",
               [](PlanSpec& s) { s.passes = std::vector<std::string>(); }},
        Choice{"Passes", "passes", R"(["zero3_compile"])",
               [](PlanSpec& s) { s.passes = {"zero3_compile"}; }},
        Choice{"AsMeasured", "gather_times", R"("as_measured")",
               [](PlanSpec& s) { s.gather_times = GatherTimes::kAsMeasured; }},
        Choice{"AsDeepSpeedOrders", "gather_order", R"("deepspeed")",
               [](PlanSpec& s) { s.gather_order = GatherOrder::kDeepSpeed; }},
        Choice{"EagerBuckets", "gradient_buckets", R"("eager")",
               [](PlanSpec& s) { s.options.gradient_buckets = GradientBuckets::kEager; }},
        Choice{"Scattered", "contiguous_gradients", "false",
               [](PlanSpec& s) { s.options.contiguous_gradients = false; }},
        Choice{"Overlapping", "overlap_comm", "true",
               [](PlanSpec& s) { s.options.overlap_comm = true; }},
        Choice{"FlatByCopies", "flatten", R"("copy")",
               [](PlanSpec& s) { s.options.flatten = Flatten::kCopy; }},
        Choice{"NoPrefetch", "prefetch_bucket", R"("0 elements")",
               [](PlanSpec& s) { s.eager_gathers.prefetch_bucket = 0; }},
        Choice{"NonePersistent", "persistence_threshold", R"("0 elements")",
               [](PlanSpec& s) { s.eager_gathers.persistence_threshold = 0; }},
        Choice{"MaxLive", "max_live", R"("5e6 elements")",
               [](PlanSpec& s) { s.eager_gathers.max_live = 5'000'000; }},
        Choice{"MaxReuse", "max_reuse_distance", R"("7 elements")",
               [](PlanSpec& s) { s.eager_gathers.max_reuse_distance = 7; }},
        Choice{"GatherAhead", "gather_ahead", "8", [](PlanSpec& s) { s.gather_ahead = 8; }},
        Choice{"KeepAll", "keep_gathered", R"("all")",
               [](PlanSpec& s) { s.keep_gathered.all = true; }},
        Choice{"KeepNone", "keep_gathered", R"("none")", [](PlanSpec&) {}},
        Choice{"KeepSome", "keep_gathered", R"(["*.bias"])",
               [](PlanSpec& s) { s.keep_gathered.patterns = {"*.bias"}; }}),
    RowName());

struct Fault {
  const char* name;
  const char* key;
  const char* value;  // as JSON
  const char* message;
};

class PlanSpecFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(PlanSpecFaultTest, IsReported) {
  Json document = Json::parse(kSmallest);
  document[GetParam().key] = Json::parse(GetParam().value);
  EXPECT_EQ(ErrorText([&] { Read(document); }), GetParam().message);
}

// Each range from both sides.
INSTANTIATE_TEST_SUITE_P(
    Ranges,
    PlanSpecFaultTest,
    testing::Values(
        Fault{"Stage0", "stage", "0", "p: /stage: expected a whole number from 1 to 3, found 0"},
        Fault{"Stage4", "stage", "4", "p: /stage: expected a whole number from 1 to 3, found 4"},
        Fault{"NoMicroSteps", "gradient_accumulation_steps", "0",
              "p: /gradient_accumulation_steps: expected a whole number from 1 to 65535, found 0"},
        Fault{"TooManyMicroSteps", "gradient_accumulation_steps", "65536",
              "p: /gradient_accumulation_steps: expected a whole number from 1 to 65535, found "
              "65536"},
        Fault{"EmptyBucket", "reduce_bucket", R"("0 elements")",
              "p: /reduce_bucket: expected from 1 to 1.1e12 elements"},
        // 2^40 + 1
        Fault{"HugeBucket", "reduce_bucket", R"("1099511627777 elements")",
              "p: /reduce_bucket: expected from 1 to 1.1e12 elements"},
        Fault{"NoCommunicator", "communicators", "0",
              "p: /communicators: expected a whole number from 1 to 2, found 0"},
        Fault{"ThreeCommunicators", "communicators", "3",
              "p: /communicators: expected a whole number from 1 to 2, found 3"},
        Fault{"ClippingAtZero", "gradient_clipping", "0",
              "p: /gradient_clipping: expected a norm above 0, or none"},
        Fault{"AheadOfNegative", "gather_ahead", "-1",
              "p: /gather_ahead: expected a count from 0 to 1000000"},
        Fault{"TooFarAhead", "gather_ahead", "1000001",
              "p: /gather_ahead: expected a count from 0 to 1000000"}),
    RowName());

INSTANTIATE_TEST_SUITE_P(
    Types,
    PlanSpecFaultTest,
    testing::Values(
        Fault{"BucketWithoutUnit", "reduce_bucket", "500000000",
              "p: /reduce_bucket: expected a count with its unit such as \"500e6 elements\", found "
              "500000000"},
        Fault{"BufferNoBool", "double_buffer", "2",
              "p: /double_buffer: expected true or false, found 2"},
        Fault{"ClippingNoNorm", "gradient_clipping", R"("off")",
              "p: /gradient_clipping: expected a norm above 0, or none"},
        Fault{"KeepNoList", "keep_gathered", R"("norms")",
              "p: /keep_gathered: expected none, all, or a list of parameter names with '*'"},
        Fault{"KeepNoNames", "keep_gathered", "[1]",
              "p: /keep_gathered/0: expected a text, found 1"}),
    RowName());

INSTANTIATE_TEST_SUITE_P(
    Names,
    PlanSpecFaultTest,
    testing::Values(
        Fault{"Key", "gather_ahed", "1",
              "p: /gather_ahed: unknown key 'gather_ahed', did you mean 'gather_ahead'?"},
        Fault{
            "Collective", "reduce_collective", R"("allreduce")",
            "p: /reduce_collective: expected all_reduce or reduce_scatter, found 'allreduce', did "
            "you mean 'all_reduce'?"},
        Fault{
            "Flush", "flush_collectives", R"("per_bucket")",
            "p: /flush_collectives: expected per_parameter or one_per_bucket, found 'per_bucket'"},
        Fault{"Release", "release", R"("event_order")",
              "p: /release: expected event_ordered or record_stream, found 'event_order', did you "
              "mean 'event_ordered'?"},
        Fault{"Optimizer", "optimizer", R"("forloop")",
              "p: /optimizer: expected fused, foreach, for_loop or deepspeed-fused, found "
              "'forloop', did you mean "
              "'for_loop'?"},
        Fault{"Allocator", "allocator", R"("expandable")",
              "p: /allocator: expected default or expandable_segments, found 'expandable'"}),
    RowName());

TEST(PlanSpecTest, PolicyAndStageAreRequired) {
  EXPECT_EQ(ErrorText([] { Read(Json::parse(R"({"format": "dc-plan-spec/1"})")); }),
            "p: key 'policy' is missing\np: key 'stage' is missing");
}

TEST(PlanSpecTest, OtherFormatsAreRefused) {
  EXPECT_EQ(ErrorText([] { Read(Json::parse(R"({"format": "dc-plan/1"})")); }),
            "p: /format: expected a document with \"format\": \"dc-plan-spec/1\", found "
            "\"dc-plan/1\"");
}

// The table of options is the table of the page.
TEST(PlanOptionsTest, AreTheRowsOfTheReference) {
  std::ifstream page(SourceFolder() + "/docs/reference/plans.md");
  std::set<std::string> rows;
  for (std::string line; std::getline(page, line);) {
    rows.insert(line);
  }
  for (const PlanOption& option : PlanOptions()) {
    const std::string row = "| `" + std::string(option.key) + "` | " + option.ValuesText() + " | " +
                            option.DefaultText() + " | " + std::string(option.meaning) + " |";
    EXPECT_TRUE(rows.contains(row)) << row;
  }
}

// What is printed is read again, into the field of the option.
TEST(PlanOptionsTest, EachIsReadAsItIsPrinted) {
  const PlanSpec unusual = UnusualSpec();
  const ScheduleOptions defaults;
  for (const PlanOption& option : PlanOptions()) {
    ScheduleOptions read = defaults;
    const Json alone = {{option.key, option.print(option, unusual.options)}};
    Faults faults(PointerLocator("o"));
    const Path root;
    ObjectReader object(alone, root, faults);
    option.read(option, object, read);
    faults.ThrowIfAny();
    EXPECT_EQ(option.print(option, read), option.print(option, unusual.options)) << option.key;
    const bool changed = option.print(option, read) != option.print(option, defaults);
    EXPECT_EQ(read == defaults, !changed) << option.key;
  }
}

}  // namespace
}  // namespace dcsim
