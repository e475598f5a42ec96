#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "model/ir/graph.h"

namespace dcsim::exec {

/// Weights and inputs of the reference training (docs/reference/formats.md, dc-reference/1): the
/// same bits on every device and in Python. Element i of a tensor comes from the i-th output of
/// splitmix64 begun at seed ^ FNV-1a(name), so any part of a tensor can be made alone.

/// Elements [begin, begin + count) of a parameter, flattened, in its dtype.
///
/// At most one dimension: 1, or 0 for a name that ends in "bias". Otherwise
/// (2 * (z >> 40) / 2^24 - 1) * float32(sqrt(3) * 0.02), rounded to the dtype.
at::Tensor ReferenceParam(const Graph& graph,
                          ParamId id,
                          std::uint64_t seed,
                          std::int64_t begin,
                          std::int64_t count,
                          c10::Device device);

/// Contents of input number `index` for one micro-step of one rank, on the host: z mod vocabulary,
/// or floats of the same form as parameters with scale sqrt(3).
at::Tensor ReferenceInput(const Graph& graph,
                          std::size_t index,
                          std::uint64_t seed,
                          const std::string& place);

/// Contents of all inputs, by position in Graph::inputs, on a device.
std::vector<at::Tensor> ReferenceInputs(const Graph& graph,
                                        std::uint64_t seed,
                                        const std::string& place,
                                        c10::Device device);

/// "rank/step/micro-step".
std::string MicroStepPlace(int rank, int step, int micro_step);

/// Output number `index` of splitmix64 begun at `state`.
std::uint64_t SplitMix64(std::uint64_t state, std::uint64_t index);

}  // namespace dcsim::exec
