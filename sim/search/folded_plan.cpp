#include "sim/search/folded_plan.h"

#include <algorithm>
#include <map>

#include "model/base/scaled.h"
#include "model/graph/sharding.h"
#include "model/ir/micro_steps.h"
#include "sim/search/gather_task.h"

namespace dcsim {
namespace {

class Layout {
 public:
  Layout(const SearchProblem& problem, const FoldedProgram& program, const Candidate& candidate)
      : problem_(problem),
        program_(program),
        candidate_(candidate),
        launched_(problem.inputs.graph.params.size()),
        valid_(launched_.size()) {
    plan_.copy.reserve(program.copy.size());
    plan_.reduce.reserve(program.reduce.size());
  }

  FoldedPlan Run() {
    for (const auto& of_step : program_.anchors) {
      for (std::size_t g = 0; g < of_step.size(); ++g) {
        AddGraph(g, of_step[g]);
      }
      ++micro_step_;
    }
    AddFixedBefore(UINT64_MAX);
    SetPositions(plan_.gather, program_.first_step[At(Counter::kGather)]);
    SetPositions(plan_.reduce, program_.first_step[At(Counter::kReduce)]);
    SetPositions(plan_.copy, program_.first_step[At(Counter::kCopy)]);
    plan_.host = program_.host + shift_;
    return std::move(plan_);
  }

 private:
  /// Of the tasks behind the first step's end.
  static void SetPositions(std::vector<PlannedTask>& tasks, std::size_t first_step) {
    for (std::size_t i = first_step + 1; i < tasks.size(); ++i) {
      const bool begins =
          tasks[i].micro_step / kMicroStepPeriod != tasks[i - 1].micro_step / kMicroStepPeriod;
      tasks[i].position = begins ? 0 : tasks[i - 1].position + 1;
    }
  }

  void AddGraph(std::size_t g, const std::vector<FoldedAnchor>& anchors) {
    const GraphGathers& gathers = candidate_.gathers[g];
    const auto& uses = program_.uses[g];
    std::size_t launch = 0;
    std::size_t param = 0;
    std::size_t use = 0;
    while (launch < gathers.launches.size() || use < uses.size()) {
      const std::uint32_t next_launch =
          launch < gathers.launches.size() ? gathers.launches[launch].position : UINT32_MAX;
      const std::uint32_t next_use = use < uses.size() ? uses[use].first : UINT32_MAX;
      const std::uint32_t position = std::min(next_launch, next_use);
      const FoldedAnchor& anchor = anchors[position];
      AddFixedBefore(anchor.key);
      within_ = 0;
      for (; launch < gathers.launches.size() && gathers.launches[launch].position == position;
           ++launch) {
        const std::size_t end = gathers.launches[launch].end;
        AddLaunch(anchor, std::span(gathers.params).subspan(param, end - param));
        param = end;
      }
      for (; use < uses.size() && uses[use].first == position; ++use) {
        AddWait(anchor, uses[use].param);
      }
      if (within_ > 0) {
        plan_.shifts.push_back({anchor.compute, shift_});
      }
    }
  }

  /// Tasks and host waits that every plan has, up to a key.
  void AddFixedBefore(std::uint64_t key) {
    for (; next_gather_ < program_.gather.size() && program_.gather[next_gather_].key < key;
         ++next_gather_) {
      plan_.gather.push_back(Planned(program_.gather[next_gather_]));
    }
    for (; next_reduce_ < program_.reduce.size() && program_.reduce[next_reduce_].key < key;
         ++next_reduce_) {
      const FoldedTask& task = program_.reduce[next_reduce_];
      PlannedTask planned = Planned(task);
      if (task.shares_communicator) {
        planned.needs[At(Counter::kGather)] = launches_end_;
        reductions_end_ = static_cast<std::uint32_t>(plan_.reduce.size() + 1);
      }
      plan_.reduce.push_back(planned);
    }
    for (; next_copy_ < program_.copy.size() && program_.copy[next_copy_].key < key; ++next_copy_) {
      plan_.copy.push_back(Planned(program_.copy[next_copy_]));
    }
    for (; next_sync_ < program_.syncs.size() && program_.syncs[next_sync_].key < key;
         ++next_sync_) {
      plan_.syncs.push_back(program_.syncs[next_sync_]);
      plan_.syncs.back().reach += shift_;
    }
  }

