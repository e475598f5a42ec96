#include "tools/views/schedule_dag.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <graphviz/gvc.h>

#include "model/base/error.h"
#include "model/base/text.h"
#include "tools/common/file.h"
#include "tools/views/dag_model.h"

namespace dcsim {
namespace {

/// cgraph takes char* and does not write to it.
char* Mutable(const std::string& text) {
  return const_cast<char*>(text.c_str());
}

struct GraphClose {
  void operator()(Agraph_t* graph) const { agclose(graph); }
};
using GraphHandle = std::unique_ptr<Agraph_t, GraphClose>;

struct ContextFree {
  void operator()(GVC_t* context) const { gvFreeContext(context); }
};
using ContextHandle = std::unique_ptr<GVC_t, ContextFree>;

void SetAttribute(void* object, const std::string& name, const std::string& value) {
  agsafeset(object, Mutable(name), Mutable(value), Mutable(""));
}

std::string_view FillColour(DagNodeKind kind) {
  constexpr std::array<std::string_view, 6> kColours = {"#f4f4f4", "#9ecae9", "#fdae6b",
                                                        "#d9d9d9", "#a1d99b", "#ffffff"};
  return kColours[static_cast<std::size_t>(kind)];
}

std::string NodeLabel(const DagNode& node) {
  std::string label = node.label + "\n" + FormatDuration(node.busy);
  if (node.tasks > 1) {
    label += ", " + std::to_string(node.tasks) + " tasks";
  }
  if (node.critical > Duration()) {
    label += "\ncritical " + FormatDuration(node.critical);
  }
  return label;
}

std::vector<Agraph_t*> AddClusters(Agraph_t* root, const DagModel& model) {
  std::vector<Agraph_t*> clusters(model.clusters.size());
  const auto add = [&](std::size_t c, Agraph_t* parent) {
    clusters[c] = agsubg(parent, Mutable("cluster_" + std::to_string(c)), 1);
    SetAttribute(clusters[c], "label", model.clusters[c].label);
    SetAttribute(clusters[c], "style", "rounded");
    SetAttribute(clusters[c], "color", "#888888");
  };
  for (std::size_t c = 0; c < clusters.size(); ++c) {
    if (model.clusters[c].parent == DagCluster::kNone) {
      add(c, root);
    }
  }
  for (std::size_t c = 0; c < clusters.size(); ++c) {
    if (model.clusters[c].parent != DagCluster::kNone) {
      add(c, clusters[model.clusters[c].parent]);
    }
  }
  return clusters;
}

void SetNodeAttributes(Agnode_t* node, const DagNode& drawn) {
  SetAttribute(node, "label", NodeLabel(drawn));
  SetAttribute(node, "style", drawn.kind == DagNodeKind::kFolded ? "filled,dashed" : "filled");
  SetAttribute(node, "fillcolor", std::string(FillColour(drawn.kind)));
  const bool critical = drawn.critical > Duration();
  SetAttribute(node, "color", critical ? "#d62728" : "#666666");
  SetAttribute(node, "penwidth", critical ? "2.5" : "1");
}

GraphHandle MakeGraph(const DagModel& model) {
  GraphHandle root(agopen(Mutable("schedule"), Agdirected, nullptr));
  SetAttribute(root.get(), "label", model.title);
  SetAttribute(root.get(), "labelloc", "t");
  SetAttribute(root.get(), "fontname", "Helvetica");
  SetAttribute(root.get(), "rankdir", "TB");
  agattr(root.get(), AGNODE, Mutable("shape"), Mutable("box"));
  agattr(root.get(), AGNODE, Mutable("fontname"), Mutable("Helvetica"));
  agattr(root.get(), AGNODE, Mutable("fontsize"), Mutable("10"));
  const auto clusters = AddClusters(root.get(), model);
  std::vector<Agnode_t*> nodes;
  for (std::size_t n = 0; n < model.nodes.size(); ++n) {
    const std::string name = "n" + std::to_string(n);
    nodes.push_back(agnode(clusters[model.nodes[n].cluster], Mutable(name), 1));
    SetNodeAttributes(nodes.back(), model.nodes[n]);
  }
  for (const DagEdge& edge : model.edges) {
    Agedge_t* drawn = agedge(root.get(), nodes[edge.from], nodes[edge.to], nullptr, 1);
    SetAttribute(drawn, "color", edge.critical ? "#d62728" : "#999999");
    SetAttribute(drawn, "penwidth", edge.critical ? "2.5" : "1");
  }
  return root;
}

/// The graph as DOT text.
std::string WriteDot(Agraph_t* graph) {
  char* data = nullptr;
  std::size_t length = 0;
  std::FILE* stream = open_memstream(&data, &length);
  const bool written = stream != nullptr && agwrite(graph, stream) == 0;
  const bool closed = stream != nullptr && std::fclose(stream) == 0;
  std::string text = written && closed ? std::string(data, length) : "";
  std::free(data);
  if (text.empty()) {
    throw SystemError("Graphviz cannot write dot");
  }
  return text;
}

/// The graph laid out and drawn.
std::string Render(Agraph_t* graph, const std::string& format) {
  const ContextHandle context(gvContext());
  if (gvLayout(context.get(), graph, "dot") != 0) {
    throw SystemError("Graphviz cannot lay out the schedule");
  }
  char* data = nullptr;
  unsigned length = 0;
  const int code = gvRenderData(context.get(), graph, format.c_str(), &data, &length);
  std::string text = code == 0 ? std::string(data, length) : "";
  gvFreeRenderData(data);
  gvFreeLayout(context.get(), graph);
  if (code != 0) {
    throw SystemError("Graphviz cannot write " + format);
  }
  return text;
}

std::string EndingOf(const std::string& path) {
  return std::filesystem::path(path).extension().string();
}

}  // namespace

void CheckDagPath(const std::string& path) {
  constexpr std::array<std::string_view, 4> kEndings = {".svg", ".pdf", ".png", ".dot"};
  if (std::find(kEndings.begin(), kEndings.end(), EndingOf(path)) == kEndings.end()) {
    throw Error(path + ": expected a name that ends in " + JoinAlternatives(kEndings));
  }
}

void WriteScheduleDag(const std::string& path,
                      const Schedule& schedule,
                      const Graph& graph,
                      const Timeline& timeline) {
  CheckDagPath(path);
  const GraphHandle drawn = MakeGraph(FoldSchedule(schedule, graph, timeline));
  const std::string format = EndingOf(path).substr(1);
  WriteFile(path, format == "dot" ? WriteDot(drawn.get()) : Render(drawn.get(), format));
}

}  // namespace dcsim
