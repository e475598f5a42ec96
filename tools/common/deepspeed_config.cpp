#include "tools/common/deepspeed_config.h"

#include <algorithm>
#include <array>
#include <optional>

#include "tools/common/deepspeed_checks.h"
#include "tools/common/deepspeed_optimizer.h"
#include "tools/common/deepspeed_settings.h"
#include "tools/common/deepspeed_value.h"

namespace dcsim {
namespace {

/// Names by what is said of them, in the order of their first one.
class Grouped {
 public:
  void Add(const std::string& what, const std::string& name) {
    const auto found = std::find_if(groups_.begin(), groups_.end(),
                                    [&](const auto& group) { return group.first == what; });
    if (found == groups_.end()) {
      groups_.push_back({what, {name}});
    } else {
      found->second.push_back(name);
    }
  }

  /// "a, b (checkpoints); c (reports)"
  std::string Text() const {
    std::vector<std::string> parts;
    for (const auto& [what, names] : groups_) {
      parts.push_back(Join(names, ", ") + " (" + what + ")");
    }
    return Join(parts, "; ");
  }

  bool empty() const { return groups_.empty(); }

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> groups_;
};

class SpecWriter {
 public:
  SpecWriter(const DeepSpeedCheck& check, KeyScope scope) : check_(check), scope_(scope) {}

  DeepSpeedSpec Write(std::string_view policy) {
    read_.spec = {{"format", "dc-plan-spec/1"}, {"policy", policy}};
    Give("stage", check_.settings.Get("zero_optimization.stage"), "zero_optimization.stage");
    for (const DeepSpeedKey* key : check_.settings.keys()) {
      TakeKey(*key);
    }
    Give("gradient_accumulation_steps", ReadBatches(check_), "gradient_accumulation_steps");
    GiveOverlap();
    GiveClipping();
    GiveNorm();
    GiveDTypes();
    if (scope_ == kCompiled3 && check_.settings.IsOn("compile.offload_opt_states")) {
      // init_z3.py: the passes of step 1 and later.
      Give("passes", Json{"offload_adam_states_for_init", "zero3_compile", "offload_adam_states"},
           "compile.offload_opt_states");
    }
    CheckDTypes(check_);
    CheckCombinations(check_, scope_);
    const OptimizerChoice optimizer = ReadOptimizer(check_);
    for (const auto& [key, value] : optimizer.options.items()) {
      Give(key, value, "optimizer.type");
    }
    AddNotes(optimizer.note);
    return std::move(read_);
  }

 private:
  void Give(std::string_view option, Json value, std::string_view path) {
    read_.spec[std::string(option)] = std::move(value);
    read_.origins[std::string(option)] = check_.settings.Pointer(path);
  }

  void TakeKey(const DeepSpeedKey& key) {
    const Json value = check_.settings.Get(key.path);
    const std::string pointer = check_.settings.Pointer(key.path);
    if ((key.scope & scope_) == 0) {
      no_effect_.Add("only for " + ScopeText(key.scope), pointer.substr(1));
    } else if (key.meaning == KeyMeaning::kNoEffect) {
      no_effect_.Add(std::string(key.why), pointer.substr(1));
    } else if (key.meaning == KeyMeaning::kRefused && !IsDeepSpeedDefault(key, value)) {
      check_.faults.Add(pointer, "not modelled: " + std::string(key.why));
    } else if (key.meaning == KeyMeaning::kRead && !key.option.empty()) {
      GiveOption(key, value);
    }
  }

  void GiveOption(const DeepSpeedKey& key, const Json& value) {
    constexpr std::int64_t kMostElements = std::int64_t{1} << 50;  // of a spec's key
    if (key.type != KeyType::kCount) {
      Give(key.option, value, key.path);
      return;
    }
    const std::int64_t count = value.get<std::int64_t>();
    const bool any = key.option != "reduce_bucket";  // more than all there are is all
    Give(key.option, std::to_string(any ? std::min(count, kMostElements) : count) + " elements",
         key.path);
  }

  /// ZeRO-3 has it without a word of the plan.
  void GiveOverlap() {
    const std::string_view path = "zero_optimization.overlap_comm";
    if ((scope_ & kEager12) != 0 && check_.settings.Get(path) == true) {
      Give("overlap_comm", true, path);
    }
  }

  /// GRADIENT_CLIPPING_DEFAULT is 1.0.
  void GiveClipping() {
    const Json value = check_.settings.Get("gradient_clipping");
    if (!check_.settings.Has("gradient_clipping")) {
      read_.notes.push_back(
          "gradient_clipping: 1.0, as DeepSpeed 0.19.8 clips where nothing is said");
    }
    if (value.is_number() && value.get<double>() > 0) {
      Give("gradient_clipping", value, "gradient_clipping");
    }
  }

