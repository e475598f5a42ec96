#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/ids.h"
#include "model/base/units.h"
#include "model/ir/graph.h"

namespace dcsim {

/// One kernel that an op launches, as CUPTI reports it.
struct Kernel {
  std::string name;
  Duration device_time;      // median over the profiled steps
  std::int64_t ctas = 0;     // thread blocks of its grid
  std::int64_t threads = 0;  // per CTA
  Bytes shared_memory;       // per CTA
};

/// One step of an op's own use of the allocator: a block that it asks for, or gives back.
/// Blocks are numbered in the order of their allocation within the op.
struct FootprintStep {
  enum class Kind : std::uint8_t { kAllocate, kFree };
  Kind kind = Kind::kAllocate;
  std::uint32_t block = 0;
  Bytes bytes;               // of kAllocate: as requested
  std::int32_t output = -1;  // of kAllocate: index of the op's output that lives in it, or -1
};

/// What one op of a graph costs on one kind of GPU, measured inside the running step.
struct OpProfile {
  OpId op;
  Duration device_time;                // all its kernels, median over the profiled steps
  Duration device_time_spread;         // 90th minus 10th percentile
  Duration host_time;                  // of the call, launch included
  std::vector<std::uint32_t> kernels;  // indices into Profile::kernels
  std::vector<FootprintStep> footprint;
};

struct ProfiledGraph;

/// Times and allocation footprints of a graph's ops on one kind of GPU; the optimizer's kernels are
/// given per element. File form: dc-profile/1 (docs/reference/formats.md).
struct Profile {
  std::uint64_t graph_hash = 0;
  std::string gpu;
  std::string origin;              // JSON text: versions, machine, date, command
  std::int64_t steps = 0;          // profiled
  std::int64_t trained_steps = 0;  // taken before them
  Duration step_time;              // forward and backward alone, undisturbed, one GPU, mean
  Duration kernel_gap;             // that a kernel costs beyond its own time
  double sm_clock_mhz = 0;         // of the GPU meanwhile, mean; 0 where it was not read
  std::vector<Kernel> kernels;
  std::vector<OpProfile> ops;  // in op order, at most one an op; parameters lie each on their own
  /// The same of ops that read a parameter which is at no multiple of 16 bytes where ZeRO-1 and 2
  /// keep them (model/graph/param_shifts.h), measured there.
  std::vector<OpProfile> side_by_side;
  /// What BorrowProfile made this one of: all that ran while the clock was read; null where `ops`
  /// themselves were measured.
  std::shared_ptr<const ProfiledGraph> borrowed_from;

  /// The entry of an op, or null where it was not measured.
  const OpProfile* FindOp(OpId id) const;
};

/// A graph, and what was measured of it.
struct ProfiledGraph {
  Graph graph;
  Profile profile;
};

/// The entry of an op among those in op order, or null.
const OpProfile* FindEntry(const std::vector<OpProfile>& entries, OpId id);

}  // namespace dcsim
