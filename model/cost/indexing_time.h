#pragma once

#include <optional>

#include "model/cost/kernel_traits.h"
#include "model/cost/rate_fields.h"

namespace dcsim {

struct GpuSpec;

/// Gradients of an embedding's table, beside filling it with zeros.
struct EmbeddingBackwardRates {
  Duration index;                  // each, where they are few and added one after the other
  Duration sort;                   // of many
  double elements_per_second = 0;  // added up then

  static constexpr auto Fields() {
    return std::tuple(
        TimeField("index", &EmbeddingBackwardRates::index),
        TimeField("sort", &EmbeddingBackwardRates::sort),
        PositiveField("elements_per_second", &EmbeddingBackwardRates::elements_per_second));
  }
};

/// Elements that indices name.
struct IndexingRates {
  double gathered = 0;                    // elements a second of gather, and of scatter
  double scatter_added = 0;               // of scatter_add, in atomic additions
  Duration sort;                          // of some ten thousand keys, however few
  Duration put;                           // of index_put: looking for indices outside, and sorting
  Duration put_few;                       // … of up to 3,072 indices, a tensor of them
  double elements_per_second = 0;         // added by it, in rows
  Duration same_row;                      // each more that is added to one row of the table
  double single_elements_per_second = 0;  // … one by one, where an index names no row
  double single_sums_per_second = 0;      // … elements that they are added to
  double looked_up = 0;                   // of index, one by one

  static constexpr auto Fields() {
    return std::tuple(
        PositiveField("gathered", &IndexingRates::gathered),
        PositiveField("scatter_added", &IndexingRates::scatter_added),
        TimeField("sort", &IndexingRates::sort), TimeField("put", &IndexingRates::put),
        TimeField("put_few", &IndexingRates::put_few),
        PositiveField("elements_per_second", &IndexingRates::elements_per_second),
        TimeField("same_row", &IndexingRates::same_row),
        PositiveField("single_elements_per_second", &IndexingRates::single_elements_per_second),
        PositiveField("single_sums_per_second", &IndexingRates::single_sums_per_second),
        PositiveField("looked_up", &IndexingRates::looked_up));
  }
};

/// Time of what indices name on a GPU whose file has `kernels`, seconds; nothing for other ops.
///
///   embedding             bytes, or rows
///   its backward          filling the table, sorting indices (or none) and adding rows
///   index                 bytes, or rows; elements one by one where indices name no row
///   index_put             copying its tensor; where it adds: sorting indices, then rows, or
///                         elements and what they are added to, one by one
///   gather, scatter       elements; a scatter copies its tensor first
///
/// Source: docs/design/costs/elementwise.md; aten/src/ATen/native/cuda/Indexing.cu.
std::optional<double> IndexingSeconds(const KernelTraits& of, const GpuSpec& gpu);

}  // namespace dcsim
