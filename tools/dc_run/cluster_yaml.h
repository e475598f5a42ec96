#pragma once

#include <optional>
#include <string>
#include <vector>

#include "exec/calibrate/collective_benchmark.h"
#include "exec/calibrate/contention_sample.h"
#include "exec/calibrate/copy_engine_fit.h"
#include "exec/calibrate/drift_benchmark.h"
#include "exec/calibrate/host_benchmark.h"
#include "exec/calibrate/host_copy_benchmark.h"
#include "exec/calibrate/launch_fit.h"
#include "exec/calibrate/memory_benchmark.h"
#include "model/ir/document.h"

namespace dcsim {

/// Everything that a calibration measures.
struct CalibrationResult {
  exec::HostSample host;
  exec::CollectiveHostSample collective_host;
  std::vector<exec::MemorySample> memory;
  exec::HostCopySample host_copies;
  std::vector<exec::CollectiveSample> collectives;
  std::optional<exec::CopyEngineSample> copy_engines;  // of more than one GPU
  std::vector<exec::ContentionSample> contention;
  std::vector<exec::DriftSample> drift;
  std::optional<exec::LaunchFit> launches;  // of workloads' Triton kernels
  Json machine;
  Json versions;
  std::string date;
};

/// "1234 ns": a time as these files take it.
std::string PrintNs(Duration time);
/// "0.72".
std::string PrintShare(double share, int decimals = 2);

/// A cluster file (dc-cluster/1) with measured tables, host calls and memory patterns; the link for
/// other sizes and ranks is fitted to the tables: its latency is the smallest time, its bandwidth
/// that of the largest all-gather.
std::string PrintClusterYaml(const CalibrationResult& result,
                             int gpus,
                             const std::string& gpu_file,
                             const std::string& command);

}  // namespace dcsim
