#include <algorithm>
#include <array>
#include <bit>

#include "model/base/error.h"
#include "sim/engine/shared_work.h"
#include "sim/search/folded_plan.h"

namespace dcsim {
namespace {

constexpr std::int64_t kNever = SharedWork::kNever;
constexpr std::size_t kComputeStream = static_cast<std::size_t>(StreamRole::kCompute);
constexpr std::size_t kGatherStream = static_cast<std::size_t>(StreamRole::kGather);
constexpr std::size_t kReduceStream = static_cast<std::size_t>(StreamRole::kReduce);
constexpr std::size_t kFoldedStreams = 4;  // candidates leave the offload stream empty

constexpr std::size_t At(Counter counter) {
  return static_cast<std::size_t>(counter);
}

bool Reached(const Counts& done, const Counts& needs) {
  bool reached = true;
  for (std::size_t i = 0; i < kCounters; ++i) {
    reached = reached && done[i] >= needs[i];
  }
  return reached;
}

/// One stream between two events; the counterpart of StreamState.
struct FoldedStream {
  std::uint32_t next = 0;  // compute: folded tasks only
  bool running = false;
  bool arriving = false;
  bool held = false;
  DeviceUse use = DeviceUse::kStreaming;  // of the running task
  SharedWork work;                        // of the running task, once it has arrived
  std::int64_t free_since = -1;
  std::int64_t device = 0;       // of the running task
  std::int64_t ends = kNever;    // its end or arrival, as things stand
  std::int64_t issued = kNever;  // when the host issues the next task, if only that is missing
  std::uint64_t issued_key = 0;
  std::size_t segment = 0;  // stretch of the host's work, between two waits, of the next task
  std::int64_t first_step_end = 0;
};

/// The next task of a stream, as far as starting it goes.
struct NextTask {
  std::int64_t issue = 0;
  std::uint64_t key = 0;
  std::int64_t device = 0;
  DeviceUse use = DeviceUse::kStreaming;
  const Counts* needs = nullptr;  // null: none
  bool is_wait = false;           // of compute for a gather
};

/// SimulationRun without observers and memory, over folded tasks: the same events in the same
/// order. The host is no actor: where it does not wait, it issues tasks at times known beforehand.
class FoldedRun {
 public:
  FoldedRun(const FoldedProgram& program, const FoldedPlan& plan)
      : program_(program),
        plan_(plan),
        delays_(plan.syncs.size() + 1) {}

  Duration StepTime() {
    to_settle_ = (1U << kFoldedStreams) - 1;
    ResolveSyncs();
    Settle();
    while (Advance()) {
    }
    DCSIM_CHECK(resolved_ == plan_.syncs.size()) << "a folded plan cannot deadlock";
    std::int64_t first = program_.first_host;
    std::int64_t last = plan_.host + delays_.back();
    for (const FoldedStream& stream : streams_) {
      first = std::max(first, stream.first_step_end);
      last = std::max(last, stream.free_since);
    }
    return Duration::FromNs(last - first);
  }

 private:
  bool Advance() {
    RunComputeAlone();
    std::size_t device = 0;
    std::size_t host = 0;
    for (std::size_t s = 1; s < kFoldedStreams; ++s) {
      device = streams_[s].ends < streams_[device].ends ? s : device;
      host = IssuedBefore(streams_[s], streams_[host]) ? s : host;
    }
    if (streams_[device].ends <= streams_[host].issued) {
      if (streams_[device].ends == kNever) {
        return false;
      }
      now_ = streams_[device].ends;
      streams_[device].arriving ? Arrive(device) : End(device);
    } else {
      now_ = streams_[host].issued;
      host_time_ = now_;
      host_key_ = streams_[host].issued_key;
      to_settle_ |= 1U << host;
    }
    Settle();
    if (disturbed_ && program_.contention.measured) {
      UpdateRates();
    }
    return true;
  }

  static bool IssuedBefore(const FoldedStream& a, const FoldedStream& b) {
    return a.issued < b.issued || (a.issued == b.issued && a.issued_key < b.issued_key);
  }

  const std::vector<PlannedTask>& TasksOf(std::size_t stream) const {
    return stream == kGatherStream   ? plan_.gather
           : stream == kReduceStream ? plan_.reduce
                                     : plan_.copy;
  }

