#include "tools/common/deepspeed_config.h"

#include <algorithm>

#include "tools/common/deepspeed_keys.h"

namespace dcsim {
namespace {

/// Null, false, 0, 1 for a group size, "none", or {"device": "none"}.
bool IsOff(const Json& value) {
  if (value.is_object()) {
    return value.empty() || (value.contains("device") && value["device"] == "none");
  }
  return value.is_null() || value == false || value == 0 || value == 1 || value == -1 ||
         value == 1.0 || value == "none";
}

class ConfigReader {
 public:
  ConfigReader(const Json& document, Faults& faults, int ranks)
      : document_(document),
        faults_(faults),
        ranks_(ranks) {}

  DeepSpeedSpec Read(std::span<const std::string_view> policies) {
    CheckTop();
    if (const Json* zero = Section("zero_optimization", kZeroKeys)) {
      ReadZero(*zero);
    } else if (!document_.contains("zero_optimization")) {
      faults_.Add("/zero_optimization", "is missing: without ZeRO there is nothing to schedule");
    }
    bool deepcompile = false;
    bool offloads = false;
    bool offloads_activations = false;
    if (const Json* compile = Section("compile", kCompileKeys)) {
      ReadFlag(*compile, "deepcompile", "/compile/deepcompile", deepcompile);
      ReadFlag(*compile, "double_buffer", "/compile/double_buffer",
               spec_.spec.options.double_buffer);
      ReadFlag(*compile, "offload_opt_states", "/compile/offload_opt_states", offloads);
      ReadFlag(*compile, "offload_activation", "/compile/offload_activation", offloads_activations);
    }
    ChoosePolicy(policies, deepcompile);
    ChooseOffload(deepcompile && offloads);
    spec_.spec.offload_activation =
        deepcompile && offloads_activations && spec_.spec.options.stage == 3;
    ReadBatches();
    ReadClipping();
    return std::move(spec_);
  }

 private:
  void Note(const std::string& sentence) { spec_.notes.push_back(sentence); }

  void CheckTop() {
    for (const auto& [name, value] : document_.items()) {
      const DeepSpeedKey* key = FindKey(kTopKeys, name);
      if (key == nullptr) {
        Note(name + " has no effect on a plan" + Nearest(kTopKeys, name));
      } else if (key->meaning == KeyMeaning::kRefused && !IsOff(value)) {
        faults_.Add("/" + name, "is not modelled");
      }
    }
  }

  /// A section, its keys checked, or null.
  template <std::size_t kCount>
  const Json* Section(const std::string& name, const std::array<DeepSpeedKey, kCount>& keys) {
    if (!document_.contains(name)) {
      return nullptr;
    }
    const Json& section = document_[name];
    if (!section.is_object()) {
      faults_.Add("/" + name, "expected an object");
      return nullptr;
    }
    std::vector<std::string> ignored;
    const std::string folder = "/" + name + "/";
    for (const auto& [own, value] : section.items()) {
      const DeepSpeedKey* key = FindKey(keys, own);
      const std::string pointer = folder + own;
      if (key == nullptr) {
        faults_.Add(pointer, "unknown key '" + own + "'" + Nearest(keys, own));
      } else if (key->meaning == KeyMeaning::kRefused && !IsOff(value)) {
        faults_.Add(pointer, "is not modelled: no plan says what it does");
      } else if (key->meaning == KeyMeaning::kIgnored) {
        ignored.push_back(own);
      }
    }
    if (!ignored.empty()) {
      Note(name + ": without effect here: " + Join(ignored, ", "));
    }
    return &section;
  }

  void ReadZero(const Json& zero) {
    if (!zero.contains("stage")) {
      faults_.Add("/zero_optimization/stage", "is missing; DeepSpeed's default is 0, no ZeRO");
      return;
    }
    ReadCount(zero, "stage", "/zero_optimization/stage", {1, 3}, spec_.spec.options.stage);
    ReadCount(zero, "reduce_bucket_size", "/zero_optimization/reduce_bucket_size",
              {1, std::int64_t{1} << 40}, spec_.spec.options.reduce_bucket);
  }

  struct Range {
    std::int64_t least = 0;
    std::int64_t most = 0;
  };

