#include "model/passes/deepcompile/pass_graph.h"

#include <algorithm>
#include <optional>

#include "model/base/error.h"
#include "model/graph/fused_casts.h"
#include "model/graph/sharding.h"
#include "model/graph/step_facts.h"
#include "model/ir/operator_schema.h"

namespace dcsim {
namespace {

constexpr std::uint32_t kNoNode = UINT32_MAX;

/// What the schema of an operator says about its results.
struct ReturnKind {
  bool several = false;  // more than one tensor, or a list
  bool aliases = false;  // a tensor that shares storage with an argument
};

std::vector<ReturnKind> FindReturnKinds(const Graph& graph) {
  std::vector<ReturnKind> kinds;
  for (const std::string& text : graph.schemas) {
    ReturnKind kind;
    if (const auto schema = FindSchema(text)) {
      kind.several = schema->returns.size() != 1 || schema->returns.front().type != "Tensor";
      kind.aliases = std::any_of(
          schema->returns.begin(), schema->returns.end(),
          [](const SchemaField& field) { return field.type == "Tensor" && field.aliases; });
    }
    kinds.push_back(kind);
  }
  return kinds;
}

/// Builds one PassGraph: the recorded nodes first, then what is inserted behind each of them.
class PassGraphBuilder {
 public:
  PassGraphBuilder(const Graph& graph, std::size_t g, int ranks, const PassTimes& times)
      : graph_(graph),
        subgraph_(graph.graphs[g]),
        ranks_(ranks),
        times_(times),
        facts_(AnalyseStep(graph)),
        node_of_(graph.values.size(), kNoNode),
        placeholder_of_(graph.params.size(), kNoNode) {}

  PassGraph Build() {
    AddPlaceholders();
    AddOps();
    AddOutput();
    behind_.resize(nodes_.size());
    AddReleases();
    AddReductions();
    return Assemble();
  }

 private:
  std::uint32_t Add(PassNode node) {
    nodes_.push_back(std::move(node));
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }

  std::uint32_t NodeOf(ValueId value) const {
    const std::uint32_t node = node_of_[value.index()];
    DCSIM_CHECK(node != kNoNode) << graph_.value(value).name << " comes from nowhere";
    return node;
  }

  /// A view of a parameter that the forward saved counts as the parameter: DeepCompile recomputes
  /// views of parameters, so that no gathered tensor is saved.
  void AddPlaceholders() {
    for (const GraphInput& input : subgraph_.inputs) {
      PassNode node;
      node.kind = PassNodeKind::kPlaceholder;
      node.param = facts_.param_of[graph_.storage_of(input.value).index()];
      if (node.param.is_none()) {
        node.value = input.value;
        node_of_[input.value.index()] = Add(node);
        continue;
      }
      std::uint32_t& placeholder = placeholder_of_[node.param.index()];
      placeholder = placeholder == kNoNode ? Add(node) : placeholder;
      node_of_[input.value.index()] = placeholder;
    }
    AddForeignOutputs();
  }

  /// Outputs that are neither inputs of this graph nor made by its ops are there from the start.
  void AddForeignOutputs() {
    std::vector<bool> made(graph_.values.size());
    for (std::size_t i = 0; i < subgraph_.op_count; ++i) {
      for (const ValueId output : graph_.op(OpId(subgraph_.first_op + i)).outputs) {
        if (!output.is_none()) {
          made[output.index()] = true;
        }
      }
    }
    for (const GraphOutput& output : subgraph_.outputs) {
      std::uint32_t& node = node_of_[output.value.index()];
      if (!made[output.value.index()] && node == kNoNode) {
        PassNode placeholder;
        placeholder.kind = PassNodeKind::kPlaceholder;
        node = Add(placeholder);
      }
    }
  }

  void AddOps() {
    const auto kinds = FindReturnKinds(graph_);
    for (std::size_t i = 0; i < subgraph_.op_count; ++i) {
      const OpId id(subgraph_.first_op + i);
      const Op& op = graph_.op(id);
      PassNode node;
      node.op = id;
      const bool fused = IsFusedCast(graph_, facts_, id);
      node.time = fused || times_.ops.empty() ? Duration() : times_.ops[id.index()];
      node.aliases = fused || (!op.launch && kinds[op.schema].aliases);
      for (const ValueId input : op.inputs) {
        node.args.push_back(NodeOf(input));
      }
      const std::uint32_t made = Add(std::move(node));
      const bool several = op.launch ? op.outputs.size() > 1 : kinds[op.schema].several;
      AddResults(op, made, several || op.returns_list);
    }
  }

