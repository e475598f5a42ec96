#include <array>

#include "model/ir/plan_options.h"
#include "model/ir/plan_reader.h"

namespace dcsim {
namespace {

constexpr std::string_view kSpecFormat = "dc-plan-spec/1";

void ReadKeepGathered(ObjectReader& object, KeepGathered& keep) {
  const Json* value = object.Find("keep_gathered");
  if (value == nullptr || *value == "none") {
    return;
  }
  if (*value == "all") {
    keep.all = true;
    return;
  }
  const Path path = object.At("keep_gathered");
  if (!value->is_array()) {
    object.faults().Add(path, "expected none, all, or a list of parameter names with '*'");
    return;
  }
  for (std::size_t i = 0; i < value->size(); ++i) {
    if (auto pattern = ReadString((*value)[i], Path(path, i), object.faults())) {
      keep.patterns.push_back(*std::move(pattern));
    }
  }
}

Json PrintKeepGathered(const KeepGathered& keep) {
  if (keep.all) {
    return "all";
  }
  return keep.patterns.empty() ? Json("none") : Json(keep.patterns);
}

void ReadFsdpGroups(ObjectReader& object, FsdpGroups& groups) {
  const Json* reshard = object.Find("reshard_after_forward");
  if (reshard != nullptr && reshard->is_boolean()) {
    groups.reshard_after_forward =
        reshard->get<bool>() ? ReshardAfterForward::kAll : ReshardAfterForward::kNever;
  } else if (reshard != nullptr && *reshard != "auto") {
    object.faults().Add(object.At("reshard_after_forward"), "expected auto, true or false");
  }
  const Json* value = object.Find("wrap");
  if (value == nullptr || *value == "blocks") {
    return;
  }
  const Path path = object.At("wrap");
  if (!value->is_array() || value->empty()) {
    object.faults().Add(path, "expected blocks, or a list of module names with '*'");
    return;
  }
  for (std::size_t i = 0; i < value->size(); ++i) {
    if (auto pattern = ReadString((*value)[i], Path(path, i), object.faults())) {
      groups.wrap.push_back(*std::move(pattern));
    }
  }
}

/// Of fsdp alone, which alone has groups.
void PrintFsdpGroups(const PlanSpec& spec, Json& document) {
  if (spec.policy == "fsdp") {
    const ReshardAfterForward reshard = spec.fsdp_groups.reshard_after_forward;
    document["reshard_after_forward"] = reshard == ReshardAfterForward::kBlocks
                                            ? Json("auto")
                                            : Json(reshard == ReshardAfterForward::kAll);
    document["wrap"] = spec.fsdp_groups.wrap.empty() ? Json("blocks") : Json(spec.fsdp_groups.wrap);
  }
}

void ReadOffloadOptimizer(ObjectReader& object, OffloadOptimizer& offload) {
  const Json* value = object.Find("offload_optimizer");
  if (value == nullptr || *value == "none") {
    return;
  }
  offload.all = *value == "all";
  if (offload.all) {
    return;
  }
  const Path path = object.At("offload_optimizer");
  Faults& faults = object.faults();
  if (!value->is_string() || value->get<std::string>().find_first_of("0123456789") != 0) {
    faults.Add(path, "expected none, all, or bytes that have to leave, such as 20 GiB");
  } else if (const auto bytes = ReadBytes(*value, path, faults)) {
    offload.bytes = *bytes;
  }
}

Json PrintOffloadOptimizer(const OffloadOptimizer& offload) {
  if (offload.all) {
    return "all";
  }
  return offload.bytes == Bytes(0) ? Json("none")
                                   : Json(std::to_string(offload.bytes.count()) + " B");
}

void ReadPasses(ObjectReader& object, std::optional<std::vector<std::string>>& passes) {
  const Json* value = object.Find("passes");
  if (value == nullptr || *value == "default") {
    return;
  }
  const Path path = object.At("passes");
  if (!value->is_array()) {
    object.faults().Add(path, "expected default, or a list of passes");
    return;
  }
  passes.emplace();
  for (std::size_t i = 0; i < value->size(); ++i) {
    if (auto pass = ReadString((*value)[i], Path(path, i), object.faults())) {
      passes->push_back(*std::move(pass));
    }
  }
}

constexpr std::array<std::string_view, 2> kGatherTimesNames = {"deepspeed", "as_measured"};
constexpr std::array<std::string_view, 2> kGatherOrderNames = {"inductor-2.11", "deepspeed"};

void ReadEagerGathers(ObjectReader& object, EagerGathers& eager) {
  const auto read = [&object](std::string_view key, std::int64_t& target) {
    constexpr std::int64_t kMost = std::int64_t{1} << 50;
    if (object.Optional(key, ReadElements, target) && (target < 0 || target > kMost)) {
      object.faults().Add(object.At(key), "expected from 0 to 1.1e15 elements");
    }
  };
  read("prefetch_bucket", eager.prefetch_bucket);
  read("persistence_threshold", eager.persistence_threshold);
  read("max_live", eager.max_live);
  read("max_reuse_distance", eager.max_reuse_distance);
}

void PrintEagerGathers(const EagerGathers& eager, Json& document) {
  const auto print = [](std::int64_t elements) { return std::to_string(elements) + " elements"; };
  document["prefetch_bucket"] = print(eager.prefetch_bucket);
  document["persistence_threshold"] = print(eager.persistence_threshold);
  document["max_live"] = print(eager.max_live);
  document["max_reuse_distance"] = print(eager.max_reuse_distance);
}

/// DeepCompile's compiled graphs are predicted for DeepSpeed, which runs them alone, and so with
/// its handling of gradients, unless the file says otherwise.
void SetHandlingDefault(const Json& document, PlanSpec& spec) {
  if (spec.policy.starts_with("deepcompile-") &&
      BackendNamed(document.value("backend", Json())) == Backend::kInductor) {
    spec.options.gradient_handling = GradientHandling::kDeepSpeed;
  }
}

}  // namespace

PlanSpec ReadPlanSpec(const Json& document, const Locator& locate) {
  RequireFormat(document, kSpecFormat, locate);
  Faults faults(locate);
  const Path root;
  ObjectReader object(document, root, faults);
  PlanSpec spec;
  object.Require("format");
  object.Required("policy", ReadString, spec.policy);
  SetPolicyDefaults(spec.policy, spec.options);
  SetHandlingDefault(document, spec);
  ReadScheduleOptions(object, spec.options);
  constexpr std::int64_t kMostAhead = 1'000'000;
  if (object.Optional("gather_ahead", ReadInteger, spec.gather_ahead) &&
      (spec.gather_ahead < 0 || spec.gather_ahead > kMostAhead)) {
    faults.Add(object.At("gather_ahead"), "expected a count from 0 to 1000000");
  }
  ReadKeepGathered(object, spec.keep_gathered);
  ReadPasses(object, spec.passes);
  object.OptionalChoice("gather_times", kGatherTimesNames, spec.gather_times);
  object.OptionalChoice("gather_order", kGatherOrderNames, spec.gather_order);
  ReadEagerGathers(object, spec.eager_gathers);
  ReadFsdpGroups(object, spec.fsdp_groups);
  ReadOffloadOptimizer(object, spec.offload_optimizer);
  object.Optional("offload_activation", ReadBool, spec.offload_activation);
  if (object.Optional("max_fuse_size", ReadBytes, spec.max_fuse_size) &&
      spec.max_fuse_size == Bytes(0)) {
    faults.Add(object.At("max_fuse_size"), "expected more than 0 bytes");
  }
  object.RejectUnknown();
  faults.ThrowIfAny();
  return spec;
}

Json PrintPlanSpec(const PlanSpec& spec) {
  Json document = {{"format", kSpecFormat}, {"policy", spec.policy}};
  PrintScheduleOptions(spec.options, document);
  document["gather_ahead"] = spec.gather_ahead;
  document["keep_gathered"] = PrintKeepGathered(spec.keep_gathered);
  document["passes"] = spec.passes ? Json(*spec.passes) : Json("default");
  document["gather_times"] = kGatherTimesNames[static_cast<std::size_t>(spec.gather_times)];
  document["gather_order"] = kGatherOrderNames[static_cast<std::size_t>(spec.gather_order)];
  PrintEagerGathers(spec.eager_gathers, document);
  PrintFsdpGroups(spec, document);
  document["max_fuse_size"] = std::to_string(spec.max_fuse_size.count()) + " B";
  document["offload_optimizer"] = PrintOffloadOptimizer(spec.offload_optimizer);
  document["offload_activation"] = spec.offload_activation;
  return document;
}

}  // namespace dcsim
