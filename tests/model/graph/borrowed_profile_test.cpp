// What a profile of a graph of operators says of its compiled form.

#include "model/graph/borrowed_profile.h"

#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "tests/support/compiled_document.h"

namespace dcsim {
namespace {

constexpr char kOperators[] = R"(
graph small 4 tokens
param w float32[4,4]
input x float32[4,4]
forward
  y: float32[4,4] = aten::mm(x, w)
  l: float32[] = aten::sum(y)
  loss l
)";

Profile MeasuredProfile(std::int64_t first, std::int64_t second) {
  Profile profile;
  profile.step_time = Duration::FromNs((first + second) * 2);
  for (const std::int64_t ns : {first, second}) {
    OpProfile op;
    op.op = OpId(profile.ops.size());
    op.device_time = Duration::FromNs(ns);
    profile.ops.push_back(op);
  }
  profile.side_by_side = profile.ops;
  return profile;
}

TEST(BorrowedProfileTest, CallsTakeAsLongAsTheSameCalls) {
  const Graph compiled = CompiledGraph();
  const Profile borrowed =
      BorrowProfile({ParseGraphText(kOperators), MeasuredProfile(30, 70)}, compiled);
  EXPECT_EQ(borrowed.graph_hash, compiled.hash);
  ASSERT_EQ(borrowed.ops.size(), 1U);
  EXPECT_EQ(borrowed.ops.front().op, OpId(0));
  EXPECT_EQ(borrowed.ops.front().device_time.ns(), 30);
  EXPECT_TRUE(borrowed.side_by_side.empty());
  EXPECT_EQ(borrowed.step_time.ns(), 60);  // twice the ops, as measured
  ASSERT_NE(borrowed.borrowed_from, nullptr);
  EXPECT_EQ(borrowed.borrowed_from->profile.ops.size(), 2U);
}

TEST(BorrowedProfileTest, OtherShapesAreOtherCalls) {
  Graph compiled = CompiledGraph();
  compiled.values[0].strides = {1, 4};
  EXPECT_TRUE(
      BorrowProfile({ParseGraphText(kOperators), MeasuredProfile(30, 70)}, compiled).ops.empty());
}

}  // namespace
}  // namespace dcsim