  /// A whole number, which JSON may also write as 5e8.
  template <typename Integer>
  bool ReadCount(const Json& object,
                 const std::string& key,
                 const std::string& pointer,
                 Range range,
                 Integer& target) {
    if (!object.contains(key)) {
      return false;
    }
    const Json& value = object[key];
    if (value == "auto") {
      faults_.Add(pointer, "\"auto\" is filled in by a trainer; write the number");
      return false;
    }
    const double number = value.is_number() ? value.get<double>() : -1;
    const bool whole = number == static_cast<double>(static_cast<std::int64_t>(number));
    if (!whole || number < static_cast<double>(range.least) ||
        number > static_cast<double>(range.most)) {
      faults_.Add(pointer, "expected a whole number from " + std::to_string(range.least) + " to " +
                               std::to_string(range.most) + ", found " + value.dump());
      return false;
    }
    target = static_cast<Integer>(number);
    return true;
  }

  void ReadFlag(const Json& object,
                const std::string& key,
                const std::string& pointer,
                bool& target) {
    if (!object.contains(key)) {
      return;
    }
    if (!object[key].is_boolean()) {
      faults_.Add(pointer, "expected true or false, found " + object[key].dump());
      return;
    }
    target = object[key].get<bool>();
  }

  void ChoosePolicy(std::span<const std::string_view> policies, bool deepcompile) {
    for (const std::string_view policy : policies) {
      if (deepcompile && policy.starts_with("deepcompile-")) {
        spec_.spec.policy = policy;
      }
    }
    if (!deepcompile) {
      Note(
          "compile.deepcompile is off: the plan is that of plain-1, each gather at its use, not "
          "that of eager ZeRO");
    }
  }

  /// init_z3.py: the passes of step 1 and later; stages 1 and 2 do not look at the key.
  void ChooseOffload(bool offloads) {
    if (offloads && spec_.spec.options.stage == 3) {
      spec_.spec.passes = {"offload_adam_states_for_init", "zero3_compile", "offload_adam_states"};
      spec_.spec.options.offload_period = OffloadPeriod::kMicroStep;
    }
  }

  /// train_batch_size = micro batch * accumulation steps * ranks; two of them give the third.
  void ReadBatches() {
    constexpr Range kBatch{1, std::int64_t{1} << 40};
    constexpr std::int64_t kMostSteps = 65535;
    std::int64_t whole = 0;
    std::int64_t micro = 0;
    std::int64_t steps = 0;
    const bool has_whole =
        ReadCount(document_, "train_batch_size", "/train_batch_size", kBatch, whole);
    const bool has_micro = ReadCount(document_, "train_micro_batch_size_per_gpu",
                                     "/train_micro_batch_size_per_gpu", kBatch, micro);
    const bool has_steps = ReadCount(document_, "gradient_accumulation_steps",
                                     "/gradient_accumulation_steps", {1, kMostSteps}, steps);
    if (has_whole && has_micro) {
      const std::int64_t expected = whole / (micro * ranks_);
      if (expected < 1 || expected > kMostSteps || expected * micro * ranks_ != whole ||
          (has_steps && steps != expected)) {
        faults_.Add("/train_batch_size", "expected micro batch * accumulation steps * " +
                                             std::to_string(ranks_) + " ranks, found " +
                                             std::to_string(whole));
        return;
      }
      steps = expected;
    }
    if (steps > 0) {
      spec_.spec.options.gradient_accumulation_steps = static_cast<int>(steps);
    }
  }

  void ReadClipping() {
    if (!document_.contains("gradient_clipping")) {
      spec_.spec.options.gradient_clipping = kDeepSpeedClipping;
      Note("gradient_clipping: 1.0, as DeepSpeed 0.19.8 clips where nothing is said");
      return;
    }
    const Json& value = document_["gradient_clipping"];
    if (!value.is_number() || value.get<double>() < 0) {
      faults_.Add("/gradient_clipping",
                  "expected a norm of 0 (none) or more, found " + value.dump());
    } else if (value.get<double>() > 0) {
      spec_.spec.options.gradient_clipping = value.get<double>();
    }
  }

