#include "model/graph/dag.h"

#include <algorithm>

#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/topological_sort.hpp>

#include "model/base/error.h"

namespace dcsim {
namespace {

using BoostGraph = boost::compressed_sparse_row_graph<boost::directedS>;

BoostGraph MakeBoostGraph(const EdgeList& graph) {
  return {boost::edges_are_unsorted_multi_pass, graph.edges.begin(), graph.edges.end(),
          graph.node_count};
}

/// The predecessors' best finish, node by node in topological order.
struct PathState {
  std::vector<Duration> finish;
  std::vector<std::uint32_t> previous;
};

constexpr std::uint32_t kNoNode = UINT32_MAX;

void Relax(PathState& state,
           std::span<const Duration> times,
           std::uint32_t from,
           std::uint32_t to) {
  const Duration finish = state.finish[from] + times[to];
  const bool better = finish > state.finish[to] || state.previous[to] == kNoNode;
  if (better || (finish == state.finish[to] && from < state.previous[to])) {
    state.finish[to] = finish;
    state.previous[to] = from;
  }
}

}  // namespace

std::optional<std::vector<std::uint32_t>> FindTopologicalOrder(const EdgeList& graph) {
  std::vector<std::uint32_t> order;
  order.reserve(graph.node_count);
  const BoostGraph boost_graph = MakeBoostGraph(graph);
  try {
    boost::topological_sort(boost_graph, std::back_inserter(order));
  } catch (const boost::not_a_dag&) {
    return std::nullopt;
  }
  std::reverse(order.begin(), order.end());
  return order;
}

DepthFirstSearch::DepthFirstSearch(const EdgeList& graph) : graph_(MakeBoostGraph(graph)) {}

std::vector<std::uint32_t> DepthFirstSearch::PostOrder(std::span<const std::uint32_t> roots,
                                                       const std::vector<bool>& left_out) const {
  std::vector<boost::default_color_type> colors(left_out.size());
  std::transform(left_out.begin(), left_out.end(), colors.begin(), [](bool out) {
    return out ? boost::default_color_type::black_color : boost::default_color_type::white_color;
  });
  std::vector<std::uint32_t> nodes;
  const boost::topo_sort_visitor visitor(std::back_inserter(nodes));
  for (const std::uint32_t root : roots) {
    if (colors[root] == boost::default_color_type::white_color) {
      boost::depth_first_visit(graph_, root, visitor, colors.data());
    }
  }
  return nodes;
}

std::vector<bool> Reachable(const EdgeList& graph, std::span<const std::uint32_t> sources) {
  const BoostGraph boost_graph = MakeBoostGraph(graph);
  std::vector<boost::default_color_type> colors(graph.node_count,
                                                boost::default_color_type::white_color);
  boost::queue<std::uint32_t> queue;
  for (const std::uint32_t source : sources) {
    if (colors[source] == boost::default_color_type::white_color) {
      boost::breadth_first_visit(boost_graph, source, queue,
                                 boost::make_bfs_visitor(boost::null_visitor()), colors.data());
    }
  }
  std::vector<bool> reached(graph.node_count);
  for (std::size_t v = 0; v < graph.node_count; ++v) {
    reached[v] = colors[v] != boost::default_color_type::white_color;
  }
  return reached;
}

CriticalPath FindCriticalPath(const EdgeList& graph, std::span<const Duration> times) {
  DCSIM_CHECK(times.size() == graph.node_count);
  if (graph.node_count == 0) {
    return {};
  }
  const auto order = FindTopologicalOrder(graph);
  DCSIM_CHECK(order.has_value()) << "the graph has a cycle";
  const BoostGraph boost_graph = MakeBoostGraph(graph);
  PathState state{std::vector<Duration>(times.begin(), times.end()),
                  std::vector<std::uint32_t>(graph.node_count, kNoNode)};
  for (const std::uint32_t from : *order) {
    const auto [begin, end] = boost::adjacent_vertices(std::size_t{from}, boost_graph);
    for (auto to = begin; to != end; ++to) {
      Relax(state, times, from, static_cast<std::uint32_t>(*to));
    }
  }
  const auto last = std::max_element(state.finish.begin(), state.finish.end());
  CriticalPath path{*last, {}};
  for (auto node = static_cast<std::uint32_t>(last - state.finish.begin()); node != kNoNode;
       node = state.previous[node]) {
    path.nodes.push_back(node);
  }
  std::reverse(path.nodes.begin(), path.nodes.end());
  return path;
}

}  // namespace dcsim
