#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "model/cost/work_cost.h"
#include "model/ir/schedule.h"
#include "sim/engine/gpu_task.h"
#include "sim/engine/peer_reads.h"
#include "sim/engine/simulate.h"

namespace dcsim {

/// How the running tasks of all streams share one GPU, and its collectives wait for other ranks
/// (docs/design/costs/contention.md): when each ends, as things stand. Whoever owns it decides
/// which task starts when; it tells what happens next on each stream.
class GpuSharing {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  struct Options {
    Contention contention;
    int ranks = 1;
    std::int64_t collective_gap = 0;  // ns, before a collective that an event or the host let start
    std::int64_t start_gap = 0;       // of both, until its kernel runs on its own rank
    std::int64_t collective_start = 0;  // Contention::CollectiveStart
    std::int64_t queued_gap = 0;        // before one that follows a task of its stream at once

    static Options Of(const SimulationOptions& simulation, int ranks);

    /// Whether two ranks that do the same at the same time may come apart.
    bool RanksDiffer() const {
      return ranks > 1 && contention.measured && contention.comes_first > Share();
    }
  };
  /// Options must outlive it. Ranks differ in which is first, a collective or a kernel.
  explicit GpuSharing(const Options& options, std::uint32_t rank = 0)
      : options_(options),
        rank_(rank) {}

  /// Two ranks whose collectives wait for each other, stream by stream; of several, each two. Each
  /// must outlive the others' use of it, and stay where it is.
  static void Join(GpuSharing& a, GpuSharing& b) {
    a.peers_.push_back(&b);
    b.peers_.push_back(&a);
  }
  /// Whether another rank has changed an event() since this was asked.
  bool TakeWoken() { return std::exchange(woken_, false); }

  /// Whether a collective that starts now, later than a task of its stream ended, first waits for
  /// ranks that have drifted apart (Contention::IdleWait): compute waits for it.
  bool MeetsDriftedRanks() const { return RanksDrift() && !streams_[kCompute].running; }

  /// When something happens next to the stream's running task, kNever without one.
  std::int64_t event(std::size_t stream) const { return streams_[stream].event; }
  bool running(std::size_t stream) const { return streams_[stream].running; }
  /// Speed of the stream's running task; none while it waits for something.
  std::optional<Rate> rate(std::size_t stream) const {
    const Stream& state = streams_[stream];
    return state.running && state.phase == Phase::kWorking ? std::optional(state.work_rate)
                                                           : std::nullopt;
  }
  /// Streams whose running task has no kernel on the GPU yet, a bit each: it waits for
  /// multiprocessors, or, on the compute stream, has not arrived.
  std::uint32_t WithoutKernel() const;
  /// Whether event() is the end of the stream's running task, if nothing else starts.
  bool undisturbed(std::size_t stream) const {
    const Stream& state = streams_[stream];
    return state.phase == Phase::kWorking && state.work_rate.alone() && state.displaced_by == 0;
  }

  /// A task starts, `at_once` behind another one of its stream or later; `position` is its place on
  /// the stream within kMicroStepPeriod. One that takes no time ends, too.
  void Start(std::size_t stream,
             const GpuTask& task,
             bool at_once,
             std::size_t position,
             std::int64_t now);

  /// What event() told of has come: true when the task has ended.
  bool Advance(std::size_t stream, std::int64_t now);

  /// Tasks that run beside others than before go on at another speed. To be called when everything
  /// has started that can start `now`.
  void Settle(std::int64_t now) {
    if (disturbed_ && options_.contention.measured) {
      UpdateRates(now);
    }
  }

  /// The compute stream has run on alone and is at a later task now, which started at `start`.
  /// `together`: when it last started one late, or before.
  void RunOn(const GpuTask& task, std::int64_t start, std::int64_t together);
  std::int64_t together() const { return together_; }

  /// Adds to `state` what decides how equal tasks go on from `now`, but for together(); times are
  /// those since then.
  void AddState(std::int64_t now, std::vector<std::int64_t>& state) const;
  /// Adds how long ranks have been apart, as far as it matters.
  void AddApart(std::int64_t now, std::vector<std::int64_t>& state) const;
  /// How often anything has depended on together() so far.
  std::uint64_t apart_asked() const { return apart_asked_; }
  /// Time is left out in which together() stays as it is: it is so much longer ago.
  void LeaveOut(std::int64_t time) { together_ -= time; }

  /// Ranks went on together then, before anything that this saw.
  void set_together(std::int64_t at) { together_ = at; }

 private:
  static constexpr auto kCompute = static_cast<std::size_t>(StreamRole::kCompute);

  enum class Phase : std::uint8_t {
    kArriving,  // it has not reached the GPU yet
    kHeld,      // it waits for multiprocessors, and disturbs nothing
    kMeeting,   // a collective that waits for other ranks, on its multiprocessors
    kWorking,
    kFinishing,  // a collective whose work is done here, not on all others
  };