  const Json& document_;
  Faults& faults_;
  int ranks_;
  DeepSpeedSpec spec_;
};

/// What no key of DeepSpeed's says, of a plan that DeepSpeed would not make by itself.
std::vector<std::string> MissingOf(const Plan& plan, const Graph& graph) {
  const ScheduleOptions& options = plan.options;
  std::vector<std::string> missing;
  if (options.stage == 3) {
    missing.push_back(
        "where each gather is issued and which share a launch: DeepCompile's prefetch "
        "pass decides");
    missing.push_back("which " + std::to_string(plan.persistent.size()) + " of " +
                      std::to_string(graph.params.size()) +
                      " parameters stay gathered: its selective_gather pass decides");
  } else if (options.reduce_collective == ReduceCollective::kReduceScatter) {
    missing.push_back("reduce_scatter: DeepCompile's ZeRO-1 and 2 use all-reduce");
  }
  if (options.flush_collectives == FlushCollectives::kOnePerBucket) {
    missing.push_back("one collective a bucket: DeepCompile calls one a parameter");
  }
  if (options.communicators == 2) {
    missing.push_back("two communicators: DeepCompile has one");
  }
  if (options.gather_engine == Engine::kCopyEngine) {
    missing.push_back(
        "gathers by copy engines between two barriers a step: DeepCompile's symmetric_memory has "
        "two a gather");
  }
  if (options.align_tensors) {
    missing.push_back(
        "tensors at multiples of 16 bytes: give the optimizer the parameters of odd size last");
  }
  if (options.fuse_casts) {
    missing.push_back(
        "gathers in the dtype that parameters are cast to: DeepCompile's prefetch pass undoes "
        "them");
  }
  if (options.release == ReleaseMode::kEventOrdered && options.stage == 3) {
    missing.push_back("release by event order: DeepCompile uses record_stream");
  }
  if (options.optimizer != OptimizerKernels::kFused) {
    missing.push_back("the optimizer's kernels: choose them where the optimizer is made");
  }
  if (options.allocator == AllocatorMode::kExpandableSegments) {
    missing.push_back("expandable segments: set PYTORCH_ALLOC_CONF=expandable_segments:True");
  }
  return missing;
}

/// Rows of the first input: the micro batch of the recording.
std::int64_t MicroBatch(const Graph& graph) {
  if (graph.inputs.empty()) {
    return 1;
  }
  const auto& shape = graph.value(graph.inputs.front().value).shape;
  return shape.empty() ? 1 : std::max<std::int64_t>(1, shape.front());
}

}  // namespace

bool IsDeepSpeedConfig(const Json& document) {
  return document.is_object() && !document.contains("format") &&
         std::any_of(kTopKeys.begin(), kTopKeys.end(),
                     [&document](const DeepSpeedKey& key) { return document.contains(key.name); });
}

DeepSpeedSpec ReadDeepSpeedConfig(const Json& document,
                                  const Locator& locate,
                                  std::span<const std::string_view> policies,
                                  int ranks) {
  Faults faults(locate);
  DeepSpeedSpec spec = ConfigReader(document, faults, ranks).Read(policies);
  faults.ThrowIfAny();
  return spec;
}

DeepSpeedOutput ClosestDeepSpeedConfig(const Plan& plan, const Graph& graph) {
  const ScheduleOptions& options = plan.options;
  const std::int64_t micro = MicroBatch(graph);
  DeepSpeedOutput output;
  output.config = {
      {"train_batch_size", micro * options.gradient_accumulation_steps * plan.ranks},
      {"train_micro_batch_size_per_gpu", micro},
      {"gradient_accumulation_steps", options.gradient_accumulation_steps},
  };
  output.config["gradient_clipping"] = options.gradient_clipping.value_or(0.0);
  const DType dtype = graph.params.empty() ? DType::kBFloat16 : graph.dtype(ParamId(0));
  if (dtype == DType::kBFloat16 || dtype == DType::kFloat16) {
    output.config[dtype == DType::kBFloat16 ? "bf16" : "fp16"] = {{"enabled", true}};
  }
  output.config["zero_optimization"] = {{"stage", options.stage},
                                        {"reduce_bucket_size", options.reduce_bucket}};
  output.config["compile"] = {{"deepcompile", true}, {"double_buffer", options.double_buffer}};
  output.missing = MissingOf(plan, graph);
  return output;
}

}  // namespace dcsim
