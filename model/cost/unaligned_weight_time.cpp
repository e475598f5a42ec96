#include "model/cost/unaligned_weight_time.h"

#include <algorithm>

#include "model/cost/convolution_operands.h"
#include "model/cost/kernel_models.h"

namespace dcsim {
namespace {

/// cuDNN's kernels for a weight of one element that is not aligned: thread blocks of tiles, two at
/// a time on a multiprocessor, which go through their depth channel by channel.
struct UnalignedPass {
  const UnalignedWeightRates& rates;
  std::int64_t multiprocessors;
  std::int64_t images;
  std::int64_t places;
  std::int64_t channels;
  std::int64_t made;

  /// Tiles of 64 places, of whichever images, and 128 channels made.
  double ForwardPicoseconds() const {
    const auto depth = static_cast<double>(channels);
    const std::int64_t all = images * places;
    constexpr std::int64_t kNarrow = 32;
    const std::int64_t narrow = DivideUp(all, kNarrow);
    if (made < kNarrow && narrow >= multiprocessors) {
      return BlocksOfEach(narrow) * (rates.narrow_block + depth * rates.narrow_channel);
    }
    const double blocks = BlocksOfEach(DivideUp(all, std::int64_t{64}) * DivideUp(made, kTile));
    return std::max(blocks * (rates.block + depth * rates.channel), depth * rates.lone_channel);
  }

  /// Tiles of 64 channels and 128 places of an image; then each element is added to what is there.
  double InputGradientPicoseconds() const {
    const auto depth = static_cast<double>(made);
    constexpr std::int64_t kAtOnce = 2;
    constexpr std::int64_t kEvenRow = 8;  // elements of 2 bytes
    const std::int64_t blocks =
        DivideUp(channels, std::int64_t{64}) * DivideUp(places, kTile) * images;
    const std::int64_t rounds = DivideUp(blocks, kAtOnce * multiprocessors);
    const double products = blocks > multiprocessors
                                ? static_cast<double>(kAtOnce * rounds) * depth * rates.channel
                                : depth * rates.lone_channel;
    return products + static_cast<double>(images * places * channels) *
                          (places % kEvenRow == 0 ? rates.element : rates.uneven_element);
  }

 private:
  static constexpr std::int64_t kTile = 128;

  double BlocksOfEach(std::int64_t blocks) const {
    return static_cast<double>(DivideUp(blocks, multiprocessors));
  }
};

}  // namespace

double UnalignedWeightSeconds(const KernelTraits& of, const GpuSpec& gpu) {
  const ConvolutionOperands operands = OperandsOf(of);
  const Value& input = *operands.input;
  const Value& made = operands.backward ? input : *operands.result;
  const UnalignedPass pass{gpu.kernels->convolution.unaligned_weight,
                           gpu.multiprocessors,
                           input.shape[0],
                           PlacesOf(made),
                           input.shape[1],
                           operands.weight->shape[0]};
  if (operands.backward) {
    return pass.InputGradientPicoseconds() * kPicosecond;
  }
  const auto elements = static_cast<double>(made.numel());
  const double bias = operands.bias ? elements / gpu.kernels->elements_per_second.alike : 0;
  return pass.ForwardPicoseconds() * kPicosecond + bias;
}

}  // namespace dcsim
