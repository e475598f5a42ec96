#include <algorithm>
#include <array>
#include <bit>

#include "model/ir/option_kinds.h"

namespace dcsim {
namespace {

constexpr std::array<std::string_view, 2> kEngineNames = {"nccl", "copy_engine"};
constexpr std::array<std::string_view, 2> kBackendNames = {"aten", "inductor"};
constexpr std::array<std::string_view, 5> kAlgorithmNames = {"adamw", "adam", "sgd", "sgd-momentum",
                                                             "lion"};
constexpr std::array<std::string_view, kOptimizerTensors> kTensorNames = {"exp_avg", "exp_avg_sq",
                                                                          "hp_param"};

using Options = ScheduleOptions;

constexpr std::array<std::string_view, 2> kReduceNames = {"all_reduce", "reduce_scatter"};
constexpr std::array<std::string_view, 2> kFlushNames = {"per_parameter", "one_per_bucket"};
constexpr std::array<std::string_view, 2> kBucketsNames = {"deepcompile", "eager"};
constexpr std::array<std::string_view, 2> kFlattenNames = {"concatenate", "copy"};
constexpr std::array<std::string_view, 3> kLifetimeNames = {"step", "pr_8036", "permanent"};
constexpr std::array<std::string_view, 3> kReductionNames = {"each_backward", "coalesced",
                                                             "each_micro_step"};
constexpr std::array<std::string_view, 2> kShardingNames = {"zero", "fsdp2"};
constexpr std::array<std::string_view, 2> kHandlingNames = {"lean", "deepspeed"};
constexpr std::array<std::string_view, 2> kHooksNames = {"none", "deepspeed"};
constexpr std::array<std::string_view, 2> kReleaseNames = {"event_ordered", "record_stream"};
constexpr std::array<std::string_view, 4> kOptimizerNames = {"fused", "foreach", "for_loop",
                                                             "deepspeed-fused"};
constexpr std::array<std::string_view, 2> kStateDTypeNames = {"float32", "bfloat16"};
// "model": the parameters' own.
constexpr std::array<std::string_view, 2> kAccumulationNames = {"model", "float32"};
constexpr std::array<std::string_view, 4> kReductionDTypeNames = {"model", "float32", "float16",
                                                                  "bfloat16"};
constexpr std::array<std::string_view, 2> kAllocatorNames = {"default", "expandable_segments"};
constexpr std::array<std::string_view, 2> kPeriodNames = {"step", "micro_step"};

/// A norm above 0, or none.
PlanOption Clipping() {
  PlanOption option{
      .key = "gradient_clipping",
      .meaning = "norm of the whole gradient, one small all-reduce, scaling before the optimizer"};
  option.unit = "norm above 0, or `none`";
  option.schema = "#/$defs/clipping";
  option.read = [](const PlanOption& of, ObjectReader& object, Options& options) {
    const Json* value = object.Find(of.key);
    if (value == nullptr || *value == "none") {
      return;
    }
    const bool positive = value->is_number() && value->get<double>() > 0;
    if (!positive) {
      object.faults().Add(object.At(of.key), "expected a norm above 0, or none");
      return;
    }
    options.gradient_clipping = value->get<double>();
  };
  option.print = [](const PlanOption&, const Options& options) {
    return options.gradient_clipping ? Json(*options.gradient_clipping) : Json("none");
  };
  option.bits = [](const Options& options) {
    return std::bit_cast<std::uint64_t>(options.gradient_clipping.value_or(0));
  };
  return option;
}

PlanOption Bucket() {
  PlanOption option{.key = "reduce_bucket",
                    .meaning =
                        "elements of one reduce buffer. A gradient that does not fit behind "
                        "the others flushes the bucket; one larger than the buffer makes it "
                        "grow, behind a host synchronisation"};
  option.unit = "elements, 1 to 1.1e12";
  option.schema = "common.schema.json#/$defs/elements";
  option.least = 1;
  option.most = std::int64_t{1} << 40;
  option.read = [](const PlanOption& of, ObjectReader& object, Options& options) {
    std::int64_t& target = options.reduce_bucket;
    if (object.Optional(of.key, ReadElements, target) && (target < of.least || target > of.most)) {
      object.faults().Add(object.At(of.key), "expected from 1 to 1.1e12 elements");
    }
  };
  option.print = [](const PlanOption&, const Options& options) {
    return Json(std::to_string(options.reduce_bucket) + " elements");
  };
  option.bits = BitsOfField<&Options::reduce_bucket>;
  return option;
}

PlanOption Required(PlanOption option) {
  option.required = true;
  return option;
}

PlanOption Trains(PlanOption option) {
  option.trains = true;
  return option;
}

PlanOption ForPolicies(std::vector<PolicyDefault> policies, PlanOption option) {
  option.policies = std::move(policies);
  return option;
}

/// Is not printed where it has its default.
PlanOption Quiet(PlanOption option) {
  option.shows_default = false;
  return option;
}

PlanOption Noted(std::string_view note, PlanOption option) {
  option.default_note = note;
  return option;
}

constexpr auto kTraining = &Options::training;
constexpr auto kSync = &Options::synchronize;
using Sync = DeviceSynchronization;

std::vector<PlanOption> WhatIsTrained() {
  using Training = TrainingOptions;
  std::vector<PlanOption> options = {
      Choice<kTraining, &Training::algorithm>(
          "optimizer_algorithm", kAlgorithmNames,
          "what updates the weights, and so what is kept ([schedules.md](../design/schedules.md)): "
          "AdamW and Adam two moments, SGD with momentum and Lion one, SGD none"),
      DTypeChoice<kTraining, &Training::master>(
          "master_weights", kStateDTypeNames,
          "as `optimizer_state_dtype`; bfloat16 for bfloat16 parameters alone. DeepSpeed: "
          "`bf16.bf16_master_weights_and_grads`"),
      DTypeChoice<kTraining, &Training::states>(
          "optimizer_state_dtype", kStateDTypeNames,
          "as `master_weights`. DeepSpeed: `bf16.bf16_optimizer_states`; one alone it keeps on the "
          "host"),
      DTypeChoice<kTraining, &Training::accumulation>(
          "gradient_accumulation_dtype", kAccumulationNames,
          "stages 2 and 3, not deepcompile-0.17.1: dtype of a rank's gradient partition; `model`: "
          "the parameters' own. DeepSpeed: `data_types.grad_accum_dtype`; in ZeRO-1 that is "
          "another optimizer"),
      DTypeChoice<kTraining, &Training::reduction>(
          "reduce_dtype", kReductionDTypeNames,
          "eager gradient_buckets and fsdp: in which dtype gradients are reduced; DeepCompile "
          "reduces them in their own. DeepSpeed: `communication_data_type`; FSDP2: `reduce_dtype`"),
  };
  std::transform(options.begin(), options.end(), options.begin(), Trains);
  return options;
}

std::vector<PlanOption> Gradients() {
  return {
      Bucket(),
      Flag<&Options::double_buffer>(
          "double_buffer", "two buffers, used in turn; with one, compute waits for each flush"),
      Choice<&Options::reduce_collective>(
          "reduce_collective", kReduceNames,
          "for ZeRO-1 and 2; 3 always scatters. all_reduce: whole gradients to all ranks, as "
          "DeepSpeed does. reduce_scatter: half the bytes, and partitions are cut parameter by "
          "parameter"),
      Choice<&Options::flush_collectives>(
          "flush_collectives", kFlushNames,
          "one NCCL call a gradient inside one group, as DeepCompile does, or one call over the "
          "bucket (stages 1 and 2 with all_reduce)"),
      ForPolicies({{"deepspeed-eager", "eager"}},
                  Choice<&Options::gradient_buckets>(
                      "gradient_buckets", kBucketsNames,
                      "how gradients are collected and reduced "
                      "([schedules.md](../design/schedules.md)). eager: one collective a bucket, "
                      "over a flat copy where several ranks own parts of it")),
      Flag<&Options::contiguous_gradients>(
          "contiguous_gradients",
          "eager buckets: gradients are copied into a buffer as they come; false: they stay where "
          "the backward wrote them until the flush"),
      Quiet(Flag<&Options::overlap_comm>(
          "overlap_comm",
          "eager buckets of stages 1 and 2 with `contiguous_gradients`: reductions run on their "
          "own stream while the backward fills a second buffer")),
      Choice<&Options::flatten>(
          "flatten", kFlattenNames,
          "eager buckets: how parts become one flat tensor. concatenate: 128 parts a kernel, as "
          "DeepSpeed does; copy: a kernel each"),
      ForPolicies({{"deepcompile-", "pr_8036"}, {"deepcompile-0.17.1", "permanent"}},
                  Choice<&Options::buffer_lifetime>(
                      "buffer_lifetime", kLifetimeNames,
                      "how long reduce buffers live, and ZeRO-1's gradient partition: below")),
      ForPolicies({{"deepcompile-0.17.1", "each_micro_step"}},
                  Choice<&Options::gradient_reduction>("gradient_reduction", kReductionNames,
                                                       "when gradients are reduced: below")),
  };
}

std::vector<PlanOption> Gathers() {
  constexpr std::string_view kWaits =
      "the host waits for the whole device there, as DeepCompile's flag of this name makes it";
  return {
      Whole<&Options::communicators>("communicators", 1, 2, "",
                                     "1: gathers and reductions queue in one communicator, as in "
                                     "DeepCompile; 2: one each"),
      Choice<&Options::gather_engine>(
          "gather_engine", kEngineNames,
          "stage 3: gathers by NCCL's kernels, or by copies of the other ranks' shards through "
          "peer memory, which take no multiprocessors. Two barriers a step guard the shards "
          "([schedules.md](../design/schedules.md))"),
      Noted("DeepCompile's policies of 0.19.x without `prefetch`: true",
            Flag<&Options::fuse_casts>(
                "fuse_casts",
                "stage 3 with nccl: a parameter that every graph reads through one cast to a "
                "smaller dtype alone (autocast) is gathered in that dtype, to the same bits "
                "([schedules.md](../design/schedules.md))")),
      Flag<&Options::align_tensors>(
          "align_tensors",
          "parameters that fill no multiple of 16 bytes come last, so that they shift no other "
          "tensor, which slows kernels and collectives "
          "([products](../design/costs/products.md#parameters-side-by-side)): below"),
      Flag<kSync, &Sync::before_allgather>("sync_before_allgather", kWaits),
      Flag<kSync, &Sync::after_allgather>("sync_after_allgather", kWaits),
      Flag<kSync, &Sync::before_reduce>("sync_before_reduce", kWaits),
      Flag<kSync, &Sync::after_reduce>("sync_after_reduce", kWaits),
      ForPolicies({{"deepspeed-eager", "record_stream"},
                   {"deepcompile-", "record_stream"},
                   {"deepcompile-0.17.1", "event_ordered"}},
                  Choice<&Options::release>(
                      "release", kReleaseNames,
                      "when a released parameter's memory may be used again. event_ordered: at "
                      "once in host order, as every gather waits for compute. record_stream: when "
                      "the GPU has passed its last use")),
  };
}

std::vector<PlanOption> BeforeTheOptimizer() {
  return {
      Trains(Clipping()),
      Flag<&Options::compute_grad_norm>(
          "compute_grad_norm",
          "the norm is computed though nothing clips, as DeepSpeed does unless "
          "`zero_optimization.compute_grad_norm` is false (0.19.8, stages 1 and 2)"),
      Quiet(Noted("DeepCompile's policies with backend inductor: `deepspeed`",
                  Choice<&Options::gradient_handling>(
                      "gradient_handling", kHandlingNames,
                      "what stands between backward and optimizer: what the optimizer needs, or "
                      "what DeepSpeed 0.19.8 launches "
                      "([schedules](../design/schedules.md#gradient-handling)). deepspeed turns "
                      "`compute_grad_norm` on by default"))),
      Quiet(ForPolicies({{"deepspeed-eager", "deepspeed"}},
                        Choice<&Options::module_hooks>(
                            "module_hooks", kHooksNames,
                            "stage 3: what the host does around modules: nothing, or the hooks by "
                            "which eager DeepSpeed fetches and releases their parameters. `dc-run` "
                            "has none"))),
      Flag<&Options::parameter_alignment>(
          "parameter_alignment",
          "stages 1 and 2 with all_reduce, not with `align_tensors`: each parameter of the flat "
          "tensor begins at a multiple of 16 bytes, behind padding. DeepSpeed's key of this name, "
          "since 0.19.8"),
  };
}

std::vector<PlanOption> Memory() {
  return {
      Choice<&Options::optimizer>(
          "optimizer", kOptimizerNames,
          "kernels. fused: torch's, one pass; foreach: passes, with a temporary of the partition's "
          "size; for_loop: with two; deepspeed-fused: FusedAdam, FusedLion. Lion has DeepSpeed's "
          "alone, SGD torch's"),
      Choice<&Options::allocator>(
          "allocator", kAllocatorNames,
          "PYTORCH_ALLOC_CONF=expandable_segments:True. `dc-run` sets it for its ranks; with "
          "`gather_engine: copy_engine` Linux has to allow pidfd_getfd between them"),
      ForPolicies({{"deepcompile-", "micro_step"}},
                  Choice<&Options::offload_period>(
                      "offload_period", kPeriodNames,
                      "how often offloaded optimizer states move: out in the first micro-step and "
                      "back in the last, or both in each")),
      Flag<&Options::offload_parameters>(
          "offload_parameters",
          "stage 3, plain-1 and DeepCompile: shards live in pinned host memory "
          "([schedules.md](../design/schedules.md)). DeepSpeed: `compile.offload_parameters`, "
          "`zero_optimization.offload_param` on the CPU"),
  };
}

std::vector<PlanOption> AllOptions() {
  std::vector<PlanOption> all = {
      Required(Whole<&Options::stage>("stage", 1, 3, "",
                                      "ZeRO stage: what is cut over the ranks. 1: optimizer "
                                      "states; 2: gradients too; 3: parameters too, as in fsdp")),
      Noted("of a spec `inductor` where it is recorded, but deepspeed-eager's and fsdp's",
            Choice<&Options::backend>("backend", kBackendNames,
                                      "whose kernels run: PyTorch's operators, or what Inductor "
                                      "makes of them (below)")),
      ForPolicies({{"fsdp", "fsdp2"}},
                  Quiet(Choice<&Options::sharding>(
                      "sharding", kShardingNames,
                      "how parameters are cut: as ZeRO does, or in FSDP2's groups "
                      "([policies](../design/policies.md#fsdp2))"))),
      Trains(Whole<&Options::gradient_accumulation_steps>(
          "gradient_accumulation_steps", 1, 65535, "micro-steps",
          "micro-steps of one optimizer step. ZeRO-1 keeps whole gradients and reduces in the last "
          "one; ZeRO-2 and 3 reduce in each")),
  };
  for (const auto& part :
       {Gradients(), Gathers(), BeforeTheOptimizer(), WhatIsTrained(), Memory()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace

const std::vector<PlanOption>& PlanOptions() {
  static const std::vector<PlanOption> options = AllOptions();
  return options;
}

std::span<const std::string_view> EngineNames() {
  return kEngineNames;
}

std::string_view OptimizerAlgorithmName(OptimizerAlgorithm algorithm) {
  return kAlgorithmNames[static_cast<std::size_t>(algorithm)];
}

std::span<const std::string_view> BackendNames() {
  return kBackendNames;
}

Backend BackendNamed(const Json& name) {
  const std::string text = name.is_string() ? name.get<std::string>() : "";
  const auto found = std::find(kBackendNames.begin(), kBackendNames.end(), text);
  const bool known = found != kBackendNames.end();
  return known ? static_cast<Backend>(found - kBackendNames.begin()) : Backend::kAten;
}

std::span<const std::string_view> OptimizerTensorNames() {
  return kTensorNames;
}

std::span<const std::string_view> TrainingKeys() {
  static const std::vector<std::string_view> keys = [] {
    std::vector<std::string_view> all;
    for (const PlanOption& option : WhatIsTrained()) {
      all.push_back(option.key);
    }
    return all;
  }();
  return keys;
}

}  // namespace dcsim
