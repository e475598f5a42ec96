#include "model/passes/verify.h"

#include <algorithm>
#include <array>

#include "model/base/error.h"
#include "model/graph/sharding.h"
#include "model/ir/task_label.h"

namespace dcsim {
namespace {

/// How many tasks of each stream have certainly ended.
using Clock = std::array<std::uint32_t, kStreamCount>;

void Join(Clock& clock, const Clock& other) {
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    clock[s] = std::max(clock[s], other[s]);
  }
}

/// A task in one of the steps that are followed.
using RunId = Id<struct RunTag>;

/// A schedule runs again and again: a second step shows what it does to the one before it.
constexpr std::size_t kSteps = 2;

/// What has happened to one buffer so far.
struct BufferState {
  bool allocated = false;
  bool freed = false;
  bool filled = false;         // resident: what it held before the first step is still there
  bool used = false;           // since its allocation
  RunId writer;                // last one
  std::vector<RunId> readers;  // since that write
  Clock last_uses{};           // by stream: one past the position of its last use
  Clock reuse{};               // uses of freed memory that it may lie in
};

struct VerifyState {
  const Schedule& schedule;
  const Graph& graph;
  std::size_t step = 0;
  std::vector<std::uint32_t> positions;  // by run: on its stream, over all steps
  std::vector<Clock> clocks;             // by run: when it starts
  std::array<std::uint32_t, kStreamCount> counts{};
  std::array<RunId, kStreamCount> last;  // on each stream
  Clock host{};                          // what the host knows to have ended
  std::vector<BufferState> buffers;
  std::vector<BufferState> before;               // of the step before
  std::array<Clock, kStreamCount> freed_uses{};  // by pool: uses of what was freed into it
  RunId barrier;                                 // last one
  std::vector<RunId> updates;                    // of parameters that peers read, so far
  std::vector<RunId> peer_gathers;               // from peers' memory, so far
  std::vector<Violation> violations;

  RunId Run(TaskId task) const { return RunId(step * schedule.task_count() + task.index()); }
  std::string Label(RunId run) const {
    return TaskLabel(schedule, graph, TaskId(run.index() % schedule.task_count()));
  }

  void Report(Rule rule, TaskId task, BufferId buffer, const std::string& what) {
    const std::string who = task.is_none() ? "" : TaskLabel(schedule, graph, task) + ": ";
    const Violation violation{rule, task, buffer, who + what};
    const bool shown =
        std::find(violations.begin(), violations.end(), violation) != violations.end();
    if (step == 0 || !shown) {  // the second step repeats what the first has shown
      violations.push_back(violation);
    }
  }
  std::string Name(BufferId id) const {
    return "buffer " + std::to_string(id.index()) + " (" +
           std::string(BufferClassName(schedule.buffer(id).buffer_class)) + ")";
  }
};

/// Whether `earlier` has ended when `run` starts.
bool Ordered(const VerifyState& state, RunId earlier, RunId run) {
  const TaskId task(earlier.index() % state.schedule.task_count());
  const std::uint8_t stream = state.schedule.task(task).stream;
  return state.clocks[run.index()][stream] > state.positions[earlier.index()];
}

/// What is known to have ended when a task starts: what its stream knew before, its events, and
/// what the host knew when it issued it.
void SetClock(VerifyState& state, TaskId id) {
  const Task& task = state.schedule.task(id);
  Clock clock = state.host;
  for (const TaskId waited : state.schedule.waits(id)) {
    if (waited.index() >= id.index()) {
      state.Report(Rule::kWaitsForLaterTask, id, BufferId::None(),
                   "waits for a task that is issued after it");
      continue;
    }
    const RunId event = state.Run(waited);
    const std::uint8_t stream = state.schedule.task(waited).stream;
    Join(clock, state.clocks[event.index()]);
    clock[stream] = std::max(clock[stream], state.positions[event.index()] + 1);
  }
  const RunId run = state.Run(id);
  if (task.on_host()) {
    state.host = clock;
  } else {
    const RunId before = state.last[task.stream];
    if (!before.is_none()) {
      Join(clock, state.clocks[before.index()]);
    }
    state.positions[run.index()] = state.counts[task.stream]++;
    clock[task.stream] = std::max(clock[task.stream], state.positions[run.index()]);
    state.last[task.stream] = run;
  }
  state.clocks[run.index()] = clock;
}

void Allocate(VerifyState& state, TaskId task, BufferId id) {
  BufferState& buffer = state.buffers[id.index()];
  if (state.schedule.buffer(id).resident && buffer.freed) {
    buffer = BufferState();
  }
  if (buffer.allocated) {
    state.Report(Rule::kAllocatedTwice, task, id, state.Name(id) + " is allocated a second time");
  }
  buffer.allocated = true;
  buffer.reuse = state.freed_uses[state.schedule.buffer(id).pool];
}

void Free(VerifyState& state, TaskId task, BufferId id) {
  const Buffer& declared = state.schedule.buffer(id);
  if (declared.carried && state.step == 0) {
    return;  // there is none of a step before
  }
  BufferState& buffer = declared.carried ? state.before[id.index()] : state.buffers[id.index()];
  if (!buffer.allocated || buffer.freed) {
    const Rule rule = buffer.freed ? Rule::kFreedTwice : Rule::kUsedUnallocated;
    state.Report(rule, task, id, state.Name(id) + " is freed and not alive");
    return;
  }
  buffer.freed = true;
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    const bool deferred = (declared.recorded_streams >> s & 1U) != 0;
    if (!deferred) {
      std::uint32_t& needed = state.freed_uses[declared.pool][s];
      needed = std::max(needed, buffer.last_uses[s]);
    }
  }
}

