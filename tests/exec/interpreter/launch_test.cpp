// What a launch of a Triton kernel hands the driver: a grid, and arguments in their own widths.

#include <cstring>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec/interpreter/launch_arguments.h"
#include "exec/interpreter/launch_grid.h"
#include "model/ir/document.h"
#include "tests/support/source_folder.h"

namespace dcsim::exec {
namespace {

using Numbers = std::map<std::string, std::int64_t>;

// tests/recorder/test_kernels.py asks Inductor for the same grids.
TEST(LaunchGridTest, IsInductors) {
  std::ifstream file(SourceFolder() + "/tests/data/inductor/grids.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const Json& row : ParseJson(text, "grids.json")) {
    const std::string rule = row["rule"];
    const auto config = row["config"].get<KernelConfig>();
    EXPECT_EQ(FindGridFault(rule, config), "");
    EXPECT_EQ(GridOf(rule, config, row["numbers"].get<Numbers>()),
              (LaunchGrid{row["grid"][0], row["grid"][1], row["grid"][2]}))
        << row;
  }
}

TEST(LaunchGridTest, UnknownRulesAreNamed) {
  EXPECT_EQ(FindGridFault("SplitScanGrid", {{"R0_BLOCK", 4}}),
            "has grid SplitScanGrid, which dc-run cannot compute");
  EXPECT_EQ(FindGridFault("MixOrderReductionGrid", {{"XBLOCK", 4}}),
            "has grid MixOrderReductionGrid and no RSPLIT_SIZE");
}

template <typename Number>
Number Read(LaunchArguments& arguments, std::size_t index) {
  EXPECT_EQ(arguments.bytes(index).size(), sizeof(Number));
  Number number;
  std::memcpy(&number, arguments.data()[index], sizeof(number));
  return number;
}

TEST(LaunchArgumentsTest, EachHasItsOwnWidth) {
  const std::vector<KernelArgument> signature = {
      {"in_ptr0", "*bf16"}, {"xnumel", "constexpr"}, {"ynumel", "i32"}, {"r0_numel", "i64"},
      {"scale", "fp32"},    {"shift", "fp64"},       {"flag", "i1"}};
  LaunchArguments arguments(signature, {0, 2, 3, 4, 5, 6});
  const int element = 0;
  arguments.Set(0, static_cast<const void*>(&element));
  arguments.Set(1, std::int64_t{-5});
  arguments.Set(2, std::int64_t{1} << 40);
  arguments.Set(3, 0.1);
  arguments.Set(4, std::int64_t{3});  // JSON does not tell 3.0 from 3
  arguments.Set(5, std::int64_t{1});
  EXPECT_EQ(Read<const void*>(arguments, 0), &element);
  EXPECT_EQ(Read<std::int32_t>(arguments, 1), -5);
  EXPECT_EQ(Read<std::int64_t>(arguments, 2), std::int64_t{1} << 40);
  EXPECT_EQ(Read<float>(arguments, 3), 0.1F);
  EXPECT_EQ(Read<double>(arguments, 4), 3.0);
  EXPECT_EQ(Read<std::int8_t>(arguments, 5), 1);
}

TEST(LaunchArgumentsTest, TwoNullPointersToScratchMemoryStandBehindThem) {
  LaunchArguments arguments({{"in_ptr0", "*fp32"}}, {0});
  ASSERT_EQ(arguments.size(), 3U);
  EXPECT_EQ(Read<const void*>(arguments, 1), nullptr);
  EXPECT_EQ(Read<const void*>(arguments, 2), nullptr);
}

TEST(LaunchArgumentsTest, MovedOnesStillPointToTheirOwn) {
  LaunchArguments first({{"xnumel", "i32"}}, {0});
  first.Set(0, std::int64_t{7});
  first.data();
  LaunchArguments second = std::move(first);
  second.Set(0, std::int64_t{8});
  EXPECT_EQ(Read<std::int32_t>(second, 0), 8);
}

TEST(LaunchArgumentsTest, TypesThatTritonPassesOtherwiseAreNotPassed) {
  EXPECT_TRUE(CanPass({"in_ptr0", "*fp16"}));
  EXPECT_TRUE(CanPass({"seed", "u64"}));
  EXPECT_FALSE(CanPass({"alpha", "bf16"}));
  EXPECT_FALSE(CanPass({"table", "tensordesc<fp16[16,16]>"}));
}

}  // namespace
}  // namespace dcsim::exec
