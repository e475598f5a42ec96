#pragma once

#include <optional>

#include "model/cost/kernel_traits.h"
#include "model/cost/rate_fields.h"

namespace dcsim {

struct GpuSpec;

/// Elements a second that kernels write which go element by element, of whatever dtype, by what
/// keeps them from going in whole vectors.
struct ElementRates {
  double alike = 0;         // an operand has another layout, or a shorter dtype
  double broadcast = 0;     // in half precision, an operand is broadcast or has holes
  double permuted = 0;      // several whole operands, of different layouts
  double converted = 0;     // several operands, of different dtypes
  double transposed = 0;    // neighbours in the result are no neighbours in an operand
  double concatenated = 0;  // of parts that are not contiguous
  double rolled = 0;        // shifted along one dimension
  double filled = 0;        // with one value, unless the bandwidth is less

  static constexpr auto Fields() {
    return std::tuple(PositiveField("alike", &ElementRates::alike),
                      PositiveField("broadcast", &ElementRates::broadcast),
                      PositiveField("permuted", &ElementRates::permuted),
                      PositiveField("converted", &ElementRates::converted),
                      PositiveField("transposed", &ElementRates::transposed),
                      PositiveField("concatenated", &ElementRates::concatenated),
                      PositiveField("rolled", &ElementRates::rolled),
                      PositiveField("filled", &ElementRates::filled));
  }
};

/// Time of an elementwise op on a GPU whose file has `kernels`, seconds: its bytes, or elements of
/// the result at the rate of their access. masked_fill writes into a copy of its operand.
/// Source: docs/design/costs/elementwise.md.
std::optional<double> ElementSeconds(const KernelTraits& of, const GpuSpec& gpu);

/// Of filling a tensor with one value on a GPU whose file has `kernels`, seconds.
double FillSeconds(const Value& value, const GpuSpec& gpu);

/// Of reading a tensor whole and writing as many bytes, in its own layout, seconds.
double WholeCopySeconds(const Value& value, const GpuSpec& gpu);

/// Of copying a tensor into a contiguous one where it is none, seconds; 0 where it is.
double MakeContiguousSeconds(const Value& value, const GpuSpec& gpu);

/// Of copying a tensor into a contiguous one on a GPU whose file has `kernels`, seconds.
double ContiguousCopySeconds(const Value& value, const GpuSpec& gpu);

}  // namespace dcsim