void CheckReuse(VerifyState& state, TaskId task, BufferId id) {
  const Clock& clock = state.clocks[state.Run(task).index()];
  const Clock& needed = state.buffers[id.index()].reuse;
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    if (clock[s] < needed[s]) {
      state.Report(Rule::kReusedTooEarly, task, id,
                   state.Name(id) + " may lie in memory that the " +
                       std::string(StreamRoleName(static_cast<StreamRole>(s))) +
                       " stream still uses");
      return;
    }
  }
}

void CheckRead(VerifyState& state, TaskId task, BufferId id) {
  BufferState& buffer = state.buffers[id.index()];
  const RunId run = state.Run(task);
  if (buffer.writer.is_none() && !buffer.filled) {
    state.Report(Rule::kUsedBeforeWritten, task, id,
                 "reads " + state.Name(id) + ", which no task before it writes");
  } else if (!buffer.writer.is_none() && !Ordered(state, buffer.writer, run)) {
    state.Report(
        Rule::kUsedBeforeWritten, task, id,
        "may read " + state.Name(id) + " before " + state.Label(buffer.writer) + " has written it");
  }
  buffer.readers.push_back(run);
}

void CheckWrite(VerifyState& state, TaskId task, BufferId id) {
  BufferState& buffer = state.buffers[id.index()];
  const RunId run = state.Run(task);
  const auto check = [&](RunId earlier) {
    if (!earlier.is_none() && earlier != run && !Ordered(state, earlier, run)) {
      state.Report(Rule::kOverwrittenWhileUsed, task, id,
                   "may write " + state.Name(id) + " while " + state.Label(earlier) + " uses it");
    }
  };
  check(buffer.writer);
  std::for_each(buffer.readers.begin(), buffer.readers.end(), check);
  buffer.writer = run;
  buffer.readers.clear();
}

void Use(VerifyState& state, TaskId task, const BufferUse& use) {
  const Buffer& declared = state.schedule.buffer(use.buffer);
  BufferState& buffer = state.buffers[use.buffer.index()];
  if (!declared.on_host() && (!buffer.allocated || buffer.freed)) {
    state.Report(Rule::kUsedUnallocated, task, use.buffer,
                 state.Name(use.buffer) +
                     (buffer.freed ? " was freed before this use" : " is not allocated yet"));
    return;
  }
  if (!declared.on_host() && !buffer.used) {
    CheckReuse(state, task, use.buffer);
  }
  buffer.used = true;
  if (use.writes) {
    CheckWrite(state, task, use.buffer);
  } else {
    CheckRead(state, task, use.buffer);
  }
  const std::uint8_t stream = state.schedule.task(task).stream;
  buffer.last_uses[stream] = state.positions[state.Run(task).index()] + 1;
}

