#include "tests/model/cost/kernels_document.h"

namespace dcsim {
namespace {

/// `elements_per_second` of `kernels`, complete.
Json ElementsPerSecond() {
  return {{"alike", 3e11},      {"broadcast", 3e11},    {"permuted", 2e11}, {"converted", 2e11},
          {"transposed", 1e11}, {"concatenated", 2e11}, {"rolled", 2e11},   {"filled", 1e12}};
}

Json CudnnAttention() {
  return {{"pair", "1 us"},       {"pair_head", "500 ns"}, {"block", "1 us"},
          {"block_head", "0 ns"}, {"start", "2 us"},       {"uneven", 1.1},
          {"masked", 2},          {"wide", 1.5},           {"wide_masked", 3}};
}

Json CudnnAttentionBackward() {
  Json backward = CudnnAttention();
  backward["conversion"] = 0.7;
  backward["head_sums"] = 0.6;
  return backward;
}

Json Indexing() {
  return {{"gathered", 3e11},
          {"scatter_added", 1e11},
          {"sort", "60 us"},
          {"put", "60 us"},
          {"put_few", "20 us"},
          {"elements_per_second", 4e11},
          {"same_row", "1 us"},
          {"single_elements_per_second", 1e9},
          {"single_sums_per_second", 2e9},
          {"looked_up", 1e11}};
}

Json GroupNorm() {
  return {{"start", "5 us"},
          {"blocks_per_second", 2e8},
          {"elements_per_second", 2e11},
          {"group_elements_per_second", 1e9},
          {"written_per_second", 3e11}};
}

Json GroupNormBackward() {
  return {{"start", "25 us"},
          {"image", "500 ns"},
          {"blocks_per_second", 4e8},
          {"elements_per_second", 5e11},
          {"short_blocks_per_second", 2e9},
          {"short_elements_per_second", 9e11},
          {"written_per_second", 3e11}};
}

Json BatchNorm() {
  return {{"block", "4 us"},        {"round", "400 ns"},           {"cached_round", "200 ns"},
          {"busy_round", "100 ns"}, {"elements_per_second", 2e11}, {"apart_per_second", 4e10}};
}

Json UnalignedWeight() {
  return {{"block", 2e6},          {"channel", 6e4}, {"lone_channel", 1e5}, {"narrow_block", 4e5},
          {"narrow_channel", 5e3}, {"element", 10},  {"uneven_element", 15}};
}

Json PlanarDepthwise() {
  return {{"element", 8}, {"row", 1}, {"tap", 0.5}, {"unrolled_element", 5}, {"unrolled_tap", 0.4}};
}

Json Convolution() {
  return {{"forward", 0.6},
          {"backward", 0.4},
          {"images", 0.5},
          {"few_channels", 0.03},
          {"few_channels_planar", 0.01},
          {"unaligned_weight", UnalignedWeight()},
          {"half_aligned", 0.26},
          {"unaligned", 0.13},
          {"depthwise", 5e12},
          {"depthwise_input", 4e12},
          {"depthwise_weight", 6e12},
          {"planar_depthwise", PlanarDepthwise()},
          {"planar_depthwise_backward", PlanarDepthwise()},
          {"depthwise_image", "100 ns"},
          {"depthwise_round", "50 ns"},
          {"backward_pass", "10 us"},
          {"group", "10 us"},
          {"image_sum", "40 ns"},
          {"layout", 5e11},
          {"weight_layout", 2e11},
          {"few_channels_layout", 7e10}};
}

Json Product() {
  return {{"start", "2 us"},
          {"tile", 20},
          {"half_aligned", 0.3},
          {"unaligned", 0.1},
          {"unaligned_transposed", 0.08},
          {"float32", 0.6},
          {"grouped", 0.7},
          {"vectors_per_second", 7e8},
          {"outer_elements_per_second", 1e11}};
}

Json Pooling() {
  return {{"forward", 7e11},          {"backward", 3e11}, {"maximum", 6e11},
          {"maximum_backward", 2e11}, {"unfolded", 2e11}, {"folded", 1e11}};
}

}  // namespace

Json KernelsDocument() {
  const Json attention = {{"block", "1 us"}, {"diagonal", "1 us"}, {"tail", 0.5}};
  Json backward = attention;
  backward["conversion"] = 0.5;
  backward["head_sums"] = 0.3;
  return {{"plain", 0.9},
          {"gelu", 0.6},
          {"elements_per_second", ElementsPerSecond()},
          {"reduction",
           {{"share", 0.8},
            {"start", "2 us"},
            {"wave", "1 us"},
            {"values", "300 ns"},
            {"stage", "8 us"},
            {"part", "50 ns"}}},
          {"softmax",
           {{"middle_rows", 0.7},
            {"long_rows", 0.4},
            {"long_rows_backward", 0.6},
            {"block", "3 us"},
            {"short_elements_per_second", 7e11}}},
          {"layer_norm", {{"share", 0.6}, {"rows_per_second", 9e8}}},
          {"unaligned_layer_norm", {{"rows_per_second", 2e8}, {"elements_per_second", 2e11}}},
          {"layer_norm_backward",
           {{"share", 0.7}, {"rows_per_second", 3e9}, {"columns_per_second", 2e8}}},
          {"lookups_per_second", 2e9},
          {"unaligned_lookups", 2e11},
          {"embedding_backward",
           {{"index", "35 ns"}, {"sort", "80 us"}, {"elements_per_second", 7e10}}},
          {"product", Product()},
          {"efficient_attention",
           {{"forward", 0.1},
            {"backward", 0.1},
            {"wide_forward", 0.1},
            {"wide_backward", 0.02},
            {"block", "1 us"},
            {"block_backward", "2 us"}}},
          {"cudnn_attention", CudnnAttention()},
          {"cudnn_attention_backward", CudnnAttentionBackward()},
          {"indexing", Indexing()},
          {"group_norm", GroupNorm()},
          {"batch_norm", BatchNorm()},
          {"group_norm_backward", GroupNormBackward()},
          {"batch_norm_backward", BatchNorm()},
          {"batch_norm_writing", {{"elements_per_second", 5e11}, {"blocks_per_second", 2e9}}},
          {"pooling", Pooling()},
          {"concatenation",
           {{"start", "3 us"},
            {"blocks_per_second", 2e9},
            {"unaligned", 0.4},
            {"unaligned_part", 0.2},
            {"hidden", 0.3}}},
          {"convolution", Convolution()},
          {"attention", attention},
          {"attention_backward", backward},
          {"source", ""}};
}

}  // namespace dcsim
