#include "model/cost/convolution_time.h"

#include <algorithm>

#include "model/base/units.h"
#include "model/cost/convolution_operands.h"
#include "model/cost/element_access.h"
#include "model/cost/element_time.h"
#include "model/cost/kernel_models.h"
#include "model/cost/product_time.h"
#include "model/cost/roofline.h"
#include "model/machine/gpu.h"

namespace dcsim {
namespace {

constexpr std::int64_t kFewChannels = 8;

bool HasSingleKernel(const Value& weight) {
  return std::all_of(weight.shape.begin() + 2, weight.shape.end(),
                     [](std::int64_t length) { return length == 1; });
}

/// Whether all its tensors have dimensions behind images and channels, as a linear one's have not.
bool HasPlaces(const KernelTraits& of) {
  const std::size_t operands = of.backward ? 3 : 2;
  const auto has_places = [](const Value* value) { return value->shape.size() > 2; };
  return of.family == KernelFamily::kConvolution && of.inputs.size() >= operands &&
         of.result != nullptr && std::all_of(&of.inputs[0], &of.inputs[0] + operands, has_places) &&
         (of.backward || has_places(of.result));
}

class ConvolutionWork {
 public:
  ConvolutionWork(const KernelTraits& of, const GpuSpec& gpu)
      : of_(of),
        gpu_(gpu),
        rates_(gpu.kernels->convolution),
        operands_(OperandsOf(of)),
        backward_(of.backward),
        transposed_(of.transposed),
        input_(*operands_.input),
        weight_(*operands_.weight),
        result_(*operands_.result),
        planar_(input_.strides[1] != 1 || input_.shape.size() == 3) {}

  double Seconds() const {
    if (input_.numel() == 0 || weight_.numel() == 0 || result_.numel() == 0) {
      return gpu_.kernels->product.start.seconds();
    }
    const double copies = CopySeconds(input_) + (backward_ ? CopySeconds(result_) : 0);
    return gpu_.kernels->product.start.seconds() + copies + BiasSeconds() +
           (IsDepthwise() ? DepthwiseSeconds() : PassesSeconds());
  }

 private:
  enum class Pass { kForward, kInput, kWeight };

  bool Makes(std::size_t output) const {
    return output < of_.outputs.size() && of_.outputs[output] != nullptr;
  }
  bool IsDepthwise() const { return weight_.shape[1] == 1 && input_.shape[1] > 1; }

  /// What a convolution reads has to be contiguous, or have channels last and no holes;
  /// one-dimensional ones have no layout with channels last.
  double CopySeconds(const Value& tensor) const {
    if (planar_) {
      return MakeContiguousSeconds(tensor, gpu_);
    }
    return IsDenseChannelsLast(tensor)
               ? 0
               : static_cast<double>(tensor.numel()) / gpu_.kernels->elements_per_second.alike;
  }

  double BiasSeconds() const {
    return operands_.bias
               ? static_cast<double>(result_.numel()) / gpu_.kernels->elements_per_second.alike
               : 0;
  }

  double PassesSeconds() const {
    if (!backward_) {
      return PassSeconds(Pass::kForward);
    }
    return (Makes(0) ? PassSeconds(Pass::kInput) : 0) + (Makes(1) ? PassSeconds(Pass::kWeight) : 0);
  }

  double PassSeconds(Pass pass) const {
    const std::int64_t groups = CountGroups();
    const double calls = (backward_ ? rates_.backward_pass.seconds() : 0) +
                         (groups > 1 ? static_cast<double>(groups) * rates_.group.seconds() : 0);
    const double with_layouts = LayoutSeconds(pass) + ProductsSeconds(LargeShare(pass));
    if (HasFewChannels()) {
      const bool stays = !backward_ && input_.shape.size() > 3;
      return calls + (stays ? std::min(with_layouts, ProductsSeconds(rates_.few_channels_planar))
                            : with_layouts);
    }
    const bool alone = planar_ && HasSingleKernel(weight_) && PlacesOf(input_) == PlacesOf(result_);
    if (!alone) {
      return calls + with_layouts;
    }
    // What cuDNN 9 chose in profiles.
    constexpr std::int64_t kFewPlaces = 128;
    const double images = ImagesSeconds(pass);
    const bool slow =
        !HasChannelsAt(kRowAlignment) && pass != Pass::kWeight && PlacesOf(input_) >= kFewPlaces;
    return calls + (slow ? images : std::min(with_layouts, images));
  }

