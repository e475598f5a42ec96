#include "exec/profiler/busy_by_op.h"

#include <gtest/gtest.h>

namespace dcsim::exec {
namespace {

KernelRecord Kernel(std::uint64_t op, std::uint64_t start, std::uint64_t end) {
  KernelRecord record;
  record.label = op;
  record.start_ns = start;
  record.end_ns = end;
  return record;
}

TEST(BusyByOpTest, KernelsBehindEachOtherAddUp) {
  EXPECT_EQ(BusyByOp({Kernel(1, 10, 15), Kernel(1, 20, 27)}, 2),
            (std::vector<std::int64_t>{0, 12}));
}

// 10 to 30 and 40 to 45; another op's kernel in between counts for that one.
TEST(BusyByOpTest, KernelsBesideEachOtherCountOnce) {
  EXPECT_EQ(BusyByOp({Kernel(0, 10, 25), Kernel(0, 12, 20), Kernel(1, 18, 22), Kernel(0, 20, 30),
                      Kernel(0, 40, 45)},
                     2),
            (std::vector<std::int64_t>{25, 4}));
}

}  // namespace
}  // namespace dcsim::exec
