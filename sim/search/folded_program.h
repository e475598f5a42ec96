#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sim/engine/gpu_sharing.h"
#include "sim/engine/simulate.h"
#include "sim/search/candidate.h"

namespace dcsim {

/// What must have ended before a task may start, as counts of ended tasks. Gathers and the waits
/// for them differ from plan to plan, so they have counters of their own.
enum class Counter : std::uint8_t {
  kCompute,  // tasks of the compute stream that every plan has
  kWait,     // waits of the compute stream for gathers
  kGather,
  kReduce,
  kCopy,
};
constexpr std::size_t kCounters = 5;
using Counts = std::array<std::uint32_t, kCounters>;

constexpr std::size_t At(Counter counter) {
  return static_cast<std::size_t>(counter);
}
inline bool Reached(const Counts& done, const Counts& needs) {
  bool reached = true;
  for (std::size_t i = 0; i < kCounters; ++i) {
    reached = reached && done[i] >= needs[i];
  }
  return reached;
}

/// A task of a stream that every plan has. Times are in ns; host times as if the host never waited.
struct FoldedTask {
  std::int64_t issue =
      0;                  // the host's first call, since the program's start, but gathers and waits
  std::uint64_t key = 0;  // place in the order of issue (KeyOf)
  Counts needs{};         // kWait and kGather counted in plans, not here
  GpuTask gpu;
  bool waits = false;                // `needs` is not all zero, or plans add to it
  bool needs_compute = false;        // all compute tasks issued before it
  bool needs_gathers = false;        // all gathers issued before it
  bool shares_communicator = false;  // takes its turn between the gathers
  std::uint16_t micro_step = 0;
};

/// The host waits.
struct FoldedSync {
  std::int64_t reach = 0;  // host time at which it gets there
  std::uint64_t key = 0;
  Counts needs{};
};

/// Keys order tasks by issue: (task of the base schedule that it is, or that follows it) first.
constexpr int kKeyBits = 20;
constexpr std::uint64_t kTaskItself = (std::uint64_t{1} << kKeyBits) - 1;
constexpr std::uint64_t KeyOf(std::size_t task, std::uint64_t within) {
  return std::uint64_t{task} << kKeyBits | within;
}

/// Where a plan may put gathers and waits: right before one op of one micro-step.
struct FoldedAnchor {
  std::uint64_t key = 0;      // of the op's own task
  std::uint32_t compute = 0;  // compute tasks before it
  std::uint32_t behind = 0;   // of them, what gathers wait for that are issued here: not copies of
                              // inputs right before
  std::int64_t host = 0;      // host time before it
};

/// A parameter that a graph uses from one op to another.
struct FoldedUse {
  ParamId param;
  std::uint32_t first = 0;  // positions in the graph's order
  std::uint32_t last = 0;
};

/// How far a full launch queue (HostCosts::launch_queue) lets the host run ahead of compute. Where
/// the GPU always takes longer for as many kernels as the queue holds than the host takes to launch
/// them, a host that had to wait for room is still ahead when its next task can start: then no
/// start depends on the queue.
struct LaunchRoom {
  /// By compute task: how many have to end before it finds room; 0: none. Ascending. Empty without
  /// a limit.
  std::vector<std::uint32_t> ended;
  /// By compute task that comes next, one more for the end: the least time by which the GPU takes
  /// longer than the host, gathers and waits left out; and the smallest of all.
  std::vector<std::int64_t> slack;
  std::int64_t least_slack = std::numeric_limits<std::int64_t>::max();
};

/// By param. The first uses decide where gathers may be issued, the last ones when they end.
std::vector<FoldedUse> FindFoldedUses(const Graph& graph, const std::vector<OpId>& order);

/// What all ZeRO-3 plans with the same options and order have in common, laid out for the engine:
/// the end of one step, from where the host has waited for everything, and the whole step behind
/// it. Immutable.
struct FoldedProgram {
  std::vector<FoldedTask> compute;
  std::vector<FoldedTask> reduce;
  std::vector<FoldedTask> copy;
  std::vector<FoldedTask> gather;  // waits of the gather stream
  std::vector<FoldedSync> syncs;
  std::vector<std::vector<std::vector<FoldedAnchor>>> anchors;  // by micro-step, graph, position
  std::vector<std::vector<FoldedUse>> uses;  // by graph, by first use, ties by param
  Counts first_step{};                       // tasks of the first step's end
  std::int64_t first_host = 0;               // host time of that end, the host's waits left out
  std::size_t first_syncs = 0;               // its waits
  std::int64_t host = 0;                     // of everything

  // Prices.
  Engine gather_engine = Engine::kNccl;
  std::vector<GpuTask> gather_alone;  // by param
  std::vector<bool> shifted_shards;   // by param: ShiftedShards
  Duration gather_call;               // host time of a launch's first call, its events included
  Duration grouped_call;              // of each further one
  Duration grouped_further;  // of it, behind the launch: of one rank, whose calls each launch
  double host_slowdown = 1;  // of these
  std::int64_t wait_host = 0;
  std::int64_t synchronize = 0;
  GpuSharing::Options sharing;
  bool one_communicator = true;  // of gathers and reductions
  LaunchRoom room;
};

/// Folds what plans with these options and this order have in common, or nothing when the step has
/// a shape that folding does not cover; then plans are simulated plainly.
std::optional<FoldedProgram> FindFoldedProgram(const SearchProblem& problem,
                                               const ScheduleOptions& options,
                                               std::uint32_t order);

/// LaunchRoom of a program that has everything else. `launches` are the kernels of its compute
/// tasks.
LaunchRoom FindLaunchRoom(const FoldedProgram& program,
                          const std::vector<std::int32_t>& launches,
                          std::int64_t queue);

/// Step time of a plan: of the measured step, as Simulate has it after any number of steps to warm
/// up, provided that the allocator asks the driver for nothing in them behind the last host wait of
/// the step before. Nothing where the launch queue may decide when something starts.
std::optional<Duration> FindFoldedStepTime(const SearchProblem& problem,
                                           const FoldedProgram& program,
                                           const Candidate& candidate);

}  // namespace dcsim