  PlannedTask Planned(const FoldedTask& task) const {
    PlannedTask planned{task.issue + shift_, task.gpu, task.key, task.needs, task.micro_step};
    if (task.needs_compute) {
      planned.needs[At(Counter::kWait)] = static_cast<std::uint32_t>(plan_.waits.size());
    }
    if (task.needs_gathers) {
      planned.needs[At(Counter::kGather)] = launches_end_;
    }
    return planned;
  }

  /// A launch a dtype, of the parameters that are not there already.
  void AddLaunch(const FoldedAnchor& anchor, std::span<const ParamId> params) {
    if (params.size() == 1) {
      if (!Skips(params.front())) {
        AddGather(anchor, params);
      }
      return;
    }
    std::map<DType, std::vector<ParamId>> missing;
    for (const ParamId id : params) {
      if (!Skips(id)) {
        missing[problem_.inputs.graph.dtype(id)].push_back(id);
      }
    }
    for (const auto& [dtype, alike] : missing) {
      AddGather(anchor, alike);
    }
  }

  bool Skips(ParamId id) const { return valid_[id.index()] != 0; }

  void AddGather(const FoldedAnchor& anchor, std::span<const ParamId> params) {
    const auto further = static_cast<std::int64_t>(params.size()) - 1;
    const auto busy = [&](Duration call) { return Scaled(call, program_.host_slowdown).ns(); };
    shift_ += busy(program_.gather_call + program_.grouped_call * further);
    PlannedTask task;
    task.issue = anchor.host + shift_ - busy(program_.grouped_further * further);
    task.gpu = TaskOf(params);
    task.key = anchor.key | within_++;
    task.micro_step = micro_step_;
    // The first gathers of a step stand before all of its compute, and wait for none of it.
    const bool first = anchor.behind == program_.first_step[At(Counter::kCompute)];
    if (!first || !plan_.waits.empty()) {
      task.needs[At(Counter::kCompute)] = anchor.behind;
      task.needs[At(Counter::kWait)] = static_cast<std::uint32_t>(plan_.waits.size());
    }
    if (program_.one_communicator) {
      task.needs[At(Counter::kReduce)] = reductions_end_;
    }
    plan_.gather.push_back(task);
    launches_end_ = static_cast<std::uint32_t>(plan_.gather.size());
    for (const ParamId id : params) {
      launched_[id.index()] = launches_end_;
      valid_[id.index()] = candidate_.persistent[id.index()];
    }
  }

  /// An NCCL group runs as one kernel; copies follow each other.
  GpuTask TaskOf(std::span<const ParamId> params) const {
    if (params.size() == 1) {
      return program_.gather_alone[params.front().index()];
    }
    const Graph& graph = problem_.inputs.graph;
    std::vector<CollectivePart> parts;
    for (const ParamId id : params) {
      parts.push_back({GatheredBytes(graph, id, problem_.ranks), Bytes(0),
                       program_.shifted_shards[id.index()]});
    }
    return GatherTask(problem_.inputs.cluster, program_.gather_engine, parts, problem_.ranks);
  }

  /// Compute waits for a gather once; one that stays is waited for where it was gathered.
  void AddWait(const FoldedAnchor& anchor, ParamId id) {
    std::uint32_t& launched = launched_[id.index()];
    if (launched == 0) {
      return;
    }
    shift_ += program_.wait_host;
    plan_.waits.push_back({anchor.compute, launched, anchor.host + shift_, anchor.key | within_++});
    launched = 0;
  }

  const SearchProblem& problem_;
  const FoldedProgram& program_;
  const Candidate& candidate_;
  std::vector<std::uint32_t> launched_;  // by param: end of its launch, 0 once waited for
  std::vector<std::uint8_t> valid_;      // by param: gathered for the rest of the step
  FoldedPlan plan_;
  std::int64_t shift_ = 0;
  std::uint64_t within_ = 0;
  std::size_t micro_step_ = 0;
  std::uint32_t launches_end_ = 0;    // gather-stream tasks up to the last launch
  std::uint32_t reductions_end_ = 0;  // reduce-stream tasks up to the last shared collective
  std::size_t next_gather_ = 0;
  std::size_t next_reduce_ = 0;
  std::size_t next_copy_ = 0;
  std::size_t next_sync_ = 0;
};

}  // namespace

FoldedPlan LayOut(const SearchProblem& problem,
                  const FoldedProgram& program,
                  const Candidate& candidate) {
  return Layout(problem, program, candidate).Run();
}

}  // namespace dcsim
