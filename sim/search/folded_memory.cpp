#include "sim/search/folded_memory.h"

#include <algorithm>
#include <span>

#include "model/base/error.h"
#include "sim/engine/step_memory.h"
#include "sim/memory/caching_allocator.h"
#include "sim/search/folded_tail.h"

namespace dcsim {
namespace {

constexpr StreamId kGatherPool = StreamOf(StreamRole::kGather);

/// Every parameter kept: then the gather stream's pool never changes.
Plan AllKept(const SearchProblem& problem, const ScheduleOptions& options, std::uint32_t order) {
  Candidate kept;
  kept.options = options;
  kept.order = order;
  kept.persistent.assign(problem.inputs.graph.params.size(), 1);
  for (const auto& sites : FindGatherSites(problem, order)) {
    GraphChoices choices;
    for (const GatherSite& site : sites) {
      choices.push_back({site.first, false});
    }
    kept.gathers.push_back(EncodeGathers(sites, choices));
  }
  return PlanOf(problem, kept);
}

/// Reserved and allocated bytes of the gather stream's pool with everything kept.
MemoryPeaks KeptAlone(const AllocatorConfig& config, const std::vector<Bytes>& gathered) {
  CachingAllocator allocator(config);
  for (const Bytes bytes : gathered) {
    if (bytes > Bytes(0)) {
      allocator.Allocate(bytes, kGatherPool, {});
    }
  }
  return {allocator.stats().allocated.current, allocator.stats().reserved.current};
}

std::vector<Bytes> KeptBytes(const Schedule& schedule, std::size_t params) {
  std::vector<Bytes> bytes(params);
  for (const BufferId id : schedule.residents()) {
    const Buffer& buffer = schedule.buffer(id);
    if (buffer.buffer_class == BufferClass::kGatheredParameter) {
      bytes[buffer.subject] = buffer.bytes;
    }
  }
  return bytes;
}

/// Replays steps of a schedule whose gathered parameters are all resident.
class Replay {
 public:
  Replay(const Schedule& schedule, const AllocatorConfig& config)
      : schedule_(schedule),
        memory_(schedule, config) {}

  bool Start() { return memory_.AllocateResidents() == StepMemory::Status::kDone; }

  bool Step(std::uint32_t step) {
    peaks_.clear();
    memory_.ResetPeaks();
    const std::size_t tail = FindTail(schedule_);
    for (std::size_t i = 0; i < schedule_.task_count(); ++i) {
      const TaskId id(i);
      calls_at_tail_ = i == tail ? memory_.driver_calls() : calls_at_tail_;
      const bool op = schedule_.task(id).kind == TaskKind::kCompute;
      if (op) {
        EndStretch();
      }
      if (!schedule_.memory(id).empty() &&
          memory_.Run(id, step, StreamProgress()) != StepMemory::Status::kDone) {
        return false;
      }
      if (op) {
        EndStretch();
      }
    }
    EndStretch();
    return true;
  }

  std::size_t driver_calls() const { return memory_.driver_calls(); }
  /// Driver calls before the tail of the last step.
  std::size_t calls_at_tail() const { return calls_at_tail_; }
  const std::vector<std::int64_t>& peaks() const { return peaks_; }
  const AllocatorStats& stats() const { return memory_.stats(); }

 private:
  void EndStretch() {
    peaks_.push_back(memory_.stats().allocated.peak.count());
    memory_.ResetPeaks();
  }

  const Schedule& schedule_;
  StepMemory memory_;
  std::vector<std::int64_t> peaks_;
  std::size_t calls_at_tail_ = 0;
};

/// An allocation or release of a gathered parameter.
struct GatherEvent {
  std::uint32_t stretch = 0;  // that begins with it
  ParamId param;
  bool frees = false;
};

/// Collects the events of one step in host order.
class EventList {
 public:
  EventList(const FoldedMemory& memory, const Candidate& candidate)
      : memory_(memory),
        candidate_(candidate) {}

  std::vector<GatherEvent> Collect() {
    for (int step = 0; step < memory_.micro_steps; ++step) {
      for (std::size_t g = 0; g < memory_.uses.size(); ++g) {
        AddGraph(g);
        first_op_ += memory_.ops[g];
      }
    }
    return std::move(events_);
  }

 private:
  bool IsKept(ParamId id) const { return candidate_.persistent[id.index()] != 0; }

  void AddGraph(std::size_t g) {
    const GraphGathers& gathers = candidate_.gathers[g];
    std::size_t launch = 0;
    std::uint32_t begin = 0;
    for (const FoldedUse& use : memory_.uses[g]) {
      for (; launch < gathers.launches.size() && gathers.launches[launch].position <= use.last;
           ++launch) {
        const std::uint32_t end = gathers.launches[launch].end;
        AddLaunch(gathers.launches[launch].position,
                  std::span(gathers.params).subspan(begin, end - begin));
        begin = end;
      }
      if (!IsKept(use.param)) {
        events_.push_back({2 * (first_op_ + use.last) + 2, use.param, true});
      }
    }
  }

