#include "sim/search/folded_tail.h"

namespace dcsim {

std::size_t FindTail(const Schedule& schedule) {
  std::size_t waited = 0;
  std::size_t tail = 0;
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    if (!schedule.task(TaskId(i)).on_host()) {
      tail = waited;
    } else if (!schedule.waits(TaskId(i)).empty()) {
      waited = i + 1;
    }
  }
  return tail;
}

}  // namespace dcsim