  void AddResults(const Op& op, std::uint32_t made, bool several) {
    for (const ValueId output : op.outputs) {
      if (output.is_none()) {
        continue;
      }
      node_of_[output.index()] = made;
      nodes_[made].value = several ? ValueId::None() : output;
      if (several) {
        PassNode item;
        item.kind = PassNodeKind::kItem;
        item.value = output;
        item.op = nodes_[made].op;
        item.args = {made};
        node_of_[output.index()] = Add(std::move(item));
      }
    }
  }

  void AddOutput() {
    PassNode node;
    node.kind = PassNodeKind::kOutput;
    for (const GraphOutput& output : subgraph_.outputs) {
      node.args.push_back(NodeOf(output.value));
    }
    Add(std::move(node));
  }

  /// By recorded node: the nodes that compute with its result, views looked through, from the last
  /// to the first (get_real_uses).
  std::vector<std::vector<std::uint32_t>> FindRealUses() const {
    std::vector<std::vector<std::uint32_t>> uses(nodes_.size());
    for (std::uint32_t user = static_cast<std::uint32_t>(nodes_.size() - 1); user-- > 0;) {
      for (const std::uint32_t arg : nodes_[user].args) {
        if (nodes_[user].aliases) {
          uses[arg].insert(uses[arg].end(), uses[user].begin(), uses[user].end());
        } else {
          uses[arg].push_back(user);
        }
      }
    }
    return uses;
  }

  /// Where the release of a use stands: behind it, or behind the first of its several results.
  std::uint32_t ReleaseAnchor(std::uint32_t user) const {
    const bool has_item = nodes_[user + 1].kind == PassNodeKind::kItem;
    return nodes_[user].kind == PassNodeKind::kOp && has_item ? user + 1 : user;
  }

  void AddReleases() {
    const auto uses = FindRealUses();
    for (std::uint32_t pn = 0; nodes_[pn].kind == PassNodeKind::kPlaceholder; ++pn) {
      if (nodes_[pn].param.is_none()) {
        continue;
      }
      for (const std::uint32_t user : uses[pn]) {
        PassNode release;
        release.kind = PassNodeKind::kRelease;
        release.param = nodes_[pn].param;
        release.uses = static_cast<int>(uses[pn].size());
        auto& behind = behind_[ReleaseAnchor(user)];
        behind.insert(behind.begin(), std::move(release));
      }
    }
  }

  /// By parameter: the value of its gradient in this graph, or None().
  std::vector<ValueId> FindGradients() const {
    std::vector<ValueId> gradients(graph_.params.size());
    for (const GraphOutput& output : subgraph_.outputs) {
      if (output.kind == GraphOutputKind::kGradient) {
        gradients[output.param.index()] = output.value;
      }
    }
    return gradients;
  }

  void AddReduction(ParamId param, ValueId& gradient) {
    if (gradient.is_none()) {
      return;
    }
    PassNode reduce;
    reduce.kind = PassNodeKind::kReduce;
    reduce.param = param;
    auto& behind = behind_[NodeOf(gradient)];
    behind.insert(behind.begin(), std::move(reduce));
    gradient = ValueId::None();
  }

  /// In the order of the forward graph's parameters; then any other gradients.
  void AddReductions() {
    if (subgraph_.direction != Direction::kBackward) {
      return;
    }
    auto gradients = FindGradients();
    for (const GraphInput& input : graph_.graphs[subgraph_.forward.index()].inputs) {
      const ParamId param = facts_.param_of[graph_.storage_of(input.value).index()];
      if (!param.is_none()) {
        AddReduction(param, gradients[param.index()]);
      }
    }
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      AddReduction(ParamId(i), gradients[i]);
    }
  }

  /// primals_k of a parameter: its place among the inputs of the forward graph, from 1.
  std::size_t PrimalOf(ParamId param) const {
    const Subgraph& forward = subgraph_.direction == Direction::kForward
                                  ? subgraph_
                                  : graph_.graphs[subgraph_.forward.index()];
    for (std::size_t i = 0; i < forward.inputs.size(); ++i) {
      if (facts_.param_of[graph_.storage_of(forward.inputs[i].value).index()] == param) {
        return i + 1;
      }
    }
    return 0;
  }

