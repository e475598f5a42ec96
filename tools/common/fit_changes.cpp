#include "tools/common/fit_changes.h"

#include <algorithm>

#include "model/passes/resolve.h"

namespace dcsim {
namespace {

/// Adds changes; of a DeepSpeed configuration the reader is told the key of its own file.
class ChangeList {
 public:
  explicit ChangeList(const FitBase& base) : base_(base) {}

  /// Of one key of the plan.
  void Set(const std::string& kind,
           const std::string& label,
           const std::string& override_text,
           const std::string& deepspeed) {
    const bool quoted = override_text.find(' ') != std::string::npos;
    const std::string set = "--set " + (quoted ? "'" + override_text + "'" : override_text);
    Add({kind, label, base_.is_deepspeed && !deepspeed.empty() ? deepspeed : set, {override_text}});
  }
  void Add(FitChange change) { changes_.push_back(std::move(change)); }

  std::vector<FitChange> Take() { return std::move(changes_); }

 private:
  const FitBase& base_;
  std::vector<FitChange> changes_;
};

bool IsDeepCompile(const Plan& plan) {
  return plan.policy.starts_with("deepcompile-");
}

void AddStages(const FitBase& base, ChangeList& list) {
  for (int stage = 1; stage <= 3; ++stage) {
    const std::string number = std::to_string(stage);
    if (stage != base.step.plan.options.stage) {
      list.Set("stage", "ZeRO-" + number, "stage=" + number, "zero_optimization.stage: " + number);
    }
  }
}

void AddBuckets(const FitBase& base, ChangeList& list) {
  const std::int64_t own = base.step.plan.options.reduce_bucket;
  for (const std::int64_t millions : {50, 500}) {
    if (millions * 1'000'000 != own) {
      const std::string count = std::to_string(millions) + "e6";
      list.Set("bucket", "reduce buckets of " + count + " elements",
               "reduce_bucket=" + count + " elements",
               "zero_optimization.reduce_bucket_size: " + count);
    }
  }
  if (base.step.plan.options.double_buffer && IsDeepCompile(base.step.plan)) {
    list.Set("double buffer", "one reduce buffer", "double_buffer=false",
             "compile.double_buffer: false");
  }
}

/// What eager ZeRO-3 keeps gathered, and brings ahead.
void AddEagerGathers(ChangeList& list) {
  const std::string section = "zero_optimization.stage3_";
  list.Set("persistence", "nothing stays gathered", "persistence_threshold=0 elements",
           section + "param_persistence_threshold: 0");
  list.Set("persistence", "more stays gathered", "persistence_threshold=1e6 elements",
           section + "param_persistence_threshold: 1e6");
  list.Set("prefetch", "nothing gathered ahead", "prefetch_bucket=0 elements",
           section + "prefetch_bucket_size: 0");
  list.Set("prefetch", "more gathered ahead", "prefetch_bucket=500e6 elements",
           section + "prefetch_bucket_size: 5e8");
  list.Set("live", "fewer parameters gathered at once", "max_live=100e6 elements",
           section + "max_live_parameters: 1e8");
}

void AddPolicy(const FitBase& base, ChangeList& list) {
  const auto policies = PolicyNames();
  const auto newest = std::find_if(policies.rbegin(), policies.rend(), [](std::string_view name) {
    return name.starts_with("deepcompile-");
  });
  const std::string set = "policy=" + std::string(*newest);
  // What eager ZeRO-3 alone has goes back to its default, which other policies take for nothing.
  list.Add({"policy",
            "DeepCompile",
            base.is_deepspeed ? "compile.deepcompile: true" : "--set " + set,
            {set, "prefetch_bucket=50e6 elements", "persistence_threshold=100e3 elements",
             "max_live=1e9 elements", "max_reuse_distance=1e9 elements",
             "gradient_buckets=deepcompile", "reduce_dtype=model"}});
}

void AddOffload(const FitBase& base, ChangeList& list) {
  if (base.step.plan.policy == "deepspeed-eager") {
    return;  // brings nothing back from the host by itself
  }
  if (base.step.plan.options.stage == 3) {
    list.Set("offload", "parameters on the host", "offload_parameters=true",
             "compile.offload_parameters: true, zero_optimization.offload_param.device: cpu");
  }
  if (!IsDeepCompile(base.step.plan)) {
    list.Set("offload", "optimizer states on the host", "offload_optimizer=all", "");
    return;
  }
  if (base.step.plan.options.stage != 3) {
    return;
  }
  list.Set("offload", "optimizer states on the host",
           "passes=[offload_adam_states_for_init, zero3_compile, offload_adam_states]",
           "compile.offload_opt_states: true");
  list.Set("offload", "activations on the host", "offload_activation=true",
           "compile.offload_activation: true");
  list.Set("offload", "nothing prefetched, nothing kept gathered", "passes=[zero3_compile]", "");
}

void AddGpus(const FitBase& base, ChangeList& list) {
  const Cluster& cluster = base.step.cluster;
  const int twice = 2 * base.step.plan.ranks;
  const std::string label = std::to_string(twice) + " GPUs";
  if (twice <= cluster.gpus()) {
    list.Add({"gpus", label, "--gpus " + std::to_string(twice), {}, {}, twice});
    return;
  }
  constexpr int kOfAMachine = 8;  // that NVLink joins
  const bool one_machine = cluster.nodes == 1 && twice <= kOfAMachine;
  FitChange change{"gpus", label, {}, {}, {}, twice};
  if (one_machine || cluster.inter_node) {
    const std::string set = one_machine ? "gpus_per_node=" + std::to_string(twice)
                                        : "nodes=" + std::to_string(cluster.NodesOf(twice));
    change.how = "--cluster-set " + set;
    change.cluster_overrides = {set};
  } else {
    change.impossible = cluster.name + " says no inter_node: the network between machines";
  }
  list.Add(std::move(change));
}

void AddRecordings(const FitBase& base, ChangeList& list) {
  const auto& own = base.shelf.own();
  if (!own) {
    return;
  }
  const int steps = base.step.plan.options.gradient_accumulation_steps;
  const auto add_batch = [&](std::int64_t batch) {
    const std::string rows = std::to_string(batch);
    AskedRecording asked;
    asked.sizes.batch = batch;
    list.Add({"batch",
              "micro-batch " + rows,
              base.is_deepspeed ? "train_micro_batch_size_per_gpu: " + rows : "",
              {},
              asked});
  };
  for (const std::int64_t divisor : {2, 4}) {
    if (own->batch % divisor == 0) {
      add_batch(own->batch / divisor);
    }
  }
  for (const int factor : {2, 4}) {
    if (steps % factor == 0) {
      add_batch(own->batch * factor);
    }
  }
  AskedRecording asked;
  asked.checkpointing = own->checkpointing == Json(false);
  list.Add({"checkpointing",
            *asked.checkpointing ? "activation checkpointing" : "no activation checkpointing",
            "",
            {},
            asked});
  if (own->hold != Json::array()) {
    AskedRecording none;
    none.hold_none = true;
    list.Add({"hold", "outputs not held", "", {}, none});
  }
}

/// Micro-steps of `batch` rows on so many ranks that make `rows` in all; 0: no whole number does.
int StepsFor(std::int64_t rows, std::int64_t batch, std::int64_t ranks) {
  const std::int64_t of_step = batch * ranks;
  return rows % of_step == 0 ? static_cast<int>(rows / of_step) : 0;
}

}  // namespace

std::vector<FitChange> ChangesOf(const FitBase& base) {
  if (base.is_decided) {
    return {};
  }
  ChangeList list(base);
  const Plan& plan = base.step.plan;
  if (plan.options.allocator == AllocatorMode::kDefault) {
    list.Set("allocator", "expandable segments", "allocator=expandable_segments",
             "PYTORCH_ALLOC_CONF=expandable_segments:True");
  }
  if (plan.options.sharding == Sharding::kFsdp2) {
    list.Set("reshard", "parameters let go after the forward", "reshard_after_forward=true", "");
    list.Set("reduce dtype", "gradients reduced in their own dtype", "reduce_dtype=model", "");
    AddGpus(base, list);
    AddRecordings(base, list);
    return list.Take();
  }
  AddStages(base, list);
  AddBuckets(base, list);
  if (plan.policy == "deepspeed-eager") {
    AddPolicy(base, list);
    if (plan.options.stage == 3) {
      AddEagerGathers(list);
    }
  }
  if (plan.policy == "plain-1" && plan.options.stage == 3) {
    list.Set("ahead", "gathers 8 launches ahead", "gather_ahead=8", "");
  }
  AddOffload(base, list);
  AddGpus(base, list);
  AddRecordings(base, list);
  return list.Take();
}

bool NeedsRecording(const FitChange& change) {
  return change.recording.sizes.batch != 0 || change.recording.checkpointing ||
         change.recording.hold_none;
}

AskedRecording MergedRecording(const std::vector<FitChange>& changes) {
  AskedRecording merged;
  for (const FitChange& change : changes) {
    const AskedRecording& asked = change.recording;
    merged.sizes.batch = asked.sizes.batch == 0 ? merged.sizes.batch : asked.sizes.batch;
    merged.checkpointing = asked.checkpointing ? asked.checkpointing : merged.checkpointing;
    merged.hold_none = merged.hold_none || asked.hold_none;
  }
  return merged;
}

std::optional<StepOptions> Changed(const FitBase& base,
                                   const std::vector<FitChange>& changes,
                                   const std::string& folder) {
  StepOptions options = base.options;
  options.workload = folder;
  options.sizes = {};
  const Plan& plan = base.step.plan;
  const std::int64_t batch = base.shelf.own() ? base.shelf.own()->batch : 1;
  std::int64_t ranks = plan.ranks;
  std::int64_t steps = plan.options.gradient_accumulation_steps;
  if (plan.policy != "deepspeed-eager") {
    const auto backend = static_cast<std::size_t>(plan.options.backend);
    options.overrides.push_back("backend=" + std::string(BackendNames()[backend]));
  }
  for (const FitChange& change : changes) {
    options.overrides.insert(options.overrides.end(), change.overrides.begin(),
                             change.overrides.end());
    options.cluster_overrides.insert(options.cluster_overrides.end(),
                                     change.cluster_overrides.begin(),
                                     change.cluster_overrides.end());
    if (change.gpus != 0) {
      const int fewer = StepsFor(batch * steps * ranks, batch, change.gpus);
      steps = fewer == 0 ? steps : fewer;
      ranks = change.gpus;
      options.gpus = change.gpus;
    }
  }
  const std::int64_t asked = MergedRecording(changes).sizes.batch;
  if (asked != 0) {
    steps = StepsFor(batch * steps * ranks, asked, ranks);
  }
  if (steps == 0) {
    return std::nullopt;
  }
  if (steps != plan.options.gradient_accumulation_steps || asked != 0 || ranks != plan.ranks) {
    options.batches = BatchSizes::kRecording;
    options.overrides.push_back("gradient_accumulation_steps=" + std::to_string(steps));
  }
  return options;
}

}  // namespace dcsim
