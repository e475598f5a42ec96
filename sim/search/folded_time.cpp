#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "model/base/error.h"
#include "sim/engine/gpu_sharing.h"
#include "sim/engine/lockstep.h"
#include "sim/search/folded_plan.h"
#include "sim/search/host_lead.h"

namespace dcsim {
namespace {

constexpr std::int64_t kNever = GpuSharing::kNever;
constexpr std::size_t kComputeStream = static_cast<std::size_t>(StreamRole::kCompute);
constexpr std::size_t kGatherStream = static_cast<std::size_t>(StreamRole::kGather);
constexpr std::size_t kReduceStream = static_cast<std::size_t>(StreamRole::kReduce);
constexpr std::size_t kFoldedStreams = 4;  // candidates leave the offload stream empty

constexpr std::array<Counter, kFoldedStreams> kCounterOf = {Counter::kCompute, Counter::kGather,
                                                            Counter::kReduce, Counter::kCopy};
constexpr GpuTask kNoTask{};

/// One stream between two events; the counterpart of StreamState.
struct FoldedStream {
  std::uint32_t next = 0;  // compute: folded tasks only
  std::int64_t free_since = -1;
  std::int64_t issued = kNever;  // when the host issues the next task, if only that is missing
  std::uint64_t issued_key = 0;
  std::size_t segment = 0;  // stretch of the host's work, between two waits, of the next task
  std::int64_t first_step_end = 0;
};

/// The next task of a stream, as far as starting it goes.
struct NextTask {
  std::int64_t issue = 0;
  std::uint64_t key = 0;
  const GpuTask* task = &kNoTask;  // a wait takes no time
  const Counts* needs = nullptr;   // null: none
  bool is_wait = false;            // of compute for a gather
};

/// SimulationRun without observers and memory, over folded tasks: the same events in the same
/// order. The host is no actor: where it does not wait, it issues tasks at times known beforehand.
class FoldedRun {
 public:
  /// `together`: when ranks went on together before it begins.
  FoldedRun(const FoldedProgram& program,
            const FoldedPlan& plan,
            std::uint32_t rank,
            std::int64_t together)
      : program_(program),
        plan_(plan),
        gpu_(program.sharing, rank),
        delays_(plan.syncs.size() + 1) {
    gpu_.set_together(together);
  }

  void Run() {
    Begin();
    for (Next next = NextEvent(); next.at != kNever; next = NextEvent()) {
      Step(next);
    }
  }

  /// The counterpart of SimulationRun::RunTogether.
  static void RunBoth(FoldedRun& run, FoldedRun& other) {
    GpuSharing::Join(run.gpu_, other.gpu_);
    run.Begin();
    other.Begin();
    const std::array<FoldedRun*, 2> runs = {&run, &other};
    RunInLockstep<FoldedRun>(runs);
  }

  Duration StepTime() const {
    DCSIM_CHECK(resolved_ == plan_.syncs.size()) << "a folded plan cannot deadlock";
    std::int64_t first = program_.first_host + delays_[program_.first_syncs];
    std::int64_t last = plan_.host + delays_.back();
    for (const FoldedStream& stream : streams_) {
      first = std::max(first, stream.first_step_end);
      last = std::max(last, stream.free_since);
    }
    return Duration::FromNs(last - first);
  }

  /// HostLead::TogetherBefore of this run.
  std::optional<std::int64_t> TogetherBefore() const {
    return lead_.TogetherBefore(program_.sharing.contention);
  }

  // For RunInLockstep.
  /// An event of a stream on the GPU, or the issue of its next task.
  struct Next {
    std::size_t stream = 0;
    bool issues = false;
    std::int64_t at = kNever;
  };

  Next NextEvent() const {
    std::size_t device = 0;
    std::size_t host = 0;
    for (std::size_t s = 1; s < kFoldedStreams; ++s) {
      device = gpu_.event(s) < gpu_.event(device) ? s : device;
      host = IssuedBefore(streams_[s], streams_[host]) ? s : host;
    }
    if (gpu_.event(device) <= streams_[host].issued) {
      return {device, false, gpu_.event(device)};
    }
    return {host, true, streams_[host].issued};
  }

  void Step(const Next& next) {
    now_ = next.at;
    if (next.issues) {
      lead_.HostDecides(resolved_);
      host_time_ = now_;
      host_key_ = streams_[next.stream].issued_key;
      to_settle_ |= 1U << next.stream;
    } else if (gpu_.Advance(next.stream, now_)) {
      Count(next.stream, false);
    }
    Settle();
    gpu_.Settle(now_);
    RunComputeAlone();
  }

  GpuSharing& gpu() { return gpu_; }
  static constexpr bool stopped() { return false; }

