#include "model/passes/deepcompile/gather_residency.h"

#include <algorithm>
#include <utility>

namespace dcsim {

GatherResidency::GatherResidency(const PassGraph& graph) : graph_(graph) {
  std::vector<int> releases;
  for (const PassNode& node : graph.nodes) {
    if (node.param.is_none()) {
      continue;
    }
    if (node.param.index() >= params_.size()) {
      params_.resize(node.param.index() + 1);
      releases.resize(node.param.index() + 1);
    }
    if (node.kind == PassNodeKind::kRelease) {
      int& expected = params_[node.param.index()].expected_releases;
      expected = std::max({1, expected, node.uses, ++releases[node.param.index()]});
    }
  }
}

void GatherResidency::Apply(std::uint32_t index) {
  const PassNode& node = graph_.nodes[index];
  if (node.kind != PassNodeKind::kGather && node.kind != PassNodeKind::kRelease) {
    return;
  }
  Param& param = params_[node.param.index()];
  if (node.kind == PassNodeKind::kGather) {
    const Bytes bytes = param.alive ? std::max(param.bytes, node.allocated_bytes)  //
                                    : node.allocated_bytes;
    live_ += bytes - (param.alive ? param.bytes : Bytes(0));
    param = {bytes, true, 0, param.expected_releases};
    return;
  }
  if (param.alive && ++param.releases >= std::max(1, param.expected_releases)) {
    live_ -= param.bytes;
    param.alive = false;
  }
}

PathMemory GatherResidency::Simulate(std::span<const std::uint32_t> path, Bytes limit) {
  const Bytes before = live_;
  std::vector<std::pair<std::size_t, Param>> undo;
  PathMemory memory{live_, live_};
  for (const std::uint32_t index : path) {
    const PassNode& node = graph_.nodes[index];
    if (node.kind == PassNodeKind::kGather || node.kind == PassNodeKind::kRelease) {
      undo.emplace_back(node.param.index(), params_[node.param.index()]);
      Apply(index);
      memory.peak = std::max(memory.peak, live_);
    }
    if (memory.peak > limit) {
      break;
    }
  }
  memory.live = live_;
  for (auto change = undo.rbegin(); change != undo.rend(); ++change) {
    params_[change->first] = change->second;
  }
  live_ = before;
  return memory;
}

}  // namespace dcsim
