#include "model/passes/deepcompile/activation_moves.h"

#include <algorithm>
#include <optional>

#include "model/graph/sharding.h"
#include "model/graph/spanned_elements.h"
#include "model/passes/check_activations.h"
#include "model/passes/pass_list.h"

namespace dcsim {
namespace {

constexpr double kMeasuredMargin = 0.1;  // MIN_MEASURED_MARGIN, which fragmentation rarely exceeds

/// The backward graph of a forward graph.
std::optional<std::size_t> FindBackward(const Graph& graph, std::size_t forward) {
  for (std::size_t g = 0; g < graph.graphs.size(); ++g) {
    const Subgraph& subgraph = graph.graphs[g];
    if (subgraph.direction == Direction::kBackward && subgraph.forward.index() == forward) {
      return g;
    }
  }
  return std::nullopt;
}

NodeTensor TensorOf(const Graph& graph, const PassNode& node, DeepSpeedVersion version) {
  NodeTensor tensor;
  tensor.aliases = node.aliases;
  tensor.param = node.kind == PassNodeKind::kPlaceholder && !node.param.is_none();
  tensor.known = tensor.param || node.kind == PassNodeKind::kGather ||
                 node.kind == PassNodeKind::kWait || !node.value.is_none();
  if (!node.value.is_none()) {
    const Value& value = graph.value(node.value);
    tensor.floating = IsFloating(value.dtype);
    tensor.overlaps = value.numel() > SpannedElements(value);
    tensor.bytes = value.bytes();
  }
  const bool is_op = node.kind == PassNodeKind::kOp;
  if (is_op && version != DeepSpeedVersion::kRelease0196 &&
      graph.target(node.op) == "aten::_unsafe_view") {
    tensor.aliases = true;  // whatever its schema says
  }
  return tensor;
}

std::vector<std::uint32_t> OrderOf(const ScheduledGraph& scheduled) {
  std::vector<std::uint32_t> order;
  for (const PassStep& step : scheduled.steps) {
    order.push_back(step.node);
  }
  return order;
}

/// What a forward graph moves, as the backward graph's placeholders.
std::vector<MovedActivation> AsPlaceholders(const PassGraph& forward,
                                            const PassGraph& backward,
                                            const std::vector<MovedActivation>& moved) {
  std::vector<MovedActivation> placeholders;
  for (const MovedActivation& each : moved) {
    const auto found =
        std::find_if(backward.nodes.begin(), backward.nodes.end(), [&](const PassNode& node) {
          return node.kind == PassNodeKind::kPlaceholder &&
                 node.value == forward.nodes[each.node].value;
        });
    if (found != backward.nodes.end()) {
      placeholders.push_back(each);
      placeholders.back().node = static_cast<std::uint32_t>(found - backward.nodes.begin());
    }
  }
  return placeholders;
}

/// Both reduce buffers of each dtype, as large as they grow.
Bytes BucketBytes(const Graph& graph, const ScheduleOptions& options) {
  Bytes total;
  for (const FlatGroup& group : FlatGroups(graph)) {
    std::int64_t elements = options.reduce_bucket;
    for (const ParamId id : group.params) {
      elements = std::max(elements, graph.numel(id));
    }
    const std::int64_t buffers = options.double_buffer ? 2 : 1;
    total += group.trainable > 0 ? Bytes(elements * buffers * ElementBytes(group.dtype)) : Bytes(0);
  }
  return total;
}

class Planner {
 public:
  Planner(const PlanSpec& spec,
          const Graph& graph,
          const PolicyInputs& inputs,
          const MemoryProfile& memory,
          const std::vector<ScheduledGraph>& graphs,
          DeepSpeedVersion version)
      : spec_(spec),
        graph_(graph),
        inputs_(inputs),
        memory_(memory),
        graphs_(graphs),
        version_(version),
        moved_(graphs.size()) {}

  std::vector<std::vector<ActivationStep>> Plan() {
    for (std::size_t g = 0; g < graphs_.size(); ++g) {
      moved_[g] = MovableIn(g);
    }
    if (RunsPass(spec_, "offload_activation") && inputs_.complete()) {
      const double headroom = Budget() - FloorPeak();
      for (auto& moved : moved_) {
        moved = KeepFitting(moved, headroom);
      }
    }
    std::vector<std::vector<ActivationStep>> steps;
    for (std::size_t g = 0; g < graphs_.size(); ++g) {
      steps.push_back(StepsOf(g));
    }
    return steps;
  }

