#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/base/rate.h"
#include "model/base/units.h"

namespace dcsim {

/// What a running task occupies of the GPU: the classes between which contention is measured.
enum class DeviceUse : std::uint8_t {
  kMatmul,         // persistent thread blocks on every multiprocessor
  kAttention,      // fused attention, forward and backward
  kStreaming,      // element-wise ops and reductions of the compute stream: bound by memory
  kSideStreaming,  // copies and divisions on the other streams, whose thread blocks go first
  kCollective,     // NCCL kernels, which hold some multiprocessors while they wait and transfer
  kCopyEngine,     // copies to or from peers, which take memory bandwidth and no multiprocessors
};
constexpr std::size_t kDeviceUses = 6;

std::span<const std::string_view> DeviceUseNames();

/// What something takes longer than alone, in whole thousandths of its time alone: 0 to 100 times.
/// What is out of these bounds becomes the nearer of them.
class Longer {
 public:
  static constexpr std::int64_t kMostTimes = 100;

  constexpr Longer() = default;
  static constexpr Longer FromPermille(std::int64_t permille) {
    Longer longer;
    longer.permille_ =
        static_cast<std::int32_t>(std::clamp<std::int64_t>(permille, 0, kMostTimes * 1000));
    return longer;
  }
  /// The nearest thousandth; `times` is a number.
  static Longer Nearest(double times) {
    return FromPermille(std::lround(std::clamp<double>(times, 0, kMostTimes) * 1000));
  }

  constexpr std::int64_t permille() const { return permille_; }
  constexpr double times() const { return permille_ / 1000.0; }
  /// The speed of what loses that share of it.
  constexpr Rate RateAt(Share share) const {
    return Rate::Of(Share::kWhole, Share::kWhole + share.PartOf(permille_));
  }

  constexpr auto operator<=>(const Longer&) const = default;

 private:
  std::int32_t permille_ = 0;
};

/// By how much longer collectives and gathers by copy engines take beside compute that moves memory
/// (docs/design/costs/contention.md, Memory): what they move waits for memory, too.
struct BesideMemory {
  struct Point {
    Bytes payload;
    Longer longer;  // beside a MemoryLoad of 1
  };
  struct Table {
    int ranks = 0;
    Duration start;             // Contention::collective_start of so many ranks
    std::vector<Point> points;  // payloads ascend; at least one

    /// The straight line over the payload's logarithm, beyond the points the nearest.
    Longer At(Bytes payload) const;
  };
  Bytes cache;                // kernels of less move only that share of their bytes to memory
  std::vector<Table> tables;  // at least one
  Longer copy_engine;         // of copies from other GPUs

  /// The table of the nearest number of ranks.
  const Table& Of(int ranks) const;
};

/// How the kernels of a side stream's task of many get on beside compute: each has to find
/// multiprocessors anew (docs/design/costs/side_streams.md, Many short kernels).
struct SideKernels {
  Duration later;    // each comes so much later beside element-wise kernels
  Duration between;  // so long they run between a product and the next one, besides its last wave,
                     // and at the end of attention at least
};

/// How fast a task runs while another one runs beside it, on another stream; with several beside it
/// the slowest counts.
struct Contention {
  using Row = std::array<Rate, kDeviceUses>;

  std::array<Row, kDeviceUses> rates{};
  bool measured = false;  // otherwise nothing disturbs anything

  /// Multiprocessors that a matrix product loses to a collective: those of its thread blocks, and
  /// their neighbours where the product runs in clusters of two. 0: the class's rate holds for all.
  int collective_multiprocessors = 0;
  Duration streaming_kernel;  // that a streaming kernel beside a collective loses besides its rate
  /// What a streaming kernel beside a working collective loses besides for each other rank, while
  /// GPUs read each other's memory by copy engines.
  Duration crowded_kernel;
  std::optional<BesideMemory> beside_memory;  // none: the class's rate holds for all kernels
  std::optional<SideKernels> side_kernels;    // none: they get on as one kernel does
  /// Multiprocessors that a copy or division of a side stream needs for all of its speed: a
  /// product's last wave may leave fewer. 0: the class's rate holds beside all products.
  int copy_multiprocessors = 0;
  Rate to_host;               // of a copy to the host, beside the compute stream
  Duration collective_start;  // beside compute, until all thread blocks of a collective have room,
                              // where `beside_memory` does not say it

  /// Of a collective that compute waits for: what it waits for the last rank, and by how much ranks
  /// drift apart besides, of the time that passes, both together no longer than the last. Without
  /// it the gap before a collective has such waits.
  std::optional<Duration> idle_wait;
  Share drift;
  Duration most_apart;

  /// Which is first where a compute kernel's end lets a collective start and another kernel, which
  /// then starts later by so much: the collective, in that share of all cases. On each rank for
  /// itself, so ranks differ. None: the kernel.
  Share comes_first;
  Duration first_delay;

  /// What a collective beside no compute waits for the last rank, `since` all last went on
  /// together.
  Duration IdleWait(Duration since) const {
    return std::min(most_apart, *idle_wait + Duration::FromNs(drift.PartOf(since.ns())));
  }
  /// What a collective takes longer beside full memory traffic; 0 of one rank's copies.
  Longer LongerBesideMemory(Bytes payload, int ranks) const {
    return beside_memory && ranks > 1 ? beside_memory->Of(ranks).At(payload) : Longer();
  }
  /// The same of a gather by copy engines, until the own shard is copied.
  Longer GatherLongerBesideMemory(int ranks) const {
    return beside_memory && ranks > 1 ? beside_memory->copy_engine : Longer();
  }
  Duration CollectiveStart(int ranks) const {
    return beside_memory ? beside_memory->Of(ranks).start : collective_start;
  }
  Rate RateOf(DeviceUse work, DeviceUse beside) const {
    return rates[static_cast<std::size_t>(work)][static_cast<std::size_t>(beside)];
  }
};

/// How much of the time of work that takes `device` it takes from others' memory traffic, of which
/// it moves bytes for `moving`: between its kernels nothing.
Share DemandOf(Duration moving, Duration device);

}  // namespace dcsim
