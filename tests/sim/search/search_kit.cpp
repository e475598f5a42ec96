#include "tests/sim/search/search_kit.h"

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
  contention.rank_drift = Duration::FromUs(static_cast<std::int64_t>(random.Below(3)) * 90);
  contention.rank_skew = Duration::FromUs(static_cast<std::int64_t>(random.Below(3)) * 3);
  contention.drift_permille = static_cast<int>(random.Below(3)) * 20;
  for (Contention::Row& row : contention.permille) {
    for (std::int32_t& permille : row) {
      permille = 1000 - static_cast<std::int32_t>(random.Below(600));
    }
  }
  return cluster;
}

Graph ProductChain(int layers) {
  constexpr std::int64_t kRows = 512;
  std::string text = "graph chain 2048 tokens\n";
  for (int i = 0; i < layers; ++i) {
    text += "param w" + std::to_string(i) + " " + Shape(Width(i - 1), Width(i)) + "\n";
  }
  text += "input a0 " + Shape(kRows, Width(-1)) + "\nforward\n";
  for (int i = 0; i < layers; ++i) {
    const std::string number = std::to_string(i);
    text += "  a" + std::to_string(i + 1) + ": " + Shape(kRows, Width(i)) + " = aten::mm(a" +
            number + ", w" + number + ")\n";
  }
  text += "  l: bfloat16[] = aten::sum(a" + std::to_string(layers) + ")\n  loss l\n";
  for (int i = 1; i < layers; ++i) {
    text += "  save a" + std::to_string(i) + "\n";
  }
  text += "backward of 0\n  tangent t: bfloat16[] of l\n  g" + std::to_string(layers) + ": " +
          Shape(kRows, Width(layers - 1)) + " = aten::fill(t)\n";
  for (int i = layers - 1; i >= 0; --i) {
    const std::string number = std::to_string(i);
    const std::string gradient = "g" + std::to_string(i + 1);
    text += "  x" + number + ": " + Shape(Width(i - 1), kRows) + " views a" + number +
            " = aten::t(a" + number + ")\n";
    text += "  d" + number + ": " + Shape(Width(i - 1), Width(i)) + " = aten::mm(x" + number +
            ", " + gradient + ")\n  gradient w" + number + " = d" + number + "\n";
    if (i > 0) {
      text += "  v" + number + ": " + Shape(Width(i), Width(i - 1)) + " views w" + number +
              " = aten::t(w" + number + ")\n";
      text += "  g" + number + ": " + Shape(kRows, Width(i - 1)) + " = aten::mm(" + gradient +
              ", v" + number + ")\n";
    }
  }
  return ParseGraphText(text);
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
