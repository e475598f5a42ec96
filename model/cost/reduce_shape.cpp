#include "model/cost/reduce_shape.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace dcsim {
namespace {

constexpr std::int64_t kMostThreads = 512;  // of a thread block
constexpr std::int64_t kWarp = 32;
constexpr std::int64_t kFewestValues = 16;  // of a thread, where an output is shared
constexpr std::int64_t kMostValues = 256;   // … where it could be
constexpr std::int64_t kThreadsOfMultiprocessor = 2048;

struct Dimension {
  std::int64_t stride = 0;  // in what is read
  std::int64_t length = 0;
  std::int64_t stride_made = 0;  // in the result
};

/// The dimensions of what is read that are longer than 1, from the nearest neighbours outwards:
/// reduced ones as they are read, the others as they are written.
struct Dimensions {
  std::vector<Dimension> reduced;
  std::vector<Dimension> kept;
};

std::int64_t PowerOfTwoBelow(std::int64_t number) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(number)));
}

std::int64_t Product(const std::vector<Dimension>& dimensions) {
  std::int64_t product = 1;
  for (const Dimension& dimension : dimensions) {
    product *= dimension.length;
  }
  return product;
}

/// The dimensions that the op names, counted from the front; all of them where it names none.
std::vector<bool> NamedDimensions(const std::vector<std::int64_t>* list, std::size_t rank) {
  std::vector<bool> named(rank, true);
  if (list != nullptr && !list->empty()) {
    named.assign(rank, false);
    for (const std::int64_t dimension : *list) {
      const std::int64_t at =
          dimension < 0 ? dimension + static_cast<std::int64_t>(rank) : dimension;
      if (at >= 0 && at < static_cast<std::int64_t>(rank)) {
        named[static_cast<std::size_t>(at)] = true;
      }
    }
  }
  return named;
}

std::optional<Dimensions> FindDimensions(const KernelTraits& of) {
  const Value& read = *of.inputs.front();
  const Value& made = *of.result;
  const bool kept_rank = made.shape.size() == read.shape.size();
  const std::vector<bool> named = NamedDimensions(of.numbers, read.shape.size());
  Dimensions dimensions;
  std::size_t at = 0;  // in the result
  for (std::size_t i = 0; i < read.shape.size(); ++i) {
    const bool reduced = kept_rank ? made.shape[i] == 1 : named[i];
    const std::int64_t stride_made = at < made.strides.size() ? made.strides[at] : 0;
    at += kept_rank || !reduced ? 1 : 0;
    if (read.shape[i] != 1) {
      (reduced ? dimensions.reduced : dimensions.kept)
          .push_back({read.strides[i], read.shape[i], stride_made});
    }
  }
  if (dimensions.reduced.empty() || Product(dimensions.kept) != made.numel()) {
    return std::nullopt;
  }
  const auto nearer = [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; };
  const auto nearer_made = [](const Dimension& a, const Dimension& b) {
    return a.stride_made < b.stride_made;
  };
  std::sort(dimensions.reduced.begin(), dimensions.reduced.end(), nearer);
  std::sort(dimensions.kept.begin(), dimensions.kept.end(), nearer_made);
  return dimensions;
}

/// Dimensions that continue each other count as one.
std::size_t CountRuns(const std::vector<Dimension>& dimensions) {
  std::size_t runs = 0;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const bool continues =
        i > 0 && dimensions[i].stride == dimensions[i - 1].stride * dimensions[i - 1].length;
    runs += continues ? 0 : 1;
  }
  return runs;
}

/// Neighbouring outputs that one thread makes.
std::int64_t OutputVector(const Dimensions& dimensions) {
  std::int64_t size = 4;
  const auto divides = [&](const Dimension& dimension) { return dimension.stride % size == 0; };
  while (size > 1 && (dimensions.kept.front().length % size != 0 ||
                      !std::all_of(dimensions.reduced.begin(), dimensions.reduced.end(), divides) ||
                      !std::all_of(dimensions.kept.begin() + 1, dimensions.kept.end(), divides))) {
    size /= 2;
  }
  return size;
}

/// Threads along the nearest dimension (x) and the other side (y).
struct Block {
  std::int64_t x = 1;
  std::int64_t y = 1;
};

Block BlockFor(std::int64_t along, std::int64_t across, std::int64_t threads) {
  const std::int64_t most_x = along < threads ? PowerOfTwoBelow(along) : threads;
  const std::int64_t most_y = across < threads ? PowerOfTwoBelow(across) : threads;
  Block block;
  block.x = std::min(most_x, kWarp);
  block.y = std::min(most_y, threads / block.x);
  block.x = std::min(most_x, threads / block.y);
  return block;
}

}  // namespace

std::optional<ReduceShape> FindReduceShape(const KernelTraits& of, int multiprocessors) {
  if (of.family != KernelFamily::kReduction) {
    return std::nullopt;
  }
  const Value& read = *of.inputs.front();
  const auto dimensions = FindDimensions(of);
  if (!dimensions || read.numel() == 0) {
    return std::nullopt;
  }
  const auto& [reduced, kept] = *dimensions;
  ReduceShape shape;
  shape.outputs = Product(kept);
  shape.values = Product(reduced);
  const bool along_rows = kept.empty() || reduced.front().stride < kept.front().stride;
  const std::int64_t nearest = along_rows ? reduced.front().stride : kept.front().stride;
  shape.apart = Bytes(nearest * ElementBytes(read.dtype));
  std::int64_t along = along_rows ? shape.values : shape.outputs;
  std::int64_t vector = 1;
  if (along_rows && nearest == 1 && kept.empty() && CountRuns(reduced) == 1 && along > 128) {
    along /= 4;
  } else if (!along_rows && nearest == 1) {
    vector = OutputVector(*dimensions);
    along /= vector;
  }
  const Block block =
      BlockFor(along, along_rows ? shape.outputs : shape.values, kMostThreads / vector);
  shape.threads = block.x * block.y;
  std::int64_t split = along_rows ? block.x : 1;  // threads that share an output's values
  std::int64_t made = along_rows ? 1 : block.x;   // outputs, or vectors, of a thread block
  const bool rows_split =
      DivideUp(shape.values, split) >= std::min(block.y * kFewestValues, kMostValues);
  (rows_split ? split : made) *= block.y;
  shape.values_per_thread = DivideUp(shape.values, split);
  const std::int64_t blocks = DivideUp(shape.outputs / vector, made);
  const std::int64_t full = multiprocessors * (kThreadsOfMultiprocessor / shape.threads);
  if (rows_split && shape.values_per_thread >= kMostValues && blocks <= full) {
    shape.parts =
        std::max(std::min(DivideUp(full, blocks), DivideUp(shape.values_per_thread, kFewestValues)),
                 DivideUp(shape.values_per_thread, kMostValues));
    shape.values_per_thread = DivideUp(shape.values, split * shape.parts);
  }
  shape.blocks = blocks * shape.parts;
  return shape;
}

}  // namespace dcsim