 private:
  /// Of what DeepSpeed moves, values whose memory that gives back: it also copies those that the
  /// caller owns.
  std::vector<MovedActivation> MovableIn(std::size_t g) const {
    const auto backward = FindBackward(graph_, g);
    if (graph_.graphs[g].direction != Direction::kForward || !backward) {
      return {};
    }
    const PassGraph& nodes = graphs_[g].nodes;
    auto moved = FindMovable(nodes, DescribeActivations(graph_, g, nodes, version_), version_);
    std::erase_if(moved, [&](const MovedActivation& each) {
      return !MayLeave(graph_, nodes.nodes[each.node].value, g, *backward);
    });
    return moved;
  }

  double Budget() const {
    return static_cast<double>(inputs_.device_memory.count()) * (1 - kMeasuredMargin);
  }

  /// Values that are on the host when a graph begins.
  std::vector<ValueId> AwayBefore(std::size_t g) const {
    std::vector<ValueId> away;
    for (std::size_t f = 0; f < g; ++f) {
      const auto backward = FindBackward(graph_, f);
      for (const MovedActivation& each : moved_[f]) {
        if (*backward >= g) {
          away.push_back(graphs_[f].nodes.nodes[each.node].value);
        }
      }
    }
    return away;
  }

  double FloorPeak() const {
    Bytes floor;
    for (std::size_t g = 0; g < graphs_.size(); ++g) {
      const bool reduces = graph_.graphs[g].direction == Direction::kBackward;
      const Bytes buckets = reduces ? BucketBytes(graph_, spec_.options) : Bytes(0);
      for (const Bytes peak :
           memory_.Peaks(g, graphs_[g].nodes, graphs_[g].steps, {AwayBefore(g), StepsOf(g)})) {
        floor = std::max(floor, peak + buckets);
      }
    }
    return static_cast<double>(floor.count());
  }

  std::vector<ActivationStep> StepsOf(std::size_t g) const {
    const ScheduledGraph& own = graphs_[g];
    if (graph_.graphs[g].direction == Direction::kForward) {
      return PlaceOffloads(own.nodes, OrderOf(own), moved_[g]);
    }
    const std::size_t forward = graph_.graphs[g].forward.index();
    if (FindBackward(graph_, forward) != g) {
      return {};
    }
    const auto moved = AsPlaceholders(graphs_[forward].nodes, own.nodes, moved_[forward]);
    return PlaceReloads(own.nodes, OrderOf(own), moved, ReloadInputsOf(g));
  }

  ReloadInputs ReloadInputsOf(std::size_t g) const {
    ReloadInputs inputs;
    if (!inputs_.complete()) {
      return inputs;
    }
    const ScheduledGraph& own = graphs_[g];
    inputs.budget = Budget();
    inputs.bytes_per_second = static_cast<double>(inputs_.reload_rate.count());
    for (const PassStep& step : own.steps) {
      inputs.milliseconds.push_back(own.nodes.nodes[step.node].time.seconds() * 1e3);
    }
    for (const Bytes peak : memory_.Peaks(g, own.nodes, own.steps, {AwayBefore(g), {}})) {
      inputs.peaks.push_back(static_cast<double>(peak.count()));
    }
    return inputs;
  }

  const PlanSpec& spec_;
  const Graph& graph_;
  const PolicyInputs& inputs_;
  const MemoryProfile& memory_;
  const std::vector<ScheduledGraph>& graphs_;
  DeepSpeedVersion version_;
  std::vector<std::vector<MovedActivation>> moved_;  // by forward graph
};

}  // namespace

ActivationGraph DescribeActivations(const Graph& graph,
                                    std::size_t g,
                                    const PassGraph& nodes,
                                    DeepSpeedVersion version) {
  ActivationGraph described;
  const PassNode* output = nullptr;
  for (const PassNode& node : nodes.nodes) {
    described.tensors.push_back(TensorOf(graph, node, version));
    output = node.kind == PassNodeKind::kOutput ? &node : output;
  }
  const auto& outputs = graph.graphs[g].outputs;
  for (std::size_t i = 0; output != nullptr && i < outputs.size(); ++i) {
    const bool saves = outputs[i].kind == GraphOutputKind::kSaved;
    (saves ? described.saved : described.returned).push_back(output->args[i]);
  }
  return described;
}

std::vector<std::vector<ActivationStep>> PlanActivations(const PlanSpec& spec,
                                                         const Graph& graph,
                                                         const PolicyInputs& inputs,
                                                         const MemoryProfile& memory,
                                                         const std::vector<ScheduledGraph>& graphs,
                                                         DeepSpeedVersion version) {
  if (!RunsPass(spec, "offload_activation_floor")) {
    return std::vector<std::vector<ActivationStep>>(graphs.size());
  }
  return Planner(spec, graph, inputs, memory, graphs, version).Plan();
}

}  // namespace dcsim
