#include "tools/common/collective_file.h"

#include "model/ir/collective_record.h"
#include "model/ir/plan_reader.h"

namespace dcsim {

std::string PrintCollectiveFile(const Schedule& schedule, const Plan& plan, const Graph& graph) {
  const Json record = PrintCollectiveRecord(schedule, PrintPlan(plan, graph), graph);
  std::string text = "{";
  for (const auto& [key, value] : record.items()) {
    text += (text.size() == 1 ? "\n " : ",\n ") + Json(key).dump() + ": ";
    if (key != "collectives") {
      text += value.dump();
      continue;
    }
    text += "[";
    for (std::size_t i = 0; i < value.size(); ++i) {
      text += (i == 0 ? "\n  " : ",\n  ") + value[i].dump();
    }
    text += "\n ]";
  }
  return text + "\n}\n";
}

}  // namespace dcsim
