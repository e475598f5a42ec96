#include "exec/measure/measure_rank.h"

#include <memory>
#include <optional>

#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/Exception.h>

#include "exec/device/allocator.h"
#include "exec/device/segment_record.h"
#include "exec/launch/rank_processes.h"
#include "model/ir/task_label.h"

namespace dcsim::exec {

namespace {

/// Nothing where streams have to be chosen again.
std::optional<RankMeasurement> BuildAndMeasure(const RankSetup& setup,
                                               int rank,
                                               const MeasureSettings& settings,
                                               bool require_quiet) {
  std::unique_ptr<StepExecutor> executor;
  std::optional<RankMeasurement> measurement;
  try {
    executor = std::make_unique<StepExecutor>(setup);
    measurement = MeasureSteps(*executor, setup.schedule, setup.device, settings, require_quiet);
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
    at::cuda::clearCublasWorkspaces();  // which the next steps allocate where they first need them
    c10::cuda::CUDACachingAllocator::emptyCache();
  }
  return measurement;
}

}  // namespace

RankMeasurement MeasureRank(const RankSetup& setup, int rank, const MeasureSettings& settings) {
  constexpr int kMostTries = 3;
  const bool on_gpu = setup.device.is_cuda();
  if (on_gpu) {
    ChooseAllocator(setup.schedule.options().allocator);
  }
  if (on_gpu && settings.segments) {
    RecordSegments(setup.device);
  }
  std::optional<RankMeasurement> measurement;
  for (int tries = 1; !measurement; ++tries) {
    const bool require_quiet =
        on_gpu && setup.side_streams == SideStreams::kQuiet && tries < kMostTries;
    measurement = BuildAndMeasure(setup, rank, settings, require_quiet);
  }
  return *std::move(measurement);
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
