#include "exec/calibrate/copy_engine_fit.h"

#include <algorithm>
#include <cmath>

namespace dcsim::exec {

CopyEngines FitCopyEngines(const CopyEngineSample& sample, int ranks, BytesPerSecond copy) {
  const std::int64_t more = std::int64_t{sample.tensors - 1} * ranks;
  CopyEngines engines;
  engines.copy = std::max(Duration(), Duration::FromNs((sample.many - sample.one).ns() / more));
  engines.start = std::max(Duration(), sample.one - engines.copy * ranks);
  const Bytes shard(sample.payload.count() / ranks);
  const Duration fixed = engines.start + engines.copy * ranks + TransferTime(shard * 2, copy);
  const auto least = static_cast<double>(std::max<std::int64_t>(1, (sample.least - fixed).ns()));
  const double read = static_cast<double>(shard.count()) * (ranks - 1);
  engines.rate = BytesPerSecond(std::llround(read / least * 1e9));
  if (ranks > 2) {
    const double times = static_cast<double>((sample.median - fixed).ns()) / least;
    engines.crowding = std::max(0.0, times - 1) * (ranks - 1) / (ranks - 2);
  }
  return engines;
}

}  // namespace dcsim::exec
