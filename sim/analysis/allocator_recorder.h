#pragma once

#include <vector>

#include "sim/engine/observer.h"

namespace dcsim {

/// Keeps everything that the allocator does in a simulation, in order.
class AllocatorRecorder : public Observer {
 public:
  bool HearsAllocator() const override { return true; }
  void OnAllocator(const AllocatorEvent& event) override { events_.push_back(event); }

  const std::vector<AllocatorEvent>& events() const { return events_; }

 private:
  std::vector<AllocatorEvent> events_;
};

}  // namespace dcsim
