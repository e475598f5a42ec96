#include "model/ir/schedule_text.h"

#include "model/ir/task_label.h"

namespace dcsim {
namespace {

std::string Name(BufferId id) {
  return "b" + std::to_string(id.index());
}

std::string WorkText(const Schedule& schedule, TaskId id) {
  const Work& work = schedule.work(schedule.task(id).work);
  if (work.kind == Work::Kind::kMemory) {
    return " [" + std::to_string(work.moved.count()) + " B]";
  }
  const Collective* collective = schedule.FindCollective(id);
  return collective == nullptr ? "" : " [" + std::to_string(collective->payload().count()) + " B]";
}

std::string UsesText(const Schedule& schedule, TaskId id, bool writes) {
  std::string text;
  for (const BufferUse& use : schedule.uses(id)) {
    if (use.writes == writes) {
      text += (text.empty() ? (writes ? " w " : " r ") : ",") + Name(use.buffer);
    }
  }
  return text;
}

std::string TaskText(const Schedule& schedule, const Graph& graph, TaskId id) {
  const Task& task = schedule.task(id);
  const std::string stream =
      task.on_host() ? "host" : std::string(StreamRoleName(static_cast<StreamRole>(task.stream)));
  std::string text = std::to_string(id.index()) + " " + stream + " " +
                     TaskLabel(schedule, graph, id) + WorkText(schedule, id);
  for (std::size_t i = 0; i < schedule.waits(id).size(); ++i) {
    text += (i == 0 ? " after " : ",") + std::to_string(schedule.waits(id)[i].index());
  }
  text += UsesText(schedule, id, false) + UsesText(schedule, id, true);
  for (const MemoryStep& step : schedule.memory(id)) {
    text += (step.frees ? " -" : " +") + Name(step.buffer);
  }
  return text + "\n";
}

}  // namespace

std::string PrintScheduleText(const Schedule& schedule, const Graph& graph) {
  std::string text;
  for (const BufferId id : schedule.residents()) {
    const Buffer& buffer = schedule.buffer(id);
    text +=
        "resident " + Name(id) + " " + std::string(BufferClassName(buffer.buffer_class)) + " " +
        std::to_string(buffer.bytes.count()) + " B" +
        (buffer.first_user.is_none() ? "" : " from " + std::to_string(buffer.first_user.index())) +
        "\n";
  }
  for (std::size_t i = 0; i < schedule.buffers().size(); ++i) {
    const Buffer& buffer = schedule.buffers()[i];
    if (buffer.on_host()) {
      text += "pinned " + Name(BufferId(i)) + " " + std::to_string(buffer.bytes.count()) + " B\n";
    }
  }
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    text += TaskText(schedule, graph, TaskId(i));
  }
  return text;
}

}  // namespace dcsim
