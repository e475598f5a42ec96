#include "sim/search/folded_program.h"

#include <algorithm>

#include "model/base/scaled.h"
#include "model/graph/param_shifts.h"
#include "model/graph/sharding.h"
#include "model/graph/step_facts.h"
#include "sim/search/folded_tail.h"
#include "sim/search/gather_task.h"

namespace dcsim {
namespace {

std::size_t Index(Counter counter) {
  return static_cast<std::size_t>(counter);
}

/// Counter of a stream's own tasks.
Counter CounterOf(std::uint8_t stream) {
  switch (static_cast<StreamRole>(stream)) {
    case StreamRole::kGather:
      return Counter::kGather;
    case StreamRole::kReduce:
      return Counter::kReduce;
    case StreamRole::kCopy:
      return Counter::kCopy;
    case StreamRole::kCompute:
    case StreamRole::kOffload:  // candidates move nothing to the host
    case StreamRole::kReload:
      break;
  }
  return Counter::kCompute;
}

/// A task of the base schedule: every gather at its use, nothing kept.
struct BaseTask {
  enum class Kind : std::uint8_t { kHost, kSync, kStream, kVariable };
  Kind kind = Kind::kHost;
  std::uint32_t index = 0;  // among the stream's fixed tasks
};

/// Folds one base schedule. Sets `covered_` to false where it finds a shape that it does not know.
class Folder {
 public:
  Folder(const SearchProblem& problem, const Schedule& schedule, std::uint32_t order)
      : problem_(problem),
        schedule_(schedule),
        orders_(problem.orders[order]),
        costs_(EstimateWorks(schedule,
                             problem.inputs.graph,
                             problem.inputs.profile,
                             problem.inputs.cluster,
                             problem.inputs.clock_mhz)),
        tasks_(schedule.task_count()),
        tail_(FindTail(schedule)) {}

  std::optional<FoldedProgram> Fold() {
    Classify();
    CheckTail();
    if (!covered_ || !IsQuietAtTail()) {
      return std::nullopt;
    }
    AddTasks(tail_, schedule_.task_count());
    program_.first_host = host_;
    program_.first_syncs = program_.syncs.size();
    for (std::size_t stream = 0; stream < kStreamCount; ++stream) {
      const auto counter = Index(CounterOf(static_cast<std::uint8_t>(stream)));
      program_.first_step[counter] = static_cast<std::uint32_t>(ListOf(stream).size());
    }
    in_first_ = false;
    AddTasks(0, schedule_.task_count());
    program_.host = host_;
    AddUses();
    AddPrices();
    return covered_ ? std::optional(std::move(program_)) : std::nullopt;
  }

 private:
  const WorkCost& CostOf(std::size_t task) const {
    return costs_[schedule_.task(TaskId(task)).work.index()];
  }

  std::vector<FoldedTask>& ListOf(std::size_t stream) {
    switch (static_cast<StreamRole>(stream)) {
      case StreamRole::kGather:
        return program_.gather;
      case StreamRole::kReduce:
        return program_.reduce;
      case StreamRole::kCopy:
        return program_.copy;
      case StreamRole::kCompute:
      case StreamRole::kOffload:
      case StreamRole::kReload:
        break;
    }
    return program_.compute;
  }

  bool IsGatherWait(TaskId id) const {
    const auto waits = schedule_.waits(id);
    return schedule_.task(id).kind == TaskKind::kWait && waits.size() == 1 &&
           schedule_.task(waits.front()).kind == TaskKind::kAllGather;
  }

  void Classify() {
    std::array<std::uint32_t, kStreamCount> counts{};
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      const TaskId id(i);
      const Task& task = schedule_.task(id);
      if (task.kind == TaskKind::kAllGather || IsGatherWait(id)) {
        tasks_[i].kind = BaseTask::Kind::kVariable;
      } else if (!task.on_host()) {
        tasks_[i] = {BaseTask::Kind::kStream, counts[task.stream]++};
        const auto role = static_cast<StreamRole>(task.stream);
        covered_ = covered_ && role != StreamRole::kOffload && role != StreamRole::kReload;
      } else if (!schedule_.waits(id).empty()) {
        tasks_[i].kind = BaseTask::Kind::kSync;
      }
      const bool priced = task.kind == TaskKind::kRelease && CostOf(i).host != Duration();
      covered_ = covered_ && !priced;
    }
  }