  /// One pass at a share of the peak, or as fast as its tensors are read and written.
  double ProductsSeconds(double share) const {
    const int passes = backward_ ? (Makes(0) ? 1 : 0) + (Makes(1) ? 1 : 0) : 1;
    const Bytes bytes = input_.bytes() + weight_.bytes() + result_.bytes();
    return std::max(SecondsAtPeak(of_, gpu_) / passes / share,
                    TransferSeconds(bytes, gpu_, gpu_.kernels->plain));
  }

  bool HasFewChannels() const { return input_.shape[1] < kFewChannels; }
  /// Whether each channel begins at a multiple of so many bytes.
  bool HasChannelsAt(std::int64_t bytes) const {
    return PlacesOf(input_) * ElementBytes(input_.dtype) % bytes == 0;
  }

  /// Of the peak, of a product of all images. Fewer channels are filled up.
  double LargeShare(Pass pass) const {
    if (HasFewChannels()) {
      return rates_.few_channels * static_cast<double>(input_.shape[1]) / kFewChannels;
    }
    const double use =
        ProductUse(WholeProduct(pass), gpu_.kernels->product.tile, gpu_.multiprocessors);
    return use * (backward_ ? rates_.backward : rates_.forward);
  }

  /// Elements of a window.
  std::int64_t CountTaps() const {
    return weight_.numel() / std::max<std::int64_t>(1, weight_.shape[0] * weight_.shape[1]);
  }

  std::int64_t CountGroups() const {
    const Value& cut = transposed_ ? result_ : input_;
    return std::max<std::int64_t>(1, cut.shape[1] / std::max<std::int64_t>(1, weight_.shape[1]));
  }

  ProductShape WholeProduct(Pass pass) const {
    const Value& narrow = transposed_ ? input_ : result_;  // what the kernel's steps leave
    const std::int64_t read = std::max<std::int64_t>(1, weight_.shape[1]);  // channels of a group
    const std::int64_t groups = CountGroups();
    const std::int64_t made = std::max<std::int64_t>(1, weight_.shape[0] / groups);
    const std::int64_t taps = CountTaps();
    const std::int64_t places = narrow.shape[0] * PlacesOf(narrow);
    if (pass == Pass::kWeight) {
      return {groups, made, read * taps, places};
    }
    const bool gathers = (pass == Pass::kForward) != transposed_;  // from windows
    return gathers ? ProductShape{groups, places, made, read * taps}
                   : ProductShape{groups, places, read * taps, made};
  }

  /// What it takes to bring channels last, and back, where they are not.
  double LayoutSeconds(Pass pass) const {
    if (!planar_) {
      return 0;
    }
    const auto elements = [](const Value& value) { return static_cast<double>(value.numel()); };
    return elements(input_) / (HasFewChannels() ? rates_.few_channels_layout : rates_.layout) +
           elements(result_) / rates_.layout +
           (HasSingleKernel(weight_) && pass != Pass::kWeight
                ? 0
                : elements(weight_) / rates_.weight_layout);
  }

  /// A product for each image, rows of a channel's elements; gradients of the weight are added up.
  double ImagesSeconds(Pass pass) const {
    double share = rates_.images;
    if (!HasChannelsAt(kRowAlignment)) {
      share = (HasChannelsAt(kHalfRowAlignment) ? rates_.half_aligned : rates_.unaligned) *
              SlowTilesUse(ImageProduct(pass), gpu_.multiprocessors);
    }
    if (pass != Pass::kWeight) {
      return ProductsSeconds(share);
    }
    const std::int64_t images = input_.shape[0];
    const Bytes parts = Bytes(images * weight_.numel() * ElementBytes(DType::kFloat32));
    return ProductsSeconds(share) + static_cast<double>(images) * rates_.image_sum.seconds() +
           TransferSeconds(parts + parts, gpu_, gpu_.kernels->plain);
  }

