#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/ir/document.h"
#include "model/ir/plan.h"

namespace dcsim {

/// What an option is where a policy's plan does not say: of all policies whose names begin so.
struct PolicyDefault {
  std::string_view policy;
  std::string_view value;
};

/// An option that dc-plan-spec/1, dc-plan/1 and dc-space/1 share. Their readers, printers and JSON
/// schemas, and the table of docs/reference/plans.md, follow from it.
struct PlanOption {
  std::string_view key;
  std::string_view meaning;                      // Markdown
  std::span<const std::string_view> names = {};  // of a choice
  std::int64_t least = 0;                        // of a number
  std::int64_t most = 0;
  std::string_view unit = {};
  std::string_view schema = {};              // reference to its value's schema where it has one
  std::vector<PolicyDefault> policies = {};  // the last that fits counts
  std::string_view default_note = {};        // what else decides its default, for people
  bool required = false;
  bool trains = false;        // says what is trained: the same in all plans of a search
  bool shows_default = true;  // is printed where it has its default, too

  void (*read)(const PlanOption&, ObjectReader&, ScheduleOptions&) = nullptr;
  Json (*print)(const PlanOption&, const ScheduleOptions&) = nullptr;
  std::uint64_t (*bits)(const ScheduleOptions&) = nullptr;  // for hashes: another value, other bits

  std::string ValuesText() const;   // Markdown
  std::string DefaultText() const;  // the same
  Json ValueSchema() const;         // JSON schema of one value
};

/// All of them, in the documented order.
const std::vector<PlanOption>& PlanOptions();

/// Their keys.
const std::vector<std::string_view>& PlanOptionKeys();

/// Reads the keys that dc-plan-spec/1 and dc-plan/1 share; missing ones keep their defaults.
void ReadScheduleOptions(ObjectReader& object, ScheduleOptions& options);

/// What options are where a plan spec of that policy does not say.
void SetPolicyDefaults(std::string_view policy, ScheduleOptions& options);

/// The backend of that name; kAten for anything else, which readers of plans report.
Backend BackendNamed(const Json& name);

/// Keys of TrainingOptions.
std::span<const std::string_view> TrainingKeys();

/// Adds the keys of all options to a document, in the documented order.
void PrintScheduleOptions(const ScheduleOptions& options, Json& document);

}  // namespace dcsim
