#pragma once

#include <span>
#include <string_view>

#include "model/ir/document.h"
#include "model/ir/plan.h"

namespace dcsim {

/// Reads the keys that dc-plan-spec/1 and dc-plan/1 share; missing ones keep their defaults.
void ReadScheduleOptions(ObjectReader& object, ScheduleOptions& options);

/// Those of TrainingOptions.
std::span<const std::string_view> TrainingKeys();

/// Adds those keys to a document, in the documented order.
void PrintScheduleOptions(const ScheduleOptions& options, Json& document);

}  // namespace dcsim
