#include "tools/views/memory_csv.h"

#include "model/ir/task_label.h"
#include "tools/views/table_text.h"

namespace dcsim {
std::string PrintMemoryCsv(const Timeline& timeline, const Schedule& schedule, const Graph& graph) {
  std::string text =
      "time_ns,rank,task,kind,label,live_bytes,allocated_bytes,active_bytes,reserved_bytes\n";
  for (const MemorySample& sample : timeline.memory) {
    const auto add = [&text](const std::string& field) { text += field + ","; };
    add(std::to_string(sample.time.ns()));
    add(std::to_string(sample.rank));
    add(std::to_string(sample.task.index()));
    add(std::string(TaskKindName(schedule.task(sample.task).kind)));
    add(CsvField(TaskLabel(schedule, graph, sample.task)));
    add(std::to_string(sample.live.count()));
    add(std::to_string(sample.allocated.count()));
    add(std::to_string(sample.active.count()));
    text += std::to_string(sample.reserved.count()) + "\n";
  }
  return text;
}

}  // namespace dcsim
