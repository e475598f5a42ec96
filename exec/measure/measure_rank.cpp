#include "exec/measure/measure_rank.h"

#include <memory>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/Exception.h>

#include "exec/device/allocator.h"
#include "exec/launch/rank_processes.h"
#include "model/ir/task_label.h"

namespace dcsim::exec {

RankMeasurement MeasureRank(const RankSetup& setup, int rank, const MeasureSettings& settings) {
  if (setup.device.is_cuda()) {
    ChooseAllocator(setup.schedule.options().allocator);
  }
  std::unique_ptr<StepExecutor> executor;
  RankMeasurement measurement;
  try {
    executor = std::make_unique<StepExecutor>(setup);
    measurement = MeasureSteps(*executor, setup.schedule, setup.device, settings);
    executor->Close();
  } catch (const c10::OutOfMemoryError& error) {
    const std::string what = error.what();
    const std::string where =
        executor == nullptr ? "allocation of weights and optimizer states"
                            : TaskLabel(setup.schedule, setup.graph, executor->current_task());
    // Not taken apart: giving peers' memory back waits for kernels that wait for other ranks.
    static_cast<void>(executor.release());
    throw RankOutOfMemory("rank " + std::to_string(rank) + ", " + where + ": " +
                          what.substr(0, what.find('\n')));
  }
  executor.reset();
  if (setup.device.is_cuda()) {
    c10::cuda::CUDACachingAllocator::emptyCache();
  }
  return measurement;
}

RankMeasurement MeasureCpuRank(const Graph& graph,
                               const Schedule& schedule,
                               Communicator& communicator,
                               std::uint64_t seed,
                               const MeasureSettings& settings) {
  return MeasureRank({graph, schedule, c10::kCPU, {&communicator}, seed, {}}, communicator.rank(),
                     settings);
}

}  // namespace dcsim::exec
