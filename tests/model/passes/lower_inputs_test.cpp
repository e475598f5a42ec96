#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/passes/verify.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

/// One product over an input of `rows` rows of 4 elements of bfloat16.
Graph OneLayer(int rows) {
  const std::string tall = std::to_string(rows);
  return ParseGraphText("graph one 2 tokens\nparam w bfloat16[4,2]\ninput x bfloat16[" + tall +
                        ",4]\nforward\n  a: bfloat16[" + tall +
                        ",2] = aten::mm(x, w)\n  l: bfloat16[] = aten::sum(a)\n  loss l\n"
                        "backward of 0\n  tangent t: bfloat16[] of l\n  ga: bfloat16[" +
                        tall +
                        ",2] = aten::fill(t)\n  g: bfloat16[4,2] = aten::mm(x, ga)\n"
                        "  gradient w = g\n");
}

// 131,072 rows of 8 bytes are 1 MiB: the copy is what compute does first. The gather of the first
// parameter does not wait for it (what it waits for is what the step before has ended with), and
// compute waits for the gather behind it.
TEST(LowerInputsTest, LargeInputsComeFirstOnTheComputeStream) {
  EXPECT_EQ(TinyTaskLines(TinySpec(3), OneLayer(131'072), 0, 3), R"(
0 compute copy-inputs [1048576 B] w b6
1 gather all-gather w [16 B] r b0 w b8 +b8
2 compute wait for all-gather w after 1
3 compute aten::mm r b6,b8 w b9 +b9
)");
}

// A row less, 8 bytes.
TEST(LowerInputsTest, SmallInputsAreLeftOut) {
  EXPECT_EQ(TinyTaskLines(TinySpec(3), OneLayer(131'071), 0, 1), R"(
0 gather all-gather w [16 B] r b0 w b8 +b8
1 compute wait for all-gather w after 0
)");
}

std::size_t CountCopies(const Schedule& schedule) {
  std::size_t count = 0;
  for (const Task& task : schedule.tasks()) {
    count += task.kind == TaskKind::kCopyInputs ? 1U : 0U;
  }
  return count;
}

// The copy of the second micro-step overwrites what the first backward reads, on the same stream.
TEST(LowerInputsTest, EveryMicroStepHasItsOwn) {
  for (const int stage : {1, 2, 3}) {
    PlanSpec spec = TinySpec(stage);
    spec.options.gradient_accumulation_steps = 2;
    const Graph graph = OneLayer(131'072);
    const Schedule schedule = LowerTiny(spec, graph);
    EXPECT_EQ(CountCopies(schedule), 2U);
    EXPECT_THAT(Verify(schedule, graph), testing::IsEmpty());
  }
}

}  // namespace
}  // namespace dcsim
