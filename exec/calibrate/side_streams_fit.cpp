#include "exec/calibrate/side_streams_fit.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "model/base/median.h"

namespace dcsim::exec {
namespace {

using Samples = std::span<const ContentionSample>;

/// How fast the side work is of the samples that qualify.
ShareRange SharesOf(Samples samples, const std::function<bool(const ContentionSample&)>& counts) {
  std::vector<double> shares;
  for (const ContentionSample& sample : samples) {
    if (counts(sample)) {
      shares.push_back(sample.beside_alone.seconds() / sample.beside_time.seconds());
    }
  }
  return RangeOf(shares);
}

ShareRange SharesOf(Samples samples, DeviceUse work, DeviceUse beside) {
  return SharesOf(samples, [&](const ContentionSample& sample) {
    return sample.beside_use == work && sample.use == beside;
  });
}

ShareRange HostShares(Samples samples, HostCopy way) {
  return SharesOf(samples, [&](const ContentionSample& sample) { return sample.host == way; });
}

/// One op beside the side work.
double TimeBeside(const ContentionSample& sample) {
  return static_cast<double>(sample.compute_alone.ns()) / sample.compute_speed;
}

/// What short streaming kernels lose besides where peers are read, for each other rank. Longer ones
/// lose more, as reads take memory's bandwidth, too.
std::vector<Duration> CrowdedKernels(Samples samples, int ranks) {
  constexpr Duration kShort = Duration::FromUs(5);
  std::vector<Duration> longer;
  for (const ContentionSample& crowded : samples) {
    if (!crowded.peers_read || crowded.compute_alone > kShort || crowded.compute_speed <= 0) {
      continue;
    }
    const auto plain = std::ranges::find_if(samples, [&](const ContentionSample& sample) {
      return !sample.peers_read && sample.compute == crowded.compute &&
             sample.beside == crowded.beside && sample.compute_speed > 0;
    });
    if (plain != samples.end()) {
      const double more = TimeBeside(crowded) - TimeBeside(*plain);
      longer.push_back(Duration::FromNs(static_cast<std::int64_t>(more / (ranks - 1))));
    }
  }
  return longer;
}

/// Copies of many tensors beside as many move bytes for a share of their time alone: what of their
/// speed is left is 1 - (1 - speed) * share, speed that of copies that do nothing else.
ShareRange CopiesBesideCopies(Samples samples) {
  std::vector<double> speeds;
  for (const ContentionSample& sample : samples) {
    if (sample.use == DeviceUse::kSideStreaming && sample.beside_use == DeviceUse::kSideStreaming &&
        sample.beside_moving.ns() > 0) {
      const double moving = sample.beside_moving.seconds() / sample.beside_alone.seconds();
      const double left = sample.beside_alone.seconds() / sample.beside_time.seconds();
      speeds.push_back(std::max(0.0, 1 - (1 - left) / moving));
    }
  }
  return RangeOf(speeds);
}

}  // namespace

bool OfSideStreams(const ContentionSample& sample) {
  return sample.peers_read || sample.host != HostCopy::kNone ||
         sample.use == DeviceUse::kCopyEngine ||
         (sample.use == DeviceUse::kSideStreaming && sample.beside_use != DeviceUse::kCollective) ||
         (sample.use == DeviceUse::kCollective && sample.beside_use == DeviceUse::kCopyEngine);
}

SideStreamsFit FitSideStreams(std::span<const ContentionSample> samples, int ranks) {
  const std::vector<Duration> crowded = CrowdedKernels(samples, ranks);
  return {SharesOf(samples, DeviceUse::kCollective, DeviceUse::kCopyEngine),
          SharesOf(samples, DeviceUse::kCopyEngine, DeviceUse::kCollective),
          SharesOf(samples, DeviceUse::kSideStreaming, DeviceUse::kCopyEngine),
          CopiesBesideCopies(samples),
          HostShares(samples, HostCopy::kOut),
          HostShares(samples, HostCopy::kBack),
          RangeOf(crowded),
          Median(crowded)};
}

}  // namespace dcsim::exec
