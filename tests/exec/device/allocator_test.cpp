#include "exec/device/allocator.h"

#include <gtest/gtest.h>

#include <c10/core/AllocatorConfig.h>

namespace dcsim::exec {
namespace {

using Settings = c10::CachingAllocator::AcceleratorAllocatorConfig;

/// The settings are the process's: each test leaves PyTorch's own behind.
class AllocatorTest : public testing::Test {
 protected:
  ~AllocatorTest() override { c10::CachingAllocator::setAllocatorSettings(kPlain); }

  static constexpr const char* kPlain = "expandable_segments:False";
};

TEST_F(AllocatorTest, SegmentsAreAsThePlanSays) {
  ASSERT_FALSE(Settings::use_expandable_segments());
  ChooseAllocator(AllocatorMode::kExpandableSegments);
  EXPECT_TRUE(Settings::use_expandable_segments());
  ChooseAllocator(AllocatorMode::kExpandableSegments);
  EXPECT_TRUE(Settings::use_expandable_segments());
  ChooseAllocator(AllocatorMode::kDefault);
  EXPECT_FALSE(Settings::use_expandable_segments());
}

TEST_F(AllocatorTest, WhatElseTheUserSetStays) {
  c10::CachingAllocator::setAllocatorSettings(
      "expandable_segments:True,max_split_size_mb:64,garbage_collection_threshold:0.5");
  ChooseAllocator(AllocatorMode::kDefault);
  EXPECT_FALSE(Settings::use_expandable_segments());
  EXPECT_EQ(Settings::max_split_size(), std::size_t{64} << 20);
  EXPECT_EQ(Settings::garbage_collection_threshold(), 0.5);
}

}  // namespace
}  // namespace dcsim::exec