  ProductShape ImageProduct(Pass pass) const {
    const std::int64_t images = input_.shape[0];
    const std::int64_t channels = input_.shape[1];
    const std::int64_t made = result_.shape[1];
    const std::int64_t places = PlacesOf(input_);
    switch (pass) {
      case Pass::kForward:
        return {images, made, places, channels};
      case Pass::kInput:
        return {images, channels, places, made};
      case Pass::kWeight:
        break;
    }
    return {images, made, channels, places};
  }

  double DepthwiseSeconds() const {
    const double transfers = TransferSeconds(of_.bytes, gpu_, gpu_.kernels->plain);
    if (!planar_) {
      return std::max(transfers, ChannelsLastDepthwise());
    }
    if (!backward_) {
      return std::max(transfers, ThreadsSeconds(result_, rates_.planar_depthwise));
    }
    return std::max(transfers,
                    (Makes(0) ? ThreadsSeconds(input_, rates_.planar_depthwise_backward) : 0) +
                        (Makes(1) ? DepthwiseWeightSeconds() : 0));
  }

  /// Multiply-adds of the result's elements or, of the input's gradient, of the input's.
  double ChannelsLastDepthwise() const {
    const auto taps = static_cast<double>(CountTaps());
    const double made = static_cast<double>(result_.numel()) * taps;
    if (!backward_) {
      return made / rates_.depthwise;
    }
    return (Makes(0) ? static_cast<double>(input_.numel()) * taps / rates_.depthwise_input : 0) +
           (Makes(1) ? made / rates_.depthwise_weight + rates_.backward_pass.seconds() : 0);
  }

  /// A thread for each element that is made goes through its window. Windows of 3 x 3 and 5 x 5
  /// are unrolled.
  double ThreadsSeconds(const Value& made, const PlanarDepthwiseRates& rates) const {
    const std::size_t rank = weight_.shape.size();
    const std::int64_t columns = weight_.shape[rank - 1];
    const std::int64_t rows = rank > 3 ? weight_.shape[rank - 2] : 1;
    const std::int64_t taps = weight_.numel() / std::max<std::int64_t>(1, made.shape[1]);
    const bool unrolled = rank == 4 && rows == columns && (rows == 3 || rows == 5);
    const auto each = static_cast<double>(taps);
    const double element =
        unrolled ? rates.unrolled_element + each * rates.unrolled_tap
                 : rates.element + static_cast<double>(rows) * rates.row + each * rates.tap;
    return static_cast<double>(made.numel()) * element * kPicosecond;
  }

  /// A thread block for each element of the weight: each of up to eight warps goes through whole
  /// images, 32 elements at a time.
  double DepthwiseWeightSeconds() const {
    constexpr std::int64_t kWarp = 32;
    constexpr std::int64_t kMostWarps = 8;
    constexpr double kEnds = 1.7;  // blocks a multiprocessor that the first and the last ones cost
    const std::int64_t images = input_.shape[0];
    const std::int64_t warps = std::clamp<std::int64_t>(images, 1, kMostWarps);
    const double image =
        rates_.depthwise_image.seconds() +
        static_cast<double>(DivideUp(PlacesOf(result_), kWarp)) * rates_.depthwise_round.seconds();
    const double blocks = static_cast<double>(weight_.numel()) / gpu_.multiprocessors + kEnds;
    return static_cast<double>(DivideUp(images, warps) * warps) / kMostWarps * image * blocks;
  }

  const KernelTraits& of_;
  const GpuSpec& gpu_;
  const ConvolutionRates& rates_;
  ConvolutionOperands operands_;
  bool backward_;
  bool transposed_;
  const Value& input_;
  const Value& weight_;
  const Value& result_;  // or its gradient
  bool planar_;          // channels are not last
};

}  // namespace

std::optional<double> ConvolutionSeconds(const KernelTraits& of, const GpuSpec& gpu) {
  return HasPlaces(of) ? std::optional(ConvolutionWork(of, gpu).Seconds()) : std::nullopt;
}

std::optional<ValueId> FindSingleKernel(const KernelTraits& of) {
  if (!HasPlaces(of)) {
    return std::nullopt;
  }
  const ConvolutionOperands operands = OperandsOf(of);
  const bool channels_last = operands.input->strides[1] == 1 && !operands.input->is_contiguous();
  return HasSingleKernel(*operands.weight) && !channels_last
             ? std::optional(of.op->inputs[of.backward ? 2 : 1])
             : std::nullopt;
}

}  // namespace dcsim
