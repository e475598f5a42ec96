#include "model/ir/task_label.h"

namespace dcsim {
namespace {

std::string OpLabel(const Graph& graph, OpId id) {
  std::string label(graph.target(id));
  const std::string& module = graph.modules[graph.op(id).module];
  return module.empty() ? label : label + " " + module;
}

std::string CollectiveLabel(const Collective& collective, const Graph& graph) {
  const auto& calls = collective.calls;
  if (calls.size() > 1) {
    return std::to_string(calls.size()) + " tensors";
  }
  return calls.front().param.is_none() ? "" : graph.param(calls.front().param).name;
}

/// What a copy between host and device moves, by its buffer on the device.
std::string MovedLabel(const Schedule& schedule, const Graph& graph, TaskId id) {
  const std::uint32_t subject = schedule.work(schedule.task(id).work).subject;
  for (const BufferUse& use : schedule.uses(id)) {
    switch (schedule.buffer(use.buffer).buffer_class) {
      case BufferClass::kPinnedHost:
        continue;
      case BufferClass::kParameter:
        return "shard of " + graph.param(ParamId(subject)).name;
      case BufferClass::kTemporary:
        return "updated shards";
      case BufferClass::kActivation:
        return "activation";
      default:
        return std::string(OptimizerTensorNames()[subject % kOptimizerTensors]);
    }
  }
  return "";
}

/// The parameter or tensors that a task without an op is about, or "".
std::string SubjectLabel(const Schedule& schedule, const Graph& graph, TaskId id) {
  const Work& work = schedule.work(schedule.task(id).work);
  if (work.kind == Work::Kind::kCollective) {
    return CollectiveLabel(schedule.collective(CollectiveId(work.subject)), graph);
  }
  switch (schedule.task(id).kind) {
    case TaskKind::kAccumulate:
    case TaskKind::kMakeContiguous:
    case TaskKind::kReduceGradCopy:
    case TaskKind::kCastShard:
      return graph.param(ParamId(work.subject)).name;
    case TaskKind::kPreDivide:
    case TaskKind::kFlatten:
    case TaskKind::kUnflatten:
    case TaskKind::kCastBucket:
    case TaskKind::kStoreReduced:
    case TaskKind::kGatherCopyIn:
    case TaskKind::kGatherCopyOut:
    case TaskKind::kReduceCopyIn:
      return CollectiveLabel(schedule.collective(CollectiveId(work.subject)), graph);
    case TaskKind::kOffload:
    case TaskKind::kReload:
      return MovedLabel(schedule, graph, id);
    case TaskKind::kRelease:
      return graph.param(ParamId(schedule.buffer(schedule.memory(id).front().buffer).subject)).name;
    case TaskKind::kWait: {
      const TaskId waited = schedule.waits(id).front();
      return "for " + TaskLabel(schedule, graph, waited);
    }
    default:
      return "";
  }
}

}  // namespace

std::string TaskLabel(const Schedule& schedule, const Graph& graph, TaskId id) {
  const Task& task = schedule.task(id);
  if (task.kind == TaskKind::kCompute) {
    return OpLabel(graph, OpId(schedule.work(task.work).subject));
  }
  const std::string subject = SubjectLabel(schedule, graph, id);
  const std::string kind(TaskKindName(task.kind));
  return subject.empty() ? kind : kind + " " + subject;
}

}  // namespace dcsim
