#include "model/graph/dag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dcsim {
namespace {

// The graph of most tests, edges downwards:
//
//     0   4
//    / \  |
//   1   2 5
//    \ /
//     3
EdgeList DiamondAndPair() {
  return {6, {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {4, 5}}};
}

std::vector<Duration> Times(std::initializer_list<std::int64_t> all_ns) {
  std::vector<Duration> times;
  for (const std::int64_t ns : all_ns) {
    times.push_back(Duration::FromNs(ns));
  }
  return times;
}

TEST(TopologicalOrderTest, HoldsEveryNodeOnce) {
  const auto order = FindTopologicalOrder(DiamondAndPair());
  ASSERT_TRUE(order);
  EXPECT_THAT(*order, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(TopologicalOrderTest, PutsEveryEdgeForward) {
  // Ids fall along the edges, so the order of ids is no answer.
  const EdgeList graph{5, {{4, 2}, {2, 0}, {4, 3}, {3, 1}, {1, 0}}};
  const auto order = FindTopologicalOrder(graph);
  ASSERT_TRUE(order);
  std::vector<std::size_t> position(graph.node_count);
  for (std::size_t i = 0; i < order->size(); ++i) {
    position[(*order)[i]] = i;
  }
  for (const auto& [from, to] : graph.edges) {
    EXPECT_LT(position[from], position[to]) << from << " -> " << to;
  }
}

TEST(TopologicalOrderTest, ThereIsNoneForACycle) {
  EXPECT_EQ(FindTopologicalOrder({3, {{0, 1}, {1, 2}, {2, 1}}}), std::nullopt);
}

TEST(TopologicalOrderTest, ThereIsNoneForAnEdgeToItself) {
  EXPECT_EQ(FindTopologicalOrder({1, {{0, 0}}}), std::nullopt);
}

TEST(TopologicalOrderTest, OfNothingIsNothing) {
  EXPECT_EQ(FindTopologicalOrder({0, {}}), std::vector<std::uint32_t>());
}

TEST(DepthFirstSearchTest, LeavesEachNodeBehindThoseItLeadsTo) {
  const DepthFirstSearch search(DiamondAndPair());
  const std::vector<bool> none(6);
  const auto order = [&](const std::vector<std::uint32_t>& roots) {
    return search.PostOrder(roots, none);
  };
  EXPECT_THAT(order({0}), testing::ElementsAre(3, 1, 2, 0));
  EXPECT_THAT(order({2, 4, 0}), testing::ElementsAre(3, 2, 5, 4, 1, 0));
}

TEST(DepthFirstSearchTest, PathsEndAtWhatIsLeftOut) {
  const DepthFirstSearch search(DiamondAndPair());
  const auto order = [&](std::uint32_t root, std::uint32_t left_out) {
    std::vector<bool> out(6);
    out[left_out] = true;
    return search.PostOrder({&root, 1}, out);
  };
  EXPECT_THAT(order(0, 1), testing::ElementsAre(3, 2, 0));
  EXPECT_THAT(order(0, 3), testing::ElementsAre(1, 2, 0));
  EXPECT_THAT(order(0, 0), testing::IsEmpty());
}

TEST(ReachableTest, FollowsEdgesForwardOnly) {
  EXPECT_EQ(Reachable(DiamondAndPair(), std::vector<std::uint32_t>{1}),
            (std::vector<bool>{false, true, false, true, false, false}));
}

TEST(ReachableTest, JoinsTheSources) {
  EXPECT_EQ(Reachable(DiamondAndPair(), std::vector<std::uint32_t>{2, 4}),
            (std::vector<bool>{false, false, true, true, true, true}));
}

TEST(ReachableTest, WorksOnCycles) {
  EXPECT_EQ(Reachable({3, {{0, 1}, {1, 0}}}, std::vector<std::uint32_t>{1}),
            (std::vector<bool>{true, true, false}));
}

TEST(ReachableTest, WithoutSourcesIsNothing) {
  EXPECT_EQ(Reachable({2, {{0, 1}}}, {}), (std::vector<bool>{false, false}));
}

// 0-2-3 takes 1 + 5 + 2 = 8, 0-1-3 takes 1 + 4 + 2 = 7, 4-5 takes 7.
TEST(CriticalPathTest, IsTheHeaviestPath) {
  const CriticalPath path = FindCriticalPath(DiamondAndPair(), Times({1, 4, 5, 2, 3, 4}));
  EXPECT_EQ(path.length, Duration::FromNs(8));
  EXPECT_THAT(path.nodes, testing::ElementsAre(0, 2, 3));
}

TEST(CriticalPathTest, MayBeTheLighterGraphsPathWithFewerNodes) {
  const CriticalPath path = FindCriticalPath(DiamondAndPair(), Times({1, 4, 5, 2, 3, 6}));
  EXPECT_EQ(path.length, Duration::FromNs(9));
  EXPECT_THAT(path.nodes, testing::ElementsAre(4, 5));
}

// Both ways through the diamond take 1 + 5 + 2.
TEST(CriticalPathTest, TiesGoThroughTheEarlierNode) {
  const CriticalPath path = FindCriticalPath(DiamondAndPair(), Times({1, 5, 5, 2, 3, 4}));
  EXPECT_THAT(path.nodes, testing::ElementsAre(0, 1, 3));
}

TEST(CriticalPathTest, TiesBetweenEndsGoToTheEarlierNode) {
  const CriticalPath path = FindCriticalPath({2, {}}, Times({3, 3}));
  EXPECT_THAT(path.nodes, testing::ElementsAre(0));
}

// A node that takes no time still lies on the path that leads through it.
TEST(CriticalPathTest, KeepsNodesWithoutTime) {
  const CriticalPath path = FindCriticalPath({3, {{0, 1}, {1, 2}}}, Times({3, 0, 4}));
  EXPECT_EQ(path.length, Duration::FromNs(7));
  EXPECT_THAT(path.nodes, testing::ElementsAre(0, 1, 2));
}

TEST(CriticalPathTest, OfNothingHasNoLength) {
  const CriticalPath path = FindCriticalPath({0, {}}, {});
  EXPECT_EQ(path.length, Duration());
  EXPECT_TRUE(path.nodes.empty());
}

TEST(CriticalPathDeathTest, CyclesAreRefused) {
  EXPECT_DEATH(FindCriticalPath({2, {{0, 1}, {1, 0}}}, Times({1, 1})), "the graph has a cycle");
}

}  // namespace
}  // namespace dcsim
