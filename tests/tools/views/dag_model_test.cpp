#include "tools/views/dag_model.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/ir/task_label.h"
#include "sim/analysis/critical_path.h"
#include "tests/tools/views/predicted_step.h"

namespace dcsim {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

DagModel Fold(const PredictedStep& step) {
  return FoldSchedule(step.schedule, step.graph, step.timeline);
}

/// "forward / model.layers.0 / up".
std::string NameOf(const DagModel& model, std::size_t node) {
  std::string name = model.nodes[node].label;
  for (std::size_t c = model.nodes[node].cluster; c != DagCluster::kNone;
       c = model.clusters[c].parent) {
    name.insert(0, model.clusters[c].label + " / ");
  }
  return name;
}

std::vector<std::string> Names(const DagModel& model) {
  std::vector<std::string> names;
  for (std::size_t n = 0; n < model.nodes.size(); ++n) {
    names.push_back(NameOf(model, n));
  }
  return names;
}

/// The node with this name; a failed test when there is none.
const DagNode& Node(const DagModel& model, const std::string& name) {
  const auto names = Names(model);
  const auto found = std::find(names.begin(), names.end(), name);
  EXPECT_NE(found, names.end()) << name;
  return model.nodes[static_cast<std::size_t>(found - names.begin()) % model.nodes.size()];
}

std::vector<std::string> Edges(const DagModel& model) {
  std::vector<std::string> edges;
  for (const DagEdge& edge : model.edges) {
    edges.push_back(NameOf(model, edge.from) + " -> " + NameOf(model, edge.to));
  }
  return edges;
}

TEST(DagModelTest, TitleSaysWhatIsDrawn) {
  const PredictedStep step = PredictStack(1);
  EXPECT_THAT(Fold(step).title, HasSubstr("stack, ZeRO-3, aten, 2 ranks: step "));
  EXPECT_THAT(Fold(step).title, HasSubstr("(predicted)"));
}

// A step that stopped at its first product has no backward and no critical path.
TEST(DagModelTest, StoppedStepIsDrawnUpToTheStop) {
  PredictedStep step = PredictStack(1);
  std::size_t product = 0;
  while (TaskLabel(step.schedule, step.graph, TaskId(product)) != "aten::mm model.layers.0.up") {
    ++product;
  }
  step.timeline.stop = TimelineStop{TaskId(product), SimTime(), "out of memory: up"};
  const DagModel model = Fold(step);
  EXPECT_THAT(model.title, HasSubstr(": out of memory: up after "));
  EXPECT_THAT(
      Names(model),
      ElementsAre("forward / gather model.embed.weight", "forward / model.embed",
                  "forward / model.layers.0 / gather up.weight", "forward / model.layers.0 / up"));
  EXPECT_EQ(model.nodes.back().critical, Duration());
}

TEST(DagModelTest, StepThatCannotBeginHasNoNodes) {
  PredictedStep step = PredictStack(1);
  step.timeline = Timeline();
  step.timeline.stop = TimelineStop{TaskId::None(), SimTime(), "out of memory"};
  EXPECT_THAT(Names(Fold(step)), IsEmpty());
}

// Ops stand for their module, gathers for their parameter, in the box of their layer and phase. The
// loss and the first gradient belong to no module: they are drawn with the op before.
TEST(DagModelTest, ForwardIsDrawnByModule) {
  const auto names = Names(Fold(PredictStack(1)));
  std::vector<std::string> forward;
  std::copy_if(names.begin(), names.end(), std::back_inserter(forward),
               [](const std::string& name) { return name.starts_with("forward"); });
  EXPECT_THAT(forward, ElementsAre("forward / gather model.embed.weight", "forward / model.embed",
                                   "forward / model.layers.0 / gather up.weight",
                                   "forward / model.layers.0 / up",
                                   "forward / model.layers.0 / gather down.weight",
                                   "forward / model.layers.0 / down",
                                   "forward / gather head.weight", "forward / head"));
}

// head's product and the sum behind it; in the backward a weight gradient and a product, and in
// head's the first gradient too.
TEST(DagModelTest, NodesCountTheirTasks) {
  const DagModel model = Fold(PredictStack(1));
  EXPECT_EQ(Node(model, "forward / model.embed").tasks, 1U);
  EXPECT_EQ(Node(model, "forward / head").tasks, 2U);
  EXPECT_EQ(Node(model, "backward / model.layers.0 / up").tasks, 2U);
  EXPECT_EQ(Node(model, "backward / head").tasks, 3U);
}

TEST(DagModelTest, KindsFollowTheTasks) {
  const DagModel model = Fold(PredictStack(1));
  EXPECT_EQ(Node(model, "forward / model.embed").kind, DagNodeKind::kCompute);
  EXPECT_EQ(Node(model, "forward / gather head.weight").kind, DagNodeKind::kGather);
  EXPECT_EQ(Node(model, "backward / gradient of head.weight").kind, DagNodeKind::kCopy);
  EXPECT_EQ(Node(model, "backward / flush 1: reduce 4 gradients").kind, DagNodeKind::kReduce);
  EXPECT_EQ(Node(model, "optimizer / optimizer-step").kind, DagNodeKind::kOptimizer);
}

TEST(DagModelTest, GatherLeadsToTheModuleThatUsesIt) {
  EXPECT_THAT(
      Edges(Fold(PredictStack(1))),
      Contains("forward / model.layers.0 / gather up.weight -> forward / model.layers.0 / up"));
}

TEST(DagModelTest, ModulesFollowEachOther) {
  const auto edges = Edges(Fold(PredictStack(1)));
  EXPECT_THAT(edges, Contains("forward / model.embed -> forward / model.layers.0 / up"));
  EXPECT_THAT(edges, Contains("forward / head -> backward / head"));
}

TEST(DagModelTest, GradientLeadsToItsReduction) {
  EXPECT_THAT(Edges(Fold(PredictStack(1))), Contains("backward / gradient of model.embed.weight -> "
                                                     "backward / flush 1: reduce 4 gradients"));
}

TEST(DagModelTest, EveryEdgeStandsOnce) {
  for (const int layers : {1, 6}) {
    const DagModel model = Fold(PredictStack(layers));
    std::set<std::pair<std::size_t, std::size_t>> ends;
    for (const DagEdge& edge : model.edges) {
      EXPECT_TRUE(ends.emplace(edge.from, edge.to).second) << NameOf(model, edge.from);
      EXPECT_NE(edge.from, edge.to);
    }
  }
}

// Folding

TEST(DagModelTest, ThreeAlikeLayersAreDrawnEach) {
  const auto names = Names(Fold(PredictStack(3)));
  EXPECT_THAT(names, Contains("forward / model.layers.1 / up"));
  EXPECT_THAT(names, Not(Contains(HasSubstr("layers like"))));
}

// First and last stay; the backward comes to the last layer first.
TEST(DagModelTest, FourAlikeLayersAreFolded) {
  const auto names = Names(Fold(PredictStack(4)));
  EXPECT_THAT(names, Contains("forward / 2 layers like model.layers.0"));
  EXPECT_THAT(names, Contains("backward / 2 layers like model.layers.3"));
  EXPECT_THAT(names, Contains("forward / model.layers.0 / up"));
  EXPECT_THAT(names, Contains("forward / model.layers.3 / up"));
  EXPECT_THAT(names, Not(Contains(HasSubstr("model.layers.1 /"))));
}

TEST(DagModelTest, LayerThatDiffersEndsARun) {
  std::string text = StackText(6);
  const std::string usual = "@model.layers.3.up";
  text.replace(text.find(usual), usual.size(), "@model.layers.3.other");
  PlanSpec spec;
  spec.options.reduce_bucket = 1'000'000;
  const auto names = Names(Fold(PredictedStep(ParseGraphText(text), spec, 2)));
  EXPECT_THAT(names, Not(Contains(HasSubstr("forward / 4 layers"))));
  EXPECT_THAT(names, Contains("forward / model.layers.3 / other"));
}

// Each of the folded layers has two products and two gathers in the forward.
TEST(DagModelTest, FoldedNodeAddsUpItsLayers) {
  const DagModel folded = Fold(PredictStack(6));
  const DagNode& node = Node(folded, "forward / 4 layers like model.layers.0");
  EXPECT_EQ(node.kind, DagNodeKind::kFolded);
  EXPECT_EQ(node.tasks, 4U * 4U);
  Duration one_layer;
  for (const std::string part : {"up", "down", "gather up.weight", "gather down.weight"}) {
    one_layer += Node(folded, "forward / model.layers.0 / " + part).busy;
  }
  EXPECT_EQ(node.busy, one_layer * 4);
}

TEST(DagModelTest, FoldedNodeStandsBetweenItsNeighbours) {
  const auto edges = Edges(Fold(PredictStack(6)));
  EXPECT_THAT(edges, Contains("forward / model.layers.0 / down -> "
                              "forward / 4 layers like model.layers.0"));
  EXPECT_THAT(edges, Contains("forward / 4 layers like model.layers.0 -> "
                              "forward / model.layers.5 / up"));
}

TEST(DagModelTest, NoBoxIsEmpty) {
  const DagModel model = Fold(PredictStack(6));
  std::set<std::size_t> used;
  for (const DagNode& node : model.nodes) {
    for (std::size_t c = node.cluster; c != DagCluster::kNone; c = model.clusters[c].parent) {
      used.insert(c);
    }
  }
  EXPECT_EQ(used.size(), model.clusters.size());
}

// Times

bool IsDrawn(TaskKind kind) {
  return kind != TaskKind::kSetTangents && kind != TaskKind::kClearGradients;
}

TEST(DagModelTest, NodesShareTheDeviceTimeOfTheStep) {
  const PredictedStep step = PredictStack(6);
  Duration spans;
  for (const Span& span : step.timeline.spans) {
    const bool drawn = IsDrawn(step.schedule.task(span.task).kind);
    spans += drawn ? span.end - span.start : Duration();
  }
  Duration nodes;
  for (const DagNode& node : Fold(step).nodes) {
    nodes += node.busy;
  }
  EXPECT_EQ(nodes, spans);
}

TEST(DagModelTest, NodesShareTheCriticalPath) {
  const PredictedStep step = PredictStack(6);
  Duration path;
  for (const CriticalPiece& piece : FindStepCriticalPath(step.timeline, step.schedule)) {
    const bool drawn = !piece.on_host && IsDrawn(step.schedule.task(piece.task).kind);
    path += drawn ? piece.end - piece.start : Duration();
  }
  Duration nodes;
  for (const DagNode& node : Fold(step).nodes) {
    nodes += node.critical;
  }
  EXPECT_GT(path, Duration());
  EXPECT_EQ(nodes, path);
}

TEST(DagModelTest, EdgeBetweenCriticalNodesIsCritical) {
  const DagModel model = Fold(PredictStack(6));
  for (const DagEdge& edge : model.edges) {
    const bool both =
        model.nodes[edge.from].critical > Duration() && model.nodes[edge.to].critical > Duration();
    EXPECT_TRUE(!edge.critical || both) << NameOf(model, edge.from);
  }
}

// Micro-steps

TEST(DagModelTest, LastMicroStepIsDrawn) {
  PlanSpec spec;
  spec.options.reduce_bucket = 1'000'000;
  spec.options.gradient_accumulation_steps = 3;
  const DagModel model = Fold(PredictedStep(ParseGraphText(StackText(1)), spec, 2));
  EXPECT_THAT(model.title, HasSubstr(", last of 3 micro-steps"));
  EXPECT_EQ(Node(model, "forward / model.embed").tasks, 1U);
}

}  // namespace
}  // namespace dcsim
