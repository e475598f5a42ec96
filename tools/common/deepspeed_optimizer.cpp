#include "tools/common/deepspeed_optimizer.h"

#include <algorithm>
#include <array>
#include <optional>

#include "tools/common/deepspeed_value.h"

namespace dcsim {
namespace {

constexpr std::string_view kType = "optimizer.type";

/// DEEPSPEED_OPTIMIZERS, which DeepSpeed knows in any spelling.
constexpr std::array<std::string_view, 9> kOwnTypes = {
    "adagrad", "adam", "adamw", "lamb", "muadam", "muadamw", "musgd", "lion", "muon"};

std::string Canonical(const std::string& type) {
  std::string lower = LowerCase(type);
  const bool own = std::find(kOwnTypes.begin(), kOwnTypes.end(), lower) != kOwnTypes.end();
  return own ? lower : type;
}

/// Parameters that the optimizer's class takes.
std::vector<std::string_view> ParametersOf(const std::string& type, bool torch_adam) {
  if (type == "lion") {
    return {"lr", "betas", "weight_decay", "set_grad_none"};
  }
  if (type == "SGD") {
    return {"lr",       "momentum", "dampening",      "weight_decay", "nesterov",
            "maximize", "foreach",  "differentiable", "fused"};
  }
  std::vector<std::string_view> own = {
      "lr",      "betas",       "eps",        "weight_decay",
      "amsgrad", "adam_w_mode", "torch_adam", "fp32_optimizer_states"};
  if (torch_adam) {
    own.insert(own.end(), {"maximize", "foreach", "capturable", "differentiable", "fused"});
  } else {
    own.insert(own.end(), {"bias_correction", "set_grad_none"});
  }
  return own;
}

void CheckParameters(const DeepSpeedCheck& check, const std::string& type, bool torch_adam) {
  const Json params = check.settings.Get("optimizer.params");
  const auto known = ParametersOf(type, torch_adam);
  const std::string pointer = check.settings.Pointer("optimizer.params");
  for (const auto& [name, value] : params.items()) {
    if (name != "max_grad_norm" && std::find(known.begin(), known.end(), name) == known.end()) {
      std::string fault = "DeepSpeed's ";
      fault.append(type).append(" has no parameter '").append(name).append("'");
      check.faults.Add(std::string(pointer).append("/").append(name),
                       fault.append(DidYouMean(name, known)));
    }
  }
}

/// Of PyTorch's classes, which look at their numbers; "auto" is the caller's.
void CheckTorchNumbers(const DeepSpeedCheck& check) {
  const DeepSpeedSettings& settings = check.settings;
  const auto number = [&settings](std::string_view path) {
    const Json value = settings.Get(path);
    return value.is_boolean() ? Json(value == true ? 1 : 0) : value;
  };
  for (const std::string_view path :
       {"optimizer.params.lr", "optimizer.params.eps", "optimizer.params.weight_decay",
        "optimizer.params.momentum"}) {
    const Json value = number(path);
    if (settings.Has(path) && !(value.is_number() && value >= 0)) {
      check.faults.Add(settings.Pointer(path), "PyTorch expects a number of 0 or more");
    }
  }
  const Json betas = settings.Get("optimizer.params.betas");
  const auto fits = [](const Json& beta) { return beta.is_number() && beta >= 0 && beta < 1; };
  if (settings.Has("optimizer.params.betas") &&
      !(betas.is_array() && betas.size() == 2 && std::all_of(betas.begin(), betas.end(), fits))) {
    check.faults.Add(settings.Pointer("optimizer.params.betas"),
                     "PyTorch expects two numbers from 0 to below 1");
  }
  if (settings.IsOn("optimizer.params.fused") && settings.IsOn("optimizer.params.foreach")) {
    check.faults.Add(settings.Pointer("optimizer.params.fused"),
                     "PyTorch takes one of fused and foreach");
  }
  const Json momentum = number("optimizer.params.momentum");
  if (settings.IsOn("optimizer.params.nesterov") &&
      !(momentum.is_number() && momentum > 0 && number("optimizer.params.dampening") == 0)) {
    check.faults.Add(settings.Pointer("optimizer.params.nesterov"),
                     "PyTorch expects a momentum and no dampening with it");
  }
}

/// PyTorch's kernels by its own parameters; with neither it takes multi-tensor kernels on a GPU.
std::string_view TorchKernels(const DeepSpeedSettings& settings) {
  if (settings.IsOn("optimizer.params.fused")) {
    return "fused";
  }
  return settings.Get("optimizer.params.foreach") == false ? "for_loop" : "foreach";
}

/// Whose kernels run, and what they update (_configure_basic_optimizer). Nothing for others.
std::optional<Json> FindAlgorithm(const DeepSpeedSettings& settings, const std::string& name) {
  if (name == "adamw" || name == "adam") {
    const bool decays = name == "adamw" || settings.IsOn("optimizer.params.adam_w_mode");
    const bool torch_adam = settings.IsOn("optimizer.params.torch_adam");
    return Json{{"optimizer_algorithm", decays ? "adamw" : "adam"},
                {"optimizer", torch_adam ? TorchKernels(settings) : "deepspeed-fused"}};
  }
  if (name == "lion") {
    return Json{{"optimizer_algorithm", "lion"}, {"optimizer", "deepspeed-fused"}};
  }
  if (name == "SGD") {
    const Json momentum = settings.Get("optimizer.params.momentum");
    const bool keeps = momentum.is_number() && momentum != 0;
    return Json{{"optimizer_algorithm", keeps ? "sgd-momentum" : "sgd"},
                {"optimizer", TorchKernels(settings)}};
  }
  return std::nullopt;
}

}  // namespace

OptimizerChoice ReadOptimizer(const DeepSpeedCheck& check) {
  const DeepSpeedSettings& settings = check.settings;
  const Json type = settings.Get(kType);
  if (!type.is_string()) {
    return {Json::object(),
            "optimizer: none in the file, so that of the calling script, taken for PyTorch's fused "
            "AdamW"};
  }
  const std::string name = Canonical(type.get<std::string>());
  const auto options = FindAlgorithm(settings, name);
  if (!options) {
    check.faults.Add(settings.Pointer(kType),
                     "not modelled: optimizer " + type.dump() +
                         "; expected AdamW, Adam, SGD or Lion (spec: optimizer_algorithm)");
    return {Json::object(), ""};
  }
  if (name == "SGD" && !settings.IsOn("zero_allow_untested_optimizer")) {
    check.faults.Add(
        settings.Pointer(kType),
        "DeepSpeed's ZeRO takes SGD with \"zero_allow_untested_optimizer\": true alone");
  }
  if (options->at("optimizer_algorithm") == "sgd-momentum" &&
      settings.IsOn("compile.deepcompile") && settings.Get("zero_optimization.stage") == 3 &&
      settings.IsOn("compile.offload_opt_states")) {
    check.faults.Add(settings.Pointer("compile.offload_opt_states"),
                     "not modelled for SGD with momentum, whose state its passes do not move");
  }
  const bool torch_adam = settings.IsOn("optimizer.params.torch_adam");
  CheckParameters(check, name, torch_adam);
  if (name == "SGD" || (torch_adam && name != "lion")) {
    CheckTorchNumbers(check);
  }
  return {*options, ""};
}

}  // namespace dcsim
