#include "model/passes/deepcompile/offload_adam_states.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace dcsim {
namespace {

constexpr double kStateMargin = 0.2;  // MARGIN

double Count(Bytes bytes) {
  return static_cast<double>(bytes.count());
}

}  // namespace

StateOffload::StateOffload(std::vector<Bytes> sizes, Bytes device_memory)
    : sizes_(std::move(sizes)),
      budget_(Count(device_memory) * (1 - kStateMargin)) {}

std::vector<std::size_t> StateOffload::Forward(const std::vector<StepPeak>& steps) {
  std::vector<std::size_t> leaving;
  const auto first = sizes_.begin() + static_cast<std::ptrdiff_t>(leaving_);
  Bytes staying = std::accumulate(first, sizes_.end(), Bytes(0));
  Bytes peak;
  for (const StepPeak& step : steps) {
    peak = std::max(peak, step.peak);
    if (step.kind == PassNodeKind::kPlaceholder) {
      continue;
    }
    while (leaving_ < sizes_.size() && budget_ - Count(peak) - Count(staying) < 0) {
      staying -= sizes_[leaving_];
      leaving.push_back(leaving_++);
    }
  }
  return leaving;
}

std::vector<ReloadPlace> StateOffload::Backward(const std::vector<StepPeak>& steps, bool last) {
  std::vector<Bytes> peaks(steps.size());  // of a step and all behind it
  Bytes peak;
  for (std::size_t i = steps.size(); i-- > 0;) {
    peak = std::max(peak, steps[i].peak);
    peaks[i] = peak;
  }
  std::vector<ReloadPlace> places;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind == PassNodeKind::kPlaceholder || steps[i].kind == PassNodeKind::kOutput) {
      continue;
    }
    while (returning_ < leaving_ && budget_ > Count(peaks[i] + reloaded_ + sizes_[returning_])) {
      reloaded_ += sizes_[returning_];
      places.push_back({i, returning_++});
    }
  }
  while (last && returning_ < leaving_) {
    places.push_back({steps.size(), returning_++});
  }
  return places;
}

}  // namespace dcsim
