// The memory of executed schedules, counted where PyTorch asks for it: what the simulator replays
// is what the executor allocates.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/operator_schema.h"
#include "model/ir/task_label.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "tests/exec/support/counting_allocator.h"
#include "tests/exec/support/host_training.h"
#include "tests/support/activation_plans.h"
#include "tests/support/row_name.h"
#include "tests/support/workloads.h"

namespace dcsim::exec {
namespace {

using testing::Each;
using testing::IsEmpty;

std::int64_t BytesOf(const Schedule& schedule, std::span<const BufferId> buffers) {
  std::int64_t bytes = 0;
  for (const BufferId id : buffers) {
    bytes += schedule.buffer(id).bytes.count();
  }
  return bytes;
}

/// Numbers that the dispatcher takes as tensors of 8 bytes; on the host, also beside a GPU.
std::int64_t WrappedNumberBytes(const Graph& graph) {
  std::int64_t bytes = 0;
  for (const Op& op : graph.ops) {
    const auto schema = FindSchema(graph.schemas[op.schema]);
    for (std::size_t i = 0; i < op.arguments.size(); ++i) {
      const bool number = std::holds_alternative<double>(op.arguments[i]) ||
                          std::holds_alternative<std::int64_t>(op.arguments[i]);
      bytes += number && schema->arguments[i].type == "Tensor" ? 8 : 0;
    }
  }
  return bytes;
}

/// Compares the bytes that live after each task with those that the schedule has allocated and not
/// freed, counted from the start of a step.
///
///   unscheduled   bytes that may live besides
class LiveBytes : public TaskListener {
 public:
  LiveBytes(const Graph& graph, const Schedule& schedule, std::int64_t unscheduled)
      : graph_(graph),
        schedule_(schedule),
        unscheduled_(unscheduled),
        before_(CountingAllocator::live()) {}

  void AfterTask(TaskId id) override {
    for (const MemoryStep& step : schedule_.memory(id)) {
      const std::int64_t bytes = schedule_.buffer(step.buffer).bytes.count();
      scheduled_ += step.frees ? -bytes : bytes;
    }
    const std::int64_t live = CountingAllocator::live() - before_;
    if (live != scheduled_ && live != scheduled_ + unscheduled_) {
      differences_.push_back(TaskLabel(schedule_, graph_, id) + ": " + std::to_string(live) +
                             " B live, " + std::to_string(scheduled_) + " B scheduled");
    }
  }
  const std::vector<std::string>& differences() const { return differences_; }

 private:
  const Graph& graph_;
  const Schedule& schedule_;
  std::int64_t unscheduled_;
  std::int64_t before_;
  std::int64_t scheduled_ = 0;
  std::vector<std::string> differences_;
};

struct MemoryRow {
  std::string name;
  int stage;
  std::function<void(PlanSpec&)> change;
  std::int64_t unscheduled = 0;
  std::function<void(const Graph&, Plan&)> change_plan = {};
};

/// What the test counts on each rank's thread.
struct RankBytes {
  std::int64_t built = 0;  // after construction
  std::vector<std::int64_t> after_step;
  std::vector<std::string> differences;  // in the last step
  std::int64_t end = 0;                  // when the executor is gone
};

class ExecutorMemoryTest : public testing::TestWithParam<MemoryRow> {
 protected:
  static constexpr int kRanks = 2;

  ExecutorMemoryTest() { UseStrictOps(); }

  std::vector<RankBytes> Count() const {
    std::vector<RankBytes> counted(kRanks);
    RunRanks(kRanks, [&](Communicator& communicator) {
      RankBytes& bytes = counted[static_cast<std::size_t>(communicator.rank())];
      const std::int64_t before = CountingAllocator::live();
      {
        StepExecutor executor({graph_, schedule_, c10::kCPU, {&communicator}, 0, {}});
        bytes.built = CountingAllocator::live() - before;
        for (const int step : {0, 1}) {
          executor.RunStep(step);
          bytes.after_step.push_back(CountingAllocator::live() - before);
        }
        LiveBytes live(graph_, schedule_, GetParam().unscheduled);
        executor.Listen(&live);
        executor.RunStep(2);
        bytes.after_step.push_back(CountingAllocator::live() - before);
        bytes.differences = live.differences();
      }
      bytes.end = CountingAllocator::live() - before;
    });
    return counted;
  }