  void CheckTail() {
    // The host must spend time before it puts something on a stream again: then no task there
    // starts at the moment at which another one ended.
    std::int64_t host = 0;
    for (std::size_t next = tail_; next < tasks_.size() && host == 0; ++next) {
      host += CostOf(next).host.ns();
      if (tasks_[next].kind == BaseTask::Kind::kStream && host == 0) {
        covered_ = false;
      }
    }
    covered_ = covered_ && tail_ > 0 && host > 0;
  }

  bool IsOn(TaskId task, StreamRole stream) const {
    return schedule_.task(task).stream == static_cast<std::uint8_t>(stream);
  }

  /// The last task of a stream before `end`, variable ones included, or None().
  TaskId LastBefore(StreamRole stream, std::size_t end) const {
    for (std::size_t i = end; i-- > 0;) {
      if (IsOn(TaskId(i), stream)) {
        return TaskId(i);
      }
    }
    return TaskId::None();
  }

  /// Whether every stream is idle once the host goes on behind its last wait, in every plan. A task
  /// has ended if the host waited for it, if a task that has ended did, or if a later one of its
  /// stream has ended. Compute that has not is over at once. Gathers end before the ops that need
  /// them, all of which have ended.
  bool IsQuietAtTail() const {
    std::array<bool, kStreamCount> ended{};  // by stream: the tasks seen next
    std::vector<bool> waited(tasks_.size());
    for (std::size_t i = tail_; i-- > 0;) {
      const Task& task = schedule_.task(TaskId(i));
      const bool compute_ended = ended[static_cast<std::size_t>(StreamRole::kCompute)];
      bool has_ended = true;
      if (tasks_[i].kind == BaseTask::Kind::kVariable) {
        has_ended = compute_ended;
      } else if (tasks_[i].kind == BaseTask::Kind::kStream) {
        ended[task.stream] = ended[task.stream] || waited[i];
        has_ended = ended[task.stream];
      }
      if (has_ended) {
        for (const TaskId before : schedule_.waits(TaskId(i))) {
          waited[before.index()] = true;
        }
        continue;
      }
      const bool at_once = IsOn(TaskId(i), StreamRole::kCompute) &&
                           CostOf(i).device == Duration() &&
                           tasks_[i].kind == BaseTask::Kind::kStream;
      if (!at_once) {
        return false;
      }
    }
    return true;
  }

  /// Adds the tasks from `begin` on to the program, behind what it holds.
  void AddTasks(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      switch (tasks_[i].kind) {
        case BaseTask::Kind::kVariable:
          continue;
        case BaseTask::Kind::kHost:
          NoteOp(i);
          host_ += CostOf(i).host.ns();
          break;
        case BaseTask::Kind::kSync:
          AddSync(i);
          break;
        case BaseTask::Kind::kStream:
          NoteOp(i);
          host_ += CostOf(i).host.ns();
          AddStreamTask(i);
          break;
      }
      ++key_task_;
    }
  }

  /// The anchor of an op, when task `i` is one.
  void NoteOp(std::size_t i) {
    const Task& task = schedule_.task(TaskId(i));
    if (in_first_ || task.kind != TaskKind::kCompute) {
      return;
    }
    auto& anchors = program_.anchors;
    while (anchors.size() <= task.micro_step) {
      anchors.emplace_back(orders_.size());
    }
    auto& of_step = anchors[task.micro_step];
    std::size_t g = 0;
    while (g < orders_.size() && of_step[g].size() == orders_[g].size()) {
      ++g;
    }
    const OpId op(schedule_.work(task.work).subject);
    if (g == orders_.size() || orders_[g][of_step[g].size()] != op) {
      covered_ = false;
      return;
    }
    const auto before = static_cast<std::uint32_t>(program_.compute.size());
    of_step[g].push_back({KeyOf(key_task_, 0), before, before - (copied_inputs_ ? 1 : 0), host_});
  }