/// Whether a barrier lies between `earlier` tasks of every rank and this run of each of them.
bool Separated(const VerifyState& state, const std::vector<RunId>& earlier, RunId run) {
  const RunId barrier = state.barrier;
  return earlier.empty() || (!barrier.is_none() && Ordered(state, barrier, run) &&
                             std::all_of(earlier.begin(), earlier.end(), [&](RunId other) {
                               return Ordered(state, other, barrier);
                             }));
}

/// Ranks read each other's parameters only between a barrier behind one update and one before the
/// next.
void CheckPeers(VerifyState& state, TaskId id) {
  const TaskKind kind = state.schedule.task(id).kind;
  const RunId run = state.Run(id);
  if (kind == TaskKind::kBarrier) {
    state.barrier = run;
  } else if (kind == TaskKind::kStoreParams && !state.peer_gathers.empty()) {
    if (!Separated(state, state.peer_gathers, run)) {
      state.Report(Rule::kReadsPeersTooEarly, id, BufferId::None(),
                   "may change parameters that peers still gather");
    }
    state.updates.push_back(run);
  } else if (const Collective* collective = state.schedule.FindCollective(id);
             collective != nullptr && collective->engine == Engine::kCopyEngine) {
    if (!Separated(state, state.updates, run)) {
      state.Report(Rule::kReadsPeersTooEarly, id, BufferId::None(),
                   "may gather parameters that peers have not updated yet");
    }
    state.peer_gathers.push_back(run);
  }
}

/// Allocations come before a task's uses and frees after them, whatever their order in its list.
void CheckTask(VerifyState& state, TaskId id) {
  SetClock(state, id);
  CheckPeers(state, id);
  for (const MemoryStep& step : state.schedule.memory(id)) {
    if (!step.frees) {
      Allocate(state, id, step.buffer);
    }
  }
  for (const BufferUse& use : state.schedule.uses(id)) {
    Use(state, id, use);
  }
  for (const MemoryStep& step : state.schedule.memory(id)) {
    if (step.frees) {
      Free(state, id, step.buffer);
    }
  }
}

/// What a step has not freed at its end: carried buffers are those of the step before.
void CheckLeaks(VerifyState& state) {
  for (std::size_t i = 0; i < state.buffers.size(); ++i) {
    const Buffer& declared = state.schedule.buffers()[i];
    const BufferState& buffer = declared.carried ? state.before[i] : state.buffers[i];
    const bool there = buffer.allocated && !buffer.freed;
    if (there != declared.resident) {
      state.Report(there ? Rule::kNeverFreed : Rule::kNeverReturned, TaskId::None(), BufferId(i),
                   state.Name(BufferId(i)) +
                       (there ? " is never freed" : " is not there when the step ends"));
    }
  }
}

/// Buffers of the next step are new ones, residents excepted.
void StartStep(VerifyState& state, std::size_t step) {
  state.step = step;
  state.before = std::move(state.buffers);
  state.buffers.assign(state.before.size(), BufferState());
  for (std::size_t i = 0; i < state.buffers.size(); ++i) {
    if (state.schedule.buffers()[i].resident) {
      state.buffers[i] = std::move(state.before[i]);
    }
  }
}

