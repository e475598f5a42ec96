#include "model/passes/deepcompile/memory_profile.h"

#include <algorithm>
#include <set>
#include <utility>

#include "model/graph/sharding.h"
#include "model/ir/optimizer_spec.h"

namespace dcsim {
namespace {

/// Shards, gradient shards, master weights and moments of ZeRO-3; constants, inputs.
Bytes ResidentBytes(const Graph& graph,
                    const PolicyInputs& inputs,
                    int ranks,
                    const MemoryProfile::Residents& residents) {
  Bytes total = inputs.outside_allocator;
  ScheduleOptions options;
  options.stage = 3;
  options.training = residents.training;
  const std::int64_t state_bytes = StateBytesPerElement(options.training);
  for (const FlatGroup& group : FlatGroups(graph)) {
    const std::int64_t element_bytes = ElementBytes(group.dtype);
    const std::int64_t partition = PartitionElements(graph, group, options, ranks);
    if (residents.shards) {
      total += InBlocks(Bytes(WeightOffsets(graph, group, options, ranks).back() * element_bytes));
    }
    total += InBlocks(
        Bytes(partition * (AccumulationBytes(options.training, group.dtype) + state_bytes)));
  }
  for (const ConstantBuffer& buffer : graph.buffers) {
    total += InBlocks(graph.storage(graph.storage_of(buffer.value)).bytes);
  }
  for (const Input& input : graph.inputs) {
    total += InBlocks(graph.storage(graph.storage_of(input.value)).bytes);
  }
  for (const Bytes bytes : inputs.workspaces) {
    total += InBlocks(bytes);
  }
  return total;
}

bool IsHeld(const GraphOutput& output) {
  return output.kind == GraphOutputKind::kLoss ||
         (output.kind == GraphOutputKind::kOutput && output.held);
}

std::vector<OpId> OpsOf(const Subgraph& subgraph) {
  std::vector<OpId> ops;
  for (std::size_t i = 0; i < subgraph.op_count; ++i) {
    ops.emplace_back(subgraph.first_op + i);
  }
  return ops;
}

}  // namespace

/// One run through a graph's ops.
struct MemoryProfile::Walk {
  Bytes live;
  std::size_t position = 0;            // of the next op
  std::vector<UseSpan> uses;           // by storage
  std::vector<int> pending;            // by storage: reductions to come
  std::vector<bool> stays;             // by storage: behind the graph too
  std::vector<bool> alive;             // by storage: made here and not gone
  std::vector<StorageId> gradient_of;  // by param, of this graph
};

MemoryProfile::MemoryProfile(const Graph& graph,
                             const PolicyInputs& inputs,
                             int ranks,
                             const Residents& residents)
    : graph_(graph),
      inputs_(inputs),
      ranks_(ranks),
      facts_(AnalyseStep(graph)),
      resident_(ResidentBytes(graph, inputs, ranks, residents)) {}

Bytes MemoryProfile::Before(std::size_t g) const {
  std::set<StorageId> kept;
  for (std::size_t later = g; later < graph_.graphs.size(); ++later) {
    for (const GraphInput& input : graph_.graphs[later].inputs) {
      const StorageId storage = graph_.storage_of(input.value);
      const OpId producer = facts_.producer[storage.index()];
      if (!producer.is_none() && producer.index() < graph_.graphs[g].first_op) {
        kept.insert(storage);
      }
    }
  }
  for (const Subgraph& subgraph : graph_.graphs) {
    for (const GraphOutput& output : subgraph.outputs) {
      const StorageId storage = graph_.storage_of(output.value);
      if (IsHeld(output) && !facts_.producer[storage.index()].is_none()) {
        kept.insert(storage);  // of the step before, until the forward has returned; then of this
      }
    }
  }
  Bytes total = resident_;
  for (const StorageId storage : kept) {
    total += facts_.on_host[storage.index()] ? Bytes(0) : InBlocks(graph_.storage(storage).bytes);
  }
  return total;
}

MemoryProfile::OpMemory MemoryProfile::MemoryOf(OpId id) const {
  OpMemory memory;
  for (const StorageId storage : facts_.allocates[id.index()]) {
    memory.made += InBlocks(graph_.storage(storage).bytes);
  }
  memory.peak = memory.made;
  const OpProfile* profile = inputs_.profile == nullptr ? nullptr : inputs_.profile->FindOp(id);
  if (profile == nullptr) {
    return memory;
  }
  std::vector<Bytes> blocks;
  Bytes current;
  for (const FootprintStep& step : profile->footprint) {
    if (step.kind == FootprintStep::Kind::kAllocate) {
      blocks.push_back(InBlocks(step.bytes));
      current += blocks.back();
      memory.peak = std::max(memory.peak, current);
    } else {
      current -= blocks[step.block];
    }
  }
  return memory;
}

MemoryProfile::Walk MemoryProfile::StartWalk(std::size_t g, const std::vector<OpId>& order) const {
  Walk walk;
  walk.live = Before(g);
  walk.uses = FindUses(graph_, order);
  walk.pending.resize(graph_.storages.size());
  walk.stays.resize(graph_.storages.size());
  walk.alive.resize(graph_.storages.size());
  walk.gradient_of.resize(graph_.params.size());
  for (const GraphOutput& output : graph_.graphs[g].outputs) {
    const StorageId storage = graph_.storage_of(output.value);
    if (output.kind == GraphOutputKind::kGradient) {
      ++walk.pending[storage.index()];
      walk.gradient_of[output.param.index()] = storage;
    } else {
      walk.stays[storage.index()] = true;
    }
  }
  return walk;
}

void MemoryProfile::FinishOp(Walk& walk, OpId id) const {
  walk.live += MemoryOf(id).made;
  for (const StorageId storage : facts_.allocates[id.index()]) {
    walk.alive[storage.index()] = true;
  }
  const auto drop = [&](ValueId value) {
    if (value.is_none()) {
      return;
    }
    const std::size_t s = graph_.storage_of(value).index();
    if (walk.alive[s] && walk.uses[s].last == walk.position && !walk.stays[s] &&
        walk.pending[s] == 0) {
      walk.alive[s] = false;
      walk.live -= InBlocks(graph_.storages[s].bytes);
    }
  };
  std::for_each(graph_.op(id).inputs.begin(), graph_.op(id).inputs.end(), drop);
  std::for_each(graph_.op(id).outputs.begin(), graph_.op(id).outputs.end(), drop);
  ++walk.position;
}

void MemoryProfile::FinishReduction(Walk& walk, ParamId param) const {
  const StorageId storage = walk.gradient_of[param.index()];
  if (storage.is_none()) {
    return;
  }
  const std::size_t s = storage.index();
  --walk.pending[s];
  if (walk.alive[s] && walk.pending[s] == 0 && walk.uses[s].last < walk.position &&
      !walk.stays[s]) {
    walk.alive[s] = false;
    walk.live -= InBlocks(graph_.storages[s].bytes);
  }
}

/// What comes back stays until the backward has ended.
void MemoryProfile::Move(Walk& walk, const ActivationStep& move, const PassGraph& nodes) const {
  const ValueId value = nodes.nodes[move.node].value;
  const std::size_t s = graph_.storage_of(value).index();
  if (move.kind == GraphEventKind::kReloadActivation) {
    walk.live += InBlocks(graph_.value(value).bytes());
  } else if (move.kind == GraphEventKind::kOffloadActivation && walk.alive[s]) {
    walk.alive[s] = false;
    walk.live -= InBlocks(graph_.storages[s].bytes);
  }
}

Bytes MemoryProfile::OwnParams(OpId id) const {
  std::set<ParamId> params;
  for (const ValueId input : graph_.op(id).inputs) {
    params.insert(facts_.param_of[graph_.storage_of(input).index()]);
  }
  Bytes bytes;
  for (const ParamId param : params) {
    if (!param.is_none()) {
      bytes += InBlocks(GatheredBytes(graph_, param, ranks_));
    }
  }
  return bytes;
}

Bytes MemoryProfile::OperatorPeak(std::size_t g, const PassGraph& nodes) const {
  Walk walk = StartWalk(g, OpsOf(graph_.graphs[g]));
  Bytes peak = walk.live;
  for (const PassNode& node : nodes.nodes) {
    if (node.kind == PassNodeKind::kGather) {
      peak = std::max(peak, walk.live + InBlocks(node.allocated_bytes) * 2);
    } else if (node.kind == PassNodeKind::kOp) {
      peak = std::max(peak, walk.live + MemoryOf(node.op).peak + OwnParams(node.op));
      FinishOp(walk, node.op);
    } else if (node.kind == PassNodeKind::kReduce) {
      FinishReduction(walk, node.param);
    }
  }
  return peak;
}

/// Gathered parameters of one graph, from their gathers to their last releases.
struct MemoryProfile::GatheredParams {
  explicit GatheredParams(std::size_t params) : bytes(params), releases(params) {}

