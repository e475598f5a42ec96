#include "tools/views/schedule_dag.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_text.h"
#include "tests/tools/temporary_folder.h"
#include "tests/tools/views/predicted_step.h"
#include "tools/common/file.h"
#include "tools/views/dag_model.h"

namespace dcsim {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string Draw(const PredictedStep& step,
                 const std::string& name,
                 DagForm form = DagForm::kLarge) {
  const TemporaryFolder folder;
  WriteScheduleDag(folder / name, form, step.schedule, step.graph, step.timeline);
  return ReadFile(folder / name);
}

std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(ScheduleDagTest, DotHoldsEveryNodeAndEdge) {
  const PredictedStep step = PredictStack(6);
  const DagModel model = FoldSchedule(step.schedule, step.graph, step.timeline);
  const std::string dot = Draw(step, "a.dot");
  EXPECT_EQ(Count(dot, " -> "), model.edges.size());
  EXPECT_EQ(Count(dot, "fillcolor="), model.nodes.size());
  EXPECT_EQ(Count(dot, "subgraph cluster_"), model.clusters.size());
}

TEST(ScheduleDagTest, DotNamesWhatIsDrawn) {
  const std::string dot = Draw(PredictStack(6), "a.dot");
  EXPECT_THAT(dot, StartsWith("digraph schedule {"));
  EXPECT_THAT(dot, HasSubstr("label=\"stack, ZeRO-3, aten, 2 ranks: step "));
  EXPECT_THAT(dot, HasSubstr("label=\"4 layers like model.layers.0"));
  EXPECT_THAT(dot, HasSubstr("label=\"model.layers.5\""));
}

// Blue gathers, orange reductions, grey copies, green optimizer, dashed folded layers.
TEST(ScheduleDagTest, ColoursFollowTheKinds) {
  const PredictedStep step = PredictStack(6);
  const DagModel model = FoldSchedule(step.schedule, step.graph, step.timeline);
  const std::string dot = Draw(step, "a.dot");
  const auto expect = [&](DagNodeKind kind, const std::string& mark) {
    const auto of_kind = std::count_if(model.nodes.begin(), model.nodes.end(),
                                       [kind](const DagNode& node) { return node.kind == kind; });
    EXPECT_EQ(Count(dot, mark), static_cast<std::size_t>(of_kind)) << mark;
  };
  expect(DagNodeKind::kGather, "#9ecae9");
  expect(DagNodeKind::kReduce, "#fdae6b");
  expect(DagNodeKind::kCopy, "#d9d9d9");
  expect(DagNodeKind::kOptimizer, "#a1d99b");
  expect(DagNodeKind::kFolded, "filled,dashed");
}

// Nodes and edges on the path, and nothing else.
TEST(ScheduleDagTest, CriticalPathIsRed) {
  const PredictedStep step = PredictStack(6);
  const DagModel model = FoldSchedule(step.schedule, step.graph, step.timeline);
  const auto nodes = std::count_if(model.nodes.begin(), model.nodes.end(),
                                   [](const DagNode& node) { return node.critical > Duration(); });
  const auto edges = std::count_if(model.edges.begin(), model.edges.end(),
                                   [](const DagEdge& edge) { return edge.critical; });
  EXPECT_EQ(Count(Draw(step, "a.dot"), "color=\"#d62728\""),
            static_cast<std::size_t>(nodes + edges));
}

TEST(ScheduleDagTest, SvgIsAPicture) {
  const std::string svg = Draw(PredictStack(6), "a.svg");
  EXPECT_THAT(svg, StartsWith("<?xml"));
  EXPECT_THAT(svg, HasSubstr("</svg>"));
  EXPECT_THAT(svg, HasSubstr("4 layers like model.layers.0"));
}

// A sheet across: wider than high, and small enough for a page of documentation.
TEST(ScheduleDagTest, PageIsASheetAcross) {
  const std::string svg = Draw(PredictStack(40), "a.svg", DagForm::kPage);
  EXPECT_THAT(svg, HasSubstr("model.layers: 40 layers"));
  EXPECT_LT(svg.size(), 60'000U);
  const std::size_t at = svg.find("<svg width=\"");
  ASSERT_NE(at, std::string::npos);
  const double width = std::stod(svg.substr(at + 12));
  const double height = std::stod(svg.substr(svg.find("height=\"", at) + 8));
  EXPECT_GT(width, height);
}

TEST(ScheduleDagTest, PageIsTheSameEachTime) {
  const PredictedStep step = PredictStack(6);
  EXPECT_EQ(Draw(step, "a.dot", DagForm::kPage), Draw(step, "a.dot", DagForm::kPage));
}

TEST(ScheduleDagTest, OtherEndingIsAnError) {
  for (const std::string name : {"a.jpg", "a", "a.svg.gz", ".svg"}) {
    EXPECT_EQ(ErrorText([&] { CheckDagPath(name); }),
              name + ": expected a name that ends in .svg, .pdf, .png or .dot");
  }
}

TEST(ScheduleDagTest, KnownEndingsPass) {
  for (const std::string name : {"a.svg", "b/a.pdf", "a.x.png", "a.dot"}) {
    EXPECT_NO_THROW(CheckDagPath(name)) << name;
  }
}

// A layout that a person waits for: 36 layers and 13,000 tasks, at most ten seconds on any machine
// and in any build. (It takes 0.1 s; without folding, minutes.)
TEST(ScheduleDagTest, Qwen3IsDrawnInTenSeconds) {
  const PredictedStep step = PredictWorkload("qwen3-8b");
  const TemporaryFolder folder;
  const auto start = std::chrono::steady_clock::now();
  WriteScheduleDag(folder / "a.svg", DagForm::kLarge, step.schedule, step.graph, step.timeline);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_THAT(ReadFile(folder / "a.svg"), HasSubstr("34 layers like model.layers.0"));
}

}  // namespace
}  // namespace dcsim