 private:
  void Begin() {
    to_settle_ = (1U << kFoldedStreams) - 1;
    ResolveSyncs();
    Settle();
    RunComputeAlone();
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
      next.issue = task.issue;
      next.key = task.key;
      next.task = &task.gpu;
      next.needs = &task.needs;
      return true;
    }
    if (next_wait_ < plan_.waits.size() && plan_.waits[next_wait_].before == state.next) {
      const PlannedWait& wait = plan_.waits[next_wait_];
      wait_needs_ = {};
      wait_needs_[At(Counter::kGather)] = wait.gather;
      next.issue = wait.issue;
      next.key = wait.key;
      next.needs = &wait_needs_;
      next.is_wait = true;
      return true;
    }
    if (state.next == program_.compute.size()) {
      return false;
    }
    const FoldedTask& task = program_.compute[state.next];
    next.issue = task.issue + ShiftAt(state.next);
    next.key = task.key;
    next.task = &task.gpu;
    next.needs = task.waits ? &task.needs : nullptr;
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
    for (NextTask next; !gpu_.running(stream) && FindNext(stream, next); next = {}) {
      while (state.segment < plan_.syncs.size() && next.key > plan_.syncs[state.segment].key) {
        ++state.segment;
      }
      if ((next.needs != nullptr && !Reached(done_, *next.needs)) || state.segment > resolved_) {
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
    const FoldedStream& state = streams_[stream];
    const bool at_once = now_ == state.free_since;
    const std::size_t task = TaskOfStep(stream, state.next);
    if (next.task->use == DeviceUse::kCollective && !at_once && gpu_.MeetsDriftedRanks()) {
      const bool in_first = state.next < program_.first_step[At(kCounterOf[stream])];
      lead_.NoteIdleWait(task * kFoldedStreams + stream, in_first, now_, now_ - gpu_.together(),
                         resolved_);
    }
    const std::size_t position = stream == kComputeStream ? 0 : TasksOf(stream)[task].position;
    gpu_.Start(stream, *next.task, at_once, position, now_);
    if (next.task->device == 0) {
      Count(stream, next.is_wait);
    }
  }

  /// A task of the first step's end is one of the whole step, too. Nobody asks for one of compute.
  std::size_t TaskOfStep(std::size_t stream, std::size_t task) const {
    if (stream == kComputeStream) {
      return 0;
    }
    const std::size_t first = program_.first_step[At(kCounterOf[stream])];
    return task < first ? TasksOf(stream).size() - first + task : task;
  }

  /// A task of the stream has ended.
  void Count(std::size_t stream, bool is_wait) {
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
      if (now_ <= reach) {
        lead_.HostDecides(resolved_);
      }
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
      if (gpu_.running(s)) {
        return;
      }
      until = std::min(until, streams_[s].issued);
    }
    if (!gpu_.running(kComputeStream) || !gpu_.undisturbed(kComputeStream)) {
      return;
    }
    const std::uint32_t limit = ComputeLimit();
    std::int64_t end = gpu_.event(kComputeStream);
    std::int64_t started = 0;
    std::int64_t together = gpu_.together();
    std::uint32_t at = compute.next;
    const std::int64_t delay = delays_[compute.segment];
    const std::uint64_t last_key =
        compute.segment < plan_.syncs.size() ? plan_.syncs[compute.segment].key : UINT64_MAX;
    const std::uint32_t first_step = program_.first_step[At(Counter::kCompute)];
    while (end < until && at + 1 < limit && at + 1 != first_step) {
      const FoldedTask& task = program_.compute[at + 1];
      if (task.waits || task.gpu.device == 0 || task.key > last_key) {
        break;
      }
      const std::int64_t start = std::max(end, task.issue + ShiftAt(at + 1) + delay);
      if (start >= until) {
        break;
      }
      ++at;
      if (start > end) {
        lead_.HostDecides(resolved_);
        together = start;
      }
      started = start;
      end = start + task.gpu.device;
    }
    if (at == compute.next) {
      return;
    }
    done_[At(Counter::kCompute)] += at - compute.next;
    compute.next = at;
    gpu_.RunOn(program_.compute[at].gpu, started, together);
    now_ = started;
  }

  const FoldedProgram& program_;
  const FoldedPlan& plan_;
  GpuSharing gpu_;
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
  HostLead lead_;
};

}  // namespace

std::optional<Duration> FindFoldedStepTime(const SearchProblem& problem,
                                           const FoldedProgram& program,
                                           const Candidate& candidate) {
  const FoldedPlan plan = LayOut(problem, program, candidate);
  if (!StaysAhead(program.room, plan)) {
    return std::nullopt;
  }
  std::array<std::int64_t, 2> together{};
  for (int attempt = 0; attempt < 2; ++attempt) {
    FoldedRun run(program, plan, 0, together[0]);
    std::optional<FoldedRun> other;
    if (program.sharing.RanksDiffer()) {
      other.emplace(program, plan, 1, together[1]);
      FoldedRun::RunBoth(run, *other);
    } else {
      run.Run();
    }
    const auto before = run.TogetherBefore();
    const auto others_before = other ? other->TogetherBefore() : std::nullopt;
    if (!before && !others_before) {
      return run.StepTime();
    }
    together = {before.value_or(together[0]), others_before.value_or(together[1])};
  }
  return std::nullopt;
}

}  // namespace dcsim
