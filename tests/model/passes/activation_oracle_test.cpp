// What DeepSpeed's own activation passes decided (tools/oracles/record_activations.py), decided
// again: random graphs each way in full, and what leaves of the committed workloads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/document.h"
#include "model/passes/deepcompile/activation_moves.h"
#include "tests/support/row_name.h"
#include "tests/support/source_folder.h"
#include "tests/support/workloads.h"
#include "tools/common/file.h"

namespace dcsim {
namespace {

struct Release {
  std::string name;
  const char* number;
  DeepSpeedVersion version;
};

class ActivationOracleTest : public testing::TestWithParam<Release> {
 protected:
  static Json Document() {
    return Json::parse(ReadFile(SourceFolder() + "/tests/data/deepcompile/activations-" +
                                GetParam().number + ".json.gz"));
  }
};

/// Rows of the file as nodes (tools/oracles/deepcompile_graphs.py); the order is theirs.
PassGraph GraphOf(const Json& row) {
  PassGraph graph;
  for (const Json& each : row["nodes"]) {
    PassNode node;
    node.kind = static_cast<PassNodeKind>(each[0].get<int>());
    node.args = each[2].get<std::vector<std::uint32_t>>();
    graph.nodes.push_back(node);
  }
  return graph;
}

std::vector<std::uint32_t> OrderOf(const PassGraph& graph) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
    order.push_back(i);
  }
  return order;
}

ActivationGraph ActivationsOf(const Json& row) {
  ActivationGraph activations;
  for (const Json& each : row["tensors"]) {
    activations.tensors.push_back({each[0].get<bool>(), each[1].get<bool>(), each[2].get<bool>(),
                                   each[3].get<bool>(), each[4].get<bool>(),
                                   Bytes(each[5].get<std::int64_t>())});
  }
  activations.returned = row["returned"].get<std::vector<std::uint32_t>>();
  activations.saved = row["saved"].get<std::vector<std::uint32_t>>();
  return activations;
}

std::vector<MovedActivation> MovedOf(const Json& rows) {
  std::vector<MovedActivation> moved;
  for (const Json& each : rows) {
    const Bytes copied(each[1].get<std::int64_t>());
    moved.push_back({each[0].get<std::uint32_t>(), copied,
                     each.size() > 2 ? Bytes(each[2].get<std::int64_t>()) : copied});
  }
  return moved;
}

GraphEventKind KindOf(const Json& name) {
  if (name == "offload") {
    return GraphEventKind::kOffloadActivation;
  }
  return name == "reload" ? GraphEventKind::kReloadActivation : GraphEventKind::kWaitActivation;
}

std::vector<ActivationStep> StepsOf(const Json& rows) {
  std::vector<ActivationStep> steps;
  for (const Json& each : rows) {
    steps.push_back({each[0].get<std::size_t>(), KindOf(each[1]), each[2].get<std::uint32_t>()});
  }
  return steps;
}

std::vector<std::uint32_t> NodesOf(const std::vector<MovedActivation>& moved) {
  std::vector<std::uint32_t> nodes;
  nodes.reserve(moved.size());
  for (const MovedActivation& each : moved) {
    nodes.push_back(each.node);
  }
  return nodes;
}

TEST_P(ActivationOracleTest, TheSameActivationsLeaveAtTheSamePlaces) {
  const Json document = Document();
  ASSERT_GE(document["forward"].size(), 300U);
  std::size_t left = 0;
  std::size_t stayed = 0;
  for (std::size_t i = 0; i < document["forward"].size(); ++i) {
    const Json& row = document["forward"][i];
    const PassGraph graph = GraphOf(row);
    const auto moved = FindMovable(graph, ActivationsOf(row), GetParam().version);
    EXPECT_EQ(moved, MovedOf(row["moved"])) << "forward " << i;
    EXPECT_EQ(PlaceOffloads(graph, OrderOf(graph), moved), StepsOf(row["offloads"]))
        << "forward " << i;
    const auto leaving = KeepFitting(moved, row["headroom"].get<double>());
    EXPECT_EQ(NodesOf(leaving), row["left"].get<std::vector<std::uint32_t>>()) << "forward " << i;
    EXPECT_EQ(PlaceOffloads(graph, OrderOf(graph), leaving), StepsOf(row["kept_offloads"]))
        << "forward " << i;
    left += leaving.size();
    stayed += moved.size() - leaving.size();
  }
  // The rows would prove little if nothing could leave, or all of it stayed.
  EXPECT_GE(left, 100U);
  EXPECT_GE(stayed, 100U);
}

TEST_P(ActivationOracleTest, TheyComeBackAtTheSamePlaces) {
  const Json document = Document();
  ASSERT_GE(document["backward"].size(), 300U);
  std::size_t early = 0;
  std::size_t late = 0;
  for (std::size_t i = 0; i < document["backward"].size(); ++i) {
    const Json& row = document["backward"][i];
    const PassGraph graph = GraphOf(row);
    ReloadInputs inputs;
    inputs.milliseconds = row["times"].get<std::vector<double>>();
    inputs.peaks = row["peaks"].get<std::vector<double>>();
    inputs.budget = row["budget"].get<double>();
    inputs.bytes_per_second = row["rate"].get<double>();
    const auto steps = PlaceReloads(graph, OrderOf(graph), MovedOf(row["moved"]), inputs);
    EXPECT_EQ(steps, StepsOf(row["reloads"])) << "backward " << i;
    for (const ActivationStep& reload : steps) {
      for (const ActivationStep& wait : steps) {
        if (wait.node == reload.node && wait.kind == GraphEventKind::kWaitActivation &&
            reload.kind == GraphEventKind::kReloadActivation) {
          (reload.before < wait.before ? early : late) += 1;
        }
      }
    }
  }
  EXPECT_GE(early, 100U);
  EXPECT_GE(late, 100U);
}

/// [value, bytes copied, bytes that stay taken otherwise]
Json NamesOf(const Graph& graph,
             const PassGraph& nodes,
             const std::vector<MovedActivation>& moved) {
  Json rows = Json::array();
  for (const MovedActivation& each : moved) {
    rows.push_back({graph.value(nodes.nodes[each.node].value).name, each.copied.count(),
                    each.resident.count()});
  }
  return rows;
}

TEST_P(ActivationOracleTest, TheSameActivationsOfCommittedWorkloadsLeave) {
  constexpr int kRanks = 8;
  const Json document = Document();
  std::size_t count = 0;
  for (const Json& row : document["workloads"]) {
    const Graph graph = WorkloadGraph(row["workload"]);
    const PassGraph nodes = BuildPassGraph(graph, 0, kRanks, {});
    const auto activations = DescribeActivations(graph, 0, nodes, GetParam().version);
    const auto moved = FindMovable(nodes, activations, GetParam().version);
    EXPECT_EQ(NamesOf(graph, nodes, moved), row["moved"]) << row["workload"];
    Json left = Json::array();
    for (const Json& each :
         NamesOf(graph, nodes, KeepFitting(moved, row["headroom"].get<double>()))) {
      left.push_back(each[0]);
    }
    EXPECT_EQ(left, row["left"]) << row["workload"];
    count += moved.size();
  }
  EXPECT_GE(count, 100U);
}

INSTANTIATE_TEST_SUITE_P(Releases,
                         ActivationOracleTest,
                         testing::Values(Release{"V0196", "0.19.6", DeepSpeedVersion::kRelease0196},
                                         Release{"V0198", "0.19.8",
                                                 DeepSpeedVersion::kRelease0198}),
                         RowName());

}  // namespace
}  // namespace dcsim
