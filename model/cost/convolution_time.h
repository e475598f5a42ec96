#pragma once

#include <optional>

#include "model/cost/kernel_traits.h"
#include "model/cost/rate_fields.h"

namespace dcsim {

struct GpuSpec;

/// A convolution of each channel alone where channels are not last: picoseconds that the whole GPU
/// takes for an element that is made.
struct PlanarDepthwiseRates {
  double element = 0;
  double row = 0;               // of the window
  double tap = 0;               // element of the window
  double unrolled_element = 0;  // windows of 3 x 3 and 5 x 5
  double unrolled_tap = 0;

  static constexpr auto Fields() {
    return std::tuple(PositiveField("element", &PlanarDepthwiseRates::element),
                      PositiveField("row", &PlanarDepthwiseRates::row),
                      PositiveField("tap", &PlanarDepthwiseRates::tap),
                      PositiveField("unrolled_element", &PlanarDepthwiseRates::unrolled_element),
                      PositiveField("unrolled_tap", &PlanarDepthwiseRates::unrolled_tap));
  }
};

/// A pass that reads the weight of kernels of one element at no multiple of 16 bytes. Picoseconds
/// of a multiprocessor for each thread block that it has, and of the GPU for each element.
struct UnalignedWeightRates {
  double block = 0;           // forward, beside its depth
  double channel = 0;         // of its depth: of the channels that are added up
  double lone_channel = 0;    // … where no other block runs beside it
  double narrow_block = 0;    // forward, of fewer than 32 channels made
  double narrow_channel = 0;  // … of its depth
  double element = 0;         // of the input's gradient, rows of places at multiples of 16 bytes
  double uneven_element = 0;  // … other rows

  static constexpr auto Fields() {
    return std::tuple(PositiveField("block", &UnalignedWeightRates::block),
                      PositiveField("channel", &UnalignedWeightRates::channel),
                      PositiveField("lone_channel", &UnalignedWeightRates::lone_channel),
                      PositiveField("narrow_block", &UnalignedWeightRates::narrow_block),
                      PositiveField("narrow_channel", &UnalignedWeightRates::narrow_channel),
                      PositiveField("element", &UnalignedWeightRates::element),
                      PositiveField("uneven_element", &UnalignedWeightRates::uneven_element));
  }
};

/// Convolutions in half precision, and what stands before and behind them.
struct ConvolutionRates {
  double forward = 1;       // share of the peak
  double backward = 1;      // the same
  double images = 1;        // … of products of an image each
  double few_channels = 1;  // of the peak, of fewer than eight channels in that are filled up
  double few_channels_planar = 1;  // … where they need not be brought last
  UnalignedWeightRates unaligned_weight;
  double half_aligned = 1;  // … with kernels of one element over channels that are not last and
                            // begin at multiples of 4 or 8 bytes but not of 16
  double unaligned = 1;     // … at odd multiples of 2 bytes
  double depthwise = 0;     // multiply-adds a second, each channel alone
  double depthwise_input = 0;   // the same, of the input's gradient
  double depthwise_weight = 0;  // … of the weight's
  PlanarDepthwiseRates planar_depthwise;
  PlanarDepthwiseRates planar_depthwise_backward;  // of the input's gradient
  Duration depthwise_image;  // of the weight's, planar: a thread block's round of images, …
  Duration depthwise_round;  // … each 32 of their elements
  Duration backward_pass;    // besides its products
  Duration group;            // of a pass, of several
  Duration image_sum;        // adding an image's gradient of the weight, kernels of one element
  double layout = 0;         // elements a second that change between layouts
  double weight_layout = 0;  // the same, of weights
  double few_channels_layout = 0;  // the same, of images of fewer than 8 channels

  static constexpr auto Fields() {
    return std::tuple(
        ShareField("forward", &ConvolutionRates::forward),
        ShareField("backward", &ConvolutionRates::backward),
        ShareField("images", &ConvolutionRates::images),
        ShareField("few_channels", &ConvolutionRates::few_channels),
        ShareField("few_channels_planar", &ConvolutionRates::few_channels_planar),
        PartField("unaligned_weight", &ConvolutionRates::unaligned_weight),
        ShareField("half_aligned", &ConvolutionRates::half_aligned),
        ShareField("unaligned", &ConvolutionRates::unaligned),
        PositiveField("depthwise", &ConvolutionRates::depthwise),
        PositiveField("depthwise_input", &ConvolutionRates::depthwise_input),
        PositiveField("depthwise_weight", &ConvolutionRates::depthwise_weight),
        PartField("planar_depthwise", &ConvolutionRates::planar_depthwise),
        PartField("planar_depthwise_backward", &ConvolutionRates::planar_depthwise_backward),
        TimeField("depthwise_image", &ConvolutionRates::depthwise_image),
        TimeField("depthwise_round", &ConvolutionRates::depthwise_round),
        TimeField("backward_pass", &ConvolutionRates::backward_pass),
        TimeField("group", &ConvolutionRates::group),
        TimeField("image_sum", &ConvolutionRates::image_sum),
        PositiveField("layout", &ConvolutionRates::layout),
        PositiveField("weight_layout", &ConvolutionRates::weight_layout),
        PositiveField("few_channels_layout", &ConvolutionRates::few_channels_layout));
  }
};

/// Time of a convolution on a GPU whose file has `kernels`, seconds. A backward is two passes, one
/// for the gradient of the input and one for the weight's:
///
///   start + sum of passes: max(FLOPs / (peak * share), bytes / bandwidth) + layouts
///         + adding a bias
///
/// Where channels are not last, a pass brings its operands' channels there, and its result's back.
/// Kernels of one element need not: their passes are products of an image each, slow ones where a
/// channel fills no multiple of 16 bytes, and the weight's gradient is added up over images; the
/// faster way counts. Each channel alone (depthwise): channels that are last, a number of
/// multiply-adds a second; others by PyTorch's own kernels, a thread for each element that is
/// made, and for the weight's gradient a thread block for each of its elements.
/// Source: docs/design/costs/products.md; aten/src/ATen/native/cuda/DepthwiseConv2d.cu.
/// None of one whose tensors have no places.
std::optional<double> ConvolutionSeconds(const KernelTraits& of, const GpuSpec& gpu);

/// The weight of a convolution with kernels of one element and channels that are not last, or with
/// one place.
std::optional<ValueId> FindSingleKernel(const KernelTraits& of);

}  // namespace dcsim
