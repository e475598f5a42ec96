#pragma once

#include <string>
#include <vector>

#include "model/ir/graph.h"

namespace dcsim {

/// Names of the committed workloads (folders of traces/), in alphabetical order.
std::vector<std::string> WorkloadNames();

/// Those of them that were profiled on an H200.
std::vector<std::string> ProfiledWorkloadNames();

/// The uncompressed graph file of a committed workload.
std::string WorkloadText(const std::string& name);

/// The uncompressed profile of its ops on an H200.
std::string WorkloadProfileText(const std::string& name);

/// The graph itself.
Graph WorkloadGraph(const std::string& name);

/// What Inductor makes of it for a ZeRO stage.
Graph CompiledWorkloadGraph(const std::string& name, int stage);

/// The same of a small recording in tests/data/training: frozen, adapters, autocast.
Graph TrainingGraph(const std::string& name);

}  // namespace dcsim