  void AddSync(std::size_t i) {
    FoldedSync sync;
    sync.reach = host_;
    sync.key = KeyOf(key_task_, kTaskItself);
    const auto waits = schedule_.waits(TaskId(i));
    // Gathers end before the ops that need them, and so before all of compute.
    const bool all_of_compute =
        std::find(waits.begin(), waits.end(), LastBefore(StreamRole::kCompute, i)) != waits.end();
    for (const TaskId waited : waits) {
      if (!all_of_compute || schedule_.task(waited).kind != TaskKind::kAllGather) {
        AddNeed(waited, sync.needs);
      }
    }
    program_.syncs.push_back(sync);
    host_ += CostOf(i).host.ns();
  }

  /// Ended tasks of a counter that a wait for a fixed task asks for.
  void AddNeed(TaskId waited, Counts& needs) {
    if (tasks_[waited.index()].kind != BaseTask::Kind::kStream) {
      covered_ = false;
      return;
    }
    const std::size_t counter = Index(CounterOf(schedule_.task(waited).stream));
    const std::uint32_t own = tasks_[waited.index()].index;
    std::uint32_t count = program_.first_step[counter] + own + 1;
    if (in_first_) {
      const std::uint32_t begun = CountBefore(schedule_.task(waited).stream);
      count = own < begun ? 0 : own - begun + 1;
    }
    needs[counter] = std::max(needs[counter], count);
  }

