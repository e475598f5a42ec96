#include "model/passes/deepcompile/offload_activation.h"

#include <algorithm>
#include <optional>

namespace dcsim {
namespace {

constexpr Bytes kLeast = Bytes::MiB(5);  // MIN_OFFLOAD_SIZE

/// The node that allocated the storage of a node's result (_alias_root).
std::uint32_t RootOf(const PassGraph& graph,
                     const std::vector<NodeTensor>& tensors,
                     std::uint32_t node) {
  while (tensors[node].aliases) {
    const auto& args = graph.nodes[node].args;
    const auto base = std::find_if(args.begin(), args.end(),
                                   [&](std::uint32_t arg) { return tensors[arg].known; });
    if (base == args.end()) {
      break;
    }
    node = *base;
  }
  return node;
}

/// By node: values outliving the forward that hold its storage (_storage_keeper_counts).
std::vector<int> CountKeepers(const PassGraph& graph, const ActivationGraph& activations) {
  std::vector<int> counts(graph.nodes.size());
  const auto count = [&](std::uint32_t keeper) {
    ++counts[RootOf(graph, activations.tensors, keeper)];
  };
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const PassNodeKind kind = graph.nodes[i].kind;
    if (kind == PassNodeKind::kPlaceholder || kind == PassNodeKind::kGather) {
      count(i);
    }
  }
  std::vector<std::uint32_t> returned = activations.returned;
  std::sort(returned.begin(), returned.end());
  returned.erase(std::unique(returned.begin(), returned.end()), returned.end());
  std::for_each(returned.begin(), returned.end(), count);
  std::for_each(activations.saved.begin(), activations.saved.end(), count);
  return counts;
}

/// A saved node as an activation, if it may leave.
std::optional<MovedActivation> Movable(const PassGraph& graph,
                                       const ActivationGraph& activations,
                                       const std::vector<int>& keepers,
                                       DeepSpeedVersion version,
                                       std::uint32_t node) {
  const NodeTensor& tensor = activations.tensors[node];
  const auto& saved = activations.saved;
  const auto& returned = activations.returned;
  const bool twice = std::count(saved.begin(), saved.end(), node) > 1;
  const bool given = std::find(returned.begin(), returned.end(), node) != returned.end();
  if (twice || given || tensor.param || !tensor.known || !tensor.floating) {
    return std::nullopt;
  }
  if (version == DeepSpeedVersion::kRelease0196) {
    const bool stays = tensor.aliases || tensor.bytes < kLeast;
    return stays ? std::nullopt : std::optional(MovedActivation{node, tensor.bytes, tensor.bytes});
  }
  const std::uint32_t root = RootOf(graph, activations.tensors, node);
  if ((tensor.aliases && (root == node || keepers[root] > 1)) || tensor.overlaps) {
    return std::nullopt;
  }
  const NodeTensor& base = activations.tensors[root];
  const MovedActivation moved{node, tensor.bytes, base.known ? base.bytes : tensor.bytes};
  return moved.resident < kLeast ? std::nullopt : std::optional(moved);
}

/// By node: its place in the order.
std::vector<std::size_t> PlacesOf(const PassGraph& graph, const std::vector<std::uint32_t>& order) {
  std::vector<std::size_t> places(graph.nodes.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    places[order[i]] = i;
  }
  return places;
}

/// Places of the nodes that have `node` as an argument, the graph's output left out, ascending.
std::vector<std::size_t> UsesOf(const PassGraph& graph,
                                const std::vector<std::uint32_t>& order,
                                std::uint32_t node) {
  std::vector<std::size_t> uses;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const PassNode& user = graph.nodes[order[i]];
    const bool used = std::find(user.args.begin(), user.args.end(), node) != user.args.end();
    if (used && user.kind != PassNodeKind::kOutput) {
      uses.push_back(i);
    }
  }
  return uses;
}

