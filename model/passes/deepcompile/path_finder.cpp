#include "model/passes/deepcompile/path_finder.h"

#include <algorithm>

namespace dcsim {
namespace {

std::size_t CountGathers(const PassGraph& graph) {
  return static_cast<std::size_t>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(),
                    [](const PassNode& node) { return node.kind == PassNodeKind::kGather; }));
}

EdgeList ArgumentsOf(const PassGraph& graph) {
  EdgeList list{graph.nodes.size(), {}};
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node) {
    for (const std::uint32_t arg : graph.nodes[node].args) {
      list.edges.emplace_back(node, arg);
    }
  }
  return list;
}

}  // namespace

PathFinder::PathFinder(const PassGraph& graph)
    : graph_(graph),
      gather_of_(graph.nodes.size()),
      scheduled_(graph.nodes.size()),
      before_(graph.nodes.size(), CountGathers(graph)),
      until_use_(graph.nodes.size(), CountGathers(graph)),
      until_release_(graph.nodes.size(), CountGathers(graph)),
      arguments_(ArgumentsOf(graph)) {
  FindGathers();
  FillTables();
  FillSums();
}

void PathFinder::FindGathers() {
  const auto last_uses = FindLastUses(graph_);
  std::vector<std::vector<std::uint32_t>> releases;  // by param
  for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
    const PassNode& node = graph_.nodes[i];
    if (node.kind == PassNodeKind::kGather) {
      gather_of_[i] = gathers_.size();
      gathers_.push_back({i, last_uses[i], {}, {}, 0, {}, false, {}});
    }
    if (node.kind == PassNodeKind::kRelease) {
      releases.resize(std::max(releases.size(), node.param.index() + 1));
      releases[node.param.index()].push_back(i);
    }
  }
  for (Gather& gather : gathers_) {
    if (const std::size_t param = graph_.nodes[gather.node].param.index();
        param < releases.size()) {
      gather.releases = releases[param];
    }
  }
}

void PathFinder::FillTables() {
  for (std::size_t a = 0; a < gathers_.size(); ++a) {
    before_.Set(gathers_[a].node, a);
    until_use_.Set(gathers_[a].last_use, a);
    until_release_.Set(gathers_[a].last_use, a);
    for (const std::uint32_t release : gathers_[a].releases) {
      until_release_.Set(release, a);
    }
  }
  for (std::uint32_t node = 0; node < graph_.nodes.size(); ++node) {
    for (const std::uint32_t arg : graph_.nodes[node].args) {
      before_.Merge(node, arg);
    }
  }
  for (auto node = static_cast<std::uint32_t>(graph_.nodes.size()); node-- > 0;) {
    for (const std::uint32_t arg : graph_.nodes[node].args) {
      until_use_.Merge(arg, node);
      until_release_.Merge(arg, node);
    }
  }
}

void PathFinder::FillSums() {
  for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
    const PassNode& node = graph_.nodes[i];
    if (node.kind == PassNodeKind::kPlaceholder) {
      continue;
    }
    const bool gathers = node.kind == PassNodeKind::kGather;
    until_use_.ForEach(i, [&](std::size_t a) {
      if (gathers_[a].node != i) {
        gathers_[a].free_time += node.time;
        gathers_[a].further_bytes += gathers ? node.tensor_bytes : Bytes(0);
      }
    });
    if (gathers) {
      until_release_.ForEach(i, [&](std::size_t a) { ++gathers_[a].path_gathers; });
    }
  }
}

void PathFinder::MarkScheduled(std::uint32_t index) {
  scheduled_[index] = true;
  const PassNode& node = graph_.nodes[index];
  if (node.kind == PassNodeKind::kPlaceholder) {
    return;
  }
  const bool gathers = node.kind == PassNodeKind::kGather;
  until_use_.ForEach(index, [&](std::size_t a) {
    if (gathers_[a].node != index) {
      gathers_[a].free_time = gathers_[a].free_time - node.time;
      gathers_[a].further_bytes -= gathers ? node.tensor_bytes : Bytes(0);
    }
  });
  if (gathers) {
    until_release_.ForEach(index, [&](std::size_t a) { --gathers_[a].path_gathers; });
  }
}

Bytes PathFinder::gather_bytes(std::size_t a) const {
  const std::uint32_t node = gathers_[a].node;
  return scheduled_[node] ? Bytes(0) : graph_.nodes[node].tensor_bytes;
}

std::vector<std::uint32_t> PathFinder::Requirements(std::uint32_t node) const {
  return arguments_.PostOrder({&node, 1}, scheduled_);
}

std::vector<std::uint32_t> PathFinder::UntilGather(std::size_t a) const {
  const std::uint32_t node = gathers_[a].node;
  return scheduled_[node] ? std::vector<std::uint32_t>() : std::vector<std::uint32_t>{node};
}

std::vector<std::uint32_t> PathFinder::UntilFree(std::size_t a) const {
  const Gather& gather = gathers_[a];
  std::vector<std::uint32_t> roots = {gather.node, gather.last_use};
  roots.insert(roots.end(), gather.releases.begin(), gather.releases.end());
  return arguments_.PostOrder(roots, scheduled_);
}

// What is scheduled is closed under "needs", so a walk made later visits what is left in the same
// order: the events found once stay right, less those that have been scheduled.
std::vector<std::uint32_t> PathFinder::GatherEvents(std::size_t a) {
  Gather& gather = gathers_[a];
  if (!gather.has_events) {
    gather.events = UntilFree(a);
    std::erase_if(gather.events, [this](std::uint32_t node) {
      return graph_.nodes[node].kind != PassNodeKind::kGather &&
             graph_.nodes[node].kind != PassNodeKind::kRelease;
    });
    gather.has_events = true;
  }
  std::erase_if(gather.events, [this](std::uint32_t node) { return scheduled_[node]; });
  return gather.events;
}

}  // namespace dcsim
