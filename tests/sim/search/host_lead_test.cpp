#include "sim/search/host_lead.h"

#include <gtest/gtest.h>

namespace dcsim {
namespace {

// 100 ns, and a tenth of the time since ranks went on together, 1000 ns at most.
Contention WithIdleWaits() {
  Contention contention;
  contention.idle_wait = Duration::FromNs(100);
  contention.drift = Share::FromPermille(100);
  contention.most_apart = Duration::FromNs(1000);
  return contention;
}

/// A collective at 50 ns, as long behind the start, and in the second step at 9000, 2000 behind.
HostLead FurtherAheadInTheSecondStep(bool host_decides) {
  HostLead lead;
  lead.NoteIdleWait(/*position=*/7, /*in_first=*/true, /*now=*/50, /*since=*/50, /*waits_over=*/0);
  if (host_decides) {
    lead.HostDecides(/*waits_over=*/0);
  }
  lead.NoteIdleWait(7, false, 9000, 2000, 1);
  return lead;
}

// Ranks went on together 1950 ns before the run, so that 2000 have passed at the collective again.
TEST(HostLeadTest, TheRunBeginsAsLongBehindAsTheStepEnds) {
  EXPECT_EQ(FurtherAheadInTheSecondStep(true).TogetherBefore(WithIdleWaits()), 50 - 2000);
}

TEST(HostLeadTest, AHostThatDecidesNothingMayBeFurtherAhead) {
  EXPECT_EQ(FurtherAheadInTheSecondStep(false).TogetherBefore(WithIdleWaits()), std::nullopt);
}

// Behind its next wait the host is where the GPU lets it be.
TEST(HostLeadTest, WhatTheHostDecidesBehindItsNextWaitDoesNotMatter) {
  HostLead lead;
  lead.NoteIdleWait(7, true, 50, 50, 0);
  lead.HostDecides(/*waits_over=*/1);
  lead.NoteIdleWait(7, false, 9000, 2000, 1);
  EXPECT_EQ(lead.TogetherBefore(WithIdleWaits()), std::nullopt);
}

// Both waits are the longest that there are.
TEST(HostLeadTest, WaitsThatAreAlikeNeedNothing) {
  HostLead lead;
  lead.NoteIdleWait(7, true, 50, 20'000, 0);
  lead.HostDecides(0);
  lead.NoteIdleWait(7, false, 90'000, 30'000, 1);
  EXPECT_EQ(lead.TogetherBefore(WithIdleWaits()), std::nullopt);
}

// A host that is less far ahead may decide what it did not in the run.
TEST(HostLeadTest, AShorterWaitMattersAnyway) {
  HostLead lead;
  lead.NoteIdleWait(7, true, 2000, 2000, 0);
  lead.NoteIdleWait(7, false, 9000, 500, 1);
  EXPECT_EQ(lead.TogetherBefore(WithIdleWaits()), 1500);
}

TEST(HostLeadTest, OnlyTheFirstSuchCollectiveCounts) {
  HostLead lead;
  lead.NoteIdleWait(7, true, 50, 50, 0);
  lead.NoteIdleWait(8, true, 150, 150, 0);
  lead.HostDecides(0);
  lead.NoteIdleWait(8, false, 9100, 2000, 1);
  EXPECT_EQ(lead.TogetherBefore(WithIdleWaits()), std::nullopt);
}

}  // namespace
}  // namespace dcsim
