#include "tests/model/cost/gpu_with_kernels.h"

#include <algorithm>

#include "model/cost/kernel_models.h"
#include "model/ir/graph_text.h"
#include "tests/model/machine/cluster_document.h"

namespace dcsim {
namespace {

void SetMemoryRates(KernelRates& kernels) {
  kernels.plain = 0.5;
  kernels.gelu = 0.2;
  kernels.elements_per_second = {.alike = 1e11,
                                 .broadcast = 2e11,
                                 .permuted = 5e10,
                                 .converted = 4e10,
                                 .transposed = 2e10,
                                 .concatenated = 2.5e10,
                                 .rolled = 1.25e10,
                                 .filled = 1e12};
  kernels.reduction = {.share = 0.2,
                       .start = Duration::FromUs(1),
                       .wave = Duration::FromUs(2),
                       .values = Duration::FromUs(3),
                       .stage = Duration::FromUs(4),
                       .part = Duration::FromUs(5)};
  kernels.softmax = {.middle_rows = 0.25,
                     .long_rows = 0.2,
                     .long_rows_backward = 0.1,
                     .block = Duration::FromUs(3),
                     .short_elements_per_second = 4e11};
  kernels.layer_norm = {.share = 0.2, .rows_per_second = 1e9};
  kernels.unaligned_layer_norm = {.rows_per_second = 1e8, .elements_per_second = 1e9};
  kernels.layer_norm_backward = {{.share = 0.1, .rows_per_second = 5e8}, 1e8};
  kernels.lookups_per_second = 1e9;
  kernels.unaligned_lookups = 1e10;
  kernels.embedding_backward = {
      .index = Duration::FromNs(10), .sort = Duration::FromUs(50), .elements_per_second = 1e10};
}

void SetComputeRates(KernelRates& kernels) {
  kernels.product = {.start = Duration::FromUs(3),
                     .tile = 0,
                     .half_aligned = 0.2,
                     .unaligned = 0.1,
                     .unaligned_transposed = 0.05,
                     .float32 = 0.2,
                     .grouped = 0.4,
                     .vectors_per_second = 1e9,
                     .outer_elements_per_second = 2e10};
  kernels.attention = {Duration::FromUs(1), Duration::FromUs(2), 0.5};
  kernels.attention_backward = {{Duration::FromUs(2), Duration::FromUs(3), 0},
                                {.conversion = 0.2, .head_sums = 0.2}};
  kernels.efficient_attention = {.forward = 0.1,
                                 .backward = 0.05,
                                 .wide_forward = 0.2,
                                 .wide_backward = 0.02,
                                 .block = Duration::FromUs(1),
                                 .block_backward = Duration::FromUs(2)};
  kernels.cudnn_attention = {.pair = Duration::FromUs(1),
                             .pair_head = Duration::FromUs(2),
                             .block = Duration::FromUs(3),
                             .block_head = Duration::FromUs(1),
                             .start = Duration::FromUs(5),
                             .uneven = 1.1,
                             .masked = 2,
                             .wide = 1.5,
                             .wide_masked = 3};
  kernels.cudnn_attention_backward = {{.pair = Duration::FromUs(2),
                                       .pair_head = Duration::FromUs(4),
                                       .block = Duration::FromUs(6),
                                       .block_head = Duration(),
                                       .start = Duration::FromUs(1)},
                                      {.conversion = 0.4, .head_sums = 0.2}};
}

void SetConvolutionRates(KernelRates& kernels) {
  kernels.convolution = {
      .forward = 0.4,
      .backward = 0.2,
      .images = 0.25,
      .few_channels = 0.1,
      .few_channels_planar = 0.05,
      .unaligned_weight = {.block = 1e6,
                           .channel = 1e4,
                           .lone_channel = 2e4,
                           .narrow_block = 1e5,
                           .narrow_channel = 1e3,
                           .element = 10,
                           .uneven_element = 20},
      .half_aligned = 0.2,
      .unaligned = 0.1,
      .depthwise = 1e12,
      .depthwise_input = 5e11,
      .depthwise_weight = 2e12,
      .planar_depthwise =
          {.element = 4, .row = 2, .tap = 1, .unrolled_element = 3, .unrolled_tap = 2},
      .planar_depthwise_backward =
          {.element = 5, .row = 3, .tap = 2, .unrolled_element = 6, .unrolled_tap = 1},
      .depthwise_image = Duration::FromNs(100),
      .depthwise_round = Duration::FromNs(200),
      .backward_pass = Duration::FromUs(5),
      .group = Duration::FromUs(2),
      .image_sum = Duration::FromNs(10),
      .layout = 2e11,
      .weight_layout = 1e11,
      .few_channels_layout = 5e10};
}

void SetOtherRates(KernelRates& kernels) {
  kernels.indexing = {.gathered = 2e11,
                      .scatter_added = 1e11,
                      .sort = Duration::FromUs(70),
                      .put = Duration::FromUs(80),
                      .put_few = Duration::FromUs(20),
                      .elements_per_second = 5e10,
                      .same_row = Duration::FromUs(2),
                      .single_elements_per_second = 1e9,
                      .single_sums_per_second = 1e9,
                      .looked_up = 5e10};
  kernels.group_norm = {.start = Duration::FromUs(1),
                        .blocks_per_second = 1e9,
                        .elements_per_second = 2e11,
                        .group_elements_per_second = 2e9,
                        .written_per_second = 1e11};
  kernels.group_norm_backward = {.start = Duration::FromUs(3),
                                 .image = Duration::FromNs(200),
                                 .blocks_per_second = 5e8,
                                 .elements_per_second = 2e11,
                                 .short_blocks_per_second = 1e9,
                                 .short_elements_per_second = 4e11,
                                 .written_per_second = 1e11};
  kernels.batch_norm = {.block = Duration::FromUs(1),
                        .round = Duration::FromNs(400),
                        .cached_round = Duration::FromNs(200),
                        .busy_round = Duration::FromNs(150),
                        .elements_per_second = 1e11,
                        .apart_per_second = 2e10};
  kernels.batch_norm_backward = {.block = Duration::FromUs(2),
                                 .round = Duration::FromNs(800),
                                 .cached_round = Duration::FromNs(400),
                                 .busy_round = Duration::FromNs(300),
                                 .elements_per_second = 5e10,
                                 .apart_per_second = 1e10};
  kernels.batch_norm_writing = {.elements_per_second = 1e11, .blocks_per_second = 1e9};
  kernels.pooling = {.forward = 4e11,
                     .backward = 2e11,
                     .maximum = 3e11,
                     .maximum_backward = 1e11,
                     .unfolded = 1e11,
                     .folded = 5e10};
  kernels.concatenation = {.start = Duration::FromUs(1),
                           .blocks_per_second = 1e9,
                           .unaligned = 0.1,
                           .unaligned_part = 0.05,
                           .hidden = 0};
}

}  // namespace

GpuSpec GpuWithKernels() {
  GpuSpec gpu = TestCluster().gpu;
  KernelRates kernels;
  SetMemoryRates(kernels);
  SetComputeRates(kernels);
  SetConvolutionRates(kernels);
  SetOtherRates(kernels);
  gpu.kernels = std::make_shared<KernelRates>(kernels);
  gpu.matmul.push_back({DType::kFloat32, 1e14});
  return gpu;
}

Graph OneOp(const std::string& tensors, const std::string& op, const std::string& before) {
  return ParseGraphText("graph g 1 tokens\n" + tensors + "\nforward\n" + before + op +
                        "\nl: float32[] = my::loss(y)\nloss l\n");
}

OpId MakerOf(const Graph& graph) {
  const auto makes = [&](const Op& op) {
    return std::any_of(op.outputs.begin(), op.outputs.end(), [&](ValueId output) {
      return !output.is_none() && graph.value(output).name == "y";
    });
  };
  const auto maker = std::find_if(graph.ops.begin(), graph.ops.end(), makes);
  return OpId(static_cast<std::size_t>(maker - graph.ops.begin()));
}

Graph WithStrides(Graph graph, const std::string& name, const std::vector<std::int64_t>& strides) {
  for (Value& value : graph.values) {
    value.strides = value.name == name ? strides : value.strides;
  }
  return graph;
}

std::int64_t TimeOf(const Graph& graph) {
  return KernelTime(TraitsOf(graph, MakerOf(graph)), GpuWithKernels()).ns();
}

}  // namespace dcsim
