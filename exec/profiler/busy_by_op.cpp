#include "exec/profiler/busy_by_op.h"

#include "exec/profiler/intervals.h"

namespace dcsim::exec {

std::vector<std::int64_t> BusyByOp(const std::vector<KernelRecord>& records, std::size_t ops) {
  std::vector<Intervals> by_op(ops);
  for (const KernelRecord& record : records) {
    by_op[record.label].emplace_back(record.start_ns, record.end_ns);
  }
  std::vector<std::int64_t> busy;
  for (Intervals& kernels : by_op) {
    busy.push_back(Length(Union(std::move(kernels))).ns());
  }
  return busy;
}

}  // namespace dcsim::exec