  /// What a node adds to the memory that is alive.
  Bytes Change(const PassNode& node) {
    if (node.kind == PassNodeKind::kGather) {
      bytes[node.param.index()] = InBlocks(node.allocated_bytes);
      return bytes[node.param.index()];
    }
    const bool frees =
        node.kind == PassNodeKind::kRelease && ++releases[node.param.index()] == node.uses;
    return frees ? Bytes(0) - std::exchange(bytes[node.param.index()], Bytes(0)) : Bytes(0);
  }

  std::vector<Bytes> bytes;   // by param
  std::vector<int> releases;  // by param: so far
};

Bytes MemoryProfile::RunNode(Walk& walk, GatheredParams& gathered, const PassNode& node) const {
  const Bytes change = gathered.Change(node);
  walk.live += std::max(change, Bytes(0));
  Bytes peak = walk.live;
  if (node.kind == PassNodeKind::kOp) {
    peak += MemoryOf(node.op).peak;
    FinishOp(walk, node.op);
  } else if (node.kind == PassNodeKind::kReduce) {
    FinishReduction(walk, node.param);
  }
  walk.live += std::min(change, Bytes(0));
  return peak;
}

std::vector<Bytes> MemoryProfile::Peaks(std::size_t g,
                                        const PassGraph& nodes,
                                        const std::vector<PassStep>& steps,
                                        const AwayActivations& away) const {
  std::vector<OpId> order;
  for (const PassStep& step : steps) {
    if (step.gathers.empty() && nodes.nodes[step.node].kind == PassNodeKind::kOp) {
      order.push_back(nodes.nodes[step.node].op);
    }
  }
  Walk walk = StartWalk(g, order);
  GatheredParams gathered(graph_.params.size());
  for (const ValueId value : away.before) {
    walk.live -= InBlocks(graph_.storage(graph_.storage_of(value)).bytes);
  }
  auto move = away.moves.begin();
  std::vector<Bytes> peaks;
  for (const PassStep& step : steps) {
    for (; move != away.moves.end() && move->before == peaks.size(); ++move) {
      Move(walk, *move, nodes);
    }
    Bytes peak = walk.live;
    for (const std::uint32_t each : step.gathers) {
      peak = RunNode(walk, gathered, nodes.nodes[each]);
    }
    peaks.push_back(step.gathers.empty() ? RunNode(walk, gathered, nodes.nodes[step.node]) : peak);
  }
  return peaks;
}

}  // namespace dcsim