  /// ZeRO-3 has no key for it: it always computes the norm. Where something clips, it is computed
  /// anyway.
  void GiveNorm() {
    const std::string_view path = "zero_optimization.compute_grad_norm";
    const bool asked = (scope_ & kStage3) != 0 || check_.settings.IsOn(path);
    if (asked && !read_.spec.contains("gradient_clipping")) {
      Give("compute_grad_norm", true, path);
    }
  }

  /// Of what is kept for the optimizer and of reductions, where it is not what plans have anyway.
  void GiveDTypes() {
    const DeepSpeedSettings& settings = check_.settings;
    if (settings.IsOn("bf16.enabled")) {
      GiveBFloat16("master_weights", "bf16.bf16_master_weights_and_grads");
      GiveBFloat16("optimizer_state_dtype", "bf16.bf16_optimizer_states");
    }
    GiveDType("gradient_accumulation_dtype", "data_types.grad_accum_dtype");
    if ((scope_ & kEager) != 0) {
      GiveDType("reduce_dtype", "communication_data_type");
    }
  }

  void GiveBFloat16(std::string_view option, std::string_view path) {
    if (check_.settings.IsOn(path)) {
      Give(option, DTypeName(DType::kBFloat16), path);
    }
  }

  /// A dtype that is the model's own changes nothing.
  void GiveDType(std::string_view option, std::string_view path) {
    const Json name = check_.settings.Get(path);
    const auto dtype =
        name.is_string() ? FindDeepSpeedDType(name.get<std::string>()) : std::nullopt;
    if (dtype && *dtype != RecordedDType(check_.job.graph)) {
      Give(option, DTypeName(*dtype), path);
    }
  }

  void AddNotes(const std::string& optimizer) {
    const auto& filled = check_.settings.filled();
    if (!filled.empty()) {
      read_.notes.push_back("\"auto\", as Hugging Face's Trainer fills it in: " +
                            Join(filled, ", "));
    }
    if (!optimizer.empty()) {
      read_.notes.push_back(optimizer);
    }
    const auto& unknown = check_.settings.unknown();
    if (!unknown.empty()) {
      read_.notes.push_back("no key that DeepSpeed 0.19.8 looks for: " + Join(unknown, "; "));
    }
    if (!no_effect_.empty()) {
      read_.notes.push_back("no effect on this step's time and memory: " + no_effect_.Text());
    }
  }

  const DeepSpeedCheck& check_;
  KeyScope scope_;
  DeepSpeedSpec read_;
  Grouped no_effect_;
};

/// The newest of DeepCompile's, or the eager one.
std::string PolicyFor(const DeepSpeedJob& job, bool deepcompile) {
  std::string chosen = "deepspeed-eager";
  for (const std::string_view policy : job.policies) {
    if (deepcompile && policy.starts_with("deepcompile-")) {
      chosen = policy;
    }
  }
  return chosen;
}

}  // namespace

bool IsDeepSpeedConfig(const Json& document) {
  constexpr std::array<std::string_view, 8> kSigns = {"zero_optimization",
                                                      "train_batch_size",
                                                      "train_micro_batch_size_per_gpu",
                                                      "compile",
                                                      "bf16",
                                                      "fp16",
                                                      "zero_allow_untested_optimizer",
                                                      "scheduler"};
  return document.is_object() && !document.contains("format") &&
         std::any_of(kSigns.begin(), kSigns.end(),
                     [&document](std::string_view key) { return document.contains(key); });
}

DeepSpeedSpec ReadDeepSpeedConfig(const Json& document,
                                  const Locator& locate,
                                  const DeepSpeedJob& job) {
  Faults faults(locate);
  const DeepSpeedSettings settings(document, job, faults);
  const Json stage = settings.Get("zero_optimization.stage");
  if (stage == 0 || !stage.is_number()) {
    std::string text =
        "not modelled: ZeRO is off, so there is nothing to schedule; expected stage 1, 2 or 3";
    if (!settings.unknown().empty()) {
      text += "; no key that DeepSpeed 0.19.8 looks for: " + Join(settings.unknown(), "; ");
    }
    faults.Add(settings.Pointer("zero_optimization.stage"), text);
    faults.ThrowIfAny();
  }
  const bool deepcompile = settings.IsOn("compile.deepcompile");
  const KeyScope scope =
      deepcompile ? (stage == 3 ? kCompiled3 : kCompiled12) : (stage == 3 ? kEager3 : kEager12);
  const DeepSpeedCheck check{settings, job, faults};
  DeepSpeedSpec spec = SpecWriter(check, scope).Write(PolicyFor(job, deepcompile));
  faults.ThrowIfAny();
  return spec;
}

}  // namespace dcsim
