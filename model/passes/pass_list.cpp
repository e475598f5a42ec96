#include "model/passes/pass_list.h"

#include <algorithm>
#include <array>
#include <span>

#include "model/base/text.h"
#include "model/passes/deepcompile/deepcompile_policy.h"

namespace dcsim {
namespace {

/// Whose plans a pass may change.
enum class PassOwner : std::uint8_t { kDeepCompile, kPlain, kBoth };

/// What a pass expects of the passes before it, and what it gives those behind it.
struct PassContract {
  std::string_view name;
  PassOwner owner = PassOwner::kBoth;
  std::string_view needs = {};     // a capability
  std::string_view provides = {};  // separated by spaces
};

constexpr std::string_view kGathers = "gathers";              // some pass gathers parameters
constexpr std::string_view kInserted = "z3_gather_release";   // DeepSpeed's, as nodes of its graph
constexpr std::string_view kFloor = "activations_offloaded";  // all that may leave have left
constexpr std::string_view kEvicted = "opt_states_evicted";   // profiles see no optimizer states

/// DeepSpeed's passes stand in the order in which its schedules have them.
constexpr std::array<PassContract, 17> kPasses = {{
    {"offload_adam_states_for_init", PassOwner::kDeepCompile, {}, kEvicted},
    {"zero1_compile", PassOwner::kDeepCompile},
    {"zero2_compile", PassOwner::kDeepCompile},
    {"zero3_compile", PassOwner::kDeepCompile, {}, "z3_gather_release gathers"},
    {"offload_activation_floor", PassOwner::kDeepCompile, {}, kFloor},
    {"offload_activation", PassOwner::kDeepCompile, kFloor},
    {"prefetch", PassOwner::kDeepCompile, kInserted},
    {"selective_gather", PassOwner::kDeepCompile, kInserted},
    {"offload_adam_states", PassOwner::kDeepCompile, kEvicted},
    {"offload_adam_states_sync", PassOwner::kDeepCompile},
    {"gather_at_use", PassOwner::kPlain, {}, kGathers},
    {"gather_ahead", PassOwner::kBoth, kGathers},
    {"overlap_gathers", PassOwner::kBoth, kGathers},
    {"fuse_gathers", PassOwner::kBoth, kGathers},
    {"keep_gathered", PassOwner::kBoth, kGathers},
    {"offload_parameters", PassOwner::kBoth, kGathers},
    {"offload_optimizer"},
}};

struct Conflict {
  std::string_view first;
  std::string_view second;
  std::string_view reason;
};

constexpr std::string_view kIssue = "both decide when gathers are issued";
constexpr std::string_view kZero3States = "only ZeRO-3 hands DeepCompile its optimizer states";
constexpr std::string_view kStates = "both move the optimizer states";
constexpr std::string_view kTarget = "DeepSpeed takes one target of offloading a run";
constexpr std::string_view kProfile =
    "what DeepSpeed's profiler sees of one is not modelled beside the other";

constexpr std::array<Conflict, 28> kConflicts = {{
    {"prefetch", "gather_ahead", kIssue},
    {"prefetch", "overlap_gathers", kIssue},
    {"gather_ahead", "overlap_gathers", kIssue},
    {"prefetch", "fuse_gathers", "both join gathers"},
    {"selective_gather", "keep_gathered", "both decide which parameters stay"},
    {"selective_gather", "offload_adam_states", kProfile},
    {"selective_gather", "offload_adam_states_sync", kProfile},
    {"offload_adam_states_for_init", "zero1_compile", kZero3States},
    {"offload_adam_states_for_init", "zero2_compile", kZero3States},
    {"offload_adam_states", "zero1_compile", kZero3States},
    {"offload_adam_states", "zero2_compile", kZero3States},
    {"offload_adam_states_sync", "zero1_compile", kZero3States},
    {"offload_adam_states_sync", "zero2_compile", kZero3States},
    {"offload_adam_states", "offload_adam_states_sync", kStates},
    {"offload_adam_states", "offload_optimizer", kStates},
    {"offload_adam_states_sync", "offload_optimizer", kStates},
    {"offload_adam_states_for_init", "offload_optimizer", kStates},
    {"offload_parameters", "offload_adam_states_for_init", kTarget},
    {"offload_parameters", "offload_adam_states", kTarget},
    {"offload_parameters", "offload_adam_states_sync", kTarget},
    {"offload_parameters", "offload_activation_floor", kTarget},
    {"offload_parameters", "prefetch", kProfile},
    {"offload_parameters", "selective_gather", kProfile},
    {"offload_activation_floor", "offload_adam_states_for_init", kTarget},
    {"offload_activation_floor", "offload_adam_states", kTarget},
    {"offload_activation_floor", "offload_adam_states_sync", kTarget},
    {"offload_activation_floor", "prefetch", kProfile},
    {"offload_activation_floor", "selective_gather", kProfile},
}};

std::vector<std::string_view> PassNames() {
  std::vector<std::string_view> names(kPasses.size());
  std::transform(kPasses.begin(), kPasses.end(), names.begin(),
                 [](const PassContract& contract) { return contract.name; });
  return names;
}

std::size_t PlaceOf(std::string_view name) {
  const auto found = std::find_if(kPasses.begin(), kPasses.end(),
                                  [&](const PassContract& each) { return each.name == name; });
  return static_cast<std::size_t>(found - kPasses.begin());
}

bool Provides(std::string_view pass, std::string_view capability) {
  return (" " + std::string(kPasses[PlaceOf(pass)].provides) + " ")
             .find(" " + std::string(capability) + " ") != std::string::npos;
}

/// "gather_at_use or zero3_compile"
std::string ProvidersOf(std::string_view capability) {
  std::vector<std::string_view> names;
  for (const PassContract& contract : kPasses) {
    if (Provides(contract.name, capability)) {
      names.push_back(contract.name);
    }
  }
  return JoinAlternatives(names);
}

/// The pass that inserts what the stage needs: "zero3_compile"; plain-1 has one for stage 3 alone.
std::string StagePass(const PlanSpec& spec) {
  if (IsDeepCompile(spec.policy)) {
    return "zero" + std::to_string(spec.options.stage) + "_compile";
  }
  return spec.options.stage == 3 ? "gather_at_use" : "";
}

/// A pass against policy and stage.
std::string FindPlaceFault(const PlanSpec& spec, const PassContract& pass) {
  const std::string name(pass.name);
  const bool deepcompile = IsDeepCompile(spec.policy);
  if (pass.owner == PassOwner::kDeepCompile && !deepcompile) {
    return name + " is for DeepCompile's policies, not " + spec.policy;
  }
  if (pass.owner == PassOwner::kPlain && deepcompile) {
    return name + " is for plain-1; the pass of " + spec.policy + " is " + StagePass(spec);
  }
  const bool of_stage = Provides(name, kGathers) || name.starts_with("zero");
  if (of_stage && name != StagePass(spec)) {
    const std::string own = StagePass(spec);
    return name + " conflicts with stage " + std::to_string(spec.options.stage) +
           (own.empty() ? ", which gathers no parameter before its use" : ", whose pass is " + own);
  }
  return {};
}

/// A pass against one before it.
std::string FindPairFault(std::string_view pass, std::string_view before) {
  const std::string name(pass);
  const std::string earlier(before);
  for (const auto& [first, second, reason] : kConflicts) {
    if ((first == name && second == earlier) || (first == earlier && second == name)) {
      std::string fault = name;
      fault.append(" conflicts with ").append(earlier).append(": ").append(reason);
      return fault;
    }
  }
  if (earlier == name) {
    return name + " stands twice";
  }
  const bool late = PlaceOf(name) < std::min(PlaceOf(earlier), PlaceOf("gather_at_use"));
  return late ? name + " has to stand before " + earlier : "";
}

/// A pass against all before it.
std::string FindContractFault(const PassContract& pass, std::span<const std::string> before) {
  const std::string name(pass.name);
  const bool met = std::any_of(before.begin(), before.end(), [&](const std::string& earlier) {
    return Provides(earlier, pass.needs);
  });
  if (!pass.needs.empty() && !met) {
    return name + " requires " + std::string(pass.needs) + ": " + ProvidersOf(pass.needs) +
           " has to stand before it";
  }
  for (const std::string& earlier : before) {
    if (std::string fault = FindPairFault(name, earlier); !fault.empty()) {
      return fault;
    }
  }
  return {};
}

/// Keys that say how a pass does its work, where that pass does not run.
std::string FindIdleKey(const PlanSpec& spec) {
  struct Key {
    std::string_view key;
    std::string_view pass;
    bool used;
  };
  const std::array<Key, 6> keys = {
      {{"gather_ahead", "gather_ahead", spec.gather_ahead != 0},
       {"keep_gathered", "keep_gathered", spec.keep_gathered != KeepGathered()},
       {"max_fuse_size", "fuse_gathers", spec.max_fuse_size != PlanSpec().max_fuse_size},
       {"offload_optimizer", "offload_optimizer", spec.offload_optimizer != OffloadOptimizer()},
       {"offload_parameters", "offload_parameters", spec.options.offload_parameters},
       {"offload_activation", "offload_activation", spec.offload_activation}}};
  for (const auto& [key, pass, used] : keys) {
    if (used && !RunsPass(spec, pass)) {
      return std::string(key) + " is for the pass " + std::string(pass) +
             ", which does not run; passes names those that do";
    }
  }
  return {};
}

std::string FindListFault(const PlanSpec& spec, const std::vector<std::string>& passes) {
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const std::size_t place = PlaceOf(passes[i]);
    if (place == kPasses.size()) {
      return "expected " + JoinAlternatives(PassNames()) + ", found '" + passes[i] + "'" +
             DidYouMean(passes[i], PassNames());
    }
    std::string fault = FindPlaceFault(spec, kPasses[place]);
    if (fault.empty()) {
      fault = FindContractFault(kPasses[place], std::span(passes).first(i));
    }
    if (!fault.empty()) {
      return fault;
    }
  }
  if (const std::string own = StagePass(spec); !own.empty() && !RunsPass(spec, own)) {
    return own + " is missing; stage " + std::to_string(spec.options.stage) +
           " needs what it inserts";
  }
  if (RunsPass(spec, "offload_adam_states_for_init") && !RunsPass(spec, "offload_adam_states")) {
    return "offload_adam_states_for_init requires offload_adam_states behind it, which brings the "
           "states back";
  }
  return {};
}

}  // namespace