/// Before which place the copy back of an activation is issued.
std::size_t IssueOf(const PassGraph& graph,
                    const std::vector<std::uint32_t>& order,
                    std::size_t first_use,
                    double taken,
                    Bytes copied,
                    const ReloadInputs& inputs) {
  const auto bytes = static_cast<double>(copied.count());
  const double copy = bytes / inputs.bytes_per_second * 1000;
  std::size_t place = first_use;
  double elapsed = 0;
  while (!inputs.peaks.empty() && place > 0) {
    const std::size_t candidate = place - 1;
    if (graph.nodes[order[candidate]].kind == PassNodeKind::kPlaceholder ||
        inputs.peaks[candidate] + taken + bytes > inputs.budget) {
      break;
    }
    elapsed += inputs.milliseconds[candidate];
    place = candidate;
    if (elapsed >= copy) {
      break;
    }
  }
  return place;
}

}  // namespace

std::vector<MovedActivation> FindMovable(const PassGraph& graph,
                                         const ActivationGraph& activations,
                                         DeepSpeedVersion version) {
  const auto keepers = CountKeepers(graph, activations);
  std::vector<MovedActivation> moved;
  for (const std::uint32_t node : activations.saved) {
    if (const auto each = Movable(graph, activations, keepers, version, node)) {
      moved.push_back(*each);
    }
  }
  std::stable_sort(
      moved.begin(), moved.end(),
      [](const MovedActivation& a, const MovedActivation& b) { return a.copied > b.copied; });
  return moved;
}

std::vector<MovedActivation> KeepFitting(const std::vector<MovedActivation>& moved,
                                         double headroom) {
  std::vector<MovedActivation> leaving;
  for (const MovedActivation& each : moved) {
    const auto cost = static_cast<double>(each.resident.count());
    if (cost > headroom) {
      leaving.push_back(each);
    } else {
      headroom -= cost;
    }
  }
  return leaving;
}

std::vector<ActivationStep> PlaceOffloads(const PassGraph& graph,
                                          const std::vector<std::uint32_t>& order,
                                          const std::vector<MovedActivation>& moved) {
  const auto places = PlacesOf(graph, order);
  std::vector<ActivationStep> steps;
  for (const MovedActivation& each : moved) {
    const auto uses = UsesOf(graph, order, each.node);
    std::size_t place = (uses.empty() ? places[each.node] : uses.back()) + 1;
    while (graph.nodes[order[place]].kind == PassNodeKind::kPlaceholder) {
      ++place;
    }
    steps.insert(steps.begin(), {place, GraphEventKind::kOffloadActivation, each.node});
  }
  std::stable_sort(
      steps.begin(), steps.end(),
      [](const ActivationStep& a, const ActivationStep& b) { return a.before < b.before; });
  return steps;
}

std::vector<ActivationStep> PlaceReloads(const PassGraph& graph,
                                         const std::vector<std::uint32_t>& order,
                                         const std::vector<MovedActivation>& moved,
                                         const ReloadInputs& inputs) {
  std::vector<std::pair<std::size_t, MovedActivation>> targets;  // by first use
  for (const MovedActivation& each : moved) {
    const auto uses = UsesOf(graph, order, each.node);
    if (!uses.empty()) {
      targets.emplace_back(uses.front(), each);
    }
  }
  std::stable_sort(targets.begin(), targets.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ActivationStep> steps;
  double taken = 0;
  for (const auto& [use, activation] : targets) {
    const std::size_t issue = IssueOf(graph, order, use, taken, activation.copied, inputs);
    steps.push_back({issue, GraphEventKind::kReloadActivation, activation.node});
    steps.push_back({use, GraphEventKind::kWaitActivation, activation.node});
    taken += static_cast<double>(activation.copied.count());
  }
  std::stable_sort(
      steps.begin(), steps.end(),
      [](const ActivationStep& a, const ActivationStep& b) { return a.before < b.before; });
  return steps;
}

}  // namespace dcsim
