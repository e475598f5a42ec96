#include "tests/sim/search/search_kit.h"

#include <sstream>

#include "model/ir/graph_text.h"
#include "tests/sim/test_cluster.h"

namespace dcsim {
namespace {

std::string Shape(std::int64_t rows, std::int64_t columns) {
  return "bfloat16[" + std::to_string(rows) + "," + std::to_string(columns) + "]";
}

/// Columns of the layer's output; its input's for layer -1.
std::int64_t Width(int layer) {
  return 4096 + 1024 * ((layer + 1) % 3);
}

}  // namespace

Cluster ContendedCluster(std::uint64_t seed) {
  Cluster cluster = HandCluster();
  Random random(seed);
  cluster.gpu.gaps.collective = Duration::FromNs(static_cast<std::int64_t>(random.Below(3)) * 700);
  cluster.gpu.gaps.kernel = Duration::FromNs(static_cast<std::int64_t>(random.Below(3)) * 150);
  cluster.gpu.gaps.queued = Duration::FromNs(static_cast<std::int64_t>(random.Below(3)) * 400);
  Contention& contention = cluster.gpu.contention;
  contention.measured = true;
  contention.streaming_kernel = Duration::FromNs(static_cast<std::int64_t>(random.Below(2)) * 900);
  contention.collective_start = Duration::FromNs(static_cast<std::int64_t>(random.Below(3)) * 800);
  contention.first_permille = static_cast<int>(random.Below(3)) * 400;
  contention.first_delay = Duration::FromUs(static_cast<std::int64_t>(random.Below(3)) * 3);
  contention.most_apart = Duration::FromUs(static_cast<std::int64_t>(random.Below(3)) * 90);
  contention.drift_permille = static_cast<int>(random.Below(3)) * 20;
  if (random.Below(2) == 0) {
    cluster.gpu.gaps.start = Duration::FromNs(static_cast<std::int64_t>(random.Below(3)) * 300);
    contention.idle_wait = Duration::FromNs(static_cast<std::int64_t>(random.Below(3)) * 500);
  }
  for (Contention::Row& row : contention.permille) {
    for (std::int32_t& permille : row) {
      permille = 1000 - static_cast<std::int32_t>(random.Below(600));
    }
  }
  contention.crowded_kernel = Duration::FromNs(static_cast<std::int64_t>(random.Below(2)) * 1'100);
  if (random.Below(2) == 0) {
    const auto some = [&random] {
      return Duration::FromNs(static_cast<std::int64_t>(random.Below(3)) * 1'300);
    };
    cluster.copy_engines = CopyEngines{some(), some(), BytesPerSecond(90'000'000'000), 0.5};
  }
  if (random.Below(2) == 0) {
    contention.beside_memory =
        BesideMemory{Bytes::MiB(1),
                     {{2, Duration::FromNs(900), {{Bytes::MiB(1), 1500}, {Bytes::MiB(64), 300}}}},
                     static_cast<std::int32_t>(random.Below(2)) * 400};
    cluster.shifted_shard_gathers = ShiftedShardGathers{Bytes::KiB(16), Duration::FromUs(2), 1.3};
  }
  return cluster;
}

Graph ProductChain(int layers) {
  constexpr std::int64_t kRows = 512;
  std::ostringstream text;
  text << "graph chain 2048 tokens\n";
  for (int i = 0; i < layers; ++i) {
    text << "param w" << i << " " << Shape(Width(i - 1), Width(i)) << "\n";
  }
  text << "input a0 " << Shape(kRows, Width(-1)) << "\nforward\n";
  for (int i = 0; i < layers; ++i) {
    text << "  a" << i + 1 << ": " << Shape(kRows, Width(i)) << " = aten::mm(a" << i << ", w" << i
         << ")\n";
  }
  text << "  l: bfloat16[] = aten::sum(a" << layers << ")\n  loss l\n";
  for (int i = 1; i < layers; ++i) {
    text << "  save a" << i << "\n";
  }
  text << "backward of 0\n  tangent t: bfloat16[] of l\n  g" << layers << ": "
       << Shape(kRows, Width(layers - 1)) << " = aten::fill(t)\n";
  for (int i = layers - 1; i >= 0; --i) {
    text << "  x" << i << ": " << Shape(Width(i - 1), kRows) << " views a" << i << " = aten::t(a"
         << i << ")\n";
    text << "  d" << i << ": " << Shape(Width(i - 1), Width(i)) << " = aten::mm(x" << i << ", g"
         << i + 1 << ")\n  gradient w" << i << " = d" << i << "\n";
    if (i > 0) {
      text << "  v" << i << ": " << Shape(Width(i), Width(i - 1)) << " views w" << i
           << " = aten::t(w" << i << ")\n";
      text << "  g" << i << ": " << Shape(kRows, Width(i - 1)) << " = aten::mm(g" << i + 1 << ", v"
           << i << ")\n";
    }
  }
  return ParseGraphText(text.str());
}

SearchSpace SmallSpace(std::int64_t most_ahead, const Json& options) {
  Json all = {{"stage", 3}, {"reduce_bucket", "40e6 elements"}};
  all.update(options);
  const Json document = {{"format", "dc-space/1"},
                         {"options", all},
                         {"gathers", {{"most_ahead", most_ahead}, {"most_in_launch", 2}}}};
  return ReadSearchSpace(document, PointerLocator("small space"));
}

}  // namespace dcsim
