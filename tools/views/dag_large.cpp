#include "tools/views/dag_large.h"

#include "model/base/text.h"

namespace dcsim {
namespace {

std::string NodeLabel(const DagNode& node) {
  std::string label = EscapedLabel(node.label) + "\n" + FormatDuration(node.busy);
  if (node.tasks > 1) {
    label += ", " + std::to_string(node.tasks) + " tasks";
  }
  if (node.critical > Duration()) {
    label += "\ncritical " + FormatDuration(node.critical);
  }
  return label;
}

Drawing::Node DrawNode(const DagNode& node) {
  Drawing::Node drawn{node.cluster,
                      {{"label", NodeLabel(node)},
                       {"style", node.kind == DagNodeKind::kFolded ? "filled,dashed" : "filled"},
                       {"fillcolor", FillColour(node.kind)}}};
  for (const auto& attribute : LineAttributes(node.critical > Duration(), "#666666")) {
    drawn.attributes.push_back(attribute);
  }
  return drawn;
}

}  // namespace

Drawing DrawLargeDag(const DagModel& model) {
  Drawing drawing;
  drawing.attributes = {{"label", EscapedLabel(model.title)},
                        {"labelloc", "t"},
                        {"fontname", "Helvetica"},
                        {"rankdir", "TB"}};
  drawing.node_defaults = {{"shape", "box"}, {"fontname", "Helvetica"}, {"fontsize", "10"}};
  for (const DagCluster& cluster : model.clusters) {
    drawing.clusters.push_back(
        {cluster.parent,
         {{"label", EscapedLabel(cluster.label)}, {"style", "rounded"}, {"color", "#888888"}}});
  }
  for (const DagNode& node : model.nodes) {
    drawing.nodes.push_back(DrawNode(node));
  }
  for (const DagEdge& edge : model.edges) {
    drawing.edges.push_back({edge.from, edge.to, LineAttributes(edge.critical, "#999999")});
  }
  return drawing;
}

}  // namespace dcsim
