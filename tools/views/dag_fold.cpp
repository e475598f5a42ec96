#include "tools/views/dag_fold.h"

#include <algorithm>
#include <set>

namespace dcsim {
namespace {

/// What a layer looks like: the nodes of its box, flushes left out, since those fall where the
/// bucket is full.
using Signature = std::vector<std::pair<std::string, int>>;

std::vector<Signature> Signatures(const DagModel& model) {
  std::vector<Signature> signatures(model.clusters.size());
  for (const DagNode& node : model.nodes) {
    if (node.kind != DagNodeKind::kReduce) {
      signatures[node.cluster].emplace_back(node.label, static_cast<int>(node.kind));
    }
  }
  for (Signature& signature : signatures) {
    std::sort(signature.begin(), signature.end());
  }
  return signatures;
}

/// Runs of alike layers of one phase, in the order of their appearance.
std::vector<std::vector<std::size_t>> AlikeRuns(const DagModel& model) {
  const auto signatures = Signatures(model);
  std::vector<std::vector<std::size_t>> runs;
  for (std::size_t c = 0; c < model.clusters.size(); ++c) {
    if (model.clusters[c].parent == DagCluster::kNone) {
      continue;
    }
    std::vector<std::size_t>* joins = nullptr;
    for (auto& run : runs) {
      if (model.clusters[run.back()].parent == model.clusters[c].parent) {
        joins = &run;  // the latest run of this phase
      }
    }
    if (joins == nullptr || signatures[joins->back()] != signatures[c]) {
      runs.push_back({c});
    } else {
      joins->push_back(c);
    }
  }
  return runs;
}

/// Replaces the middle layers of a run by one node.
void FoldRun(DagModel& model,
             const std::vector<std::size_t>& run,
             std::vector<std::size_t>& replacement) {
  constexpr std::size_t kShortestRun = 4;
  if (run.size() < kShortestRun) {
    return;
  }
  const std::set<std::size_t> middle(run.begin() + 1, run.end() - 1);
  DagNode folded;
  folded.kind = DagNodeKind::kFolded;
  folded.label =
      std::to_string(middle.size()) + " layers like " + model.clusters[run.front()].label;
  folded.cluster = model.clusters[run.front()].parent;
  const std::size_t id = model.nodes.size();
  for (std::size_t n = 0; n < id; ++n) {
    if (middle.contains(model.nodes[n].cluster)) {
      folded.tasks += model.nodes[n].tasks;
      folded.busy += model.nodes[n].busy;
      folded.critical += model.nodes[n].critical;
      replacement[n] = id;
    }
  }
  model.nodes.push_back(folded);
  replacement.push_back(id);
}

/// Boxes that hold a node, themselves or in a box inside.
std::vector<bool> BoxesInUse(const DagModel& model) {
  std::vector<bool> used(model.clusters.size());
  for (const DagNode& node : model.nodes) {
    for (std::size_t c = node.cluster; c != DagCluster::kNone; c = model.clusters[c].parent) {
      used[c] = true;
    }
  }
  return used;
}

/// Drops boxes that hold nothing, and renumbers.
void DropEmptyBoxes(DagModel& model) {
  const std::vector<bool> used = BoxesInUse(model);
  std::vector<std::size_t> renumbered(model.clusters.size(), DagCluster::kNone);
  std::vector<DagCluster> kept;
  for (std::size_t c = 0; c < used.size(); ++c) {
    if (used[c]) {
      renumbered[c] = kept.size();
      kept.push_back(model.clusters[c]);
    }
  }
  for (DagCluster& cluster : kept) {
    const bool inner = cluster.parent != DagCluster::kNone;
    cluster.parent = inner ? renumbered[cluster.parent] : DagCluster::kNone;
  }
  for (DagNode& node : model.nodes) {
    node.cluster = renumbered[node.cluster];
  }
  model.clusters = std::move(kept);
}

/// Drops replaced nodes, and renumbers.
DagModel Compact(const DagModel& model, const std::vector<std::size_t>& replacement) {
  DagModel compact;
  compact.title = model.title;
  compact.clusters = model.clusters;
  std::vector<std::size_t> renumbered(model.nodes.size());
  for (std::size_t n = 0; n < model.nodes.size(); ++n) {
    if (replacement[n] == n) {
      renumbered[n] = compact.nodes.size();
      compact.nodes.push_back(model.nodes[n]);
    }
  }
  std::vector<std::size_t> become(replacement.size());
  std::transform(replacement.begin(), replacement.end(), become.begin(),
                 [&](std::size_t node) { return renumbered[node]; });
  compact.edges = MovedEdges(model.edges, become);
  DropEmptyBoxes(compact);
  return compact;
}

}  // namespace

DagModel FoldAlikeLayers(DagModel model) {
  std::vector<std::size_t> replacement(model.nodes.size());
  for (std::size_t n = 0; n < replacement.size(); ++n) {
    replacement[n] = n;
  }
  for (const auto& run : AlikeRuns(model)) {
    FoldRun(model, run, replacement);
  }
  return Compact(model, replacement);
}

}  // namespace dcsim