  /// Fixed tasks of a stream before the tail.
  std::uint32_t CountBefore(std::uint8_t stream) const {
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < tail_; ++i) {
      const bool counts = tasks_[i].kind == BaseTask::Kind::kStream;
      count += counts && schedule_.task(TaskId(i)).stream == stream ? 1U : 0U;
    }
    return count;
  }

  void AddStreamTask(std::size_t i) {
    const TaskId id(i);
    const std::uint8_t stream = schedule_.task(id).stream;
    FoldedTask task;
    task.issue = host_ - CostOf(i).further.ns();
    task.gpu = GpuTask::Of(CostOf(i), stream);
    task.key = KeyOf(key_task_, kTaskItself);
    task.micro_step = schedule_.task(id).micro_step;
    for (const TaskId waited : schedule_.waits(id)) {
      AddNeedOf(i, waited, task);
    }
    task.waits = !schedule_.waits(id).empty();
    if (&ListOf(stream) == &program_.compute) {
      copied_inputs_ = schedule_.task(id).kind == TaskKind::kCopyInputs;
      launches_.push_back(CostOf(i).launches);
    }
    if (const Collective* collective = schedule_.FindCollective(id)) {
      task.shares_communicator = !CopiesParams() && collective->communicator == 0;
      covered_ = covered_ && stream == static_cast<std::uint8_t>(StreamRole::kReduce);
    }
    ListOf(stream).push_back(task);
  }

  /// What task `i` of a stream waits for. All of compute that has been issued, gathers' waits
  /// included, and all gathers differ from plan to plan: AddNeed cannot count those.
  void AddNeedOf(std::size_t i, TaskId waited, FoldedTask& task) {
    if (IsOn(waited, StreamRole::kCompute)) {
      covered_ = covered_ && waited == LastBefore(StreamRole::kCompute, i);
      task.needs_compute = true;
      task.needs[Index(Counter::kCompute)] = static_cast<std::uint32_t>(program_.compute.size());
    } else if (schedule_.task(waited).kind == TaskKind::kAllGather) {
      covered_ = covered_ && waited == LastBefore(StreamRole::kGather, i);
      task.needs_gathers = true;
    } else {
      AddNeed(waited, task.needs);
    }
  }

  void AddUses() {
    const Graph& graph = problem_.inputs.graph;
    for (const auto& order : orders_) {
      std::vector<FoldedUse> of_graph = FindFoldedUses(graph, order);
      std::stable_sort(of_graph.begin(), of_graph.end(),
                       [](const FoldedUse& a, const FoldedUse& b) { return a.first < b.first; });
      program_.uses.push_back(std::move(of_graph));
    }
    for (const auto& of_step : program_.anchors) {
      for (std::size_t g = 0; g < orders_.size(); ++g) {
        covered_ = covered_ && of_step[g].size() == orders_[g].size();
      }
    }
    const auto steps = static_cast<std::size_t>(schedule_.options().gradient_accumulation_steps);
    covered_ = covered_ && program_.anchors.size() == steps;
  }

  void AddPrices() {
    const Cluster& cluster = problem_.inputs.cluster;
    const Graph& graph = problem_.inputs.graph;
    program_.gather_engine = schedule_.options().gather_engine;
    program_.shifted_shards = ShiftedShards(graph, schedule_.options(), problem_.ranks);
    for (std::size_t i = 0; i < graph.params.size(); ++i) {
      const CollectivePart part{GatheredBytes(graph, ParamId(i), problem_.ranks), Bytes(0),
                                program_.shifted_shards[i]};
      program_.gather_alone.push_back(
          GatherTask(cluster, program_.gather_engine, {&part, 1}, problem_.ranks));
    }
    constexpr std::int64_t kEventsOfACall = 3;
    const Duration copies = cluster.host.copy * problem_.ranks;
    const Duration events = cluster.host.event * kEventsOfACall;
    program_.gather_call = events + (CopiesParams() ? copies : cluster.host.collective);
    program_.grouped_call = events + (CopiesParams() ? copies : cluster.host.grouped);
    if (problem_.ranks == 1 && !CopiesParams()) {
      program_.grouped_further = cluster.host.grouped;
    }
    program_.host_slowdown = cluster.host_slowdown;
    program_.wait_host = Scaled(cluster.host.event, cluster.host_slowdown).ns();
    const auto options = OptionsFor(schedule_, cluster, problem_.inputs.clock_mhz);
    program_.synchronize = options.synchronize.ns();
    program_.sharing = GpuSharing::Options::Of(options, problem_.ranks);
    program_.one_communicator = !CopiesParams() && schedule_.options().communicators == 1;
    program_.room = FindLaunchRoom(program_, launches_, options.launch_queue);
    covered_ = covered_ && program_.room.least_slack >= 0;
    // One rank has no peer to copy from: its copies are simulated.
    covered_ = covered_ && !(problem_.ranks == 1 && CopiesParams());
  }

  /// Gathers are copies from the other ranks' memory, and queue in no communicator.
  bool CopiesParams() const { return schedule_.options().gather_engine == Engine::kCopyEngine; }

  const SearchProblem& problem_;
  const Schedule& schedule_;
  const std::vector<std::vector<OpId>>& orders_;
  std::vector<WorkCost> costs_;
  std::vector<BaseTask> tasks_;
  std::size_t tail_ = 0;
  bool covered_ = true;

  FoldedProgram program_;
  std::vector<std::int32_t> launches_;  // by compute task
  std::int64_t host_ = 0;
  std::size_t key_task_ = 0;
  bool in_first_ = true;
  bool copied_inputs_ = false;  // by the last compute task
};

}  // namespace

std::optional<FoldedProgram> FindFoldedProgram(const SearchProblem& problem,
                                               const ScheduleOptions& options,
                                               std::uint32_t order) {
  if (options.stage != 3 || options.fuse_casts || options.release != ReleaseMode::kEventOrdered ||
      options.synchronize != DeviceSynchronization()) {
    return std::nullopt;
  }
  const Schedule schedule =
      LowerFor(PlanOf(problem, GathersAtUse(problem, options, order)), problem.inputs);
  return Folder(problem, schedule, order).Fold();
}

}  // namespace dcsim