  static PlanSpec Spec() {
    PlanSpec spec;
    spec.options.stage = GetParam().stage;
    spec.options.gradient_accumulation_steps = 2;
    spec.options.reduce_bucket = 2000;  // overflows, and grows for the embedding's gradient
    GetParam().change(spec);
    return spec;
  }

  static Plan MakePlan(const Graph& graph) {
    Plan plan = Resolve(Spec(), graph, kRanks);
    if (GetParam().change_plan) {
      GetParam().change_plan(graph, plan);
    }
    return plan;
  }

  const CountingAllocator allocator_;
  const Graph graph_ = WorkloadGraph("tiny-llama");
  const Schedule schedule_ = Lower(MakePlan(graph_), graph_, nullptr, {});
};

// Steady state: the third step begins with the outputs of the second held, as each step does. No
// temporary of an op outlives its task, and nothing lives a task longer or shorter than scheduled.
TEST_P(ExecutorMemoryTest, FollowsTheScheduleTaskByTask) {
  for (const RankBytes& rank : Count()) {
    EXPECT_THAT(rank.differences, IsEmpty());
  }
}

TEST_P(ExecutorMemoryTest, StepsLeaveNothingBehind) {
  for (const RankBytes& rank : Count()) {
    EXPECT_THAT(rank.after_step, Each(rank.after_step.front()));
    EXPECT_EQ(rank.end, 0);
  }
}

/// Host memory for what is offloaded, which ranks on the CPU do not pin.
std::int64_t HostBytes(const Schedule& schedule) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : schedule.buffers()) {
    bytes += buffer.on_host() ? buffer.bytes.count() : 0;
  }
  return bytes;
}

// Besides the residents: what lies on the host, and 4 bytes a micro-step for the losses.
TEST_P(ExecutorMemoryTest, BuildsTheResidents) {
  for (const RankBytes& rank : Count()) {
    EXPECT_EQ(rank.built, BytesOf(schedule_, schedule_.residents()) + HostBytes(schedule_) +
                              WrappedNumberBytes(graph_) + 2 * 4);
  }
}

std::vector<MemoryRow> Rows() {
  const auto plain = [](PlanSpec&) {};
  const auto scatter = [](PlanSpec& spec) {
    spec.options.reduce_collective = ReduceCollective::kReduceScatter;
  };
  return {
      {"Zero1", 1, plain},
      {"Zero2", 2, plain},
      {"Zero3", 3, plain},
      {"Zero1Scattered", 1, scatter},
      {"Zero2Scattered", 2, scatter},
      {"Zero3RecordStream", 3,
       [](PlanSpec& spec) { spec.options.release = ReleaseMode::kRecordStream; }},
      {"Zero3Ahead", 3, [](PlanSpec& spec) { spec.gather_ahead = 4; }},
      {"Zero3KeepSome", 3, [](PlanSpec& spec) { spec.keep_gathered.patterns = {"*mlp*"}; }},
      {"Zero2OneBuffer", 2, [](PlanSpec& spec) { spec.options.double_buffer = false; }},
      {"Zero1Offloaded", 1, [](PlanSpec& spec) { spec.offload_optimizer.all = true; }},
      {"Zero3OffloadedInEachMicroStep", 3,
       [](PlanSpec& spec) {
         spec.offload_optimizer.bytes = Bytes(1);
         spec.options.offload_period = OffloadPeriod::kMicroStep;
       }},
      {"Zero3OffloadedParameters", 3,
       [](PlanSpec& spec) { spec.options.offload_parameters = true; }},
      {"Zero3OffloadedParametersOfDeepCompile", 3,
       [](PlanSpec& spec) {
         spec.policy = "deepcompile-0.19.8";
         spec.options.release = ReleaseMode::kRecordStream;
         spec.options.offload_parameters = true;
       }},
      {"Zero3OffloadedActivations", 3, [](PlanSpec& spec) { spec.policy = "deepcompile-0.19.8"; },
       0, [](const Graph& graph, Plan& plan) { OffloadAllActivations(graph, plan); }},
      // The norm itself, a number, is not scheduled.
      {"Zero2Clipped", 2, [](PlanSpec& spec) { spec.options.gradient_clipping = 1; }, 4},
      {"Zero2Foreach", 2,
       [](PlanSpec& spec) { spec.options.optimizer = OptimizerKernels::kForeach; }},
  };
}

INSTANTIATE_TEST_SUITE_P(Plans, ExecutorMemoryTest, testing::ValuesIn(Rows()), RowName());

}  // namespace
}  // namespace dcsim::exec
