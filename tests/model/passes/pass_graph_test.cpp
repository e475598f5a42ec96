// What DeepCompile's insertion makes of small graphs, and what its profilers see there, by hand.

#include "model/passes/deepcompile/pass_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/passes/deepcompile/memory_profile.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

using testing::ElementsAre;

/// "G w" gathers w, W waits for it, F frees it, R reduces its gradient; ops by target, "item" of an
/// op with several results; then what the node takes, as positions in the list.
std::vector<std::string> NodesOf(const Graph& graph, std::size_t g) {
  const PassGraph nodes = BuildPassGraph(graph, g, 2, {});
  std::vector<std::string> lines;
  for (const PassNode& node : nodes.nodes) {
    std::string line;
    switch (node.kind) {
      case PassNodeKind::kPlaceholder:
        line = "input";
        break;
      case PassNodeKind::kOp:
        line = graph.target(node.op).substr(std::string_view("aten::").size());
        break;
      case PassNodeKind::kItem:
        line = "item";
        break;
      case PassNodeKind::kOutput:
        line = "output";
        break;
      default:
        line = std::string(1, "   GWFR"[static_cast<std::size_t>(node.kind)]) + " " +
               graph.param(node.param).name;
    }
    for (const std::uint32_t arg : node.args) {
      line += " " + std::to_string(arg);
    }
    lines.push_back(line);
  }
  return lines;
}

// Forward of TwoLayers: inputs x, w1, w2 (0 to 2); gather and wait of each parameter ahead of all
// ops; a release behind each product, which the next op takes instead of the product.
TEST(PassGraphTest, EachUseIsFollowedByAReleaseThatPassesTheResultOn) {
  EXPECT_THAT(NodesOf(TwoLayers(), 0),
              ElementsAre("input", "input", "input", "G w1 1", "W w1 3", "G w2 2", "W w2 5",
                          "mm 0 4", "F w1 7", "mm 8 6", "F w2 9", "sum 10", "output 11 8"));
}

// Backward: inputs t, a, w2, x. Each gradient is reduced right behind its product, and the output
// takes the reductions.
TEST(PassGraphTest, GradientsAreReducedRightBehindTheirOps) {
  EXPECT_THAT(NodesOf(TwoLayers(), 1), ElementsAre("input", "input", "input", "input", "G w2 2",
                                                   "W w2 4", "fill 0", "mm 1 6", "R w2 7", "mm 6 5",
                                                   "F w2 9", "mm 3 10", "R w1 11", "output 12 8"));
}

Graph Variety() {
  return ParseGraphText(R"(
graph variety 1 tokens
param a bfloat16[4,4]
param b bfloat16[4,4]
forward
  v: bfloat16[4,4] views a = aten::t(a)
  s: bfloat16[4,4] = aten::mul(b, b)
  p: bfloat16[4,4], q: bfloat16[4,4] = aten::pair(v, s)
  r: bfloat16[4,4] = aten::mm(q, a)
  l: bfloat16[] = aten::sum(p, r)
  loss l
)");
}

// a is used by pair, through a view, and by mm: two releases, that of pair behind its first result.
// b stands twice in mul: two uses, and so two releases in a chain behind it, the later made nearer.
TEST(PassGraphTest, ViewsAreLookedThroughAndSeveralResultsAreReleasedBehindTheFirst) {
  EXPECT_THAT(NodesOf(Variety(), 0),
              ElementsAre("input", "input", "G a 0", "W a 2", "G b 1", "W b 4", "t 3", "mul 5 5",
                          "F b 7", "F b 8", "pair 6 9", "item 10", "F a 11", "item 10", "mm 13 3",
                          "F a 14", "sum 12 15", "output 16"));
  const PassGraph nodes = BuildPassGraph(Variety(), 0, 2, {});
  EXPECT_EQ(nodes.nodes[8].uses, 2);   // of b
  EXPECT_EQ(nodes.nodes[15].uses, 2);  // of a
}

// Waits and views have no use of their own: a's gather is last used by mm, b's by mul.
TEST(PassGraphTest, TheLastUseIsFoundThroughWaitsAndViews) {
  const auto last = FindLastUses(BuildPassGraph(Variety(), 0, 2, {}));
  EXPECT_EQ(last[2], 14U);   // gather of a: mm
  EXPECT_EQ(last[6], 10U);   // its view: pair
  EXPECT_EQ(last[4], 7U);    // gather of b: mul
  EXPECT_EQ(last[16], 17U);  // the sum: the output
}

TEST(PassGraphTest, GathersKnowTheirBytesAndNames) {
  const PassGraph nodes = BuildPassGraph(TwoLayers(), 1, 2, {});
  const auto gather = std::find_if(nodes.nodes.begin(), nodes.nodes.end(), [](const PassNode& n) {
    return n.kind == PassNodeKind::kGather;
  });
  ASSERT_NE(gather, nodes.nodes.end());
  EXPECT_EQ(gather->tensor_bytes, Bytes(10));                 // 5 elements of bfloat16
  EXPECT_EQ(gather->allocated_bytes, Bytes(12));              // 6, for two equal shards
  EXPECT_EQ(gather->name, "allgather_ds_param_primals_3_1");  // third input of the forward
}

/// TwoLayers on two ranks, no workspaces: every block below takes 512 bytes. Resident: weight
/// shards, gradient shards with states, x: three blocks. The loss of the step before is held.
class MemoryProfileTest : public testing::Test {
 protected:
  static constexpr std::int64_t kBlock = 512;
  const Graph graph = TwoLayers();
  const PolicyInputs inputs = {};
  const MemoryProfile memory{graph, inputs, 2};
};

// The backward finds what the forward saved, a, besides.
TEST_F(MemoryProfileTest, BeforeAGraphThereAreStatesSavedValuesAndHeldOutputs) {
  EXPECT_EQ(memory.Before(0), Bytes(4 * kBlock));
  EXPECT_EQ(memory.Before(1), Bytes(5 * kBlock));
}

// In blocks above the four: gathers of w1 and w2 take 1 each before any op; a, made by the first
// product, stays (it is saved): 3; F w1 frees w1 behind it; b 3; F w2 behind it; l, the loss, 3
// while b is alive, which goes with it.
TEST_F(MemoryProfileTest, PeaksFollowGathersReleasesAndLastUses) {
  const PassGraph nodes = BuildPassGraph(graph, 0, 2, {});
  std::vector<PassStep> steps;
  for (std::uint32_t i = 0; i < nodes.nodes.size(); ++i) {
    steps.push_back({i, {}});
  }
  std::vector<std::int64_t> blocks;
  for (const Bytes peak : memory.Peaks(0, nodes, steps)) {
    blocks.push_back(peak.count() / kBlock - 4);
  }
  EXPECT_THAT(blocks, ElementsAre(0, 0, 0,     // inputs
                                  1, 1, 2, 2,  // gathers and waits
                                  3, 3,        // mm, F w1
                                  3, 3,        // mm, F w2
                                  3, 2));      // sum, output: a and l
}

// One by one: a gather holds its parameter twice (2), a product its own parameter, what is alive
// and what it makes: mm(x, w1) 2, mm(a, w2) 3, sum 3.
TEST_F(MemoryProfileTest, OperatorsAreProfiledWithTheirOwnParametersAlone) {
  EXPECT_EQ(memory.OperatorPeak(0, BuildPassGraph(graph, 0, 2, {})), Bytes((4 + 3) * kBlock));
}

}  // namespace
}  // namespace dcsim
