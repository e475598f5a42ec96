#include "model/ir/plan_options.h"

namespace dcsim {
namespace {

std::string Quoted(std::string_view name) {
  return "`" + std::string(name) + "`";
}

}  // namespace

const std::vector<std::string_view>& PlanOptionKeys() {
  static const std::vector<std::string_view> keys = [] {
    std::vector<std::string_view> all;
    for (const PlanOption& option : PlanOptions()) {
      all.push_back(option.key);
    }
    return all;
  }();
  return keys;
}

std::string PlanOption::ValuesText() const {
  std::string text;
  for (const std::string_view name : names) {
    text += (text.empty() ? "" : ", ") + Quoted(name);
  }
  if (!text.empty()) {
    return text;
  }
  if (least != most && print(*this, {}).is_number()) {
    return std::to_string(least) + " to " + std::to_string(most) +
           (unit.empty() ? "" : " " + std::string(unit));
  }
  return unit.empty() ? "true, false" : std::string(unit);
}

std::string PlanOption::DefaultText() const {
  if (required) {
    return "required";
  }
  const Json value = print(*this, {});
  std::string text = value.is_string() ? Quoted(value.get<std::string>()) : value.dump();
  for (const PolicyDefault& policy : policies) {
    text += "; " + std::string(policy.policy) + (policy.policy.ends_with('-') ? "…" : "") + ": " +
            Quoted(policy.value);
  }
  return default_note.empty() ? text : text + "; " + std::string(default_note);
}

Json PlanOption::ValueSchema() const {
  if (!schema.empty()) {
    return {{"$ref", schema}};
  }
  if (!names.empty()) {
    return {{"enum", names}};
  }
  return least == most ? Json{{"type", "boolean"}}
                       : Json{{"type", "integer"}, {"minimum", least}, {"maximum", most}};
}

void ReadScheduleOptions(ObjectReader& object, ScheduleOptions& options) {
  for (const PlanOption& option : PlanOptions()) {
    if (option.required) {
      object.Require(option.key);
    }
    option.read(option, object, options);
  }
  if (options.gradient_handling == GradientHandling::kDeepSpeed &&
      object.Find("compute_grad_norm") == nullptr) {
    options.compute_grad_norm = true;
  }
}

void SetPolicyDefaults(std::string_view policy, ScheduleOptions& options) {
  Faults faults(PointerLocator("defaults"));
  const Path root;
  for (const PlanOption& option : PlanOptions()) {
    for (const PolicyDefault& each : option.policies) {
      if (policy.starts_with(each.policy)) {
        const Json value = {{option.key, each.value}};
        ObjectReader object(value, root, faults);
        option.read(option, object, options);
      }
    }
  }
  faults.ThrowIfAny();
}

void PrintScheduleOptions(const ScheduleOptions& options, Json& document) {
  const ScheduleOptions defaults;
  for (const PlanOption& option : PlanOptions()) {
    Json value = option.print(option, options);
    if (option.shows_default || value != option.print(option, defaults)) {
      document[option.key] = std::move(value);
    }
  }
}

}  // namespace dcsim
