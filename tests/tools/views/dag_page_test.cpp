#include "tools/views/dag_page.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/analysis/critical_path.h"
#include "tests/tools/views/predicted_step.h"
#include "tools/views/dag_page_drawing.h"
#include "tools/views/dag_page_merge.h"

namespace dcsim {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

DagPage Fold(const PredictedStep& step) {
  return FoldPage(step.schedule, step.graph, step.timeline);
}

/// "forward / model.layers / compute: up".
std::string NameOf(const DagPage& page, const PageBox& box) {
  const PageColumn& column = page.columns[box.column];
  return std::string(column.band == PageBand::kForward ? "forward" : "backward") + " / " +
         column.label + " / " + std::string(StreamRoleName(box.lane)) + ": " + box.label;
}

std::vector<std::string> Names(const DagPage& page) {
  std::vector<std::string> names;
  std::transform(page.boxes.begin(), page.boxes.end(), std::back_inserter(names),
                 [&](const PageBox& box) { return NameOf(page, box); });
  return names;
}

/// The box of this name; a failed test where there is none.
const PageBox& Box(const DagPage& page, const std::string& name) {
  const auto names = Names(page);
  const auto found = std::find(names.begin(), names.end(), name);
  EXPECT_NE(found, names.end()) << name;
  return page.boxes[static_cast<std::size_t>(found - names.begin()) % page.boxes.size()];
}

std::vector<std::string> Arrows(const DagPage& page, bool critical) {
  std::vector<std::string> arrows;
  for (const DagEdge& arrow : page.arrows) {
    if (arrow.critical == critical) {
      arrows.push_back(NameOf(page, page.boxes[arrow.from]) + " -> " +
                       NameOf(page, page.boxes[arrow.to]));
    }
  }
  return arrows;
}

TEST(DagPageTest, ForwardHasAColumnForAllLayersAndOneAtEitherEnd) {
  const auto names = Names(Fold(PredictStack(6)));
  std::vector<std::string> forward;
  std::copy_if(names.begin(), names.end(), std::back_inserter(forward),
               [](const std::string& name) { return name.starts_with("forward"); });
  EXPECT_THAT(forward, ElementsAre("forward / before the layers / compute: model.embed",
                                   "forward / before the layers / gather: all-gather",
                                   "forward / model.layers / compute: up",
                                   "forward / model.layers / compute: down",
                                   "forward / model.layers / gather: all-gather",
                                   "forward / behind the layers / compute: head",
                                   "forward / behind the layers / gather: all-gather"));
}

TEST(DagPageTest, BackwardComesInItsOwnOrderAndTheOptimizerLast) {
  const DagPage page = Fold(PredictStack(6));
  EXPECT_EQ(page.columns.back().label, "optimizer");
  EXPECT_THAT(Names(page), Contains("backward / before the layers / compute: head"));
  EXPECT_THAT(Names(page), Contains("backward / behind the layers / compute: model.embed"));
}

// One box stands for six layers, two products each; its figures are their sums.
TEST(DagPageTest, BoxOfLayersHoldsAllOfThem) {
  const DagPage page = Fold(PredictStack(6));
  const PageBox& up = Box(page, "forward / model.layers / compute: up");
  EXPECT_EQ(up.layers, 6U);
  EXPECT_EQ(up.tasks, 6U);
  const PageBox& gather = Box(page, "forward / model.layers / gather: all-gather");
  EXPECT_EQ(gather.layers, 6U);
  EXPECT_EQ(gather.tasks, 12U);
  EXPECT_EQ(page.columns[up.column].layers, 6U);
}

// However many layers there are, the page has as many boxes.
TEST(DagPageTest, MoreLayersMakeNoMoreBoxes) {
  EXPECT_EQ(Fold(PredictStack(2)).boxes.size(), Fold(PredictStack(40)).boxes.size());
}

// No task is lost or counted twice, and no time.
TEST(DagPageTest, BoxesHoldAllDeviceTime) {
  const PredictedStep step = PredictStack(6);
  const DagPage page = Fold(step);
  const auto places = PlaceTasks(step.schedule, step.graph, std::nullopt);
  Duration busy;
  for (const Span& span : step.timeline.spans) {
    busy += places[span.task.index()] ? span.end - span.start : Duration();
  }
  Duration drawn;
  std::size_t tasks = 0;
  for (const PageBox& box : page.boxes) {
    drawn += box.busy;
    tasks += box.tasks;
  }
  EXPECT_EQ(drawn, busy);
  EXPECT_EQ(tasks, static_cast<std::size_t>(
                       std::count_if(places.begin(), places.end(),
                                     [](const auto& place) { return place.has_value(); })));
}

TEST(DagPageTest, CriticalTimeIsThatOfTheCriticalPath) {
  const PredictedStep step = PredictStack(6);
  Duration path;
  for (const CriticalPiece& piece : FindStepCriticalPath(step.timeline, step.schedule)) {
    path += piece.on_host ? Duration() : piece.end - piece.start;
  }
  Duration drawn;
  for (const PageBox& box : Fold(step).boxes) {
    EXPECT_LE(box.critical, box.busy);
    drawn += box.critical;
  }
  EXPECT_EQ(drawn, path);
}

TEST(DagPageTest, ArrowsLeadFromGathersToTheirUse) {
  const DagPage page = Fold(PredictStack(6));
  auto all = Arrows(page, false);
  const auto critical = Arrows(page, true);
  all.insert(all.end(), critical.begin(), critical.end());
  EXPECT_THAT(all, Contains("forward / behind the layers / gather: all-gather -> "
                            "forward / behind the layers / compute: head"));
}

TEST(DagPageTest, StoppedStepHasNoCriticalPath) {
  PredictedStep step = PredictStack(6);
  step.timeline.stop = TimelineStop{TaskId(0), SimTime(), "out of memory"};
  const DagPage page = Fold(step);
  EXPECT_THAT(page.critical, IsEmpty());
  EXPECT_THAT(Arrows(page, true), IsEmpty());
}

TEST(DagPageTest, StepThatCannotBeginHasNoBoxes) {
  PredictedStep step = PredictStack(1);
  step.timeline = Timeline();
  step.timeline.stop = TimelineStop{TaskId::None(), SimTime(), "out of memory"};
  EXPECT_THAT(Fold(step).boxes, IsEmpty());
}

PageBox Module(const std::string& label, std::int64_t us) {
  PageBox box;
  box.label = label;
  box.tasks = 1;
  box.busy = Duration::FromNs(us * 1000);
  return box;
}

// Two fit beside each other outside of layers: the longest stays, the others become one, in the
// place of the first of them. The arrow between two of them goes.
TEST(DagPageTest, ShortBoxesBecomeOne) {
  DagPage page;
  page.columns = {{PageBand::kForward, "before the layers", 0, Duration()},
                  {PageBand::kForward, "layers", 2, Duration()}};
  page.boxes = {Module("a", 1), Module("b", 9), Module("c", 2), Module("d", 3)};
  page.arrows = {{0, 1, true}, {0, 2, false}, {2, 3, true}};
  const DagPage merged = MergeSmallBoxes(page);
  ASSERT_EQ(merged.boxes.size(), 2U);
  EXPECT_EQ(merged.boxes[0].label, "3 more");
  EXPECT_EQ(merged.boxes[0].tasks, 3U);
  EXPECT_EQ(merged.boxes[0].busy, Duration::FromNs(6000));
  EXPECT_EQ(merged.boxes[1].label, "b");
  EXPECT_EQ(merged.arrows, std::vector<DagEdge>({{0, 1, true}}));
}

/// Text of all nodes of a drawing.
std::string Labels(const Drawing& drawing) {
  std::string labels;
  for (const Drawing::Node& node : drawing.nodes) {
    for (const auto& [name, value] : node.attributes) {
      labels += name == "label" ? value + "\n" : "";
    }
  }
  return labels;
}

// A mean of six layers: 12 gathers of 24 MiB are 4 MiB a layer.
TEST(DagPageDrawingTest, BoxesOfLayersShowTheMean) {
  DagPage page;
  page.columns = {{PageBand::kForward, "layers", 6, Duration::FromMs(12)}};
  PageBox gather = Module("all-gather", 600);
  gather.kind = DagNodeKind::kGather;
  gather.lane = StreamRole::kGather;
  gather.layers = 6;
  gather.payload = Bytes::MiB(24);
  PageBox some = Module("conv", 300);
  some.layers = 2;
  some.critical = Duration::FromNs(30'000);
  page.boxes = {some, gather};
  const std::string labels = Labels(DrawPage(page));
  EXPECT_THAT(labels, HasSubstr("layers: 6 layers\nkernels 6 x 2.00 ms = 12.0 ms"));
  EXPECT_THAT(labels, HasSubstr("all-gather\n100 us, 4.00 MiB\n"));
  EXPECT_THAT(labels, HasSubstr("conv\n150 us, in 2 of 6\n10.0 % critical"));
}

TEST(DagPageDrawingTest, BackslashesOfNamesStay) {
  DagPage page;
  page.title = "a\\N";
  page.columns = {{PageBand::kForward, "all modules", 0, Duration()}};
  page.boxes = {Module("b\\G", 1)};
  const std::string labels = Labels(DrawPage(page));
  EXPECT_THAT(labels, HasSubstr("a\\\\N"));
  EXPECT_THAT(labels, HasSubstr("b\\\\G"));
}

class WorkloadPageTest : public testing::TestWithParam<std::string> {};

// A sheet of A4 across is 842 points wide: at this width letters of 9 points have some 4 left.
TEST_P(WorkloadPageTest, IsOnePage) {
  constexpr double kWidest = 1900;
  constexpr std::size_t kMostBoxes = 60;
  const DagPage page = Fold(PredictWorkload(GetParam()));
  EXPECT_LE(page.boxes.size(), kMostBoxes);
  double right = 0;
  for (const Drawing::Node& node : DrawPage(page).nodes) {
    for (const auto& [name, value] : node.attributes) {
      right = name == "pos" ? std::max(right, std::stod(value)) : right;
    }
  }
  EXPECT_LE(right, kWidest);
}

INSTANTIATE_TEST_SUITE_P(Workloads,
                         WorkloadPageTest,
                         testing::Values("qwen3-8b", "mixtral-2", "tiny-llama", "mlp-8x4096"),
                         [](const auto& workload) {
                           std::string name = workload.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace dcsim