std::vector<std::string> PassesOf(const PlanSpec& spec) {
  if (spec.passes) {
    return *spec.passes;
  }
  const bool zero3 = spec.options.stage == 3;
  std::vector<std::string> passes;
  if (IsDeepCompile(spec.policy)) {
    passes.push_back(StagePass(spec));
    const auto add = [&passes](bool runs, std::initializer_list<const char*> names) {
      passes.insert(passes.end(), runs ? names.begin() : names.end(), names.end());
    };
    const bool parameters = spec.options.offload_parameters;
    add(zero3 && spec.offload_activation, {"offload_activation_floor", "offload_activation"});
    add(zero3 && !parameters && !spec.offload_activation, {"prefetch", "selective_gather"});
    add(zero3 && parameters, {"offload_parameters"});
  } else if (spec.policy == "plain-1") {
    const auto add = [&passes](bool runs, const char* name) {
      if (runs) {
        passes.emplace_back(name);
      }
    };
    add(zero3, "gather_at_use");
    add(zero3 && spec.gather_ahead != 0, "gather_ahead");
    add(zero3 && spec.keep_gathered != KeepGathered(), "keep_gathered");
    add(zero3 && spec.options.offload_parameters, "offload_parameters");
    add(spec.offload_optimizer != OffloadOptimizer(), "offload_optimizer");
  }
  return passes;
}

bool RunsPass(const PlanSpec& spec, std::string_view pass) {
  const auto passes = PassesOf(spec);
  return std::find(passes.begin(), passes.end(), pass) != passes.end();
}

std::string FindPassFault(const PlanSpec& spec) {
  if (const auto passes = PassesOf(spec); spec.passes || !passes.empty()) {
    if (const std::string fault = FindListFault(spec, passes); !fault.empty()) {
      return "passes: " + fault;
    }
  }
  return FindIdleKey(spec);
}

}  // namespace dcsim
