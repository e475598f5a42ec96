#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/views/dag_places.h"

namespace dcsim {

/// Attributes of Graphviz, by name.
using DrawingAttributes = std::vector<std::pair<std::string, std::string>>;

/// A graph as Graphviz takes it.
struct Drawing {
  static constexpr std::size_t kNone = SIZE_MAX;

  struct Cluster {
    std::size_t parent = kNone;  // the cluster around it, an earlier one
    DrawingAttributes attributes;
  };
  struct Node {
    std::size_t cluster = kNone;
    DrawingAttributes attributes;
  };
  struct Edge {
    std::size_t from = 0;
    std::size_t to = 0;
    DrawingAttributes attributes;
  };

  std::string layout = "dot";  // the engine: "nop" where nodes have their places
  DrawingAttributes attributes;
  DrawingAttributes node_defaults;
  std::vector<Cluster> clusters;
  std::vector<Node> nodes;
  std::vector<Edge> edges;
};

/// Colours of nodes by kind, and of their borders and of edges by whether they are critical.
std::string FillColour(DagNodeKind kind);
DrawingAttributes LineAttributes(bool critical, const std::string& otherwise);

/// Text in a label: Graphviz reads what follows a backslash.
std::string EscapedLabel(const std::string& text);

}  // namespace dcsim
