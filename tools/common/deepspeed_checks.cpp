#include "tools/common/deepspeed_checks.h"

#include <algorithm>
#include <optional>

#include "tools/common/deepspeed_value.h"
#include "tools/common/record_command.h"

namespace dcsim {
namespace {

constexpr std::int64_t kMostMicroSteps = 65535;

std::string Recorded(const std::string& text) {
  return text.empty() ? text : "\nThis command records it:\n  " + text;
}

/// The three sizes, as far as they are given; later all of them.
struct Batches {
  std::optional<std::int64_t> whole;
  std::optional<std::int64_t> micro;
  std::optional<std::int64_t> steps;
};

std::optional<std::int64_t> Given(const DeepSpeedSettings& settings, std::string_view path) {
  const Json value = settings.Get(path);
  return value.is_number_integer() ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

void CompleteBatches(Batches& sizes, std::int64_t ranks) {
  if (sizes.whole && sizes.micro && !sizes.steps) {
    sizes.steps = *sizes.micro == 0 ? 0 : *sizes.whole / *sizes.micro / ranks;
  } else if (sizes.whole && !sizes.micro) {
    const std::int64_t steps = sizes.steps.value_or(1);
    sizes.micro = steps == 0 ? 0 : *sizes.whole / ranks / steps;
    sizes.steps = steps;
  } else if (sizes.micro && !sizes.whole) {
    sizes.steps = sizes.steps.value_or(1);
    const bool fits =
        *sizes.micro > 0 && *sizes.steps > 0 && *sizes.steps <= INT64_MAX / ranks / *sizes.micro;
    sizes.whole = fits ? *sizes.micro * *sizes.steps * ranks : 0;
  }
}

/// The micro batch has to be the recording's: a graph holds for its sizes alone.
void CheckRows(const DeepSpeedCheck& check, std::int64_t micro, std::string_view path) {
  const auto rows = RecordedRows(check.job.graph);
  if (!rows || *rows == micro) {
    return;
  }
  const std::string text = std::to_string(micro);
  const std::string command =
      RecordCommand(check.job.graph).Set("--batch", text).NameSize("batch", *rows, micro).Text();
  check.faults.Add(check.settings.Pointer(path),
                   "the file trains " + text + " rows a GPU in each micro-step, the recording " +
                       check.job.graph.name + " has " + std::to_string(*rows) + Recorded(command));
}

std::string_view FlagOf(DType dtype) {
  return dtype == DType::kBFloat16 ? "bf16" : dtype == DType::kFloat16 ? "fp16" : "neither";
}

void CheckAutocast(const DeepSpeedCheck& check) {
  const DeepSpeedSettings& settings = check.settings;
  const Json recorded = RecordedOption(check.job.graph, "autocast");
  const bool on = settings.IsOn("torch_autocast.enabled");
  const Json name = settings.Get("torch_autocast.dtype");
  const auto dtype = name.is_string() ? FindDeepSpeedDType(name.get<std::string>()) : std::nullopt;
  if (on && (!dtype || *dtype == DType::kFloat32)) {
    check.faults.Add(settings.Pointer("torch_autocast.dtype"),
                     "not modelled: expected \"bfloat16\" or \"float16\" with torch_autocast");
    return;
  }
  const std::string asked = on ? std::string(DTypeName(*dtype)) : "none";
  const std::string found = recorded.is_string() ? recorded.get<std::string>() : "none";
  if (asked == found) {
    return;
  }
  RecordCommand command(check.job.graph);
  const std::string text =
      on ? command.Set("--autocast", asked).Set("--dtype", "float32").NameSuffix("-autocast").Text()
         : "";
  check.faults.Add(settings.Pointer("torch_autocast.enabled"),
                   "the file trains with autocast to " + asked + ", the recording " +
                       check.job.graph.name + " with autocast to " + found +
                       (on ? Recorded(text) : "; record the model without --autocast"));
}

/// The first parameter of another dtype, or none.
std::optional<ParamId> FindOtherDType(const Graph& graph, DType dtype) {
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    if (graph.dtype(ParamId(i)) != dtype) {
      return ParamId(i);
    }
  }
  return std::nullopt;
}

/// DeepSpeed casts each parameter to the dtype that is enabled (_cast_module_mixed_precision).
void CheckModelDType(const DeepSpeedCheck& check, DType dtype) {
  const Graph& graph = check.job.graph;
  const auto other = FindOtherDType(graph, dtype);
  if (!other) {
    return;
  }
  const std::string name(DTypeName(dtype));
  const std::string_view flag = FlagOf(dtype);
  const bool neither = flag == "neither";
  const bool mixed = FindOtherDType(graph, graph.dtype(*other)).has_value();
  std::string text = neither ? "neither bf16 nor fp16 is enabled: " : "";
  text += "the file trains " + name + " parameters, the recording " + graph.name + " has ";
  text += std::string(DTypeName(graph.dtype(*other))) + " ones";
  if (mixed) {
    text += " (" + graph.params[other->index()].name +
            "): record the model with all parameters in " + name;
  } else {
    text += Recorded(RecordCommand(graph).Set("--dtype", name).NameSuffix("-" + name).Text());
  }
  check.faults.Add(neither ? "" : check.settings.Pointer(std::string(flag) + ".enabled"), text);
}

std::int64_t CountOf(const DeepSpeedSettings& settings, std::string_view path) {
  const Json value = settings.Get(path);
  return value.is_number_integer() ? value.get<std::int64_t>() : 0;
}

void CheckOffload(const DeepSpeedCheck& check, KeyScope scope) {
  const DeepSpeedSettings& settings = check.settings;
  const std::string device = "zero_optimization.offload_param.device";
  const bool on_cpu = settings.Get(device) == "cpu";
  const bool moves = settings.IsOn("compile.offload_parameters");
  if ((scope & kStage3) != 0 && settings.Get(device) == "nvme") {
    check.faults.Add(settings.Pointer(device), "not modelled: expected \"none\" or \"cpu\"");
  }
  if (on_cpu && (scope & kEager3) != 0) {
    check.faults.Add(settings.Pointer(device),
                     "not modelled without compile.offload_parameters: eager ZeRO-3 brings shards "
                     "from the host by itself (spec: offload_parameters)");
  }
  if (scope != kCompiled3) {
    return;
  }
  if (on_cpu != moves) {
    check.faults.Add(
        on_cpu ? settings.Pointer(device) : settings.Pointer("compile.offload_parameters"),
        on_cpu ? "not modelled without compile.offload_parameters (spec: "
                 "offload_parameters)"
               : "not modelled: moves nothing unless zero_optimization.offload_param has the "
                 "device \"cpu\"");
  }
  if (on_cpu && !settings.IsOn("zero_optimization.offload_param.pin_memory")) {
    check.faults.Add(settings.Pointer("zero_optimization.offload_param.pin_memory"),
                     "not modelled: copies from pageable memory");
  }
  const bool activations = settings.IsOn("compile.offload_activation");
  const bool states = settings.IsOn("compile.offload_opt_states");
  if (static_cast<int>(activations) + static_cast<int>(states) + static_cast<int>(moves) > 1) {
    check.faults.Add(settings.Pointer("compile"),
                     "DeepSpeed takes one of offload_activation, offload_opt_states and "
                     "offload_parameters");
  }
  if (activations && !settings.IsOn("compile.offload_activation_pin_memory")) {
    check.faults.Add(settings.Pointer("compile.offload_activation_pin_memory"),
                     "not modelled: copies to pageable memory");
  }
}

/// A size of its own that cuts a rank's parameters into several sub-groups; DeepSpeed's default is
/// what the policies' documentation tells of.
void CheckSubGroups(const DeepSpeedCheck& check) {
  const std::string_view path = "zero_optimization.sub_group_size";
  const std::int64_t size = CountOf(check.settings, path);
  std::int64_t shards = 0;
  for (std::size_t i = 0; i < check.job.graph.params.size(); ++i) {
    shards += (check.job.graph.numel(ParamId(i)) + check.job.ranks - 1) / check.job.ranks;
  }
  constexpr std::int64_t kDefault = 1'000'000'000;
  if (check.settings.Has(path) && size != kDefault && size < shards) {
    check.faults.Add(check.settings.Pointer(path),
                     "not modelled: sub-groups have " + std::to_string(kDefault) +
                         " elements here, and a rank has " + std::to_string(shards));
  }
}

/// Parameters stay gathered until their elements reach this.
void CheckPersistence(const DeepSpeedCheck& check) {
  const std::string_view path = "zero_optimization.model_persistence_threshold";
  const std::int64_t least =
      CountOf(check.settings, "zero_optimization.param_persistence_threshold");
  std::int64_t small = 0;
  for (std::size_t i = 0; i < check.job.graph.params.size(); ++i) {
    const std::int64_t elements = check.job.graph.numel(ParamId(i));
    small += elements <= least ? elements : 0;
  }
  if (check.settings.Has(path) && CountOf(check.settings, path) < small) {
    check.faults.Add(check.settings.Pointer(path),
                     "not modelled: " + std::to_string(small) +
                         " elements of parameters up to param_persistence_threshold stay gathered");
  }
}

void CheckOverlap(const DeepSpeedCheck& check, KeyScope scope) {
  const std::string_view path = "zero_optimization.overlap_comm";
  if ((scope & kStage3) != 0 && check.settings.Get(path) == false) {
    check.faults.Add(check.settings.Pointer(path),
                     "not modelled: expected true, DeepSpeed's default for ZeRO-3");
  }
}

/// Dtypes of what is kept for the optimizer: those that plans have together.
void CheckOptimizerDTypes(const DeepSpeedCheck& check, DType dtype) {
  const DeepSpeedSettings& settings = check.settings;
  const std::string_view masters = "bf16.bf16_master_weights_and_grads";
  const std::string_view states = "bf16.bf16_optimizer_states";
  if (settings.IsOn(masters) != settings.IsOn(states)) {
    const bool alone = settings.IsOn(masters);
    check.faults.Add(settings.Pointer(alone ? masters : states),
                     alone ? "not modelled without bf16_optimizer_states: DeepSpeed then asks for "
                             "an optimizer on the CPU"
                           : "DeepSpeed takes it with bf16_master_weights_and_grads alone");
  } else if (settings.IsOn(masters) && dtype != DType::kBFloat16) {
    check.faults.Add(settings.Pointer(masters), "not modelled without bf16.enabled");
  }
  const std::string_view path = "data_types.grad_accum_dtype";
  const Json name = settings.Get(path);
  const auto kept = name.is_string() ? FindDeepSpeedDType(name.get<std::string>()) : dtype;
  if (kept == dtype) {
    return;
  }
  if (kept != DType::kFloat32) {
    check.faults.Add(settings.Pointer(path), "not modelled: expected the model's dtype or fp32");
  } else if (settings.Get("zero_optimization.stage") == 1) {
    check.faults.Add(settings.Pointer(path),
                     "not modelled for ZeRO-1: DeepSpeed then runs another optimizer "
                     "(BF16_Optimizer)");
  }
}

/// What DeepSpeed's classes check of two keys together.
void CheckRanges(const DeepSpeedCheck& check) {
  const DeepSpeedSettings& settings = check.settings;
  const std::string_view ratio = "zero_optimization.offload_optimizer.ratio";
  if (settings.Get(ratio).get<double>() < 1 && settings.Get("zero_optimization.stage") != 3) {
    check.faults.Add(settings.Pointer(ratio), "DeepSpeed takes less than 1 for ZeRO-3 alone");
  }
  for (const std::string_view path : {"fp16.loss_scale_window", "fp16.min_loss_scale"}) {
    if (settings.IsOn("fp16.enabled") && settings.Get("fp16.loss_scale") == 0 &&
        CountOf(settings, path) <= 0) {
      check.faults.Add(settings.Pointer(path), "DeepSpeed expects 1 or more with loss_scale 0");
    }
  }
}

}  // namespace

std::int64_t ReadBatches(const DeepSpeedCheck& check) {
  const DeepSpeedSettings& settings = check.settings;
  const auto rows = RecordedRows(check.job.graph);
  Batches sizes{Given(settings, "train_batch_size"),
                Given(settings, "train_micro_batch_size_per_gpu"),
                Given(settings, "gradient_accumulation_steps")};
  if (check.job.recorded_batches) {
    return sizes.steps.value_or(1);
  }
  if (!sizes.whole && !sizes.micro) {
    check.faults.Add("/train_micro_batch_size_per_gpu",
                     "is missing: DeepSpeed needs it or train_batch_size" +
                         (rows ? "; the recording has " + std::to_string(*rows) : ""));
    return 1;
  }
  const std::string_view path = sizes.micro ? "train_micro_batch_size_per_gpu" : "train_batch_size";
  const auto asked = sizes.whole;
  CompleteBatches(sizes, check.job.ranks);
  const std::int64_t steps = *sizes.steps;
  const bool positive = *sizes.micro > 0 && steps > 0 && *sizes.whole > 0;
  const bool agree = positive && *sizes.micro <= *sizes.whole / steps / check.job.ranks &&
                     *sizes.micro * steps * check.job.ranks == *sizes.whole;
  if (!agree) {
    const std::string_view place = asked ? std::string_view("train_batch_size") : path;
    check.faults.Add(settings.Pointer(place),
                     "expected train_batch_size = micro batch * accumulation steps * " +
                         std::to_string(check.job.ranks) + " ranks, each 1 or more, found " +
                         std::to_string(*sizes.whole) + " = " + std::to_string(*sizes.micro) +
                         " * " + std::to_string(steps) + " * " + std::to_string(check.job.ranks));
    return 1;
  }
  if (steps > kMostMicroSteps) {
    check.faults.Add(settings.Pointer("gradient_accumulation_steps"),
                     "not modelled: " + std::to_string(steps) + " micro-steps, more than " +
                         std::to_string(kMostMicroSteps));
    return 1;
  }
  CheckRows(check, *sizes.micro, path);
  return steps;
}

void CheckDTypes(const DeepSpeedCheck& check) {
  const DeepSpeedSettings& settings = check.settings;
  const bool bf16 = settings.IsOn("bf16.enabled");
  const bool fp16 = settings.IsOn("fp16.enabled");
  if (bf16 && fp16) {
    check.faults.Add(settings.Pointer("fp16.enabled"), "DeepSpeed refuses fp16 and bf16 together");
    return;
  }
  const DType dtype = bf16 ? DType::kBFloat16 : fp16 ? DType::kFloat16 : DType::kFloat32;
  CheckModelDType(check, dtype);
  CheckAutocast(check);
  CheckOptimizerDTypes(check, dtype);
  const Json name = settings.Get("data_types.param_dtype");
  if (name.is_string() && FindDeepSpeedDType(name.get<std::string>()) != dtype) {
    check.faults.Add(
        settings.Pointer("data_types.param_dtype"),
        "DeepSpeed expects the dtype that fp16 or bf16 enables, " + std::string(DTypeName(dtype)));
  }
}

void CheckCombinations(const DeepSpeedCheck& check, KeyScope scope) {
  const DeepSpeedSettings& settings = check.settings;
  CheckOffload(check, scope);
  CheckRanges(check);
  if ((scope & kEager) != 0 && settings.IsOn("torch_autocast.enabled")) {
    check.faults.Add(settings.Pointer("torch_autocast.enabled"),
                     "not modelled without compile.deepcompile: eager DeepSpeed gathers and "
                     "reduces in the lower dtype then");
  }
  if ((scope & kStage3) != 0) {
    CheckSubGroups(check);
  }
  if ((scope & kEager3) != 0) {
    CheckPersistence(check);
  }
  if ((scope & kEager) != 0) {
    CheckOverlap(check, scope);
  }
  const Json clipping = settings.Get("gradient_clipping");
  const bool clips = clipping.is_number() && clipping.get<double>() > 0;
  if (!settings.IsOn("zero_optimization.compute_grad_norm") && (clips || (scope & kStage3) != 0)) {
    check.faults.Add(settings.Pointer("zero_optimization.compute_grad_norm"),
                     "DeepSpeed takes false for ZeRO-1 and 2 alone, and with gradient_clipping 0");
  }
  const bool eager12 = (scope & kEager12) != 0;
  if (eager12 && CountOf(settings, "zero_optimization.allgather_bucket_size") % 2 != 0) {
    check.faults.Add(settings.Pointer("zero_optimization.allgather_bucket_size"),
                     "DeepSpeed expects an even number");
  }
  const Json passes = settings.Get("compile.passes");
  for (const std::string name : {"autosp", "autotp"}) {
    if ((scope & kCompiled) != 0 && passes.is_array() &&
        std::find(passes.begin(), passes.end(), name) != passes.end()) {
      check.faults.Add(settings.Pointer("compile.passes"),
                       "not modelled: " + name + "; plans are data-parallel");
    }
  }
}

}  // namespace dcsim
