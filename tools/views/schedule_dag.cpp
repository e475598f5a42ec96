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
#include "tools/views/dag_large.h"
#include "tools/views/dag_page.h"
#include "tools/views/dag_page_drawing.h"

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

void SetAttributes(void* object, const DrawingAttributes& attributes) {
  for (const auto& [name, value] : attributes) {
    agsafeset(object, Mutable(name), Mutable(value), Mutable(""));
  }
}

/// Those without a parent first: boxes are numbered as they were met, inner ones before outer.
std::vector<Agraph_t*> AddClusters(Agraph_t* root, const Drawing& drawing) {
  std::vector<Agraph_t*> clusters(drawing.clusters.size());
  for (const bool inner : {false, true}) {
    for (std::size_t c = 0; c < clusters.size(); ++c) {
      const std::size_t parent = drawing.clusters[c].parent;
      if ((parent != Drawing::kNone) == inner) {
        clusters[c] =
            agsubg(inner ? clusters[parent] : root, Mutable("cluster_" + std::to_string(c)), 1);
        SetAttributes(clusters[c], drawing.clusters[c].attributes);
      }
    }
  }
  return clusters;
}

GraphHandle MakeGraph(const Drawing& drawing) {
  GraphHandle root(agopen(Mutable("schedule"), Agdirected, nullptr));
  SetAttributes(root.get(), drawing.attributes);
  for (const auto& [name, value] : drawing.node_defaults) {
    agattr(root.get(), AGNODE, Mutable(name), Mutable(value));
  }
  const auto clusters = AddClusters(root.get(), drawing);
  std::vector<Agnode_t*> nodes;
  for (const Drawing::Node& node : drawing.nodes) {
    Agraph_t* around = node.cluster == Drawing::kNone ? root.get() : clusters[node.cluster];
    nodes.push_back(agnode(around, Mutable("n" + std::to_string(nodes.size())), 1));
    SetAttributes(nodes.back(), node.attributes);
  }
  for (const Drawing::Edge& edge : drawing.edges) {
    Agedge_t* drawn = agedge(root.get(), nodes[edge.from], nodes[edge.to], nullptr, 1);
    SetAttributes(drawn, edge.attributes);
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
std::string Render(Agraph_t* graph, const std::string& layout, const std::string& format) {
  const ContextHandle context(gvContext());
  if (gvLayout(context.get(), graph, layout.c_str()) != 0) {
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
                      DagForm form,
                      const Schedule& schedule,
                      const Graph& graph,
                      const Timeline& timeline) {
  CheckDagPath(path);
  const Drawing drawing = form == DagForm::kPage
                              ? DrawPage(FoldPage(schedule, graph, timeline))
                              : DrawLargeDag(FoldSchedule(schedule, graph, timeline));
  const GraphHandle drawn = MakeGraph(drawing);
  const std::string format = EndingOf(path).substr(1);
  WriteFile(path,
            format == "dot" ? WriteDot(drawn.get()) : Render(drawn.get(), drawing.layout, format));
}

}  // namespace dcsim