  PassNode MakeGather(std::uint32_t placeholder) const {
    const ParamId param = nodes_[placeholder].param;
    PassNode gather;
    gather.kind = PassNodeKind::kGather;
    gather.param = param;
    gather.args = {placeholder};
    gather.time = times_.gathers.empty() ? Duration() : times_.gathers[param.index()];
    gather.tensor_bytes = Bytes(graph_.numel(param) * ElementBytes(graph_.gather_dtype(param)));
    gather.allocated_bytes = GatheredBytes(graph_, param, ranks_);
    gather.name = "allgather_ds_param_primals_" + std::to_string(PrimalOf(param)) + "_" +
                  std::to_string(param.index());
    return gather;
  }

  std::vector<bool> FindUsedNodes() const {
    std::vector<bool> used(nodes_.size());
    for (const PassNode& node : nodes_) {
      for (const std::uint32_t arg : node.args) {
        used[arg] = used[arg] || node.kind != PassNodeKind::kOutput;
      }
    }
    return used;
  }

  /// Gathers and waits behind the placeholders. Users of a parameter get the wait.
  void AssembleHead(PassGraph& result, std::vector<std::uint32_t>& tail) const {
    const auto used = FindUsedNodes();
    std::uint32_t end = 0;
    for (; nodes_[end].kind == PassNodeKind::kPlaceholder; ++end) {
      result.nodes.push_back(nodes_[end]);
      tail[end] = end;
    }
    for (std::uint32_t pn = 0; pn < end; ++pn) {
      if (!nodes_[pn].param.is_none() && used[pn]) {
        result.nodes.push_back(MakeGather(pn));
        PassNode wait;
        wait.kind = PassNodeKind::kWait;
        wait.aliases = true;
        wait.param = nodes_[pn].param;
        wait.args = {static_cast<std::uint32_t>(result.nodes.size() - 1)};
        result.nodes.push_back(std::move(wait));
        tail[pn] = static_cast<std::uint32_t>(result.nodes.size() - 1);
      }
      AssembleBehind(result, pn, tail);
    }
  }

  /// The chain behind a node, each passing the one before on; its end is what users get.
  void AssembleBehind(PassGraph& result,
                      std::uint32_t node,
                      std::vector<std::uint32_t>& tail) const {
    for (PassNode inserted : behind_[node]) {
      inserted.args = {tail[node]};
      result.nodes.push_back(std::move(inserted));
      tail[node] = static_cast<std::uint32_t>(result.nodes.size() - 1);
    }
  }

  PassGraph Assemble() const {
    PassGraph result;
    std::vector<std::uint32_t> tail(nodes_.size());  // by recorded node: what its users get
    AssembleHead(result, tail);
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].kind == PassNodeKind::kPlaceholder) {
        continue;
      }
      PassNode node = nodes_[i];
      for (std::uint32_t& arg : node.args) {
        const bool returned_param =
            node.kind == PassNodeKind::kOutput && !nodes_[arg].param.is_none();
        arg = returned_param ? arg : tail[arg];
      }
      result.nodes.push_back(std::move(node));
      tail[i] = static_cast<std::uint32_t>(result.nodes.size() - 1);
      AssembleBehind(result, i, tail);
    }
    return result;
  }

  const Graph& graph_;
  const Subgraph& subgraph_;
  int ranks_;
  const PassTimes& times_;
  StepFacts facts_;
  std::vector<PassNode> nodes_;                // the recorded ones, placeholders first
  std::vector<std::vector<PassNode>> behind_;  // by recorded node: inserted, nearest first
  std::vector<std::uint32_t> node_of_;         // by value
  std::vector<std::uint32_t> placeholder_of_;  // by param
};

}  // namespace

PassGraph BuildPassGraph(const Graph& graph, std::size_t g, int ranks, const PassTimes& times) {
  return PassGraphBuilder(graph, g, ranks, times).Build();
}

std::vector<std::uint32_t> FindLastUses(const PassGraph& graph) {
  std::vector<std::uint32_t> last(graph.nodes.size(), kNoNode);
  for (auto user = static_cast<std::uint32_t>(graph.nodes.size()); user-- > 0;) {
    const PassNode& node = graph.nodes[user];
    const std::uint32_t through =
        node.aliases && last[user] != kNoNode ? last[user] : user;  // its own last use
    for (const std::uint32_t arg : node.args) {
      const bool later = node.aliases && last[arg] != kNoNode && through > last[arg];
      last[arg] = last[arg] == kNoNode || later ? through : last[arg];
    }
  }
  for (std::uint32_t i = 0; i < last.size(); ++i) {
    last[i] = last[i] == kNoNode ? i : last[i];
  }
  return last;
}

}  // namespace dcsim