  /// False when the stream has no more tasks.
  bool FindNext(std::size_t stream, NextTask& next) {
    const FoldedStream& state = streams_[stream];
    if (stream != kComputeStream) {
      const auto& tasks = TasksOf(stream);
      if (state.next == tasks.size()) {
        return false;
      }
      const PlannedTask& task = tasks[state.next];
      next = {task.issue, task.key, task.device, task.use, &task.needs, false};
      return true;
    }
    if (next_wait_ < plan_.waits.size() && plan_.waits[next_wait_].before == state.next) {
      const PlannedWait& wait = plan_.waits[next_wait_];
      wait_needs_ = {};
      wait_needs_[At(Counter::kGather)] = wait.gather;
      next = {wait.issue, wait.key, 0, DeviceUse::kStreaming, &wait_needs_, true};
      return true;
    }
    if (state.next == program_.compute.size()) {
      return false;
    }
    const FoldedTask& task = program_.compute[state.next];
    next = {task.issue + ShiftAt(state.next),   task.key, task.device, task.use,
            task.waits ? &task.needs : nullptr, false};
    return true;
  }

  /// What gathers and waits have added to the host's time before a compute task. Asked for in
  /// ascending order.
  std::int64_t ShiftAt(std::uint32_t compute) {
    while (next_shift_ < plan_.shifts.size() && plan_.shifts[next_shift_].compute <= compute) {
      shift_ = plan_.shifts[next_shift_].host;
      ++next_shift_;
    }
    return shift_;
  }

  void TryStart(std::size_t stream) {
    FoldedStream& state = streams_[stream];
    state.issued = kNever;
    NextTask next;
    while (!state.running && FindNext(stream, next)) {
      while (state.segment < plan_.syncs.size() && next.key > plan_.syncs[state.segment].key) {
        ++state.segment;
      }
      const bool reached = next.needs == nullptr || Reached(done_, *next.needs);
      if (!reached || state.segment > resolved_) {
        return;
      }
      const std::int64_t issue = next.issue + delays_[state.segment];
      const bool seen =
          issue < now_ || (issue == now_ && host_time_ == now_ && next.key <= host_key_);
      if (!seen) {
        state.issued = issue;
        state.issued_key = next.key;
        return;
      }
      Start(stream, next);
    }
  }

  void Start(std::size_t stream, const NextTask& next) {
    FoldedStream& state = streams_[stream];
    if (next.device == 0) {
      Count(stream, next.is_wait);
      return;
    }
    state.running = true;
    state.device = next.device;
    state.use = next.use;
    if (next.use == DeviceUse::kCollective) {
      const bool queued = now_ == state.free_since;
      state.arriving = true;
      state.ends = now_ + (queued ? program_.queued_gap : program_.collective_gap);
      return;
    }
    Arrive(stream);
  }

  void Arrive(std::size_t stream) {
    FoldedStream& state = streams_[stream];
    state.arriving = false;
    state.held = state.use == DeviceUse::kCollective && FindsNoRoom();
    state.ends = state.work.Begin(now_, state.device);
    disturbed_ = true;
  }

  bool FindsNoRoom() const {
    const FoldedStream& compute = streams_[kComputeStream];
    return program_.contention.measured && compute.running && FillsGpu(compute.use);
  }

  void End(std::size_t stream) {
    streams_[stream].running = false;
    streams_[stream].ends = kNever;
    disturbed_ = true;
    if (stream == kComputeStream) {
      for (FoldedStream& other : streams_) {
        other.held = false;
      }
    }
    Count(stream, false);
    to_settle_ = (1U << kFoldedStreams) - 1;
  }

  /// A task of the stream has ended.
  void Count(std::size_t stream, bool is_wait) {
    static constexpr std::array<Counter, kFoldedStreams> kCounterOf = {
        Counter::kCompute, Counter::kGather, Counter::kReduce, Counter::kCopy};
    FoldedStream& state = streams_[stream];
    state.free_since = now_;
    to_settle_ = (1U << kFoldedStreams) - 1;
    if (is_wait) {
      ++next_wait_;
      ++done_[At(Counter::kWait)];
      return;
    }
    const std::size_t counter = At(kCounterOf[stream]);
    ++state.next;
    ++done_[counter];
    if (done_[counter] == program_.first_step[counter]) {
      state.first_step_end = now_;
    }
    ResolveSyncs();
  }

  /// Whether the host can go on behind its next wait, and when.
  void ResolveSyncs() {
    while (resolved_ < plan_.syncs.size() && Reached(done_, plan_.syncs[resolved_].needs)) {
      const std::int64_t delay = delays_[resolved_];
      const std::int64_t reach = plan_.syncs[resolved_].reach + delay;
      ++resolved_;
      delays_[resolved_] = now_ <= reach ? delay : delay + (now_ - reach) + program_.synchronize;
    }
  }