/// By parameter: its calls in the tasks of one kind. A call over a whole flat tensor is one of each
/// parameter of that dtype.
std::vector<int> CountCalls(const Schedule& schedule, const Graph& graph, TaskKind kind) {
  std::vector<int> counts(graph.params.size());
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    const TaskId id(i);
    if (schedule.task(id).kind != kind) {
      continue;
    }
    const auto& collective =
        schedule.collective(CollectiveId(schedule.work(schedule.task(id).work).subject));
    for (const CollectiveCall& call : collective.calls) {
      if (!call.param.is_none()) {
        ++counts[call.param.index()];
        continue;
      }
      for (std::size_t p = 0; p < counts.size(); ++p) {
        counts[p] += graph.dtype(ParamId(p)) == collective.dtype ? 1 : 0;
      }
    }
  }
  return counts;
}

std::vector<bool> ParamsWithGradient(const Graph& graph) {
  std::vector<bool> has(graph.params.size());
  for (const Subgraph& subgraph : graph.graphs) {
    for (const GraphOutput& output : subgraph.outputs) {
      if (output.kind == GraphOutputKind::kGradient) {
        has[output.param.index()] = true;
      }
    }
  }
  return has;
}

/// ZeRO-1 reduces once a step, ZeRO-2 and 3 once a micro-step unless coalesced.
void CheckReductions(VerifyState& state) {
  const ScheduleOptions& options = state.schedule.options();
  const int expected = ReducesOnce(options) ? 1 : options.gradient_accumulation_steps;
  const auto reduced = CountCalls(state.schedule, state.graph, TaskKind::kReduce);
  const auto gathered = CountCalls(state.schedule, state.graph, TaskKind::kGatherUpdated);
  const auto has_gradient = ParamsWithGradient(state.graph);
  for (std::size_t i = 0; i < has_gradient.size(); ++i) {
    const std::string& name = state.graph.params[i].name;
    if (has_gradient[i] && reduced[i] != expected) {
      state.Report(Rule::kMissingReduction, TaskId::None(), BufferId::None(),
                   "the gradient of " + name + " is reduced " + std::to_string(reduced[i]) +
                       " times, expected " + std::to_string(expected));
    }
    if (has_gradient[i] && options.stage != 3 && gathered[i] != 1) {
      state.Report(Rule::kMissingUpdate, TaskId::None(), BufferId::None(),
                   "the update of " + name + " is gathered " + std::to_string(gathered[i]) +
                       " times, expected once");
    }
  }
}

}  // namespace

std::string_view RuleName(Rule rule) {
  constexpr std::array<std::string_view, 12> kNames = {"waits for a later task",
                                                       "used before written",
                                                       "overwritten while used",
                                                       "used unallocated",
                                                       "allocated twice",
                                                       "freed twice",
                                                       "never freed",
                                                       "reused too early",
                                                       "missing reduction",
                                                       "reads peers too early",
                                                       "missing update",
                                                       "never returned"};
  return kNames[static_cast<std::size_t>(rule)];
}

std::vector<Violation> Verify(const Schedule& schedule, const Graph& graph) {
  VerifyState state{schedule, graph, 0, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  state.positions.resize(kSteps * schedule.task_count());
  state.clocks.resize(kSteps * schedule.task_count());
  state.buffers.resize(schedule.buffers().size());
  for (std::size_t i = 0; i < state.buffers.size(); ++i) {
    const Buffer& declared = schedule.buffers()[i];
    state.buffers[i].allocated = declared.resident;
    state.buffers[i].filled = declared.starts_filled();
  }
  for (std::size_t step = 0; step < kSteps; ++step) {
    StartStep(state, step);
    for (std::size_t i = 0; i < schedule.task_count(); ++i) {
      CheckTask(state, TaskId(i));
    }
    CheckLeaks(state);
  }
  CheckReductions(state);
  return std::move(state.violations);
}

void RequireCorrect(const Schedule& schedule, const Graph& graph) {
  const auto violations = Verify(schedule, graph);
  if (violations.empty()) {
    return;
  }
  constexpr std::size_t kShown = 5;
  std::string text = "the schedule breaks " + std::to_string(violations.size()) + " rules";
  for (std::size_t i = 0; i < std::min(kShown, violations.size()); ++i) {
    text += "\n  " + violations[i].message;
  }
  throw Error(text);
}

}  // namespace dcsim
