#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/base/units.h"
#include "sim/memory/allocator_config.h"
#include "sim/memory/caching_allocator.h"

namespace dcsim {

/// The statistics that an answer file holds, in the order of OracleStats::values.
inline constexpr std::array<const char*, 14> kOracleStatNames = {
    "allocated",      "allocated_peak",      "active",    "active_peak",
    "reserved",       "reserved_peak",       "requested", "requested_peak",
    "segments",       "segments_peak",       "retries",   "ooms",
    "inactive_split", "inactive_split_peak",
};

using OracleStats = std::array<std::int64_t, kOracleStatNames.size()>;

/// The same statistics of a replay.
OracleStats ToOracleStats(const AllocatorStats& stats);

/// One operation of a script; docs/design/memory.md has the table of the codes.
struct OracleOp {
  char code = 0;
  std::vector<std::int64_t> arguments;
};

/// All segments at one point of a script, as `torch.cuda.memory_snapshot` showed them.
struct OracleSnapshot {
  std::size_t op_count = 0;  // operations before it
  std::vector<SegmentView> segments;
};

/// One script and what torch did. The columns have an entry for each operation.
struct OracleScript {
  std::string name;
  AllocatorConfig config;
  std::vector<OracleOp> ops;
  std::vector<OracleStats> stats;
  std::vector<Bytes> driver_free;                     // of cudaMemGetInfo; empty: not recorded
  std::vector<std::uint64_t> addresses;               // of allocations only, 0 when refused
  std::vector<std::vector<SegmentEvent>> new_events;  // of that operation
  std::vector<SegmentEvent> events;                   // of all operations
  std::vector<OracleSnapshot> snapshots;
};

struct OracleFile {
  std::string settings;  // PYTORCH_ALLOC_CONF
  std::size_t streams = 0;
  std::vector<OracleScript> scripts;
};

/// Reads a file that tools/oracles/record_allocator.py wrote.
///
/// Throws dcsim::Error naming the file if it cannot be read or is not of that format.
OracleFile LoadOracle(const std::filesystem::path& path);

}  // namespace dcsim