  void Settle() {
    while (to_settle_ != 0) {
      const auto stream = static_cast<std::size_t>(std::countr_zero(to_settle_));
      to_settle_ &= to_settle_ - 1;
      TryStart(stream);
    }
  }

  std::int32_t RateOf(std::size_t stream) const {
    if (streams_[stream].held) {
      return 0;
    }
    std::int32_t rate = Contention::kAlone;
    for (std::size_t s = 0; s < kFoldedStreams; ++s) {
      const FoldedStream& other = streams_[s];
      if (s != stream && other.running && !other.arriving && !other.held) {
        rate = std::min(rate, program_.contention.Rate(streams_[stream].use, other.use));
      }
    }
    return rate;
  }

  void UpdateRates() {
    disturbed_ = false;
    for (std::size_t s = 0; s < kFoldedStreams; ++s) {
      FoldedStream& state = streams_[s];
      if (!state.running || state.arriving) {
        continue;
      }
      if (const std::int32_t rate = RateOf(s); rate != state.work.rate) {
        state.ends = state.work.ChangeRate(now_, rate);
      }
    }
  }

  /// The compute task before which something else may happen: one that another stream or the host
  /// waits for, or that waits itself.
  std::uint32_t ComputeLimit() const {
    auto limit = static_cast<std::uint32_t>(program_.compute.size());
    if (next_wait_ < plan_.waits.size()) {
      limit = std::min(limit, plan_.waits[next_wait_].before);
    }
    const auto stop_at = [&](const Counts& needs) {
      const std::uint32_t need = needs[At(Counter::kCompute)];
      limit = need > streams_[kComputeStream].next ? std::min(limit, need) : limit;
    };
    for (std::size_t s = 1; s < kFoldedStreams; ++s) {
      const auto& tasks = TasksOf(s);
      if (streams_[s].next < tasks.size()) {
        stop_at(tasks[streams_[s].next].needs);
      }
    }
    if (resolved_ < plan_.syncs.size()) {
      stop_at(plan_.syncs[resolved_].needs);
    }
    return limit;
  }

  /// Runs of compute in which nothing else happens, in one go.
  void RunComputeAlone() {
    FoldedStream& compute = streams_[kComputeStream];
    std::int64_t until = kNever;  // the first event of another stream
    for (std::size_t s = 1; s < kFoldedStreams; ++s) {
      if (streams_[s].running) {
        return;
      }
      until = std::min(until, streams_[s].issued);
    }
    if (!compute.running || compute.work.rate != Contention::kAlone) {
      return;
    }
    const std::uint32_t limit = ComputeLimit();
    std::int64_t end = compute.ends;
    std::uint32_t at = compute.next;
    const std::int64_t delay = delays_[compute.segment];
    const std::uint64_t last_key =
        compute.segment < plan_.syncs.size() ? plan_.syncs[compute.segment].key : UINT64_MAX;
    const std::uint32_t first_step = program_.first_step[At(Counter::kCompute)];
    while (end < until && at + 1 < limit && at + 1 != first_step) {
      const FoldedTask& task = program_.compute[at + 1];
      if (task.waits || task.device == 0 || task.key > last_key) {
        break;
      }
      const std::int64_t start = std::max(end, task.issue + ShiftAt(at + 1) + delay);
      if (start >= until) {
        break;
      }
      ++at;
      compute.work.updated = start;
      compute.device = task.device;
      compute.use = task.use;
      end = start + task.device;
    }
    if (at == compute.next) {
      return;
    }
    done_[At(Counter::kCompute)] += at - compute.next;
    compute.next = at;
    compute.work.left = compute.device * Contention::kAlone;
    compute.ends = end;
    now_ = compute.work.updated;
  }

  const FoldedProgram& program_;
  const FoldedPlan& plan_;
  std::int64_t now_ = 0;
  std::array<FoldedStream, kFoldedStreams> streams_;
  Counts done_{};
  Counts wait_needs_{};
  std::size_t next_wait_ = 0;
  std::size_t next_shift_ = 0;
  std::int64_t shift_ = 0;
  std::vector<std::int64_t> delays_;  // by host segment: what waits have added to issue times
  std::size_t resolved_ = 0;          // host waits that are over, or will be when it gets there
  std::int64_t host_time_ = -1;
  std::uint64_t host_key_ = 0;
  std::uint32_t to_settle_ = 0;
  bool disturbed_ = false;
};

}  // namespace

Duration FoldedStepTime(const SearchProblem& problem,
                        const FoldedProgram& program,
                        const Candidate& candidate) {
  const FoldedPlan plan = LayOut(problem, program, candidate);
  return FoldedRun(program, plan).StepTime();
}

}  // namespace dcsim
