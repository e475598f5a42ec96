#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/ids.h"
#include "model/ir/graph.h"

namespace dcsim::exec {

inline constexpr std::size_t kProjections = 16;

/// A few numbers that stand for a gradient (docs/reference/formats.md, dc-reference/1).
struct Fingerprint {
  double norm = 0;
  std::uint64_t hash = 0;
  std::array<double, kProjections> projections{};
};

struct ReferenceGradient {
  ParamId param;
  Fingerprint fingerprint;
};

struct ReferenceStep {
  std::vector<std::vector<double>> losses;  // [rank][micro-step]
  std::vector<ReferenceGradient> gradients;
};

/// What the reference training of a workload computed. File form: dc-reference/1.
struct Reference {
  std::uint64_t seed = 0;
  int ranks = 1;
  int accumulation = 1;
  std::string device;
  std::vector<ReferenceStep> steps;
};

/// Reads a dc-reference/1 document for a graph. Throws Error with every fault, and when it belongs
/// to another graph.
Reference ParseReference(std::string_view text, const Graph& graph, const std::string& file);

}  // namespace dcsim::exec
