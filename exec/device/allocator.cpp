#include "exec/device/allocator.h"

#include <string>

#include <c10/core/AllocatorConfig.h>

namespace dcsim::exec {

void ChooseAllocator(AllocatorMode mode) {
  const bool expandable = mode == AllocatorMode::kExpandableSegments;
  if (c10::CachingAllocator::AcceleratorAllocatorConfig::use_expandable_segments() == expandable) {
    return;
  }
  // Settings are parsed from left to right, those that are not named go back to their defaults.
  const std::string set = c10::CachingAllocator::getAllocatorSettings();
  c10::CachingAllocator::setAllocatorSettings(
      set + (set.empty() ? "" : ",") + "expandable_segments:" + (expandable ? "True" : "False"));
}

}  // namespace dcsim::exec