  void AddLaunch(std::uint32_t position, std::span<const ParamId> params) {
    const auto begin = static_cast<std::ptrdiff_t>(events_.size());
    for (const ParamId id : params) {
      if (!IsKept(id)) {
        events_.push_back({2 * (first_op_ + position) + 1, id, false});
      }
    }
    // A launch is one for each dtype, in this order.
    const auto& dtypes = memory_.dtypes;
    std::stable_sort(events_.begin() + begin, events_.end(),
                     [&dtypes](const GatherEvent& a, const GatherEvent& b) {
                       return dtypes[a.param.index()] < dtypes[b.param.index()];
                     });
  }

  const FoldedMemory& memory_;
  const Candidate& candidate_;
  std::vector<GatherEvent> events_;
  std::uint32_t first_op_ = 0;
};

/// The peak of a step from stretches of the other pools and the gather pool's bytes in between.
class PeakSum {
 public:
  PeakSum(const std::vector<std::int64_t>& others, std::int64_t gathered)
      : others_(others),
        gathered_(gathered) {}

  /// The gather pool changes to `gathered` where stretch `begin` begins.
  void Change(std::size_t begin, std::int64_t gathered) {
    Pass(begin);
    gathered_ = gathered;
  }
  std::int64_t Finish() {
    Pass(others_.size());
    return peak_;
  }

 private:
  void Pass(std::size_t until) {
    std::int64_t most = 0;
    for (; stretch_ < until; ++stretch_) {
      most = std::max(most, others_[stretch_]);
    }
    peak_ = std::max(peak_, most + gathered_);
  }

  const std::vector<std::int64_t>& others_;
  std::int64_t gathered_;
  std::int64_t peak_ = 0;
  std::size_t stretch_ = 0;
};

}  // namespace

std::optional<FoldedMemory> FindFoldedMemory(const SearchProblem& problem,
                                             const ScheduleOptions& options,
                                             std::uint32_t order) {
  const Graph& graph = problem.inputs.graph;
  const Schedule schedule = LowerFor(AllKept(problem, options, order), problem.inputs);
  FoldedMemory memory;
  memory.config = OptionsFor(options, problem.inputs.cluster, problem.ranks).allocator;
  memory.config.capacity = kMaxCapacity;
  memory.gathered = KeptBytes(schedule, graph.params.size());
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    memory.dtypes.push_back(graph.dtype(ParamId(i)));
  }
  memory.micro_steps = options.gradient_accumulation_steps;
  Replay replay(schedule, memory.config);
  if (!replay.Start() || !replay.Step(0) || !replay.Step(1)) {
    return std::nullopt;
  }
  const std::size_t calls = replay.calls_at_tail();
  if (!replay.Step(2) || replay.driver_calls() != calls) {
    return std::nullopt;
  }
  const MemoryPeaks kept = KeptAlone(memory.config, memory.gathered);
  for (const std::int64_t peak : replay.peaks()) {
    memory.allocated.push_back(peak - kept.allocated.count());
  }
  memory.reserved = replay.stats().reserved.current - kept.reserved;
  for (const auto& ops : problem.orders[order]) {
    std::vector<FoldedUse> of_graph = FindFoldedUses(graph, ops);
    std::stable_sort(of_graph.begin(), of_graph.end(),
                     [](const FoldedUse& a, const FoldedUse& b) { return a.last < b.last; });
    memory.uses.push_back(std::move(of_graph));
    memory.ops.push_back(static_cast<std::uint32_t>(ops.size()));
  }
  return memory;
}

std::optional<MemoryPeaks> FindFoldedPeaks(const FoldedMemory& memory, const Candidate& candidate) {
  CachingAllocator allocator(memory.config);
  std::vector<BlockHandle> blocks(memory.gathered.size(), kNoBlock);
  const auto allocate = [&](ParamId id) {
    blocks[id.index()] = allocator.Allocate(memory.gathered[id.index()], kGatherPool, {}).block;
    return blocks[id.index()] != kNoBlock;
  };
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (candidate.persistent[i] != 0 && !allocate(ParamId(i))) {
      return std::nullopt;
    }
  }
  const std::vector<GatherEvent> events = EventList(memory, candidate).Collect();
  // Behind each step all but the kept parameters is free, so a step without a driver call leaves
  // the pool as it found it, and the next one is the same.
  constexpr int kSteps = 3;
  std::int64_t peak = 0;
  std::size_t calls = 0;
  for (int step = 0; step < kSteps; ++step) {
    const std::size_t before = allocator.segment_events().size();
    PeakSum sum(memory.allocated, allocator.stats().allocated.current.count());
    for (const GatherEvent& event : events) {
      if (event.frees) {
        allocator.Free(blocks[event.param.index()], {});
      } else if (!allocate(event.param)) {
        return std::nullopt;
      }
      sum.Change(event.stretch, allocator.stats().allocated.current.count());
    }
    peak = sum.Finish();
    calls = allocator.segment_events().size() - before;
    if (step > 0 && calls == 0) {
      break;
    }
  }
  if (calls != 0) {
    return std::nullopt;
  }
  return MemoryPeaks{Bytes(peak), memory.reserved + allocator.stats().reserved.current};
}

}  // namespace dcsim