  struct Stream {
    bool running = false;
    Phase phase = Phase::kWorking;
    bool queued = false;       // collective: it starts as the one before it on its stream ends
    bool meets = false;        // collective: compute was there when it came
    bool leaves_room = false;  // compute: it started beside a collective
    bool own_shard = false;    // copies: what peers have is here, the own shard comes
    std::size_t held_by = kCompute;  // the stream whose kernel leaves it no room
    bool after_copy = false;         // side streams: it follows a copy by multiprocessors at once
    std::uint32_t displaced_by = 0;  // compute, own tiles: a bit for each stream whose kernel
                                     // keeps some of its thread blocks waiting
    std::int64_t places_free = 0;    // compute, own tiles: its other thread blocks have ended
    std::int64_t own_end = 0;        // compute, own tiles: those that waited end, not before
    GpuTask task;
    std::int64_t started = 0;
    std::int64_t arrived = 0;  // compute: its kernel
    std::int64_t event = kNever;
    std::int64_t work_left = 0;  // at work_updated, in Rate's amounts
    std::int64_t work_updated = 0;
    Rate work_rate;
  };

  bool Disturbs(std::size_t stream) const {
    const Stream& state = streams_[stream];
    return state.running && state.phase != Phase::kArriving && state.phase != Phase::kHeld;
  }
  bool OnlyComputeRuns() const;
  bool ComesBeforeCompute(const Stream& state) const;
  bool CollectiveRuns() const;
  static bool IsSmall(const Stream& state);
  std::uint32_t Displacers() const;
  void FindPlaces(std::int64_t now);
  void DropDisplacers(std::int64_t now);
  std::int64_t GapBefore(std::int64_t now) const;
  bool ComesFirst(std::size_t stream, std::size_t position) const;
  void HoldCompute(std::int64_t now);
  bool WaitForPeers(std::size_t stream, Phase phase, std::int64_t now);
  static std::int64_t WorkLeft(const Stream& state, std::int64_t now);
  static std::int64_t WorkEnd(const Stream& state);
  std::int64_t RoomBehindCompute(const Stream& state, std::int64_t now) const;
  bool LeavesComputeRoom(const Stream& copy) const;
  std::int64_t RoomBehindCopy(std::size_t stream, const Stream& copy, std::int64_t now) const;
  void Arrive(std::size_t stream, std::int64_t now);
  void FindRoom(std::size_t stream, std::int64_t now);
  void BeginWork(std::size_t stream, std::int64_t now);
  void SeekRoom(std::size_t stream, std::int64_t now);
  void EndReads(const Stream& state, std::int64_t now);
  bool TurnToOwnShard(std::size_t stream, std::int64_t now);
  void End(std::size_t stream, std::int64_t now);
  static DeviceUse UseOf(const Stream& state);
  static bool TakesMultiprocessors(const Stream& state);
  bool WaitsForMemory(const Stream& state) const;
  std::optional<Rate> RateInLastWave(const Stream& side) const;
  std::pair<std::int64_t, std::int64_t> RoomForManyKernels(const Stream& side) const;
  std::optional<Rate> RateOfManyKernels(const Stream& side) const;
  std::optional<Rate> RateOfCopy(const Stream& side) const;
  Rate RateBesideManyKernels(const Stream& side) const;
  Rate RateBesideCopy(const Stream& beside, const Stream& copy) const;
  Rate RateBeside(const Stream& beside, const Stream& disturbing) const;
  bool RanksDrift() const { return options_.contention.idle_wait && options_.ranks > 1; }
  static bool ReadsPeers(const Stream& state);
  std::int64_t ApartAt(std::int64_t now) const;
  Share OneReads(std::int64_t now) const;
  Share AnyReads(std::int64_t now) const;
  bool CollectiveWorks() const;
  Rate RateOf(std::size_t stream, std::int64_t now) const;
  std::int64_t NextEvent(const Stream& state, std::int64_t now) const;
  void UpdateRates(std::int64_t now);
  void AddStream(std::size_t stream, std::int64_t now, std::vector<std::int64_t>& state) const;

  const Options& options_;
  std::uint32_t rank_ = 0;
  std::vector<GpuSharing*> peers_;  // the other ranks; empty where one stands for all
  bool woken_ = false;
  std::uint32_t copies_ = 0;  // a bit for each stream that runs a side stream's copy or division
  std::array<Stream, kStreamCount> streams_;
  std::int64_t together_ = 0;  // when compute last went on as on all other ranks
  mutable std::uint64_t apart_asked_ = 0;
  std::int64_t collective_ended_ = -1;  // the last one
  PeerReads reads_;                     // of others' memory by this rank
  bool disturbed_ = false;              // a task has started or ended since rates were looked at
};

}  // namespace dcsim
