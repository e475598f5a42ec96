#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "sim/analysis/step_metrics.h"
#include "tests/sim/step_kit.h"

namespace dcsim {
namespace {

BufferId AddOf(StepKit& kit, BufferClass buffer_class, std::int64_t bytes) {
  Buffer buffer;
  buffer.bytes = Bytes(bytes);
  buffer.buffer_class = buffer_class;
  return kit.AddBuffer(buffer);
}

void AddResident(StepKit& kit, BufferClass buffer_class, std::int64_t bytes) {
  Buffer buffer;
  buffer.bytes = Bytes(bytes);
  buffer.buffer_class = buffer_class;
  buffer.resident = true;
  kit.AddBuffer(buffer);
}

void AddTask(StepKit& kit, const std::vector<MemoryStep>& memory) {
  TaskDraft draft;
  draft.stream = StreamRole::kCompute;
  draft.memory = memory;
  kit.Add(draft, {10});
}

/// "parameters 100, activations 50".
std::string PeakText(StepKit& kit, const SimulationOptions& options = OneStep()) {
  PeakClasses classes(kit.schedule(), options.warmup_steps);
  const std::array<Observer*, 1> observers = {&classes};
  Simulate(kit.schedule(), kit.costs(), options, observers);
  std::string text;
  for (const ClassBytes& each : classes.classes()) {
    text += (text.empty() ? "" : ", ") + std::string(BufferClassName(each.buffer_class)) + " " +
            std::to_string(each.bytes.count());
  }
  return text;
}

TEST(PeakClassesTest, ResidentsAreAlwaysAlive) {
  StepKit kit;
  AddResident(kit, BufferClass::kParameter, 100);
  AddResident(kit, BufferClass::kOptimizerState, 200);
  AddTask(kit, {});
  EXPECT_EQ(PeakText(kit), "parameters 100, optimizer states 200");
}

// 50 and 30 overlap: 80. Then 50 goes and 40 comes: 70.
TEST(PeakClassesTest, OnlyWhatIsAliveAtThePeakCounts) {
  StepKit kit;
  const BufferId activation = AddOf(kit, BufferClass::kActivation, 50);
  const BufferId gradient = AddOf(kit, BufferClass::kGradient, 30);
  const BufferId bucket = AddOf(kit, BufferClass::kReduceBucket, 40);
  AddTask(kit, {{activation, false}});
  AddTask(kit, {{gradient, false}});
  AddTask(kit, {{activation, true}, {bucket, false}});
  AddTask(kit, {{gradient, true}, {bucket, true}});
  EXPECT_EQ(PeakText(kit), "gradients 30, activations 50");
}

// Within one task the temporary is freed again before the next buffer comes.
TEST(PeakClassesTest, PeakInsideATaskCounts) {
  StepKit kit;
  const BufferId temporary = AddOf(kit, BufferClass::kTemporary, 60);
  const BufferId activation = AddOf(kit, BufferClass::kActivation, 50);
  AddTask(kit, {{temporary, false}, {temporary, true}, {activation, false}, {activation, true}});
  EXPECT_EQ(PeakText(kit), "temporaries 60");
}

// In a second step two are alive, the caller's and the new one; in the first step only one.
TEST(PeakClassesTest, HeldOutputCountsTwiceFromTheSecondStep) {
  StepKit kit;
  Buffer held;
  held.bytes = Bytes(50);
  held.buffer_class = BufferClass::kHeldOutput;
  held.carried = true;
  const BufferId buffer = kit.AddBuffer(held);
  AddTask(kit, {{buffer, false}});
  AddTask(kit, {{buffer, true}});
  EXPECT_EQ(PeakText(kit), "held outputs 50");
  SimulationOptions warm = OneStep();
  warm.warmup_steps = 1;
  EXPECT_EQ(PeakText(kit, warm), "held outputs 100");
}

}  // namespace
}  // namespace dcsim
